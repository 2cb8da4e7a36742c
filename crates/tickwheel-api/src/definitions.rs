//! Definitions of workflows that were read before.
//!
//! A version never changes, so whatever was read once is true for good; what is kept has a bound, by the number of tasks.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tickwheel_core::ports::{Store, StoreError, StoreResult};
use tickwheel_core::workflow::{Graph, Run, Workflow};

/// So many tasks are kept, of all definitions together.
const TASKS_KEPT_MAX: usize = 100_000;

/// A definition and the graph it makes.
#[derive(Debug)]
pub struct Definition {
    /// The workflow, in one version.
    pub workflow: Workflow,
    /// Its graph.
    pub graph: Graph,
}

/// The definitions that were read last. Cheap to clone; the clones share what they know.
#[derive(Clone, Debug, Default)]
pub struct Definitions(Arc<Mutex<VecDeque<Arc<Definition>>>>);

impl Definitions {
    /// The definition that a run goes by.
    pub async fn of_run(&self, store: &dyn Store, run: &Run) -> StoreResult<Arc<Definition>> {
        if let Some(known) = self.find(run) {
            return Ok(known);
        }
        let workflow = store.get_workflow(&run.tenant, &run.workflow, Some(run.version)).await?;
        let workflow = workflow.ok_or_else(|| {
            let Run { id, workflow, version, .. } = run;
            StoreError::Corrupt(format!(
                "run {id} is of version {version} of {workflow:?}, which is not there"
            ))
        })?;
        let graph = Graph::stored(&workflow.spec).map_err(|faults| {
            let first = faults.first().map(|fault| fault.kind.to_string()).unwrap_or_default();
            StoreError::Corrupt(format!("version {} of {:?}: {first}", workflow.version, workflow.name))
        })?;
        let definition = Arc::new(Definition { workflow, graph });
        self.keep(definition.clone());
        Ok(definition)
    }

    /// Moves what it finds to the end: what is in front has not been asked for the longest.
    fn find(&self, run: &Run) -> Option<Arc<Definition>> {
        let is_it = |known: &Arc<Definition>| {
            let Workflow { tenant, name, version, .. } = &known.workflow;
            *version == run.version && *name == run.workflow && *tenant == run.tenant
        };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().position(is_it).and_then(|at| kept.remove(at))?;
        kept.push_back(found.clone());
        Some(found)
    }

    fn keep(&self, definition: Arc<Definition>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back(definition);
        let mut tasks: usize = kept.iter().map(|known| known.graph.nodes.len()).sum();
        while tasks > TASKS_KEPT_MAX && kept.len() > 1 {
            tasks -= kept.pop_front().map_or(0, |forgotten| forgotten.graph.nodes.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_core::workflow::{TaskSpec, Work, WorkflowSpec};
    use tickwheel_core::{JobSpec, JsonText, Priority, Target, Timestamp, schedule::JobTemplate};

    use super::*;

    fn definition(version: u32, tasks: usize) -> Arc<Definition> {
        let job = JobTemplate {
            job_type: "t".into(),
            queue: "q".into(),
            priority: Priority::Normal,
            spec: JobSpec::new(Target::Worker).into(),
            payload: JsonText::null(),
            tags: Vec::new(),
        };
        let task = |n: usize| TaskSpec {
            name: format!("t{n}").into(),
            depends_on: Vec::new(),
            rule: Default::default(),
            when: None,
            work: Work::Job(job.clone()),
        };
        let spec = WorkflowSpec { tasks: (0..tasks).map(task).collect(), ..WorkflowSpec::default() };
        let graph = Graph::stored(&spec).expect("a graph");
        let created_at = Timestamp::from_millis(0);
        let workflow =
            Workflow { tenant: "a".into(), name: "w".into(), version, created_at, spec: spec.into() };
        Arc::new(Definition { workflow, graph })
    }

    fn versions(kept: &Definitions) -> Vec<u32> {
        kept.0.lock().expect("nobody panics with it").iter().map(|known| known.workflow.version).collect()
    }

    #[test]
    fn what_was_not_asked_for_the_longest_is_forgotten_first_and_the_latest_never() {
        let kept = Definitions::default();
        (1..=10).for_each(|version| kept.keep(definition(version, 10_000)));
        assert_eq!(versions(&kept).len(), 10);
        kept.keep(definition(11, 15_000));
        assert_eq!(versions(&kept), (3..=11).collect::<Vec<_>>());
        kept.keep(definition(12, TASKS_KEPT_MAX + 1));
        assert_eq!(versions(&kept), [12]);
    }
}
