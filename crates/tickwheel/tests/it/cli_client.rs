//! The client commands against a server that says what the test wants: what they ask, what they print, how they exit.

use serde_json::{Value, json};

use crate::fake_server::FakeServer;
use crate::program::{Run, run, run_with_input, tickwheel};

const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

fn job(status: &str) -> Value {
    json!({
        "id": ID, "type": "send_email", "status": status, "queue": "default", "priority": "normal", "tenant": "default",
        "execute_at": "2026-01-01T00:00:00.000Z", "next_run_at": null, "created_at": "2026-01-01T00:00:00.000Z",
        "started_at": null, "completed_at": null, "deadline": null, "attempt": 1, "retries": 0, "max_retries": 3,
        "cancel_requested": false, "result": null, "error": {"code": "http_status", "message": "said 500"},
        "tags": [], "metadata": {}, "payload": {"z": 1.50, "a": 2}, "target": {"worker": {}},
        "retry": {"max_retries": 3}, "timeout": "300s", "delivery": "at_least_once", "depends_on": [], "concurrency_key": null,
        "callback_url": null, "created_by": null, "schedule_id": null, "workflow_run_id": null,
    })
}

fn problem(status: u16, code: &str, detail: &str) -> String {
    json!({"type": "urn:x", "title": "no", "status": status, "code": code, "detail": detail,
           "errors": [{"pointer": "/type", "code": "too_long", "detail": "is too long"}]})
    .to_string()
}

fn against(server: &FakeServer, args: &[&str]) -> Run {
    run(tickwheel(args).env("TICKWHEEL_SERVER", &server.url))
}

#[test]
fn without_a_server_the_exit_code_is_3_and_there_is_a_hint() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let run = run(&mut tickwheel(&["--server", &format!("http://{closed}"), "jobs", "list"]));
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.stderr.contains("is `tickwheel serve` running"), "{}", run.stderr);
    assert!(run.stdout.is_empty());
}

#[test]
fn a_refusal_is_told_with_its_fields_and_code_and_exit_code_2() {
    let server = FakeServer::answering(&[(422, &problem(422, "validation_failed", "1 field is wrong"))]);
    let run = against(&server, &["jobs", "submit", "x"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    for part in ["/type: is too long", "validation_failed"] {
        assert!(run.stderr.contains(part), "{}", run.stderr);
    }
}

#[test]
fn an_answer_that_is_not_ours_is_shown_and_not_mistaken() {
    let server = FakeServer::answering(&[(502, "<html>\u{1b}[31mbad gateway")]);
    let run = against(&server, &["jobs", "get", ID]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("502") && run.stderr.contains("bad gateway"), "{}", run.stderr);
    assert!(!run.stderr.contains('\u{1b}'));
}

#[test]
fn submitting_prints_the_id_alone_so_that_a_script_can_take_it() {
    let server = FakeServer::answering(&[(201, &job("scheduled").to_string())]);
    let run = against(
        &server,
        &["jobs", "submit", "send_email", "--payload", "{\"to\":\"ann\"}", "--api-key", "k"],
    );
    assert_eq!((run.code, run.stdout.trim()), (Some(0), ID), "{run:?}");
    let asked = &server.asked()[0];
    assert_eq!(asked.line, "POST /api/v1/jobs");
    assert_eq!(asked.body, r#"{"type":"send_email","payload":{"to":"ann"}}"#);
    for header in [("authorization", "Bearer k"), ("content-type", "application/json")] {
        assert!(asked.headers.contains(&(header.0.into(), header.1.into())), "{asked:?}");
    }
}

#[test]
fn a_job_is_shown_with_the_states_of_the_first_jobs_it_depends_on() {
    let id = |number: usize| format!("01890a5d-ac96-774b-bcce-{number:012}");
    let mut child = job("pending");
    child["depends_on"] = json!((0..12).chain([0]).map(id).collect::<Vec<_>>());
    let (completed, gone) = (job("completed").to_string(), problem(404, "not_found", "no such job"));
    let mut answers = vec![(200, child.to_string()), (404, gone)];
    answers.extend(vec![(200, completed); 9]);
    let answers: Vec<(u16, &str)> = answers.iter().map(|(status, body)| (*status, body.as_str())).collect();
    let server = FakeServer::answering(&answers);
    let run = against(&server, &["jobs", "get", ID]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let shown = format!("{}, {} (completed), ", id(0), id(1));
    assert!(run.stdout.contains(&shown) && run.stdout.contains("and 2 more"), "{}", run.stdout);
    assert_eq!(server.asked().len(), 11, "only those that are shown are read");
    assert_eq!(server.asked()[1].line, format!("GET /api/v1/jobs/{}", id(0)));
}

#[test]
fn json_is_printed_as_the_server_wrote_it() {
    let text = job("completed").to_string().replace("1.5", "1.50");
    let server = FakeServer::answering(&[(200, &text)]);
    let run = against(&server, &["jobs", "get", ID, "--json"]);
    assert_eq!(run.stdout.replace([' ', '\n'], ""), text.replace(' ', ""), "{run:?}");
    assert!(run.stdout.contains("\"z\": 1.50"));
}

#[test]
fn a_list_follows_its_pages_even_through_short_and_empty_ones() {
    let page = |items: &[Value], cursor: Value| json!({"items": items, "next_cursor": cursor}).to_string();
    let server = FakeServer::answering(&[
        (200, &page(&[job("failed")], json!("one"))),
        (200, &page(&[], json!("two"))),
        (200, &page(&[job("running"), job("paused")], json!("three"))),
    ]);
    let run = against(&server, &["jobs", "list", "--limit", "3", "--status", "failed", "--tag", "a&b"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.stdout.lines().count(), 4, "{}", run.stdout);
    assert!(run.stderr.contains("there are more"), "{}", run.stderr);
    let lines: Vec<_> = server.asked().into_iter().map(|asked| asked.line).collect();
    assert_eq!(
        lines,
        [
            "GET /api/v1/jobs?status=failed&tag=a%26b&limit=3",
            "GET /api/v1/jobs?status=failed&tag=a%26b&limit=2&cursor=one",
            "GET /api/v1/jobs?status=failed&tag=a%26b&limit=2&cursor=two",
        ]
    );
}

#[test]
fn an_empty_list_is_said_in_words_and_prints_no_result() {
    let server = FakeServer::answering(&[(200, r#"{"items":[],"next_cursor":null}"#)]);
    let run = against(&server, &["jobs", "list", "--queue", "mail"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{run:?}");
    assert!(run.stderr.contains("no jobs match"));
}

#[test]
fn waiting_asks_again_until_the_job_has_ended_and_tells_by_exit_code() {
    for (status, code) in [("completed", 0), ("failed", 1), ("cancelled", 1)] {
        let not_yet = problem(408, "wait_timeout", "not yet");
        let server = FakeServer::answering(&[(408, &not_yet), (200, &job(status).to_string())]);
        let run = against(&server, &["jobs", "wait", ID]);
        assert_eq!(run.code, Some(code), "{run:?}");
        assert!(run.stdout.contains(status));
        assert_eq!(server.asked().len(), 2);
    }
}

#[test]
fn waiting_gives_up_at_its_timeout() {
    let server = FakeServer::answering(&[(408, &problem(408, "wait_timeout", "not yet"))]);
    let run = against(&server, &["jobs", "wait", ID, "--timeout", "5ms"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("has not ended yet"), "{}", run.stderr);
}

#[test]
fn one_job_that_cannot_be_changed_does_not_keep_the_others_from_it() {
    let server = FakeServer::answering(&[
        (409, &problem(409, "illegal_state", "it has ended")),
        (200, &job("cancelled").to_string()),
    ]);
    let run = against(&server, &["jobs", "cancel", "a/b", ID]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stdout.contains("cancelled") && run.stderr.contains("illegal_state"));
    assert_eq!(server.asked()[0].line, "POST /api/v1/jobs/a%2Fb/cancel");
}

#[test]
fn a_batch_is_sent_in_one_request_and_answered_by_line() {
    let results = json!({"results": [{"job": job("scheduled")}, {"error": serde_json::from_str::<Value>(&problem(422, "validation_failed", "wrong")).unwrap()}]});
    let server = FakeServer::answering(&[(200, &results.to_string())]);
    let mut command = tickwheel(&["jobs", "submit", "--batch", "-"]);
    let lines = "{\"type\":\"a\"}\n\n{oops\n{\"type\":\"b\"}\n";
    let run = run_with_input(command.env("TICKWHEEL_SERVER", &server.url), lines);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert_eq!(run.stdout.trim(), "1 submitted, 2 refused");
    assert!(
        run.stderr.contains("line 3: not valid JSON") && run.stderr.contains("line 4: /type: is too long"),
        "{}",
        run.stderr
    );
    assert_eq!(server.asked()[0].line, "POST /api/v1/jobs/batch");
    assert_eq!(server.asked()[0].body, r#"{"jobs":[{"type":"a"},{"type":"b"}]}"#);
}

#[test]
fn a_batch_that_breaks_off_says_how_far_it_came() {
    let lines: String = (0..1_001).map(|_| "{\"type\":\"a\"}\n").collect();
    let results = json!({"results": vec![json!({"job": job("scheduled")}); 1_000]});
    let unavailable = problem(503, "store_unavailable", "the store is away");
    let server = FakeServer::answering(&[(200, &results.to_string()), (503, &unavailable)]);
    let mut command = tickwheel(&["jobs", "submit", "--batch", "-"]);
    let run = run_with_input(command.env("TICKWHEEL_SERVER", &server.url), &lines);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("lines 1 to 1000 were acknowledged"), "{}", run.stderr);
}

#[test]
fn the_stop_switch_says_how_things_stand() {
    let status =
        json!({"halted": true, "slots": 4, "slots_free": 3, "waiting": 2, "running": 1, "dead_letters": 0});
    let server = FakeServer::answering(&[(200, &status.to_string())]);
    let run = against(&server, &["halt"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("halted") && run.stdout.contains("1 running, 2 due"), "{}", run.stdout);
    assert_eq!(server.asked()[0].line, "POST /api/v1/admin/halt");
}

#[test]
fn queues_alone_lists_them() {
    let list =
        json!({"items": [{"name": "mail", "paused": true, "waiting": 5, "running": 0}], "next_cursor": null});
    let server = FakeServer::answering(&[(200, &list.to_string())]);
    let run = against(&server, &["queues"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("mail") && run.stdout.contains("paused"), "{}", run.stdout);
    assert_eq!(server.asked()[0].line, "GET /api/v1/queues");
}

#[test]
fn dead_letters_are_redriven_by_id_or_by_filter() {
    let progress = |status: &str, redriven: u32, remaining: u32| {
        let failed_before = "2026-11-16T12:00:00Z";
        json!({"id": ID, "status": status, "failed_before": failed_before, "redriven": redriven, "remaining": remaining, "error": null})
            .to_string()
    };
    let answers = [
        progress("running", 2, 3),
        progress("running", 2, 3),
        progress("running", 1, 2),
        progress("completed", 3, 1),
    ];
    let nothing = json!({"type": "about:blank", "title": "not found", "status": 404, "detail": "no", "code": "not_found"});
    let server = FakeServer::answering(&[
        (200, &job("scheduled").to_string()),
        (202, &answers[0]),
        (200, &answers[1]),
        // The server was started anew.
        (404, &nothing.to_string()),
        (202, &answers[2]),
        (200, &answers[3]),
    ]);
    let one = against(&server, &["dead-letters", "redrive", ID, "--payload", "null"]);
    assert_eq!(one.code, Some(0), "{one:?}");
    let all = against(&server, &["dead-letters", "redrive", "--all", "--type", "send_email"]);
    assert!(all.stdout.contains("5 will run again, 1 that match are left"), "{all:?}");
    let asked = server.asked();
    assert_eq!(asked[0].line, format!("POST /api/v1/dead-letters/{ID}/redrive"));
    assert_eq!(asked[0].body, r#"{"payload":null}"#);
    assert_eq!(asked[1].line, "POST /api/v1/dead-letters/redrive");
    assert_eq!(asked[1].body, r#"{"all":true,"type":"send_email"}"#);
    assert_eq!(asked[2].line, format!("GET /api/v1/dead-letters/redrive/{ID}"));
    assert_eq!(asked[4].line, "POST /api/v1/dead-letters/redrive");
    assert!(asked[4].body.contains(r#""failed_before":"2026-11-16T12:00:00"#), "{}", asked[4].body);
}
