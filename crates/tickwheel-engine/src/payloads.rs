//! Puts payloads together before they are sent: what they refer to is read once and shared by all attempts under way.
//!
//! A value stays in memory as long as somebody sends it. One is read at a time; how much there may be in all is
//! bounded, and whoever comes when there is too much goes back in line.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use tickwheel_core::payload::{Document, Piece, Reference};
use tickwheel_core::ports::RunStore;
use tickwheel_core::{Failure, Job, RunId};
use tokio::sync::Mutex;

/// So many bytes of values that payloads refer to are in memory, and one value more.
const KEPT_BYTES_MAX: usize = 128 << 20;

/// See the module.
pub struct Payloads {
    store: Arc<dyn RunStore>,
    /// What somebody sends at the moment, or did a moment ago.
    kept: Mutex<HashMap<(RunId, Reference), Weak<str>>>,
}

/// Why there is no payload to send.
#[derive(Debug, PartialEq, Eq)]
pub enum NoPayload {
    /// Another time there is.
    ForNow(String),
    /// There never will be.
    AtAll(Failure),
}

impl Payloads {
    pub fn new(store: Arc<dyn RunStore>) -> Self {
        Self { store, kept: Mutex::default() }
    }

    /// The payload of a job as it is sent.
    pub async fn of(&self, job: &Job) -> Result<Document, NoPayload> {
        if let Some(whole) = job.payload.whole() {
            return Ok(Document::Whole(whole));
        }
        let mut pieces: Vec<Arc<str>> = Vec::new();
        for piece in job.payload.pieces().map_err(|error| missing(&error.to_string()))? {
            pieces.push(match piece {
                Piece::Text(text) => text.into(),
                Piece::Reference(reference) => self.value(RunId::of_task(job.id), reference).await?,
            });
        }
        Ok(Document::Pieces(pieces))
    }

    async fn value(&self, run: RunId, reference: Reference) -> Result<Arc<str>, NoPayload> {
        // Held while it is read: those who want the same find it here afterwards.
        let mut kept = self.kept.lock().await;
        let key = (run, reference);
        if let Some(value) = kept.get(&key).and_then(Weak::upgrade) {
            return Ok(value);
        }
        kept.retain(|_, value| value.strong_count() > 0);
        let bytes: usize = kept.values().filter_map(Weak::upgrade).map(|value| value.len()).sum();
        if bytes > KEPT_BYTES_MAX {
            return Err(NoPayload::ForNow(format!(
                "payloads with over {KEPT_BYTES_MAX} bytes are being sent"
            )));
        }
        match self.store.referenced_value(run, &key.1).await {
            Ok(Some(value)) => {
                kept.insert(key, Arc::downgrade(&value));
                Ok(value)
            }
            Ok(None) => Err(missing(&format!("{} leads nowhere any more", key.1.path))),
            Err(error) => Err(NoPayload::ForNow(format!("its payload could not be read: {error}"))),
        }
    }
}

fn missing(why: &str) -> NoPayload {
    NoPayload::AtAll(Failure::new(
        "unresolved_reference",
        format!("its payload cannot be put together: {why}"),
    ))
}
