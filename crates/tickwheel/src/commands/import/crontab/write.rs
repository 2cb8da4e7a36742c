//! Schedules as the text of a file, with comments; which is why no library writes it.
//!
//! A text in double quotes with the escapes of JSON is the same text in YAML and in TOML, as long as every control character is escaped.

use std::fmt::Write as _;

use clap::ValueEnum;

use super::schedule::{Schedule, TIMEOUT};
use crate::output::plain;

/// How the file is written: where there is room for comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// YAML
    Yaml,
    /// TOML
    Toml,
}

/// A piece of the file.
pub enum Piece {
    /// A schedule.
    Schedule(Box<Schedule>),
    /// A comment that stands alone.
    Remark(String),
}

/// The whole file.
pub fn document(pieces: &[Piece], format: Format) -> String {
    let has_schedules = pieces.iter().any(|piece| matches!(piece, Piece::Schedule(_)));
    let mut text = "# Look at it with `tickwheel diff -f FILE`, then `tickwheel apply -f FILE`.\n".to_owned();
    text.push_str(match (format, has_schedules) {
        (Format::Yaml, true) => "schedules:\n",
        (Format::Yaml, false) => "schedules: []\n",
        (Format::Toml, true) => "\n",
        (Format::Toml, false) => "schedules = []\n",
    });
    let written = pieces.iter().map(|piece| match (piece, format) {
        (Piece::Remark(remark), _) => comment(indent(format), remark),
        (Piece::Schedule(schedule), Format::Yaml) => yaml(schedule),
        (Piece::Schedule(schedule), Format::Toml) => toml(schedule),
    });
    text.push_str(&written.collect::<Vec<_>>().join("\n"));
    text
}

const fn indent(format: Format) -> &'static str {
    match format {
        Format::Yaml => "  ",
        Format::Toml => "",
    }
}

fn comment(indent: &str, text: &str) -> String {
    let text: String = plain(text).chars().map(|c| if is_no_character(c) { '\u{fffd}' } else { c }).collect();
    format!("{}\n", format!("{indent}# {text}").trim_end())
}

/// What Unicode promises never to be a character, and YAML therefore refuses.
const fn is_no_character(c: char) -> bool {
    matches!(c, '\u{fffe}' | '\u{ffff}')
}

fn quoted(text: &str) -> String {
    let mut out = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            // Also what a reader of YAML could take for the end of a line or for the mark at the start of a file.
            c if c.is_control()
                || is_no_character(c)
                || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') =>
            {
                write!(out, "\\u{:04x}", u32::from(c)).expect("writing to a string cannot fail");
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn list(words: &[String]) -> String {
    format!("[{}]", words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(", "))
}

/// Quoted, for some names mean something else in YAML.
fn fields(fields: &[(String, String)], sign: &str) -> String {
    let fields = fields.iter().map(|(name, value)| format!("{}{sign}{}", quoted(name), quoted(value)));
    fields.collect::<Vec<_>>().join(", ")
}

/// The input is the payload, as a text.
fn stdin(schedule: &Schedule) -> String {
    quoted(if schedule.stdin.is_some() { "text" } else { "none" })
}

/// Comments, then lines.
fn block(schedule: &Schedule, format: Format, lines: &[Option<String>]) -> String {
    let mut text: String = schedule.comment.iter().map(|line| comment(indent(format), line)).collect();
    for line in lines.iter().flatten() {
        text.push_str(line);
        text.push('\n');
    }
    text
}

fn yaml(schedule: &Schedule) -> String {
    let facts = schedule.metadata.iter().map(|(name, value)| format!("{name}: {}", quoted(value)));
    let facts = facts.collect::<Vec<_>>().join(", ");
    let lines = [
        Some(format!("  - name: {}", quoted(&schedule.name))),
        Some(format!("    cron: {}", quoted(&schedule.cron))),
        schedule.timezone.as_ref().map(|timezone| format!("    timezone: {}", quoted(timezone))),
        Some("    job:".into()),
        Some(format!("      type: {}", quoted(&schedule.job_type))),
        Some("      target:".into()),
        Some("        process:".into()),
        Some(format!("          command: {}", list(&schedule.command))),
        Some(format!("          env: {{ {} }}", fields(&schedule.env, ": "))),
        schedule.cwd.as_ref().map(|cwd| format!("          cwd: {}", quoted(cwd))),
        Some(format!("          stdin: {}", stdin(schedule))),
        schedule.stdin.as_ref().map(|text| format!("      payload: {}", quoted(text))),
        Some(format!("      timeout: {}", quoted(TIMEOUT))),
        Some("      retry: { max_retries: 0 }".into()),
        (!facts.is_empty()).then(|| format!("      metadata: {{ {facts} }}")),
    ];
    block(schedule, Format::Yaml, &lines)
}

fn toml(schedule: &Schedule) -> String {
    let mut lines = vec![
        Some("[[schedules]]".into()),
        Some(format!("name = {}", quoted(&schedule.name))),
        Some(format!("cron = {}", quoted(&schedule.cron))),
        schedule.timezone.as_ref().map(|timezone| format!("timezone = {}", quoted(timezone))),
        Some(format!("job.type = {}", quoted(&schedule.job_type))),
        Some(format!("job.target.process.command = {}", list(&schedule.command))),
        Some(format!("job.target.process.env = {{ {} }}", fields(&schedule.env, " = "))),
        schedule.cwd.as_ref().map(|cwd| format!("job.target.process.cwd = {}", quoted(cwd))),
        Some(format!("job.target.process.stdin = {}", stdin(schedule))),
        schedule.stdin.as_ref().map(|text| format!("job.payload = {}", quoted(text))),
        Some(format!("job.timeout = {}", quoted(TIMEOUT))),
        Some("job.retry.max_retries = 0".into()),
    ];
    let facts = schedule.metadata.iter();
    lines.extend(facts.map(|(name, value)| Some(format!("job.metadata.{name} = {}", quoted(value)))));
    block(schedule, Format::Toml, &lines)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::commands::declared;

    fn read(format: Format, pieces: &[Piece]) -> Value {
        let text = document(pieces, format);
        let reader = match format {
            Format::Yaml => declared::Format::Yaml,
            Format::Toml => declared::Format::Toml,
        };
        reader.parse(&text).unwrap_or_else(|error| panic!("{error} in\n{text}"))
    }

    fn schedule(awkward: &str) -> Schedule {
        Schedule {
            comment: vec![awkward.into()],
            name: "run".into(),
            cron: "0 2 * * *".into(),
            timezone: Some("Europe/Berlin".into()),
            job_type: "run".into(),
            command: vec!["/bin/sh".into(), "-c".into(), awkward.into()],
            env: vec![("NO".into(), awkward.into())],
            cwd: Some(awkward.into()),
            stdin: Some(awkward.into()),
            metadata: vec![("user", awkward.into()), ("mailto", "a@b".into())],
        }
    }

    #[test]
    fn what_is_written_is_read_back_whatever_is_in_it() {
        for awkward in [
            "a: b # c",
            "\"x\\n\" {y} [z]",
            "tab\tnl\ncr\r\u{7f}\u{85}\u{2028}\u{feff}",
            "é 日本 '",
            "%d & *x !y |",
            "\u{fffe}\u{ffff}\u{10ffff}",
            "",
        ] {
            let expected = json!({"schedules": [{"name": "run", "cron": "0 2 * * *", "timezone": "Europe/Berlin",
                "job": {"type": "run", "timeout": "24h", "retry": {"max_retries": 0}, "payload": awkward,
                    "target": {"process": {"command": ["/bin/sh", "-c", awkward], "env": {"NO": awkward},
                        "cwd": awkward, "stdin": "text"}},
                    "metadata": {"user": awkward, "mailto": "a@b"}}}]});
            for format in [Format::Yaml, Format::Toml] {
                let pieces = [Piece::Remark(awkward.into()), Piece::Schedule(Box::new(schedule(awkward)))];
                assert_eq!(read(format, &pieces), expected, "{format:?} {awkward:?}");
            }
        }
    }

    #[test]
    fn nothing_to_do_is_an_empty_list() {
        for format in [Format::Yaml, Format::Toml] {
            assert_eq!(read(format, &[Piece::Remark("only this".into())]), json!({"schedules": []}));
        }
    }
}
