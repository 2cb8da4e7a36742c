//! The verbs of workflows as data, and how a store answers them.
//!
//! The number of a reconcile request is the store's own affair: a step names the ids it has reconciled, and each store
//! has its own numbers for them.

use std::collections::BTreeSet;

use tickwheel_core::ports::{
    Creation, JobQuery, RunAdvanced, RunQuery, RunStart, StepEffects, WorkflowPut, WorkflowQuery,
};
use tickwheel_core::workflow::{ReconcileRequest, Run, RunStep, RunTask, Workflow};
use tickwheel_core::{JobId, RunId, Timestamp};

use super::super::bench::answered;
use crate::conformance::workflows::bench::RunBench;

/// A verb with everything it needs.
#[derive(Clone, Debug)]
pub enum WorkflowOperation {
    Put(Workflow),
    Get(Workflow, Option<u32>),
    List(WorkflowQuery),
    Start(Box<RunStart>),
    /// Steps, and what they have reconciled.
    Advance(Vec<(RunStep, Vec<JobId>)>),
    ListRuns(RunQuery),
    ListJobs(JobQuery),
    Stalling(Timestamp),
    /// The runs with their tasks, and all reconcile requests.
    Inspect(Vec<RunId>),
}

/// What a store said.
#[derive(Debug, PartialEq)]
pub enum WorkflowAnswer {
    Put(WorkflowPut),
    Got(Option<Workflow>),
    Workflows(Vec<Workflow>),
    Started(Creation<Run>),
    Advanced(Vec<RunAdvanced>),
    Runs(Vec<RunId>),
    Jobs(Vec<JobId>),
    Inspected(Vec<Option<(Run, Vec<RunTask>)>>, BTreeSet<JobId>),
}

impl WorkflowOperation {
    /// The jobs it may have changed.
    pub fn touched_jobs(&self) -> Vec<JobId> {
        let of_step = |(step, _): &(RunStep, Vec<JobId>)| -> Vec<JobId> {
            let changed = step.changes.iter().map(|(id, _)| *id);
            changed.chain(step.jobs.iter().map(|job| job.id)).collect()
        };
        match self {
            Self::Start(start) => start.jobs.iter().map(|job| job.id).collect(),
            Self::Advance(steps) => steps.iter().flat_map(of_step).collect(),
            _ => Vec::new(),
        }
    }

    pub async fn apply_to(self, bench: &RunBench) -> WorkflowAnswer {
        use WorkflowAnswer as Answer;
        let store = &bench.store;
        match self {
            Self::Put(workflow) => Answer::Put(answered(store.put_workflow(workflow).await)),
            Self::Get(of, version) => {
                Answer::Got(answered(store.get_workflow(&of.tenant, &of.name, version).await))
            }
            Self::List(query) => Answer::Workflows(answered(store.list_workflows(query).await).items),
            Self::Start(start) => Answer::Started(answered(store.start_run(*start).await)),
            Self::Advance(steps) => {
                let own = bench.reconcile_requests().await;
                let steps = steps
                    .into_iter()
                    .map(|(step, requested_ids)| with_reconciled(step, &requested_ids, &own));
                let answers = answered(store.advance_runs(steps.collect()).await);
                Answer::Advanced(answers.into_iter().map(in_order).collect())
            }
            Self::ListRuns(query) => Answer::Runs(bench.list(query).await),
            Self::ListJobs(query) => Answer::Jobs(bench.jobs.list_ids(query).await),
            Self::Stalling(now) => {
                let mut runs = answered(store.stalling_runs(now, 1_000).await);
                runs.sort();
                Answer::Runs(runs)
            }
            Self::Inspect(ids) => {
                let mut inspected = Vec::new();
                for id in ids {
                    inspected.push(answered(store.read_run(id).await));
                }
                Answer::Inspected(inspected, bench.requested_ids().await)
            }
        }
    }
}

fn with_reconciled(step: RunStep, requested_ids: &[JobId], own: &[ReconcileRequest]) -> RunStep {
    let reconciled = own.iter().filter(|request| requested_ids.contains(&request.id)).copied().collect();
    RunStep { reconciled, ..step }
}

/// In which order the effects come is not promised.
fn in_order(answer: RunAdvanced) -> RunAdvanced {
    match answer {
        RunAdvanced::Done(StepEffects { mut scheduled, mut ended, mut stopping }) => {
            scheduled.sort_by_key(|job| job.due.id);
            ended.sort();
            stopping.sort();
            RunAdvanced::Done(StepEffects { scheduled, ended, stopping })
        }
        RunAdvanced::Stale => RunAdvanced::Stale,
    }
}
