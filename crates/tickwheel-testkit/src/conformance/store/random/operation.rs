//! One operation as data, and how a store answers it, in a form that can be compared.
//!
//! Where the port promises no order the answers are sorted; a callback is known by its job and its end, because its
//! number is the store's own affair.

use std::collections::BTreeMap;
use std::sync::Arc;

use tickwheel_core::change::Change;
use tickwheel_core::ports::{
    Callback, CallbackResult, CallbackTry, Changed, Claim, Creation, DeadLetter, DeadLetterQuery, DueJob,
    FindAbandoned, JobQuery, LoadDue, NewJob, Queue, Session, Settled, SettledBatch, Store, StoreResult,
    UnknownParent,
};
use tickwheel_core::settle::Settlement;
use tickwheel_core::workflow::TaskPosition;
use tickwheel_core::{AttemptRecord, Job, JobId, ScheduleId, SessionId, TargetKind, Timestamp};
use uuid::Uuid;

use super::super::bench::{Bench, answered};
use super::super::dead_letters;
use super::schedule_operation::{ScheduleAnswer, ScheduleOperation};
use super::workflow_operation::{WorkflowAnswer, WorkflowOperation};
use crate::conformance::schedules::bench::ScheduleBench;
use crate::conformance::workflows::bench::RunBench;

/// A verb of the port with everything it needs.
#[derive(Clone, Debug)]
pub enum Operation {
    Submit(Vec<NewJob>),
    LoadDue(LoadDue, Vec<TargetKind>),
    Claim(Claim),
    Settle(Vec<Settlement>),
    AwaitReport(JobId, u32),
    OpenSession(Session),
    RenewSession(SessionId, Timestamp),
    EndSession(SessionId),
    ExpireSessions {
        own: SessionId,
        now: Timestamp,
    },
    FindAbandoned(FindAbandoned),
    Change(JobId, Change, Timestamp),
    List(JobQuery),
    ListDeadLetters(DeadLetterQuery),
    DiscardDeadLetter(JobId),
    TakeCallbacks {
        session: SessionId,
        now: Timestamp,
    },
    SettleCallback(SessionId, CallbackKey, CallbackResult),
    ReturnCallbacks {
        own: SessionId,
        kept: Vec<CallbackKey>,
    },
    SetQueuePaused(String, bool),
    SetHalted(bool),
    ReadControls,
    Schedule(ScheduleOperation),
    Workflow(WorkflowOperation),
    /// The jobs and their attempts.
    Inspect(Vec<JobId>),
}

/// A callback's job and its end: no job ends twice at the same moment.
pub type CallbackKey = (Uuid, Timestamp);

/// What a store said.
#[derive(Debug, PartialEq)]
pub enum Answer {
    Done,
    Yes(bool),
    Count(usize),
    Submitted(Vec<Creation<Job, UnknownParent>>),
    Due(Vec<DueJob>),
    Jobs(Vec<Job>),
    Settled(SettledBatch),
    Awaited(Settled),
    Changed(Changed),
    DeadLetters(Vec<DeadLetter>),
    Callbacks(Vec<Callback>),
    Controls { queues: Vec<Queue>, halted: bool, dead_letters: u64 },
    Schedule(ScheduleAnswer),
    Workflow(WorkflowAnswer),
    Inspected(Vec<(Job, Option<Vec<AttemptRecord>>)>),
}

impl Operation {
    /// The jobs it may have changed.
    pub fn touched_jobs(&self) -> Vec<JobId> {
        match self {
            Self::Submit(jobs) => jobs.iter().map(|new| new.job.id).collect(),
            Self::Claim(claim) => claim.jobs.clone(),
            Self::Settle(settlements) => {
                let children =
                    settlements.iter().filter_map(Settlement::position).flat_map(TaskPosition::child_ids);
                settlements.iter().map(|settlement| settlement.job_id).chain(children).collect()
            }
            Self::AwaitReport(id, _) | Self::Change(id, ..) | Self::DiscardDeadLetter(id) => vec![*id],
            Self::Schedule(operation) => operation.touched_jobs(),
            Self::Workflow(operation) => operation.touched_jobs(),
            _ => Vec::new(),
        }
    }

    /// The schedules it may have changed.
    pub fn touched_schedules(&self) -> Vec<ScheduleId> {
        match self {
            Self::Schedule(operation) => operation.touched_schedules(),
            _ => Vec::new(),
        }
    }
}

/// One of the two stores, and its numbers for the callbacks.
pub struct Side {
    bench: Bench,
    schedules: ScheduleBench,
    runs: RunBench,
    callback_ids: BTreeMap<CallbackKey, i64>,
}

impl Side {
    pub fn new(store: Arc<dyn Store>) -> Self {
        let (bench, schedules) = (Bench::new(store.clone()), ScheduleBench::new(store.clone()));
        Self { bench, schedules, runs: RunBench::new(store), callback_ids: BTreeMap::new() }
    }

    pub async fn apply(&mut self, operation: Operation) -> Answer {
        use Operation as O;
        let store = self.bench.store.clone();
        match operation {
            O::Submit(jobs) => Answer::Submitted(answered(store.submit_jobs(jobs).await)),
            O::LoadDue(load, kinds) => Answer::Due(answered(store.load_due(load, &kinds).await)),
            O::Claim(claim) => Answer::Jobs(by_id(answered(store.claim(claim).await))),
            O::Settle(settlements) => {
                let mut batch = answered(store.settle(settlements).await);
                batch.released.sort_by_key(|job| job.due.id);
                Answer::Settled(batch)
            }
            O::AwaitReport(id, attempt) => Answer::Awaited(answered(store.await_report(id, attempt).await)),
            O::OpenSession(session) => done(store.open_session(session).await),
            O::RenewSession(id, until) => Answer::Yes(answered(store.renew_session(id, until).await)),
            O::EndSession(id) => done(store.end_session(id).await),
            O::ExpireSessions { own, now } => {
                Answer::Count(answered(store.expire_sessions(own, now).await).len())
            }
            O::FindAbandoned(find) => Answer::Jobs(by_id(answered(store.find_abandoned(find).await))),
            O::Change(id, change, now) => Answer::Changed(answered(store.change_job(id, change, now).await)),
            O::List(query) => Answer::Jobs(self.bench.list(query).await),
            O::ListDeadLetters(query) => Answer::DeadLetters(dead_letters::list(&self.bench, query).await),
            O::DiscardDeadLetter(id) => Answer::Yes(answered(store.discard_dead_letter(id).await)),
            O::TakeCallbacks { session, now } => {
                let taken = self.bench.take_callbacks_for(session, now).await;
                Answer::Callbacks(self.without_numbers(taken))
            }
            O::SettleCallback(session, key, result) => {
                let id = self.callback_id(key);
                let tried = CallbackTry { at: Timestamp::EPOCH, answer: String::new(), result };
                done(store.settle_callback(session, id, tried).await)
            }
            O::ReturnCallbacks { own, kept } => {
                let kept = kept.into_iter().map(|key| self.callback_id(key)).collect();
                Answer::Count(answered(store.return_callbacks(own, kept).await))
            }
            O::SetQueuePaused(queue, paused) => done(store.set_queue_paused(&queue, paused).await),
            O::SetHalted(halted) => done(store.set_halted(halted).await),
            O::ReadControls => Answer::Controls {
                queues: answered(store.list_queues().await),
                halted: answered(store.halted().await),
                dead_letters: answered(store.count_dead_letters().await),
            },
            O::Schedule(operation) => Answer::Schedule(operation.apply_to(&self.schedules).await),
            O::Workflow(operation) => Answer::Workflow(operation.apply_to(&self.runs).await),
            O::Inspect(ids) => Answer::Inspected(self.inspect(ids).await),
        }
    }

    async fn inspect(&self, ids: Vec<JobId>) -> Vec<(Job, Option<Vec<AttemptRecord>>)> {
        let jobs = by_id(answered(self.bench.store.get_jobs(ids).await));
        let mut inspected = Vec::new();
        for job in jobs {
            let attempts = answered(self.bench.store.attempts(job.id).await);
            inspected.push((job, attempts));
        }
        inspected
    }

    fn callback_id(&self, key: CallbackKey) -> i64 {
        self.callback_ids.get(&key).copied().expect("only what was taken has a number")
    }

    fn without_numbers(&mut self, mut taken: Vec<Callback>) -> Vec<Callback> {
        for callback in &mut taken {
            self.callback_ids.insert((callback.subject.id(), callback.completed_at), callback.id);
            callback.id = 0;
        }
        taken.sort_by_key(|callback| (callback.subject.id(), callback.completed_at));
        taken
    }
}

fn by_id(mut jobs: Vec<Job>) -> Vec<Job> {
    jobs.sort_by_key(|job| job.id);
    jobs
}

fn done(result: StoreResult<()>) -> Answer {
    answered(result);
    Answer::Done
}
