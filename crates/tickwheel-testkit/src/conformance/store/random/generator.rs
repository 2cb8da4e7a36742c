//! Draws the next operation, with an eye on the model so that most of them mean something.

use std::collections::BTreeSet;
use std::time::Duration;

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use tickwheel_core::change::{Change, Edit};
use tickwheel_core::matching::{Class, Route};
use tickwheel_core::ports::{
    CallbackResult, Claim, DeadLetterQuery, DueCursor, FindAbandoned, JobQuery, LoadDue, NewJob,
    PartitionSet, Projection,
};
use tickwheel_core::settle::{Burst, DeadReason, Next, Settlement};
use tickwheel_core::{
    AttemptOutcome, Failure, Job, JobId, JsonText, Partition, Priority, RunId, ScheduleId, SessionId, State,
    Target, TargetKind, Timestamp,
};

use super::operation::{CallbackKey, Operation};
use super::schedule_operation::ScheduleOperation;
use super::workflow_operation::WorkflowOperation;
use crate::fixtures::{START, job_id, job_numbered, session, session_id};
use crate::model::Model;

const JOBS_MAX: u64 = 40;
/// Beside those that are submitted, schedules and workflows make some.
const JOBS_WITH_MADE_MAX: u64 = 200;
pub const QUEUES: [&str; 3] = ["mail", "bills", "default"];
pub const TENANTS: [&str; 2] = ["acme", "zoo"];
const TYPES: [&str; 2] = ["email.send", "invoice.render"];
const TAGS: [&str; 3] = ["red", "green", "blue"];

/// A source of operations that depends on its seed and on the model alone.
pub struct Generator {
    pub(super) rng: Xoshiro256PlusPlus,
    pub(super) now: Timestamp,
    pub(super) jobs: Vec<JobId>,
    pub(super) schedules: Vec<ScheduleId>,
    pub(super) runs: Vec<RunId>,
    sessions: u64,
    taken: Vec<CallbackKey>,
}

impl Generator {
    pub fn new(seed: u64) -> Self {
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self {
            rng,
            now: START,
            jobs: Vec::new(),
            schedules: Vec::new(),
            runs: Vec::new(),
            sessions: 0,
            taken: Vec::new(),
        }
    }

    /// The next operation. Time moves on with each, so that no two things happen at the same moment.
    pub fn next_operation(&mut self, model: &Model) -> Operation {
        self.now = self.now + Duration::from_millis(self.rng.random_range(1..500));
        if self.jobs.is_empty() || (self.is_below(JOBS_MAX) && self.chance(12)) {
            return self.submit(model);
        }
        if self.sessions == 0 || (model.sessions().len() < 3 && self.chance(20)) {
            return self.open_session();
        }
        if self.chance(25) {
            return Operation::Schedule(self.schedule_operation(model));
        }
        if self.chance(25) {
            return Operation::Workflow(self.workflow_operation(model));
        }
        match self.rng.random_range(0..100) {
            0..24 => self.claim(),
            24..46 => self.settle(model),
            46..50 => self.await_report(model),
            50..66 => self.change_job(model),
            66..70 => self.session_operation(),
            70..74 => self.set_queue_paused(model),
            74..76 => Operation::SetHalted(self.chance(30)),
            76..80 => self.take_callbacks(model),
            80..83 => self.settle_callback(),
            83 => self.return_callbacks(),
            84 => Operation::DiscardDeadLetter(self.any_job()),
            _ => self.read(),
        }
    }

    /// Everything there is to see, at the end.
    pub fn final_reads(&self) -> Vec<Operation> {
        vec![
            Operation::Inspect(self.jobs.clone()),
            Operation::List(JobQuery { limit: 7, ..JobQuery::default() }),
            Operation::ListDeadLetters(DeadLetterQuery { limit: 3, ..DeadLetterQuery::default() }),
            Operation::ReadControls,
            Operation::Schedule(ScheduleOperation::Inspect(self.schedules.clone())),
            Operation::Workflow(WorkflowOperation::Inspect(self.runs.clone())),
        ]
    }

    fn submit(&mut self, model: &Model) -> Operation {
        let count = self.rng.random_range(1..5);
        Operation::Submit((0..count).map(|_| self.new_job(model)).collect())
    }

    fn new_job(&mut self, model: &Model) -> NewJob {
        let number = self.jobs.len() as u64 + 1;
        let tenant = self.one_of(TENANTS);
        let mut builder = job_numbered(number)
            .created_at(self.now)
            .due_at(self.around_now())
            .partition(Partition(self.rng.random_range(0..Partition::COUNT)))
            .tenant(tenant)
            .job_type(self.one_of(TYPES))
            .queue(self.one_of(QUEUES))
            .priority(self.one_of(Priority::ALL))
            .timeout(Duration::from_millis(self.rng.random_range(1..20_000)))
            .payload(&format!("{number}"));
        let tags = self.tags();
        builder = builder.with(|job| job.tags = tags);
        if self.chance(40) {
            builder = builder.callback_url(self.one_of(["http://example.com/done", "http://a.example:81/"]));
        }
        if self.chance(30) {
            builder = builder.target(Target::Worker);
        }
        if self.chance(15) {
            builder = builder.state(self.one_of([State::Pending, State::Paused, State::Blocked]));
        }
        if self.chance(40) {
            builder = builder.depends_on(self.parents(model, tenant));
        }
        if self.chance(35) {
            let key = format!("key-{}", self.rng.random_range(0..6));
            builder = builder.idempotency(&key, self.one_of([1, 1, 1, 2]));
        }
        let new = builder.build_new();
        // Also those that turn out to be repeated: then the id is one that does not exist.
        self.jobs.push(new.job.id);
        new
    }

    /// Jobs of the tenant, live and finished, some of them twice; now and then one that it does not have.
    fn parents(&mut self, model: &Model, tenant: &str) -> Vec<JobId> {
        let all = model.live().values().chain(model.finished().values());
        let own: Vec<JobId> = all.filter(|job| &*job.tenant == tenant).map(|job| job.id).collect();
        let mut parents: Vec<JobId> = Vec::new();
        for _ in 0..self.rng.random_range(1..4) {
            if !own.is_empty() {
                parents.push(own[self.rng.random_range(0..own.len())]);
            }
        }
        if self.chance(10) {
            parents.extend(model.live().keys().next());
        }
        if self.chance(5) {
            parents.push(job_id(START, u64::MAX >> 8));
        }
        parents
    }

    fn claim(&mut self) -> Operation {
        let (session, jobs) = (self.any_session(), self.some_jobs(12));
        Operation::Claim(Claim { claimed_by: Some(session), session, jobs, now: self.now })
    }

    fn settle(&mut self, model: &Model) -> Operation {
        let mut jobs: Vec<Job> =
            model.live().values().filter(|job| job.state() == State::Running).cloned().collect();
        jobs.retain(|_| self.chance(50));
        // And one that most often is not running.
        let other = model.job(self.any_job()).cloned();
        jobs.extend(other.filter(|other| jobs.iter().all(|job| job.id != other.id)));
        Operation::Settle(jobs.iter().map(|job| self.settlement(job)).collect())
    }

    fn settlement(&mut self, job: &Job) -> Settlement {
        let next = self.next(job);
        let completes = matches!(next, Next::Complete { .. });
        Settlement {
            job_id: job.id,
            attempt: if self.chance(90) { job.attempt } else { job.attempt.saturating_sub(1) },
            started_at: self.now - Duration::from_millis(self.rng.random_range(0..200)),
            ended_at: self.now,
            outcome: if completes { AttemptOutcome::Completed } else { self.one_of(AttemptOutcome::ALL) },
            error: (!completes && self.chance(90))
                .then(|| Failure::new("broken", format!("at {:?}", self.now))),
            next,
            spec: job.spec.clone(),
        }
    }

    fn next(&mut self, job: &Job) -> Next {
        match self.rng.random_range(0..10) {
            0..3 => Next::Complete { result: self.chance(50).then(|| JsonText::from_checked("[1]")) },
            3..5 => Next::Fail { reason: self.one_of(DeadReason::ALL) },
            5 => Next::Cancel,
            6 => Next::ReturnToQueue { due_at: self.around_now() },
            _ => Next::Again {
                due_at: self.around_now(),
                retries: job.retries + 1,
                lost: job.lost + u32::from(self.chance(20)),
                burst: Burst {
                    started_at: self.chance(50).then_some(self.now),
                    failures: self.rng.random_range(0..5),
                },
            },
        }
    }

    fn await_report(&mut self, model: &Model) -> Operation {
        let running = model.live().values().find(|job| job.state() == State::Running);
        let (id, attempt) = match running {
            Some(job) if self.chance(80) => (job.id, job.attempt),
            _ => (self.any_job(), self.rng.random_range(0..3)),
        };
        Operation::AwaitReport(id, attempt)
    }

    fn change_job(&mut self, model: &Model) -> Operation {
        let (id, change) = (self.any_job(), self.change());
        let is_fan_out = model.job(id).is_some_and(|job| job.spec.target == Target::FanOut);
        let change = match change {
            // In place of its payload it says what its items are.
            Change::Retry { .. } if is_fan_out => Change::Retry { payload: None },
            change => change,
        };
        Operation::Change(id, change, self.now)
    }

    fn change(&mut self) -> Change {
        let payload = self.chance(30).then(|| JsonText::from_checked("{\"changed\":true}"));
        match self.rng.random_range(0..10) {
            0..2 => Change::Cancel,
            2 => Change::Pause,
            3..5 => Change::Resume,
            5 => Change::RunNow,
            6..8 => Change::Retry { payload },
            _ => Change::Edit(Edit {
                execute_at: self.chance(50).then(|| self.around_now()),
                priority: self.chance(30).then(|| self.one_of(Priority::ALL)),
                payload,
                tags: self.chance(50).then(|| self.tags()),
                paused: self.chance(30).then(|| self.chance(50)),
            }),
        }
    }

    fn open_session(&mut self) -> Operation {
        self.sessions += 1;
        Operation::OpenSession(session(self.sessions, self.lease_end()))
    }

    fn session_operation(&mut self) -> Operation {
        let id = self.any_session();
        match self.rng.random_range(0..8) {
            0..5 => Operation::RenewSession(id, self.lease_end()),
            5..7 => Operation::EndSession(id),
            // Long after every lease: an embedded store ends all others at once anyway.
            _ => Operation::ExpireSessions { own: id, now: self.now + Duration::from_secs(3_600) },
        }
    }

    fn set_queue_paused(&mut self, model: &Model) -> Operation {
        let known = model.list_queues();
        let queue = match known.len() {
            0 => self.one_of(QUEUES).to_owned(),
            count => known[self.rng.random_range(0..count)].name.clone(),
        };
        Operation::SetQueuePaused(queue, self.chance(40))
    }

    fn take_callbacks(&mut self, model: &Model) -> Operation {
        let session = self.any_session();
        if model.sessions().contains_key(&session) {
            // All of them are due by now or were taken before, so that both stores have told their numbers.
            self.taken
                .extend(model.callbacks().map(|callback| (callback.subject.id(), callback.completed_at)));
            self.taken.sort();
            self.taken.dedup();
        }
        Operation::TakeCallbacks { session, now: self.now }
    }

    fn return_callbacks(&mut self) -> Operation {
        let own = self.any_session();
        let kept = self.taken.clone().into_iter().filter(|_| self.chance(50)).collect();
        Operation::ReturnCallbacks { own, kept }
    }

    fn settle_callback(&mut self) -> Operation {
        if self.taken.is_empty() {
            return self.read();
        }
        let key = self.taken[self.rng.random_range(0..self.taken.len())];
        let due_at = self.around_now();
        let result = match self.rng.random_range(0..4) {
            0 => CallbackResult::Delivered,
            1 => CallbackResult::GivenUp,
            _ => CallbackResult::Again { due_at },
        };
        Operation::SettleCallback(self.any_session(), key, result)
    }

    fn read(&mut self) -> Operation {
        match self.rng.random_range(0..6) {
            0 => self.load_due(),
            1 => Operation::FindAbandoned(FindAbandoned {
                now: self.now,
                grace: Duration::from_millis(self.rng.random_range(0..5_000)),
                limit: 1_000,
            }),
            2..4 => Operation::List(self.job_query()),
            4 => Operation::ListDeadLetters(DeadLetterQuery {
                job_type: self.chance(30).then(|| self.one_of(TYPES).to_owned()),
                queue: self.chance(30).then(|| self.one_of(QUEUES).to_owned()),
                after: None,
                limit: self.rng.random_range(1..5),
                projection: self.projection(),
            }),
            _ => Operation::ReadControls,
        }
    }

    fn load_due(&mut self) -> Operation {
        let mut partitions = PartitionSet::ALL;
        for partition in 0..Partition::COUNT {
            if self.chance(20) {
                partitions = partitions.without(Partition(partition));
            }
        }
        let mut kinds = vec![TargetKind::Worker, TargetKind::Http];
        kinds.retain(|_| self.chance(80));
        let after = DueCursor { due_at: self.around_now(), id: self.any_job() };
        let route = Route::of_type(self.one_of(QUEUES), self.one_of(TYPES));
        let load = LoadDue {
            class: if self.chance(50) { Class::Worker(route.id) } else { Class::BuiltIn },
            priority: self.one_of(Priority::ALL),
            partitions,
            after: if self.chance(30) { after } else { DueCursor::START },
            until: self.around_now(),
            limit: self.rng.random_range(1..20),
        };
        Operation::LoadDue(load, kinds)
    }

    fn job_query(&mut self) -> JobQuery {
        JobQuery {
            states: self.some_of(40, State::ALL),
            job_type: self.chance(20).then(|| self.one_of(TYPES).to_owned()),
            queue: self.chance(20).then(|| self.one_of(QUEUES).to_owned()),
            tags: self.some_of(30, TAGS).into_iter().map(str::to_owned).collect(),
            priority: self.chance(20).then(|| self.one_of(Priority::ALL)),
            tenant: self.chance(20).then(|| self.one_of(TENANTS).to_owned()),
            schedule_id: self.chance(15).then(|| self.any_schedule()),
            run: self.chance(10).then(|| self.any_run()),
            created_from: self.chance(20).then(|| self.around_now() - Duration::from_secs(20)),
            created_before: self.chance(20).then(|| self.around_now()),
            after: self.chance(20).then(|| self.any_job()),
            limit: self.rng.random_range(1..30),
            projection: self.projection(),
        }
    }

    /// Mostly none, often one, sometimes more.
    pub(super) fn some_of<T: Copy + Ord, const N: usize>(
        &mut self,
        percent: u32,
        all: [T; N],
    ) -> BTreeSet<T> {
        let mut some = BTreeSet::new();
        while self.chance(percent) {
            some.insert(self.one_of(all));
        }
        some
    }

    /// Of everything or less. How much fits into how many bytes is each store's business.
    fn projection(&mut self) -> Projection {
        Projection { payload: self.chance(70), result: self.chance(70), ..Projection::default() }
    }

    fn tags(&mut self) -> Vec<String> {
        let mut tags: Vec<String> = TAGS.map(str::to_owned).to_vec();
        tags.retain(|_| self.chance(30));
        tags
    }

    fn any_job(&mut self) -> JobId {
        match self.chance(3) {
            true => job_id(START, u64::MAX >> 8),
            false => self.jobs[self.rng.random_range(0..self.jobs.len())],
        }
    }

    fn some_jobs(&mut self, count_max: usize) -> Vec<JobId> {
        let mut ids: Vec<JobId> = (0..count_max).map(|_| self.any_job()).collect();
        ids.sort();
        ids.dedup();
        ids
    }

    fn any_session(&mut self) -> SessionId {
        // The latest ones are the most likely to live.
        let age = self.rng.random_range(0..3);
        session_id(self.sessions.saturating_sub(age))
    }

    fn lease_end(&self) -> Timestamp {
        self.now + Duration::from_secs(60)
    }

    pub(super) fn around_now(&mut self) -> Timestamp {
        let shift = self.rng.random_range(-3_000..2_000);
        Timestamp::from_millis(self.now.as_millis() + shift)
    }

    pub(super) fn has_room_for_jobs(&self) -> bool {
        self.is_below(JOBS_WITH_MADE_MAX)
    }

    fn is_below(&self, jobs_max: u64) -> bool {
        (self.jobs.len() as u64) < jobs_max
    }

    pub(super) fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    pub(super) fn one_of<T: Copy, const N: usize>(&mut self, choices: [T; N]) -> T {
        choices[self.rng.random_range(0..N)]
    }
}
