//! Steps: a decision is carried out whole on the revision it was made on, or not at all.

use std::sync::Arc;

use tickwheel_core::ports::{CallbackSubject, RunAdvanced, RunStart, Scheduled, Settled, StepEffects, Store};
use tickwheel_core::settle::Settlement;
use tickwheel_core::workflow::{Run, RunNotice, RunProgress, RunStatus, RunStep, TaskChange};
use tickwheel_core::{Job, JsonText, RunId, State};
use tokio::task::JoinSet;

use super::super::store::bench::{ODD_TEXT, answered, completes, fails};
use super::bench::{RunBench, STEP_AT, ends, only, task, whole};
use crate::fixtures::{at, items_of, run, run_id};

fn ended(run: &Run) -> RunProgress {
    RunProgress { status: RunStatus::Completed, ended_at: Some(STEP_AT), ..run.progress }
}

pub async fn progress_is_written_and_the_revision_grows(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([])).await;
    let progress = RunProgress {
        status: RunStatus::Failed,
        cancel_requested: true,
        ended_at: Some(at(1)),
        paused_at: Some(STEP_AT),
        next_index: 20,
        after_first: Some(3),
        blocked: 0,
        stalled: 5,
        stalls_at: Some(at(6)),
        data_bytes: u64::from(u32::MAX) + 7,
    };
    let step = RunStep { progress: Some(progress), ..bench.step(start.run.id).await };
    assert_eq!(bench.done(step).await, StepEffects::default());
    let expected = Run { progress, revision: start.run.revision + 1, ..start.run };
    assert_eq!(bench.run(expected.id).await, expected);
}

pub async fn a_step_without_progress_leaves_the_revision(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().reconciled([])).await;
    bench.change(start.run.id, [(task(&start, 1), TaskChange::Release { payload: None })]).await;
    assert_eq!(bench.run(start.run.id).await, start.run);
}

/// Everything that a step can do, on a revision that is not the run's.
pub async fn a_step_of_another_revision_changes_nothing_at_all(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).reconciled([]).reconciled([]).fan_out().task([1])).await;
    bench.end(task(&start, 1), fails).await;
    let before = bench.picture(start.run.id).await;
    let (fan_out, jobs) = items_of(&start.run, &start.jobs[2], 2);
    let step = RunStep {
        changes: vec![
            (task(&start, 1), TaskChange::Retry),
            (task(&start, 2), ends(State::Skipped)),
            (task(&start, 3), TaskChange::Expand { fan_out, fresh: true }),
            (task(&start, 4), TaskChange::Block),
        ],
        jobs,
        reconcile_requests: vec![task(&start, 4)],
        progress: Some(ended(&start.run)),
        reconciled: before.reconcile_requests.clone(),
        notices: vec![RunNotice { url: "http://example.com".into(), body: JsonText::null() }],
        ..bench.step(start.run.id).await
    };
    for revision in [0, start.run.revision + 1] {
        assert_eq!(bench.advance(RunStep { revision, ..step.clone() }).await, RunAdvanced::Stale);
    }
    assert_eq!(bench.picture(start.run.id).await, before);
    assert_eq!(bench.jobs.take_callbacks(at(100_000)).await, []);
}

pub async fn a_step_of_an_unknown_run_is_stale(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let unknown = run_id(at(0), 1 << 30);
    let start = run().task([]).build();
    let step = RunStep { run: unknown, ..RunStep::nothing(&start.run, STEP_AT) };
    assert_eq!(bench.advance(step).await, RunAdvanced::Stale);
    assert_eq!(answered(bench.store.advance_runs(Vec::new()).await), []);
}

pub async fn a_stale_step_leaves_the_others_alone(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let starts = [bench.start(run().reconciled([])).await, bench.start(run().reconciled([])).await];
    let mut steps = Vec::new();
    for start in &starts {
        let changes = vec![(task(start, 1), ends(State::Completed))];
        steps.push(RunStep { changes, ..bench.step(start.run.id).await });
    }
    steps[0].revision += 1;
    let answers = answered(bench.store.advance_runs(steps).await);
    assert_eq!(answers[0], RunAdvanced::Stale);
    assert!(matches!(&answers[1], RunAdvanced::Done(effects) if effects.ended == [task(&starts[1], 1)]));
    assert_eq!(bench.run(starts[0].run.id).await.open, 1);
    assert_eq!(bench.run(starts[1].run.id).await.open, 0);
}

/// One after the other: what the first one wrote is what the second one finds.
pub async fn steps_of_one_run_in_one_batch_are_carried_out_in_order(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().reconciled([]).reconciled([])).await;
    let step = bench.step(start.run.id).await;
    let release = |index| vec![(task(&start, index), TaskChange::Release { payload: None })];
    let moves = RunStep { changes: release(1), progress: Some(start.run.progress), ..step.clone() };
    let late = RunStep { changes: release(2), ..step.clone() };
    let next = RunStep { revision: step.revision + 1, ..late.clone() };
    let answers = answered(bench.store.advance_runs(vec![moves, late, next]).await);
    assert_eq!(answers[1], RunAdvanced::Stale, "the revision has grown");
    for (answer, index) in [(&answers[0], 1), (&answers[2], 2)] {
        let RunAdvanced::Done(effects) = answer else { panic!("{answer:?}") };
        assert_eq!(effects.scheduled[0].due.id, task(&start, index));
    }
}

pub async fn of_many_who_decide_on_one_revision_one_wins(store: Arc<dyn Store>) {
    let bench = RunBench::new(store.clone());
    let start = bench.start(run().task([]).reconciled([]).task([2])).await;
    let mut deciding = JoinSet::new();
    for number in 0..10 {
        let progress = Some(RunProgress { stalled: number, ..start.run.progress });
        let changes = vec![(task(&start, 2), ends(State::Completed))];
        let step = RunStep { changes, progress, ..RunStep::nothing(&start.run, STEP_AT) };
        let store = store.clone();
        deciding.spawn(async move { answered(store.advance_runs(vec![step]).await).remove(0) });
    }
    let answers = deciding.join_all().await;
    let done: Vec<_> = answers.iter().filter(|answer| **answer != RunAdvanced::Stale).collect();
    assert_eq!(done.len(), 1, "{answers:?}");
    let run = bench.run(start.run.id).await;
    assert_eq!((run.open, run.revision), (2, start.run.revision + 1));
    bench.assert_stands(task(&start, 3), State::Scheduled, 0, 0).await;
}

/// Steps and settlements meet on the same run, jobs and reconcile requests: every end is counted, whoever comes first.
pub async fn steps_and_settlements_at_the_same_moment_are_all_counted(store: Arc<dyn Store>) {
    const PAIRS: u32 = 12;
    let bench = RunBench::new(store.clone());
    let mut builder = run();
    for _ in 0..PAIRS {
        builder = builder.task([]).reconciled([]);
    }
    let parents: [u32; 2 * PAIRS as usize] = std::array::from_fn(|n| n as u32 + 1);
    let start = bench.start(builder.reconciled(parents).watched(parents)).await;
    let mut ending = JoinSet::new();
    for pair in 0..PAIRS {
        let running = bench.running(task(&start, 2 * pair + 1)).await;
        let changes = vec![(task(&start, 2 * pair + 2), ends(State::Completed))];
        let step = RunStep { changes, ..bench.step(start.run.id).await };
        ending.spawn(settle_at_last(store.clone(), completes(&running)));
        ending.spawn(advance_at_last(store.clone(), step));
    }
    ending.join_all().await;
    assert_eq!(bench.run(start.run.id).await.open, 2);
    bench.assert_stands(task(&start, 2 * PAIRS + 1), State::Pending, 0, 0).await;
    bench.assert_stands(task(&start, 2 * PAIRS + 2), State::Pending, 0, 0).await;
    assert_eq!(bench.requested_ids().await, only([task(&start, 2 * PAIRS + 1), task(&start, 2 * PAIRS + 2)]));
}

/// What was certainly not done may be asked for again.
async fn settle_at_last(store: Arc<dyn Store>, end: Settlement) {
    for _ in 0..100 {
        match store.settle(vec![end.clone()]).await {
            Err(error) if error.is_certainly_aborted() => {}
            answer => return assert_eq!(answered(answer).settled, [Settled::Applied]),
        }
    }
    panic!("it is never settled");
}

async fn advance_at_last(store: Arc<dyn Store>, step: RunStep) {
    for _ in 0..100 {
        match store.advance_runs(vec![step.clone()]).await {
            Err(error) if error.is_certainly_aborted() => {}
            answer => return assert!(matches!(answered(answer)[..], [RunAdvanced::Done(_)])),
        }
    }
    panic!("it is never carried out");
}

pub async fn notices_become_callbacks(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([])).await;
    let body = JsonText::from_checked(r#"{"type":"workflow_run.completed"}"#);
    let notices = ["http://a.example", ODD_TEXT].map(|url| RunNotice { url: url.into(), body: body.clone() });
    let progress = Some(ended(&start.run));
    let step = RunStep { notices: notices.to_vec(), progress, ..bench.step(start.run.id).await };
    bench.done(step).await;
    assert_eq!(bench.jobs.take_callbacks(at(0)).await, [], "due when it was decided");
    let mut told = bench.jobs.take_callbacks(STEP_AT).await;
    told.sort_by_key(|callback| callback.id);
    assert_eq!(
        told.iter().map(|callback| &*callback.url).collect::<Vec<_>>(),
        ["http://a.example", ODD_TEXT]
    );
    for callback in told {
        let subject = CallbackSubject::Run { id: start.run.id, document: body.clone() };
        assert_eq!((callback.subject, callback.state), (subject, State::Completed));
        assert_eq!((callback.attempt, callback.tries, callback.completed_at), (0, 0, STEP_AT));
        assert_eq!((callback.result, callback.error), (None, None));
    }
}

pub async fn what_is_notified_of_a_start_is_notified_once(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let body = JsonText::from_checked(r#"{"type":"workflow_run.running"}"#);
    let notices = vec![RunNotice { url: "http://a.example".into(), body: body.clone() }];
    let start = RunStart { notices, ..run().task([]).build() };
    for _ in 0..2 {
        answered(bench.store.start_run(start.clone()).await);
    }
    let told = bench.jobs.take_callbacks(start.run.created_at).await;
    let seen: Vec<_> = told.iter().map(|told| (told.subject.clone(), told.state)).collect();
    let subject = CallbackSubject::Run { id: start.run.id, document: body };
    assert_eq!(seen, [(subject, State::Running)]);
    let of_a_job = answered(bench.store.callbacks_of(whole(&start)).await);
    assert_eq!(of_a_job, [], "a run is no job, whatever its id");
}

pub async fn new_jobs_are_stored_and_counted(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([])).await;
    // Numbers go on where those of the run end.
    let later = run().task([]).reconciled([]).task([1]).build();
    let id = start.run.id;
    let jobs = renumbered(&later, id, 2);
    let progress = Some(RunProgress { next_index: 5, after_first: Some(2), ..start.run.progress });
    let reconcile_requests = vec![jobs[1].id];
    let step = RunStep { jobs: jobs.clone(), reconcile_requests, progress, ..bench.step(id).await };
    let effects = bench.done(step).await;
    assert_eq!(effects, StepEffects { scheduled: vec![Scheduled::from(&jobs[0])], ..StepEffects::default() });
    for job in &jobs {
        assert_eq!(bench.jobs.job(job.id).await, *job);
    }
    let run = bench.run(id).await;
    assert_eq!((run.total, run.open, run.progress.after_first), (4, 4, Some(2)));
    assert_eq!(bench.requested_ids().await, only([jobs[1].id]));
    bench.end(jobs[0].id, completes).await;
    bench.assert_stands(jobs[2].id, State::Scheduled, 0, 0).await;
}

/// The jobs of another run as those of this one, from a number on.
fn renumbered(other: &RunStart, run: RunId, first: u32) -> Vec<Job> {
    let renumber = |index: &mut u32| *index += first - 1;
    let job = |job: &Job| {
        let mut job = job.clone();
        if let Some(position) = &mut Arc::make_mut(&mut job.spec).position {
            position.run = run;
            renumber(&mut position.index);
            position.parents.iter_mut().chain(&mut position.children).for_each(renumber);
            job.id = position.job_id();
        }
        job
    };
    other.jobs.iter().map(job).collect()
}
