//! Claiming: one attempt, one claimant, and nothing that may not start.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::change::Change;
use tickwheel_core::ports::{Claim, Store};
use tickwheel_core::{Job, State};
use tokio::task::JoinSet;

use super::bench::{Bench, answered, broken, completes, goes_again, sorted_ids};
use crate::fixtures::{JobInTest as _, at, job, job_id, session_id};

pub async fn a_claim_starts_the_first_attempt(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let waiting = bench.submit(job().timeout(Duration::from_millis(1_234))).await;
    let session = bench.open_session().await;
    let claimed = bench.claim(session, &[waiting.id], at(50)).await;
    let running = waiting.in_state(State::Running).with(|job| {
        job.attempt = 1;
        job.session = Some(session);
        job.started_at = Some(at(50));
        job.deadline = Some(at(1_284));
    });
    assert_eq!(claimed, std::slice::from_ref(&running));
    assert_eq!(bench.job(running.id).await, running);
}

pub async fn the_attempt_number_grows_and_the_previous_error_stays_visible(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let waiting = bench.settled(job(), goes_again).await;
    let second = bench.start(&waiting).await;
    assert_eq!(second.attempt, 2);
    assert_eq!(second.error, Some(broken()));
    assert_eq!((second.retries, second.burst), (waiting.retries, waiting.burst));
    assert_eq!(bench.job(second.id).await, second);
}

pub async fn nothing_is_claimed_before_its_time(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let session = bench.open_session().await;
    let job = bench.submit(job().due_at(at(100))).await;
    assert_eq!(bench.claim(session, &[job.id], at(99)).await, []);
    assert_eq!(bench.job(job.id).await, job);
    assert_eq!(bench.claim(session, &[job.id], at(100)).await.len(), 1);
}

pub async fn only_scheduled_jobs_are_claimed(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let session = bench.open_session().await;
    let mut others = vec![bench.running(job()).await, bench.settled(job(), completes).await];
    for state in [State::Pending, State::Paused, State::Blocked] {
        others.push(bench.submit(job().state(state)).await);
    }
    let waiting = bench.submit(job()).await;
    let unknown = job_id(at(0), u64::from(u32::MAX));
    let mut ids = sorted_ids(&others);
    ids.extend([unknown, waiting.id]);
    let claimed = bench.claim(session, &ids, at(10_000)).await;
    assert_eq!(sorted_ids(&claimed), [waiting.id]);
    for other in others {
        assert_eq!(bench.job(other.id).await, other, "what is left out is not touched");
    }
}

pub async fn a_paused_queue_gives_nothing_until_it_is_resumed(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let session = bench.open_session().await;
    let held = bench.submit(job().queue("held")).await;
    let free = bench.submit(job().queue("free")).await;
    answered(bench.store.set_queue_paused("held", true).await);
    let claimed = bench.claim(session, &[held.id, free.id], at(0)).await;
    assert_eq!(sorted_ids(&claimed), [free.id]);
    assert_eq!(bench.job(held.id).await, held);
    answered(bench.store.set_queue_paused("held", false).await);
    assert_eq!(bench.claim(session, &[held.id], at(0)).await.len(), 1);
}

pub async fn nothing_is_claimed_while_halted(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let session = bench.open_session().await;
    let job = bench.submit(job()).await;
    answered(bench.store.set_halted(true).await);
    assert_eq!(bench.claim(session, &[job.id], at(0)).await, []);
    answered(bench.store.set_halted(false).await);
    assert_eq!(bench.claim(session, &[job.id], at(0)).await.len(), 1);
}

pub async fn a_session_that_ended_or_never_was_claims_nothing(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let job = bench.submit(job()).await;
    let ended = bench.open_session().await;
    answered(bench.store.end_session(ended).await);
    assert_eq!(bench.claim(ended, &[job.id], at(0)).await, []);
    assert_eq!(bench.claim(session_id(u64::from(u32::MAX)), &[job.id], at(0)).await, []);
    assert_eq!(bench.job(job.id).await, job);
}

pub async fn an_empty_claim_takes_nothing(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let session = bench.open_session().await;
    bench.submit(job()).await;
    assert_eq!(bench.claim(session, &[], at(0)).await, []);
}

pub async fn a_large_claim_takes_all_that_may_start(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let session = bench.open_session().await;
    let jobs = bench.submit_all((0..1_500).map(|_| job())).await;
    let claimed = bench.claim(session, &sorted_ids(&jobs), at(0)).await;
    assert_eq!(sorted_ids(&claimed), sorted_ids(&jobs));
}

/// Two nodes that both believe they own the same jobs.
pub async fn no_job_goes_to_two_claimants(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let jobs = bench.submit_all((0..60).map(|_| job())).await;
    let mut claimants = JoinSet::new();
    for turn in 0..8 {
        let session = bench.open_session().await;
        let store = bench.store.clone();
        let mut ids = sorted_ids(&jobs);
        // Each in another order, so that they meet in the middle.
        ids.rotate_left(turn * 7);
        claimants.spawn(async move {
            let mut mine = Vec::new();
            for ids in ids.chunks(20) {
                let claim = Claim { claimed_by: None, session, jobs: ids.to_vec(), now: at(0) };
                mine.extend(answered(store.claim(claim).await));
            }
            assert!(mine.iter().all(|job| job.session == Some(session) && job.attempt == 1));
            mine
        });
    }
    let claimed: Vec<Job> = claimants.join_all().await.into_iter().flatten().collect();
    assert_eq!(sorted_ids(&claimed), sorted_ids(&jobs), "every job goes to exactly one");
    for job in claimed {
        assert_eq!(bench.job(job.id).await, job, "and the store knows to which");
    }
}

/// A cancel and a claim at the same moment: whichever comes first, an acknowledged cancel is never overrun.
pub async fn a_cancel_and_a_claim_never_both_win(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let session = bench.open_session().await;
    for _ in 0..20 {
        let job = bench.submit(job()).await;
        let ids = [job.id];
        let (cancelled, claimed) = tokio::join!(
            bench.store.change_job(job.id, Change::Cancel, at(1)),
            bench.claim(session, &ids, at(1)),
        );
        answered(cancelled);
        let now = bench.job(job.id).await;
        match claimed.len() {
            0 => assert_eq!(now.state(), State::Cancelled),
            _ => assert!(now.state() == State::Running && now.cancel_requested, "{now:?}"),
        }
    }
}

/// Once the stop switch or a pause is acknowledged, no claim that starts later takes anything, whoever else is
/// claiming.
pub async fn an_acknowledged_halt_stops_claims_that_are_under_way(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let session = bench.open_session().await;
    let jobs = bench.submit_all((0..40).map(|_| job())).await;
    let ids = sorted_ids(&jobs);
    let claiming = async {
        let mut claimed = 0;
        for id in &ids {
            claimed += bench.claim(session, &[*id], at(0)).await.len();
        }
        claimed
    };
    let halting = async {
        answered(bench.store.set_halted(true).await);
        running_count(&bench, &ids).await
    };
    let (claimed, running_when_halted) = tokio::join!(claiming, halting);
    assert_eq!(claimed, running_when_halted, "nothing started after the halt was acknowledged");
    assert_eq!(running_count(&bench, &ids).await, running_when_halted);
}

async fn running_count(bench: &Bench, ids: &[tickwheel_core::JobId]) -> usize {
    let jobs = answered(bench.store.get_jobs(ids.to_vec()).await);
    super::bench::in_state(&jobs, State::Running)
}
