//! What people do to a job: in force once acknowledged, or refused with the reason.

use std::sync::Arc;

use tickwheel_core::change::{Change, Edit};
use tickwheel_core::ports::{Changed, DueJob, LoadDue, Store};
use tickwheel_core::settle::Burst;
use tickwheel_core::state::{IllegalTransition, JobEvent};
use tickwheel_core::{Job, JobId, JsonText, Priority, State};
use tokio::task::JoinSet;

use super::bench::{Bench, answered, broken, completes, fails, goes_again, is_cancelled, load_all};
use crate::fixtures::{JobInTest as _, at, job, job_id};

const RETRY: Change = Change::Retry { payload: None };

pub async fn an_unknown_job_cannot_be_changed(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let unknown = job_id(at(0), 1 << 40);
    for change in [Change::Cancel, Change::Pause, Change::Resume, Change::RunNow, RETRY] {
        assert_eq!(bench.change(unknown, change, at(1)).await, Changed::NotFound);
    }
    assert_eq!(answered(bench.store.get_job(unknown).await), None);
}

async fn refused(bench: &Bench, job: &Job, change: Change, event: JobEvent) {
    let illegal = Changed::Illegal(IllegalTransition { state: job.state(), event });
    assert_eq!(bench.change(job.id, change, at(5_000)).await, illegal);
    assert_eq!(bench.job(job.id).await, *job, "a refused change changes nothing");
}

pub async fn a_change_the_state_does_not_allow_is_refused(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let edit = || Change::Edit(Edit::default());
    let waiting = bench.submit(job()).await;
    refused(&bench, &waiting, RETRY, JobEvent::Retried).await;
    let paused = bench.submit(job().state(State::Paused)).await;
    refused(&bench, &paused, RETRY, JobEvent::Retried).await;
    let running = bench.running(job()).await;
    refused(&bench, &running, Change::Pause, JobEvent::Paused).await;
    refused(&bench, &running, Change::Resume, JobEvent::Resumed).await;
    refused(&bench, &running, Change::RunNow, JobEvent::RunNow).await;
    refused(&bench, &running, RETRY, JobEvent::Retried).await;
    refused(&bench, &running, edit(), JobEvent::Edited).await;
    let completed = bench.settled(job(), completes).await;
    refused(&bench, &completed, Change::Cancel, JobEvent::Cancelled).await;
    refused(&bench, &completed, RETRY, JobEvent::Retried).await;
    let failed = bench.settled(job(), fails).await;
    refused(&bench, &failed, Change::Cancel, JobEvent::Cancelled).await;
    refused(&bench, &failed, Change::Pause, JobEvent::Paused).await;
    refused(&bench, &failed, edit(), JobEvent::Edited).await;
}

pub async fn a_waiting_job_that_is_cancelled_has_ended(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    for state in [State::Pending, State::Scheduled, State::Paused, State::Blocked] {
        let waiting = bench.submit(job().state(state).tags(["kept"])).await;
        let cancelled = bench.changed(waiting.id, Change::Cancel, at(1_000)).await;
        let expected =
            waiting.clone().in_state(State::Cancelled).with(|job| job.completed_at = Some(at(1_000)));
        assert_eq!(cancelled, expected);
        let session = bench.open_session().await;
        assert_eq!(bench.claim(session, &[waiting.id], at(2_000)).await, []);
        assert_eq!(answered(bench.store.attempts(waiting.id).await), Some(Vec::new()));
    }
    assert_eq!(bench.due(load_all()).await, []);
    assert_eq!(answered(bench.store.count_dead_letters().await), 0);
}

/// What it went through stays readable; what only a live job has is gone.
pub async fn a_job_cancelled_while_it_waits_for_a_retry_keeps_its_history(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let waiting = bench.settled(job(), goes_again).await;
    let history = answered(bench.store.attempts(waiting.id).await);
    let cancelled = bench.changed(waiting.id, Change::Cancel, at(9_000)).await;
    let expected = waiting.in_state(State::Cancelled).with(|job| {
        job.completed_at = Some(at(9_000));
        job.burst = Burst::default();
    });
    assert_eq!(cancelled, expected);
    assert_eq!(cancelled.error, Some(broken()));
    assert_eq!(answered(bench.store.attempts(cancelled.id).await), history);
}

pub async fn a_running_job_is_asked_to_stop(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let running = bench.running(job()).await;
    let stopping = bench.changed(running.id, Change::Cancel, at(10)).await;
    assert_eq!(stopping, running.clone().with(|job| job.cancel_requested = true));
    assert_eq!(bench.changed(running.id, Change::Cancel, at(20)).await, stopping);
}

pub async fn cancelling_a_cancelled_job_changes_nothing(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let waiting = bench.submit(job().callback_url("http://example.com")).await;
    let cancelled = bench.changed(waiting.id, Change::Cancel, at(10)).await;
    assert_eq!(bench.changed(waiting.id, Change::Cancel, at(20)).await, cancelled);
    assert_eq!(bench.take_callbacks(at(100)).await.len(), 1, "and is told once");
}

pub async fn many_who_cancel_one_job_at_once_cancel_it_once(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let waiting = bench.submit(job().callback_url("http://example.com")).await;
    let mut cancelling = JoinSet::new();
    for turn in 0..8 {
        let store = bench.store.clone();
        let id = waiting.id;
        cancelling.spawn(async move { answered(store.change_job(id, Change::Cancel, at(turn)).await) });
    }
    let answers = cancelling.join_all().await;
    let now = Changed::Done(Box::new(bench.job(waiting.id).await));
    assert!(answers.iter().all(|answer| *answer == now), "all see the same end: {answers:?}");
    assert_eq!(bench.take_callbacks(at(100)).await.len(), 1);
}

pub async fn a_paused_job_waits_until_it_is_resumed(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let waiting = bench.submit(job()).await;
    let session = bench.open_session().await;
    for _ in 0..2 {
        let paused = bench.changed(waiting.id, Change::Pause, at(1)).await;
        assert_eq!(paused, waiting.clone().in_state(State::Paused));
    }
    assert_eq!(bench.claim(session, &[waiting.id], at(2)).await, []);
    for _ in 0..2 {
        assert_eq!(bench.changed(waiting.id, Change::Resume, at(3)).await, waiting);
    }
    assert_eq!(bench.claim(session, &[waiting.id], at(4)).await.len(), 1);
}

pub async fn a_job_run_now_is_due_now_and_never_later_than_it_was(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let later = bench.submit(job().due_at(at(50_000))).await;
    let now = bench.changed(later.id, Change::RunNow, at(1_000)).await;
    assert_eq!(now, later.with(|job| job.due_at = at(1_000)));
    assert_eq!(bench.changed(now.id, Change::RunNow, at(2_000)).await.due_at, at(1_000));
    assert_eq!(bench.due(load_all()).await, [DueJob::from(&now)]);
    let paused = bench.submit(job().due_at(at(50_000)).state(State::Paused)).await;
    let resumed = bench.changed(paused.id, Change::RunNow, at(1_000)).await;
    assert_eq!((resumed.state(), resumed.due_at), (State::Scheduled, at(1_000)));
}

pub async fn a_failed_job_can_be_run_again_with_another_payload(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let failed = bench.settled(job().tags(["kept"]), fails).await;
    let payload = JsonText::from_checked(r#"{"mended":true}"#);
    let retry = Change::Retry { payload: Some(payload.clone()) };
    let retried = bench.changed(failed.id, retry, at(8_000)).await;
    let expected = failed.in_state(State::Scheduled).with(|job| {
        job.payload = payload.into();
        job.due_at = at(8_000);
        job.completed_at = None;
        job.last_outcome = None;
    });
    assert_eq!(retried, expected);
    assert_eq!(answered(bench.store.get_dead_letter(retried.id).await), None);
    assert_eq!(answered(bench.store.count_dead_letters().await), 0);
    assert_eq!(bench.due(load_all()).await, [DueJob::from(&retried)]);
    assert_eq!(bench.start(&retried).await.attempt, 2, "the token only grows");
}

pub async fn a_cancelled_job_can_be_run_again(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let never_started = bench.submit(job()).await;
    bench.changed(never_started.id, Change::Cancel, at(10)).await;
    let stopped = bench.settled(job(), is_cancelled).await;
    for (id, attempt) in [(never_started.id, 1), (stopped.id, 2)] {
        let retried = bench.changed(id, RETRY, at(20)).await;
        assert_eq!((retried.state(), retried.due_at), (State::Scheduled, at(20)));
        assert_eq!(bench.start(&retried).await.attempt, attempt);
    }
}

/// The counters that decide about giving up start anew.
pub async fn a_retried_job_has_all_its_retries_again(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let waiting = bench.settled(job(), goes_again).await;
    let second = bench.start(&waiting).await;
    bench.settle(fails(&second)).await;
    assert_eq!(bench.job(second.id).await.retries, 1);
    let retried = bench.changed(second.id, RETRY, at(90_000)).await;
    assert_eq!((retried.retries, retried.lost, retried.burst), (0, 0, Burst::default()));
}

pub async fn every_field_of_an_edit_is_in_force(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let waiting = bench.submit(job().tags(["old"])).await;
    let payload = JsonText::from_checked(r#"["édité"]"#);
    let tags = vec!["new".to_owned(), "newer".to_owned()];
    let edit = Edit {
        execute_at: Some(at(70_000)),
        priority: Some(Priority::Critical),
        payload: Some(payload.clone()),
        tags: Some(tags.clone()),
        paused: None,
    };
    let edited = bench.changed(waiting.id, Change::Edit(edit), at(1)).await;
    let (execute_at, due_at, priority) = (at(70_000), at(70_000), Priority::Critical);
    assert_eq!(
        edited,
        waiting.with(|job| {
            job.execute_at = execute_at;
            job.due_at = due_at;
            job.priority = priority;
            job.payload = payload.into();
            job.tags = tags;
        })
    );
    assert_eq!(bench.due(load_all()).await, []);
    let critical = LoadDue { priority: Priority::Critical, ..load_all() };
    assert_eq!(bench.due(critical).await, [DueJob::from(&edited)]);
    let session = bench.open_session().await;
    assert_eq!(bench.claim(session, &[edited.id], at(69_999)).await, []);
}

pub async fn an_edit_leaves_what_it_does_not_name(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    for state in [State::Scheduled, State::Paused, State::Pending, State::Blocked] {
        let waiting = bench.submit(job().state(state).tags(["a", "b"])).await;
        assert_eq!(bench.changed(waiting.id, Change::Edit(Edit::default()), at(1)).await, waiting);
        let untagged = Edit { tags: Some(Vec::new()), ..Edit::default() };
        let edited = bench.changed(waiting.id, Change::Edit(untagged), at(1)).await;
        assert_eq!(edited, waiting.with(|job| job.tags = Vec::new()));
    }
}

pub async fn an_edit_can_hold_a_job_and_let_it_go(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let waiting = bench.submit(job()).await;
    let paused = |paused| Change::Edit(Edit { paused: Some(paused), ..Edit::default() });
    assert_eq!(bench.changed(waiting.id, paused(true), at(1)).await.state(), State::Paused);
    assert_eq!(bench.changed(waiting.id, paused(false), at(1)).await.state(), State::Scheduled);
}

/// Edits of different fields at once: none is lost, because read, apply and write are one transaction.
pub async fn edits_at_the_same_time_do_not_undo_each_other(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    for turn in 0..10 {
        let waiting = bench.submit(job()).await;
        let edits = [
            Edit { execute_at: Some(at(turn)), ..Edit::default() },
            Edit { priority: Some(Priority::High), ..Edit::default() },
            Edit { tags: Some(vec!["edited".into()]), ..Edit::default() },
            Edit { paused: Some(true), ..Edit::default() },
        ];
        edit_at_once(&bench, waiting.id, edits).await;
        let edited = bench.job(waiting.id).await;
        let (tags, priority, state) = (vec!["edited".to_owned()], Priority::High, State::Paused);
        let expected = waiting.in_state(state).with(|job| {
            job.execute_at = at(turn);
            job.due_at = at(turn);
            job.tags = tags;
            job.priority = priority;
        });
        assert_eq!(edited, expected);
    }
}

async fn edit_at_once<const N: usize>(bench: &Bench, id: JobId, edits: [Edit; N]) {
    let mut editing = JoinSet::new();
    for edit in edits {
        let store = bench.store.clone();
        editing.spawn(async move { answered(store.change_job(id, Change::Edit(edit), at(0)).await) });
    }
    editing.join_all().await;
}

pub async fn of_many_jobs_those_that_have_ended_are_told(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let live = [bench.submit(job()).await.id, bench.running(job()).await.id];
    let mut ended = Vec::new();
    for end in [completes, is_cancelled, fails] {
        ended.push(bench.settled(job(), end).await.id);
    }
    let failed = ended[2];
    ended.sort();
    let unknown = job_id(at(0), 1 << 40);
    let asked = live.into_iter().chain(ended.clone()).chain([unknown]).collect();
    let mut told = answered(bench.store.ended_among(asked).await);
    told.sort();
    assert_eq!(told, ended);
    assert_eq!(answered(bench.store.ended_among(Vec::new()).await), []);
    answered(bench.store.change_job(failed, RETRY, at(9_000)).await);
    let told = answered(bench.store.ended_among(ended).await);
    assert!(told.len() == 2 && !told.contains(&failed), "it goes on: {told:?}");
}
