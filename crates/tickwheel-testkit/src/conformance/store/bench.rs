//! What the rules share: a store on a bench, with the few moves nearly every rule starts from.
//!
//! Every move expects the store to answer; a rule about refusals calls the port itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tickwheel_core::callback::Receiver;
use tickwheel_core::change::Change;
use tickwheel_core::matching::Class;
use tickwheel_core::ports::{
    Callback, Changed, Claim, DueCursor, DueJob, FindAbandoned, JobQuery, LoadDue, PartitionSet, Settled,
    Store, StoreResult, TakeCallbacks,
};
use tickwheel_core::settle::{Burst, DeadReason, Next, Settlement};
use tickwheel_core::{
    AttemptOutcome, Failure, Job, JobId, JsonText, Priority, SessionId, State, TargetKind, Timestamp,
};

use crate::fixtures::{JobBuilder, at, session};

/// Long after everything a rule does with time.
pub const LATER: Timestamp = at(3_600_000);

/// What a store may mistake for something else.
pub const ODD_TEXT: &str = r#"it's "quoted" \ 'twice'; DROP TABLE jobs; -- %_ ñ 漢字 🕰️"#;

/// A store and the moves.
pub struct Bench {
    pub store: Arc<dyn Store>,
}

impl Bench {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// A fresh session whose lease outlasts the rule.
    pub async fn open_session(&self) -> SessionId {
        self.open_session_until(LATER).await
    }

    pub async fn open_session_until(&self, expires_at: Timestamp) -> SessionId {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let session = session(NUMBER.fetch_add(1, Ordering::Relaxed), expires_at);
        let id = session.id;
        answered(self.store.open_session(session).await);
        id
    }

    /// Submitted, and nothing more.
    pub async fn submit(&self, builder: JobBuilder) -> Job {
        let new = builder.build_new();
        let job = new.job.clone();
        answered(self.store.submit_jobs(vec![new]).await);
        job
    }

    pub async fn submit_all(&self, builders: impl IntoIterator<Item = JobBuilder>) -> Vec<Job> {
        let new: Vec<_> = builders.into_iter().map(JobBuilder::build_new).collect();
        let jobs = new.iter().map(|new| new.job.clone()).collect();
        answered(self.store.submit_jobs(new).await);
        jobs
    }

    pub async fn claim(&self, session: SessionId, jobs: &[JobId], now: Timestamp) -> Vec<Job> {
        answered(
            self.store.claim(Claim { claimed_by: Some(session), session, jobs: jobs.to_vec(), now }).await,
        )
    }

    /// Claims one job under a fresh session when it is due.
    pub async fn start(&self, job: &Job) -> Job {
        let session = self.open_session().await;
        let claimed = self.claim(session, &[job.id], job.due_at).await;
        claimed.into_iter().next().expect("a due job can be claimed")
    }

    /// Submitted and running its first attempt.
    pub async fn running(&self, builder: JobBuilder) -> Job {
        let job = self.submit(builder).await;
        self.start(&job).await
    }

    /// Submitted, run and ended (or scheduled again) by what `end` makes of the running job.
    pub async fn settled(&self, builder: JobBuilder, end: impl FnOnce(&Job) -> Settlement) -> Job {
        let running = self.running(builder).await;
        assert_eq!(self.settle(end(&running)).await, Settled::Applied);
        self.job(running.id).await
    }

    pub async fn settle(&self, settlement: Settlement) -> Settled {
        let answers = answered(self.store.settle(vec![settlement]).await).settled;
        assert_eq!(answers.len(), 1, "one answer a settlement");
        answers[0]
    }

    pub async fn change(&self, id: JobId, change: Change, now: Timestamp) -> Changed {
        answered(self.store.change_job(id, change, now).await)
    }

    /// A change that has to be legal; what it answers has to be what is stored.
    pub async fn changed(&self, id: JobId, change: Change, now: Timestamp) -> Job {
        let Changed::Done(after) = self.change(id, change.clone(), now).await else {
            panic!("{change:?} is legal here");
        };
        assert_eq!(*after, self.job(id).await, "the answer is the job as it is now");
        *after
    }

    pub async fn job(&self, id: JobId) -> Job {
        answered(self.store.get_job(id).await).expect("the job exists")
    }

    pub async fn due(&self, load: LoadDue) -> Vec<DueJob> {
        self.due_for(load, &[TargetKind::Worker, TargetKind::Http]).await
    }

    pub async fn due_for(&self, load: LoadDue, kinds: &[TargetKind]) -> Vec<DueJob> {
        answered(self.store.load_due(load, kinds).await)
    }

    pub async fn due_ids(&self, load: LoadDue) -> Vec<JobId> {
        self.due(load).await.into_iter().map(|due| due.id).collect()
    }

    pub async fn abandoned(&self, now: Timestamp, grace: Duration) -> Vec<JobId> {
        let found = answered(self.store.find_abandoned(FindAbandoned { now, grace, limit: 100 }).await);
        let mut ids: Vec<JobId> = found.into_iter().map(|job| job.id).collect();
        ids.sort();
        ids
    }

    /// The whole list, page by page.
    pub async fn list(&self, query: JobQuery) -> Vec<Job> {
        let mut query = query;
        let mut all = Vec::new();
        // A store may give short pages, but it has to come to an end.
        for _ in 0..1_000 {
            let page = answered(self.store.list_jobs(query.clone()).await);
            assert!(page.items.len() <= query.limit, "a page has at most {} items", query.limit);
            all.extend(page.items);
            match page.next {
                None => return all,
                next => query.after = next,
            }
        }
        panic!("the list does not end: {query:?}");
    }

    pub async fn list_ids(&self, query: JobQuery) -> Vec<JobId> {
        self.list(query).await.into_iter().map(|job| job.id).collect()
    }

    /// Every callback that is due at `now`, taken under a fresh session.
    pub async fn take_callbacks(&self, now: Timestamp) -> Vec<Callback> {
        let session = self.open_session().await;
        self.take_callbacks_for(session, now).await
    }

    /// Every callback that is due at `now`, the longest due of each receiver first.
    pub async fn take_callbacks_for(&self, session: SessionId, now: Timestamp) -> Vec<Callback> {
        let rooms = self.due_receivers(now).await.into_iter().map(|receiver| (receiver, 1_000)).collect();
        answered(self.store.take_callbacks(TakeCallbacks { session, rooms, now }).await)
    }

    /// The whole list, page by page.
    pub async fn due_receivers(&self, now: Timestamp) -> Vec<Receiver> {
        let (mut all, mut after) = (Vec::new(), None);
        for _ in 0..1_000 {
            let page = answered(self.store.due_receivers(after, now, 2).await);
            all.extend(page.items);
            match page.next {
                None => return all,
                next => after = next,
            }
        }
        panic!("the list does not end");
    }
}

/// What the store says, if it says anything.
#[track_caller]
pub fn answered<T>(result: StoreResult<T>) -> T {
    result.unwrap_or_else(|error| panic!("the store refused: {error}"))
}

/// All waiting jobs of normal priority.
pub fn load_all() -> LoadDue {
    LoadDue {
        class: Class::BuiltIn,
        priority: Priority::Normal,
        partitions: PartitionSet::ALL,
        after: DueCursor::START,
        until: LATER,
        limit: 1_000,
    }
}

/// All jobs, a hundred a page.
pub fn list_all() -> JobQuery {
    JobQuery { limit: 100, ..JobQuery::default() }
}

/// The end of the running attempt, five milliseconds after it was claimed and a second after it started.
fn settlement(running: &Job, outcome: AttemptOutcome, error: Option<Failure>, next: Next) -> Settlement {
    let claimed_at = running.started_at.expect("a running job has started");
    let started_at = claimed_at + Duration::from_millis(5);
    Settlement {
        job_id: running.id,
        attempt: running.attempt,
        started_at,
        ended_at: started_at + Duration::from_secs(1),
        outcome,
        error,
        next,
        spec: running.spec.clone(),
    }
}

pub fn broken() -> Failure {
    Failure::new("http_status", "the target answered 500 “Oops”")
}

pub fn completes(running: &Job) -> Settlement {
    let result = Some(JsonText::from_checked(r#"{"sent":true}"#));
    settlement(running, AttemptOutcome::Completed, None, Next::Complete { result })
}

pub fn fails(running: &Job) -> Settlement {
    fails_because(running, DeadReason::RetriesExhausted)
}

pub fn fails_because(running: &Job, reason: DeadReason) -> Settlement {
    settlement(running, AttemptOutcome::Failed, Some(broken()), Next::Fail { reason })
}

pub fn is_cancelled(running: &Job) -> Settlement {
    let error = Failure::new("cancelled", "cancelled while running");
    settlement(running, AttemptOutcome::Cancelled, Some(error), Next::Cancel)
}

/// Fails and is tried again a minute after [`START`](crate::fixtures::START).
pub fn goes_again(running: &Job) -> Settlement {
    goes_again_at(running, at(60_000))
}

pub fn goes_again_at(running: &Job, due_at: Timestamp) -> Settlement {
    let burst = Burst { started_at: Some(at(1_005)), failures: running.burst.failures + 1 };
    let next = Next::Again { due_at, retries: running.retries + 1, lost: running.lost, burst };
    settlement(running, AttemptOutcome::TimedOut, Some(broken()), next)
}

/// Was never sent, and may be taken again then.
pub fn is_given_back(running: &Job, due_at: Timestamp) -> Settlement {
    let error = Failure::new("not_sent", "no file descriptor");
    settlement(running, AttemptOutcome::Released, Some(error), Next::ReturnToQueue { due_at })
}

/// Ids of jobs, sorted: for answers whose order is not promised.
pub fn sorted_ids<'a>(jobs: impl IntoIterator<Item = &'a Job>) -> Vec<JobId> {
    let mut ids: Vec<JobId> = jobs.into_iter().map(|job| job.id).collect();
    ids.sort();
    ids
}

/// Of jobs, those in `state`.
pub fn in_state(jobs: &[Job], state: State) -> usize {
    jobs.iter().filter(|job| job.state() == state).count()
}
