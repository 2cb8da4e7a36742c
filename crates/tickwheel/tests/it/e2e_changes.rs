//! What people do to a job: cancel, pause, change, run now, run again. Once acknowledged, it is in force.

use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use crate::api::{id_of, text, time};
use crate::e2e::{Stage, for_a_while, millis_between, on_both_stores, quick_retries, until_past};
use crate::eventually::PATIENCE;
use crate::server::StoreKind;
use crate::target::{Gate, Reply};

on_both_stores! {
    a_waiting_job_that_was_cancelled_never_runs,
    nothing_starts_after_an_acknowledged_cancel_or_pause_however_close_the_race,
    cancelling_a_running_job_hangs_up_on_its_target,
    a_cancelled_job_gets_no_retry,
    a_paused_job_stays_where_it_is_until_it_is_resumed,
    a_job_that_has_not_started_can_be_changed,
    a_job_can_be_brought_forward_and_put_off,
    a_job_runs_now_if_asked_to,
    a_failed_or_cancelled_job_runs_again_if_asked_to,
    a_change_that_makes_no_sense_is_refused_and_changes_nothing,
}

async fn a_waiting_job_that_was_cancelled_never_runs(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let by_post = stage.api.submit(&stage.job("/run", json!({"delay": "500ms"}))).await;
    let by_delete = stage.api.submit(&stage.job("/run", json!({"delay": "500ms"}))).await;
    let cancelled = stage.act(&id_of(&by_post), "cancel").await.expect(200).json();
    assert_eq!(text(&cancelled, "status"), "cancelled");
    assert!(cancelled["completed_at"].is_string());
    stage.api.delete(&format!("/api/v1/jobs/{}", id_of(&by_delete))).await.expect(200);
    stage.act(&id_of(&by_post), "cancel").await.expect(200);

    until_past(time(&by_delete, "execute_at")).await;
    for_a_while(async || assert!(stage.target.calls().is_empty())).await;
    for job in [by_post, by_delete] {
        assert_eq!(text(&stage.api.job(&id_of(&job)).await, "status"), "cancelled");
    }
    assert!(stage.api.list("/api/v1/dead-letters").await.is_empty(), "a cancelled job is no dead letter");
}

async fn nothing_starts_after_an_acknowledged_cancel_or_pause_however_close_the_race(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let job = |n: u32| stage.job("/run", json!({"delay": format!("{}ms", 500 + 4 * n)}));
    let jobs = stage.api.submit_batch(&(0..150).map(job).collect::<Vec<_>>()).await;
    let stop = async |n: usize, job: &Value| {
        let aim = time(job, "execute_at") - Duration::from_millis(n as u64 % 20);
        let left = aim.duration_since(Timestamp::now()).try_into().unwrap_or_default();
        // sleep: the race is to be close
        tokio::time::sleep(left).await;
        let answer = stage.act(&id_of(job), if n.is_multiple_of(2) { "cancel" } else { "pause" }).await;
        let before_it_started = answer.status == 200 && answer.json()["attempt"] == 0;
        before_it_started.then(|| id_of(job))
    };
    let stops = jobs.iter().enumerate().map(|(n, job)| stop(n, job));
    let stopped: Vec<String> = join_all(stops).await.into_iter().flatten().collect();
    let marker = stage.submit("/marker", json!({"delay": "300ms"})).await;
    stage.until(&marker, "completed").await;
    assert!(!stopped.is_empty(), "the race was never won");
    for id in stopped {
        assert_eq!(stage.target.calls_for(&id).len(), 0, "{id} ran although it was stopped");
        assert!(matches!(text(&stage.api.job(&id).await, "status"), "cancelled" | "paused"));
    }
}

async fn cancelling_a_running_job_hangs_up_on_its_target(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let job = json!({"type": "test", "target": {"http": {"url": url}}, "retry": quick_retries(5)});
    let id = id_of(&stage.api.submit(&job).await);
    let (mut connection, _) = listener.accept().await.unwrap();
    connection.readable().await.unwrap();
    stage.until(&id, "running").await;

    stage.act(&id, "cancel").await.expect(200);
    let mut request = Vec::new();
    let hung_up = connection.read_to_end(&mut request);
    tokio::time::timeout(PATIENCE, hung_up).await.expect("the connection is closed").unwrap();
    let job = stage.until(&id, "cancelled").await;
    assert_eq!(job["attempt"], 1);
    let attempts = stage.api.attempts(&id).await;
    assert_eq!((attempts.len(), text(&attempts[0], "outcome")), (1, "cancelled"));
}

async fn a_cancelled_job_gets_no_retry(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/fails", Reply::status(500));
    let slow_retry = json!({"max_retries": 5, "backoff": "fixed", "initial_delay": "1s", "jitter": 0});
    let id = stage.submit("/fails", json!({"retry": slow_retry})).await;
    let waiting = stage.until_backoff(&id, 1).await;
    let cancelled = stage.act(&id, "cancel").await.expect(200).json();
    assert_eq!((text(&cancelled, "status"), &cancelled["attempt"]), ("cancelled", &json!(1)));
    until_past(time(&waiting, "next_run_at")).await;
    for_a_while(async || assert_eq!(stage.target.calls().len(), 1)).await;
    assert_eq!(text(&stage.api.job(&id).await, "status"), "cancelled");
}

async fn a_paused_job_stays_where_it_is_until_it_is_resumed(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    let submitted = stage.api.submit(&stage.job("/run", json!({"delay": "500ms"}))).await;
    let id = id_of(&submitted);
    assert_eq!(text(&stage.act(&id, "pause").await.expect(200).json(), "status"), "paused");
    stage.act(&id, "pause").await.expect(200);
    until_past(time(&submitted, "execute_at")).await;
    for_a_while(async || assert!(stage.target.calls().is_empty())).await;
    stage.restart().await;
    assert_eq!(text(&stage.api.job(&id).await, "status"), "paused");
    assert!(stage.target.calls().is_empty());
    stage.act(&id, "resume").await.expect(200);
    stage.until(&id, "completed").await;

    // The same by PATCH.
    let id = stage.submit("/run", json!({"delay": "1h"})).await;
    let path = format!("/api/v1/jobs/{id}");
    let paused = stage.api.patch(&path, &json!({"status": "paused"})).await.expect(200).json();
    assert_eq!(text(&paused, "status"), "paused");
    let resumed = stage.api.patch(&path, &json!({"status": "scheduled"})).await.expect(200).json();
    assert_eq!(text(&resumed, "status"), "scheduled");
}

async fn a_job_that_has_not_started_can_be_changed(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let id = stage.submit("/run", json!({"delay": "1h", "payload": {"n": 1}, "tags": ["old"]})).await;
    let changes = json!({"priority": "critical", "payload": {"n": 2}, "tags": ["new"]});
    let changed = stage.api.patch(&format!("/api/v1/jobs/{id}"), &changes).await.expect(200).json();
    for (field, value) in changes.as_object().unwrap() {
        assert_eq!(&changed[field], value);
    }
    assert_eq!(stage.api.list("/api/v1/jobs?tag=old").await, Vec::<Value>::new());
    assert_eq!(stage.api.list("/api/v1/jobs?tag=new&priority=critical").await.len(), 1);
    stage.act(&id, "run").await.expect(200);
    assert_eq!(stage.target.called("/run", 1).await[0].json(), json!({"n": 2}));
    let to_null = stage.submit("/run", json!({"delay": "1h", "payload": 1})).await;
    let changed = stage.api.patch(&format!("/api/v1/jobs/{to_null}"), &json!({"payload": null})).await;
    assert_eq!(changed.expect(200).json()["payload"], Value::Null);
}

async fn a_job_can_be_brought_forward_and_put_off(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let soon = stage.api.submit(&stage.job("/put-off", json!({"delay": "500ms"}))).await;
    let later = stage.submit("/forward", json!({"delay": "24h"})).await;
    let put_off = json!({"execute_at": "2199-01-01T00:00:00Z"});
    let answer =
        stage.api.patch(&format!("/api/v1/jobs/{}", id_of(&soon)), &put_off).await.expect(200).json();
    assert_eq!(text(&answer, "execute_at"), "2199-01-01T00:00:00.000Z");
    assert_eq!(answer["next_run_at"], answer["execute_at"]);

    let at = Timestamp::now() + Duration::from_millis(150);
    let forward = json!({"execute_at": at.to_string()});
    stage.api.patch(&format!("/api/v1/jobs/{later}"), &forward).await.expect(200);
    let arrived = stage.target.called("/forward", 1).await[0].arrived_at;
    assert!(millis_between(at, arrived) >= -1, "not before its new time, to the millisecond it was said in");
    until_past(time(&soon, "execute_at")).await;
    for_a_while(async || assert!(stage.target.calls_to("/put-off").is_empty())).await;
}

async fn a_job_runs_now_if_asked_to(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let waiting = stage.submit("/run", json!({"delay": "24h"})).await;
    stage.act(&waiting, "run").await.expect(200);
    stage.until(&waiting, "completed").await;
    let paused = stage.submit("/run", json!({"delay": "24h"})).await;
    stage.act(&paused, "pause").await.expect(200);
    stage.act(&paused, "run").await.expect(200);
    stage.until(&paused, "completed").await;
    assert_eq!(stage.target.calls().len(), 2);
}

async fn a_failed_or_cancelled_job_runs_again_if_asked_to(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/flaky", Reply::status(400));
    let failed = stage.submit("/flaky", json!({})).await;
    stage.until(&failed, "failed").await;
    stage.target.reply("/flaky", Reply::ok());
    let retried = stage.act(&failed, "retry").await.expect(200).json();
    assert_eq!((text(&retried, "status"), &retried["retries"]), ("scheduled", &json!(0)));
    let job = stage.until(&failed, "completed").await;
    assert_eq!((&job["attempt"], &job["error"]), (&json!(2), &Value::Null), "{job}");
    stage.dead_letter(&failed).await.expect(404);
    assert_eq!(stage.api.attempts(&failed).await.len(), 2);

    let cancelled = stage.submit("/run", json!({"delay": "24h"})).await;
    stage.act(&cancelled, "cancel").await.expect(200);
    stage.act(&cancelled, "retry").await.expect(200);
    stage.until(&cancelled, "completed").await;
}

async fn a_change_that_makes_no_sense_is_refused_and_changes_nothing(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/long", Reply::ok().behind(&gate));
    let running = stage.submit("/long", json!({})).await;
    stage.target.called("/long", 1).await;
    let completed = stage.submit("/run", json!({})).await;
    stage.until(&completed, "completed").await;
    let waiting = stage.submit("/run", json!({"delay": "1h"})).await;

    for (id, verbs) in [
        (&running, &["pause", "resume", "run", "retry"][..]),
        (&completed, &["pause", "resume", "run", "retry", "cancel"]),
        (&waiting, &["retry"]),
    ] {
        let before = stage.api.job(id).await;
        for verb in verbs {
            assert_eq!(stage.act(id, verb).await.expect(409).code(), "illegal_state", "{verb}");
        }
        if id != &waiting {
            let patched = stage.api.patch(&format!("/api/v1/jobs/{id}"), &json!({"priority": "low"})).await;
            assert_eq!(patched.expect(409).code(), "illegal_state");
        }
        assert_eq!(stage.api.job(id).await, before);
    }
    for verb in ["cancel", "pause", "resume", "run", "retry"] {
        let unknown = stage.act("01890a5d-ac96-774b-bcce-b302099a8057", verb).await.expect(404);
        assert_eq!(unknown.code(), "not_found");
    }
    let refused = stage.act(&running, "run").await.json();
    assert!(text(&refused, "detail").contains("run"), "it says what was asked for: {refused}");
    gate.open();
    stage.until(&running, "completed").await;
}
