//! Definitions of workflows that runs need, each read and checked once: a version never changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tickwheel_core::ports::{StoreError, StoreResult, WorkflowStore};
use tickwheel_core::workflow::{Definition, Run, Workflow};

/// Definitions of so many tasks together are kept. When there are more, all are forgotten: the ones in use come back.
const TASKS_KEPT_MAX: usize = 100_000;

type Key = (Arc<str>, Arc<str>, u32);

/// See the module.
#[derive(Clone)]
pub struct Definitions {
    store: Arc<dyn WorkflowStore>,
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    by_version: HashMap<Key, Arc<Definition>>,
    tasks: usize,
}

impl Known {
    fn add(&mut self, definition: Definition) -> Arc<Definition> {
        let Workflow { tenant, name, version, .. } = &definition.workflow;
        let key = (tenant.clone(), name.clone(), *version);
        let tasks = definition.graph.nodes.len();
        if self.tasks + tasks > TASKS_KEPT_MAX {
            *self = Self::default();
        }
        let definition = Arc::new(definition);
        if self.by_version.insert(key, definition.clone()).is_none() {
            self.tasks += tasks;
        }
        definition
    }
}

impl Definitions {
    /// Those in this store.
    pub fn new(store: Arc<dyn WorkflowStore>) -> Self {
        Self { store, known: Arc::default() }
    }

    /// The definition that a run follows.
    pub async fn of_run(&self, run: &Run) -> StoreResult<Arc<Definition>> {
        let key = (run.tenant.clone(), run.workflow.clone(), run.version);
        if let Some(known) = self.lock().by_version.get(&key) {
            return Ok(known.clone());
        }
        let found = self.store.get_workflow(&run.tenant, &run.workflow, Some(run.version)).await?;
        let missing = || {
            let Run { id, workflow, version, .. } = run;
            StoreError::Corrupt(format!("run {id} is of version {version} of {workflow}, which is gone"))
        };
        self.remember(found.ok_or_else(missing)?)
    }

    /// The latest version of a workflow.
    pub async fn latest(&self, tenant: &str, name: &str) -> StoreResult<Option<Arc<Definition>>> {
        let Some(version) = self.store.latest_version(tenant, name).await? else { return Ok(None) };
        if let Some(known) = self.lock().by_version.get(&(tenant.into(), name.into(), version)) {
            return Ok(Some(known.clone()));
        }
        let found = self.store.get_workflow(tenant, name, Some(version)).await?;
        found.map(|workflow| self.remember(workflow)).transpose()
    }

    fn remember(&self, workflow: Workflow) -> StoreResult<Arc<Definition>> {
        let definition = Definition::stored(workflow).map_err(StoreError::Corrupt)?;
        Ok(self.lock().add(definition))
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_core::workflow::WorkflowSpec;
    use tickwheel_testkit::fixtures::{task_spec, workflow};

    use super::*;

    fn definition(version: u32, tasks: usize) -> Definition {
        let named = |n: usize| task_spec(&format!("t{n}"), []);
        let spec = WorkflowSpec { tasks: (0..tasks).map(named).collect(), ..WorkflowSpec::default() };
        let workflow = Workflow { version, spec: Arc::new(spec), ..workflow("w").build() };
        Definition::stored(workflow).expect("a graph")
    }

    #[test]
    fn what_is_kept_is_bounded_by_the_number_of_tasks() {
        let mut known = Known::default();
        (1..=10).for_each(|version| drop(known.add(definition(version, TASKS_KEPT_MAX / 10))));
        assert_eq!(known.by_version.len(), 10);
        known.add(definition(10, TASKS_KEPT_MAX / 10));
        assert!(known.by_version.len() <= 10, "the same version twice is one");
        known.add(definition(11, TASKS_KEPT_MAX + 1));
        assert_eq!(known.by_version.len(), 1, "the latest is kept, however large");
        known.add(definition(12, 1));
        assert_eq!((known.by_version.len(), known.tasks), (1, 1));
    }
}
