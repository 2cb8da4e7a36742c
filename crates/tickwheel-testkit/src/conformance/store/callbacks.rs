//! Callbacks: an end that somebody wants to hear of is written with the end, and told until it is over.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::callback::{Receiver, TRIES_KEPT_MAX};
use tickwheel_core::change::Change;
use tickwheel_core::ports::{
    Callback, CallbackRecord, CallbackResult, CallbackSubject, CallbackTry, Store, TakeCallbacks,
    TriedCallback, TryOutcome,
};
use tickwheel_core::settle::Settlement;
use tickwheel_core::{Job, JobId, SessionId, State};
use tokio::task::JoinSet;

use super::bench::{Bench, answered, completes, fails, goes_again, is_cancelled};
use crate::fixtures::{JobBuilder, at, job, session_id};

const URL: &str = "https://example.com/done?of='this'&ü";

fn told() -> JobBuilder {
    job().callback_url(URL)
}

/// A try that ended like this.
fn tried(result: CallbackResult) -> CallbackTry {
    CallbackTry { at: at(50_000), answer: "200 OK".into(), result }
}

/// What has to be told of an ended job.
fn callback_of(ended: &Job, id: i64) -> Callback {
    Callback {
        id,
        subject: CallbackSubject::Job(ended.id),
        url: URL.into(),
        state: ended.state(),
        attempt: ended.attempt,
        completed_at: ended.completed_at.expect("it has ended"),
        result: ended.result.clone(),
        error: ended.error.clone(),
        tries: 0,
    }
}

async fn is_told(bench: &Bench, ended: &Job, state: State) {
    assert_eq!(ended.state(), state);
    let taken = bench.take_callbacks(at(100_000)).await;
    let id = taken.first().map_or(0, |callback| callback.id);
    assert_eq!(taken, [callback_of(ended, id)]);
    answered(bench.store.settle_callback(session_id(1 << 40), id, tried(CallbackResult::Delivered)).await);
}

pub async fn every_end_is_told(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    is_told(&bench, &bench.settled(told(), completes).await, State::Completed).await;
    is_told(&bench, &bench.settled(told(), fails).await, State::Failed).await;
    is_told(&bench, &bench.settled(told(), is_cancelled).await, State::Cancelled).await;
    let waiting = bench.submit(told()).await;
    let cancelled = bench.changed(waiting.id, Change::Cancel, at(2_000)).await;
    is_told(&bench, &cancelled, State::Cancelled).await;
    let retrying = bench.settled(told(), goes_again).await;
    let cancelled = bench.changed(retrying.id, Change::Cancel, at(2_000)).await;
    is_told(&bench, &cancelled, State::Cancelled).await;
}

pub async fn nothing_is_told_unless_a_job_ended_and_somebody_wants_to_know(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    for end in [completes, fails, is_cancelled] {
        bench.settled(job(), end).await;
    }
    let unheard = bench.submit(job()).await;
    bench.changed(unheard.id, Change::Cancel, at(1)).await;
    bench.submit(told()).await;
    bench.settled(told(), goes_again).await;
    let running = bench.running(told()).await;
    bench.changed(running.id, Change::Cancel, at(1)).await;
    let stale = Settlement { attempt: 7, ..completes(&running) };
    bench.settle(stale).await;
    assert_eq!(bench.take_callbacks(at(100_000)).await, []);
}

pub async fn a_callback_is_due_when_the_job_ended(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let done = bench.settled(told(), |job| Settlement { ended_at: at(7_000), ..completes(job) }).await;
    assert_eq!(bench.take_callbacks(at(6_999)).await, []);
    assert_eq!(bench.take_callbacks(at(7_000)).await.len(), 1);
    assert_eq!(bench.job(done.id).await, done);
}

pub async fn a_callback_that_was_taken_is_not_given_to_another(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    bench.settled(told(), completes).await;
    let session = bench.open_session().await;
    let taken = bench.take_callbacks_for(session, at(10_000)).await;
    assert_eq!(taken.len(), 1);
    assert_eq!(bench.due_receivers(at(1_000_000)).await, []);
    assert_eq!(take(&bench, session, &[(URL, 10)]).await, []);
    assert_eq!(bench.take_callbacks(at(1_000_000)).await, []);
}

pub async fn nothing_is_taken_for_a_session_that_has_ended(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    bench.settled(told(), completes).await;
    let session = bench.open_session().await;
    answered(bench.store.end_session(session).await);
    assert_eq!(take(&bench, session, &[(URL, 10)]).await, []);
    assert_eq!(bench.due_receivers(at(10_000)).await, [Receiver::of(URL)]);
}

/// Whoever took them did not live to say what became of them.
pub async fn the_callbacks_of_an_ended_session_are_given_back(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    bench.settled(told(), completes).await;
    let (own, other) = (bench.open_session().await, bench.open_session().await);
    let taken = bench.take_callbacks_for(other, at(10_000)).await;
    assert_eq!(answered(bench.store.return_callbacks(own, vec![]).await), 0, "its sender is alive");
    answered(bench.store.end_session(other).await);
    assert_eq!(answered(bench.store.return_callbacks(own, vec![taken[0].id]).await), 0);
    assert_eq!(answered(bench.store.return_callbacks(own, vec![]).await), 1);
    assert_eq!(
        bench.take_callbacks_for(own, at(10_000)).await,
        taken,
        "due as before, and no try is counted"
    );
}

/// The answer to a take may have been lost.
pub async fn what_its_own_session_is_not_sending_is_given_back(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    bench.settled(told(), completes).await;
    bench.settled(told(), fails).await;
    let own = bench.open_session().await;
    let taken = bench.take_callbacks_for(own, at(10_000)).await;
    assert_eq!(taken.len(), 2);
    assert_eq!(answered(bench.store.return_callbacks(own, vec![taken[0].id]).await), 1);
    assert_eq!(bench.take_callbacks(at(10_000)).await, taken[1..]);
}

pub async fn a_callback_is_tried_again_when_told_so(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    bench.settled(told(), completes).await;
    let session = bench.open_session().await;
    let mut expected = bench.take_callbacks_for(session, at(10_000)).await;
    for tries in 1..4 {
        let due_at = at(10_000 + i64::from(tries) * 100);
        let again = CallbackResult::Again { due_at };
        answered(bench.store.settle_callback(session, expected[0].id, tried(again)).await);
        assert_eq!(bench.take_callbacks(due_at - Duration::from_millis(1)).await, []);
        expected[0].tries = tries;
        assert_eq!(bench.take_callbacks_for(session, due_at).await, expected);
    }
}

pub async fn a_late_sender_does_not_put_off_a_callback_that_another_sends(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    bench.settled(told(), completes).await;
    let (late, other) = (bench.open_session().await, bench.open_session().await);
    let taken = bench.take_callbacks_for(late, at(10_000)).await;
    answered(bench.store.end_session(late).await);
    answered(bench.store.return_callbacks(other, vec![]).await);
    assert_eq!(bench.take_callbacks_for(other, at(10_000)).await, taken);
    let again = CallbackResult::Again { due_at: at(0) };
    answered(bench.store.settle_callback(late, taken[0].id, tried(again)).await);
    assert_eq!(bench.due_receivers(at(10_000)).await, []);
    answered(bench.store.settle_callback(late, taken[0].id, tried(CallbackResult::Delivered)).await);
    answered(bench.store.end_session(other).await);
    assert_eq!(answered(bench.store.return_callbacks(late, vec![]).await), 0, "what arrived is over");
}

pub async fn a_callback_that_is_over_is_never_taken_again(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    bench.settled(told(), completes).await;
    let session = bench.open_session().await;
    let taken = bench.take_callbacks_for(session, at(10_000)).await;
    answered(bench.store.settle_callback(session, taken[0].id, tried(CallbackResult::Delivered)).await);
    assert_eq!(bench.take_callbacks(at(1_000_000)).await, []);
    // A sender that comes late finds nothing to change.
    let again = CallbackResult::Again { due_at: at(0) };
    answered(bench.store.settle_callback(session, taken[0].id, tried(again)).await);
    answered(bench.store.settle_callback(session, 1 << 40, tried(CallbackResult::Delivered)).await);
    assert_eq!(bench.take_callbacks(at(1_000_000)).await, []);
}

/// The longest due go first, so that none starves.
pub async fn no_more_callbacks_are_taken_than_asked_for(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let mut jobs = Vec::new();
    for ended_ms in [5_000, 3_000, 4_000] {
        let end = |job: &Job| Settlement { ended_at: at(ended_ms), ..completes(job) };
        jobs.push(bench.settled(told(), end).await.id);
    }
    let session = bench.open_session().await;
    let first = take(&bench, session, &[(URL, 2)]).await;
    let mut ids: Vec<_> = job_ids(&first);
    ids.sort();
    assert_eq!(ids, [jobs[1], jobs[2]]);
    let rest = take(&bench, session, &[(URL, 2)]).await;
    assert_eq!(job_ids(&rest), [jobs[0]]);
}

/// However many are due for another one.
pub async fn callbacks_are_taken_for_the_receivers_that_have_room(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    for host in ["b", "b", "b", "a", "c:81", "d"] {
        bench.settled(job().callback_url(&format!("http://{host}/done?{host}")), completes).await;
    }
    bench.settled(job().callback_url("http://B:80/?x"), completes).await;
    let later = |job: &Job| Settlement { ended_at: at(999_000), ..completes(job) };
    bench.settled(job().callback_url("http://e/"), later).await;
    let receivers: Vec<Receiver> =
        ["http://a", "http://b", "http://c:81", "http://d"].map(Receiver::of).to_vec();
    assert_eq!(bench.due_receivers(at(20_000)).await, receivers);

    let session = bench.open_session().await;
    let taken = take(&bench, session, &[("http://b/", 2), ("http://d/", 9), ("http://nobody/", 9)]).await;
    let mut urls: Vec<&str> = taken.iter().map(|callback| &*callback.url).collect();
    urls.sort_unstable();
    assert_eq!(urls, ["http://b/done?b", "http://b/done?b", "http://d/done?d"]);
    assert_eq!(bench.due_receivers(at(20_000)).await, receivers[..3]);
    assert_eq!(bench.due_receivers(at(999_000)).await.len(), 4);
}

pub async fn no_callback_goes_to_two_takers(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let jobs = bench.submit_all((0..30).map(|_| told())).await;
    for job in &jobs {
        bench.changed(job.id, Change::Cancel, at(1)).await;
    }
    let mut takers = JoinSet::new();
    for _ in 0..6 {
        let (store, session) = (bench.store.clone(), bench.open_session().await);
        takers.spawn(async move {
            let mut mine = Vec::new();
            for _ in 0..6 {
                mine.extend(take(&Bench::new(store.clone()), session, &[(URL, 7)]).await);
            }
            mine
        });
    }
    let taken: Vec<Callback> = takers.join_all().await.into_iter().flatten().collect();
    let mut ids: Vec<_> = job_ids(&taken);
    ids.sort();
    assert_eq!(ids, super::bench::sorted_ids(&jobs), "each goes to exactly one");
}

fn job_ids(callbacks: &[Callback]) -> Vec<JobId> {
    callbacks.iter().map(|callback| JobId::from_uuid(callback.subject.id())).collect()
}

async fn take(bench: &Bench, session: SessionId, rooms: &[(&str, usize)]) -> Vec<Callback> {
    let rooms = rooms.iter().map(|(url, room)| (Receiver::of(url), *room)).collect();
    answered(bench.store.take_callbacks(TakeCallbacks { session, rooms, now: at(20_000) }).await)
}

/// The first end is still told; the second is another story.
pub async fn a_retried_job_that_ends_again_has_another_callback(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let failed = bench.settled(told(), fails).await;
    let retried = bench.changed(failed.id, Change::Retry { payload: None }, at(5_000)).await;
    let running = bench.start(&retried).await;
    bench.settle(completes(&running)).await;
    let mut taken = bench.take_callbacks(at(100_000)).await;
    taken.sort_by_key(|callback| callback.attempt);
    assert_eq!(taken.len(), 2);
    assert_eq!(taken[0], callback_of(&failed, taken[0].id));
    assert_eq!(taken[1], callback_of(&bench.job(failed.id).await, taken[1].id));
    assert_ne!(taken[0].id, taken[1].id);
}

/// What waits, what was tried with which answer, and what was given up; of this job and no other.
pub async fn every_try_is_on_record(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let ended = bench.settled(told(), completes).await;
    let other = bench.settled(told(), fails).await;
    let records = async |job| answered(bench.store.callbacks_of(job).await);
    let session = bench.open_session().await;
    let taken = bench.take_callbacks_for(session, at(10_000)).await;
    let id = taken
        .iter()
        .find(|callback| callback.subject == CallbackSubject::Job(ended.id))
        .expect("it is told")
        .id;
    let mut expected = CallbackRecord {
        id,
        url: URL.into(),
        state: State::Completed,
        due_at: ended.completed_at,
        tries: Vec::new(),
    };
    assert_eq!(records(ended.id).await, [expected.clone()]);
    let ends = [
        (CallbackResult::Again { due_at: at(11_000) }, "503 Service Unavailable", Some(at(11_000))),
        (CallbackResult::Again { due_at: at(12_000) }, "no answer", Some(at(12_000))),
        (CallbackResult::GivenUp, "it is gone", None),
    ];
    for (number, (result, answer, due_at)) in (1..).zip(ends) {
        let tried = CallbackTry { at: at(10_000 + i64::from(number)), answer: answer.into(), result };
        answered(bench.store.settle_callback(session, id, tried.clone()).await);
        // Said twice, it happened once: the callback is not ours any more, or over.
        answered(bench.store.settle_callback(session, id, tried.clone()).await);
        let outcome = if due_at.is_some() { TryOutcome::Failed } else { TryOutcome::GivenUp };
        expected.tries.push(TriedCallback { number, at: tried.at, outcome, answer: tried.answer });
        expected.due_at = due_at;
        assert_eq!(records(ended.id).await, [expected.clone()]);
        bench.take_callbacks_for(session, at(12_000)).await;
    }
    assert_eq!(records(other.id).await.len(), 1);
    assert_eq!(records(job().build().id).await, []);
}

pub async fn of_many_tries_the_latest_are_kept(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let (session, ended) = (bench.open_session().await, bench.settled(told(), fails).await);
    let again = Callback::of(&ended).expect("it has ended and somebody wants to know");
    let mut ids = Vec::new();
    // Three at a time, so that the bound lies within a callback.
    for _ in 0..TRIES_KEPT_MAX.div_ceil(3) + 2 {
        ids.push(answered(bench.store.write_callback(again.clone()).await));
    }
    let all = bench.take_callbacks_for(session, at(1_000_000)).await;
    assert_eq!(all.len(), ids.len() + 1, "with the one that came with its end");
    for callback in &all {
        for number in 1..=3 {
            let result = match number {
                3 => CallbackResult::GivenUp,
                _ => CallbackResult::Again { due_at: at(1_000_000) },
            };
            let tried = CallbackTry { at: at(number), answer: number.to_string(), result };
            answered(bench.store.settle_callback(session, callback.id, tried).await);
            if number < 3 {
                bench.take_callbacks_for(session, at(1_000_000)).await;
            }
        }
    }
    let records = answered(bench.store.callbacks_of(ended.id).await);
    assert_eq!(records.iter().map(|record| record.tries.len()).sum::<usize>(), TRIES_KEPT_MAX);
    assert_eq!(records.last().map(|record| record.id), ids.last().copied());
    assert!(records.iter().skip(1).all(|record| record.tries.len() == 3));
    let other = bench.settled(told(), fails).await;
    is_told(&bench, &other, State::Failed).await;
    assert_eq!(answered(bench.store.callbacks_of(ended.id).await), records, "each job has its own");
}

pub async fn an_outcome_can_be_told_once_more(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let ended = bench.settled(told(), fails).await;
    is_told(&bench, &ended, State::Failed).await;
    assert_eq!(bench.take_callbacks(at(100_000)).await, []);
    let again = Callback::of(&ended).expect("it has ended and somebody wants to know");
    let id = answered(bench.store.write_callback(Callback { tries: 7, ..again }).await);
    is_told(&bench, &ended, State::Failed).await;
    let records = answered(bench.store.callbacks_of(ended.id).await);
    assert_eq!(records[1].id, id, "its number is answered");
    assert_eq!(records.iter().map(|record| record.tries.len()).collect::<Vec<_>>(), [1, 1]);
    assert!(records[0].id < records[1].id);
}
