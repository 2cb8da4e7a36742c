//! Controls: queues, the stop switch, the installation's secret.

use std::sync::Arc;

use tickwheel_core::ports::{Controls, Queue, Store};
use tickwheel_core::workflow::RunStatus;
use tickwheel_core::{Priority, Target, Timestamp};
use tokio::task::JoinSet;

use super::bench::{Bench, answered, completes};
use crate::fixtures::{at, job, run};

fn queue(name: &str, paused: bool) -> Queue {
    Queue { name: name.into(), paused }
}

pub async fn a_queue_is_known_once_it_had_a_job(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    assert_eq!(answered(bench.store.list_queues().await), []);
    bench.submit_all(["b", "a", "b"].map(|name| job().queue(name))).await;
    bench.settled(job().queue("c"), completes).await;
    let expected = [queue("a", false), queue("b", false), queue("c", false)];
    assert_eq!(answered(bench.store.list_queues().await), expected);
}

pub async fn a_queue_can_be_paused_before_its_first_job(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    answered(bench.store.set_queue_paused("early", true).await);
    assert_eq!(answered(bench.store.list_queues().await), [queue("early", true)]);
    bench.submit(job().queue("early")).await;
    assert_eq!(answered(bench.store.list_queues().await), [queue("early", true)], "a job does not resume it");
}

pub async fn a_queue_is_paused_until_it_is_resumed(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    bench.submit_all(["a", "b"].map(|name| job().queue(name))).await;
    for _ in 0..2 {
        answered(bench.store.set_queue_paused("a", true).await);
        assert_eq!(answered(bench.store.list_queues().await), [queue("a", true), queue("b", false)]);
    }
    for _ in 0..2 {
        answered(bench.store.set_queue_paused("a", false).await);
        assert_eq!(answered(bench.store.list_queues().await), [queue("a", false), queue("b", false)]);
    }
}

pub async fn the_due_jobs_of_a_queue_are_counted_even_while_it_is_paused(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let urgencies = [Priority::Critical, Priority::Low, Priority::Normal];
    bench.submit_all(urgencies.map(|priority| job().queue("a").priority(priority))).await;
    bench.submit_all([job().queue("a").due_at(at(5_000)), job().queue("b")]).await;
    answered(bench.store.set_queue_paused("a", true).await);
    assert_eq!(count_due(&bench, ["a"], at(4_999)).await, [3]);
    assert_eq!(count_due(&bench, ["unknown", "b", "a"], at(5_000)).await, [0, 1, 4]);
}

async fn count_due<const N: usize>(bench: &Bench, queues: [&str; N], now: Timestamp) -> Vec<u64> {
    let queues = queues.map(str::to_owned).to_vec();
    let counts = answered(bench.store.count_due(queues, now, 100).await);
    assert!(counts.iter().all(|count| !count.more), "few enough to be sure: {counts:?}");
    counts.into_iter().map(|count| count.jobs).collect()
}

pub async fn due_jobs_are_counted_also_if_no_worker_could_run_them(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    for (number, queue) in ["a", "a", "b"].into_iter().enumerate() {
        for urgency in [Priority::Critical, Priority::Low] {
            let job_type = format!("type {number}");
            bench
                .submit(job().queue(queue).priority(urgency).job_type(&job_type).target(Target::Worker))
                .await;
        }
    }
    bench.submit(job().queue("a")).await;
    bench.submit(job().queue("a").target(Target::Worker).due_at(at(5_000))).await;
    assert_eq!(count_due(&bench, ["a", "b"], at(0)).await, [5, 2]);
}

/// However many wait, for the built-in executors or for workers: some of each queue are seen.
pub async fn a_count_of_due_jobs_that_saw_too_many_says_so(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let many = (0..30).map(|number| {
        let job = job().queue(if number % 2 == 0 { "http" } else { "workers" });
        if number % 2 == 0 { job } else { job.target(Target::Worker) }
    });
    bench.submit_all(many).await;
    bench.submit(job().queue("few").target(Target::Worker)).await;
    let queues = ["http", "workers", "few"].map(str::to_owned).to_vec();
    let counts = answered(bench.store.count_due(queues, at(0), 10).await);
    for (count, all) in counts.iter().zip([15, 15, 1]) {
        assert!(count.jobs == all || count.more && (1..all).contains(&count.jobs), "{counts:?}");
    }
}

pub async fn all_that_forbids_starts_is_read_at_once(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    assert_eq!(answered(bench.store.controls().await), Controls::default());
    bench.submit(job().queue("open")).await;
    for queue in ["b", "a", "c"] {
        answered(bench.store.set_queue_paused(queue, true).await);
    }
    answered(bench.store.set_queue_paused("c", false).await);
    answered(bench.store.set_halted(true).await);
    let run = run().task([]).with(|run| run.progress.status = RunStatus::Paused).build();
    let id = run.run.id;
    answered(bench.store.start_run(run).await);
    let expected =
        Controls { halted: true, paused_queues: vec!["a".into(), "b".into()], paused_runs: vec![id] };
    assert_eq!(answered(bench.store.controls().await), expected);
}

pub async fn the_stop_switch_keeps_its_position(store: Arc<dyn Store>) {
    assert!(!answered(store.halted().await), "off at first");
    for position in [true, true, false, false, true] {
        answered(store.set_halted(position).await);
        assert_eq!(answered(store.halted().await), position);
    }
}

pub async fn the_installation_has_one_secret_for_ever(store: Arc<dyn Store>) {
    let mut candidates = JoinSet::new();
    for byte in 1..=8 {
        let store = store.clone();
        candidates.spawn(async move { answered(store.installation_secret([byte; 32]).await) });
    }
    let secrets = candidates.join_all().await;
    assert!(secrets.iter().all(|secret| *secret == secrets[0]), "all who start at once agree: {secrets:?}");
    assert!((1..=8).contains(&secrets[0][0]), "on one of the candidates");
    answered(store.set_halted(true).await);
    assert_eq!(answered(store.installation_secret([99; 32]).await), secrets[0]);
    assert!(answered(store.halted().await), "the secret leaves the stop switch alone");
}

/// And changes nothing, although one of them writes to be sure that it can.
pub async fn a_store_that_works_answers_a_ping(store: Arc<dyn Store>) {
    for halted in [true, false] {
        answered(store.set_halted(halted).await);
        answered(store.ping().await);
        assert_eq!(answered(store.halted().await), halted);
    }
}
