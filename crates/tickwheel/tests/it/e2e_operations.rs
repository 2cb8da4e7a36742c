//! Running a server: health, metrics, its own description, the demo, and what it refuses to do.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::api::text;
use crate::e2e::{Stage, on_both_stores, quick_retries};
use crate::eventually::{PATIENCE, eventually};
use crate::golden::repository_file;
use crate::program::tickwheel;
use crate::server::{Server, StoreKind};
use crate::target::{Gate, Reply};
use crate::workflows::{status_of, task_of};

on_both_stores! {
    a_server_says_that_it_lives_and_that_it_is_ready,
    every_documented_metric_is_there_after_some_activity,
    metrics_count_what_happened,
    the_page_of_metrics_stays_small_however_many_queues_there_are,
    the_demo_shows_a_newcomer_what_can_happen,
    a_setting_in_the_environment_or_the_file_is_in_force,
}

async fn a_server_says_that_it_lives_and_that_it_is_ready(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    assert_eq!(stage.api.get("/healthz").await.expect(200).json(), json!({"status": "ok"}));
    assert_eq!(stage.api.get("/readyz").await.expect(200).json(), json!({"status": "ready"}));
    let front = stage.api.get("/").await.expect(200).json();
    for link in front["links"].as_object().unwrap().values() {
        stage.api.get(link.as_str().unwrap()).await.expect(200);
    }
    let served = stage.api.get("/openapi.json").await.expect(200).json();
    let golden = std::fs::read_to_string(repository_file("docs/reference/openapi.json")).unwrap();
    assert_eq!(served, serde_json::from_str::<Value>(&golden).unwrap());
}

/// A completed, a retried, a failed and a cancelled job, and a callback.
async fn some_activity(stage: &Stage) {
    stage.target.reply("/flaky", Reply::status(500));
    let done = stage.submit("/run", json!({"callback_url": stage.target.url("/told")})).await;
    let failed = stage.submit("/flaky", json!({"retry": quick_retries(1)})).await;
    let cancelled = stage.submit("/run", json!({"delay": "1h"})).await;
    stage.act(&cancelled, "cancel").await.expect(200);
    stage.until(&done, "completed").await;
    stage.until(&failed, "failed").await;
    stage.target.called("/told", 1).await;
}

async fn every_documented_metric_is_there_after_some_activity(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    some_activity(&stage).await;
    let schedule = json!({"name": "tick", "every": "1s", "job": stage.job("/tick", json!({}))});
    stage.api.post("/api/v1/schedules", &schedule).await.expect(201);
    // The gauges look once in a while: there has to be something to see when they do.
    let gate = Gate::closed();
    stage.target.reply("/long", Reply::ok().behind(&gate));
    stage.submit("/long", json!({})).await;
    for metric in tickwheel_engine::metrics::ALL {
        let lines = [
            format!("# TYPE {} {}", metric.name, metric.kind),
            format!("# HELP {} {}", metric.name, metric.help),
        ];
        eventually(&lines.join(" and "), Duration::from_secs(15), async || {
            let page = stage.api.get("/metrics").await.expect(200);
            assert!(page.headers["content-type"].to_str().unwrap().starts_with("text/plain"));
            lines.iter().all(|line| page.text().contains(line)).then_some(())
        })
        .await;
    }
    gate.open();
}

/// The value of one line of the page.
fn metric(page: &str, name_and_labels: &str) -> f64 {
    let line =
        page.lines().find(|line| line.rsplit_once(' ').is_some_and(|(name, _)| name == name_and_labels));
    let line = line.unwrap_or_else(|| panic!("no {name_and_labels} in\n{page}"));
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

async fn metrics_count_what_happened(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    some_activity(&stage).await;
    let page = eventually("the callback to be counted", PATIENCE, async || {
        let page = stage.api.get("/metrics").await.text();
        (metric(&page, "tickwheel_callbacks_total{result=\"delivered\"}") > 0.0).then_some(page)
    })
    .await;
    for (name_and_labels, value) in [
        ("tickwheel_jobs_submitted_total", 3.0),
        ("tickwheel_attempts_started_total", 3.0),
        ("tickwheel_attempts_finished_total{outcome=\"completed\"}", 1.0),
        ("tickwheel_attempts_finished_total{outcome=\"failed\"}", 2.0),
        ("tickwheel_jobs_finished_total{state=\"completed\"}", 1.0),
        ("tickwheel_jobs_finished_total{state=\"failed\"}", 1.0),
        ("tickwheel_jobs_finished_total{state=\"cancelled\"}", 1.0),
        ("tickwheel_jobs_retried_total", 1.0),
        ("tickwheel_schedule_lag_seconds_count", 3.0),
        ("tickwheel_callbacks_total{result=\"delivered\"}", 1.0),
    ] {
        assert_eq!(metric(&page, name_and_labels), value, "{name_and_labels} in\n{page}");
    }
}

async fn the_page_of_metrics_stays_small_however_many_queues_there_are(kind: StoreKind) {
    const QUEUES: usize = 5_000;
    let stage = Stage::set(kind).await;
    // Due, and held back by a halt: each waits in its queue.
    stage.api.act("/api/v1/admin/halt").await.expect(200);
    let job = |number: usize| stage.job("/run", json!({"queue": format!("a-queue-with-a-number-{number}")}));
    let jobs: Vec<Value> = (0..QUEUES).map(job).collect();
    stage.api.submit_batch(&jobs).await;
    let page = eventually("all jobs to be counted", PATIENCE, async || {
        let page = stage.api.get("/metrics").await.text();
        let waiting = page.lines().filter(|line| line.starts_with("tickwheel_queue_waiting{"));
        let counts = waiting.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap());
        (counts.sum::<f64>() == QUEUES as f64).then_some(page)
    })
    .await;
    let series = page.lines().filter(|line| line.starts_with("tickwheel_queue_waiting{")).count();
    assert!(series <= 201, "{series} series");
    assert!(metric(&page, "tickwheel_queue_waiting{queue=\"other\"}") > 1_000.0);
    assert!(page.len() < 200_000, "{} bytes", page.len());
}

async fn the_demo_shows_a_newcomer_what_can_happen(kind: StoreKind) {
    let server = Server::builder(kind).guarded().arg("--demo").start().await;
    let api = server.api();
    let demo = eventually("the demo to play", Duration::from_secs(10), async || {
        let jobs = api.list("/api/v1/jobs?tag=demo").await;
        let ended = |kind: &str| jobs.iter().any(|job| job["type"] == kind && crate::api::has_ended(job));
        ["hello", "punctual", "slow_report", "flaky", "broken"].into_iter().all(ended).then_some(jobs)
    })
    .await;
    let job = |kind: &str| demo.iter().find(|job| job["type"] == kind).unwrap();
    for kind in ["hello", "punctual", "slow_report", "flaky"] {
        assert_eq!(text(job(kind), "status"), "completed", "{}", job(kind));
    }
    assert_eq!(job("flaky")["attempt"], 3);
    assert_eq!(text(job("broken"), "status"), "failed");
    assert_eq!(text(job("tomorrow"), "status"), "scheduled");
    let letters = api.list("/api/v1/dead-letters").await;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0]["job_id"], job("broken")["id"]);
    let schedules = eventually("the demo's schedules", Duration::from_secs(10), async || {
        Some(api.list("/api/v1/schedules").await).filter(|schedules| schedules.len() == 4)
    })
    .await;
    let names: Vec<&str> = schedules.iter().map(|schedule| text(schedule, "name")).collect();
    assert_eq!(names, ["heartbeat", "minutely-report", "nightly-backup", "workflow.etl"]);
    let runs = eventually("the demo's workflow to run", Duration::from_secs(10), async || {
        Some(api.list("/api/v1/workflow-runs?workflow=etl").await).filter(|runs| !runs.is_empty())
    })
    .await;
    let run = api.run_ended(text(&runs[0], "id")).await;
    assert_eq!(text(&run, "status"), "completed", "{run:#}");
    let rows = api.job(text(task_of(&run, "load"), "job_id")).await["result"]["rows"].clone();
    assert!(rows.as_u64().is_some_and(|rows| rows > 1_000), "{rows}");
    assert_eq!((status_of(&run, "alert"), status_of(&run, "refresh")), ("skipped", "completed"));
}

async fn a_setting_in_the_environment_or_the_file_is_in_force(kind: StoreKind) {
    let builder = Server::builder(kind).config("[engine]\nslots = 7\n\n[limits]\nname_chars_max = 10\n");
    let stage = Stage::on(builder.env("TICKWHEEL_LIMITS_TAGS_MAX", "1").start().await).await;
    assert_eq!(stage.api.get("/api/v1/admin/status").await.json()["slots"], 7);
    for fields in [json!({"type": "elevenchars"}), json!({"tags": ["a", "b"]})] {
        stage.api.post("/api/v1/jobs", &stage.job("/run", fields)).await.expect(422);
    }
    stage.submit("/run", json!({"type": "tencharact", "tags": ["a"]})).await;
}

#[test]
fn an_address_beyond_loopback_is_served_only_when_asked_for() {
    let refused = crate::program::run(&mut tickwheel(&["serve", "--listen", "0.0.0.0:0"]));
    assert_eq!(refused.code, Some(2), "{refused:?}");

    let directory = tempfile::tempdir().unwrap();
    let mut command = tickwheel(&["serve", "--listen", "0.0.0.0:0", "--allow-open-access", "--data-dir"]);
    let mut child =
        command.arg(directory.path()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.starts_with("tickwheel listens on http://0.0.0.0:"), "{line:?}");
}
