//! Definitions of workflows that runs need, each read and checked once: a version never changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tickwheel_core::ports::{StoreError, StoreResult, WorkflowStore};
use tickwheel_core::workflow::{Graph, Run, Workflow};

/// When so many are known, all are forgotten: the ones in use come back.
const LEN_MAX: usize = 256;

/// A version of a workflow, ready to be run.
#[derive(Debug)]
pub struct Definition {
    pub workflow: Workflow,
    pub graph: Graph,
}

impl Definition {
    /// Of a stored workflow.
    pub fn of(workflow: Workflow) -> StoreResult<Self> {
        let graph = Graph::stored(&workflow.spec).map_err(|_| {
            let Workflow { name, version, .. } = &workflow;
            StoreError::Corrupt(format!("version {version} of workflow {name} is no graph"))
        })?;
        Ok(Self { workflow, graph })
    }
}

type Key = (Arc<str>, Arc<str>, u32);

/// See the module.
#[derive(Clone)]
pub struct Definitions {
    store: Arc<dyn WorkflowStore>,
    known: Arc<Mutex<HashMap<Key, Arc<Definition>>>>,
}

impl Definitions {
    /// Those in this store.
    pub fn new(store: Arc<dyn WorkflowStore>) -> Self {
        Self { store, known: Arc::default() }
    }

    /// The definition that a run follows.
    pub async fn of_run(&self, run: &Run) -> StoreResult<Arc<Definition>> {
        let key = (run.tenant.clone(), run.workflow.clone(), run.version);
        if let Some(known) = self.lock().get(&key) {
            return Ok(known.clone());
        }
        let found = self.store.get_workflow(&run.tenant, &run.workflow, Some(run.version)).await?;
        let missing = || {
            let Run { id, workflow, version, .. } = run;
            StoreError::Corrupt(format!("run {id} is of version {version} of {workflow}, which is gone"))
        };
        Ok(self.remember(Definition::of(found.ok_or_else(missing)?)?))
    }

    /// The latest version of a workflow.
    pub async fn latest(&self, tenant: &str, name: &str) -> StoreResult<Option<Arc<Definition>>> {
        let Some(version) = self.store.latest_version(tenant, name).await? else { return Ok(None) };
        if let Some(known) = self.lock().get(&(tenant.into(), name.into(), version)) {
            return Ok(Some(known.clone()));
        }
        let found = self.store.get_workflow(tenant, name, Some(version)).await?;
        found.map(|workflow| Definition::of(workflow).map(|definition| self.remember(definition))).transpose()
    }

    fn remember(&self, definition: Definition) -> Arc<Definition> {
        let Workflow { tenant, name, version, .. } = &definition.workflow;
        let key = (tenant.clone(), name.clone(), *version);
        let definition = Arc::new(definition);
        let mut known = self.lock();
        if known.len() >= LEN_MAX {
            known.clear();
        }
        known.insert(key, definition.clone());
        definition
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Arc<Definition>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
