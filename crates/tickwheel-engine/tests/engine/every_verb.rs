//! Every verb of the store that the engine uses fails once in each way, while everything else goes on: each fault is
//! met, and everything comes to its end all the same.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use tickwheel_core::change::Change;
use tickwheel_core::matching::{Demand, Labels};
use tickwheel_core::ports::{
    CalendarStore as _, Claim, Clock as _, Creation, Idempotency, Leaving, NewJob, Poll, Redrive,
    SchedulerError, Session, StartRun, Trigger, WorkerBeat,
};
use tickwheel_core::retry::RetryPolicy;
use tickwheel_core::schedule::backfill::BackfillRequest;
use tickwheel_core::schedule::edit::ScheduleEdit;
use tickwheel_core::schedule::{Calendar, Exclusion, Fire, Overlap, Rule, Schedule};
use tickwheel_core::settle::Outcome;
use tickwheel_core::token::AttemptRef;
use tickwheel_core::worker::{NewWorker, WorkerProfile};
use tickwheel_core::workflow::{RunCommand, RunStatus};
use tickwheel_core::{Job, JobId, JsonText, RunId, ScheduleId, SessionId, State, Target};
use tickwheel_engine::SystemClock;
use tickwheel_testkit::model::Verb;
use tickwheel_testkit::{Fault, JobBuilder, ModelStore, job};
use uuid::Uuid;

use crate::bench::{
    ACCEPTS, Bench, FIRST_FAILS, HOLDS, HOUR, NEVER_ENDS, due_now, eventually, options, quick_retries,
};
use crate::schedules::{every_second, fires};
use crate::workflows::{all_slots_come_back, endless_task, fan, store as store_workflow};

/// What the engine asks for without changing anything.
const READS: [Verb; 31] = [
    Verb::ActiveJobs,
    Verb::Attempts,
    Verb::Controls,
    Verb::CountDue,
    Verb::CountDueRoutes,
    Verb::CountDeadLetters,
    Verb::CountDeadLettersLike,
    Verb::DueReceivers,
    Verb::EndedAmong,
    Verb::FindAbandoned,
    Verb::FiresWithin,
    Verb::GetJob,
    Verb::GetJobs,
    Verb::GetRuns,
    Verb::GetSchedules,
    Verb::GetWorker,
    Verb::GetWorkflow,
    Verb::HeldBy,
    Verb::LatestVersion,
    Verb::ListCalendars,
    Verb::ListDeadLetters,
    Verb::ListQueues,
    Verb::ListWorkers,
    Verb::LoadDue,
    Verb::LoadSchedules,
    Verb::ReconcileRequests,
    Verb::QueuedFirings,
    Verb::ReadResults,
    Verb::ReadRun,
    Verb::Routes,
    Verb::StallingRuns,
];

/// What it writes.
const WRITES: [Verb; 24] = [
    Verb::AdvanceRuns,
    Verb::AdvanceSchedules,
    Verb::AwaitReport,
    Verb::ChangeJob,
    Verb::ChangeSchedule,
    Verb::Claim,
    Verb::CreateSchedule,
    Verb::DeleteSchedule,
    Verb::EndSession,
    Verb::EndWorker,
    Verb::ExpireSessions,
    Verb::ReturnCallbacks,
    Verb::OpenSession,
    Verb::OpenWorker,
    Verb::RenewSession,
    Verb::RenewWorker,
    Verb::SetHalted,
    Verb::SetQueuePaused,
    Verb::Settle,
    Verb::SettleCallback,
    Verb::StartRun,
    Verb::SubmitJobs,
    Verb::TakeCallbacks,
    Verb::TriggerSchedule,
];

/// What only others ask for (the API and its lists, whoever puts a server together), or only when another verb has failed:
/// the simulation meets that.
const OF_OTHERS: [Verb; 23] = [
    Verb::CallbacksOf,
    Verb::ClaimedBy,
    Verb::CountHeld,
    Verb::DeleteCalendar,
    Verb::DiscardDeadLetter,
    Verb::ExtendWorkers,
    Verb::FindSchedule,
    Verb::GetDeadLetter,
    Verb::Halted,
    Verb::InstallationSecret,
    Verb::LatestFires,
    Verb::ListFires,
    Verb::ListJobs,
    Verb::ListRuns,
    Verb::ListSchedules,
    Verb::ListWorkflowVersions,
    Verb::ListWorkflows,
    Verb::Ping,
    Verb::PutCalendar,
    Verb::PutWorkflow,
    Verb::RemoveWorkflow,
    Verb::SetWorkerDraining,
    Verb::WriteCallback,
];

/// What attempts say beside how they ended: nothing else depends on it.
const NOTES: [Verb; 9] = [
    Verb::AppendLogs,
    Verb::AskOnce,
    Verb::ExpireOnce,
    Verb::ForgetProgress,
    Verb::RemoveUnusedRoutes,
    Verb::GetProgress,
    Verb::PutProgress,
    Verb::ReadLogs,
    Verb::ReportOnce,
];

/// Engines that live at the same time.
const AT_ONCE: usize = 16;

#[test]
fn every_verb_is_in_one_of_the_lists() {
    let listed: BTreeSet<Verb> = READS.into_iter().chain(WRITES).chain(OF_OTHERS).chain(NOTES).collect();
    assert_eq!(listed, Verb::ALL.iter().copied().collect());
    assert_eq!(listed.len(), READS.len() + WRITES.len() + OF_OTHERS.len() + NOTES.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whichever_write_fails_in_whichever_way_everything_comes_to_its_end() {
    every_one_is_met(&WRITES).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whichever_read_fails_in_whichever_way_everything_comes_to_its_end() {
    every_one_is_met(&READS).await;
}

async fn every_one_is_met(verbs: &[Verb]) {
    let lives = verbs.iter().flat_map(|verb| Fault::ERRORS.map(|fault| (*verb, fault)));
    let lives = lives.map(|(verb, fault)| async move {
        let life = tokio::spawn(a_life_with(verb, fault));
        life.await.map_err(|error| format!("{verb:?} {fault:?}: {error}"))
    });
    let ends: Vec<Result<(), String>> =
        futures::stream::iter(lives).buffer_unordered(AT_ONCE).collect().await;
    let failed: Vec<String> = ends.into_iter().filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

/// An engine from its start to its end, in which one call fails.
async fn a_life_with(verb: Verb, fault: Fault) {
    let bench = Bench::start_on(ModelStore::default(), [], options()).await;
    bench.store.fail(verb, fault);
    if verb == Verb::GetJobs {
        // Jobs are read again by whoever does not know what he has taken.
        bench.store.fail(Verb::Claim, Fault::LostReply);
    }
    let life = Life { bench };
    tokio::join!(life.jobs(), life.holds(), life.redrives(), life.schedules(), life.runs(), life.workers());
    life.comes_to_its_end().await;
    let Life { bench } = life;
    let store = bench.store.clone();
    bench.engine.shutdown().await;
    assert_eq!(store.faults_left(verb), 0, "{verb:?} was not asked for");
}

/// Everything that an engine is asked for. Clients ask again until they are answered.
struct Life {
    bench: Bench,
}

impl Life {
    async fn insist<T, F>(&self, mut ask: impl FnMut() -> F) -> T
    where
        F: Future<Output = Result<T, SchedulerError>>,
    {
        for _ in 0..5 {
            match ask().await {
                Ok(answer) => return answer,
                // Whatever is on its way arrives before anybody asks for something else.
                Err(_) => drop(self.bench.store.release()),
            }
        }
        panic!("five times in vain");
    }

    async fn until<T, F: Future<Output = Option<T>>>(&self, what: &str, mut look: impl FnMut() -> F) -> T {
        eventually(what, || {
            self.bench.store.release();
            look()
        })
        .await
    }

    async fn reaches(&self, id: JobId, state: State) {
        let what = format!("{id} becomes {state}");
        self.until(&what, || async { (self.state_of(id) == Some(state)).then_some(()) }).await;
    }

    /// Past the port: these looks are none of the engine's.
    fn state_of(&self, id: JobId) -> Option<State> {
        self.bench.store.with_model(|model| model.job(id).map(|job| job.state()))
    }

    async fn submit(&self, builder: JobBuilder) -> JobId {
        self.submit_job(due_now(builder)).await
    }

    async fn submit_job(&self, job: Job) -> JobId {
        let key = Idempotency { key: job.id.to_string(), fingerprint: [1; 32] };
        let new = NewJob { job, idempotency: Some(key) };
        self.insist(|| self.bench.scheduler.submit(vec![new.clone()])).await;
        new.job.id
    }

    /// Jobs that complete, fail, are reported on, wait for others, and were left behind by a process that died.
    async fn jobs(&self) {
        let parent =
            self.submit(quick_retries().job_type(FIRST_FAILS).callback_url("http://127.0.0.1:9/")).await;
        let child = self.submit(job().depends_on([parent])).await;
        let accepted = self.submit(job().job_type(ACCEPTS)).await;
        let left_behind = self.left_behind();
        // Long enough to wait for that the store is asked whether somebody else has ended it.
        let mut soon = due_now(job());
        soon.due_at = soon.due_at + Duration::from_millis(2_500);
        let soon = self.submit_job(soon).await;
        let ended = self.bench.scheduler.end_of(soon);
        self.until("it is accepted", || async {
            let parked = |job: &Job| job.state() == State::Running && job.session.is_none();
            self.bench
                .store
                .with_model(|model| model.job(accepted).filter(|job| parked(job)).map(|job| job.attempt))
        })
        .await;
        let done = || Outcome::Completed { result: None };
        let attempt = self.bench.store.with_model(|model| model.job(accepted).map_or(0, |job| job.attempt));
        let attempt = AttemptRef { job_id: accepted, attempt };
        for _ in 0..2 {
            // Said again, it is still true.
            self.insist(|| self.bench.scheduler.report(attempt, done())).await;
        }
        ended.await;
        for id in [parent, child, accepted, left_behind, soon] {
            self.reaches(id, State::Completed).await;
        }
    }

    /// A worker that ends one of its jobs and leaves with the other, which the next worker ends.
    async fn workers(&self) {
        let builder = || job().target(Target::Worker).job_type("remote");
        let jobs = [self.submit(builder()).await, self.submit(builder()).await];
        let (first, second) = (self.register().await, self.register().await);
        let workers = self.bench.engine.workers();
        let taken = [self.take(first).await, self.take(first).await];
        self.insist(|| workers.beat(first, WorkerBeat { held: Some(2), ..WorkerBeat::default() })).await;
        let done = || Outcome::Completed { result: None };
        self.insist(|| workers.report(vec![(taken[0], done())])).await;
        self.insist(|| workers.leave(first, Leaving::Drained)).await;
        let again = self.take(second).await;
        assert_eq!(again.job_id, taken[1].job_id);
        self.insist(|| workers.report(vec![(again, done())])).await;
        for id in jobs {
            self.reaches(id, State::Completed).await;
        }
    }

    async fn register(&self) -> SessionId {
        let profile = WorkerProfile {
            name: "remote".into(),
            queues: vec!["default".into()],
            types: vec!["remote".into()],
            executors: Vec::new(),
            labels: Labels::new(),
            capacity: 2,
            lease_ms: 15_000,
            library: None,
            host: None,
            pid: None,
        };
        let instance = Some(Uuid::now_v7());
        let worker =
            NewWorker { id: SessionId::from_uuid(Uuid::now_v7()), instance, profile: profile.into() };
        let workers = self.bench.engine.workers();
        self.insist(|| workers.register(worker.clone())).await.id
    }

    /// The next job that the worker is given.
    async fn take(&self, worker: SessionId) -> AttemptRef {
        let workers = self.bench.engine.workers();
        let demand = Demand { jobs_max: 1, ..Demand::default() };
        let poll = Poll { demand, seq: None, wait: Duration::from_millis(100) };
        let polled = || async { workers.poll(worker, poll.clone()).await.ok()??.jobs.pop() };
        let context = self.until("the worker is given a job", polled).await;
        AttemptRef { job_id: context.job.id, attempt: context.job.attempt }
    }

    /// A job that runs under a session whose lease is over.
    fn left_behind(&self) -> JobId {
        let dead = due_now(job());
        let (id, now) = (dead.id, SystemClock.now());
        let session =
            Session { id: SessionId::from_uuid(Uuid::now_v7()), node: "dead".into(), expires_at: now };
        self.bench.store.with_model(|model| {
            let claim = Claim { claimed_by: None, session: session.id, jobs: vec![id], now };
            model.open_session(session).unwrap();
            model.submit_jobs(vec![NewJob { job: dead, idempotency: None }]).unwrap();
            // It was taken before anybody halted anything.
            let halted = model.halted();
            model.set_halted(false);
            assert_eq!(model.claim(&claim).len(), 1);
            model.set_halted(halted);
        });
        id
    }

    /// What is paused, halted and cancelled; and somebody who ends the session of this engine.
    async fn holds(&self) {
        let bench = &self.bench;
        self.insist(|| bench.scheduler.set_queue_paused("other", true)).await;
        let paused = self.submit(job().queue("other")).await;
        self.insist(|| bench.scheduler.set_halted(true)).await;
        let halted = self.submit(job()).await;
        self.insist(|| bench.scheduler.set_halted(false)).await;
        self.reaches(halted, State::Completed).await;
        assert_eq!(self.state_of(paused), Some(State::Scheduled));
        self.insist(|| bench.scheduler.set_queue_paused("other", false)).await;
        self.reaches(paused, State::Completed).await;
        let cancelled = self.submit(job().job_type(NEVER_ENDS)).await;
        self.reaches(cancelled, State::Running).await;
        self.insist(|| bench.scheduler.change(cancelled, Change::Cancel)).await;
        self.reaches(cancelled, State::Cancelled).await;
        let before: Vec<SessionId> = bench.store.with_model(|model| {
            let sessions: Vec<SessionId> = model.sessions().keys().copied().collect();
            sessions.iter().for_each(|id| model.end_session(*id));
            sessions
        });
        self.until("there is a new session", || async {
            bench
                .store
                .with_model(|model| model.sessions().keys().any(|id| !before.contains(id)))
                .then_some(())
        })
        .await;
        let afterwards = self.submit(job()).await;
        self.reaches(afterwards, State::Completed).await;
    }

    /// A job that was given up, and runs again with all others of its queue.
    async fn redrives(&self) {
        let never_again = RetryPolicy { max_retries: 0, ..RetryPolicy::default() };
        let given_up = self.submit(job().job_type(FIRST_FAILS).queue("given-up").retry(never_again)).await;
        self.reaches(given_up, State::Failed).await;
        let redrives = self.bench.engine.redrives();
        let failed_before = SystemClock.now() + HOUR;
        let redrive = Redrive { job_type: None, queue: Some("given-up".into()), failed_before, limit: None };
        let begun = self.insist(|| redrives.redrive(redrive.clone(), Duration::ZERO)).await;
        self.until("all of them were looked at", || async {
            redrives.progress(begun.id).filter(|progress| !progress.is_running())
        })
        .await;
        self.reaches(given_up, State::Completed).await;
    }

    /// A schedule that fires every second and is paused, resumed, triggered, made up for and deleted; its jobs wait for
    /// each other.
    async fn schedules(&self) {
        let (bench, schedules) = (&self.bench, &self.bench.engine.schedules());
        let calendar = Calendar {
            name: "none".into(),
            tenant: "default".into(),
            days: BTreeSet::new(),
            weekdays: BTreeSet::new(),
            updated_at: SystemClock.now(),
        };
        bench.store.put_calendar(calendar).await.unwrap();
        let mut schedule = every_second(1, Overlap::Queue);
        let spec = Arc::make_mut(&mut schedule.spec);
        spec.exclude = vec![Exclusion::Calendar("none".into())];
        spec.job.job_type = HOLDS.into();
        self.insist(|| schedules.create(schedule.clone())).await;
        let id = schedule.id;
        self.until("a firing is queued", || async {
            fires(bench, id).iter().any(|fire| fire.is_queued()).then_some(())
        })
        .await;
        bench.target.gate.add_permits(1_000);
        self.until("it goes on", || async { (self.fired(id).len() >= 3).then_some(()) }).await;
        let key = Idempotency { key: "trigger".into(), fingerprint: [1; 32] };
        let trigger = || Trigger {
            job_id: JobId::from_uuid(Uuid::now_v7()),
            payload: None,
            idempotency: Some(key.clone()),
        };
        let triggered = self.insist(|| schedules.trigger(id, trigger())).await;
        assert!(matches!(triggered, Creation::Created(_) | Creation::Existing(_)), "{triggered:?}");
        self.insist(|| schedules.edit(id, ScheduleEdit::Pause { note: None })).await;
        self.one_job_each_second(id);
        self.insist(|| schedules.edit(id, ScheduleEdit::Resume)).await;
        self.insist(|| schedules.delete(id)).await;
        self.make_up_for_a_year().await;
    }

    async fn make_up_for_a_year(&self) {
        let mut schedule = Schedule { name: "yearly".into(), ..every_second(2, Overlap::Allow) };
        Arc::make_mut(&mut schedule.spec).rule = Rule::Cron("0 0 1 1 *".into());
        schedule.progress.wake_at = None;
        let (id, now) = (schedule.id, SystemClock.now());
        let schedules = &self.bench.engine.schedules();
        self.insist(|| schedules.create(schedule.clone())).await;
        let years = |years: u64| Duration::from_secs(years * 366 * 86_400);
        let request =
            BackfillRequest { from: now - years(3), to: now - years(1), per_second: 10, priority: None };
        self.insist(|| schedules.edit(id, ScheduleEdit::Backfill(request))).await;
        self.until("the years are made up for", || async { (self.fired(id).len() >= 2).then_some(()) }).await;
    }

    /// The firings that have a job of their own.
    fn fired(&self, id: ScheduleId) -> Vec<Fire> {
        fires(&self.bench, id).into_iter().filter(Fire::has_own_job).collect()
    }

    fn one_job_each_second(&self, id: ScheduleId) {
        let regular: Vec<Fire> = fires(&self.bench, id)
            .into_iter()
            .filter(|fire| fire.nominal_at.as_millis() % 1_000 == 0)
            .collect();
        let mut pairs = regular.windows(2);
        assert!(pairs.all(|two| two[1].nominal_at.since(two[0].last_at).as_millis() == 1_000), "{regular:?}");
        let own: Vec<JobId> =
            regular.iter().filter(|fire| fire.has_own_job()).filter_map(|fire| fire.job_id).collect();
        assert_eq!(own.iter().collect::<BTreeSet<_>>().len(), own.len(), "{regular:?}");
    }

    /// A run whose tasks are started by each other and by the reconciler, and one that is cancelled.
    async fn runs(&self) {
        store_workflow(&self.bench, "fan", fan()).await;
        let completed = self.start_run("fan").await;
        self.ends(completed, RunStatus::Completed).await;
        store_workflow(&self.bench, "endless", vec![endless_task()]).await;
        let cancelled = self.start_run("endless").await;
        self.insist(|| async { self.bench.engine.workflows().change(cancelled, RunCommand::Cancel).await })
            .await;
        self.ends(cancelled, RunStatus::Cancelled).await;
    }

    async fn start_run(&self, workflow: &str) -> RunId {
        let key = Idempotency { key: workflow.into(), fingerprint: [1; 32] };
        let start = || StartRun {
            tenant: "default".into(),
            workflow: workflow.into(),
            id: RunId::fresh(Uuid::now_v7()),
            input: JsonText::from_checked("[1, 2, 3]"),
            job_id: None,
            idempotency: Some(key.clone()),
        };
        let requested = self.insist(|| async { self.bench.engine.workflows().start(start()).await }).await;
        let (Creation::Created(run) | Creation::Existing(run)) = requested else {
            panic!("{requested:?}");
        };
        run.id
    }

    async fn ends(&self, run: RunId, status: RunStatus) {
        self.until("the run ends", || async {
            let runs = self.bench.store.with_model(|model| model.get_runs(&[run]));
            runs.iter().any(|run| run.progress.status == status).then_some(())
        })
        .await;
    }

    /// Nothing is left to do, everybody was told, no attempt was sent twice, and every slot is free.
    async fn comes_to_its_end(&self) {
        let bench = &self.bench;
        self.until("everything has ended", || async {
            bench
                .store
                .with_model(|model| model.live().is_empty() && model.callbacks().count() == 0)
                .then_some(())
        })
        .await;
        assert!(!bench.receiver.seen.lock().unwrap().is_empty(), "nobody was told");
        let calls = bench.calls();
        assert_eq!(calls.iter().collect::<BTreeSet<_>>().len(), calls.len(), "an attempt was sent twice");
        all_slots_come_back(bench).await;
    }
}
