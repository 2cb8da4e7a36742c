//! Memory has a bound whatever clients do together: bodies under way, pages of lists, and answers that are being
//! fetched.

use std::time::Duration;

use futures::future::join_all;
use futures::stream::{self, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::api::{id_of, text};
use crate::e2e::{Stage, on_both_stores, quick_retries};
use crate::eventually::{PATIENCE, eventually};
use crate::server::{Server, StoreKind};
use crate::target::Reply;

on_both_stores! {
    a_list_carries_payloads_and_results_only_if_asked,
    a_page_ends_when_it_has_enough_bytes,
    attempts_come_in_pages_that_end_when_they_have_enough_bytes,
    the_overview_of_a_run_has_the_beginnings_of_long_errors,
}

const MIB: usize = 1 << 20;
const PAYLOAD: usize = 30_000;

/// A server whose pages end after about three jobs with a large payload.
async fn with_small_pages(kind: StoreKind) -> Stage {
    Stage::on(Server::builder(kind).env("TICKWHEEL_LIMITS_PAGE_BYTES_MAX", "80000").start().await).await
}

async fn a_list_carries_payloads_and_results_only_if_asked(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/run", Reply::json(json!({"rows": 3})));
    let id = stage.submit("/run", json!({"payload": {"day": 1}})).await;
    stage.until(&id, "completed").await;
    let listed = async |include: &str| stage.api.list(&format!("/api/v1/jobs{include}")).await.remove(0);
    let plain = listed("").await;
    assert_eq!((plain.get("payload"), plain.get("result")), (None, None), "{plain}");
    assert_eq!(text(&plain, "id"), id);
    let with_result = listed("?include=result").await;
    assert_eq!((with_result.get("payload"), &with_result["result"]), (None, &json!({"rows": 3})));
    let whole = listed("?include=payload,result").await;
    assert_eq!(whole, stage.api.job(&id).await);
    let refused = stage.api.get("/api/v1/jobs?include=secrets").await.expect(400);
    assert_eq!(refused.code(), "invalid_parameter");
}

async fn a_page_ends_when_it_has_enough_bytes(kind: StoreKind) {
    let stage = with_small_pages(kind).await;
    stage.target.reply("/bad", Reply::status(400));
    let payload = "x".repeat(PAYLOAD);
    let mut ids = Vec::new();
    for n in 0..10 {
        let (path, delay) = if n % 2 == 0 { ("/bad", "0s") } else { ("/later", "1h") };
        ids.push(stage.submit(path, json!({"payload": payload, "delay": delay})).await);
    }
    for id in ids.iter().step_by(2) {
        stage.until(id, "failed").await;
    }
    let page = stage.api.get("/api/v1/jobs?limit=1000").await.expect(200).json();
    assert_eq!(page["items"].as_array().unwrap().len(), 10, "without payloads all fit");

    ids.reverse();
    let all = stage.api.list("/api/v1/jobs?include=payload&limit=1000").await;
    assert_eq!(all.iter().map(id_of).collect::<Vec<_>>(), ids);
    assert!(all.iter().all(|job| text(job, "payload").len() == PAYLOAD));
    for path in ["/api/v1/jobs?include=payload&limit=1000", "/api/v1/dead-letters?limit=1000"] {
        let page = stage.api.get(path).await.expect(200).json();
        let items = page["items"].as_array().unwrap().len();
        assert!((1..=3).contains(&items) && page["next_cursor"].is_string(), "{path}: {items}");
    }
    assert_eq!(stage.api.list("/api/v1/dead-letters?limit=1000").await.len(), 5);

    let schedule = |n: usize| {
        let job = stage.job("/run", json!({"payload": payload}));
        json!({"name": format!("s{n}"), "cron": "0 0 1 1 *", "job": job})
    };
    for n in 0..5 {
        stage.api.post("/api/v1/schedules", &schedule(n)).await.expect(201);
    }
    let page = stage.api.get("/api/v1/schedules?limit=1000").await.expect(200).json();
    assert!(page["items"].as_array().unwrap().len() <= 3 && page["next_cursor"].is_string());
    assert_eq!(stage.api.list("/api/v1/schedules?limit=1000").await.len(), 5);
}

async fn attempts_come_in_pages_that_end_when_they_have_enough_bytes(kind: StoreKind) {
    let server = Server::builder(kind).env("TICKWHEEL_LIMITS_PAGE_BYTES_MAX", "1024").start().await;
    let stage = Stage::on(server).await;
    stage.target.reply("/bad", Reply::status(500).body("e".repeat(500)));
    let id = stage.submit("/bad", json!({"retry": quick_retries(9)})).await;
    stage.until(&id, "failed").await;
    let path = format!("/api/v1/jobs/{id}/attempts");
    let page = stage.api.get(&path).await.expect(200).json();
    assert_eq!(page["items"].as_array().unwrap().len(), 2, "two of them have more than a KiB");
    let numbers =
        |attempts: &[Value]| attempts.iter().map(|a| a["number"].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(numbers(&stage.api.attempts(&id).await), (1..=10).collect::<Vec<_>>());
    let one = stage.api.get(&format!("{path}?limit=1")).await.expect(200).json();
    assert_eq!(numbers(one["items"].as_array().unwrap()), [1]);
    let next = stage.api.get(&format!("{path}?limit=1&cursor={}", text(&one, "next_cursor"))).await;
    assert_eq!(numbers(next.expect(200).json()["items"].as_array().unwrap()), [2]);
    for refused in ["limit=0", "limit=1001", "limit=x", "cursor=x", "limits=1"] {
        stage.api.get(&format!("{path}?{refused}")).await.expect(400);
    }
}

/// Clients that read at the same time.
const CLIENTS: usize = 8;

/// What this many clients get that read `path` at the same time, and by how much the server's own memory grew meanwhile
/// at the most.
async fn read_by_many(stage: &Stage, path: &str) -> (Vec<Value>, u64) {
    let before = stage.server.memory_private();
    let mut peak = before;
    let mut answers = std::pin::pin!(join_all((0..CLIENTS).map(|_| stage.api.get(path))));
    loop {
        tokio::select! {
            answers = &mut answers => {
                let answers = answers.into_iter().map(|answer| answer.expect(200).json()).collect();
                return (answers, peak - before);
            }
            // sleep: the pause between two looks
            () = tokio::time::sleep(Duration::from_millis(1)) => peak = peak.max(stage.server.memory_private()),
        }
    }
}

/// On one store: what PostgreSQL sends is in memory twice for a moment, which says nothing about answers.
#[tokio::test]
async fn a_page_of_large_jobs_is_never_there_as_one_text() {
    const JOBS: usize = 128;
    const LARGE: usize = 250_000;
    let page_bytes_max = (JOBS * (LARGE + 1_000)).to_string();
    let builder = Server::builder(StoreKind::Sqlite);
    let server = builder.env("TICKWHEEL_LIMITS_PAGE_BYTES_MAX", &page_bytes_max).start().await;
    let stage = Stage::on(server).await;
    for part in 0..JOBS / 32 {
        let payload = |n: usize| format!("{}{}", part * 32 + n, "x".repeat(LARGE));
        let jobs: Vec<Value> =
            (0..32).map(|n| stage.job("/run", json!({"delay": "1h", "payload": payload(n)}))).collect();
        stage.api.submit_batch(&jobs).await;
    }
    let (pages, grown) = read_by_many(&stage, "/api/v1/jobs?include=payload,result&limit=1000").await;
    for page in &pages {
        assert_eq!(page["items"].as_array().unwrap().len(), JOBS);
    }
    let read = (CLIENTS * JOBS * LARGE) as u64;
    assert!(grown < read / 4 * 5, "{} MiB for {} MiB of jobs", grown >> 20, read >> 20);
}

async fn the_overview_of_a_run_has_the_beginnings_of_long_errors(kind: StoreKind) {
    const TASKS: usize = 150;
    const LONG: usize = 200_000;
    let server = Server::builder(kind).env("TICKWHEEL_LIMITS_ERROR_BYTES_MAX", "262144").start().await;
    let stage = Stage::on(server).await;
    stage.target.reply("/task", Reply::status(202));
    let url = stage.target.url("/task");
    let task = |n: usize| {
        let job = json!({"target": {"http": {"url": url}}, "timeout": "1h", "retry": {"max_retries": 0}});
        json!({"name": format!("t{n}"), "job": job})
    };
    let after = json!({"name": "after", "depends_on": ["t0"], "job": {}});
    let tasks = (0..TASKS).map(task).chain([after]).collect();
    stage.store("long", tasks, json!({"on_failure": "continue"})).await;
    let id = stage.start("long", Value::Null).await;
    let calls = stage.target.called("/task", TASKS).await;
    let error = json!({"error": {"code": "odd", "message": "ä".repeat(LONG / 2)}});
    let reports = calls.iter().map(async |call| {
        let path = format!("/api/v1/attempts/{}/fail", call.header("tickwheel-token"));
        stage.api.post(&path, &error).await.expect(204);
    });
    stream::iter(reports).buffer_unordered(CLIENTS).collect::<Vec<_>>().await;
    stage.api.run_ended(&id).await;

    let (runs, grown) = read_by_many(&stage, &format!("/api/v1/workflow-runs/{id}")).await;
    for run in &runs {
        let tasks = run["tasks"].as_array().unwrap();
        assert_eq!(tasks.len(), TASKS + 1);
        let cut = json!({"code": "odd", "message": "ä".repeat(128), "truncated": true});
        assert!(tasks[..TASKS].iter().all(|task| task["error"] == cut));
        let why = text(&tasks[TASKS], "why_waiting");
        assert!(why.starts_with("task after waits for t0, which failed: ää") && why.len() < 400, "{why}");
    }
    // Nobody reads more of an error than is shown; all of them would take this much for one client.
    let whole = (TASKS * LONG) as u64;
    assert!(grown < whole, "{} MiB for {} MiB of errors", grown >> 20, whole >> 20);
    let job = stage.api.job(text(&runs[0]["tasks"][0], "job_id")).await;
    assert_eq!((text(&job["error"], "message").len(), job["error"].get("truncated")), (LONG, None));
}

/// A batch of which a part was sent and the rest never comes.
async fn unfinished_batch(address: &str, sent: usize) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /api/v1/jobs/batch HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        16 * MIB
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // Whoever is refused may not get rid of all of it.
    let _ = stream.write_all(&vec![b' '; sent]).await;
    stream
}

/// What a client gets while its body is still incomplete; `None`: nothing yet.
async fn early_answer(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = [0; 4096];
    let length = tokio::select! {
        biased;
        read = stream.read(&mut bytes) => read.unwrap(),
        () = std::future::ready(()) => return None,
    };
    Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

#[tokio::test]
async fn bodies_under_way_have_a_bound_together_and_small_requests_find_room() {
    let server =
        Server::builder(StoreKind::Sqlite).env("TICKWHEEL_LIMITS_BODIES_BYTES_MAX", "33554432").start().await;
    let stage = Stage::on(server).await;
    let address = stage.server.url().strip_prefix("http://").unwrap().to_owned();
    // Three quarters of 32 MiB are for large bodies: three of 7 MiB fit, a fourth does not.
    let mut unfinished = Vec::new();
    for _ in 0..6 {
        unfinished.push(unfinished_batch(&address, 7 * MIB).await);
    }
    let refused = eventually("a body to be refused", PATIENCE, async || {
        for stream in &mut unfinished {
            if let Some(answer) = early_answer(stream).await {
                return Some(answer);
            }
        }
        None
    });
    let refused = refused.await;
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(refused.contains("overloaded") && refused.contains("retry-after"), "{refused}");

    let id = stage.submit("/run", json!({})).await;
    stage.until(&id, "completed").await;
    drop(unfinished);
    let jobs: Vec<Value> =
        (0..40).map(|_| stage.job("/run", json!({"payload": "x".repeat(200_000)}))).collect();
    let batch = json!({"jobs": jobs});
    let room = async || (stage.api.post("/api/v1/jobs/batch", &batch).await.status == 200).then_some(());
    eventually("room for a batch", PATIENCE, room).await;
}
