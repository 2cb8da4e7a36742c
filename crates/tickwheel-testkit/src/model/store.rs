//! The model behind the port, with faults on demand.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tickwheel_core::callback::Receiver;
use tickwheel_core::change::Change;
use tickwheel_core::ports::{
    Callback, CallbackResult, Changed, Claim, Controls, DeadLetter, DeadLetterCursor, DeadLetterQuery,
    DueJob, Extent, FindAbandoned, JobQuery, LoadDue, NewJob, Page, Queue, Session, Settled, SettledBatch,
    StartTasks, Store, StoreError, StoreResult, Submitted, TakeCallbacks,
};
use tickwheel_core::settle::Settlement;
use tickwheel_core::{AttemptRecord, Job, JobId, SessionId, Timestamp};

use super::Model;

/// How a write goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is written, and the caller is told so.
    Aborted,
    /// It is written, but the caller never hears of it.
    LostReply,
}

/// A [`Model`] that is shared by all clones of this handle and speaks the port's language.
#[derive(Clone, Debug, Default)]
pub struct ModelStore {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    model: Model,
    faults: VecDeque<Fault>,
    /// For those who fire schedules alone.
    firing_faults: VecDeque<Fault>,
}

impl ModelStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the next write that has no fault yet go wrong. Reads never do.
    pub fn fail_next(&self, fault: Fault) {
        self.lock().faults.push_back(fault);
    }

    /// Lets the next firing of schedules that has no fault yet go wrong, and no other write.
    pub fn fail_next_firing(&self, fault: Fault) {
        self.lock().firing_faults.push_back(fault);
    }

    /// How many faults of firings were not met yet.
    pub fn firing_faults_left(&self) -> usize {
        self.lock().firing_faults.len()
    }

    /// Looks at the model, or changes it behind the port's back.
    pub fn with_model<T>(&self, look: impl FnOnce(&mut Model) -> T) -> T {
        look(&mut self.lock().model)
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // A test that panicked while holding the lock has failed anyway; the others may go on.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn read<T>(&self, verb: impl FnOnce(&Model) -> T) -> StoreResult<T> {
        Ok(verb(&self.lock().model))
    }

    pub(super) fn write<T>(&self, verb: impl FnOnce(&mut Model) -> T) -> StoreResult<T> {
        self.try_write(|model| Ok(verb(model)))
    }

    pub(super) fn try_write<T>(&self, verb: impl FnOnce(&mut Model) -> StoreResult<T>) -> StoreResult<T> {
        let mut shared = self.lock();
        let fault = shared.faults.pop_front();
        shared.do_unless(fault, verb)
    }

    /// A write of those who fire schedules.
    pub(super) fn fire<T>(&self, verb: impl FnOnce(&mut Model) -> T) -> StoreResult<T> {
        let mut shared = self.lock();
        let fault = shared.firing_faults.pop_front().or_else(|| shared.faults.pop_front());
        shared.do_unless(fault, |model| Ok(verb(model)))
    }
}

impl Shared {
    fn do_unless<T>(
        &mut self,
        fault: Option<Fault>,
        verb: impl FnOnce(&mut Model) -> StoreResult<T>,
    ) -> StoreResult<T> {
        match fault {
            None => verb(&mut self.model),
            Some(Fault::Aborted) => Err(StoreError::Aborted("a fault was ordered".into())),
            Some(Fault::LostReply) => {
                verb(&mut self.model)?;
                Err(StoreError::Unknown("a lost reply was ordered".into()))
            }
        }
    }
}

#[async_trait]
impl Store for ModelStore {
    async fn submit_jobs(&self, jobs: Vec<NewJob>) -> StoreResult<Vec<Submitted>> {
        self.try_write(|model| model.submit_jobs(jobs))
    }

    async fn load_due(&self, load: LoadDue) -> StoreResult<Vec<DueJob>> {
        self.read(|model| model.load_due(&load))
    }

    async fn claim(&self, claim: Claim) -> StoreResult<Vec<Job>> {
        self.write(|model| model.claim(&claim))
    }

    async fn settle_and_start(
        &self,
        settlements: Vec<Settlement>,
        start: Option<StartTasks>,
    ) -> StoreResult<SettledBatch> {
        self.write(|model| model.settle_and_start(&settlements, start.as_ref()))
    }

    async fn await_report(&self, job_id: JobId, attempt: u32) -> StoreResult<Settled> {
        self.write(|model| model.await_report(job_id, attempt))
    }

    async fn open_session(&self, session: Session) -> StoreResult<()> {
        self.try_write(|model| model.open_session(session))
    }

    async fn renew_session(&self, id: SessionId, expires_at: Timestamp) -> StoreResult<bool> {
        self.write(|model| model.renew_session(id, expires_at))
    }

    async fn end_session(&self, id: SessionId) -> StoreResult<()> {
        self.write(|model| model.end_session(id))
    }

    async fn expire_sessions(&self, own: SessionId, now: Timestamp) -> StoreResult<usize> {
        self.write(|model| model.expire_sessions(own, now))
    }

    async fn find_abandoned(&self, find: FindAbandoned) -> StoreResult<Vec<Job>> {
        self.read(|model| model.find_abandoned(find))
    }

    async fn get_job(&self, id: JobId) -> StoreResult<Option<Job>> {
        self.read(|model| model.job(id).cloned())
    }

    async fn get_jobs(&self, ids: Vec<JobId>) -> StoreResult<Vec<Job>> {
        self.read(|model| model.get_jobs(&ids))
    }

    async fn ended_among(&self, ids: Vec<JobId>) -> StoreResult<Vec<JobId>> {
        self.read(|model| model.ended_among(ids))
    }

    async fn change_job(&self, id: JobId, change: Change, now: Timestamp) -> StoreResult<Changed> {
        self.write(|model| model.change_job(id, &change, now))
    }

    async fn attempts(&self, id: JobId) -> StoreResult<Option<Vec<AttemptRecord>>> {
        self.read(|model| model.attempts(id))
    }

    async fn list_jobs(&self, query: JobQuery) -> StoreResult<Page<Job, JobId>> {
        self.read(|model| model.list_jobs(&query))
    }

    async fn list_dead_letters(
        &self,
        query: DeadLetterQuery,
    ) -> StoreResult<Page<DeadLetter, DeadLetterCursor>> {
        self.read(|model| model.list_dead_letters(&query))
    }

    async fn get_dead_letter(&self, id: JobId) -> StoreResult<Option<DeadLetter>> {
        self.read(|model| model.dead_letter(id))
    }

    async fn discard_dead_letter(&self, id: JobId) -> StoreResult<bool> {
        self.write(|model| model.discard_dead_letter(id))
    }

    async fn count_dead_letters(&self) -> StoreResult<u64> {
        self.read(Model::count_dead_letters)
    }

    async fn count_dead_letters_like(&self, query: DeadLetterQuery) -> StoreResult<u64> {
        let all = DeadLetterQuery { limit: usize::MAX, extent: Extent::default(), ..query };
        self.read(|model| model.list_dead_letters(&all).items.len() as u64)
    }

    async fn due_receivers(
        &self,
        after: Option<Receiver>,
        now: Timestamp,
        limit: usize,
    ) -> StoreResult<Page<Receiver, Receiver>> {
        self.read(|model| model.due_receivers(after.as_ref(), now, limit))
    }

    async fn take_callbacks(&self, take: TakeCallbacks) -> StoreResult<Vec<Callback>> {
        self.write(|model| model.take_callbacks(&take))
    }

    async fn settle_callback(&self, session: SessionId, id: i64, result: CallbackResult) -> StoreResult<()> {
        self.write(|model| model.settle_callback(session, id, result))
    }

    async fn give_back_callbacks(&self, own: SessionId, kept: Vec<i64>) -> StoreResult<usize> {
        self.write(|model| model.give_back_callbacks(own, &kept))
    }

    async fn list_queues(&self) -> StoreResult<Vec<Queue>> {
        self.read(Model::list_queues)
    }

    async fn count_due(&self, queue: &str, now: Timestamp) -> StoreResult<u64> {
        self.read(|model| model.count_due(queue, now))
    }

    async fn set_queue_paused(&self, queue: &str, paused: bool) -> StoreResult<()> {
        self.write(|model| model.set_queue_paused(queue, paused))
    }

    async fn controls(&self) -> StoreResult<Controls> {
        self.read(Model::controls)
    }

    async fn halted(&self) -> StoreResult<bool> {
        self.read(Model::halted)
    }

    async fn set_halted(&self, halted: bool) -> StoreResult<()> {
        self.write(|model| model.set_halted(halted))
    }

    async fn installation_secret(&self, candidate: [u8; 32]) -> StoreResult<[u8; 32]> {
        self.write(|model| model.installation_secret(candidate))
    }

    async fn ping(&self) -> StoreResult<()> {
        self.read(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::job;

    #[tokio::test]
    async fn a_write_that_was_aborted_left_no_trace() {
        let store = ModelStore::new();
        store.fail_next(Fault::Aborted);
        let new = job().build_new();
        let error = store.submit_jobs(vec![new.clone()]).await.unwrap_err();
        assert!(error.is_certainly_aborted());
        assert_eq!(store.get_job(new.job.id).await.unwrap(), None);
        assert_eq!(store.submit_jobs(vec![new]).await.unwrap(), [Submitted::Created], "the fault is used up");
    }

    #[tokio::test]
    async fn a_write_whose_reply_was_lost_is_done() {
        let store = ModelStore::new();
        store.fail_next(Fault::LostReply);
        let error = store.clone().set_halted(true).await.unwrap_err();
        assert!(!error.is_certainly_aborted());
        assert!(store.halted().await.unwrap());
    }
}
