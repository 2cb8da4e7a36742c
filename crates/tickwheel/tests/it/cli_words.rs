//! What the command line says when it does not understand: the words of a person, not those of a library.

use crate::fake_server::FakeServer;
use crate::program::{Run, run, run_with_input, tickwheel};

fn said(args: &[&str]) -> Run {
    let run = run(tickwheel(args).env("TICKWHEEL_SERVER", "127.0.0.1:1").env("TZ", "Europe/Berlin"));
    assert_eq!(run.code, Some(2), "{args:?} {run:?}");
    run
}

#[test]
fn numbers_and_times_are_asked_for_in_plain_words() {
    for (args, words) in [
        (&["jobs", "list", "--limit", "abc"][..], "expected a whole number, 1 or more"),
        (&["jobs", "list", "--limit", "0"], "expected a whole number, 1 or more"),
        (&["jobs", "list", "--limit", "-3"], "expected a whole number, 1 or more"),
        (&["jobs", "submit", "t", "--max-retries", "-1"], "expected a whole number, 0 or more"),
        (&["jobs", "submit", "t", "--jitter", "much"], "expected a number from 0 to 1"),
        (&["jobs", "submit", "t", "--at", "soon"], "expected a time such as \"tomorrow 9:00\""),
        (&["jobs", "submit", "t", "--at", "tomorrow"], "at what time of that day?"),
        (&["jobs", "submit", "t", "--at", "yesterday 9:00"], "ago"),
        (&["jobs", "logs", "x", "--attempt", "first"], "expected a whole number, 1 or more"),
        (&["schedules", "next", "s", "--count", "0"], "expected a whole number from 1 to 1000"),
        (
            &["schedules", "backfill", "s", "--from", "2026-01-01", "--to", "2026-01-02", "--rate", "x"],
            "from 1 to 1000",
        ),
        (&["cron", "next", "@daily", "--count", "many"], "expected a whole number from 1 to 1000"),
        (&["workflows", "get", "w", "--version", "one"], "expected a whole number, 1 or more"),
        (&["dead-letters", "redrive", "--all", "--limit", "x"], "expected a whole number, 1 or more"),
        (
            &["jobs", "submit", "--file", "/no/such/file"],
            "cannot read /no/such/file: No such file or directory\n",
        ),
        (&["import", "crontab", "/no/such/file"], "cannot read /no/such/file: No such file or directory\n"),
        (&["apply", "--yes", "-f", "/no/such/file.yaml"], "No such file or directory\n"),
        (&["jobs", "cancel"], "say which jobs to cancel: their ids, or filters"),
        (&["jobs", "edit", "x"], "nothing to change"),
        (&["dead-letters", "redrive"], "ids of jobs, or --all"),
        (&["--server", "ftp://x", "queues"], "use HOST:PORT, http://HOST:PORT or https://HOST"),
        (&["--server", "a b", "queues"], "use HOST:PORT, http://HOST:PORT or https://HOST"),
    ] {
        let run = said(args);
        assert!(run.stderr.contains(words), "{args:?}: {}", run.stderr);
        for jargon in
            ["u32", "digit found", "float literal", "os error", "relative URL", "1..=", "--server <"]
        {
            assert!(!run.stderr.contains(jargon), "{args:?}: {}", run.stderr);
        }
    }
}

#[test]
fn a_server_is_found_without_a_scheme() {
    let list = r#"{"items": [], "next_cursor": null}"#;
    let server = FakeServer::answering(&[(200, list), (200, list), (200, list)]);
    let address = server.url.strip_prefix("http://").unwrap();
    let port = address.rsplit(':').next().unwrap();
    for server in [address, &format!("localhost:{port}"), &server.url] {
        let run = run(tickwheel(&["queues"]).env("TICKWHEEL_SERVER", server));
        assert_eq!(run.code, Some(0), "{server} {run:?}");
    }
    let named = run(tickwheel(&["queues", "--server", "127.0.0.1:1"]).env("TICKWHEEL_SERVER", address));
    assert_eq!(named.code, Some(3), "what is typed counts: {named:?}");
    assert_eq!(server.asked().len(), 3);
}

#[test]
fn a_time_is_read_on_the_clock_of_this_machine() {
    let server = FakeServer::answering(&[]);
    for (text, utc) in [
        ("2030-07-01 09:00", "2030-07-01T07:00:00.000Z"),
        ("2030-07-01T09:00:00Z", "2030-07-01T09:00:00.000Z"),
    ] {
        let mut program = tickwheel(&["jobs", "submit", "t", "--at", text]);
        run(program.env("TICKWHEEL_SERVER", &server.url).env("TZ", "Europe/Berlin"));
        let asked = server.asked().pop().unwrap();
        assert_eq!(asked.body, format!(r#"{{"type":"t","execute_at":"{utc}"}}"#));
    }
    let mut program = tickwheel(&["jobs", "list", "--from", "2026-07-01", "--to", "2026-07-02 12:00"]);
    run(program.env("TICKWHEEL_SERVER", &server.url).env("TZ", "Europe/Berlin"));
    let asked = server.asked().pop().unwrap().line.replace("%3A", ":");
    assert!(asked.contains("from=2026-06-30T22:00:00.000Z&to=2026-07-02T10:00:00.000Z"), "{asked}");
}

#[test]
fn an_imported_crontab_may_be_json() {
    let mut program =
        tickwheel(&["import", "crontab", "-", "--user", "--timezone", "Europe/Berlin", "--json"]);
    let run = run_with_input(&mut program, "# nightly\n30 2 * * * /usr/bin/backup \"a b\"\n");
    assert_eq!(run.code, Some(0), "{run:?}");
    let file: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(file["schedules"][0]["cron"], "30 2 * * *");
    assert_eq!(file["schedules"][0]["timezone"], "Europe/Berlin");
}

#[test]
fn a_server_that_cannot_start_says_why_in_plain_words() {
    let directory = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let data = directory.path().to_str().unwrap();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nowhere = format!("postgres://{closed}/x");
    for (args, words) in [
        (&["--listen", &address, "--data-dir", data][..], "Address already in use\n"),
        (
            &["--listen", "127.0.0.1:0", "--store", &nowhere],
            "no connection to PostgreSQL: Connection refused\n",
        ),
    ] {
        let run = run(&mut tickwheel(&[&["serve"], args].concat()));
        assert_eq!(run.code, Some(1), "{run:?}");
        assert!(run.stderr.contains(words) && !run.stderr.contains("new object"), "{}", run.stderr);
    }
}
