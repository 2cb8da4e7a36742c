//! Jobs that were given up.

use std::time::Duration;

use serde_json::{Value, json};

use crate::server::Server;

const LETTERS: &str = "/api/v1/dead-letters";

async fn dead_job(server: &Server, job: Value) -> String {
    let id = server.submit(job).await;
    server.kill(&id).await;
    server.clock.advance(Duration::from_secs(1));
    id
}

#[tokio::test]
async fn a_job_that_was_given_up_is_listed_with_its_reason() {
    let server = Server::start();
    let id = dead_job(&server, json!({"type": "t", "queue": "q", "payload": {"a": 1}, "tags": ["x"]})).await;
    let expected = json!({
        "job_id": id, "type": "t", "queue": "q", "priority": "normal", "tenant": "default",
        "reason": "not_retryable", "error": {"code": "boom", "message": "it blew up"},
        "failed_at": "2027-01-15T08:00:00.000Z", "attempts": 1, "payload": {"a": 1}, "tags": ["x"],
    });
    assert_eq!(server.get(LETTERS).await.ok(200), json!({"items": [expected], "next_cursor": null}));
    assert_eq!(server.get(&format!("{LETTERS}/{id}")).await.ok(200), expected);
}

#[tokio::test]
async fn the_latest_come_first_page_by_page_and_filtered() {
    let server = Server::start();
    let mut ids = Vec::new();
    for job in [json!({"type": "a"}), json!({"type": "b", "queue": "q"}), json!({"type": "a"})] {
        ids.push(dead_job(&server, job).await);
    }
    ids.reverse();
    let page = async |query: &str| {
        let list = server.get(&format!("{LETTERS}?{query}")).await.ok(200);
        let items = list["items"].as_array().unwrap();
        let ids: Vec<String> = items.iter().map(|l| l["job_id"].as_str().unwrap().to_owned()).collect();
        (ids, list["next_cursor"].as_str().map(str::to_owned))
    };
    let (first, cursor) = page("limit=2").await;
    assert_eq!(first, ids[..2]);
    let (rest, _) = page(&format!("limit=2&cursor={}", cursor.unwrap())).await;
    assert_eq!(rest, ids[2..]);
    assert_eq!(page("type=b").await.0, ids[1..2]);
    assert_eq!(page("queue=q&type=a").await.0, Vec::<String>::new());
}

#[tokio::test]
async fn one_can_be_run_again_with_another_payload() {
    let server = Server::start();
    let id = dead_job(&server, json!({"type": "t", "payload": 1})).await;
    let path = format!("{LETTERS}/{id}/redrive");
    let large = json!({"payload": "x".repeat(256 << 10)});
    assert_eq!(server.post(&path, large).await.problem(413), "payload_too_large");
    let job = server.post(&path, json!({"payload": {"fixed": true}})).await.ok(200);
    assert_eq!((&job["status"], &job["payload"]), (&json!("scheduled"), &json!({"fixed": true})));
    assert_eq!(server.call("POST", &path).await.problem(404), "not_found");
    assert_eq!(server.get(LETTERS).await.ok(200)["items"], json!([]));
}

#[tokio::test]
async fn many_can_be_run_again_by_filter_and_up_to_a_limit() {
    let server = Server::start();
    for n in 0..5 {
        dead_job(&server, json!({"type": if n < 3 { "a" } else { "b" }, "queue": "q"})).await;
    }
    let redrive = async |filter: Value| server.post(&format!("{LETTERS}/redrive"), filter).await;
    let done = async |filter: Value| {
        let progress = redrive(filter).await.ok(200);
        assert_eq!((&progress["status"], &progress["error"]), (&json!("completed"), &Value::Null));
        let path = format!("{LETTERS}/redrive/{}", progress["id"].as_str().unwrap());
        assert_eq!(server.get(&path).await.ok(200), progress);
        (progress["redriven"].clone(), progress["remaining"].clone())
    };
    assert_eq!(done(json!({"type": "none"})).await, (json!(0), json!(0)));
    assert_eq!(done(json!({"type": "a", "limit": 2})).await, (json!(2), json!(1)));
    let past = json!({"all": true, "failed_before": "2001-01-01T00:00:00Z"});
    assert_eq!(done(past).await, (json!(0), json!(0)));
    assert_eq!(redrive(json!({"all": true, "limit": 0})).await.problem(422), "validation_failed");
    assert_eq!(redrive(json!({"tag": "x"})).await.problem(400), "unknown_field");
    for empty in [json!({}), json!({"all": false}), json!({"limit": 1})] {
        assert_eq!(redrive(empty).await.problem(422), "validation_failed");
    }
    let nothing = server.call("POST", &format!("{LETTERS}/redrive")).await;
    assert_eq!(nothing.problem(422), "validation_failed", "an empty body is no request");
    assert_eq!(done(json!({"all": true})).await, (json!(3), json!(0)));
    for unknown in ["x", "01a1de56-9964-7173-80b2-dab211581a85"] {
        assert_eq!(server.get(&format!("{LETTERS}/redrive/{unknown}")).await.problem(404), "not_found");
    }
}

#[tokio::test]
async fn a_discarded_one_is_off_the_list_and_its_job_stays_in_history() {
    let server = Server::start();
    let id = dead_job(&server, json!({"type": "t"})).await;
    let path = format!("{LETTERS}/{id}");
    assert_eq!(server.call("DELETE", &path).await.ok(204), Value::Null);
    assert_eq!(server.call("DELETE", &path).await.problem(404), "not_found");
    assert_eq!(server.get(&format!("/api/v1/jobs/{id}")).await.ok(200)["status"], "failed");
}
