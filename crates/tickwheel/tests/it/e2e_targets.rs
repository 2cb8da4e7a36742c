//! HTTP targets: what they are sent, where they may be, and how much of their answer is kept.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::api::{id_of, text};
use crate::e2e::{Stage, for_a_while, millis_between, on_both_stores};
use crate::eventually::{PATIENCE, eventually};
use crate::server::{Server, StoreKind};
use crate::target::Reply;

on_both_stores! {
    a_target_is_told_what_it_is_called_for,
    a_job_says_how_it_wants_to_be_sent,
    a_private_address_is_refused_at_the_door_however_it_is_spelled,
    a_private_address_that_got_past_the_door_is_not_called_either,
    redirects_are_not_followed,
    an_answer_is_kept_up_to_its_limit,
    an_answer_that_is_not_json_is_kept_as_text,
    a_header_that_would_not_be_sent_is_refused,
    an_endless_promise_of_an_answer_is_cut_short,
}

async fn a_target_is_told_what_it_is_called_for(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage
        .target
        .on("/run", |call| Reply::status(if call.header("tickwheel-attempt") == "1" { 503 } else { 200 }));
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let fields = json!({"timeout": "77s", "payload": {"n": 1}, "retry": {"max_retries": 1, "initial_delay": "1ms"},
            "tags": ["daily", "eu,west"], "metadata": {"team": "mail"}, "created_by": "billing"});
    let request = http::Request::post("/api/v1/jobs")
        .header("content-type", "application/json")
        .header("traceparent", traceparent)
        .body(stage.job("/run", fields).to_string().into());
    let job = stage.api.exchange(request.unwrap()).await.unwrap().expect(201).json();
    let id = id_of(&job);
    let calls = stage.target.called("/run", 2).await;
    for (call, attempt) in calls.iter().zip(["1", "2"]) {
        assert_eq!((call.method.as_str(), call.header("content-type")), ("POST", "application/json"));
        assert_eq!(call.json(), json!({"n": 1}));
        assert_eq!(call.header("idempotency-key"), id);
        assert_eq!(call.header("tickwheel-job-id"), id);
        assert_eq!(call.header("tickwheel-attempt"), attempt);
        assert!(call.header("tickwheel-token").len() > 20);
        assert_eq!(call.header("tickwheel-scheduled-for"), text(&job, "execute_at"));
        assert!(call.header("traceparent").contains("0af7651916cd43dd8448eb211c80319c"));
        assert!(call.header("user-agent").starts_with("tickwheel/"), "{}", call.header("user-agent"));
        assert_eq!(call.header("tickwheel-tags"), "daily,eu%2Cwest");
        assert_eq!(call.header("tickwheel-metadata"), r#"{"team":"mail"}"#);
        assert_eq!(call.header("tickwheel-created-by"), "billing");
        let deadline = call.header("tickwheel-deadline").parse().unwrap();
        let left = millis_between(call.arrived_at, deadline);
        assert!((70_000..=77_000).contains(&left), "{left}");
    }
    assert!(calls[0].fencing_token() < calls[1].fencing_token());
    assert_ne!(calls[0].header("tickwheel-token"), calls[1].header("tickwheel-token"));
}

async fn a_job_says_how_it_wants_to_be_sent(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let headers = json!({
        "Authorization": "Bearer abc", "X-Team": "mail", "Content-Type": "application/vnd.acme+json",
        "User-Agent": "acme/1",
    });
    let target = json!({"http": {"url": stage.target.url("/put?a=b"), "method": "PUT", "headers": headers}});
    let id = id_of(&stage.api.submit(&json!({"type": "t", "target": target, "payload": [1, 2]})).await);
    stage.until(&id, "completed").await;
    let call = &stage.target.called("/put", 1).await[0];
    assert_eq!((call.method.as_str(), call.query.as_deref()), ("PUT", Some("a=b")));
    assert_eq!(call.header("authorization"), "Bearer abc");
    assert_eq!(call.header("x-team"), "mail");
    assert_eq!(call.header("content-type"), "application/vnd.acme+json");
    assert_eq!(call.header("user-agent"), "acme/1");
    assert!(stage.target.url("").ends_with(call.header("host")));
    assert_eq!(call.json(), json!([1, 2]));

    let get = json!({"http": {"url": stage.target.url("/get"), "method": "GET"}});
    stage.api.submit(&json!({"type": "t", "target": get, "payload": {"n": 1}})).await;
    let call = &stage.target.called("/get", 1).await[0];
    assert_eq!((call.method.as_str(), call.body.len()), ("GET", 0));

    for ours in [
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "Idempotency-Key",
        "Tickwheel-Job-Id",
        "webhook-signature",
    ] {
        let target = json!({"http": {"url": stage.target.url("/run"), "headers": {ours: "mine"}}});
        let refused =
            stage.api.post("/api/v1/jobs", &json!({"type": "t", "target": target})).await.expect(422);
        assert_eq!(refused.json()["errors"][0]["code"], "reserved", "{ours}");
    }
}

async fn a_private_address_is_refused_at_the_door_however_it_is_spelled(kind: StoreKind) {
    let stage = Stage::on(Server::builder(kind).guarded().start().await).await;
    let port = stage.target.url("").rsplit(':').next().unwrap().to_owned();
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "169.254.169.254",
        "10.0.0.1",
        "192.168.0.1",
        "172.16.0.1",
        "100.64.0.1",
        "[fe80::1]",
        "[fd00::1]",
        // Services of clouds: Azure, Alibaba, Oracle, AWS, Google.
        "168.63.129.16",
        "[::ffff:168.63.129.16]",
        "100.100.100.200",
        "192.0.0.192",
        "[fd00:ec2::254]",
        "[fd20:ce::254]",
    ] {
        let url = format!("http://{host}:{port}/secret");
        let target = json!({"type": "t", "target": {"http": {"url": url}}});
        let callback =
            json!({"type": "t", "target": {"http": {"url": "https://svc.example/"}}, "callback_url": url});
        for (job, pointer) in [(target, "/target/http/url"), (callback, "/callback_url")] {
            let refused = stage.api.post("/api/v1/jobs", &job).await.expect(422).json();
            let error = &refused["errors"][0];
            assert_eq!(
                (text(error, "code"), text(error, "pointer")),
                ("forbidden_address", pointer),
                "{host}"
            );
        }
    }
    assert!(stage.api.list("/api/v1/jobs").await.is_empty());
}

async fn a_private_address_that_got_past_the_door_is_not_called_either(kind: StoreKind) {
    // Stored when it was allowed, or hidden behind a name: what counts is where the connection would lead.
    let mut stage = Stage::set(kind).await;
    stage.api.act("/api/v1/admin/halt").await.expect(200);
    let told = json!({"callback_url": stage.target.url("/told")});
    let from_before = stage.submit("/secret", told).await;
    stage.server.kill9().await;
    let guarded = Server::builder(kind).guarded().beside(&stage.server).start().await;
    (stage.api, stage.server) = (guarded.api(), guarded);
    stage.api.act("/api/v1/admin/resume").await.expect(200);
    let by_name = stage.target.url("/secret").replace("127.0.0.1", "localhost");
    let behind_a_name = json!({"type": "t", "target": {"http": {"url": by_name}}});
    let behind_a_name = id_of(&stage.api.submit(&behind_a_name).await);

    for id in [from_before, behind_a_name] {
        let job = stage.api.wait(&id).await;
        assert_eq!((text(&job, "status"), &job["attempt"]), ("failed", &json!(1)), "{job}");
        assert_eq!(job["error"]["code"], "target_forbidden");
        assert_eq!(text(&stage.dead_letter(&id).await.expect(200).json(), "reason"), "not_retryable");
    }
    eventually("the callback to be tried", PATIENCE, async || {
        let page = stage.api.get("/metrics").await.text();
        page.contains("tickwheel_callbacks_total{result=\"retried\"} 1").then_some(())
    })
    .await;
    assert!(stage.target.calls().is_empty(), "{:?}", stage.target.calls());
}

async fn redirects_are_not_followed(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    for status in [301, 302, 303, 307, 308] {
        let path = format!("/{status}");
        stage.target.reply(&path, Reply::status(status).header("location", &stage.target.url("/secret")));
        let id = stage.submit(&path, json!({})).await;
        let job = stage.api.wait(&id).await;
        assert_eq!((text(&job, "status"), &job["attempt"]), ("failed", &json!(1)), "{job}");
        assert_eq!(job["error"]["code"], "redirect_refused");
    }
    for_a_while(async || assert!(stage.target.calls_to("/secret").is_empty())).await;
}

async fn an_answer_is_kept_up_to_its_limit(kind: StoreKind) {
    const LIMIT: usize = 64 * 1024;
    let stage = Stage::set(kind).await;
    for (bytes, whole) in [(LIMIT, true), (LIMIT + 1, false), (5 * LIMIT, false)] {
        let body = format!("\"{}\"", "x".repeat(bytes - 2));
        stage.target.reply("/long", Reply::ok().body(body));
        let id = stage.submit("/long", json!({})).await;
        let job = stage.until(&id, "completed").await;
        match whole {
            true => assert_eq!(job["result"].as_str().unwrap().len(), LIMIT - 2),
            false => {
                assert_eq!(job["result"]["truncated"], true);
                assert_eq!(text(&job["result"], "captured").len(), LIMIT);
            }
        }
    }
    let small = Server::builder(kind).config("[http]\nresponse_bytes_max = 10\n").start().await;
    let stage = Stage { api: small.api(), server: small, target: stage.target };
    let id = stage.submit("/long", json!({})).await;
    assert_eq!(stage.until(&id, "completed").await["result"]["captured"], "\"xxxxxxxxx");
}

async fn an_answer_that_is_not_json_is_kept_as_text(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let deep = "[".repeat(10_000);
    for (body, result) in [
        (&b""[..], Value::Null),
        (b"  \n", Value::Null),
        (b"null", Value::Null),
        (b"[1, {\"a\": null}]", json!([1, {"a": null}])),
        (b"done", json!("done")),
        (b"a\0b", json!("a\0b")),
        (b"\xff\xfe", json!("\u{fffd}\u{fffd}")),
        (deep.as_bytes(), json!(deep)),
    ] {
        stage.target.reply("/run", Reply::ok().body(body.to_vec()));
        let id = stage.submit("/run", json!({})).await;
        let job = stage.until(&id, "completed").await;
        assert_eq!(job["result"], result);
    }
    let message = b"bad\0 \x1b[31m order\r\n".to_vec();
    stage.target.reply("/broken", Reply::status(400).body(message));
    let id = stage.submit("/broken", json!({})).await;
    let job = stage.until(&id, "failed").await;
    let said = text(&job["error"], "message");
    assert!(said.contains("order") && !said.contains(char::is_control), "{said:?}");
}

async fn a_header_that_would_not_be_sent_is_refused(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    for name in ["Proxy-Authorization", "proxy-connection", "Keep-Alive", "Host"] {
        let http = json!({"url": stage.target.url("/run"), "headers": {name: "Basic c2VjcmV0"}});
        let job = json!({"type": "t", "target": {"http": http}});
        let refused = stage.api.post("/api/v1/jobs", &job).await.expect(422).json();
        assert_eq!(text(&refused["errors"][0], "code"), "reserved", "{name}");
    }
}

/// A target that promises an answer for ever, and never gives it.
async fn only_ever_continues() -> std::net::SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                stream.read_u8().await.expect("a request");
                while stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.is_ok() {}
            });
        }
    });
    address
}

async fn an_endless_promise_of_an_answer_is_cut_short(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let target = only_ever_continues().await;
    let job = json!({"type": "t", "target": {"http": {"url": format!("http://{target}/")}}, "timeout": "1h",
        "retry": {"max_retries": 0}});
    let id = id_of(&stage.api.submit(&job).await);
    let job = stage.until(&id, "failed").await;
    assert_eq!(text(&job["error"], "code"), "response_invalid", "{job}");
}
