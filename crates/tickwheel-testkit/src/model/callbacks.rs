//! Outcomes that are still to be told to somebody, and what is told of runs.

use std::collections::BTreeMap;

use tickwheel_core::callback::{Receiver, TRIES_KEPT_MAX};
use tickwheel_core::ports::{
    Callback, CallbackRecord, CallbackResult, CallbackSubject, CallbackTry, Page, TakeCallbacks,
    TriedCallback, TryOutcome,
};
use tickwheel_core::{Job, JobId, SessionId, Timestamp};
use uuid::Uuid;

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

    /// Records the end of one try. A try is counted here: one that its sender did not live to report is repeated as the
    /// same.
    pub fn settle_callback(&mut self, session: SessionId, id: i64, tried: CallbackTry) {
        let Some(pending) = self.callbacks.get_mut(&id) else { return };
        match tried.result {
            CallbackResult::Delivered | CallbackResult::GivenUp => {}
            CallbackResult::Again { .. } if pending.session != Some(session) => return,
            CallbackResult::Again { due_at } => (pending.due_at, pending.session) = (due_at, None),
        }
        pending.callback.tries += 1;
        let Callback { ref subject, ref url, state, tries, .. } = pending.callback;
        forget_old_tries(&mut self.callback_records, subject.id());
        let record = self.callback_records.entry((subject.id(), id)).or_insert_with(|| CallbackRecord {
            id,
            url: url.clone(),
            state,
            due_at: None,
            tries: Vec::new(),
        });
        let outcome = tried.result.outcome();
        record.tries.push(TriedCallback { number: tries, at: tried.at, outcome, answer: tried.answer });
        if outcome != TryOutcome::Failed {
            self.callbacks.remove(&id);
        }
    }

    /// The callbacks about a job that there are and were, by their numbers.
    pub fn callbacks_of(&self, job: JobId) -> Vec<CallbackRecord> {
        let of_job = (job.as_uuid(), i64::MIN)..=(job.as_uuid(), i64::MAX);
        let tried = self.callback_records.range(of_job).map(|((_, id), record)| (*id, record.clone()));
        let mut records: BTreeMap<i64, CallbackRecord> = tried.collect();
        for pending in
            self.callbacks.values().filter(|pending| pending.callback.subject == CallbackSubject::Job(job))
        {
            let Callback { id, ref url, state, .. } = pending.callback;
            let empty = || CallbackRecord { id, url: url.clone(), state, due_at: None, tries: Vec::new() };
            records.entry(id).or_insert_with(empty).due_at = Some(pending.due_at);
        }
        records.into_values().collect()
    }

    /// Returns callbacks that nobody is sending: those of ended sessions, and those of `own` that are not `kept`.
    pub fn return_callbacks(&mut self, own: SessionId, kept: &[i64]) -> usize {
        let sessions = &self.sessions;
        let is_left = |pending: &&mut PendingCallback| {
            let by = pending.session.filter(|session| *session == own || !sessions.contains_key(session));
            by.is_some() && !kept.contains(&pending.callback.id)
        };
        let left = self.callbacks.values_mut().filter(is_left);
        left.map(|pending| pending.session = None).count()
    }

    pub(super) fn write_callback(&mut self, ended: &Job, url: &str) {
        if let Some(callback) = Callback::of(ended) {
            debug_assert_eq!(callback.url, url, "a job has one address to tell");
            self.add_callback(callback);
        }
    }

    /// Due at the time it tells of; it gets its number here.
    pub(super) fn add_callback(&mut self, callback: Callback) -> i64 {
        self.callbacks_written += 1;
        let (id, due_at) = (self.callbacks_written, callback.completed_at);
        self.callbacks
            .insert(id, PendingCallback { callback: Callback { id, ..callback }, due_at, session: None });
        id
    }
}

/// Makes room for one more try about a job or a run.
fn forget_old_tries(records: &mut BTreeMap<(Uuid, i64), CallbackRecord>, subject: Uuid) {
    let mut room = TRIES_KEPT_MAX - 1;
    for (_, record) in records.range_mut((subject, i64::MIN)..=(subject, i64::MAX)).rev() {
        let kept = record.tries.len().min(room);
        record.tries.drain(..record.tries.len() - kept);
        room -= kept;
    }
    records.retain(|(of, _), record| *of != subject || !record.tries.is_empty());
}

impl PendingCallback {
    fn receiver(&self) -> Receiver {
        Receiver::of(&self.callback.url)
    }
}
