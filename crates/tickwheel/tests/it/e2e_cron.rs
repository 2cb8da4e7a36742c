//! `tickwheel cron` as a person and a script meet it, and a server that says the same.

use serde_json::{Value, json};
use tickwheel_core::schedule::ZONE_DATA_VERSION;

use crate::program::{Run, run, tickwheel};
use crate::server::{Server, StoreKind};

fn cron(args: &[&str]) -> Run {
    run(&mut tickwheel(&[&["cron"], args].concat()))
}

/// The lines that `cron next` prints, having checked that it prints nothing else.
fn next(args: &[&str]) -> Vec<String> {
    let run = cron(&[&["next"], args].concat());
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{args:?}: {run:?}");
    run.stdout.lines().map(str::to_owned).collect()
}

/// What a refused command says, having checked that it is refused as bad input.
fn refusal(args: &[&str]) -> String {
    let run = cron(args);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{args:?}: {run:?}");
    run.stderr
}

#[test]
fn next_prints_one_time_a_line_with_the_offset_of_the_zone() {
    let new_year = ["--after", "2026-01-01T00:00:00Z"];
    let utc = next(&[&["0 2 * * *"], &new_year[..]].concat());
    assert_eq!(utc, ["01", "02", "03", "04", "05"].map(|day| format!("2026-01-{day}T02:00:00+00:00")));
    let kolkata =
        next(&[&["0 2 * * *", "--timezone", "asia/kolkata", "--count", "1"], &new_year[..]].concat());
    assert_eq!(kolkata, ["2026-01-02T02:00:00+05:30"]);
    let seconds = next(&[&["*/20 * * * * *", "--count", "2"], &new_year[..]].concat());
    assert_eq!(seconds, ["2026-01-01T00:00:20+00:00", "2026-01-01T00:00:40+00:00"]);
    let every = next(&[&["@every 1d", "--count", "1"], &new_year[..]].concat());
    assert_eq!(every, ["2026-01-02T00:00:00+00:00"]);
    assert_eq!(next(&["@yearly", "--count", "1000"]).len(), 1000);
}

#[test]
fn without_a_time_next_looks_from_now() {
    let before = jiff::Timestamp::now();
    let first: jiff::Timestamp = next(&["* * * * * *"])[0].parse().unwrap();
    assert!(
        first > before && first.as_second() <= jiff::Timestamp::now().as_second() + 1,
        "{before} {first}"
    );
}

#[test]
fn the_gap_of_new_york_and_the_missing_midnight_of_sao_paulo_are_treated_as_asked() {
    let first = |expr: &str, zone: &str, after: &str, gap: &str| {
        next(&[expr, "--timezone", zone, "--after", after, "--count", "1", "--dst-gap", gap]).remove(0)
    };
    let new_york = |gap| first("30 2 * * *", "America/New_York", "2026-03-08T00:00:00-05:00", gap);
    assert_eq!(new_york("run_after"), "2026-03-08T03:00:00-04:00");
    assert_eq!(new_york("skip"), "2026-03-09T02:30:00-04:00");
    assert_eq!(new_york("shift"), "2026-03-08T03:30:00-04:00");
    let sao_paulo = |gap| first("@daily", "America/Sao_Paulo", "2018-11-03T12:00:00-03:00", gap);
    assert_eq!(sao_paulo("run_after"), "2018-11-04T01:00:00-02:00");
    assert_eq!(sao_paulo("skip"), "2018-11-05T00:00:00-02:00");
}

#[test]
fn the_fold_of_new_york_and_the_second_eleven_of_sao_paulo_are_treated_as_asked() {
    let two = |expr: &str, zone: &str, after: &str, fold: &str| {
        next(&[expr, "--timezone", zone, "--after", after, "--count", "2", "--dst-fold", fold])
    };
    let new_york = |fold| two("30 1 * * *", "America/New_York", "2026-11-01T00:00:00-04:00", fold);
    assert_eq!(new_york("once"), ["2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"]);
    assert_eq!(new_york("last"), ["2026-11-01T01:30:00-05:00", "2026-11-02T01:30:00-05:00"]);
    assert_eq!(new_york("both"), ["2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00"]);
    let sao_paulo = |fold| two("0 23 * * *", "America/Sao_Paulo", "2019-02-16T12:00:00-02:00", fold);
    assert_eq!(sao_paulo("once"), ["2019-02-16T23:00:00-02:00", "2019-02-17T23:00:00-03:00"]);
    assert_eq!(sao_paulo("both"), ["2019-02-16T23:00:00-02:00", "2019-02-16T23:00:00-03:00"]);
}

#[test]
fn the_day_fields_are_joined_as_asked() {
    let second = |logic: &str| {
        next(&["0 0 13 * FRI", "--after", "2026-02-07T00:00:00Z", "--count", "2", "--day-logic", logic])
            .remove(1)
    };
    assert_eq!(second("or"), "2026-02-20T00:00:00+00:00");
    assert_eq!(second("and"), "2026-03-13T00:00:00+00:00");
}

#[test]
fn a_date_that_never_comes_leaves_standard_output_empty_and_is_no_failure() {
    let never = cron(&["next", "0 0 30 2 *"]);
    assert_eq!((never.code, never.stdout.as_str()), (Some(0), ""), "{never:?}");
    assert!(never.stderr.starts_with("never: "), "{never:?}");

    let explained = cron(&["explain", "0 0 30 2 *", "--timezone", "Europe/Berlin"]);
    assert_eq!(explained.code, Some(0), "{explained:?}");
    assert!(explained.stdout.contains("the 30th of February, which never comes"), "{explained:?}");
    assert!(!explained.stdout.contains("LOCAL TIME") && !explained.stdout.contains("clock change"));

    let json = cron(&["next", "0 0 30 2 *", "--json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&json["never"], &json["next"]), (&json!(true), &json!([])));
}

#[test]
fn a_bad_expression_is_refused_with_field_value_and_what_is_allowed() {
    let fields =
        "expected 5 fields (minute hour day-of-month month day-of-week) or 6 with leading seconds, got";
    for (expr, message) in [
        ("60 * * * *", "minute: 60 is out of range, allowed are 0-59".to_owned()),
        ("*/0 * * * *", "minute: the step of */0 is out of range, allowed are 1-60".into()),
        ("* * * *", format!("{fields} 4")),
        ("* * * * * * * *", format!("{fields} 8")),
        ("0 0 * * MON#6", "day-of-week: MON#6 is out of range, allowed are #1-#5 after the day".into()),
    ] {
        for verb in ["next", "explain"] {
            assert_eq!(refusal(&[verb, expr]), format!("error: {message}\n"));
            assert_eq!(refusal(&[verb, expr, "--json"]), format!("error: {message}\n"));
        }
    }
}

#[test]
fn an_unknown_zone_is_refused_with_the_one_that_was_probably_meant() {
    let said = refusal(&["next", "@daily", "--timezone", "Europe/Berln"]);
    assert_eq!(said, "error: unknown time zone \"Europe/Berln\"; did you mean Europe/Berlin?\n");
    let both = refusal(&["next", "x * * * *", "--timezone", "nowhere at all"]);
    assert!(both.contains("minute: x") && both.contains("unknown time zone \"nowhere at all\""), "{both}");
}

#[test]
fn options_out_of_bounds_are_refused() {
    for option in [
        ["--count", "0"],
        ["--count", "1001"],
        ["--count", "many"],
        ["--after", "tomorrow"],
        ["--after", "0001-01-01T00:00:00Z"],
        ["--dst-gap", "jump"],
        ["--dst-fold", "twice"],
        ["--day-logic", "xor"],
    ] {
        let said = refusal(&[&["next", "@daily"], &option[..]].concat());
        assert!(said.contains(option[0]) && said.contains(option[1]), "{said}");
    }
}

#[test]
fn explain_tells_words_firings_and_what_the_next_clock_change_does() {
    let args = ["--timezone", "America/New_York", "--after", "2026-10-30T12:00:00-04:00", "--count", "2"];
    let explained = cron(&[&["explain", "30 1 * * *"], &args[..]].concat());
    assert_eq!((explained.code, explained.stderr.as_str()), (Some(0), ""));
    let expected = format!(
        "expression    30 1 * * *\n\
         fires         at 01:30 every day\n\
         time zone     America/New_York (tz database {ZONE_DATA_VERSION})\n\
         clock change  2026-11-01T01:00:00-05:00 (in 1d 14h)\n\
         its effect    the clock goes from 2026-11-01 02:00 to 01:00: the firing of 01:30 comes once, the first time\n\
         \n\
         DAY  LOCAL TIME                 UTC                   WHEN\n\
         Sat  2026-10-31T01:30:00-04:00  2026-10-31T05:30:00Z  in 13h\n\
         Sun  2026-11-01T01:30:00-04:00  2026-11-01T05:30:00Z  in 1d 14h\n"
    );
    assert_eq!(explained.stdout, expected);
}

#[test]
fn explain_says_that_the_clocks_of_a_zone_stay() {
    let explained = cron(&["explain", "*/5 9-17 * * MON-FRI"]).stdout;
    assert!(explained.contains("every 5 minutes from 09:00 to 17:59 on Monday to Friday"), "{explained}");
    assert!(explained.contains("clock change  none is known"), "{explained}");
}

#[test]
fn no_server_is_asked() {
    let mut command = tickwheel(&["cron", "next", "@daily", "--server", "http://127.0.0.1:1"]);
    assert_eq!(run(&mut command).code, Some(0));
}

#[tokio::test]
async fn a_server_says_the_same_as_the_command_line() {
    let server = Server::start(StoreKind::Sqlite).await;
    let request = json!({"cron": "15,45 1 * * *", "timezone": "Australia/Lord_Howe", "count": 3,
        "after": "2026-04-05T00:00:00+11:00", "dst_fold": "both"});
    let answer = server.api().post("/api/v1/cron/preview", &request).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let args = ["15,45 1 * * *", "--timezone", "Australia/Lord_Howe", "--count", "3"];
    let more = ["--after", "2026-04-05T00:00:00+11:00", "--dst-fold", "both", "--json"];
    for verb in ["next", "explain"] {
        let printed = cron(&[&[verb], &args[..], &more[..]].concat());
        assert_eq!(serde_json::from_str::<Value>(&printed.stdout).unwrap(), answer.json());
    }
    let times =
        ["01:15:00+11:00", "01:45:00+11:00", "01:45:00+10:30"].map(|time| format!("2026-04-05T{time}"));
    assert_eq!(answer.json()["next"], json!(times));
}
