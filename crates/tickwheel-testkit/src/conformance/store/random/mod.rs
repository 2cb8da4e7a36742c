//! Random histories: the same operations on the model and on the store under test, compared answer by answer.
//!
//! The rules say what we thought of; this finds what we did not. A failure prints its seed; `TICKWHEEL_SEED=<seed>` repeats it.

mod generator;
mod operation;

use std::sync::Arc;

use tickwheel_core::ports::Store;

use self::generator::Generator;
use self::operation::{Operation, Side};
use crate::model::ModelStore;

const STEPS: usize = 600;
const SEED_VARIABLE: &str = "TICKWHEEL_SEED";

/// Six hundred random operations: every answer is the model's, and so is every job that was touched.
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
        compare(&mut sides, operation, seed, step).await;
        compare(&mut sides, Operation::Look(touched), seed, step).await;
    }
    for operation in generator.final_reads() {
        compare(&mut sides, operation, seed, STEPS).await;
    }
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
