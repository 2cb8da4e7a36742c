//! The jobs of the floors, and the rates at which their writes were done.

use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;

/// Jobs a transaction.
pub const BATCH_LEN: usize = 500;

/// A hundred bytes, as small jobs have.
pub const PAYLOAD: &str =
    r#"{"to":"somebody@example.org","template":"welcome","language":"en","number":1234567890,"n":12345678}"#;

/// Ids as a scheduler would give them: each greater than the one before.
pub fn ids(count: usize) -> Vec<Uuid> {
    (0..count).map(|_| Uuid::now_v7()).collect()
}

/// What was seen: inserting, and claiming and settling, each in jobs a second.
pub fn rates(jobs: usize, inserting: Duration, draining: Duration) -> Value {
    let per_s = |took: Duration| jobs as f64 / took.as_secs_f64();
    json!({ "jobs": jobs, "insert_per_s": per_s(inserting), "drain_per_s": per_s(draining) })
}
