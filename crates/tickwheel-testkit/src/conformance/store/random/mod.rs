//! Random histories: the same operations on the model and on the store under test, compared answer by answer.
//!
//! The rules say what we thought of; this finds what we did not. A failure prints its seed; `TICKWHEEL_SEED=<seed>` repeats it.

mod generator;
mod operation;
mod schedule_operation;
mod schedules;

use std::sync::Arc;

use self::generator::Generator;
use self::operation::{Operation, Side};
use self::schedule_operation::ScheduleOperation;
use crate::model::{Model, ModelStore};
use tickwheel_core::JobId;
use tickwheel_core::ports::Store;

const STEPS: usize = 800;
const SEED_VARIABLE: &str = "TICKWHEEL_SEED";

/// Eight hundred random operations: every answer is the model's, and so is every job and every schedule that was touched.
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
        let jobs = model.with_model(|model| with_children(operation.touched_jobs(), model));
        let jobs = Operation::Look(jobs);
        let schedules = Operation::Schedule(ScheduleOperation::Look(operation.touched_schedules()));
        for operation in [operation, jobs, schedules] {
            compare(&mut sides, operation, seed, step).await;
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

async fn compare(sides: &mut [Side; 2], operation: Operation, seed: u64, step: usize) {
    let [model, store] = sides;
    let expected = model.apply(operation.clone()).await;
    let answer = store.apply(operation.clone()).await;
    assert!(
        answer == expected,
        "{SEED_VARIABLE}={seed}, step {step}: {operation:#?}\nthe store answered {answer:#?}\nthe model {expected:#?}",
    );
}
