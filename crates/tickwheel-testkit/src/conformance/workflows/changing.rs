//! What a step does to the jobs of its run, each kind of change, and what the others make of it.

use std::sync::Arc;

use tickwheel_core::ports::{CallbackSubject, JobQuery, Settled, Store};
use tickwheel_core::settle::Burst;
use tickwheel_core::workflow::{FanOut, RunStep, TaskChange};
use tickwheel_core::{AttemptOutcome, Failure, Job, JobId, JsonText, Payload, State};

use super::super::store::bench::{answered, completes, fails, goes_again, is_cancelled, list_all, load_all};
use super::super::store::dependencies::{as_answered, child};
use super::bench::{RunBench, STEP_AT, ends, only, task, whole};
use crate::fixtures::{JobInTest as _, items_of, job, run};

const RELEASE: TaskChange = TaskChange::Release { payload: None };

pub async fn a_released_task_is_due_and_runs(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().reconciled([]).reconciled([])).await;
    let payload = Payload::from_stored(r#"{"rows":[1,2]}"#);
    let with_data = TaskChange::Release { payload: Some(payload.clone()) };
    let id = start.run.id;
    let effects = bench.change(id, [(task(&start, 1), RELEASE), (task(&start, 2), with_data)]).await;
    let expected = |job: &Job| job.clone().in_state(State::Scheduled).with(|job| job.due_at = STEP_AT);
    let second = expected(&start.jobs[1]).with(|job| job.payload = payload);
    for (answer, expected) in effects.scheduled.iter().zip([expected(&start.jobs[0]), second]) {
        assert_eq!(as_answered(&bench.jobs, answer).await, expected);
    }
    assert_eq!(effects.scheduled.len(), 2);
    bench.end(task(&start, 2), completes).await;
    assert_eq!(bench.run(id).await.open, 1);
}

pub async fn a_task_is_blocked_and_unblocked(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([1])).await;
    let id = task(&start, 2);
    bench.change(start.run.id, [(id, TaskChange::Block)]).await;
    bench.assert_stands(id, State::Blocked, 1, 0).await;
    bench.change(start.run.id, [(id, TaskChange::Unblock)]).await;
    bench.assert_stands(id, State::Pending, 1, 0).await;
    bench.change(start.run.id, [(id, TaskChange::Block)]).await;
    let batch = bench.end(task(&start, 1), completes).await;
    assert_eq!(batch.released[0].due.id, id, "its counts let it go, for what blocked it is no more");
    assert_eq!(bench.reconcile_requests().await, []);
}

/// Items come, the fan-out counts them and nothing else, and joins them.
pub async fn a_fan_out_counts_its_items_until_it_is_joined(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([]).watched([1, 2]).fan_out().task([3])).await;
    let (id, fan_out_task) = (start.run.id, task(&start, 3));
    bench.end(task(&start, 1), completes).await;
    bench.clear_reconcile_requests().await;
    let (fan_out, jobs) = items_of(&start.run, &start.jobs[2], 3);
    let changes = vec![(fan_out_task, TaskChange::Expand { fan_out, fresh: true })];
    let items: Vec<_> = jobs.iter().map(|job| job.id).collect();
    let effects = bench.done(RunStep { changes, jobs, ..bench.step(id).await }).await;
    assert_eq!(effects.scheduled.iter().map(|job| job.due.id).collect::<Vec<_>>(), items);
    bench.assert_stands(fan_out_task, State::Pending, 3, 0).await;
    assert_eq!(bench.tasks(id).await[2].fan_out, Some(fan_out));
    let run = bench.run(id).await;
    assert_eq!((run.total, run.open), (7, 6));

    // What it waited for before is nothing to it any more.
    bench.end(task(&start, 2), completes).await;
    bench.assert_stands(fan_out_task, State::Pending, 3, 0).await;
    assert_eq!(bench.reconcile_requests().await, []);
    for (number, item) in items.iter().enumerate() {
        assert!(bench.end(*item, completes).await.reconcile_requested, "it is watched");
        bench.assert_stands(fan_out_task, State::Pending, 2 - number as u32, 0).await;
    }
    assert_eq!(bench.requested_ids().await, only([fan_out_task]));
    let result = Some(JsonText::from_checked("[1,2,3]"));
    let join = TaskChange::End { state: State::Completed, result: result.clone(), error: None };
    let effects = bench.change(id, [(fan_out_task, join)]).await;
    assert_eq!((&effects.ended[..], effects.scheduled[0].due.id), (&[fan_out_task][..], task(&start, 4)));
    let joined = bench.jobs.job(fan_out_task).await;
    assert_eq!((joined.state(), joined.result, joined.attempt), (State::Completed, result, 0));
    assert_eq!(bench.run(id).await.open, 1);
}

pub async fn more_items_are_released_without_being_counted_anew(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().watched([]).fan_out()).await;
    let (id, fan_out_task) = (start.run.id, task(&start, 1));
    let (fan_out, jobs) = items_of(&start.run, &start.jobs[0], 3);
    let first = jobs[0].id;
    let fewer = FanOut { released: 1, ..fan_out };
    let changes = vec![(fan_out_task, TaskChange::Expand { fan_out: fewer, fresh: true })];
    bench.done(RunStep { changes, jobs, ..bench.step(id).await }).await;
    bench.end(first, completes).await;
    bench.change(id, [(fan_out_task, TaskChange::Expand { fan_out, fresh: false })]).await;
    bench.assert_stands(fan_out_task, State::Pending, 2, 0).await;
    assert_eq!(bench.tasks(id).await[0].fan_out, Some(fan_out));
}

/// Items that are still to be made are waited for, also by a fan-out that was skipped and comes back.
pub async fn items_are_made_in_several_steps(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().reconciled([]).fan_out().task([1])).await;
    let (id, fan_out_task) = (start.run.id, task(&start, 1));
    let (fan_out, mut jobs) = items_of(&start.run, &start.jobs[0], 3);
    let third = jobs.split_off(2);
    let (first, second) = (jobs[0].id, jobs[1].id);
    let unmade = FanOut { unmade: 1, released: 2, ..fan_out };
    let changes = vec![(fan_out_task, TaskChange::Expand { fan_out: unmade, fresh: true })];
    bench.done(RunStep { changes, jobs, ..bench.step(id).await }).await;
    bench.end(first, completes).await;
    bench.assert_stands(fan_out_task, State::Pending, 2, 0).await;
    bench.change(id, [(fan_out_task, ends(State::Skipped))]).await;
    bench.change(id, [(fan_out_task, TaskChange::Retry)]).await;
    bench.assert_stands(fan_out_task, State::Pending, 2, 0).await;
    bench.end(second, completes).await;
    bench.clear_reconcile_requests().await;
    let changes = vec![(fan_out_task, TaskChange::Expand { fan_out, fresh: false })];
    let last = third[0].id;
    bench.done(RunStep { changes, jobs: third, ..bench.step(id).await }).await;
    bench.assert_stands(fan_out_task, State::Pending, 1, 0).await;
    bench.end(last, completes).await;
    bench.assert_stands(fan_out_task, State::Pending, 0, 0).await;
    assert!(bench.requested_ids().await.contains(&fan_out_task), "all its items are done");
}

/// As when they are settled: children count them, the run too, and reconciles are requested.
pub async fn a_task_that_is_ended_counts_like_one_that_ran(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let builder = run().reconciled([]).reconciled([]).task([1]).task([2]).reconciled([1, 2]).watched([1]);
    let start = bench.start(builder).await;
    let id = start.run.id;
    let effects = bench.change(id, [(task(&start, 1), ends(State::Completed))]).await;
    assert_eq!(effects.ended, [task(&start, 1)]);
    assert_eq!(effects.scheduled.iter().map(|job| job.due.id).collect::<Vec<_>>(), [task(&start, 3)]);
    assert_eq!(effects.scheduled[0].due.due_at, STEP_AT);
    assert_eq!(
        bench.requested_ids().await,
        only([task(&start, 6)]),
        "nothing of the run has to be reconciled"
    );
    bench.clear_reconcile_requests().await;

    // One that is skipped has not completed: it releases nobody.
    let effects = bench.change(id, [(task(&start, 2), ends(State::Skipped))]).await;
    assert_eq!((&effects.ended[..], effects.scheduled.len()), (&[task(&start, 2)][..], 0));
    bench.assert_stands(task(&start, 4), State::Pending, 0, 1).await;
    bench.assert_stands(task(&start, 5), State::Pending, 0, 1).await;
    assert_eq!(bench.requested_ids().await, only([whole(&start), task(&start, 4), task(&start, 5)]));
    assert_eq!(bench.run(id).await.open, 4);
}

/// However it ends, it is in history as it was told, is told to whoever wants to know, and is no dead letter.
pub async fn an_ended_task_is_in_history_in_its_state(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    for state in [State::Completed, State::Skipped, State::Failed, State::Cancelled] {
        let called =
            |job: &mut Job| Arc::make_mut(&mut job.spec).callback_url = Some("http://a.example".into());
        let start = bench.start(run().reconciled([]).with_job(called)).await;
        let error = (state != State::Completed).then(|| Failure::new("why", "because"));
        let result = (state == State::Completed).then(|| JsonText::from_checked("[7]"));
        let end = TaskChange::End { state, result: result.clone(), error: error.clone() };
        bench.change(start.run.id, [(task(&start, 1), end)]).await;
        let expected = start.jobs[0].clone().in_state(state).with(|job| {
            job.due_at = STEP_AT;
            job.completed_at = Some(STEP_AT);
            job.result = result.clone();
            job.error = error.clone();
        });
        assert_eq!(bench.jobs.job(expected.id).await, expected);
        assert_eq!(answered(bench.store.attempts(expected.id).await), Some(Vec::new()));
        let told = bench.jobs.take_callbacks(STEP_AT).await;
        let told: Vec<_> = told.into_iter().map(|c| (c.subject, c.state, c.result, c.error)).collect();
        assert_eq!(told, [(CallbackSubject::Job(expected.id), state, result, error)]);
        let query = JobQuery { states: [state].into(), limit: 10, ..Default::default() };
        assert_eq!(bench.jobs.list(query).await, [expected]);
    }
    assert_eq!(answered(bench.store.count_dead_letters().await), 0);
}

pub async fn a_running_task_is_asked_to_stop(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([])).await;
    let running = bench.running(task(&start, 1)).await;
    let effects = bench.change(start.run.id, [(running.id, TaskChange::Stop)]).await;
    assert_eq!((&effects.stopping[..], effects.ended.len()), (&[running.id][..], 0));
    assert_eq!(bench.jobs.job(running.id).await, running.clone().with(|job| job.cancel_requested = true));
    let settled = answered(bench.store.settle(vec![goes_again(&running)]).await);
    assert_eq!(settled.settled, [Settled::CancelRequested]);
    assert!(bench.settle_all(vec![is_cancelled(&running)]).await.reconcile_requested);
    assert_eq!(bench.run(start.run.id).await.open, 0);
}

pub async fn a_task_that_awaits_a_report_ends_at_once(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([1])).await;
    let running = bench.running(task(&start, 1)).await;
    answered(bench.store.await_report(running.id, 1).await);
    let effects = bench.change(start.run.id, [(running.id, TaskChange::Stop)]).await;
    assert_eq!((effects.stopping.len(), &effects.ended[..]), (0, &[running.id][..]));
    let cancelled = bench.jobs.job(running.id).await;
    assert_eq!((cancelled.state(), cancelled.completed_at), (State::Cancelled, Some(STEP_AT)));
    assert_eq!(cancelled.last_outcome, Some(AttemptOutcome::Cancelled));
    bench.assert_stands(task(&start, 2), State::Pending, 0, 1).await;
    assert_eq!(bench.run(start.run.id).await.open, 1);
    assert!(bench.requested_ids().await.contains(&whole(&start)));
}

/// It has run before, and waits all the same for the one that came back with it.
pub async fn a_task_that_begins_anew_waits_for_what_it_depends_on(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().reconciled([]).task([1]).task([2])).await;
    let (id, first, second) = (start.run.id, task(&start, 1), task(&start, 2));
    bench.change(id, [(first, ends(State::Skipped))]).await;
    bench.change(id, [(second, RELEASE)]).await;
    bench.end(second, fails).await;
    let effects = bench.change(id, [(first, TaskChange::Retry), (second, TaskChange::Restart)]).await;
    assert_eq!(effects, Default::default());
    bench.assert_stands(second, State::Pending, 1, 0).await;
    bench.assert_stands(task(&start, 3), State::Pending, 1, 0).await;
    assert_eq!(bench.run(id).await.open, 3);
    bench.change(id, [(first, RELEASE)]).await;
    bench.end(first, completes).await;
    bench.assert_stands(second, State::Scheduled, 0, 0).await;
    bench.end(second, completes).await;
    bench.assert_stands(task(&start, 3), State::Scheduled, 0, 0).await;
}

/// The others of the step are carried out, and a reconcile is requested.
pub async fn what_does_not_apply_is_left_out_and_requests_a_reconcile(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([]).task([]).reconciled([])).await;
    let id = start.run.id;
    let running = bench.running(task(&start, 2)).await;
    bench.end(task(&start, 3), completes).await;
    assert_eq!(bench.reconcile_requests().await, []);
    let nobody = JobId::of_task(id, 99);
    for (at, change) in [
        (task(&start, 1), RELEASE),
        (task(&start, 1), TaskChange::Stop),
        (running.id, ends(State::Cancelled)),
        (task(&start, 3), ends(State::Skipped)),
        (task(&start, 3), TaskChange::Retry),
        (nobody, RELEASE),
    ] {
        let before = bench.jobs.list(list_all()).await;
        assert_eq!(bench.change(id, [(at, change)]).await, Default::default());
        assert_eq!(bench.requested_ids().await, only([whole(&start)]));
        assert_eq!(bench.jobs.list(list_all()).await, before);
        bench.clear_reconcile_requests().await;
    }
    let effects = bench.change(id, [(task(&start, 1), RELEASE), (task(&start, 4), RELEASE)]).await;
    assert_eq!(effects.scheduled.len(), 1, "the other one is released all the same");
    assert_eq!(bench.requested_ids().await, only([whole(&start)]));
    assert_eq!(bench.run(id).await.open, 3);
}

/// It runs again at once; those that wait for it wait again; the attempt that failed is remembered.
pub async fn a_retried_task_is_waited_for_again(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([]).task([1, 2]).reconciled([1]).watched([1])).await;
    let (id, failed) = (start.run.id, task(&start, 1));
    bench.end(failed, fails).await;
    assert_eq!(answered(bench.store.count_dead_letters().await), 1);
    bench.clear_reconcile_requests().await;
    let effects = bench.change(id, [(failed, TaskChange::Retry)]).await;
    assert_eq!((effects.scheduled[0].due.id, effects.scheduled[0].due.due_at), (failed, STEP_AT));
    assert_eq!(answered(bench.store.count_dead_letters().await), 0);
    bench.assert_stands(task(&start, 3), State::Pending, 2, 0).await;
    bench.assert_stands(task(&start, 4), State::Pending, 1, 0).await;
    assert_eq!(bench.run(id).await.open, 5);
    assert_eq!(bench.requested_ids().await, only([task(&start, 5)]), "only who watches is told");
    let attempts = answered(bench.store.attempts(failed).await).expect("it exists");
    assert_eq!(
        attempts.iter().map(|attempt| attempt.outcome).collect::<Vec<_>>(),
        [Some(AttemptOutcome::Failed)]
    );
    bench.end(task(&start, 2), completes).await;
    let batch = bench.end(failed, completes).await;
    assert_eq!(batch.released[0].due.id, task(&start, 3));
    let retried = bench.jobs.job(failed).await;
    assert_eq!((retried.attempt, retried.retries, retried.burst), (2, 0, Burst::default()));
}

/// Parents and children that come back together, in whatever order they are named: the counts are right.
pub async fn tasks_that_come_back_together_count_each_other(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    for children_first in [false, true] {
        let start = bench.start(run().task([]).task([]).task([1, 2]).task([3])).await;
        let id = start.run.id;
        bench.end(task(&start, 2), completes).await;
        bench.end(task(&start, 1), fails).await;
        let cancelled = ends(State::Cancelled);
        bench.change(id, [(task(&start, 3), cancelled.clone()), (task(&start, 4), cancelled)]).await;
        assert_eq!(bench.run(id).await.open, 0);
        let mut changes: Vec<_> = [1, 3, 4].map(|index| (task(&start, index), TaskChange::Retry)).to_vec();
        if children_first {
            changes.reverse();
        }
        let effects = bench.done(RunStep { changes, ..bench.step(id).await }).await;
        assert_eq!(effects.scheduled.len(), 1, "those that have never run are the reconciler's to release");
        bench.assert_stands(task(&start, 3), State::Pending, 1, 0).await;
        bench.assert_stands(task(&start, 4), State::Pending, 1, 0).await;
        assert_eq!(bench.run(id).await.open, 3);
        for index in [1, 3] {
            let batch = bench.end(task(&start, index), completes).await;
            assert_eq!(batch.released.len(), 1, "task {index}, children first: {children_first}");
        }
        bench.clear_reconcile_requests().await;
    }
}

/// A fan-out that comes back counts its items as they stand.
pub async fn a_retried_fan_out_counts_its_items(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).reconciled([1]).fan_out()).await;
    let (id, fan_out_task) = (start.run.id, task(&start, 2));
    bench.end(task(&start, 1), completes).await;
    let (fan_out, jobs) = items_of(&start.run, &start.jobs[1], 3);
    let items: Vec<_> = jobs.iter().map(|job| job.id).collect();
    let changes = vec![(fan_out_task, TaskChange::Expand { fan_out, fresh: true })];
    bench.done(RunStep { changes, jobs, ..bench.step(id).await }).await;
    bench.end(items[0], completes).await;
    bench.end(items[1], fails).await;
    bench.change(id, [(fan_out_task, ends(State::Cancelled))]).await;
    bench.end(items[2], completes).await;
    bench.change(id, [(fan_out_task, TaskChange::Retry)]).await;
    bench.assert_stands(fan_out_task, State::Pending, 0, 1).await;
    bench.change(id, [(items[1], TaskChange::Retry)]).await;
    bench.assert_stands(fan_out_task, State::Pending, 1, 0).await;
    bench.clear_reconcile_requests().await;
    assert!(bench.end(items[1], completes).await.reconcile_requested);
    assert!(bench.requested_ids().await.contains(&fan_out_task));
}

/// Somebody says that a failed task is done after all: what waits for it goes on.
pub async fn a_failed_task_can_be_completed_in_one_step(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([1]).task([])).await;
    let (id, failed) = (start.run.id, task(&start, 1));
    let outside = child(&bench.jobs, job().depends_on([failed])).await;
    bench.end(failed, fails).await;
    assert_eq!(bench.jobs.job(outside.id).await.state(), State::Blocked);
    bench.clear_reconcile_requests().await;
    let result = Some(JsonText::from_checked("[1]"));
    let done = TaskChange::End { state: State::Completed, result: result.clone(), error: None };
    let effects = bench.change(id, [(failed, TaskChange::Retry), (failed, done)]).await;
    assert_eq!(effects.ended, [failed]);
    let mut released: Vec<_> = effects.scheduled.iter().map(|job| job.due.id).collect();
    released.sort();
    let mut expected = vec![task(&start, 2), outside.id];
    expected.sort();
    assert_eq!(released, expected);
    let job = bench.jobs.job(failed).await;
    assert_eq!((job.state(), job.result, job.error, job.attempt), (State::Completed, result, None, 1));
    assert_eq!(bench.run(id).await.open, 2);
    assert_eq!(answered(bench.store.count_dead_letters().await), 0);
    assert_eq!(answered(bench.store.attempts(failed).await).map(|attempts| attempts.len()), Some(1));
}

/// So many that no store would do them one by one.
pub async fn a_large_step_is_carried_out_whole(store: Arc<dyn Store>) {
    const TASKS: u32 = 600;
    let bench = RunBench::new(store);
    let mut builder = run().task([]);
    for _ in 1..TASKS {
        builder = builder.task([1]);
    }
    let start = bench.start(builder).await;
    let id = start.run.id;
    bench.end(task(&start, 1), fails).await;
    let all = |change: TaskChange| (2..=TASKS).map(|index| (task(&start, index), change.clone())).collect();
    let step = RunStep { changes: all(ends(State::Cancelled)), ..bench.step(id).await };
    assert_eq!(bench.done(step).await.ended.len(), TASKS as usize - 1);
    assert_eq!(bench.run(id).await.open, 0);
    let mut changes: Vec<_> = all(TaskChange::Retry);
    changes.push((task(&start, 1), TaskChange::Retry));
    bench.done(RunStep { changes, ..bench.step(id).await }).await;
    assert_eq!(bench.run(id).await.open, TASKS);
    let batch = bench.end(task(&start, 1), completes).await;
    assert_eq!(batch.released.len(), TASKS as usize - 1);
}

/// A task that waits for a retry is ended like any other that does not run.
pub async fn a_task_that_waits_for_a_retry_can_be_ended(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([])).await;
    bench.end(task(&start, 1), goes_again).await;
    let before = bench.jobs.job(task(&start, 1)).await;
    let error = Some(Failure::new("run_cancelled", "its run was cancelled"));
    let end = TaskChange::End { state: State::Cancelled, result: None, error: error.clone() };
    bench.change(start.run.id, [(before.id, end)]).await;
    let after = bench.jobs.job(before.id).await;
    assert_eq!((after.state(), after.error, after.due_at), (State::Cancelled, error, before.due_at));
    assert_eq!(answered(bench.store.attempts(before.id).await).map(|attempts| attempts.len()), Some(1));
    assert_eq!(bench.jobs.due_ids(load_all()).await, []);
}
