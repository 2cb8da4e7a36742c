//! Outcomes that are still to be told to somebody, and what is told of runs.

use std::collections::BTreeMap;

use tickwheel_core::callback::Receiver;
use tickwheel_core::ports::{Callback, CallbackResult, Page, TakeCallbacks};
use tickwheel_core::{Job, SessionId, Timestamp};

use super::{Model, PendingCallback};

impl Model {
    /// Receivers for whom a callback is due that nobody has taken, in order, from the one behind `after`.
    pub fn due_receivers(
        &self,
        after: Option<&Receiver>,
        now: Timestamp,
        limit: usize,
    ) -> Page<Receiver, Receiver> {
        let free = self.callbacks.values().filter(|pending| pending.session.is_none());
        let mut first_due: BTreeMap<Receiver, Timestamp> = BTreeMap::new();
        for pending in free {
            let due_at = first_due.entry(pending.receiver()).or_insert(pending.due_at);
            *due_at = pending.due_at.min(*due_at);
        }
        let waiting =
            first_due.into_iter().filter(|(receiver, _)| after.is_none_or(|after| receiver > after));
        let looked_at: Vec<(Receiver, Timestamp)> = waiting.take(limit).collect();
        let next =
            looked_at.last().filter(|_| looked_at.len() == limit).map(|(receiver, _)| receiver.clone());
        let due = looked_at.into_iter().filter(|(_, due_at)| *due_at <= now);
        Page { items: due.map(|(receiver, _)| receiver).collect(), next }
    }

    /// Callbacks that are due, for each receiver the longest due first.
    pub fn take_callbacks(&mut self, take: &TakeCallbacks) -> Vec<Callback> {
        if !self.sessions.contains_key(&take.session) {
            return Vec::new();
        }
        let mut taken = Vec::new();
        for (receiver, room) in &take.rooms {
            let mut due: Vec<&mut PendingCallback> = self
                .callbacks
                .values_mut()
                .filter(|pending| {
                    pending.session.is_none() && pending.due_at <= take.now && pending.receiver() == *receiver
                })
                .collect();
            due.sort_by_key(|pending| (pending.due_at, pending.callback.id));
            for pending in due.into_iter().take(*room) {
                pending.session = Some(take.session);
                taken.push(pending.callback.clone());
            }
        }
        taken
    }

    /// Records the end of one try. A try is counted here: one that its sender did not live to report is repeated as the same.
    pub fn settle_callback(&mut self, session: SessionId, id: i64, result: CallbackResult) {
        match result {
            CallbackResult::Over => {
                self.callbacks.remove(&id);
            }
            CallbackResult::Again { due_at } => {
                let pending = self.callbacks.get_mut(&id);
                if let Some(pending) = pending.filter(|pending| pending.session == Some(session)) {
                    pending.callback.tries += 1;
                    pending.due_at = due_at;
                    pending.session = None;
                }
            }
        }
    }

    /// Gives back callbacks that nobody is sending: those of ended sessions, and those of `own` that are not `kept`.
    pub fn give_back_callbacks(&mut self, own: SessionId, kept: &[i64]) -> usize {
        let sessions = &self.sessions;
        let is_left = |pending: &&mut PendingCallback| {
            let by = pending.session.filter(|session| *session == own || !sessions.contains_key(session));
            by.is_some() && !kept.contains(&pending.callback.id)
        };
        let left = self.callbacks.values_mut().filter(is_left);
        left.map(|pending| pending.session = None).count()
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
        self.callbacks
            .insert(id, PendingCallback { callback: Callback { id, ..callback }, due_at, session: None });
    }
}

impl PendingCallback {
    fn receiver(&self) -> Receiver {
        Receiver::of(&self.callback.url)
    }
}
