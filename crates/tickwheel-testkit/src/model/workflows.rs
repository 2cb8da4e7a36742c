//! Definitions of workflows: versions are added, never changed. A removal marks the latest one.

use std::sync::Arc;

use tickwheel_core::ports::{Page, WorkflowPut, WorkflowQuery};
use tickwheel_core::workflow::Workflow;

use super::Model;
use super::lists::{is_none_or, page};

impl Model {
    /// Stores a definition as the next version of its name, unless the latest one says the same.
    pub fn put_workflow(&mut self, workflow: Workflow) -> WorkflowPut {
        let last = self.versions(&workflow.tenant, &workflow.name).next();
        let version = match last {
            Some(last) if last.spec == workflow.spec && !self.is_removed(last) => {
                return WorkflowPut::Unchanged(last.version);
            }
            last => last.map_or(1, |last| last.version + 1),
        };
        let workflow = Workflow { version, ..workflow };
        self.workflows.insert(key_of(&workflow), workflow);
        WorkflowPut::Created(version)
    }

    /// A version of a workflow, or the latest unless it was removed.
    pub fn get_workflow(&self, tenant: &str, name: &str, version: Option<u32>) -> Option<Workflow> {
        match version {
            Some(version) => {
                self.versions(tenant, name).find(|workflow| workflow.version == version).cloned()
            }
            None => self.latest(tenant, name).cloned(),
        }
    }

    /// Takes a workflow away; its versions stay.
    pub fn remove_workflow(&mut self, tenant: &str, name: &str) -> bool {
        let Some(latest) = self.latest(tenant, name) else { return false };
        let key = key_of(latest);
        self.removed_workflows.insert(key)
    }

    /// The latest version of each workflow, by name.
    pub fn list_workflows(&self, query: &WorkflowQuery) -> Page<Workflow, String> {
        let own = self.workflows.keys().filter(|(tenant, ..)| **tenant == *query.tenant);
        let mut names: Vec<Arc<str>> = own.map(|(_, name, _)| name.clone()).collect();
        names.dedup();
        names.retain(|name| is_none_or(&query.after, |after| **name > **after));
        let latest = names.iter().filter_map(|name| self.latest(&query.tenant, name));
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

    fn latest(&self, tenant: &str, name: &str) -> Option<&Workflow> {
        self.versions(tenant, name).next().filter(|last| !self.is_removed(last))
    }

    fn is_removed(&self, version: &Workflow) -> bool {
        self.removed_workflows.contains(&key_of(version))
    }

    /// The latest first.
    fn versions(&self, tenant: &str, name: &str) -> impl Iterator<Item = &Workflow> {
        let first = (tenant.into(), name.into(), 0);
        let last = (tenant.into(), name.into(), u32::MAX);
        self.workflows.range(first..=last).rev().map(|(_, workflow)| workflow)
    }
}

fn key_of(version: &Workflow) -> (Arc<str>, Arc<str>, u32) {
    (version.tenant.clone(), version.name.clone(), version.version)
}
