//! Queues, the stop switch, health.

use std::sync::atomic::Ordering;

use serde_json::json;

use crate::server::Server;

#[tokio::test]
async fn queues_are_known_by_their_jobs_or_by_being_paused() {
    let server = Server::start();
    assert_eq!(server.get("/api/v1/queues").await.ok(200), json!({"items": [], "next_cursor": null}));
    server.submit(json!({"type": "t", "queue": "mail"})).await;
    let paused = server.call("POST", "/api/v1/queues/a%20new%20one/pause").await.ok(200);
    assert_eq!(
        paused,
        json!({"name": "a new one", "paused": true, "waiting": 0, "more_waiting": false, "running": 0})
    );
    let list = server.get("/api/v1/queues").await.ok(200);
    let names: Vec<_> =
        list["items"].as_array().unwrap().iter().map(|q| q["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a new one", "mail"]);
    let resumed = server.call("POST", "/api/v1/queues/a%20new%20one/resume").await.ok(200);
    assert_eq!(resumed["paused"], false);
    assert_eq!(server.get("/api/v1/queues/mail").await.ok(200)["paused"], false);
}

#[tokio::test]
async fn a_paused_queue_says_how_many_jobs_are_due_in_it() {
    let server = Server::start();
    for job in [json!({}), json!({}), json!({"delay": "1h"})] {
        let mut job = job;
        job["type"] = json!("t");
        job["queue"] = json!("mail");
        server.submit(job).await;
    }
    let paused = server.call("POST", "/api/v1/queues/mail/pause").await.ok(200);
    assert_eq!(
        paused,
        json!({"name": "mail", "paused": true, "waiting": 2, "more_waiting": false, "running": 0})
    );
    assert_eq!(server.get("/api/v1/queues/mail").await.ok(200)["waiting"], 2);
    assert_eq!(server.get("/api/v1/queues").await.ok(200)["items"][0]["waiting"], 2);
}

#[tokio::test]
async fn a_queue_name_in_a_path_keeps_the_rules_of_names() {
    let server = Server::start();
    let long = "q".repeat(256);
    for name in [long.as_str(), "a%00b", "a%0Ab"] {
        let answer = server.call("POST", &format!("/api/v1/queues/{name}/pause")).await;
        assert_eq!(answer.problem(400), "invalid_parameter", "{name}");
    }
    assert_eq!(server.get("/api/v1/queues").await.ok(200)["items"], json!([]));
}

#[tokio::test]
async fn the_stop_switch_can_be_turned_and_read() {
    let server = Server::start();
    let status = server.get("/api/v1/admin/status").await.ok(200);
    let expected =
        json!({"halted": false, "slots": 8, "slots_free": 8, "waiting": 0, "running": 0, "dead_letters": 0});
    assert_eq!(status, expected);
    assert_eq!(server.call("POST", "/api/v1/admin/halt").await.ok(200)["halted"], true);
    assert_eq!(server.get("/api/v1/admin/status").await.ok(200)["halted"], true);
    assert_eq!(server.call("POST", "/api/v1/admin/resume").await.ok(200)["halted"], false);
}

#[tokio::test]
async fn health_is_about_the_process_and_readiness_about_traffic() {
    let server = Server::start();
    server.get("/healthz").await.ok(200);
    assert_eq!(server.get("/readyz").await.ok(200)["status"], "ready");
    server.ready.store(false, Ordering::SeqCst);
    assert_eq!(server.get("/readyz").await.problem(503), "not_ready");
    server.get("/healthz").await.ok(200);
}

#[tokio::test]
async fn metrics_are_prometheus_text_and_the_front_page_has_links() {
    let server = Server::start();
    let metrics = server.get("/metrics").await;
    assert!(metrics.headers["content-type"].to_str().unwrap().starts_with("text/plain; version=0.0.4"));
    assert_eq!(metrics.ok(200), "tickwheel_up 1\n");
    let front = server.get("/").await.ok(200);
    for link in front["links"].as_object().unwrap().values() {
        server.get(link.as_str().unwrap()).await.ok(200);
    }
}

#[tokio::test]
async fn requests_are_counted_by_route_and_not_by_path() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let server = Server::start();
    for n in 0..3 {
        server.get(&format!("/api/v1/jobs/0190f5f0-0000-7000-8000-00000000000{n}")).await.problem(404);
    }
    server.get("/no/such/path").await.problem(404);
    let text = recorder.handle().render();
    let counted = |route: &str| {
        let series = format!(r#"tickwheel_http_requests_total{{method="GET",route="{route}",status="404"}}"#);
        text.lines().find_map(|line| line.strip_prefix(&series)).map(|count| count.trim().to_owned())
    };
    assert_eq!(counted("/api/v1/jobs/{id}").as_deref(), Some("3"), "{text}");
    assert_eq!(counted("unmatched").as_deref(), Some("1"), "{text}");
    for metric in tickwheel_api::metrics::ALL {
        assert!(text.contains(&format!("# HELP {} {}\n", metric.name, metric.help)), "{text}");
    }
}
