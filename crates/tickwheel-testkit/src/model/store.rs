//! The model behind the port, with faults on demand.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tickwheel_core::callback::Receiver;
use tickwheel_core::change::Change;
use tickwheel_core::matching::Route;
use tickwheel_core::ports::{
    Callback, CallbackRecord, CallbackStore, CallbackTry, Changed, Claim, ControlStore, Controls, Creation,
    DeadLetter, DeadLetterCursor, DeadLetterQuery, DueCount, DueJob, FindAbandoned, HeldAttempt, JobQuery,
    JobStore, LoadDue, NewJob, Page, Projection, QueryStore, Queue, RoutesLookedAt, Session, SessionStore,
    Settled, SettledBatch, StoreError, StoreResult, TakeCallbacks, UnknownParent, WorkerRenewal, WorkerStore,
};
use tickwheel_core::settle::Settlement;
use tickwheel_core::worker::{NewWorker, WorkerSession};
use tickwheel_core::{AttemptRecord, Job, JobId, RouteId, SessionId, TargetKind, Timestamp};
use tokio::sync::watch;

use super::Model;
use super::faults::{Fault, Faults, Verb};

/// A [`Model`] that is shared by all clones of this handle and speaks the port's language.
#[derive(Clone, Debug, Default)]
pub struct ModelStore {
    shared: Arc<Mutex<Shared>>,
    /// Grows whenever what stands still may go on.
    release: Arc<watch::Sender<u64>>,
}

#[derive(Debug, Default)]
struct Shared {
    model: Model,
    faults: Faults,
}

impl ModelStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the next call of this verb that has no fault yet go wrong.
    pub fn fail(&self, verb: Verb, fault: Fault) {
        self.lock().faults.inject(verb, fault);
    }

    /// Lets the next write that has no fault yet go wrong, whichever it is. Reads never do.
    pub fn fail_next(&self, fault: Fault) {
        self.lock().faults.inject_for_any_write(fault);
    }

    /// From now on the verb works, whatever was to go wrong with it.
    pub fn forgive(&self, verb: Verb) {
        self.lock().faults.forgive(verb);
    }

    /// How many faults of this verb were not met yet.
    pub fn faults_left(&self, verb: Verb) -> usize {
        self.lock().faults.left(verb)
    }

    /// Whether a call of this verb stands still.
    pub fn is_stalled(&self, verb: Verb) -> bool {
        self.lock().faults.stalled.contains(&verb)
    }

    /// Late writes take effect, in the order in which they were sent, and what stands still goes on. Says how many
    /// writes were late.
    pub fn release(&self) -> usize {
        let mut shared = self.lock();
        let late = std::mem::take(&mut shared.faults.late);
        let count = late.len();
        late.into_iter().for_each(|write| write(&mut shared.model));
        shared.faults.stalled.clear();
        drop(shared);
        self.release.send_modify(|times| *times += 1);
        count
    }

    /// Looks at the model, or changes it behind the port's back.
    pub fn with_model<T>(&self, look: impl FnOnce(&mut Model) -> T) -> T {
        look(&mut self.lock().model)
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // A test that panicked while holding the lock has failed anyway; the others may go on.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn read<T>(&self, verb: Verb, look: impl FnOnce(&Model) -> T + Send) -> StoreResult<T> {
        let fault = self.lock().faults.of_read(verb);
        match fault {
            None => {}
            Some(Fault::Stalled | Fault::SlowReply) => self.stand_still(verb).await,
            Some(Fault::Aborted) => return Err(StoreError::Aborted(format!("{verb:?} was to fail"))),
            Some(Fault::LostReply | Fault::Late) => return Err(unknown(verb)),
        }
        Ok(look(&self.lock().model))
    }

    pub(super) async fn write<T>(
        &self,
        verb: Verb,
        deed: impl FnOnce(&mut Model) -> T + Send + 'static,
    ) -> StoreResult<T>
    where
        T: Send,
    {
        self.try_write(verb, |model| Ok(deed(model))).await
    }

    pub(super) async fn try_write<T>(
        &self,
        verb: Verb,
        deed: impl FnOnce(&mut Model) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<T>
    where
        T: Send,
    {
        let fault = self.lock().faults.of_write(verb);
        match fault {
            None => deed(&mut self.lock().model),
            Some(Fault::Stalled) => {
                self.stand_still(verb).await;
                deed(&mut self.lock().model)
            }
            Some(Fault::SlowReply) => {
                let answer = deed(&mut self.lock().model);
                self.stand_still(verb).await;
                answer
            }
            Some(Fault::Aborted) => Err(StoreError::Aborted(format!("{verb:?} was to fail"))),
            Some(Fault::LostReply) => {
                deed(&mut self.lock().model)?;
                Err(unknown(verb))
            }
            Some(Fault::Late) => {
                self.lock().faults.late.push(Box::new(move |model| drop(deed(model))));
                Err(unknown(verb))
            }
        }
    }

    async fn stand_still(&self, verb: Verb) {
        let mut release = self.release.subscribe();
        self.lock().faults.stalled.push(verb);
        let _ = release.changed().await;
    }
}

fn unknown(verb: Verb) -> StoreError {
    StoreError::Unknown(format!("the answer to {verb:?} was to be lost"))
}

#[async_trait]
impl JobStore for ModelStore {
    async fn submit_jobs(&self, jobs: Vec<NewJob>) -> StoreResult<Vec<Creation<Job, UnknownParent>>> {
        self.try_write(Verb::SubmitJobs, move |model| model.submit_jobs(jobs)).await
    }

    async fn load_due(&self, load: LoadDue, kinds: &[TargetKind]) -> StoreResult<Vec<DueJob>> {
        self.read(Verb::LoadDue, |model| model.load_due(&load, kinds)).await
    }

    async fn claim(&self, claim: Claim) -> StoreResult<Vec<Job>> {
        self.write(Verb::Claim, move |model| model.claim(&claim)).await
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> StoreResult<SettledBatch> {
        self.write(Verb::Settle, move |model| model.settle(&settlements)).await
    }

    async fn await_report(&self, job_id: JobId, attempt: u32) -> StoreResult<Settled> {
        self.write(Verb::AwaitReport, move |model| model.await_report(job_id, attempt)).await
    }

    async fn get_job(&self, id: JobId) -> StoreResult<Option<Job>> {
        self.read(Verb::GetJob, |model| model.job(id).cloned()).await
    }

    async fn get_jobs(&self, ids: Vec<JobId>) -> StoreResult<Vec<Job>> {
        self.read(Verb::GetJobs, |model| model.get_jobs(&ids)).await
    }

    async fn ended_among(&self, ids: Vec<JobId>) -> StoreResult<Vec<JobId>> {
        self.read(Verb::EndedAmong, |model| model.ended_among(ids)).await
    }

    async fn change_job(&self, id: JobId, change: Change, now: Timestamp) -> StoreResult<Changed> {
        self.write(Verb::ChangeJob, move |model| model.change_job(id, &change, now)).await
    }

    async fn attempts(&self, id: JobId) -> StoreResult<Option<Vec<AttemptRecord>>> {
        self.read(Verb::Attempts, |model| model.attempts(id)).await
    }

    async fn discard_dead_letter(&self, id: JobId) -> StoreResult<bool> {
        self.write(Verb::DiscardDeadLetter, move |model| model.discard_dead_letter(id)).await
    }
}

#[async_trait]
impl SessionStore for ModelStore {
    async fn open_session(&self, session: Session) -> StoreResult<()> {
        self.try_write(Verb::OpenSession, move |model| model.open_session(session)).await
    }

    async fn renew_session(&self, id: SessionId, expires_at: Timestamp) -> StoreResult<bool> {
        self.write(Verb::RenewSession, move |model| model.renew_session(id, expires_at)).await
    }

    async fn end_session(&self, id: SessionId) -> StoreResult<()> {
        self.write(Verb::EndSession, move |model| model.end_session(id)).await
    }

    async fn expire_sessions(&self, own: SessionId, now: Timestamp) -> StoreResult<Vec<SessionId>> {
        self.write(Verb::ExpireSessions, move |model| model.expire_sessions(own, now)).await
    }

    async fn find_abandoned(&self, find: FindAbandoned) -> StoreResult<Vec<Job>> {
        self.read(Verb::FindAbandoned, |model| model.find_abandoned(find)).await
    }
}

#[async_trait]
impl WorkerStore for ModelStore {
    async fn open_worker(&self, worker: NewWorker, now: Timestamp) -> StoreResult<WorkerSession> {
        self.write(Verb::OpenWorker, move |model| model.open_worker(worker, now)).await
    }

    async fn renew_worker(&self, id: SessionId, now: Timestamp) -> StoreResult<Option<WorkerRenewal>> {
        self.write(Verb::RenewWorker, move |model| model.renew_worker(id, now)).await
    }

    async fn get_worker(&self, id: SessionId) -> StoreResult<Option<WorkerSession>> {
        self.read(Verb::GetWorker, |model| model.get_worker(id)).await
    }

    async fn list_workers(&self, after: Option<SessionId>, limit: usize) -> StoreResult<Vec<WorkerSession>> {
        self.read(Verb::ListWorkers, |model| model.list_workers(after, limit)).await
    }

    async fn set_worker_draining(&self, id: SessionId, draining: bool) -> StoreResult<bool> {
        self.write(Verb::SetWorkerDraining, move |model| model.set_worker_draining(id, draining)).await
    }

    async fn end_worker(&self, id: SessionId) -> StoreResult<bool> {
        self.write(Verb::EndWorker, move |model| model.end_worker(id)).await
    }

    async fn extend_workers(&self, now: Timestamp) -> StoreResult<()> {
        self.write(Verb::ExtendWorkers, move |model| model.extend_workers(now)).await
    }

    async fn held_by(&self, id: SessionId, limit: usize) -> StoreResult<Vec<HeldAttempt>> {
        self.read(Verb::HeldBy, |model| model.held_by(id, limit)).await
    }

    async fn claimed_by(&self, node: SessionId, jobs: Vec<JobId>) -> StoreResult<Vec<Job>> {
        self.read(Verb::ClaimedBy, |model| model.claimed_by(node, &jobs)).await
    }

    async fn count_held(&self, ids: Vec<SessionId>) -> StoreResult<Vec<u64>> {
        self.read(Verb::CountHeld, |model| model.count_held(&ids)).await
    }

    async fn count_due_routes(&self, routes: Vec<RouteId>, now: Timestamp, limit: usize) -> StoreResult<u64> {
        self.read(Verb::CountDueRoutes, |model| model.count_due_routes(&routes, now, limit)).await
    }

    async fn routes(&self) -> StoreResult<Vec<Route>> {
        self.read(Verb::Routes, Model::routes).await
    }

    async fn remove_unused_routes(
        &self,
        after: Option<RouteId>,
        limit: usize,
    ) -> StoreResult<RoutesLookedAt> {
        self.write(Verb::RemoveUnusedRoutes, move |model| model.remove_unused_routes(after, limit)).await
    }
}

#[async_trait]
impl QueryStore for ModelStore {
    async fn list_jobs(&self, query: JobQuery) -> StoreResult<Page<Job, JobId>> {
        self.read(Verb::ListJobs, |model| model.list_jobs(&query)).await
    }

    async fn list_dead_letters(
        &self,
        query: DeadLetterQuery,
    ) -> StoreResult<Page<DeadLetter, DeadLetterCursor>> {
        self.read(Verb::ListDeadLetters, |model| model.list_dead_letters(&query)).await
    }

    async fn get_dead_letter(&self, id: JobId) -> StoreResult<Option<DeadLetter>> {
        self.read(Verb::GetDeadLetter, |model| model.dead_letter(id)).await
    }

    async fn count_dead_letters(&self) -> StoreResult<u64> {
        self.read(Verb::CountDeadLetters, Model::count_dead_letters).await
    }

    async fn count_dead_letters_like(&self, query: DeadLetterQuery) -> StoreResult<u64> {
        let all = DeadLetterQuery { limit: usize::MAX, projection: Projection::default(), ..query };
        self.read(Verb::CountDeadLettersLike, |model| model.list_dead_letters(&all).items.len() as u64).await
    }
}

#[async_trait]
impl CallbackStore for ModelStore {
    async fn due_receivers(
        &self,
        after: Option<Receiver>,
        now: Timestamp,
        limit: usize,
    ) -> StoreResult<Page<Receiver, Receiver>> {
        self.read(Verb::DueReceivers, |model| model.due_receivers(after.as_ref(), now, limit)).await
    }

    async fn take_callbacks(&self, take: TakeCallbacks) -> StoreResult<Vec<Callback>> {
        self.write(Verb::TakeCallbacks, move |model| model.take_callbacks(&take)).await
    }

    async fn settle_callback(&self, session: SessionId, id: i64, tried: CallbackTry) -> StoreResult<()> {
        self.write(Verb::SettleCallback, move |model| model.settle_callback(session, id, tried)).await
    }

    async fn write_callback(&self, callback: Callback) -> StoreResult<i64> {
        self.write(Verb::WriteCallback, move |model| model.add_callback(Callback { tries: 0, ..callback }))
            .await
    }

    async fn callbacks_of(&self, job: JobId) -> StoreResult<Vec<CallbackRecord>> {
        self.read(Verb::CallbacksOf, |model| model.callbacks_of(job)).await
    }

    async fn return_callbacks(&self, own: SessionId, kept: Vec<i64>) -> StoreResult<usize> {
        self.write(Verb::ReturnCallbacks, move |model| model.return_callbacks(own, &kept)).await
    }
}

#[async_trait]
impl ControlStore for ModelStore {
    async fn list_queues(&self) -> StoreResult<Vec<Queue>> {
        self.read(Verb::ListQueues, Model::list_queues).await
    }

    async fn count_due(
        &self,
        queues: Vec<String>,
        now: Timestamp,
        _limit: usize,
    ) -> StoreResult<Vec<DueCount>> {
        self.read(Verb::CountDue, |model| model.count_due(&queues, now)).await
    }

    async fn set_queue_paused(&self, queue: &str, paused: bool) -> StoreResult<()> {
        let queue = queue.to_owned();
        self.write(Verb::SetQueuePaused, move |model| model.set_queue_paused(&queue, paused)).await
    }

    async fn controls(&self) -> StoreResult<Controls> {
        self.read(Verb::Controls, Model::controls).await
    }

    async fn halted(&self) -> StoreResult<bool> {
        self.read(Verb::Halted, Model::halted).await
    }

    async fn set_halted(&self, halted: bool) -> StoreResult<()> {
        self.write(Verb::SetHalted, move |model| model.set_halted(halted)).await
    }

    async fn installation_secret(&self, candidate: [u8; 32]) -> StoreResult<[u8; 32]> {
        self.write(Verb::InstallationSecret, move |model| model.installation_secret(candidate)).await
    }

    async fn ping(&self) -> StoreResult<()> {
        self.read(Verb::Ping, |_| ()).await
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
        assert!(store.submit_jobs(vec![new]).await.unwrap()[0].as_new().is_some(), "the fault is used up");
    }

    #[tokio::test]
    async fn a_fault_meets_the_verb_it_is_meant_for() {
        let store = ModelStore::new();
        store.fail(Verb::SetHalted, Fault::Aborted);
        store.set_queue_paused("default", true).await.unwrap();
        assert_eq!(store.faults_left(Verb::SetHalted), 1);
        assert!(store.set_halted(true).await.is_err());
        assert_eq!(store.faults_left(Verb::SetHalted), 0);
    }

    #[tokio::test]
    async fn a_late_write_takes_effect_when_it_is_released() {
        let store = ModelStore::new();
        store.fail(Verb::SetHalted, Fault::Late);
        assert!(!store.set_halted(true).await.unwrap_err().is_certainly_aborted());
        assert!(!store.halted().await.unwrap(), "not yet");
        assert_eq!(store.release(), 1);
        assert!(store.halted().await.unwrap());
    }

    #[tokio::test]
    async fn a_call_that_stands_still_goes_on_when_it_is_released() {
        let store = ModelStore::new();
        store.fail(Verb::SetHalted, Fault::Stalled);
        let call = store.set_halted(true);
        let release = async {
            assert!(store.is_stalled(Verb::SetHalted) && !store.halted().await.unwrap());
            store.release();
        };
        let (answer, ()) = tokio::join!(call, release);
        answer.unwrap();
        assert!(store.halted().await.unwrap());
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
