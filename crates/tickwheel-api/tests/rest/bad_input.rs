//! Bad input gets a 4xx with a stable code and a pointer, and leaves no trace.

use axum::body::Body;
use axum::http::Request;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use serde_json::json;
use tickwheel_protocol::Limits;

use crate::server::{ECHO, Server};

const JOBS: &str = "/api/v1/jobs";

#[tokio::test]
async fn every_bad_submission_is_refused_where_it_is_bad_and_nothing_is_stored() {
    let server = Server::start();
    let long = "n".repeat(10_000);
    let deep = format!(r#"{{"type":"t","payload":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    let unclosed = format!(r#"{{"type":"t","payload":{}"#, "{\"a\":".repeat(10_000));
    let cases: Vec<(String, u16, &str, &str)> = vec![
        (String::new(), 400, "invalid_json", ""),
        ("{".into(), 400, "invalid_json", ""),
        (r#"{"type":"t""#.into(), 400, "invalid_json", ""),
        (r#"{"type":"t"}}"#.into(), 400, "invalid_json", ""),
        ("null".into(), 400, "wrong_type", ""),
        (r#"["t"]"#.into(), 400, "wrong_type", ""),
        (deep, 400, "json_too_deep", "/payload"),
        (unclosed, 400, "json_too_deep", "/payload"),
        (r#"{"type":"t","type":"u"}"#.into(), 400, "duplicate_field", "/type"),
        (r#"{"type":"t","payload":{"a":{"b":1,"b":2}}}"#.into(), 400, "duplicate_field", "/payload/a/b"),
        (r#"{"type":"t","metadata":{"a":1,"a":2}}"#.into(), 400, "duplicate_field", "/metadata/a"),
        (r#"{"type":"t","prio":"high"}"#.into(), 400, "unknown_field", "/prio"),
        (r#"{"type":"t","retry":{"max":1}}"#.into(), 400, "unknown_field", "/retry/max"),
        (
            r#"{"type":"t","target":{"http":{"url":"http://a/","verb":"GET"}}}"#.into(),
            400,
            "unknown_field",
            "/target/http/verb",
        ),
        (r#"{"type":"t","target":{"worker":{"x":1}}}"#.into(), 400, "unknown_field", "/target/worker/x"),
        ("{}".into(), 400, "missing_field", "/type"),
        (r#"{"type":"t","target":{"http":{}}}"#.into(), 400, "missing_field", "/target/http/url"),
        (r#"{"type":null}"#.into(), 400, "wrong_type", "/type"),
        (r#"{"type":7}"#.into(), 400, "wrong_type", "/type"),
        (r#"{"type":"t","tags":"a"}"#.into(), 400, "wrong_type", "/tags"),
        (r#"{"type":"t","tags":[1]}"#.into(), 400, "wrong_type", "/tags/0"),
        (r#"{"type":"t","metadata":[]}"#.into(), 400, "wrong_type", "/metadata"),
        (r#"{"type":"t","execute_at":1234}"#.into(), 400, "wrong_type", "/execute_at"),
        (r#"{"type":"t","timeout":true}"#.into(), 400, "wrong_type", "/timeout"),
        (r#"{"type":"t","payload":1e400}"#.into(), 400, "invalid_json", ""),
        (r#"{"type":"t","retry":{"max_retries":-1}}"#.into(), 422, "validation_failed", "/retry/max_retries"),
        (
            r#"{"type":"t","retry":{"max_retries":99999999999}}"#.into(),
            422,
            "validation_failed",
            "/retry/max_retries",
        ),
        (
            r#"{"type":"t","retry":{"max_retries":101}}"#.into(),
            422,
            "validation_failed",
            "/retry/max_retries",
        ),
        (r#"{"type":"t","retry":{"backoff":"random"}}"#.into(), 422, "validation_failed", "/retry/backoff"),
        (r#"{"type":"t","priority":"urgent"}"#.into(), 422, "validation_failed", "/priority"),
        (r#"{"type":"t","delivery":"exactly_once"}"#.into(), 422, "validation_failed", "/delivery"),
        (r#"{"type":"t","target":{"smtp":{}}}"#.into(), 422, "validation_failed", "/target"),
        (r#"{"type":"t","timeout":-1}"#.into(), 422, "validation_failed", "/timeout"),
        (r#"{"type":"t","timeout":"forever"}"#.into(), 422, "validation_failed", "/timeout"),
        (r#"{"type":"t","delay":1e300}"#.into(), 422, "validation_failed", "/delay"),
        (
            r#"{"type":"t","delay":"1s","execute_at":"2027-12-01T00:00:00Z"}"#.into(),
            422,
            "validation_failed",
            "/delay",
        ),
        (r#"{"type":"t","execute_at":"tomorrow"}"#.into(), 422, "validation_failed", "/execute_at"),
        (
            r#"{"type":"t","execute_at":"2027-12-01T00:00:00"}"#.into(),
            422,
            "validation_failed",
            "/execute_at",
        ),
        (
            r#"{"type":"t","execute_at":"0001-01-01T00:00:00Z"}"#.into(),
            422,
            "validation_failed",
            "/execute_at",
        ),
        (r#"{"type":""}"#.into(), 422, "validation_failed", "/type"),
        (r#"{"type":"a\u0000b"}"#.into(), 422, "validation_failed", "/type"),
        (r#"{"type":"a\u001bb"}"#.into(), 422, "validation_failed", "/type"),
        (format!(r#"{{"type":"{long}"}}"#), 422, "validation_failed", "/type"),
        (format!(r#"{{"type":"t","queue":"{long}"}}"#), 422, "validation_failed", "/queue"),
        (
            format!(r#"{{"type":"t","idempotency_key":"{long}"}}"#),
            422,
            "validation_failed",
            "/idempotency_key",
        ),
        (r#"{"type":"t","tags":["ok","\u0000"]}"#.into(), 422, "validation_failed", "/tags/1"),
        (r#"{"type":"t","depends_on":"x"}"#.into(), 400, "wrong_type", "/depends_on"),
        (r#"{"type":"t","depends_on":[7]}"#.into(), 400, "wrong_type", "/depends_on/0"),
        (r#"{"type":"t","depends_on":["x"]}"#.into(), 422, "validation_failed", "/depends_on/0"),
        (r#"{"type":"t","depends_on":["a\u0000b"]}"#.into(), 422, "validation_failed", "/depends_on/0"),
        (r#"{"type":"t","requires":{"gpu":""}}"#.into(), 422, "validation_failed", "/requires/gpu"),
        (
            r#"{"type":"t","target":{"process":{"command":["ls"]}}}"#.into(),
            422,
            "validation_failed",
            "/target/process/command/0",
        ),
        (r#"{"type":"t","target":{"process":{}}}"#.into(), 400, "missing_field", "/target/process/command"),
        (
            r#"{"type":"t","target":{"process":{"command":["echo"],"shell":true}}}"#.into(),
            400,
            "unknown_field",
            "/target/process/shell",
        ),
        (
            r#"{"type":"t","target":{"process":{"command":["echo"],"exit_codes":{"fail":[256]}}}}"#.into(),
            422,
            "validation_failed",
            "/target/process/exit_codes/fail/0",
        ),
        (
            r#"{"type":"t","target":{"http":{"url":"file:///etc/passwd"}}}"#.into(),
            422,
            "validation_failed",
            "/target/http/url",
        ),
        (
            r#"{"type":"t","target":{"http":{"url":"http://u:p@host/"}}}"#.into(),
            422,
            "validation_failed",
            "/target/http/url",
        ),
        (
            r#"{"type":"t","target":{"http":{"url":"http://a/","method":"BREW"}}}"#.into(),
            422,
            "validation_failed",
            "/target/http/method",
        ),
        (
            r#"{"type":"t","target":{"http":{"url":"http://a/","headers":{"x":"a\r\nb: c"}}}}"#.into(),
            422,
            "validation_failed",
            "/target/http/headers/x",
        ),
        (
            r#"{"type":"t","target":{"http":{"url":"http://a/","headers":{"a/b":"c"}}}}"#.into(),
            422,
            "validation_failed",
            "/target/http/headers/a~1b",
        ),
        (
            r#"{"type":"t","target":{"http":{"url":"http://a/","headers":{"Host":"b"}}}}"#.into(),
            422,
            "validation_failed",
            "/target/http/headers/Host",
        ),
        (r#"{"type":"t","callback_url":"javascript:1"}"#.into(), 422, "validation_failed", "/callback_url"),
    ];
    for (body, status, code, pointer) in cases {
        let shown: String = body.chars().take(120).collect();
        let answer = server.send_text("POST", JOBS, body).await;
        assert_eq!(answer.problem(status), code, "{shown}");
        assert!(answer.pointers()[0].starts_with(pointer), "{shown}: {:?}", answer.pointers());
        if code != "json_too_deep" {
            assert_eq!(answer.pointers(), [pointer], "{shown}");
        }
    }
    assert_eq!(server.stored().await, 0);
}

#[tokio::test]
async fn a_url_with_a_forbidden_address_is_refused_at_submission_however_it_is_spelled() {
    let server = Server::start();
    let job = |url: &str| json!({"type": "t", "target": {"http": {"url": url}}});
    for host in
        ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "[::1]", "[::ffff:127.0.0.1]"]
    {
        let answer = server.post(JOBS, job(&format!("http://{host}/x"))).await;
        assert_eq!(answer.problem(422), "validation_failed", "{host}");
        assert_eq!(answer.pointers(), ["/target/http/url"], "{host}");
        assert_eq!(answer.body["errors"][0]["code"], "forbidden_address", "{host}");
    }
    let with_callback = json!({"type": "t", "callback_url": "https://127.0.0.1/told"});
    assert_eq!(server.post(JOBS, with_callback).await.pointers(), ["/callback_url"]);
    assert_eq!(server.stored().await, 0);

    // Where a name leads shows only when it is called.
    for allowed in [format!("http://{ECHO}/x"), "http://localhost/x".into(), "http://93.184.215.14/".into()] {
        server.post(JOBS, job(&allowed)).await.ok(201);
    }
}

#[tokio::test]
async fn a_time_that_is_too_far_away_is_told_the_range() {
    let server = Server::start();
    let range = "from 1970-01-01T00:00:00Z to 9999-12-30T22:00:00Z";
    for time in ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"] {
        let submitted = server.post(JOBS, json!({"type": "t", "execute_at": time})).await;
        assert_eq!(submitted.problem(422), "validation_failed", "{time}");
        assert_eq!(submitted.body["errors"][0]["code"], "out_of_range", "{time}");
        assert!(submitted.body["detail"].as_str().unwrap().contains(range), "{}", submitted.body);
        let listed = server.get(&format!("{JOBS}?from={time}")).await;
        assert_eq!(listed.problem(400), "invalid_parameter", "{time}");
        let detail = listed.body["detail"].as_str().unwrap();
        assert!(detail.starts_with("from: ") && detail.contains(range), "{detail}");
    }
}

#[tokio::test]
async fn a_filter_with_control_characters_is_refused_by_name() {
    let server = Server::start();
    for (list, filters) in
        [("jobs", ["queue", "type", "tag"].as_slice()), ("dead-letters", ["queue", "type"].as_slice())]
    {
        for filter in filters {
            for value in ["%00", "a%00b", "%1b", "a%0A", "%C2%85"] {
                let answer = server.get(&format!("/api/v1/{list}?{filter}={value}")).await;
                assert_eq!(answer.problem(400), "invalid_parameter", "{list} {filter} {value}");
                assert!(answer.body["detail"].as_str().unwrap().starts_with(&format!("{filter}: ")));
            }
        }
    }
}

#[tokio::test]
async fn a_single_bad_field_is_told_in_words_and_pointed_at_once() {
    let server = Server::start();
    let one = server.post(JOBS, json!({"type": ""})).await;
    assert_eq!((one.pointers(), &one.body["detail"]), (vec!["/type"], &json!("must not be empty")));
    let two = server.post(JOBS, json!({"type": "", "queue": ""})).await;
    assert_eq!(two.body["detail"], "2 fields are wrong");
}

#[tokio::test]
async fn all_broken_rules_are_reported_together() {
    let server = Server::start();
    let answer =
        server.post(JOBS, json!({"type": "", "queue": "", "retry": {"jitter": 2}, "timeout": 0})).await;
    assert_eq!(answer.problem(422), "validation_failed");
    assert_eq!(answer.pointers(), ["/type", "/queue", "/timeout", "/retry/jitter"]);
}

#[tokio::test]
async fn what_is_not_plain_json_is_unsupported() {
    let server = Server::start();
    let body = r#"{"type":"t"}"#;
    for content_type in
        ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "multipart/form-data"]
    {
        let request = Request::post(JOBS).header(CONTENT_TYPE, content_type).body(Body::from(body)).unwrap();
        assert_eq!(server.send(request).await.problem(415), "unsupported_media_type", "{content_type}");
    }
    let untyped = Request::post(JOBS).body(Body::from(body)).unwrap();
    assert_eq!(server.send(untyped).await.problem(415), "unsupported_media_type");
    for encoding in ["gzip", "br", "deflate", "zstd"] {
        let request = Request::post(JOBS)
            .header(CONTENT_TYPE, "application/json")
            .header(CONTENT_ENCODING, encoding)
            .body(Body::from(vec![0x1f, 0x8b, 0x08]))
            .unwrap();
        assert_eq!(server.send(request).await.problem(415), "unsupported_media_type", "{encoding}");
    }
    assert_eq!(server.stored().await, 0);
}

#[tokio::test]
async fn sizes_are_allowed_up_to_their_limit_and_not_a_byte_beyond() {
    let server = Server::start();
    let limits = Limits::default();
    let with_payload = |bytes: usize| format!(r#"{{"type":"t","payload":"{}"}}"#, "x".repeat(bytes - 2));
    server.send_text("POST", JOBS, with_payload(limits.payload_bytes_max)).await.ok(201);
    let over = server.send_text("POST", JOBS, with_payload(limits.payload_bytes_max + 1)).await;
    assert_eq!(over.problem(413), "payload_too_large");
    assert_eq!(over.pointers(), ["/payload"]);

    let body = |bytes: usize| {
        let job = r#"{"type":"t"}"#;
        format!("{job}{}", " ".repeat(bytes - job.len()))
    };
    server.send_text("POST", JOBS, body(limits.body_bytes_max)).await.ok(201);
    let over = server.send_text("POST", JOBS, body(limits.body_bytes_max + 1)).await;
    assert_eq!(over.problem(413), "body_too_large");
    assert_eq!(server.stored().await, 2);
}

#[tokio::test]
async fn a_body_that_does_not_say_its_length_is_cut_off_at_the_limit() {
    let server = Server::start();
    let chunks =
        futures::stream::repeat_with(|| Ok::<_, std::io::Error>(bytes::Bytes::from_static(&[b' '; 65536])));
    let answer = server.send_text("POST", JOBS, Body::from_stream(chunks)).await;
    assert_eq!(answer.problem(413), "body_too_large");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_never_ends_is_given_up_in_time() {
    let server = Server::start();
    let silence = futures::stream::pending::<Result<bytes::Bytes, std::io::Error>>();
    let answer = server.send_text("POST", JOBS, Body::from_stream(silence)).await;
    assert_eq!(answer.problem(408), "request_timeout");
}

#[tokio::test]
async fn limits_are_configurable() {
    let server = Server::with_limits(Limits { name_chars_max: 3, json_depth_max: 2, ..Limits::default() });
    assert_eq!(server.post(JOBS, json!({"type": "abcd"})).await.problem(422), "validation_failed");
    assert_eq!(server.post(JOBS, json!({"type": "t", "payload": [[]]})).await.problem(400), "json_too_deep");
    server.post(JOBS, json!({"type": "abc", "payload": []})).await.ok(201);
}

#[tokio::test]
async fn senseless_paths_parameters_and_methods_are_problems_too() {
    let server = Server::start();
    let missing = "0190f5f0-0000-7000-8000-000000000000";
    let bad_path = |path: &str| path.replace("{id}", missing);
    for (path, status, code) in [
        ("/nowhere", 404, "not_found"),
        ("/api/v1/jobs/", 404, "not_found"),
        ("/api/v1/jobs/{id}", 404, "not_found"),
        ("/api/v1/jobs/{id}/attempts", 404, "not_found"),
        ("/api/v1/jobs/{id}/attempts/1/logs", 404, "not_found"),
        ("/api/v1/jobs/{id}/why", 404, "not_found"),
        ("/api/v1/dead-letters/{id}", 404, "not_found"),
        ("/api/v1/queues/unknown", 404, "not_found"),
        ("/api/v1/jobs/7", 400, "invalid_id"),
        ("/api/v1/jobs/%ff", 400, "invalid_id"),
        ("/api/v1/jobs/{id}?wiat=1s", 400, "unknown_parameter"),
        ("/api/v1/jobs/{id}?wait=soon", 400, "invalid_parameter"),
        ("/api/v1/jobs?stauts=running", 400, "unknown_parameter"),
        ("/api/v1/jobs?status=sleeping", 400, "invalid_parameter"),
        ("/api/v1/jobs?limit=0", 400, "invalid_parameter"),
        ("/api/v1/jobs?limit=1001", 400, "invalid_parameter"),
        ("/api/v1/jobs?limit=many", 400, "invalid_parameter"),
        ("/api/v1/jobs?from=yesterday", 400, "invalid_parameter"),
        ("/api/v1/jobs?cursor=garbage", 400, "invalid_cursor"),
        ("/api/v1/dead-letters?cursor=garbage", 400, "invalid_cursor"),
        ("/api/v1/dead-letters?limit=1001", 400, "invalid_parameter"),
        ("/api/v1/workflows?cursor=garbage", 400, "invalid_cursor"),
        ("/api/v1/workflows?limit=1001", 400, "invalid_parameter"),
        ("/api/v1/workflows/w?versoin=1", 400, "unknown_parameter"),
        ("/api/v1/workflows/a%00b", 400, "invalid_parameter"),
        ("/api/v1/workflows/w/versions?cursor=garbage", 400, "invalid_cursor"),
        ("/api/v1/workflow-runs?cursor=garbage", 400, "invalid_cursor"),
        ("/api/v1/workflow-runs?stauts=running", 400, "unknown_parameter"),
        ("/api/v1/workflow-runs/{id}", 404, "not_found"),
        ("/api/v1/workflow-runs/{id}?wait=soon", 400, "invalid_parameter"),
    ] {
        assert_eq!(server.get(&bad_path(path)).await.problem(status), code, "{path}");
    }
    for (method, path, allow) in [
        ("PUT", "/api/v1/jobs", "POST"),
        ("DELETE", "/api/v1/jobs", "GET"),
        ("GET", "/api/v1/jobs/batch", "POST"),
        ("PATCH", "/api/v1/workflows/w", "DELETE"),
        ("GET", "/api/v1/workflows/w/runs", "POST"),
        ("POST", "/healthz", "GET"),
        ("BREW", "/", "GET"),
    ] {
        let answer = server.call(method, path).await;
        assert_eq!(answer.problem(405), "method_not_allowed", "{method} {path}");
        let allowed = answer.headers["allow"].to_str().unwrap();
        assert!(allowed.contains(allow), "{method} {path}: {allowed}");
    }
}

#[tokio::test]
async fn a_call_without_a_body_does_not_take_one() {
    let server = Server::start();
    let id = server.submit(json!({"type": "t"})).await;
    let answer = server.post(&format!("/api/v1/jobs/{id}/cancel"), json!({"reason": "bored"})).await;
    assert_eq!(answer.problem(400), "unknown_field");
    let job = server.get(&format!("/api/v1/jobs/{id}")).await.ok(200);
    assert_eq!(job["status"], "scheduled");
}

#[tokio::test]
async fn a_broken_handler_is_an_answer_and_the_server_goes_on() {
    let server = Server::start();
    let answer = server.post(JOBS, json!({"type": "panic"})).await;
    assert_eq!(answer.problem(500), "internal");
    assert!(!answer.body["detail"].as_str().unwrap().contains("the test asked for it"));
    server.submit(json!({"type": "t"})).await;
}
