//! What a browser sends because a web page wants it is refused; what programs send is not. The store does not matter
//! here.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::json;

use crate::api::{Answer, text};
use crate::e2e::Stage;
use crate::server::{Server, StoreKind};
use crate::target::Reply;

const EVIL: &str = "http://evil.example";
const JSON: (&str, &str) = ("content-type", "application/json");

async fn send(stage: &Stage, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    stage.api.exchange(request.body(Full::new(Bytes::new())).unwrap()).await.unwrap()
}

async fn is_halted(stage: &Stage) -> bool {
    stage.api.get("/api/v1/admin/status").await.expect(200).json()["halted"] == json!(true)
}

#[tokio::test]
async fn a_post_that_any_web_page_could_send_changes_nothing() {
    let stage = Stage::set(StoreKind::Sqlite).await;
    let waiting = stage.submit("/later", json!({"delay": "1h"})).await;
    let paths = [
        "/api/v1/admin/halt".to_owned(),
        "/api/v1/queues/default/pause".to_owned(),
        format!("/api/v1/jobs/{waiting}/cancel"),
        "/api/v1/dead-letters/redrive".to_owned(),
    ];
    for path in &paths {
        for simple in
            ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
        {
            let headers: &[_] = if simple.is_empty() { &[] } else { &[("content-type", simple)] };
            let refused = send(&stage, "POST", path, headers).await.expect(415);
            assert_eq!(refused.code(), "unsupported_media_type", "{path}");
            assert!(refused.text().contains("-H 'content-type: application/json'"), "{}", refused.text());
        }
        for headers in
            [[JSON, ("origin", EVIL)], [JSON, ("sec-fetch-site", "cross-site")], [JSON, ("origin", "null")]]
        {
            assert_eq!(send(&stage, "POST", path, &headers).await.expect(403).code(), "cross_site", "{path}");
        }
    }
    assert!(!is_halted(&stage).await);
    assert_eq!(stage.api.get("/api/v1/queues/default").await.expect(200).json()["paused"], false);
    assert_eq!(text(&stage.api.job(&waiting).await, "status"), "scheduled");

    send(&stage, "POST", "/api/v1/admin/halt", &[("tickwheel-client", "test")]).await.expect(200);
    assert!(is_halted(&stage).await);
    let own = stage.server.url().to_owned();
    let resume = [JSON, ("origin", own.as_str()), ("sec-fetch-site", "same-origin")];
    send(&stage, "POST", "/api/v1/admin/resume", &resume).await.expect(200);
    assert!(!is_halted(&stage).await);
}

#[tokio::test]
async fn a_name_that_was_pointed_at_the_server_opens_nothing() {
    let stage = Stage::set(StoreKind::Sqlite).await;
    let id = stage.submit("/later", json!({"delay": "1h"})).await;
    let job = format!("/api/v1/jobs/{id}");
    for (method, path) in [
        ("GET", "/api/v1/jobs"),
        ("GET", job.as_str()),
        ("DELETE", job.as_str()),
        ("POST", "/api/v1/admin/halt"),
        ("GET", "/metrics"),
        ("GET", "/"),
    ] {
        for host in ["rebind.example", "rebind.example:7180", "127.0.0.1.rebind.example"] {
            let refused = send(&stage, method, path, &[("host", host), JSON]).await.expect(403);
            assert_eq!(refused.code(), "host_not_allowed", "{method} {path} at {host}");
            assert!(refused.text().contains("server.allowed_hosts"), "{}", refused.text());
        }
    }
    assert_eq!(text(&stage.api.job(&id).await, "status"), "scheduled");
    for host in ["localhost:1", "127.0.0.1", "[::1]:7180"] {
        send(&stage, "GET", &job, &[("host", host)]).await.expect(200);
    }
    send(&stage, "GET", "/readyz", &[("host", "balancer.example")]).await.expect(200);
}

#[tokio::test]
async fn a_configured_name_is_answered() {
    let server = Server::builder(StoreKind::Sqlite)
        .env("TICKWHEEL_SERVER_ALLOWED_HOSTS", "jobs.example.com, jobs")
        .start()
        .await;
    let stage = Stage::on(server).await;
    for host in ["jobs.example.com", "JOBS:7180"] {
        send(&stage, "GET", "/api/v1/jobs", &[("host", host)]).await.expect(200);
    }
    let page = [("host", "jobs.example.com"), ("origin", "https://jobs.example.com"), JSON];
    send(&stage, "POST", "/api/v1/queues/default/pause", &page).await.expect(200);
    send(&stage, "GET", "/api/v1/jobs", &[("host", "rebind.example")]).await.expect(403);
}

#[tokio::test]
async fn a_target_reports_with_its_token_alone() {
    let stage = Stage::set(StoreKind::Sqlite).await;
    stage.target.reply("/later", Reply::status(202));
    let id = stage.submit("/later", json!({})).await;
    let token = stage.target.called("/later", 1).await[0].header("tickwheel-token").to_owned();
    stage.awaits_report(&id).await;
    let report = |verb: &str| format!("/api/v1/attempts/{token}/{verb}");
    let from_afar = [("host", "jobs.internal")];
    send(&stage, "POST", &report("heartbeat"), &from_afar).await.expect(200);
    send(&stage, "POST", &report("complete"), &from_afar).await.expect(204);
    stage.until(&id, "completed").await;
}
