//! What a person sees on a terminal: tables that fit, short ids that work, and questions before what was perhaps not
//! meant.

use serde_json::{Value, json};

use crate::fake_server::FakeServer;
use crate::program::{Run, run, tickwheel};
use crate::terminal::{on_terminal, width};

const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";
const SHORT: &str = "b302099a8057";

fn job(id: &str, status: &str) -> Value {
    json!({
        "id": id, "type": "a_type_with_a_rather_long_name_that_nobody_would_choose", "status": status, "queue": "default",
        "priority": "normal", "tenant": "default",
        "execute_at": "2026-01-01T00:00:00.000Z", "next_run_at": null, "created_at": "2026-01-01T00:00:00.000Z",
        "started_at": null, "completed_at": null, "deadline": null, "attempt": 1, "retries": 0, "max_retries": 3,
        "cancel_requested": false, "result": null, "error": null,
        "tags": [], "metadata": {}, "payload": null, "target": {"worker": {}},
        "retry": {"max_retries": 3}, "timeout": "300s", "delivery": "at_least_once", "depends_on": [], "concurrency_key": null,
        "callback_url": null, "created_by": null, "schedule_id": null, "workflow_run_id": null,
    })
}

fn page(items: &[Value], cursor: Value) -> String {
    json!({"items": items, "next_cursor": cursor}).to_string()
}

fn piped(server: &FakeServer, args: &[&str]) -> Run {
    run(tickwheel(args).env("TICKWHEEL_SERVER", &server.url))
}

#[test]
fn a_table_fits_the_terminal_unless_it_is_wide_or_goes_elsewhere() {
    let list = page(&[job(ID, "scheduled")], Value::Null);
    let server = FakeServer::answering(&[(200, &list), (200, &list), (200, &list), (200, &list)]);
    let narrow = on_terminal(80, &server.url, &["jobs", "list"], "").stdout;
    assert!(width(&narrow) <= 80, "{narrow}");
    assert!(narrow.contains(SHORT) && !narrow.contains(ID) && narrow.contains('…'), "{narrow}");
    assert!(narrow.contains("STATUS") && !narrow.contains("CREATED"), "{narrow}");
    let large = on_terminal(200, &server.url, &["jobs", "list"], "").stdout;
    assert!(large.contains(ID) && large.contains("CREATED") && !large.contains('…'), "{large}");
    for whole in [
        on_terminal(80, &server.url, &["jobs", "list", "--wide"], "").stdout,
        piped(&server, &["jobs", "list"]).stdout,
    ] {
        assert_eq!(whole.trim_end(), large.trim_end());
    }
}

#[test]
fn a_terminal_that_does_not_say_is_taken_to_be_80_wide() {
    let list = page(&[job(ID, "scheduled")], Value::Null);
    let server = FakeServer::answering(&[(200, &list)]);
    let shown = on_terminal(0, &server.url, &["jobs", "list"], "").stdout;
    assert!((70..=80).contains(&width(&shown)), "{shown}");
}

#[test]
fn everything_is_shown_page_by_page_in_one_table() {
    let ids: Vec<String> = (0..3).map(|n| format!("01890a5d-ac96-774b-bcce-{n:012}")).collect();
    let pages = [
        page(&[job(&ids[0], "failed")], json!("one")),
        page(&[], json!("two")),
        page(&[job(&ids[1], "running"), job(&ids[2], "paused")], Value::Null),
    ];
    let answers: Vec<(u16, &str)> = pages.iter().chain(&pages).map(|page| (200, page.as_str())).collect();
    let server = FakeServer::answering(&answers);
    let table = piped(&server, &["jobs", "list", "--all"]);
    assert_eq!((table.code, table.stderr.as_str()), (Some(0), ""), "{table:?}");
    let firsts: Vec<&str> = table.stdout.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(firsts, ["ID", &ids[0], &ids[1], &ids[2]]);
    let json: Value =
        serde_json::from_str(&piped(&server, &["jobs", "list", "--all", "--json"]).stdout).unwrap();
    assert_eq!(json["items"].as_array().unwrap().len(), 3);
    assert_eq!(json["next_cursor"], Value::Null);
    let lines: Vec<_> = server.asked().into_iter().take(3).map(|asked| asked.line).collect();
    assert_eq!(
        lines,
        [
            "GET /api/v1/jobs?limit=1000",
            "GET /api/v1/jobs?limit=1000&cursor=one",
            "GET /api/v1/jobs?limit=1000&cursor=two"
        ]
    );
}

#[test]
fn a_list_that_was_cut_says_how_to_go_on_and_goes_on_from_there() {
    let (first, last) = (page(&[job(ID, "failed")], json!("one")), page(&[], Value::Null));
    let server = FakeServer::answering(&[(200, &first), (200, &last), (200, &last)]);
    let run = piped(&server, &["jobs", "list", "--limit", "1"]);
    assert!(run.stderr.contains("--all") && run.stderr.contains("--cursor one"), "{run:?}");
    piped(&server, &["jobs", "list", "--cursor", "one"]);
    assert_eq!(server.asked()[1].line, "GET /api/v1/jobs?limit=50&cursor=one");
    let empty = piped(&server, &["jobs", "list", "--json"]).stdout;
    assert_eq!(serde_json::from_str::<Value>(&empty).unwrap(), json!({"items": [], "next_cursor": null}));
}

#[test]
fn an_id_may_be_given_by_its_end_or_by_its_beginning() {
    let other = "01890a5d-ac96-774b-bcce-000000000001";
    let whole = job(ID, "completed").to_string();
    let list = page(&[job(ID, "completed"), job(other, "completed")], Value::Null);
    for (part, asked) in [
        (SHORT, "GET /api/v1/jobs?limit=1000".to_owned()),
        ("B302-099a8057", "GET /api/v1/jobs?limit=1000".to_owned()),
        (
            "01890a5d-ac96-774b-bcce-b",
            "GET /api/v1/jobs?from=2023-06-30T03%3A34%3A18.518Z&to=2023-06-30T03%3A34%3A18.519Z&limit=1000"
                .to_owned(),
        ),
    ] {
        let server = FakeServer::answering(&[(200, &list), (200, &whole)]);
        let run = piped(&server, &["jobs", "get", part]);
        assert_eq!(run.code, Some(0), "{run:?}");
        let lines: Vec<_> = server.asked().into_iter().map(|asked| asked.line).collect();
        assert_eq!(lines, [asked, format!("GET /api/v1/jobs/{ID}")]);
    }
}

#[test]
fn a_part_that_several_ids_have_is_refused_and_does_nothing() {
    let other = "01890a5d-ac96-774b-bcce-000000008057";
    let list = page(&[job(ID, "scheduled"), job(other, "scheduled")], Value::Null);
    let server = FakeServer::answering(&[(200, &list), (200, &page(&[], Value::Null))]);
    let run = piped(&server, &["jobs", "cancel", "8057"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("matches 2 jobs") && run.stderr.contains(other), "{run:?}");
    let none = piped(&server, &["jobs", "cancel", "ffffff"]);
    assert!(none.stderr.contains("no job whose id begins or ends with \"ffffff\""), "{none:?}");
    assert!(server.asked().iter().all(|asked| asked.line.starts_with("GET ")), "nothing was changed");
}

#[test]
fn each_of_several_that_cannot_be_done_is_named() {
    let gone = json!({"type": "urn:x", "title": "no", "status": 404, "code": "not_found", "detail": "there is no such job"});
    let (gone, done) = (gone.to_string(), job(ID, "cancelled").to_string());
    let server = FakeServer::answering(&[(404, &gone), (200, &done), (404, &gone)]);
    let run = piped(&server, &["jobs", "cancel", "one", ID, "two"]);
    assert_eq!(run.code, Some(2), "{run:?}");
    let errors: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors, ["error: job one: there is no such job", "error: job two: there is no such job"]);
    assert_eq!(run.stdout.lines().count(), 1, "{run:?}");
    for command in [
        &["schedules", "delete"][..],
        &["workflows", "delete"],
        &["dead-letters", "discard"],
        &["workflows", "cancel"],
    ] {
        let server = FakeServer::answering(&[(404, &gone), (404, &gone)]);
        let run = piped(&server, &[command, &["one", "two"]].concat());
        assert!(run.stderr.contains(" one: ") && run.stderr.contains(" two: "), "{command:?} {run:?}");
        assert_eq!(run.code, Some(2));
    }
}

#[test]
fn a_queue_nobody_knows_is_paused_only_by_who_means_it() {
    let known = page(&[json!({"name": "mail", "paused": false, "waiting": 0, "running": 0})], Value::Null);
    let paused = json!({"name": "mial", "paused": true, "waiting": 0, "running": 0}).to_string();
    let asked = |server: &FakeServer| server.asked().into_iter().map(|asked| asked.line).collect::<Vec<_>>();

    let server = FakeServer::answering(&[(200, &known)]);
    let nobody = piped(&server, &["queues", "pause", "mial"]);
    assert_eq!(nobody.code, Some(2), "{nobody:?}");
    assert!(
        nobody.stderr.contains("\"mial\" (there are mail)") && nobody.stderr.contains("--yes"),
        "{nobody:?}"
    );
    assert_eq!(asked(&server), ["GET /api/v1/queues"]);

    let server = FakeServer::answering(&[(200, &known)]);
    let no = on_terminal(80, &server.url, &["queues", "pause", "mial"], "n\n");
    assert_eq!(no.code, Some(1), "{no:?}");
    assert!(no.stdout.contains("[y/N]") && no.stdout.contains("nothing was changed"), "{no:?}");
    assert_eq!(asked(&server), ["GET /api/v1/queues"]);

    let server = FakeServer::answering(&[(200, &known), (200, &paused)]);
    let yes = on_terminal(80, &server.url, &["queues", "pause", "mial"], "y\n");
    assert_eq!(yes.code, Some(0), "{yes:?}");
    assert_eq!(asked(&server), ["GET /api/v1/queues", "POST /api/v1/queues/mial/pause"]);

    let server = FakeServer::answering(&[(200, &paused)]);
    assert_eq!(piped(&server, &["queues", "pause", "mial", "--yes"]).code, Some(0));
    assert_eq!(asked(&server), ["POST /api/v1/queues/mial/pause"]);
    let server = FakeServer::answering(&[(200, &known), (200, &paused)]);
    assert_eq!(piped(&server, &["queues", "pause", "mail"]).code, Some(0), "a known one is not asked about");
}
