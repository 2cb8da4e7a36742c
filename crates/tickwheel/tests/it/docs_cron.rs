//! Every example of the page about cron is run: the sessions, the words, the firings and the refusals.
//!
//! A table is told by its head: `expression | in words`, `expression | refused with`, or a zone and a moment in the
//! corner (`Europe/Berlin after 2026-03-29T00:00:00Z`) with a policy over each column. Other tables are prose.

use crate::golden::repository_file;
use crate::program::{run, tickwheel};

const PAGE: &str = "docs/guide/cron.md";

fn page() -> String {
    std::fs::read_to_string(repository_file(PAGE)).unwrap()
}

/// What `tickwheel cron …` says: standard output, then standard error.
fn said(args: &[&str]) -> String {
    let run = run(&mut tickwheel(&[&["cron"], args].concat()));
    run.stdout + &run.stderr
}

#[test]
fn the_sessions_of_the_page_are_what_the_program_prints() {
    let page = page();
    let blocks: Vec<&str> =
        page.split("```console\n").skip(1).filter_map(|b| b.split("```").next()).collect();
    let mut commands = 0;
    for (command, printed) in blocks.iter().flat_map(|block| commands_of(block)) {
        let words = shell_words(&command);
        let args: Vec<&str> = words.iter().map(String::as_str).collect();
        let args =
            args.strip_prefix(&["tickwheel", "cron"]).unwrap_or_else(|| panic!("cannot run {command}"));
        assert_eq!(said(args), printed, "{command}");
        commands += 1;
    }
    assert!(commands >= 4, "only {commands} commands were found in {PAGE}");
}

/// The commands of a session, each with what it printed.
fn commands_of(block: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push((command.to_owned(), String::new())),
            (None, Some((_, printed))) => printed.push_str(&format!("{line}\n")),
            (None, None) => panic!("output without a command: {line}"),
        }
    }
    found
}

/// The words of a command line; what stands between double quotes is one word.
fn shell_words(line: &str) -> Vec<String> {
    let parts = line.split('"').enumerate();
    let words = parts.flat_map(|(index, part)| match index % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

#[test]
fn the_words_of_the_page_are_those_of_the_program() {
    let rows = rows_under(&page(), |head| head == ["expression", "in words"]);
    assert!(rows.len() >= 20, "only {} examples were found in {PAGE}", rows.len());
    for row in rows {
        let shown = said(&["explain", &row.cells[0]]);
        let fires = shown.lines().find_map(|line| line.strip_prefix("fires")).unwrap_or(&shown);
        assert_eq!(fires.trim(), row.cells[1], "{}", row.cells[0]);
    }
}

#[test]
fn the_refusals_of_the_page_are_those_of_the_program() {
    let rows = rows_under(&page(), |head| head == ["expression", "refused with"]);
    assert!(rows.len() >= 5, "only {} refusals were found in {PAGE}", rows.len());
    for row in rows {
        assert_eq!(said(&["next", &row.cells[0]]), format!("error: {}\n", row.cells[1]));
    }
}

#[test]
fn the_firings_of_the_page_are_those_of_the_program() {
    let rows = rows_under(&page(), |head| head[0].contains(" after "));
    let mut cells = 0;
    for row in &rows {
        let (zone, after) = row.head[0].split_once(" after ").expect("rows were chosen by it");
        for (policy, written) in row.head.iter().zip(&row.cells).skip(1) {
            let count = written.split(", ").count().to_string();
            let asked = ["next", &row.cells[0], "--timezone", zone, "--after", after, "--count", &count];
            let printed = said(&[&asked[..], &[option_of(policy), policy]].concat());
            let found: Vec<_> = printed.lines().map(|time| short(time, after)).collect();
            assert_eq!(&found.join(", "), written, "{} in {zone} after {after} with {policy}", row.cells[0]);
            cells += 1;
        }
    }
    assert!(cells >= 50, "only {cells} examples were found in {PAGE}");
}

/// The option that takes the policy.
fn option_of(policy: &str) -> &'static str {
    match policy {
        "run_after" | "skip" | "shift" => "--dst-gap",
        "once" | "last" | "both" => "--dst-fold",
        "or" | "and" => "--day-logic",
        _ => panic!("{policy} is no policy"),
    }
}

/// `2026-03-08T03:00:00-04:00` as the page has it: `03-08 03:00 -04:00`, with the year if it is not that of `beside`.
fn short(time: &str, beside: &str) -> String {
    let part = |range| time.get(range).unwrap_or_else(|| panic!("{time} is no time"));
    let year = if beside.starts_with(part(0..4)) { "" } else { part(0..5) };
    format!("{year}{} {} {}", part(5..10), part(11..16), part(19..25))
}

/// A row of a table, with the head of that table; without backticks.
struct Row {
    head: Vec<String>,
    cells: Vec<String>,
}

/// The rows of all tables whose head is asked for.
fn rows_under(page: &str, wanted: impl Fn(&[String]) -> bool) -> Vec<Row> {
    let cells = |line: &str| -> Vec<String> {
        let inner = line.trim_start_matches("| ").trim_end_matches(" |");
        inner.split(" | ").map(|cell| cell.trim_matches('`').to_owned()).collect()
    };
    let lines: Vec<&str> = page.lines().collect();
    let mut rows = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let starts_table =
            line.starts_with("| ") && lines.get(at + 1).is_some_and(|next| next.starts_with("|---"));
        if starts_table && wanted(&cells(line)) {
            let body = lines[at + 2..].iter().take_while(|line| line.starts_with("| "));
            rows.extend(body.map(|row| Row { head: cells(line), cells: cells(row) }));
        }
    }
    rows
}
