//! Workers: jobs reach one that waits at once, go elsewhere when it dies, and are its own until then.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::{Api, id_of, text};
use crate::e2e::{on_both_stores, quick_retries};
use crate::eventually::{PATIENCE, eventually};
use crate::remote_worker::RemoteWorker;
use crate::server::{Server, StoreKind};

on_both_stores! {
    a_due_job_goes_to_a_waiting_poll_at_once,
    a_lost_answer_is_given_again,
    a_dead_worker_keeps_no_job,
    a_worker_that_leaves_gives_its_jobs_back_at_once,
    the_reports_of_a_worker_that_lost_its_lease_are_refused,
    a_cancel_reaches_a_waiting_poll_and_every_heartbeat,
    the_same_report_again_is_answered_as_before,
    a_snoozed_job_comes_back_and_costs_no_retry,
    an_attempt_that_hangs_is_ended_at_its_deadline,
    a_job_goes_only_to_a_worker_that_offers_what_it_requires,
    workers_and_their_jobs_survive_a_restart_of_the_server,
    a_draining_worker_takes_nothing_new,
    what_never_reached_its_worker_goes_back,
    a_job_that_may_run_once_is_not_given_to_a_second_worker,
}

const SOON: Duration = Duration::from_secs(20);

fn work(fields: Value) -> Value {
    let mut job = json!({"type": "work"});
    for (name, value) in fields.as_object().expect("an object") {
        job[name] = value.clone();
    }
    job
}

async fn submit_many(api: &Api, count: usize) -> Vec<Value> {
    api.submit_batch(&vec![work(json!({})); count]).await
}

async fn until(api: &Api, id: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    eventually(what, PATIENCE, async || Some(api.job(id).await).filter(&is_so)).await
}

async fn a_due_job_goes_to_a_waiting_poll_at_once(kind: StoreKind) {
    let server = Server::start(kind).await;
    let api = server.api();
    let worker = RemoteWorker::register(&api, json!({})).await;
    for round in 0..5 {
        let (jobs, submitted) = tokio::join!(worker.poll(1, SOON), async {
            // Until the poll waits: a delay that is due while it does.
            let job = api.submit(&work(json!({"delay": "150ms", "payload": {"round": round}}))).await;
            (job, Instant::now())
        });
        let late = submitted.1.elapsed();
        assert_eq!(jobs[0]["job"]["id"], submitted.0["id"]);
        assert_eq!(jobs[0]["job"]["payload"], json!({"round": round}));
        assert!(late < Duration::from_secs(2), "it waits for no interval: {late:?}");
        let results = worker.report(&jobs, json!({"outcome": "completed", "result": round})).await;
        assert_eq!(results, [json!({"status": "accepted", "job_status": "completed"})]);
        assert_eq!(api.job(text(&submitted.0, "id")).await["result"], round);
    }
    eventually("the metric to count it", PATIENCE, async || {
        (api.metric("tickwheel_workers").await == 1.0).then_some(())
    })
    .await;
}

async fn a_lost_answer_is_given_again(kind: StoreKind) {
    let server = Server::start(kind).await;
    let worker = RemoteWorker::register(&server.api(), json!({})).await;
    submit_many(&server.api(), 3).await;
    let poll = |seq: u64, max: u64| json!({"seq": seq, "max": max, "wait": "300ms"});
    let first = worker.poll_for(poll(1, 2)).await;
    let again = worker.poll_for(poll(1, 2)).await;
    let tokens = |answer: &Value| -> Vec<Value> {
        answer["jobs"].as_array().unwrap().iter().map(|job| job["token"].clone()).collect()
    };
    assert_eq!((tokens(&first).len(), tokens(&first)), (2, tokens(&again)));
    let next = worker.poll_for(poll(2, 2)).await;
    assert_eq!(tokens(&next).len(), 1, "the others are its own already");
    assert!(!tokens(&first).contains(&tokens(&next)[0]));
}

async fn a_dead_worker_keeps_no_job(kind: StoreKind) {
    let server = Server::start(kind).await;
    let api = server.api();
    let dead = RemoteWorker::register(&api, json!({"capacity": 1000})).await;
    let jobs = submit_many(&api, 1_000).await;
    dead.take(1_000).await;
    let fell_silent = Instant::now();
    let living = RemoteWorker::register(&api, json!({"capacity": 1000})).await;
    let mut taken = 0;
    while taken < jobs.len() {
        let some = living.poll(1_000, Duration::from_secs(2)).await;
        living.beat(json!({})).await;
        assert!(some.iter().all(|job| job["attempt"] == 2), "each was with the dead one first");
        living.report(&some, json!({"outcome": "completed"})).await;
        taken += some.len();
        assert!(fell_silent.elapsed() < Duration::from_secs(20), "{taken} came");
    }
    let took = fell_silent.elapsed();
    assert!(took > Duration::from_secs(4), "not before the lease is over: {took:?}");
    assert!(took < Duration::from_secs(12), "within the lease and a little: {took:?}");
    let gone = dead.call("heartbeat", &json!({})).await.expect(404);
    assert_eq!(gone.code(), "unknown_worker");
    let attempts = api.attempts(text(&jobs[0], "id")).await;
    assert_eq!((&attempts[0]["outcome"], &attempts[1]["outcome"]), (&json!("lost"), &json!("completed")));
}

async fn a_worker_that_leaves_gives_its_jobs_back_at_once(kind: StoreKind) {
    let server = Server::start(kind).await;
    let api = server.api();
    let (first, second) =
        (RemoteWorker::register(&api, json!({})).await, RemoteWorker::register(&api, json!({})).await);
    submit_many(&api, 6).await;
    let held = first.take(3).await;
    first.leave("drained").await.expect(204);
    let began = Instant::now();
    let jobs = second.take(6).await;
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    let id = text(&held[0]["job"], "id");
    let again = jobs.iter().find(|job| job["job"]["id"] == id).expect("it came back");
    assert_eq!((&again["attempt"], &again["job"]["retries"]), (&json!(2), &json!(0)));
    assert_eq!(api.attempts(id).await[0]["outcome"], "released");
    first.leave("drained").await.expect(404);
}

async fn the_reports_of_a_worker_that_lost_its_lease_are_refused(kind: StoreKind) {
    let server = Server::start(kind).await;
    let api = server.api();
    let frozen = RemoteWorker::register(&api, json!({})).await;
    let job = id_of(&api.submit(&work(json!({}))).await);
    let held = frozen.take(1).await;
    let other = RemoteWorker::register(&api, json!({"lease": "1m"})).await;
    let again = other.take(1).await;
    assert_eq!((&again[0]["attempt"], &again[0]["fencing_token"]), (&json!(2), &json!(2)));
    let late = frozen.report(&held, json!({"outcome": "completed", "result": "late"})).await;
    assert_eq!(
        (&late[0]["error"]["code"], &late[0]["error"]["status"]),
        (&json!("stale_token"), &json!(409))
    );
    let told = other.beat(json!({"tokens": [held[0]["token"], again[0]["token"]]})).await;
    assert_eq!(told["lost"], json!([held[0]["token"]]));
    other.report(&again, json!({"outcome": "completed", "result": "right"})).await;
    assert_eq!(api.wait(&job).await["result"], "right");
}

async fn a_cancel_reaches_a_waiting_poll_and_every_heartbeat(kind: StoreKind) {
    let server = Server::start(kind).await;
    let api = server.api();
    let worker = RemoteWorker::register(&api, json!({})).await;
    let job = id_of(&api.submit(&work(json!({}))).await);
    let held = worker.take(1).await;
    let token = &held[0]["token"];
    let refused = worker.report(&held, json!({"outcome": "cancelled"})).await;
    assert_eq!(refused[0]["error"]["code"], "illegal_state", "nobody asked for that");
    let began = Instant::now();
    let (told, _) = tokio::join!(worker.poll_for(json!({"max": 1, "wait": "20s"})), async {
        api.act(&format!("/api/v1/jobs/{job}/cancel")).await.success()
    });
    assert_eq!(told["cancel"], json!([token]));
    assert!(began.elapsed() < Duration::from_secs(5));
    for _ in 0..2 {
        assert_eq!(worker.beat(json!({})).await["cancel"], json!([token]));
    }
    let ended = worker.report(&held, json!({"outcome": "cancelled"})).await;
    assert_eq!(ended[0]["job_status"], "cancelled");
    assert_eq!(worker.beat(json!({"held": 0})).await["cancel"], json!([]));
}

async fn the_same_report_again_is_answered_as_before(kind: StoreKind) {
    let server = Server::start(kind).await;
    let api = server.api();
    let worker = RemoteWorker::register(&api, json!({})).await;
    api.submit(&work(json!({"retry": quick_retries(0)}))).await;
    let done = worker.take(1).await;
    for _ in 0..2 {
        let results = worker.report(&done, json!({"outcome": "completed", "result": {"rows": 7}})).await;
        assert_eq!(results[0], json!({"status": "accepted", "job_status": "completed"}));
    }
    let other = worker.report(&done, json!({"outcome": "completed", "result": {"rows": 8}})).await;
    assert_eq!(other[0]["error"]["code"], "stale_token");
    api.submit(&work(json!({"retry": quick_retries(0)}))).await;
    let failed = worker.take(1).await;
    let failure =
        json!({"outcome": "failed", "error": {"code": "bad", "message": "no", "type": "ValueError"}});
    for _ in 0..2 {
        let results = worker.report(&failed, failure.clone()).await;
        assert_eq!(results[0], json!({"status": "accepted", "job_status": "failed"}));
    }
    let job = api.job(text(&failed[0]["job"], "id")).await;
    assert_eq!(job["error"], json!({"code": "bad", "message": "ValueError: no"}));
    // Also under a session that has ended: the token is the right.
    worker.leave("drained").await.expect(204);
    let results = worker.report(&failed, failure).await;
    assert_eq!(results[0]["status"], "accepted");
}

async fn a_snoozed_job_comes_back_and_costs_no_retry(kind: StoreKind) {
    let server = Server::start(kind).await;
    let api = server.api();
    let worker = RemoteWorker::register(&api, json!({})).await;
    let job = id_of(&api.submit(&work(json!({"retry": quick_retries(0)}))).await);
    for attempt in 1..=3 {
        let held = worker.take(1).await;
        assert_eq!((&held[0]["attempt"], &held[0]["job"]["retries"]), (&json!(attempt), &json!(0)));
        let results = worker.report(&held, json!({"outcome": "snoozed", "delay": "200ms"})).await;
        assert_eq!(results[0]["job_status"], "scheduled");
    }
    assert_eq!(api.attempts(&job).await[0]["outcome"], "snoozed");
    let held = worker.take(1).await;
    worker.report(&held, json!({"outcome": "completed"})).await;
    assert_eq!(api.wait(&job).await["status"], "completed");
}

async fn an_attempt_that_hangs_is_ended_at_its_deadline(kind: StoreKind) {
    let server = Server::start(kind).await;
    let api = server.api();
    let worker = RemoteWorker::register(&api, json!({})).await;
    let job = work(json!({"timeout": "1s", "retry": quick_retries(0)}));
    let job = id_of(&api.submit(&job).await);
    let held = worker.take(1).await;
    let ended = eventually("the server to end it", SOON, async || {
        worker.beat(json!({"attempts": [{"token": held[0]["token"]}]})).await;
        Some(api.job(&job).await).filter(|job| job["status"] == "failed")
    })
    .await;
    assert_eq!(ended["error"]["code"], "timed_out");
    assert_eq!(worker.beat(json!({"tokens": [held[0]["token"]]})).await["lost"], json!([held[0]["token"]]));
}

async fn a_job_goes_only_to_a_worker_that_offers_what_it_requires(kind: StoreKind) {
    let server = Server::start(kind).await;
    let api = server.api();
    let plain = RemoteWorker::register(&api, json!({})).await;
    let job = api.submit(&work(json!({"requires": {"gpu": true, "memory": 16}}))).await;
    let id = text(&job, "id");
    let why = api.get(&format!("/api/v1/jobs/{id}/why")).await.json();
    assert_eq!(why["code"], "unroutable");
    assert!(text(&why, "sentence").ends_with("gpu = true, memory of at least 16"), "{why}");
    eventually("the metric to count it", PATIENCE, async || {
        (api.metric("tickwheel_jobs_unroutable").await == 1.0).then_some(())
    })
    .await;
    assert!(plain.poll(1, Duration::from_millis(500)).await.is_empty());
    let gpu = RemoteWorker::register(&api, json!({"labels": {"gpu": true, "memory": 32}})).await;
    assert_eq!(gpu.take(1).await[0]["job"]["id"], id);
    let other = RemoteWorker::register(&api, json!({"queues": ["mail"], "types": ["send", "work"]})).await;
    api.submit(&work(json!({"queue": "mail"}))).await;
    assert_eq!(other.take(1).await[0]["job"]["queue"], "mail");
    eventually("the metric to forget it", PATIENCE, async || {
        (api.metric("tickwheel_jobs_unroutable").await == 0.0).then_some(())
    })
    .await;
}

async fn workers_and_their_jobs_survive_a_restart_of_the_server(kind: StoreKind) {
    let mut server = Server::start(kind).await;
    let api = server.api();
    let worker = RemoteWorker::register(&api, json!({})).await;
    let job = id_of(&api.submit(&work(json!({}))).await);
    let held = worker.take(1).await;
    server.kill9().await;
    server.restart().await;
    let worker = RemoteWorker { api: server.api(), id: worker.id };
    let calm = worker.beat(json!({"held": 1, "tokens": [held[0]["token"]]})).await;
    assert_eq!((&calm["lost"], &calm["resync"]), (&json!([]), &json!(false)), "it is still its own");
    let results = worker.report(&held, json!({"outcome": "completed", "result": 1})).await;
    assert_eq!(results[0]["job_status"], "completed");
    assert_eq!(worker.api.job(&job).await["attempt"], 1);
    worker.api.submit(&work(json!({}))).await;
    assert_eq!(worker.take(1).await.len(), 1, "and it is given more");
}

async fn a_draining_worker_takes_nothing_new(kind: StoreKind) {
    let server = Server::start(kind).await;
    let api = server.api();
    let worker = RemoteWorker::register(&api, json!({})).await;
    let path = format!("/api/v1/workers/{}", worker.id);
    let (told, _) = tokio::join!(worker.poll_for(json!({"max": 1, "wait": "20s"})), async {
        api.act(&format!("{path}/drain")).await.expect(200)
    });
    assert_eq!(told["drain"], true);
    let job = id_of(&api.submit(&work(json!({}))).await);
    assert!(worker.poll(1, Duration::from_millis(500)).await.is_empty());
    let why = api.get(&format!("/api/v1/jobs/{job}/why")).await.json();
    assert_eq!(why["code"], "workers_draining");
    assert_eq!(api.get(&path).await.json()["state"], "draining");
    api.act(&format!("{path}/resume")).await.expect(200);
    assert_eq!(worker.take(1).await[0]["job"]["id"], json!(job));
    assert_eq!(worker.beat(json!({})).await["drain"], false);
}

async fn what_never_reached_its_worker_goes_back(kind: StoreKind) {
    let server = Server::start(kind).await;
    let api = server.api();
    let worker = RemoteWorker::register(&api, json!({})).await;
    let job = id_of(&api.submit(&work(json!({}))).await);
    let unread = worker.take(1).await;
    assert_eq!(worker.beat(json!({"held": 0})).await["resync"], true);
    // It was handed out a moment ago and may still be on its way; later it is not.
    let back = eventually("it to go back", PATIENCE, async || {
        worker.beat(json!({"held": 0, "tokens": []})).await;
        Some(api.job(&job).await).filter(|job| job["status"] == "scheduled")
    })
    .await;
    assert_eq!((&back["attempt"], &back["retries"]), (&json!(1), &json!(0)));
    let late = worker.report(&unread, json!({"outcome": "completed"})).await;
    assert_eq!(late[0]["error"]["code"], "stale_token");
    assert_eq!(worker.take(1).await[0]["attempt"], 2);
}

async fn a_job_that_may_run_once_is_not_given_to_a_second_worker(kind: StoreKind) {
    let server = Server::start(kind).await;
    let api = server.api();
    let mut jobs = Vec::new();
    for _ in 0..3 {
        jobs.push(id_of(&api.submit(&work(json!({"delivery": "at_most_once"}))).await));
    }
    let (lost, left, back) = (
        RemoteWorker::register(&api, json!({})).await,
        RemoteWorker::register(&api, json!({})).await,
        RemoteWorker::register(&api, json!({"lease": "1m"})).await,
    );
    lost.take(1).await;
    left.take(1).await;
    let held = back.take(1).await;
    left.leave("crashed").await.expect(204);
    let results = back.report(&held, json!({"outcome": "released"})).await;
    assert_eq!(results[0]["job_status"], "failed");
    for job in &jobs {
        let ended = until(&api, job, "it to fail", |job| job["status"] == "failed").await;
        assert_eq!(ended["attempt"], 1);
        let letter = api.get(&format!("/api/v1/dead-letters/{job}")).await.json();
        assert_eq!(letter["reason"], "at_most_once");
    }
}
