//! Bad input: refused with a problem that says what is wrong and where, and leaves no trace.

use base64::Engine as _;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::api::{Answer, Api, text};
use crate::e2e::{Stage, on_both_stores, with};
use crate::server::StoreKind;

on_both_stores! {
    a_body_that_is_no_proper_json_is_refused,
    a_field_out_of_bounds_is_refused_and_pointed_at,
    a_request_of_the_wrong_kind_is_refused,
    a_body_over_the_limit_is_refused_and_one_at_the_limit_is_not,
    a_body_that_breaks_off_is_refused,
    parameters_and_paths_that_make_no_sense_are_refused,
    odd_but_proper_text_comes_back_as_it_was,
}

const JOBS: &str = "/api/v1/jobs";

/// A job that would be accepted and not run during a test.
fn fine() -> Value {
    json!({"type": "fine", "delay": "1h"})
}

async fn send(
    api: &Api,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Answer {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    api.exchange(request.body(Full::new(body.into())).unwrap()).await.unwrap()
}

async fn post(api: &Api, body: impl Into<Bytes>) -> Answer {
    send(api, Method::POST, JOBS, &[("content-type", "application/json")], body).await
}

/// The problem in an answer, which must be one in every respect.
#[track_caller]
fn problem(answer: &Answer, status: u16, code: &str) -> Value {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert_eq!(answer.headers["content-type"], "application/problem+json");
    let problem = answer.json();
    assert_eq!(text(&problem, "code"), code, "{problem}");
    assert_eq!(problem["status"], status);
    assert_eq!(text(&problem, "type"), format!("urn:tickwheel:problem:{code}"));
    assert!(!text(&problem, "title").is_empty() && !text(&problem, "detail").is_empty());
    problem
}

async fn nothing_is_stored(stage: &Stage) {
    assert_eq!(stage.api.list(JOBS).await, Vec::<Value>::new());
    assert_eq!(stage.api.get("/api/v1/queues").await.expect(200).json()["items"], json!([]));
}

async fn a_body_that_is_no_proper_json_is_refused(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let deep = |levels: usize| {
        format!(r#"{{"type": "x", "payload": {}{}}}"#, "[".repeat(levels), "]".repeat(levels))
    };
    for (body, code, pointer) in [
        ("", "invalid_json", ""),
        ("{", "invalid_json", ""),
        (r#"{"type": "x""#, "invalid_json", ""),
        (r#"{"type": "x"} {}"#, "invalid_json", ""),
        (r#"{"type": "x", "payload": NaN}"#, "invalid_json", ""),
        (r#"{"type": "x", "payload": 1e999}"#, "invalid_json", ""),
        (r#"{"type": "\ud800"}"#, "invalid_json", ""),
        ("\u{feff}{\"type\": \"x\"}", "invalid_json", ""),
        ("[]", "wrong_type", ""),
        ("null", "wrong_type", ""),
        ("{}", "missing_field", "/type"),
        (r#"{"type": null}"#, "wrong_type", "/type"),
        (r#"{"type": 7}"#, "wrong_type", "/type"),
        (r#"{"type": "x", "type": "x"}"#, "duplicate_field", "/type"),
        (r#"{"type": "x", "payload": {"a": 1, "a": 2}}"#, "duplicate_field", "/payload/a"),
        (r#"{"type": "x", "colour": "red"}"#, "unknown_field", "/colour"),
        (r#"{"type": "x", "retry": {"colour": 1}}"#, "unknown_field", "/retry/colour"),
        (
            r#"{"type": "x", "target": {"http": {"url": "http://a/", "colour": 1}}}"#,
            "unknown_field",
            "/target/http/colour",
        ),
        (
            r#"{"type": "x", "retry": {"max_retries": 99999999999999999999}}"#,
            "wrong_type",
            "/retry/max_retries",
        ),
    ] {
        let answer = post(&stage.api, body.to_owned()).await;
        let problem = problem(&answer, 400, code);
        assert_eq!(text(&problem["errors"][0], "pointer"), pointer, "{body}");
    }
    for bytes in [&b"{\"type\": \"\xff\"}"[..], b"\0", b"\x1f\x8b\x08\0"] {
        problem(&post(&stage.api, bytes.to_vec()).await, 400, "invalid_json");
    }
    for levels in [64, 10_000, 500_000] {
        problem(&post(&stage.api, deep(levels)).await, 400, "json_too_deep");
    }
    nothing_is_stored(&stage).await;
}

async fn a_field_out_of_bounds_is_refused_and_pointed_at(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let long = "x".repeat(10_000);
    let http =
        |fields: Value| json!({"target": {"http": with(json!({"url": "https://svc.example/run"}), fields)}});
    for (fields, pointer) in [
        (json!({"type": ""}), "/type"),
        (json!({"type": long}), "/type"),
        (json!({"type": "a\0b"}), "/type"),
        (json!({"type": "a\nb"}), "/type"),
        (json!({"queue": ""}), "/queue"),
        (json!({"queue": long}), "/queue"),
        (json!({"queue": "a\0"}), "/queue"),
        (json!({"tags": [long]}), "/tags/0"),
        (json!({"tags": ["fine", "\u{1b}[31m"]}), "/tags/1"),
        (json!({"tags": vec!["t"; 65]}), "/tags"),
        (json!({"idempotency_key": long}), "/idempotency_key"),
        (json!({"idempotency_key": ""}), "/idempotency_key"),
        (json!({"concurrency_key": long}), "/concurrency_key"),
        (json!({"created_by": "a\0"}), "/created_by"),
        (json!({"priority": "urgent"}), "/priority"),
        (json!({"delivery": "exactly_once"}), "/delivery"),
        (json!({"retry": {"max_retries": 101}}), "/retry/max_retries"),
        (json!({"retry": {"max_retries": -1}}), "/retry/max_retries"),
        (json!({"retry": {"jitter": 1.5}}), "/retry/jitter"),
        (json!({"retry": {"delays": []}}), "/retry/delays"),
        (json!({"timeout": 0}), "/timeout"),
        (json!({"timeout": "2d"}), "/timeout"),
        (json!({"delay": "soon"}), "/delay"),
        (json!({"delay": -1}), "/delay"),
        (json!({"delay": 1e300}), "/delay"),
        (json!({"execute_at": "2030-01-01T00:00:00Z"}), "/delay"),
        (json!({"delay": null, "execute_at": "2030-01-01T00:00:00"}), "/execute_at"),
        (json!({"delay": null, "execute_at": "0001-01-01T00:00:00Z"}), "/execute_at"),
        (json!({"delay": null, "execute_at": "tomorrow"}), "/execute_at"),
        (json!({"target": {"http": {"url": "file:///etc/passwd"}}}), "/target/http/url"),
        (json!({"target": {"http": {"url": "/run"}}}), "/target/http/url"),
        (json!({"target": {"http": {"url": "http://ann:secret@svc.example/"}}}), "/target/http/url"),
        (json!({"target": {"http": {"url": format!("http://svc.example/{long}")}}}), "/target/http/url"),
        (http(json!({"method": "BREW COFFEE"})), "/target/http/method"),
        (http(json!({"headers": {"a": "b\r\nc: d"}})), "/target/http/headers/a"),
        (http(json!({"headers": {"a": "b\0"}})), "/target/http/headers/a"),
        (http(json!({"headers": {"a": long}})), "/target/http/headers/a"),
        (http(json!({"headers": {"a b": "c"}})), "/target/http/headers/a b"),
        (http(json!({"headers": {"": "c"}})), "/target/http/headers/"),
        (json!({"target": {"process": {"command": ["ls"]}}}), "/target/process"),
        (json!({"callback_url": "ftp://svc.example/"}), "/callback_url"),
        (json!({"depends_on": ["x"]}), "/depends_on/0"),
        (json!({"depends_on": vec!["01890a5d-ac96-774b-bcce-b302099a8057"; 1_001]}), "/depends_on"),
        (json!({"requires": {"gpu": ""}}), "/requires/gpu"),
    ] {
        let answer = stage.api.post(JOBS, &with(fine(), fields.clone())).await;
        let problem = problem(&answer, 422, "validation_failed");
        assert_eq!(text(&problem["errors"][0], "pointer"), pointer, "{fields}");
    }
    let all_at_once = json!({"type": "", "queue": "", "tags": [""]});
    let problem = problem(&stage.api.post(JOBS, &all_at_once).await, 422, "validation_failed");
    assert_eq!(problem["errors"].as_array().unwrap().len(), 3, "every mistake is told at once: {problem}");
    nothing_is_stored(&stage).await;
}

async fn a_request_of_the_wrong_kind_is_refused(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let body = fine().to_string();
    let json_type = ("content-type", "application/json");
    for headers in [
        &[][..],
        &[("content-type", "text/plain")],
        &[("content-type", "application/x-www-form-urlencoded")],
        &[json_type, ("content-encoding", "gzip")],
        &[json_type, ("content-encoding", "br")],
    ] {
        let answer = send(&stage.api, Method::POST, JOBS, headers, body.clone()).await;
        problem(&answer, 415, "unsupported_media_type");
    }
    let elsewhere = [
        stage.api.put(JOBS, &fine()).await,
        stage.api.delete("/metrics").await,
        stage.api.get("/api/v1/admin/halt").await,
    ];
    for answer in elsewhere {
        problem(&answer, 405, "method_not_allowed");
        assert!(answer.headers.contains_key("allow"), "{}", answer.text());
    }
    for path in ["/nowhere", "/api/v1", "/api/v1/jobs/", "/api/v2/jobs", "//", "/api/v1/nothing"] {
        problem(&stage.api.get(path).await, 404, "not_found");
    }
    let charset = [("content-type", "application/json; charset=utf-8"), ("content-encoding", "identity")];
    nothing_is_stored(&stage).await;
    send(&stage.api, Method::POST, JOBS, &charset, body).await.expect(201);
}

async fn a_body_over_the_limit_is_refused_and_one_at_the_limit_is_not(kind: StoreKind) {
    const PAYLOAD_MAX: usize = 256 << 10;
    const BODY_MAX: usize = 1 << 20;
    let stage = Stage::set(kind).await;
    let payload = |bytes: usize| with(fine(), json!({"payload": "x".repeat(bytes - 2)}));
    let over = problem(&stage.api.post(JOBS, &payload(PAYLOAD_MAX + 1)).await, 413, "payload_too_large");
    assert_eq!(text(&over["errors"][0], "pointer"), "/payload");
    let padded = |bytes: usize| format!("{}{}", " ".repeat(bytes - fine().to_string().len()), fine());
    problem(&post(&stage.api, padded(BODY_MAX + 1)).await, 413, "body_too_large");
    nothing_is_stored(&stage).await;

    let too_many = json!({"jobs": vec![json!({"type": "x"}); 10_001]});
    problem(&stage.api.post("/api/v1/jobs/batch", &too_many).await, 422, "validation_failed");
    nothing_is_stored(&stage).await;

    let stored = stage.api.submit(&payload(PAYLOAD_MAX)).await;
    let job = stage.api.job(text(&stored, "id")).await;
    assert_eq!(job["payload"].as_str().unwrap().len(), PAYLOAD_MAX - 2);
    post(&stage.api, padded(BODY_MAX)).await.expect(201);
}

async fn a_body_that_breaks_off_is_refused(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let address = stage.server.url().strip_prefix("http://").unwrap();
    let head = |length: usize| {
        format!(
            "POST {JOBS} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        )
    };
    let body = fine().to_string();
    for sent in [format!("{}{body}", head(body.len() + 1)), head(10), format!("{}{}", head(100), &body[..8])]
    {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        assert!(answer.contains("invalid_json"), "{answer}");
    }
    nothing_is_stored(&stage).await;
    assert_eq!(stage.api.get("/healthz").await.status, 200);
}

async fn parameters_and_paths_that_make_no_sense_are_refused(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let unknown_job = "01890a5d-ac96-774b-bcce-b302099a8057";
    let long = "x".repeat(10_000);
    for (path, status) in [
        ("/api/v1/jobs/nonsense".to_owned(), 400),
        (format!("/api/v1/jobs/{unknown_job}0"), 400),
        (format!("/api/v1/jobs/{unknown_job}"), 404),
        (format!("/api/v1/jobs/{unknown_job}/attempts"), 404),
        (format!("/api/v1/jobs/{unknown_job}/attempts/1/logs"), 404),
        (format!("/api/v1/jobs/{unknown_job}/attempts/one/logs"), 400),
        (format!("/api/v1/jobs/{unknown_job}?wait=1000h"), 400),
        (format!("/api/v1/jobs/{unknown_job}?wait=-1"), 400),
        (format!("/api/v1/dead-letters/{unknown_job}"), 404),
        ("/api/v1/dead-letters/nonsense".to_owned(), 400),
        ("/api/v1/dead-letters?cursor=nonsense".to_owned(), 400),
        ("/api/v1/jobs?limit=1&limit=2".to_owned(), 400),
        ("/api/v1/jobs?queue=%00".to_owned(), 400),
        ("/api/v1/jobs?type=a%00".to_owned(), 400),
        ("/api/v1/jobs?tag=%00b".to_owned(), 400),
        ("/api/v1/dead-letters?queue=%00".to_owned(), 400),
        (format!("/api/v1/schedules?cursor={}", text_cursor('s', "\0")), 400),
        (format!("/api/v1/workflows?cursor={}", text_cursor('w', "a\0b")), 400),
        ("/api/v1/queues/%00".to_owned(), 400),
        ("/api/v1/queues/%ff".to_owned(), 400),
        (format!("/api/v1/queues/{long}"), 400),
    ] {
        let answer = stage.api.get(&path).await;
        let shown: String = path.chars().take(80).collect();
        assert_eq!(answer.status, status, "{shown}: {}", answer.text());
        assert_eq!(answer.headers["content-type"], "application/problem+json", "{shown}");
    }
    for (path, body, status) in [
        ("/api/v1/queues/lane/pause", json!({"colour": "red"}), 400),
        ("/api/v1/admin/halt", json!({"really": true}), 400),
        ("/api/v1/jobs/batch", json!({"jobs": {}}), 400),
        ("/api/v1/jobs/batch", json!({}), 400),
        ("/api/v1/dead-letters/redrive", json!({"queue": "\0"}), 422),
    ] {
        problem_of_any_code(&stage.api.post(path, &body).await, status);
    }
    nothing_is_stored(&stage).await;
    assert_eq!(stage.api.get("/api/v1/admin/status").await.json()["halted"], false);
}

/// A cursor that no server has given out.
fn text_cursor(list: char, place: &str) -> String {
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(format!("{list}{place}"))
}

#[track_caller]
fn problem_of_any_code(answer: &Answer, status: u16) {
    problem(answer, status, &answer.code());
}

async fn odd_but_proper_text_comes_back_as_it_was(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let odd = r#"{"nul":"\u0000","pair":"\ud83d\ude00","number":1.50,"big":123456789012345678901234567890,"z":1,"a":"é\u00e9"}"#;
    let body = format!(
        r#"{{"type":"日本語 'quoted' \"x\" ; DROP TABLE jobs","delay":"1h","payload":{odd},"metadata":{odd},"tags":["%_\\"]}}"#
    );
    let stored = post(&stage.api, body).await.expect(201).json();
    let answer = stage.api.get(&format!("/api/v1/jobs/{}", text(&stored, "id"))).await.expect(200);
    assert!(answer.text().contains(&format!("\"payload\":{odd}")), "{}", answer.text());
    assert!(answer.text().contains(&format!("\"metadata\":{odd}")), "{}", answer.text());
    assert_eq!(stage.api.list("/api/v1/jobs?tag=%25_%5C").await.len(), 1);
    assert_eq!(stage.api.list("/api/v1/jobs?tag=%25").await.len(), 0);
    let id = text(&stored, "id");
    stage.act(id, "cancel").await.expect(200);
    let ended = stage.api.get(&format!("/api/v1/jobs/{id}")).await.expect(200);
    assert!(ended.text().contains(&format!("\"payload\":{odd}")), "history keeps it too: {}", ended.text());
}
