//! The sessions of workers: who has one, and what runs under it.
//!
//! A store that several processes share judges leases by its own clock, so a rule that lets one end asks that clock.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::change::Change;
use tickwheel_core::matching::{Class, Label, Labels, Route};
use tickwheel_core::ports::{Claim, FindAbandoned, LoadDue, Settled, Store};
use tickwheel_core::token::AttemptRef;
use tickwheel_core::worker::{NewWorker, WorkerProfile, WorkerSession};
use tickwheel_core::{Job, SessionId, State, Target, Timestamp};
use uuid::Uuid;

use super::bench::{Bench, LATER, answered, completes, fails, goes_again, load_all};
use crate::fixtures::{JobBuilder, at, job, session_id};

const GRACE: Duration = Duration::from_secs(5);
const LEASE: Duration = Duration::from_secs(15);

fn new_worker(name: &str, instance: Option<Uuid>) -> NewWorker {
    let profile = WorkerProfile {
        name: name.into(),
        queues: vec!["default".into()],
        types: vec!["test".into()],
        executors: Vec::new(),
        labels: Labels::new(),
        capacity: 10,
        lease_ms: 15_000,
        library: Some("rust/1".into()),
        host: None,
        pid: Some(7),
    };
    NewWorker { id: SessionId::from_uuid(Uuid::now_v7()), instance, profile: Arc::new(profile) }
}

async fn open(bench: &Bench, name: &str) -> WorkerSession {
    let now = answered(bench.store.now(at(0)).await);
    answered(bench.store.open_worker(new_worker(name, None), now).await)
}

fn for_worker() -> JobBuilder {
    job().target(Target::Worker)
}

const fn attempt_of(job: &Job) -> AttemptRef {
    AttemptRef { job_id: job.id, attempt: job.attempt }
}

async fn held(bench: &Bench, id: SessionId) -> Vec<AttemptRef> {
    answered(bench.store.held_by(id, 100).await).into_iter().map(|held| held.attempt).collect()
}

async fn abandoned(bench: &Bench, now: Timestamp) -> Vec<AttemptRef> {
    let find = FindAbandoned { now, grace: GRACE, limit: 100 };
    answered(bench.store.find_abandoned(find).await).iter().map(attempt_of).collect()
}

/// A job that runs under the worker's session.
async fn run_by(bench: &Bench, worker: SessionId, builder: JobBuilder) -> Job {
    let job = bench.submit(builder).await;
    bench.claim(worker, &[job.id], job.due_at).await.pop().expect("it is due")
}

pub async fn a_worker_is_renewed_until_it_leaves(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let worker = open(&bench, "w").await;
    assert_eq!(answered(bench.store.get_worker(worker.id).await), Some(worker.clone()));
    let later = answered(bench.store.now(at(0)).await) + Duration::from_secs(1);
    let renewed = answered(bench.store.renew_worker(worker.id, later).await).expect("it is open").session;
    assert!(renewed.expires_at >= worker.expires_at);
    assert_eq!(renewed.profile, worker.profile);
    assert!(answered(bench.store.set_worker_draining(worker.id, true).await));
    assert!(answered(bench.store.get_worker(worker.id).await).is_some_and(|session| session.draining));
    assert!(answered(bench.store.end_worker(worker.id).await));
    assert!(!answered(bench.store.end_worker(worker.id).await), "it has ended already");
    assert!(!answered(bench.store.set_worker_draining(worker.id, true).await));
    assert!(answered(bench.store.renew_worker(worker.id, later).await).is_none());
    assert!(answered(bench.store.get_worker(worker.id).await).is_none());
    let job = bench.submit(for_worker()).await;
    assert!(bench.claim(worker.id, &[job.id], LATER).await.is_empty(), "it has no right to jobs any more");
}

pub async fn the_same_instance_is_the_same_session(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let instance = Some(Uuid::from_u128(1));
    let first = answered(bench.store.open_worker(new_worker("a", instance), at(0)).await);
    let again = answered(bench.store.open_worker(new_worker("b", instance), at(1)).await);
    assert_eq!((again.id, again.profile.name.as_str()), (first.id, "b"));
    let other = answered(bench.store.open_worker(new_worker("a", Some(Uuid::from_u128(2))), at(0)).await);
    assert_ne!(other.id, first.id);
    answered(bench.store.end_worker(first.id).await);
    let anew = answered(bench.store.open_worker(new_worker("a", instance), at(2)).await);
    assert_ne!(anew.id, first.id, "that session has ended");
}

pub async fn workers_are_listed_by_id_and_nodes_are_not_among_them(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let node = bench.open_session().await;
    let mut workers = Vec::new();
    for name in ["a", "b", "c"] {
        workers.push(open(&bench, name).await);
    }
    workers.sort_by_key(|worker| worker.id);
    assert_eq!(answered(bench.store.list_workers(None, 2).await), workers[..2]);
    assert_eq!(answered(bench.store.list_workers(Some(workers[1].id), 2).await), workers[2..]);
    assert!(answered(bench.store.get_worker(node).await).is_none());
    assert!(!answered(bench.store.end_worker(node).await));
}

/// A node that does not know what became of a claim asks for what it claimed itself: a worker may have polled elsewhere
/// meanwhile.
pub async fn what_a_node_claimed_for_a_worker_is_not_another_nodes(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let worker = open(&bench, "w").await.id;
    let (node, other) = (session_id(8), session_id(9));
    let claimed = async |by| {
        let id = bench.submit(for_worker()).await.id;
        let claim = Claim { session: worker, claimed_by: Some(by), jobs: vec![id], now: LATER };
        assert_eq!(answered(bench.store.claim(claim).await).len(), 1);
        id
    };
    let (mine, theirs, unclaimed) =
        (claimed(node).await, claimed(other).await, bench.submit(for_worker()).await.id);
    let ours = async || {
        let jobs = answered(bench.store.claimed_by(node, vec![theirs, mine, unclaimed]).await);
        jobs.iter().map(|job| (job.id, job.attempt, job.session)).collect::<Vec<_>>()
    };
    assert_eq!(ours().await, [(mine, 1, Some(worker))]);
    bench.settle(goes_again(&bench.job(mine).await)).await;
    assert_eq!(ours().await, []);
}

pub async fn a_worker_whose_lease_is_over_is_ended_and_its_attempts_are_abandoned(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let own = bench.open_session().await;
    let worker = open(&bench, "w").await;
    let running = run_by(&bench, worker.id, for_worker()).await;
    let now = answered(bench.store.now(at(0)).await);
    assert!(!answered(bench.store.expire_sessions(own, now).await).contains(&worker.id), "it is not over");
    assert_eq!(abandoned(&bench, at(1)).await, []);
    let over = worker.expires_at + LEASE;
    assert!(answered(bench.store.expire_sessions(own, over).await).contains(&worker.id));
    assert_eq!(abandoned(&bench, at(1)).await, [attempt_of(&running)]);
}

pub async fn a_worker_that_may_not_have_been_heard_gets_a_whole_lease(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let worker = answered(bench.store.open_worker(new_worker("w", None), at(0)).await);
    let later = at(1_000_000);
    answered(bench.store.extend_workers(later).await);
    let now = answered(bench.store.now(later).await);
    let extended = answered(bench.store.get_worker(worker.id).await).expect("it is open");
    assert!(extended.expires_at + Duration::from_secs(1) >= now + LEASE, "{extended:?}");
    answered(bench.store.extend_workers(at(0)).await);
    let same = answered(bench.store.get_worker(worker.id).await).expect("it is open");
    assert!(same.expires_at >= extended.expires_at, "it is never made shorter");
}

pub async fn what_a_worker_runs_is_known_until_it_has_ended(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let (worker, other) = (open(&bench, "w").await.id, open(&bench, "o").await.id);
    let mut running = Vec::new();
    for _ in 0..3 {
        running.push(run_by(&bench, worker, for_worker()).await);
    }
    running.sort_by_key(|job| job.id);
    assert_eq!(held(&bench, worker).await, running.iter().map(attempt_of).collect::<Vec<_>>());
    assert_eq!(answered(bench.store.held_by(worker, 2).await).len(), 2);
    assert_eq!(answered(bench.store.count_held(vec![other, worker]).await), [0, 3]);
    let first = &answered(bench.store.held_by(worker, 1).await)[0];
    assert_eq!((first.job_type.as_str(), first.deadline), (&*running[0].job_type, running[0].deadline));
    bench.settle(completes(&running[0])).await;
    bench.settle(goes_again(&running[1])).await;
    assert_eq!(held(&bench, worker).await, [attempt_of(&running[2])]);
    assert_eq!(answered(bench.store.count_held(vec![worker]).await), [1]);
}

pub async fn a_worker_hears_what_it_is_to_stop(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let worker = open(&bench, "w").await.id;
    let running = run_by(&bench, worker, for_worker()).await;
    run_by(&bench, worker, for_worker()).await;
    let renew = async || answered(bench.store.renew_worker(worker, at(0)).await).expect("it is open").cancel;
    assert_eq!(renew().await, []);
    bench.changed(running.id, Change::Cancel, at(5)).await;
    assert_eq!(renew().await, [attempt_of(&running)]);
    let is_asked = |held: &tickwheel_core::ports::HeldAttempt| held.cancel_requested;
    assert_eq!(answered(bench.store.held_by(worker, 9).await).into_iter().filter(is_asked).count(), 1);
}

pub async fn an_attempt_of_a_worker_past_its_deadline_is_abandoned(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let worker = open(&bench, "w").await.id;
    let running = run_by(&bench, worker, for_worker().timeout(Duration::from_secs(1))).await;
    let over = running.deadline.expect("it runs") + GRACE;
    assert_eq!(abandoned(&bench, over).await, []);
    assert_eq!(abandoned(&bench, over + Duration::from_millis(1)).await, [attempt_of(&running)]);
    bench.settle(completes(&running)).await;
    assert_eq!(abandoned(&bench, LATER).await, []);
}

/// The worker that called the target may be gone; only the deadline ends the attempt.
pub async fn an_attempt_of_a_worker_that_awaits_a_report_ends_by_report_or_deadline(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let worker = open(&bench, "w").await.id;
    let call = || {
        job().timeout(Duration::from_secs(1)).with(|job| {
            Arc::make_mut(&mut job.spec).requires = Labels::from([("gpu".into(), Label::Flag(true))]);
        })
    };
    let (reported, silent) = (run_by(&bench, worker, call()).await, run_by(&bench, worker, call()).await);
    for job in [&reported, &silent] {
        assert_eq!(answered(bench.store.await_report(job.id, 1).await), Settled::Applied);
    }
    assert_eq!(held(&bench, worker).await, [], "it has them no more");
    answered(bench.store.end_worker(worker).await);
    let over = silent.deadline.expect("it runs") + GRACE;
    assert_eq!(abandoned(&bench, over).await, []);
    assert_eq!(bench.settle(completes(&reported)).await, Settled::Applied);
    assert_eq!(abandoned(&bench, over + Duration::from_millis(1)).await, [attempt_of(&silent)]);
    bench.settle(fails(&silent)).await;
    assert_eq!(abandoned(&bench, LATER).await, []);
}

pub async fn a_job_goes_from_one_worker_to_the_next(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let (first, second) = (open(&bench, "a").await.id, open(&bench, "b").await.id);
    let running = run_by(&bench, first, for_worker()).await;
    bench.settle(goes_again(&running)).await;
    let again = bench.job(running.id).await;
    let again = bench.claim(second, &[again.id], again.due_at).await.pop().expect("it is due");
    assert_eq!((held(&bench, first).await, held(&bench, second).await), (vec![], vec![attempt_of(&again)]));
    // What the first one says now is stale, and takes nothing from the second.
    bench.settle(completes(&running)).await;
    assert_eq!(held(&bench, second).await, [attempt_of(&again)]);
}

pub async fn a_retried_job_is_found_by_its_route_again(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let failed = bench.settled(for_worker(), fails).await;
    assert_eq!(failed.state(), State::Failed);
    let retried = bench.changed(failed.id, Change::Retry { payload: None }, at(5_000)).await;
    let load = LoadDue { class: Class::of(&retried), ..load_all() };
    assert_eq!(bench.due_ids(load).await, [retried.id]);
}

pub async fn due_jobs_of_routes_are_counted_up_to_a_limit(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let builders = (0..5).map(|number| for_worker().queue(if number < 3 { "a" } else { "b" }));
    let jobs = bench.submit_all(builders).await;
    bench.submit(for_worker().queue("a").due_at(LATER)).await;
    let route = |job: &Job| Route::of(job).expect("it is for workers").id;
    let count = async |routes, limit| answered(bench.store.count_due_routes(routes, at(0), limit).await);
    assert_eq!(count(vec![route(&jobs[0])], 10).await, 3);
    assert_eq!(count(vec![route(&jobs[0]), route(&jobs[4])], 10).await, 5);
    assert_eq!(count(vec![route(&jobs[0]), route(&jobs[4])], 4).await, 4);
    assert_eq!(count(Vec::new(), 10).await, 0);
}

/// All that were removed, a few at a time.
async fn remove_unused_routes(bench: &Bench) -> usize {
    let (mut removed, mut after) = (0, None);
    loop {
        let looked_at = answered(bench.store.remove_unused_routes(after, 2).await);
        removed += looked_at.removed;
        after = looked_at.next;
        if after.is_none() {
            return removed;
        }
    }
}

async fn types_with_a_route(bench: &Bench) -> Vec<String> {
    let routes = answered(bench.store.routes().await);
    let mut types: Vec<String> =
        routes.iter().filter_map(|route| route.job_type()).map(ToString::to_string).collect();
    types.sort();
    types
}

pub async fn routes_that_no_live_job_has_are_removed(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let worker = open(&bench, "w").await.id;
    let of = |job_type: &str| for_worker().job_type(job_type);
    bench.submit(of("waits")).await;
    bench.submit(of("is due later").due_at(LATER)).await;
    run_by(&bench, worker, of("runs")).await;
    let parent = bench.submit(of("parent")).await;
    bench.submit(of("depends").depends_on([parent.id])).await;
    let paused = bench.submit(of("is paused")).await;
    bench.changed(paused.id, Change::Pause, at(0)).await;
    let retried = run_by(&bench, worker, of("is tried again")).await;
    bench.settle(goes_again(&retried)).await;
    for number in 0..5 {
        bench.settled(of(&format!("made up {number}")), completes).await;
    }
    let used = ["depends", "is due later", "is paused", "is tried again", "parent", "runs", "waits"];
    assert_eq!(types_with_a_route(&bench).await.len(), used.len() + 5);
    assert_eq!(remove_unused_routes(&bench).await, 5);
    assert_eq!(types_with_a_route(&bench).await, used);
    assert_eq!(remove_unused_routes(&bench).await, 0);
    // And whoever comes later is found as before.
    let again = bench.submit(of("made up 1")).await;
    assert!(types_with_a_route(&bench).await.contains(&"made up 1".to_owned()));
    assert_eq!(remove_unused_routes(&bench).await, 0);
    assert_eq!(bench.due_ids(LoadDue { class: Class::of(&again), ..load_all() }).await, [again.id]);
}

pub async fn a_job_that_comes_back_has_its_route_again(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let failed = bench.settled(for_worker().job_type("fails"), fails).await;
    assert_eq!(remove_unused_routes(&bench).await, 1);
    bench.changed(failed.id, Change::Retry { payload: None }, at(5_000)).await;
    assert_eq!(types_with_a_route(&bench).await, ["fails"]);
}

/// Whoever comes first: a job is never without its route.
pub async fn a_route_is_not_removed_while_a_job_comes_with_it(store: Arc<dyn Store>) {
    let bench = Bench::new(store.clone());
    for round in 0..10 {
        let job_type = format!("type {round}");
        let removing = tokio::spawn({
            let bench = Bench::new(store.clone());
            async move {
                for _ in 0..20 {
                    remove_unused_routes(&bench).await;
                }
            }
        });
        for _ in 0..10 {
            let job = bench.submit(for_worker().job_type(&job_type)).await;
            assert!(types_with_a_route(&bench).await.contains(&job_type), "the job is live");
            bench.changed(job.id, Change::Cancel, at(0)).await;
        }
        removing.await.expect("it ends");
    }
}
