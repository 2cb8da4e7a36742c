//! Runs of workflows on a running engine: brought to their end, whatever the store does, and waited for by jobs.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::change::Change;
use tickwheel_core::job::WorkflowTarget;
use tickwheel_core::ports::{
    Changed, Clock as _, ControlStore as _, Creation, RunChanged, RunRefused, RunStore, StartRun,
    WorkflowStore as _,
};
use tickwheel_core::schedule::JobTemplate;
use tickwheel_core::workflow::{
    CommandRejected, Each, ForEach, OnFailure, PAUSED_RUNS_MAX, Run, RunCommand, RunStatus, RunTask,
    TaskSpec, TriggerRule, Work, Workflow, WorkflowSpec,
};
use tickwheel_core::{JobId, JobSpec, JsonText, Priority, RunId, State, Target};
use tickwheel_engine::SystemClock;
use tickwheel_testkit::fixtures::run;
use tickwheel_testkit::model::Verb;
use tickwheel_testkit::{Fault, job};
use uuid::Uuid;

use crate::bench::{Act, Bench, NEVER_ENDS, eventually};

fn template(target: Target) -> JobTemplate {
    let mut spec = JobSpec::new(target);
    spec.retry.max_retries = 0;
    JobTemplate {
        job_type: "work".into(),
        queue: "default".into(),
        priority: Priority::Normal,
        spec: Arc::new(spec),
        payload: JsonText::null(),
        tags: Vec::new(),
    }
}

fn http() -> JobTemplate {
    template(job().build().spec.target.clone())
}

fn task(name: &str, depends_on: &[&str], work: Work) -> TaskSpec {
    let depends_on = depends_on.iter().map(|name| (*name).into()).collect();
    TaskSpec { name: name.into(), depends_on, rule: TriggerRule::AllSucceeded, when: None, work }
}

/// One that does not end by itself.
pub fn endless_task() -> TaskSpec {
    task("endless", &[], Work::Job(JobTemplate { job_type: NEVER_ENDS.into(), ..http() }))
}

pub async fn store(bench: &Bench, name: &str, tasks: Vec<TaskSpec>) {
    let spec = WorkflowSpec { tasks, on_failure: OnFailure::Continue, ..WorkflowSpec::default() };
    let workflow = Workflow {
        tenant: "default".into(),
        name: name.into(),
        version: 0,
        created_at: SystemClock.now(),
        spec: Arc::new(spec),
    };
    bench.store.put_workflow(workflow).await.unwrap();
}

async fn request(bench: &Bench, name: &str, input: &str) -> Creation<Run, RunRefused> {
    let start = StartRun {
        tenant: "default".into(),
        workflow: name.into(),
        id: RunId::fresh(Uuid::now_v7()),
        input: JsonText::from_checked(input),
        job_id: None,
        idempotency: None,
    };
    bench.engine.workflows().start(start).await.unwrap()
}

async fn start(bench: &Bench, name: &str, input: &str) -> RunId {
    match request(bench, name, input).await {
        Creation::Created(run) => run.id,
        other => panic!("{other:?}"),
    }
}

async fn read(bench: &Bench, id: RunId) -> Option<(Run, Vec<RunTask>)> {
    bench.store.read_run(id).await.ok().flatten()
}

async fn ends(bench: &Bench, id: RunId, status: RunStatus) -> Vec<RunTask> {
    eventually(&format!("run {id} is {status}"), || async {
        read(bench, id).await.filter(|(run, _)| run.progress.status == status).map(|(_, tasks)| tasks)
    })
    .await
}

/// Two that wait for each other, and three in between.
pub fn fan() -> Vec<TaskSpec> {
    let each = ForEach { over: "input".into(), max_items: 10, concurrency: Some(2), each: Each::Job(http()) };
    vec![
        task("first", &[], Work::Job(http())),
        task("each", &["first"], Work::ForEach(each)),
        task("last", &["each"], Work::Job(http())),
    ]
}

/// Every fault meets a claim, a settlement or a step of the run.
#[tokio::test]
async fn whatever_write_of_a_run_fails_it_comes_to_its_end_and_each_task_is_sent_once() {
    const VERBS: [Verb; 3] = [Verb::Claim, Verb::Settle, Verb::AdvanceRuns];
    for fault in [Fault::Aborted, Fault::LostReply] {
        let bench = Bench::start([]).await;
        store(&bench, "fan", fan()).await;
        for verb in VERBS {
            (0..2).for_each(|_| bench.store.fail(verb, fault));
        }
        let run = start(&bench, "fan", "[1, 2, 3]").await;
        let tasks = ends(&bench, run, RunStatus::Completed).await;
        assert_eq!(tasks.len(), 6);
        assert_eq!(VERBS.map(|verb| bench.store.faults_left(verb)), [0; 3], "{fault:?}");
        let mut calls: Vec<JobId> = bench.calls().into_iter().map(|(id, _)| id).collect();
        calls.sort_unstable();
        let sent = calls.len();
        calls.dedup();
        assert_eq!((sent, calls.len()), (5, 5), "{fault:?}");
    }
}

/// So many tasks, each of which waits for the one before.
fn chain(len: usize) -> Vec<TaskSpec> {
    let name = |index: usize| format!("t{index}");
    let link = |index: usize| {
        let before = (index > 0).then(|| name(index - 1));
        task(&name(index), &before.iter().map(String::as_str).collect::<Vec<_>>(), Work::Job(http()))
    };
    (0..len).map(link).collect()
}

/// Each of them is released by the settlement of the one before, and those meet all the faults that there are. If an
/// answer is lost, nobody has said which task may go: a sweep finds it.
#[tokio::test]
async fn a_chain_goes_on_whatever_becomes_of_the_answers_to_its_settlements() {
    for fault in [Fault::Aborted, Fault::LostReply] {
        const LEN: usize = 5;
        let bench = Bench::start(vec![Act::Hold; LEN]).await;
        store(&bench, "chain", chain(LEN)).await;
        let run = start(&bench, "chain", "{}").await;
        for link in 1..=LEN {
            eventually("the next one runs", || async { (bench.calls().len() >= link).then_some(()) }).await;
            bench.store.fail(Verb::Settle, fault);
            bench.target.gate.add_permits(1);
        }
        ends(&bench, run, RunStatus::Completed).await;
        let mut expected: Vec<(JobId, u32)> =
            read(&bench, run).await.unwrap().1.iter().map(|task| (task.job_id, 1)).collect();
        expected.sort_unstable();
        let mut calls = bench.calls();
        calls.sort_unstable();
        assert_eq!(calls, expected, "each once, in its first attempt");
        assert_eq!(bench.store.faults_left(Verb::Settle), 0);
        all_slots_come_back(&bench).await;
    }
}

pub async fn all_slots_come_back(bench: &Bench) {
    eventually("all slots are free", || async {
        let snapshot = bench.scheduler.snapshot().await;
        (snapshot.slots_free == snapshot.slots).then_some(())
    })
    .await;
}

/// Tasks that cannot be started at once, for their queue is paused, are passed over and do not keep the slots.
#[tokio::test]
async fn a_paused_queue_holds_the_next_task_and_no_slot() {
    let bench = Bench::start([Act::Hold]).await;
    store(&bench, "pair", chain(2)).await;
    let run = start(&bench, "pair", "{}").await;
    eventually("the first runs", || async { (bench.calls().len() == 1).then_some(()) }).await;
    bench.scheduler.set_queue_paused("default", true).await.unwrap();
    bench.target.gate.add_permits(1);
    bench.reaches(JobId::of_task(run, 1), State::Completed).await;
    assert_eq!(bench.get(JobId::of_task(run, 2)).await.state(), State::Scheduled);
    all_slots_come_back(&bench).await;
    bench.scheduler.set_queue_paused("default", false).await.unwrap();
    ends(&bench, run, RunStatus::Completed).await;
}

#[tokio::test]
async fn a_job_that_starts_a_run_ends_with_it_and_its_retry_resumes_what_failed() {
    let bench = Bench::start([Act::Complete, Act::Fail]).await;
    store(&bench, "pair", vec![task("a", &[], Work::Job(http())), task("b", &["a"], Work::Job(http()))])
        .await;
    let target = Target::Workflow(WorkflowTarget { name: "pair".into() });
    let id = bench
        .submit(job().target(target).with(|job| Arc::make_mut(&mut job.spec).retry.max_retries = 0))
        .await;
    let failed = bench.reaches(id, State::Failed).await;
    assert_eq!(failed.error.unwrap().code, "workflow_failed");
    let run = RunId::of_job(id);
    ends(&bench, run, RunStatus::Failed).await;
    let again = bench.scheduler.change(id, Change::Retry { payload: None }).await.unwrap();
    assert!(matches!(again, Changed::Done(_)));
    bench.reaches(id, State::Completed).await;
    let tasks = ends(&bench, run, RunStatus::Completed).await;
    assert_eq!(tasks.iter().map(|task| task.attempt).collect::<Vec<_>>(), [1, 2], "a is not run again");
}

#[tokio::test]
async fn cancelling_a_job_that_waits_for_a_run_cancels_the_run_and_those_inside_of_it() {
    let bench = Bench::start([Act::Hold]).await;
    store(&bench, "inner", vec![task("slow", &[], Work::Job(http()))]).await;
    let inner = Target::Workflow(WorkflowTarget { name: "inner".into() });
    store(&bench, "outer", vec![task("call", &[], Work::Job(template(inner)))]).await;
    let outer = Target::Workflow(WorkflowTarget { name: "outer".into() });
    let id = bench.submit(job().target(outer)).await;
    eventually("the innermost runs", || async { (!bench.calls().is_empty()).then_some(()) }).await;
    bench.scheduler.change(id, Change::Cancel).await.unwrap();
    bench.reaches(id, State::Cancelled).await;
    let call = &ends(&bench, RunId::of_job(id), RunStatus::Cancelled).await[0];
    ends(&bench, RunId::of_job(call.job_id), RunStatus::Cancelled).await;
    assert_eq!(bench.target.dropped.lock().unwrap().len(), 1, "the attempt was stopped");
}

#[tokio::test]
async fn an_unknown_workflow_fails_the_job_that_wants_it_for_good() {
    let bench = Bench::start([]).await;
    let target = Target::Workflow(WorkflowTarget { name: "nobody".into() });
    let id = bench.submit(job().target(target)).await;
    let failed = bench.reaches(id, State::Failed).await;
    assert_eq!((failed.attempt, failed.error.unwrap().code.as_str()), (1, "unknown_workflow"));
}

#[tokio::test]
async fn a_run_that_is_cancelled_starts_nothing_more() {
    let bench = Bench::start([Act::Hold]).await;
    store(&bench, "fan", fan()).await;
    let run = start(&bench, "fan", "[1, 2, 3]").await;
    eventually("it runs", || async { (!bench.calls().is_empty()).then_some(()) }).await;
    let changed = bench.engine.workflows().change(run, RunCommand::Cancel).await.unwrap();
    assert!(matches!(changed, RunChanged::Done(_)));
    let tasks = ends(&bench, run, RunStatus::Cancelled).await;
    assert!(tasks.iter().all(|task| task.state == State::Cancelled), "{tasks:?}");
    assert_eq!(bench.calls().len(), 1);
}

#[tokio::test]
async fn a_removed_workflow_is_not_started_and_the_runs_it_has_go_on() {
    let bench = Bench::start([Act::Hold]).await;
    store(&bench, "fan", fan()).await;
    let run = start(&bench, "fan", "[1, 2, 3]").await;
    eventually("it runs", || async { (!bench.calls().is_empty()).then_some(()) }).await;
    assert!(bench.store.remove_workflow("default", "fan").await.unwrap());
    assert_eq!(request(&bench, "fan", "[]").await, Creation::Refused(RunRefused::NoSuchWorkflow));
    bench.target.gate.add_permits(1);
    ends(&bench, run, RunStatus::Completed).await;
    store(&bench, "fan", fan()).await;
    let Creation::Created(again) = request(&bench, "fan", "[]").await else { panic!("it is there again") };
    assert_eq!(again.version, 2);
}

#[tokio::test]
async fn a_job_finds_the_run_again_that_it_started_before_the_workflow_was_removed() {
    let bench = Bench::start([Act::Fail]).await;
    store(&bench, "one", vec![task("a", &[], Work::Job(http()))]).await;
    let target = Target::Workflow(WorkflowTarget { name: "one".into() });
    let id = bench
        .submit(job().target(target).with(|job| Arc::make_mut(&mut job.spec).retry.max_retries = 0))
        .await;
    bench.reaches(id, State::Failed).await;
    assert!(bench.store.remove_workflow("default", "one").await.unwrap());
    let again = bench.scheduler.change(id, Change::Retry { payload: None }).await.unwrap();
    assert!(matches!(again, Changed::Done(_)));
    bench.reaches(id, State::Completed).await;
    ends(&bench, RunId::of_job(id), RunStatus::Completed).await;
}

/// The task is taken, but whoever took it does not know yet: there is nothing to stop. It is stopped when there is.
#[tokio::test]
async fn a_run_that_is_cancelled_between_claim_and_start_of_its_task_ends() {
    let bench = Bench::start([]).await;
    store(&bench, "w", vec![endless_task()]).await;
    bench.store.fail(Verb::Claim, Fault::SlowReply);
    let id = start(&bench, "w", "null").await;
    eventually("it is taken", || async { bench.store.is_stalled(Verb::Claim).then_some(()) }).await;
    let workflows = bench.engine.workflows().clone();
    let cancel = tokio::spawn(async move { workflows.change(id, RunCommand::Cancel).await });
    let task = JobId::of_task(id, 1);
    eventually("the store knows", || async { bench.get(task).await.cancel_requested.then_some(()) }).await;
    bench.store.release();
    assert!(matches!(cancel.await.unwrap().unwrap(), RunChanged::Done(_)));
    bench.reaches(task, State::Cancelled).await;
}

async fn change(bench: &Bench, id: RunId, command: RunCommand) -> RunChanged {
    bench.engine.workflows().change(id, command).await.unwrap()
}

/// A task of it is taken, but whoever took it does not know yet. Also whoever finds the run paused already waits for
/// that start.
#[tokio::test]
async fn a_pause_is_acknowledged_when_what_was_claimed_before_has_started() {
    let bench = Bench::start([]).await;
    store(&bench, "w", vec![endless_task()]).await;
    bench.store.fail(Verb::Claim, Fault::SlowReply);
    let id = start(&bench, "w", "null").await;
    eventually("it is taken", || async { bench.store.is_stalled(Verb::Claim).then_some(()) }).await;
    for _ in 0..2 {
        let pause = change(&bench, id, RunCommand::Pause);
        assert!(tokio::time::timeout(Duration::from_millis(100), pause).await.is_err(), "it waits");
        assert_eq!(read(&bench, id).await.unwrap().0.progress.status, RunStatus::Paused);
        assert!(bench.calls().is_empty());
    }
    bench.store.release();
    assert!(matches!(change(&bench, id, RunCommand::Pause).await, RunChanged::Done(_)));
    assert_eq!(bench.calls().len(), 1);
}

#[tokio::test]
async fn what_a_paused_run_releases_starts_when_it_is_resumed() {
    let bench = Bench::start([Act::Hold]).await;
    store(&bench, "chain", chain(2)).await;
    let id = start(&bench, "chain", "{}").await;
    eventually("the first one runs", || async { (!bench.calls().is_empty()).then_some(()) }).await;
    change(&bench, id, RunCommand::Pause).await;
    bench.target.gate.add_permits(1);
    bench.reaches(JobId::of_task(id, 1), State::Completed).await;
    bench.reaches(JobId::of_task(id, 2), State::Scheduled).await;
    let other = bench.submit(job()).await;
    bench.reaches(other, State::Completed).await;
    assert_eq!(bench.calls().len(), 2, "the first task and the other job");
    change(&bench, id, RunCommand::Resume).await;
    ends(&bench, id, RunStatus::Completed).await;
    all_slots_come_back(&bench).await;
}

#[tokio::test]
async fn no_more_runs_are_paused_than_every_server_keeps_in_mind() {
    let bench = Bench::start([]).await;
    store(&bench, "w", vec![endless_task()]).await;
    for _ in 0..PAUSED_RUNS_MAX {
        let paused = run().with(|run| (run.workflow, run.progress.status) = ("w".into(), RunStatus::Paused));
        bench.store.start_run(paused.build()).await.unwrap();
    }
    let id = start(&bench, "w", "null").await;
    let refused = change(&bench, id, RunCommand::Pause).await;
    assert_eq!(refused, RunChanged::Refused(CommandRejected::TooManyPaused));
    let some = bench.store.controls().await.unwrap().paused_runs[0];
    assert!(matches!(change(&bench, some, RunCommand::Resume).await, RunChanged::Done(_)));
    assert!(matches!(change(&bench, id, RunCommand::Pause).await, RunChanged::Done(_)));
}
