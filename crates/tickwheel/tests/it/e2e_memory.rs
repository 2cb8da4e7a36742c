//! Memory has a bound whatever clients do together: bodies under way, and pages of lists.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::api::{id_of, text};
use crate::e2e::{Stage, on_both_stores};
use crate::eventually::{PATIENCE, eventually};
use crate::server::{Server, StoreKind};
use crate::target::Reply;

on_both_stores! {
    a_list_carries_payloads_and_results_only_if_asked,
    a_page_ends_when_it_has_enough_bytes,
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
