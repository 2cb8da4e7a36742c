//! Reading: waiting for an end, lists with filters and pages, and why a job is not running.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::{id_of, text, time};
use crate::e2e::{Stage, on_both_stores, quick_retries, with};
use crate::eventually::{PATIENCE, eventually};
use crate::server::StoreKind;
use crate::target::{Gate, Reply};

on_both_stores! {
    waiting_for_a_job_answers_when_it_has_ended_and_not_before,
    waiting_gives_up_in_its_time,
    every_filter_narrows_the_list,
    pages_follow_each_other_without_gaps_or_repetitions,
    every_state_has_a_reason,
    a_job_without_a_free_slot_says_so,
    the_latest_attempt_shows_while_it_is_running,
}

async fn waiting_for_a_job_answers_when_it_has_ended_and_not_before(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/long", Reply::ok().behind(&gate));
    let id = stage.submit("/long", json!({})).await;
    stage.target.called("/long", 1).await;
    let path = format!("/api/v1/jobs/{id}?wait=30s");
    let waiting = stage.api.get(&path);
    tokio::pin!(waiting);
    let early = tokio::time::timeout(Duration::from_millis(200), &mut waiting).await;
    assert!(early.is_err(), "answered although it had not ended");
    gate.open();
    let job = waiting.await.expect(200).json();
    assert_eq!(text(&job, "status"), "completed");
    let again = Instant::now();
    stage.api.get(&path).await.expect(200);
    assert!(again.elapsed() < Duration::from_secs(5), "one that has ended is answered at once");
}

async fn waiting_gives_up_in_its_time(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let id = stage.submit("/run", json!({"delay": "1h"})).await;
    let began = Instant::now();
    let answer = stage.api.get(&format!("/api/v1/jobs/{id}?wait=200ms")).await.expect(408);
    assert_eq!(answer.code(), "wait_timeout");
    assert!(began.elapsed() >= Duration::from_millis(200));
    let cancelled = stage.act(&id, "cancel").await.expect(200);
    assert_eq!(text(&cancelled.json(), "status"), "cancelled");
    stage.api.get(&format!("/api/v1/jobs/{id}?wait=0")).await.expect(200);
}

async fn every_filter_narrows_the_list(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let put_off = |fields: Value| with(json!({"delay": "1h"}), fields);
    let mail = stage.submit("/run", put_off(json!({"type": "mail", "tags": ["a", "b"]}))).await;
    let high = stage.submit("/run", put_off(json!({"priority": "high", "tags": ["b"]}))).await;
    let lane = stage.submit("/run", put_off(json!({"queue": "lane"}))).await;
    let done = stage.submit("/run", json!({"type": "mail"})).await;
    let created = text(&stage.until(&done, "completed").await, "created_at").to_owned();
    let names = [(&mail, "mail"), (&high, "high"), (&lane, "lane"), (&done, "done")];
    let found = async |query: &str| {
        let jobs = stage.api.list(&format!("/api/v1/jobs?{query}")).await;
        let name_of = |job: &Value| names.iter().find(|(id, _)| **id == id_of(job)).unwrap().1;
        jobs.iter().map(name_of).collect::<Vec<_>>().join(" ")
    };
    for (query, names) in [
        ("", "done lane high mail"),
        ("type=mail", "done mail"),
        ("status=completed", "done"),
        ("status=scheduled", "lane high mail"),
        ("status=scheduled&type=mail", "mail"),
        ("status=running", ""),
        ("queue=lane", "lane"),
        ("priority=high", "high"),
        ("tag=a", "mail"),
        ("tag=b", "high mail"),
        ("tag=nobody", ""),
        ("tag=b&priority=high", "high"),
        ("schedule_id=none", ""),
        ("from=2199-01-01T00:00:00Z", ""),
        ("to=2001-01-01T00:00:00Z", ""),
        ("from=2001-01-01T00:00:00Z&to=2199-01-01T00:00:00Z", "done lane high mail"),
    ] {
        assert_eq!(found(query).await, names, "{query}");
    }
    assert!(found(&format!("from={created}")).await.contains("done"), "`from` includes its moment");
    assert!(!found(&format!("to={created}")).await.contains("done"), "`to` does not");
    for bad in ["status=asleep", "limit=0", "limit=1001", "cursor=nonsense", "colour=red", "from=yesterday"] {
        stage.api.get(&format!("/api/v1/jobs?{bad}")).await.expect(400);
    }
}

async fn pages_follow_each_other_without_gaps_or_repetitions(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    // Some have ended and some have not, in between each other, and many are of the same millisecond.
    let job = |n: u32| {
        let path = if n.is_multiple_of(3) { "/broken" } else { "/run" };
        let delay = if n.is_multiple_of(2) { "0s" } else { "1h" };
        stage.job(path, json!({"delay": delay, "tags": if n < 30 { vec!["early"] } else { vec![] }}))
    };
    stage.target.reply("/broken", Reply::status(400));
    let submitted = stage.api.submit_batch(&(0..61).map(job).collect::<Vec<_>>()).await;
    for job in submitted.iter().step_by(2) {
        stage.api.wait(&id_of(job)).await;
    }
    for (query, count) in
        [("limit=7", 61), ("limit=61", 61), ("limit=10&status=scheduled", 30), ("limit=4&tag=early", 30)]
    {
        let listed = stage.api.list(&format!("/api/v1/jobs?{query}")).await;
        let ids: Vec<String> = listed.iter().map(id_of).collect();
        assert_eq!(ids.len(), count, "{query}");
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), count, "{query}");
        assert!(listed.is_sorted_by(|a, b| time(a, "created_at") >= time(b, "created_at")), "{query}");
    }
    let letters = stage.api.list("/api/v1/dead-letters?limit=2").await;
    let ids: HashSet<&str> = letters.iter().map(|letter| text(letter, "job_id")).collect();
    assert_eq!((letters.len(), ids.len()), (11, 11));
}

async fn every_state_has_a_reason(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/long", Reply::ok().behind(&gate));
    stage.target.reply("/later", Reply::status(202));
    stage.target.reply("/broken", Reply::status(400).body("no such order"));
    stage.target.reply("/flaky", Reply::status(500));
    let reason = async |id: &str| {
        let why = stage.why(id).await;
        assert_eq!(text(&why, "job_id"), id);
        assert!(!text(&why, "sentence").is_empty());
        why
    };
    let code = async |id: &str| text(&reason(id).await, "code").to_owned();

    let put_off = stage.api.submit(&stage.job("/run", json!({"delay": "1h"}))).await;
    let why = reason(&id_of(&put_off)).await;
    assert_eq!((text(&why, "code"), &why["expected_start"]), ("not_yet_due", &put_off["execute_at"]));
    assert_eq!(why["since"], put_off["created_at"]);

    let paused = stage.submit("/run", json!({"delay": "1h"})).await;
    stage.act(&paused, "pause").await.expect(200);
    assert_eq!(code(&paused).await, "paused");
    let cancelled = stage.submit("/run", json!({"delay": "1h"})).await;
    stage.act(&cancelled, "cancel").await.expect(200);
    assert_eq!(code(&cancelled).await, "cancelled");

    let running = stage.submit("/long", json!({})).await;
    stage.target.called("/long", 1).await;
    assert_eq!(code(&running).await, "running");
    gate.open();
    stage.until(&running, "completed").await;
    assert_eq!(code(&running).await, "completed");

    let accepted = stage.submit("/later", json!({})).await;
    stage.target.called("/later", 1).await;
    eventually("the 202 to be on record", PATIENCE, async || {
        (code(&accepted).await == "awaiting_report").then_some(())
    })
    .await;

    let broken = stage.submit("/broken", json!({})).await;
    stage.until(&broken, "failed").await;
    let why = reason(&broken).await;
    assert_eq!(text(&why, "code"), "failed");
    assert!(text(&why, "sentence").contains("no such order"), "{why}");

    let flaky = stage.submit("/flaky", json!({"retry": {"max_retries": 1, "initial_delay": "1h"}})).await;
    let job = stage.until_backoff(&flaky, 1).await;
    let why = reason(&flaky).await;
    assert_eq!((text(&why, "code"), &why["expected_start"]), ("retry_backoff", &job["next_run_at"]));

    let for_a_worker = id_of(&stage.api.submit(&json!({"type": "resize"})).await);
    assert_eq!(code(&for_a_worker).await, "unroutable");

    stage.api.act("/api/v1/queues/lane/pause").await.expect(200);
    let held = stage.submit("/run", json!({"queue": "lane"})).await;
    assert_eq!(code(&held).await, "queue_paused");
    stage.api.act("/api/v1/admin/halt").await.expect(200);
    let halted = stage.submit("/run", json!({})).await;
    assert_eq!(code(&halted).await, "halted");
    stage.api.get("/api/v1/jobs/01890a5d-ac96-774b-bcce-b302099a8057/why").await.expect(404);
}

async fn a_job_without_a_free_slot_says_so(kind: StoreKind) {
    let stage = Stage::with_one_slot(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/long", Reply::ok().behind(&gate));
    stage.submit("/long", json!({})).await;
    stage.target.called("/long", 1).await;
    let waiting = stage.submit("/run", json!({})).await;
    let why = stage.why(&waiting).await;
    assert_eq!(text(&why, "code"), "no_free_slot", "{why}");
    let status = stage.api.get("/api/v1/admin/status").await.json();
    assert_eq!(
        (&status["slots"], &status["slots_free"], &status["waiting"]),
        (&json!(1), &json!(0), &json!(1))
    );
    gate.open();
    stage.until(&waiting, "completed").await;
}

async fn the_latest_attempt_shows_while_it_is_running(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    let held = gate.clone();
    stage.target.on("/second", move |call| match call.header("tickwheel-attempt") {
        "1" => Reply::status(500),
        _ => Reply::ok().behind(&held),
    });
    let id = stage.submit("/second", json!({"retry": quick_retries(3)})).await;
    stage.target.called("/second", 2).await;
    let attempts = stage.api.attempts(&id).await;
    assert_eq!(attempts.len(), 2, "{attempts:?}");
    assert_eq!((&attempts[1]["outcome"], &attempts[1]["ended_at"]), (&Value::Null, &Value::Null));
    let job = stage.api.job(&id).await;
    assert_eq!((text(&job, "status"), &job["attempt"]), ("running", &json!(2)));
    assert!(job["deadline"].is_string());
    gate.open();
    stage.until(&id, "completed").await;
    for (number, lines) in [(1, 200), (2, 200), (3, 404), (0, 404)] {
        stage.api.get(&format!("/api/v1/jobs/{id}/attempts/{number}/logs")).await.expect(lines);
    }
}
