//! `tickwheel schedules edit`.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use tickwheel_protocol::{PatchSchedule, Schedule, SubmitJob};

use super::options::{RuleOptions, WorkOptions};
use super::{CommandContext, view};
use crate::commands::input::{json_text, read_file};
use crate::failure::CommandError;

/// Options of `schedules edit`.
#[derive(Debug, Args)]
#[command(after_help = "Settings without an option keep their value.\n\n\
    Examples:\n  \
    tickwheel schedules edit daily-report --cron '30 2 * * *'\n  \
    tickwheel schedules edit daily-report --payload '{\"full\":true}' --no-end-at\n  \
    tickwheel schedules edit daily-report --file changes.json")]
pub struct EditArgs {
    /// Name or id of the schedule
    #[arg(value_name = "SCHEDULE")]
    schedule: String,
    /// Read the changes from a JSON file (`-` for standard input)
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["no_start_at", "no_end_at", "no_exclude", "RuleOptions", "WorkOptions"])]
    file: Option<PathBuf>,
    /// Remove the start time
    #[arg(long, conflicts_with = "start_at")]
    no_start_at: bool,
    /// Remove the end time
    #[arg(long, conflicts_with = "end_at")]
    no_end_at: bool,
    /// Remove all excluded days
    #[arg(long, conflicts_with = "exclude")]
    no_exclude: bool,
    #[command(flatten)]
    rule: RuleOptions,
    #[command(flatten)]
    work: WorkOptions,
}

/// Changes a schedule.
pub async fn run(args: EditArgs, context: &CommandContext) -> Result<(), CommandError> {
    let key = args.schedule.clone();
    let path = ["schedules", &key];
    let body = match &args.file {
        Some(file) => json_text(&file.display().to_string(), &read_file(file)?)?.get().to_owned(),
        None => {
            let job = match args.work == WorkOptions::default() {
                true => None,
                // A job is replaced as a whole: what was not said has to come from the one there is.
                false => Some(context.client.get(&path).send().await?.read::<Schedule>()?.job),
            };
            let patch = args.into_patch(job)?;
            serde_json::to_string(&patch).context("cannot write the changes as JSON")?
        }
    };
    if body == "{}" {
        return Err(CommandError::BadInput("nothing to change: give at least one option".into()));
    }
    let answer = context.client.patch(&path).body(body).send().await?;
    context.print(&answer, |_| Ok(view::line(&answer.read()?)))
}

impl EditArgs {
    fn into_patch(self, job: Option<SubmitJob>) -> Result<PatchSchedule, CommandError> {
        let rule = self.rule;
        let bound = |at: Option<_>, taken_away: bool| at.map(Some).or_else(|| taken_away.then_some(None));
        Ok(PatchSchedule {
            job: job.map(|job| self.work.applied_to(job)).transpose()?,
            missed: rule.missed(),
            exclude: rule.excluded().or_else(|| self.no_exclude.then(Vec::new)),
            start_at: bound(rule.start_at, self.no_start_at),
            end_at: bound(rule.end_at, self.no_end_at),
            cron: rule.cron,
            every: rule.every,
            anchor: rule.anchor,
            timezone: rule.timezone,
            overlap: rule.overlap,
            dst_gap: rule.dst_gap,
            dst_fold: rule.dst_fold,
            day_logic: rule.day_logic,
            jitter: rule.jitter,
            on_excluded: rule.on_excluded,
            paused: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::{Value, json};

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::commands::schedules::SchedulesCommand;

    fn parse(line: &[&str]) -> Result<EditArgs, clap::Error> {
        let cli = Cli::try_parse_from(["tickwheel", "schedules", "edit"].iter().chain(line))?;
        let Command::Schedules(SchedulesCommand::Edit(args)) = cli.command else {
            unreachable!("the line says edit")
        };
        Ok(*args)
    }

    fn patch(line: &[&str], job: Value) -> Value {
        let patch = parse(line).unwrap().into_patch(serde_json::from_value(job).unwrap()).unwrap();
        serde_json::to_value(patch).unwrap()
    }

    #[test]
    fn only_what_is_said_is_changed() {
        assert_eq!(patch(&["n"], Value::Null), json!({}));
        assert_eq!(
            patch(&["n", "--cron=@daily", "--no-end-at", "--no-exclude", "--missed-window=1h"], Value::Null),
            json!({"cron": "@daily", "end_at": null, "exclude": [], "missed": {"window": "1h"}})
        );
    }

    #[test]
    fn the_job_keeps_what_is_not_said() {
        let job = json!({"type": "t", "payload": {"a": 1}, "queue": "q", "retry": {"max_retries": 3, "jitter": 0.5},
            "target": {"http": {"url": "http://x/", "method": "PUT", "headers": {"A": "b"}}}});
        let changed = patch(&["n", "--url=http://y/", "--max-retries=5"], job);
        assert_eq!(
            changed["job"]["target"],
            json!({"http": {"url": "http://y/", "method": "PUT", "headers": {"A": "b"}}})
        );
        let retry = &changed["job"]["retry"];
        assert_eq!((&retry["max_retries"], &retry["jitter"]), (&json!(5), &json!(0.5)));
        assert_eq!((&changed["job"]["payload"], &changed["job"]["queue"]), (&json!({"a": 1}), &json!("q")));
    }

    #[test]
    fn a_bound_is_set_or_taken_away_and_not_both() {
        for line in [
            &["n", "--end-at=2030-01-01T00:00:00Z", "--no-end-at"][..],
            &["n", "--exclude=2026-12-25", "--no-exclude"],
            &["n", "--file=c.json", "--no-start-at"],
            &["n", "--file=c.json", "--queue=q"],
            &["--cron=@daily"],
        ] {
            assert!(parse(line).is_err(), "{line:?}");
        }
    }
}
