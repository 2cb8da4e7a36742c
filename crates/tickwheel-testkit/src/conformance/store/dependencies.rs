//! Jobs that depend on others: none starts before its parents completed, each is released once, and none waits in
//! silence.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::change::{Change, Edit};
use tickwheel_core::parents::{NOT_UNTIL_RELEASED, Parents};
use tickwheel_core::ports::{
    Changed, Creation, DueJob, JobQuery, LoadDue, Scheduled, Settled, Store, UnknownParent,
};
use tickwheel_core::settle::Settlement;
use tickwheel_core::state::{IllegalTransition, JobEvent};
use tickwheel_core::{Job, JobId, State, Timestamp};
use tokio::task::JoinSet;

use super::bench::{Bench, answered, completes, fails, goes_again, list_all, load_all, sorted_ids};
use crate::fixtures::{JobBuilder, JobInTest as _, at, job, job_id};

/// Submits a job that depends on others; answers it as it is stored.
pub async fn child(bench: &Bench, builder: JobBuilder) -> Job {
    let mut answers = answered(bench.store.submit_jobs(vec![builder.build_new()]).await);
    match answers.pop() {
        Some(Creation::Created(job)) => {
            assert_eq!(bench.job(job.id).await, *job, "the answer is the job as it is stored");
            *job
        }
        other => panic!("it is new: {other:?}"),
    }
}

/// Ends attempts in one batch, all of which have to be valid; answers who was released.
pub async fn released_by(bench: &Bench, ends: Vec<Settlement>) -> Vec<Job> {
    let count = ends.len();
    let batch = answered(bench.store.settle(ends).await);
    assert_eq!(batch.settled, vec![Settled::Applied; count]);
    let mut released = Vec::new();
    for answer in batch.released {
        released.push(as_answered(bench, &answer).await);
    }
    released
}

/// The job that has become scheduled, which the answer has to describe.
pub async fn as_answered(bench: &Bench, answer: &Scheduled) -> Job {
    let job = bench.job(answer.due.id).await;
    assert_eq!((Scheduled::from(&job), job.state()), (answer.clone(), State::Scheduled));
    job
}

pub async fn assert_stands(bench: &Bench, id: JobId, state: State, open: u32, failed: u32) {
    let job = bench.job(id).await;
    assert_eq!((job.state(), job.parents), (state, Parents { open, failed }));
    let waits = matches!(state, State::Pending | State::Blocked);
    assert_eq!(job.due_at == NOT_UNTIL_RELEASED, waits, "only a job that waits has no time: {job:?}");
}

fn later(at: Timestamp) -> Timestamp {
    at + Duration::from_secs(3_600)
}

pub async fn a_job_waits_until_its_parent_completes(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let parent = bench.running(job()).await;
    let requested = job().depends_on([parent.id]).tags(["kept"]).payload("[7]");
    let waiting = child(&bench, requested.clone()).await;
    let parents = Parents { open: 1, failed: 0 };
    let expected = requested.build().in_state(State::Pending).with(|job| {
        job.due_at = NOT_UNTIL_RELEASED;
        job.parents = parents;
    });
    assert_eq!(waiting, expected);
    let end = completes(&parent);
    let released = released_by(&bench, vec![end.clone()]).await;
    let expected = waiting.in_state(State::Scheduled).with(|job| {
        job.due_at = end.ended_at;
        job.parents = Parents::default();
    });
    assert_eq!(released, [expected]);
}

pub async fn a_released_job_runs_like_any_other(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let parent = bench.running(job()).await;
    child(&bench, job().depends_on([parent.id])).await;
    let released = released_by(&bench, vec![completes(&parent)]).await.remove(0);
    assert_eq!(bench.due(load_all()).await, [DueJob::from(&released)]);
    let running = bench.start(&released).await;
    assert_eq!(running.attempt, 1);
    assert_eq!(bench.settle(completes(&running)).await, Settled::Applied);
    assert_stands(&bench, running.id, State::Completed, 0, 0).await;
}

pub async fn a_job_requested_for_later_is_released_for_its_time(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let parent = bench.running(job()).await;
    let end = completes(&parent);
    let execute_at = later(end.ended_at);
    child(&bench, job().depends_on([parent.id]).due_at(execute_at)).await;
    let released = released_by(&bench, vec![end]).await;
    assert_eq!((released[0].state(), released[0].due_at), (State::Scheduled, execute_at));
}

pub async fn the_last_of_several_parents_releases(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let (first, second) = (bench.running(job()).await, bench.running(job().due_at(at(5_000))).await);
    let waiting = child(&bench, job().depends_on([first.id, second.id])).await;
    assert_stands(&bench, waiting.id, State::Pending, 2, 0).await;
    assert_eq!(released_by(&bench, vec![completes(&first)]).await, []);
    assert_stands(&bench, waiting.id, State::Pending, 1, 0).await;
    let end = completes(&second);
    let released = released_by(&bench, vec![end.clone()]).await;
    assert_eq!((released[0].id, released[0].due_at), (waiting.id, end.ended_at));
    assert_stands(&bench, waiting.id, State::Scheduled, 0, 0).await;
}

pub async fn parents_that_end_in_one_batch_release_once(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let (first, second) = (bench.running(job().due_at(at(5_000))).await, bench.running(job()).await);
    let both = child(&bench, job().depends_on([first.id, second.id])).await;
    let one = child(&bench, job().depends_on([second.id])).await;
    let ends = vec![completes(&first), completes(&second)];
    let released = released_by(&bench, ends.clone()).await;
    assert_eq!(sorted_ids(&released), [both.id, one.id]);
    assert_eq!(bench.job(both.id).await.due_at, ends[0].ended_at, "the latest end of its parents counts");
    assert_eq!(bench.job(one.id).await.due_at, ends[1].ended_at, "and of its parents alone");
}

pub async fn parents_that_have_completed_hold_nobody_up(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let first = bench.settled(job(), completes).await;
    let second = bench.settled(job(), completes).await;
    let requested = job().depends_on([first.id, second.id]).due_at(at(3_000));
    let dependent = child(&bench, requested.clone()).await;
    assert_eq!(dependent, requested.build(), "scheduled for the time that was requested");
    let running = bench.running(job()).await;
    let third = child(&bench, job().depends_on([first.id, running.id])).await;
    assert_stands(&bench, third.id, State::Pending, 1, 0).await;
}

/// Nothing is stored of it, not even its key; the others of its batch are.
pub async fn an_unknown_parent_is_refused_and_the_others_are_stored(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let (known, unknown) = (bench.submit(job()).await, job_id(at(0), 1 << 40));
    let refused = job().depends_on([known.id, unknown]).idempotency("key", 1).queue("never-seen").tags(["t"]);
    let (before, after) = (job(), job().depends_on([known.id]));
    let batch = [before.clone(), refused.clone(), after.clone()].map(JobBuilder::build_new).to_vec();
    let answers = answered(bench.store.submit_jobs(batch).await);
    let created = Creation::created(before.clone().build());
    assert_eq!(answers[..2], [created, Creation::Refused(UnknownParent(unknown))]);
    let stored = bench.job(after.build().id).await;
    assert_eq!(answers[2], Creation::created(stored));
    assert_eq!(answered(bench.store.get_job(refused.clone().build().id).await), None);
    let queues = answered(bench.store.list_queues().await);
    assert!(queues.iter().all(|queue| queue.name != "never-seen"));
    let tagged = JobQuery { tags: ["t".into()].into(), ..list_all() };
    assert_eq!(bench.list_ids(tagged).await, []);
    let again = refused.depends_on([known.id]).idempotency("key", 2);
    assert_stands(&bench, child(&bench, again).await.id, State::Pending, 1, 0).await;
    assert_eq!(bench.job(before.build().id).await.state(), State::Scheduled);
}

pub async fn a_parent_of_another_tenant_is_unknown(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let live = bench.submit(job().tenant("a")).await;
    let ended = bench.settled(job().tenant("a"), completes).await;
    for foreign in [live.id, ended.id] {
        let refused = job().tenant("b").depends_on([foreign]).build_new();
        let id = refused.job.id;
        let answers = answered(bench.store.submit_jobs(vec![refused]).await);
        assert_eq!(answers, [Creation::Refused(UnknownParent(foreign))]);
        assert_eq!(answered(bench.store.get_job(id).await), None);
    }
    child(&bench, job().tenant("a").depends_on([live.id, ended.id])).await;
}

pub async fn a_parent_named_twice_counts_once(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let parent = bench.running(job()).await;
    let waiting = child(&bench, job().depends_on([parent.id, parent.id])).await;
    assert_stands(&bench, waiting.id, State::Pending, 1, 0).await;
    assert_eq!(sorted_ids(&released_by(&bench, vec![completes(&parent)]).await), [waiting.id]);
}

pub async fn a_repeated_submission_makes_no_second_edge(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let (parent, other) = (bench.running(job()).await, bench.submit(job()).await);
    let waiting = child(&bench, job().depends_on([parent.id]).idempotency("key", 1)).await;
    let repeated = job().depends_on([parent.id]).idempotency("key", 1).build_new();
    let conflicting = job().depends_on([other.id]).idempotency("key", 2).build_new();
    let unknown = job().depends_on([job_id(at(0), 1 << 40)]).idempotency("key", 3).build_new();
    let answers = answered(bench.store.submit_jobs(vec![repeated, conflicting, unknown]).await);
    let existing = Creation::existing(waiting.clone());
    assert_eq!(
        answers,
        [existing, Creation::Conflict(waiting.id), Creation::Conflict(waiting.id)],
        "a key that was seen comes before everything else"
    );
    assert_stands(&bench, waiting.id, State::Pending, 1, 0).await;
    assert_eq!(sorted_ids(&released_by(&bench, vec![completes(&parent)]).await), [waiting.id]);
}

pub async fn a_settlement_that_is_repeated_counts_once(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let (first, second) = (bench.running(job()).await, bench.running(job()).await);
    let waiting = child(&bench, job().depends_on([first.id, second.id])).await;
    let end = completes(&first);
    released_by(&bench, vec![end.clone()]).await;
    let batch = answered(bench.store.settle(vec![end.clone(), end, fails(&first)]).await);
    assert_eq!((batch.settled, batch.released), (vec![Settled::Stale; 3], Vec::new()));
    assert_stands(&bench, waiting.id, State::Pending, 1, 0).await;
}

/// A parent that is named twice in a batch: only the settlement that is applied counts.
pub async fn of_two_ends_of_a_parent_in_one_batch_one_counts(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let parent = bench.running(job()).await;
    let waiting = child(&bench, job().depends_on([parent.id])).await;
    let batch = answered(bench.store.settle(vec![completes(&parent), fails(&parent)]).await);
    assert_eq!(batch.settled, [Settled::Applied, Settled::Stale]);
    assert_eq!(batch.released.iter().map(|job| job.due.id).collect::<Vec<_>>(), [waiting.id]);
    assert_stands(&bench, waiting.id, State::Scheduled, 0, 0).await;
}

/// It is refused because the parent runs another attempt, alone or before the end of that one.
pub async fn an_end_that_is_refused_counts_for_nobody(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let parent = bench.running(job()).await;
    let waiting = child(&bench, job().depends_on([parent.id])).await;
    let refused = Settlement { attempt: parent.attempt + 1, ..fails(&parent) };
    let batch = answered(bench.store.settle(vec![refused.clone()]).await);
    assert_eq!((batch.settled, batch.released), (vec![Settled::Stale], Vec::new()));
    assert_stands(&bench, waiting.id, State::Pending, 1, 0).await;
    let batch = answered(bench.store.settle(vec![refused, completes(&parent)]).await);
    assert_eq!(batch.settled, [Settled::Stale, Settled::Applied]);
    assert_eq!(batch.released.iter().map(|job| job.due.id).collect::<Vec<_>>(), [waiting.id]);
    assert_stands(&bench, waiting.id, State::Scheduled, 0, 0).await;
}

pub async fn a_parent_that_goes_again_releases_nobody(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let parent = bench.running(job()).await;
    let waiting = child(&bench, job().depends_on([parent.id])).await;
    assert_eq!(released_by(&bench, vec![goes_again(&parent)]).await, []);
    assert_stands(&bench, waiting.id, State::Pending, 1, 0).await;
    let second = bench.start(&bench.job(parent.id).await).await;
    assert_eq!(sorted_ids(&released_by(&bench, vec![completes(&second)]).await), [waiting.id]);
}

pub async fn a_cancelled_child_is_not_released(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let parent = bench.running(job()).await;
    let waiting = child(&bench, job().depends_on([parent.id])).await;
    let cancelled = bench.changed(waiting.id, Change::Cancel, at(10)).await;
    assert_eq!((cancelled.state(), cancelled.completed_at), (State::Cancelled, Some(at(10))));
    assert_eq!(released_by(&bench, vec![completes(&parent)]).await, []);
    assert_eq!(bench.job(waiting.id).await, cancelled);
}

pub async fn jobs_that_wait_for_others_are_neither_loaded_nor_claimed(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let open = bench.submit(job().due_at(later(at(0)))).await;
    let failed = bench.settled(job(), fails).await;
    let pending = child(&bench, job().depends_on([open.id])).await;
    let blocked = child(&bench, job().depends_on([failed.id])).await;
    let whole = LoadDue { until: Timestamp::MAX, ..load_all() };
    assert_eq!(bench.due_ids(whole).await, [open.id]);
    let session = bench.open_session().await;
    assert_eq!(bench.claim(session, &[pending.id, blocked.id], Timestamp::MAX).await, []);
    for waiting in [pending, blocked] {
        assert_eq!(bench.job(waiting.id).await, waiting);
        for (change, event) in [
            (Change::Pause, JobEvent::Paused),
            (Change::Resume, JobEvent::Resumed),
            (Change::RunNow, JobEvent::RunNow),
        ] {
            let illegal = Changed::Illegal(IllegalTransition { state: waiting.state(), event });
            assert_eq!(bench.change(waiting.id, change, at(5_000)).await, illegal);
        }
    }
}

pub async fn jobs_that_wait_for_others_are_found_by_their_state(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let open = bench.submit(job()).await;
    let failed = bench.settled(job(), fails).await;
    let pending = child(&bench, job().depends_on([open.id])).await;
    let blocked = child(&bench, job().depends_on([failed.id])).await;
    for waiting in [pending, blocked] {
        let query = JobQuery { states: [waiting.state()].into(), ..list_all() };
        assert_eq!(bench.list(query).await, [waiting]);
    }
}

pub async fn an_edit_of_a_waiting_job_is_in_force_when_it_is_released(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let parent = bench.running(job()).await;
    let end = completes(&parent);
    let waiting = child(&bench, job().depends_on([parent.id])).await;
    let execute_at = later(end.ended_at);
    let edit = Edit { execute_at: Some(execute_at), ..Edit::default() };
    let edited = bench.changed(waiting.id, Change::Edit(edit), at(10)).await;
    assert_eq!((edited.state(), edited.due_at), (State::Pending, NOT_UNTIL_RELEASED));
    assert_eq!(released_by(&bench, vec![end]).await[0].due_at, execute_at);
}

pub async fn many_children_of_many_parents_are_released_together(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let session = bench.open_session().await;
    let parents = sorted_ids(&bench.submit_all((0..150).map(|_| job())).await);
    let running = bench.claim(session, &parents, at(0)).await;
    let children: Vec<_> = (0..150).map(|_| job().depends_on(parents.clone()).build_new()).collect();
    let mut ids: Vec<JobId> = children.iter().map(|new| new.job.id).collect();
    ids.sort();
    answered(bench.store.submit_jobs(children).await);
    let (last, others) = running.split_last().expect("there are parents");
    assert_eq!(released_by(&bench, others.iter().map(completes).collect()).await, []);
    assert_eq!(sorted_ids(&released_by(&bench, vec![completes(last)]).await), ids);
}

/// Every child has three parents that end in different batches at the same moment: exactly one of them releases it.
pub async fn parents_that_end_at_the_same_moment_release_each_child_once(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let session = bench.open_session().await;
    let parents = sorted_ids(&bench.submit_all((0..32).map(|_| job())).await);
    let running = bench.claim(session, &parents, at(0)).await;
    let threes = (0..32).map(|n| [parents[n], parents[(n + 8) % 32], parents[(n + 21) % 32]]);
    let children: Vec<_> = threes.map(|three| job().depends_on(three).build_new()).collect();
    let mut ids: Vec<JobId> = children.iter().map(|new| new.job.id).collect();
    ids.sort();
    answered(bench.store.submit_jobs(children).await);
    let mut settling = JoinSet::new();
    for batch in running.chunks(4) {
        let (store, ends) = (bench.store.clone(), batch.iter().map(completes).collect());
        settling.spawn(async move { answered(store.settle(ends).await).released });
    }
    let released = settling.join_all().await.into_iter().flatten();
    let mut released: Vec<JobId> = released.map(|job| job.due.id).collect();
    released.sort();
    assert_eq!(released, ids);
    for id in ids {
        assert_stands(&bench, id, State::Scheduled, 0, 0).await;
    }
}

/// Whichever comes first, the child is told of its parent's end once: by its own submission, or by the settlement.
pub async fn a_parent_that_ends_while_its_child_is_submitted_is_counted_once(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    for turn in 0..40 {
        let parent = bench.running(job()).await;
        let new = job().depends_on([parent.id]).build_new();
        let id = new.job.id;
        let end = if turn % 2 == 0 { completes(&parent) } else { fails(&parent) };
        let (submitted, batch) =
            tokio::join!(bench.store.submit_jobs(vec![new]), bench.store.settle(vec![end]),);
        let (submitted, released) = (answered(submitted), answered(batch).released);
        let [Creation::Created(dependent)] = &submitted[..] else { panic!("it is new") };
        if turn % 2 == 0 {
            assert_stands(&bench, id, State::Scheduled, 0, 0).await;
            assert_eq!(
                released.is_empty(),
                dependent.state() == State::Scheduled,
                "somebody is told, and once"
            );
        } else {
            assert_stands(&bench, id, State::Blocked, 0, 1).await;
        }
    }
}
