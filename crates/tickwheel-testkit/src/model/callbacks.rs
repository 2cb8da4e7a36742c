//! Outcomes that are still to be told to somebody, and what is told of runs.

use tickwheel_core::ports::{Callback, CallbackResult};
use tickwheel_core::{Job, Timestamp};

use super::{Model, PendingCallback};

impl Model {
    /// Callbacks that are due, the longest due first, taken until `taken_until`.
    pub fn take_callbacks(&mut self, now: Timestamp, taken_until: Timestamp, limit: usize) -> Vec<Callback> {
        let mut due: Vec<&mut PendingCallback> =
            self.callbacks.values_mut().filter(|pending| pending.due_at <= now).collect();
        due.sort_by_key(|pending| (pending.due_at, pending.callback.id));
        due.truncate(limit);
        let take = |pending: &mut PendingCallback| {
            pending.due_at = taken_until;
            pending.callback.clone()
        };
        due.into_iter().map(take).collect()
    }

    /// Records the end of one try. A try is counted here: one that its sender did not live to report is repeated as the same.
    pub fn settle_callback(&mut self, id: i64, result: CallbackResult) {
        match result {
            CallbackResult::Over => {
                self.callbacks.remove(&id);
            }
            CallbackResult::Again { due_at } => {
                self.callbacks.entry(id).and_modify(|pending| {
                    pending.callback.tries += 1;
                    pending.due_at = due_at;
                });
            }
        }
    }

    pub(super) fn write_callback(&mut self, ended: &Job, url: String) {
        let Some(completed_at) = ended.completed_at else { return };
        self.add_callback(Callback {
            id: 0,
            job_id: ended.id,
            url,
            state: ended.state,
            attempt: ended.attempt,
            completed_at,
            result: ended.result.clone(),
            error: ended.error.clone(),
            tries: 0,
            document: None,
        });
    }

    /// Due at the time it tells of; it gets its number here.
    pub(super) fn add_callback(&mut self, callback: Callback) {
        self.callbacks_written += 1;
        let (id, due_at) = (self.callbacks_written, callback.completed_at);
        self.callbacks.insert(id, PendingCallback { callback: Callback { id, ..callback }, due_at });
    }
}
