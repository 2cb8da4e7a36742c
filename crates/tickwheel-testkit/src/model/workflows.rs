//! Definitions of workflows: versions are added, never changed.

use std::sync::Arc;

use tickwheel_core::ports::{Page, WorkflowPut, WorkflowQuery};
use tickwheel_core::workflow::Workflow;

use super::Model;
use super::lists::{is_none_or, page};

impl Model {
    /// Stores a definition as the next version of its name, unless the latest one says the same.
    pub fn put_workflow(&mut self, workflow: Workflow) -> WorkflowPut {
        let latest = self.get_workflow(&workflow.tenant, &workflow.name, None);
        let version = match latest {
            Some(latest) if latest.spec == workflow.spec => return WorkflowPut::Unchanged(latest.version),
            latest => latest.map_or(1, |latest| latest.version + 1),
        };
        let key = (workflow.tenant.clone(), workflow.name.clone(), version);
        self.workflows.insert(key, Workflow { version, ..workflow });
        WorkflowPut::Created(version)
    }

    /// A version of a workflow, or the latest.
    pub fn get_workflow(&self, tenant: &str, name: &str, version: Option<u32>) -> Option<Workflow> {
        let mut versions = self.versions(tenant, name);
        versions.find(|workflow| is_none_or(&version, |version| workflow.version == *version)).cloned()
    }

    /// The latest version of each workflow, by name.
    pub fn list_workflows(&self, query: &WorkflowQuery) -> Page<Workflow, String> {
        let own = self.workflows.keys().filter(|(tenant, ..)| **tenant == *query.tenant);
        let mut names: Vec<Arc<str>> = own.map(|(_, name, _)| name.clone()).collect();
        names.dedup();
        names.retain(|name| is_none_or(&query.after, |after| **name > **after));
        let latest = names.iter().filter_map(|name| self.versions(&query.tenant, name).next());
        page(latest.collect(), query.limit, |workflow| workflow.name.to_string())
    }

    /// The versions of a workflow before `before`, the latest first.
    pub fn list_workflow_versions(
        &self,
        tenant: &str,
        name: &str,
        before: Option<u32>,
        limit: usize,
    ) -> Page<Workflow, u32> {
        let earlier = |workflow: &&Workflow| is_none_or(&before, |before| workflow.version < *before);
        let found = self.versions(tenant, name).filter(earlier).collect();
        page(found, limit, |workflow| workflow.version)
    }

    /// The latest first.
    fn versions(&self, tenant: &str, name: &str) -> impl Iterator<Item = &Workflow> {
        let first = (tenant.into(), name.into(), 0);
        let last = (tenant.into(), name.into(), u32::MAX);
        self.workflows.range(first..=last).rev().map(|(_, workflow)| workflow)
    }
}
