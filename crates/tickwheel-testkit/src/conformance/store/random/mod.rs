//! Random histories: the same operations on the model and on the store under test, compared answer by answer.
//!
//! The rules say what we thought of; this finds what we did not. A failure prints its seed; `TICKWHEEL_SEED=<seed>` repeats it.

mod generator;
mod operation;
mod schedule_operation;
mod schedules;
mod workflow_operation;
mod workflows;

use std::sync::Arc;

use self::generator::Generator;
use self::operation::{Operation, Side};
use self::schedule_operation::ScheduleOperation;
use self::workflow_operation::WorkflowOperation;
use crate::model::{Model, ModelStore};
use tickwheel_core::ports::Store;
use tickwheel_core::{JobId, RunId};

const STEPS: usize = 1_000;
const SEED_VARIABLE: &str = "TICKWHEEL_SEED";

/// A thousand random operations: every answer is the model's, and so is every job, every schedule and every run that was touched.
pub async fn random_operations_are_answered_as_by_the_model(store: Arc<dyn Store>) {
    let seed = match std::env::var(SEED_VARIABLE) {
        Ok(text) => text.parse().expect("a seed is a number"),
        Err(_) => rand::random(),
    };
    let model = ModelStore::new();
    let mut sides = [Side::new(Arc::new(model.clone())), Side::new(store)];
    let mut generator = Generator::new(seed);
    for step in 0..STEPS {
        let operation = model.with_model(|model| generator.next_operation(model));
        let touched = operation.touched_jobs();
        let schedules = Operation::Schedule(ScheduleOperation::Look(operation.touched_schedules()));
        compare(&mut sides, operation, seed, step).await;
        let jobs = model.with_model(|model| with_children(touched, model));
        let runs =
            Operation::Workflow(WorkflowOperation::Look(model.with_model(|model| runs_of(&jobs, model))));
        for looked in [Operation::Look(jobs), schedules, runs] {
            compare(&mut sides, looked, seed, step).await;
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
    let places = jobs.iter().filter_map(|id| model.job(*id)?.spec.place.as_ref());
    let mut runs: Vec<RunId> = places.map(|place| place.run).collect();
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
