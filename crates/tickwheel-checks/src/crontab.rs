//! Crontabs, and the files of schedules that they become.
//!
//! The input is a crontab as it is.
//!
//! - Every line is converted, noted, or has nothing to do; no line is both converted and refused.
//! - The file reads back to the same schedules, as YAML and as TOML.
//! - Names are unique, and names and expressions are such as the server takes.
//! - The file of a line does not depend on how the crontab ends its lines.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};
use tickwheel::commands::declared;
use tickwheel::commands::import::crontab::{
    Format, Item, Layout, Piece, Schedule, TIMEOUT, document, parse, pieces,
};
use tickwheel_core::schedule::{Recurrence, Zone};
use tickwheel_protocol::validate::Validate;
use tickwheel_protocol::{Limits, ProcessTarget, SubmitJob, SubmitSchedule, Target};

/// Checks what the module says.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for layout in [Layout::User, Layout::System] {
        let crontab = parse(text, layout, None);
        let lines = text.lines().count();
        assert!(crontab.items.len() + crontab.problems.len() <= lines);
        for problem in &crontab.problems {
            assert!((1..=lines).contains(&problem.line) && !problem.what.is_empty(), "{problem:?}");
        }
        let pieces = pieces(&crontab);
        assert_eq!(pieces.len(), crontab.items.len());
        check_schedules(&pieces);
        check_documents(&pieces);
        if !text.contains('\r') {
            assert_eq!(parse(&text.replace('\n', "\r\n"), layout, None), crontab);
        }
        for item in &crontab.items {
            if let Item::Job(job) = item {
                assert!(!job.command.text.trim().is_empty() && !job.command.text.contains('\n'), "{job:?}");
            }
        }
    }
}

fn schedules(pieces: &[Piece]) -> impl Iterator<Item = &Schedule> {
    pieces.iter().filter_map(|piece| match piece {
        Piece::Schedule(schedule) => Some(&**schedule),
        Piece::Remark(_) => None,
    })
}

fn check_schedules(pieces: &[Piece]) {
    let mut names = HashSet::new();
    for schedule in schedules(pieces) {
        assert!(names.insert(&schedule.name), "{} is there twice", schedule.name);
        assert!(Recurrence::parse(&schedule.cron).is_ok(), "{}", schedule.cron);
        if let Some(zone) = &schedule.timezone {
            assert_eq!(Zone::named(zone).map(Zone::name).ok(), Some(zone.as_str()));
        }
        let request = SubmitSchedule {
            name: schedule.name.clone(),
            cron: Some(schedule.cron.clone()),
            job: SubmitJob {
                target: target(schedule),
                job_type: schedule.job_type.clone(),
                ..SubmitJob::default()
            },
            ..SubmitSchedule::default()
        };
        assert_eq!(request.validate(&Limits::default()), Ok(()), "{}", schedule.name);
    }
}

/// What the server takes as a command, if it is of a size that the server takes.
fn target(schedule: &Schedule) -> Option<Target> {
    let process = ProcessTarget {
        env: schedule.env.iter().cloned().collect(),
        cwd: schedule.cwd.clone(),
        ..ProcessTarget::new(&schedule.command)
    };
    let bytes: usize = schedule.env.iter().map(|(name, value)| name.len() + value.len()).sum();
    let command: usize = schedule.command.iter().map(String::len).sum();
    let cwd = process.cwd.as_ref().map_or(0, String::len);
    let fits = bytes.max(command) < 100_000 && process.env.len() <= 256 && cwd <= 4_096;
    fits.then_some(Target::Process(process))
}

fn check_documents(pieces: &[Piece]) {
    let expected = json!({ "schedules": schedules(pieces).map(as_json).collect::<Vec<_>>() });
    for (format, reader) in [(Format::Yaml, declared::Format::Yaml), (Format::Toml, declared::Format::Toml)] {
        let text = document(pieces, format);
        assert_eq!(reader.parse(&text).as_ref(), Ok(&expected), "{text}");
    }
}

fn as_json(schedule: &Schedule) -> Value {
    let stdin = if schedule.stdin.is_some() { "text" } else { "none" };
    let env: BTreeMap<_, _> = schedule.env.iter().cloned().collect();
    let mut written = json!({
        "name": schedule.name,
        "cron": schedule.cron,
        "job": {
            "type": schedule.job_type,
            "target": { "process": { "command": schedule.command, "env": env, "stdin": stdin } },
            "timeout": TIMEOUT,
            "retry": { "max_retries": 0 },
        },
    });
    if let Some(cwd) = &schedule.cwd {
        written["job"]["target"]["process"]["cwd"] = json!(cwd);
    }
    if let Some(text) = &schedule.stdin {
        written["job"]["payload"] = json!(text);
    }
    if let Some(timezone) = &schedule.timezone {
        written["timezone"] = json!(timezone);
    }
    for (name, value) in &schedule.metadata {
        written["job"]["metadata"][name] = json!(value);
    }
    written
}
