//! Random histories: the same operations on the model and on the store under test, compared answer by answer.
//!
//! The rules say what we thought of; this finds what we did not. A failure prints its seed; `TICKWHEEL_SEED=<seed>`
//! repeats it.

mod generator;
mod operation;
mod schedule_operation;
mod schedules;
mod workflow_operation;
mod workflows;

use std::future::Future;
use std::sync::Arc;

use tokio::task::JoinSet;

use self::generator::Generator;
use self::operation::{Operation, Side};
use self::schedule_operation::ScheduleOperation;
use self::workflow_operation::WorkflowOperation;
use crate::model::{Model, ModelStore};
use tickwheel_core::ports::Store;
use tickwheel_core::{JobId, RunId};

/// How many histories a store goes through, and how many operations each has.
const HISTORIES: u64 = 20;
const STEPS: usize = 1_000;
/// Histories under way at the same time, each on a store of its own.
const AT_ONCE: usize = 4;
const SEED_VARIABLE: &str = "TICKWHEEL_SEED";

/// Twenty times a thousand random operations, each time on a fresh store: every answer is the model's, and so is every
/// job, every schedule and every run that was touched.
pub async fn random_operations_are_answered_as_by_the_model<F, K>(fresh: impl Fn() -> F)
where
    F: Future<Output = (Arc<dyn Store>, K)>,
    K: Send + 'static,
{
    let mut under_way = JoinSet::new();
    for seed in seeds() {
        println!("{SEED_VARIABLE}={seed}");
        if under_way.len() == AT_ONCE {
            ended_well(under_way.join_next().await);
        }
        let (store, kept_alive) = fresh().await;
        under_way.spawn(async move {
            history(store, seed).await;
            drop(kept_alive);
        });
    }
    while !under_way.is_empty() {
        ended_well(under_way.join_next().await);
    }
}

/// One seed from the environment, or many that nobody has chosen.
fn seeds() -> Vec<u64> {
    match std::env::var(SEED_VARIABLE) {
        Ok(text) => vec![text.parse().expect("a seed is a number")],
        Err(_) => (0..HISTORIES).map(|_| rand::random()).collect(),
    }
}

fn ended_well(ended: Option<Result<(), tokio::task::JoinError>>) {
    if let Some(Err(error)) = ended {
        std::panic::resume_unwind(error.into_panic());
    }
}

async fn history(store: Arc<dyn Store>, seed: u64) {
    let model = ModelStore::new();
    let mut sides = [Side::new(Arc::new(model.clone())), Side::new(store)];
    let mut generator = Generator::new(seed);
    for step in 0..STEPS {
        let operation = model.with_model(|model| generator.next_operation(model));
        let touched = operation.touched_jobs();
        let schedules = Operation::Schedule(ScheduleOperation::Inspect(operation.touched_schedules()));
        compare(&mut sides, operation, seed, step).await;
        let jobs = model.with_model(|model| with_children(touched, model));
        let runs =
            Operation::Workflow(WorkflowOperation::Inspect(model.with_model(|model| runs_of(&jobs, model))));
        for inspected in [Operation::Inspect(jobs), schedules, runs] {
            compare(&mut sides, inspected, seed, step).await;
        }
    }
    for operation in generator.final_reads() {
        compare(&mut sides, operation, seed, STEPS).await;
    }
}

/// What happens to a job may happen to those that wait for it.
fn with_children(mut jobs: Vec<JobId>, model: &Model) -> Vec<JobId> {
    let children: Vec<JobId> = jobs.iter().flat_map(|id| model.children_of(*id)).collect();
    jobs.extend(children);
    jobs.sort();
    jobs.dedup();
    jobs
}

/// The runs that these are tasks of.
fn runs_of(jobs: &[JobId], model: &Model) -> Vec<RunId> {
    let requested_ids = jobs.iter().filter_map(|id| model.job(*id)?.spec.position.as_ref());
    let mut runs: Vec<RunId> = requested_ids.map(|position| position.run).collect();
    runs.dedup();
    runs
}

async fn compare(sides: &mut [Side; 2], operation: Operation, seed: u64, step: usize) {
    let [model, store] = sides;
    let expected = model.apply(operation.clone()).await;
    let answer = store.apply(operation.clone()).await;
    assert!(
        answer == expected,
        "{SEED_VARIABLE}={seed}, step {step}: {operation:#?}\nthe store answered {answer:#?}\nthe model {expected:#?}",
    );
}
