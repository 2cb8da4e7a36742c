//! A task that waits for nothing any more is started by the transaction that says so, exactly where a claim would take it.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::ports::{Scheduled, Settled, SettledBatch, StartTasks, Store};
use tickwheel_core::settle::Settlement;
use tickwheel_core::{Job, SessionId, State, TargetKind};

use super::super::store::bench::{LATER, answered, completes, fails, goes_again, load_all};
use super::super::store::dependencies::child;
use super::bench::{RunBench, only, task, whole};
use crate::fixtures::{RunBuilder, job, run};

/// Leave to start whatever a claim at that time would take.
fn leave(session: SessionId) -> StartTasks {
    StartTasks { session, kinds: TargetKind::ALL.iter().copied().collect(), now: LATER }
}

async fn settle_and_start(bench: &RunBench, ends: Vec<Settlement>, start: StartTasks) -> SettledBatch {
    let count = ends.len();
    let batch = answered(bench.store.settle_and_start(ends, Some(start)).await);
    assert_eq!(batch.settled, vec![Settled::Applied; count]);
    for started in &batch.started {
        assert_eq!(bench.jobs.job(started.id).await, *started, "what was answered is what is stored");
    }
    batch
}

/// A run of two tasks, the first of which completes, and the second as it is then.
async fn pass_on(bench: &RunBench, builder: RunBuilder, start: StartTasks) -> (SettledBatch, Job) {
    let run = bench.start(builder).await;
    let first = bench.running(task(&run, 1)).await;
    let batch = settle_and_start(bench, vec![completes(&first)], start).await;
    (batch, bench.jobs.job(task(&run, 2)).await)
}

pub async fn a_task_is_started_by_the_end_of_the_last_that_it_waits_for(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([]).task([1, 2])).await;
    let (first, second) = (bench.running(task(&start, 1)).await, bench.running(task(&start, 2)).await);
    let session = bench.jobs.open_session().await;
    let before = bench.jobs.job(task(&start, 3)).await;
    let batch = settle_and_start(&bench, vec![completes(&first)], leave(session)).await;
    assert_eq!((batch.released, batch.started, batch.looks), (vec![], vec![], false));
    bench.assert_stands(task(&start, 3), State::Pending, 1, 0).await;

    let end = completes(&second);
    let batch = settle_and_start(&bench, vec![end.clone()], leave(session)).await;
    let expected = Job {
        state: State::Running,
        attempt: 1,
        session: Some(session),
        started_at: Some(LATER),
        deadline: Some(LATER + before.spec.timeout()),
        due_at: end.ended_at,
        parents: Default::default(),
        ..before
    };
    assert_eq!((batch.released, batch.started, batch.looks), (vec![], vec![expected.clone()], false));
    assert_eq!(bench.jobs.due_ids(load_all()).await, [], "it does not wait any more");
    let attempts = answered(bench.store.attempts(expected.id).await).expect("it exists");
    assert_eq!(attempts.iter().map(|attempt| attempt.number).collect::<Vec<_>>(), [1]);
    assert_eq!(bench.jobs.claim(session, &[expected.id], LATER).await, [], "it is taken");
}

pub async fn a_chain_runs_to_its_end_without_a_claim(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([1]).task([2]).task([3])).await;
    let session = bench.jobs.open_session().await;
    let mut running = bench.running(task(&start, 1)).await;
    for index in 2..=4 {
        let now = LATER + LATER_STILL * 2 * index;
        let batch =
            settle_and_start(&bench, vec![completes(&running)], StartTasks { now, ..leave(session) }).await;
        running = batch.started.into_iter().next().expect("the next one");
        assert_eq!(running.id, task(&start, index));
    }
    let batch = settle_and_start(&bench, vec![completes(&running)], leave(session)).await;
    assert_eq!((batch.started, batch.looks), (vec![], true));
    assert_eq!(bench.places().await, only([whole(&start)]));
    let ended = bench.jobs.job(running.id).await;
    assert_eq!((ended.state, ended.due_at), (State::Completed, running.due_at));
}

pub async fn what_a_claim_would_not_take_is_scheduled(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let session = bench.jobs.open_session().await;
    let chain = || run().task([]).task([1]);
    let is_scheduled = async |builder: RunBuilder, start: StartTasks| {
        let (batch, job) = pass_on(&bench, builder, start).await;
        assert_eq!((&batch.released[..], &batch.started[..]), (&[Scheduled::from(&job)][..], &[][..]));
        assert_eq!((job.state, job.attempt, job.session), (State::Scheduled, 0, None));
    };
    let not_due = chain().with_job(|job| job.execute_at = LATER + Duration::from_millis(1));
    is_scheduled(not_due, leave(session)).await;
    is_scheduled(chain(), StartTasks { kinds: Arc::new([TargetKind::Worker]), ..leave(session) }).await;
    answered(bench.store.set_queue_paused("held", true).await);
    is_scheduled(chain().with_job(|job| job.queue = "held".into()), leave(session)).await;
    let ended = bench.jobs.open_session().await;
    answered(bench.store.end_session(ended).await);
    is_scheduled(chain(), leave(ended)).await;
    let (batch, _) = pass_on(&bench, chain(), leave(session)).await;
    assert_eq!(batch.started.len(), 1, "and nothing else keeps it");
}

pub async fn nothing_is_started_while_halted(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([1])).await;
    let first = bench.running(task(&start, 1)).await;
    let session = bench.jobs.open_session().await;
    answered(bench.store.set_halted(true).await);
    let batch = settle_and_start(&bench, vec![completes(&first)], leave(session)).await;
    assert_eq!((batch.released.len(), batch.started.len()), (1, 0));
    bench.assert_stands(task(&start, 2), State::Scheduled, 0, 0).await;
}

/// Of what one batch lets go, each is dealt with for itself.
pub async fn a_batch_starts_some_and_schedules_others(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let builder = run().task([]).task([1]).task([1]).with_job(|job| job.execute_at = LATER + LATER_STILL);
    let start = bench.start(builder.conducted([1]).task([1])).await;
    let other = bench.start(run().task([]).task([]).task([1, 2])).await;
    let outside = child(&bench.jobs, job().depends_on([task(&start, 1)])).await;
    let session = bench.jobs.open_session().await;
    let ends = vec![
        completes(&bench.running(task(&start, 1)).await),
        fails(&bench.running(task(&other, 1)).await),
        completes(&bench.running(task(&other, 2)).await),
    ];
    let batch = settle_and_start(&bench, ends, leave(session)).await;
    let mut started: Vec<_> = batch.started.iter().map(|job| job.id).collect();
    started.sort_unstable();
    assert_eq!(started, [task(&start, 2), task(&start, 5)]);
    let mut released: Vec<_> = batch.released.iter().map(|job| job.due.id).collect();
    released.sort_unstable();
    let mut expected = [task(&start, 3), outside.id];
    expected.sort_unstable();
    assert_eq!(released, expected, "one is due later, the other is no task");
    assert!(batch.looks);
    bench.assert_stands(task(&other, 3), State::Pending, 0, 1).await;
    assert_eq!(bench.places().await, only([task(&start, 4), task(&other, 3), whole(&other)]));
}

/// All tasks of the graph are let go by their counts: a store may have a shorter way for that.
pub async fn an_end_that_is_refused_starts_nobody_and_is_not_counted(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([]).task([1]).task([1, 2])).await;
    let (first, second) = (bench.running(task(&start, 1)).await, bench.running(task(&start, 2)).await);
    let session = bench.jobs.open_session().await;
    let refused = Settlement { attempt: second.attempt + 1, ..completes(&second) };
    let ends = vec![completes(&first), refused.clone()];
    let batch = answered(bench.store.settle_and_start(ends, Some(leave(session))).await);
    assert_eq!(batch.settled, [Settled::Applied, Settled::Stale]);
    assert_eq!(batch.started.iter().map(|job| job.id).collect::<Vec<_>>(), [task(&start, 3)]);
    bench.assert_stands(task(&start, 4), State::Pending, 1, 0).await;
    assert_eq!(bench.run(start.run.id).await.open, 3);
    let again =
        answered(bench.store.settle_and_start(vec![completes(&first), refused], Some(leave(session))).await);
    assert_eq!((again.settled, again.started), (vec![Settled::Stale; 2], vec![]));
    assert_eq!(bench.run(start.run.id).await.open, 3);
    let batch = settle_and_start(&bench, vec![completes(&second)], leave(session)).await;
    assert_eq!(batch.started.iter().map(|job| job.id).collect::<Vec<_>>(), [task(&start, 4)]);
}

pub async fn where_something_went_wrong_before_the_conductor_hears_of_what_is_his(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([]).task([2]).task([1, 2])).await;
    let second = bench.running(task(&start, 2)).await;
    bench.end(task(&start, 1), fails).await;
    bench.look_away().await;
    let session = bench.jobs.open_session().await;
    let batch = settle_and_start(&bench, vec![completes(&second)], leave(session)).await;
    assert_eq!(batch.started.iter().map(|job| job.id).collect::<Vec<_>>(), [task(&start, 3)]);
    assert!(batch.looks);
    assert_eq!(bench.places().await, only([task(&start, 4)]));
    assert_eq!(bench.run(start.run.id).await.open, 2, "counted once");
}

/// A job outside of the run is told too, whichever way the store goes.
pub async fn whoever_waits_outside_of_the_run_is_let_go_as_well(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([1])).await;
    let outside = child(&bench.jobs, job().depends_on([task(&start, 1)])).await;
    let first = bench.running(task(&start, 1)).await;
    let session = bench.jobs.open_session().await;
    let batch = settle_and_start(&bench, vec![completes(&first)], leave(session)).await;
    assert_eq!(batch.started.iter().map(|job| job.id).collect::<Vec<_>>(), [task(&start, 2)]);
    assert_eq!(batch.released.iter().map(|job| job.due.id).collect::<Vec<_>>(), [outside.id]);
}

const LATER_STILL: Duration = Duration::from_secs(1);

pub async fn what_was_started_so_may_go_again_and_is_found_if_its_session_ends(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let session = bench.jobs.open_session().await;
    let (batch, _) = pass_on(&bench, run().task([]).task([1]), leave(session)).await;
    let again = goes_again(&batch.started[0]);
    assert_eq!(bench.jobs.settle(again).await, Settled::Applied);
    let id = batch.started[0].id;
    bench.assert_stands(id, State::Scheduled, 0, 0).await;
    assert_eq!(bench.jobs.due_ids(load_all()).await, [id]);
    let second = bench.running(id).await;
    assert_eq!(second.attempt, 2);
    assert_eq!(bench.jobs.settle(completes(&second)).await, Settled::Applied);

    let (batch, _) = pass_on(&bench, run().task([]).task([1]), leave(session)).await;
    answered(bench.store.end_session(session).await);
    assert_eq!(bench.jobs.abandoned(LATER, Duration::ZERO).await, [batch.started[0].id]);
}

/// Many batches at once on the parents of one task, all with leave to start it: one does.
pub async fn of_parents_that_end_at_the_same_moment_one_starts_the_task(store: Arc<dyn Store>) {
    const PARENTS: u32 = 24;
    let parents: [u32; PARENTS as usize] = std::array::from_fn(|n| n as u32 + 1);
    let builder = parents.iter().fold(run(), |builder, _| builder.task([]));
    let bench = RunBench::new(store);
    let start = bench.start(builder.task(parents)).await;
    let leave = leave(bench.jobs.open_session().await);
    let batches = bench.complete_at_once(parents.map(|index| task(&start, index)), Some(leave)).await;
    let started: Vec<_> = batches.iter().flat_map(|batch| &batch.started).map(|job| job.id).collect();
    assert_eq!(started, [task(&start, PARENTS + 1)]);
    assert!(batches.iter().all(|batch| batch.released.is_empty()));
    assert_eq!(bench.jobs.job(started[0]).await.attempt, 1);
}
