//! Payloads put together for whoever reads them: what they refer to is in the run of their job.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::json;
use tickwheel_core::payload::{Payload, Piece, Reference};
use tickwheel_core::ports::{Store, StoreError};
use tickwheel_core::{Job, RunId};

use crate::error::ApiResult;

/// Puts the payloads of these jobs together, in their order, and says how many it did before they had `bytes_max`
/// bytes: at least one.
pub async fn resolve_payloads(store: &dyn Store, jobs: Vec<&mut Job>, bytes_max: usize) -> ApiResult<usize> {
    let mut known: HashMap<(RunId, Reference), Arc<str>> = HashMap::new();
    let (mut count, mut bytes) = (0, 0);
    for job in jobs {
        if job.payload.whole().is_none() {
            job.payload = whole(store, job, &mut known).await?;
        }
        bytes += job.payload.as_str().len();
        if count > 0 && bytes > bytes_max {
            break;
        }
        count += 1;
    }
    Ok(count)
}

async fn whole(
    store: &dyn Store,
    job: &Job,
    known: &mut HashMap<(RunId, Reference), Arc<str>>,
) -> ApiResult<Payload> {
    let unreadable = |error: serde_json::Error| StoreError::Corrupt(error.to_string());
    let run = RunId::of_task(job.id);
    let mut text = String::new();
    for piece in job.payload.pieces().map_err(unreadable)? {
        match piece {
            Piece::Text(here) => text.push_str(&here),
            Piece::Reference(reference) => {
                let key = (run, reference);
                if let Some(value) = known.get(&key) {
                    text.push_str(value);
                    continue;
                }
                // Of a task that is being run again there is no result: then it is shown as it was written.
                let value = store.referenced_value(run, &key.1).await?;
                let value = value.unwrap_or_else(|| json!({"$from": key.1.path}).to_string().into());
                text.push_str(&value);
                known.insert(key, value);
            }
        }
    }
    Ok(Payload::from_stored(text))
}
