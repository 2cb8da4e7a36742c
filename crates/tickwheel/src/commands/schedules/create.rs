//! `tickwheel schedules create`.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use tickwheel_protocol::{Schedule, SubmitJob, SubmitSchedule};

use super::options::{RuleOptions, WorkOptions};
use super::{CommandContext, view};
use crate::commands::input::{json_text, read_file};
use crate::failure::CommandError;

/// Options of `schedules create`.
#[derive(Debug, Args)]
#[command(after_help = "Prints the id of the schedule. Standard error shows when it fires next.\n\n\
    Examples:\n  \
    tickwheel schedules create daily-report --cron '0 2 * * *' --timezone America/New_York --url https://svc/report\n  \
    tickwheel schedules create heartbeat --every 5m --type ping --overlap skip\n  \
    tickwheel schedules create payroll --cron '0 9 L * *' --exclude calendar:holidays --on-excluded next_day --url https://svc/pay\n  \
    tickwheel schedules create backup --cron '0 3 * * *' --timeout 2h -- /usr/bin/backup --full\n  \
    tickwheel schedules create --file schedule.json")]
pub struct CreateArgs {
    /// Name of the schedule
    #[arg(required_unless_present = "file")]
    name: Option<String>,
    /// Read the schedule from a JSON file (`-` for standard input)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "paused", "RuleOptions", "WorkOptions"])]
    file: Option<PathBuf>,
    /// Create it paused
    #[arg(long)]
    paused: bool,
    #[command(flatten)]
    rule: RuleOptions,
    #[command(flatten)]
    work: WorkOptions,
}

/// Creates a schedule.
pub async fn run(args: CreateArgs, context: &CommandContext) -> Result<(), CommandError> {
    let body = match &args.file {
        Some(path) => json_text(&path.display().to_string(), &read_file(path)?)?.get().to_owned(),
        None => serde_json::to_string(&args.into_request()?).context("cannot write the schedule as JSON")?,
    };
    let answer = context.client.post(&["schedules"]).body(body).send().await?;
    let schedule: Schedule = answer.read()?;
    context.output.note(&view::announcement(&schedule));
    context.print(&answer, |_| Ok(schedule.id.to_string()))
}

impl CreateArgs {
    fn into_request(self) -> Result<SubmitSchedule, CommandError> {
        let name = self.name.unwrap_or_default();
        if self.rule.cron.is_none() && self.rule.every.is_none() {
            return Err(CommandError::BadInput("say when it fires, with --cron or --every".into()));
        }
        let job = SubmitJob { job_type: name.clone(), ..SubmitJob::default() };
        let rule = self.rule;
        Ok(SubmitSchedule {
            name,
            missed: rule.missed(),
            exclude: rule.excluded(),
            cron: rule.cron,
            every: rule.every,
            anchor: rule.anchor,
            timezone: rule.timezone,
            job: self.work.applied_to(job)?,
            overlap: rule.overlap,
            dst_gap: rule.dst_gap,
            dst_fold: rule.dst_fold,
            day_logic: rule.day_logic,
            start_at: rule.start_at,
            end_at: rule.end_at,
            jitter: rule.jitter,
            on_excluded: rule.on_excluded,
            paused: self.paused.then_some(true),
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

    fn parse(line: &[&str]) -> Result<CreateArgs, clap::Error> {
        let cli = Cli::try_parse_from(["tickwheel", "schedules", "create"].iter().chain(line))?;
        let Command::Schedules(SchedulesCommand::Create(args)) = cli.command else {
            unreachable!("the line says create")
        };
        Ok(*args)
    }

    fn request(line: &[&str]) -> Value {
        serde_json::to_value(parse(line).unwrap().into_request().unwrap()).unwrap()
    }

    #[test]
    fn what_is_not_said_is_left_to_the_server() {
        assert_eq!(
            request(&["nightly", "--cron", "0 2 * * *"]),
            json!({"name": "nightly", "cron": "0 2 * * *", "job": {"type": "nightly"}})
        );
    }

    #[test]
    fn options_become_the_fields_of_the_schedule_and_of_its_job() {
        let request = request(&[
            "beat",
            "--every=5m",
            "--anchor=2026-01-01T00:00:30Z",
            "--timezone=Asia/Tokyo",
            "--type=ping",
            "--url=http://x/",
            "--header",
            "A: b:c",
            "--payload",
            "[1]",
            "--queue=q",
            "--priority=high",
            "--max-retries=7",
            "--tag=a",
            "--tag=b",
            "--missed=backfill",
            "--max-backfill=5",
            "--overlap=skip",
            "--jitter=30s",
            "--exclude=2026-12-25",
            "--exclude=calendar:off",
            "--on-excluded=next_day",
            "--end-at=2030-01-01T00:00:00Z",
            "--paused",
        ]);
        let expected = json!({
            "name": "beat", "every": "300s", "anchor": "2026-01-01T00:00:30.000Z", "timezone": "Asia/Tokyo",
            "job": {"type": "ping", "target": {"http": {"url": "http://x/", "method": "POST", "headers": {"A": "b:c"}}},
                "payload": [1], "queue": "q", "priority": "high", "tags": ["a", "b"],
                "retry": {"max_retries": 7, "backoff": null, "initial_delay": null, "max_delay": null, "jitter": null,
                    "delays": null}},
            "missed": {"policy": "backfill", "max_backfill": 5}, "overlap": "skip", "jitter": "30s",
            "exclude": ["2026-12-25", "calendar:off"], "on_excluded": "next_day", "end_at": "2030-01-01T00:00:00.000Z",
            "paused": true,
        });
        assert_eq!(request, expected);
    }

    #[test]
    fn a_schedule_comes_from_one_place_only_and_fires_by_one_rule() {
        for line in [
            &[][..],
            &["n", "--cron=@daily", "--every=5m"],
            &["n", "--cron=@daily", "--anchor=2026-01-01T00:00:00Z"],
            &["n", "--file=s.json"],
            &["--file=s.json", "--cron=@daily"],
            &["--file=s.json", "--url=http://x/"],
            &["--file=s.json", "--paused"],
            &["n", "--cron=@daily", "--overlap=forbid"],
        ] {
            assert!(parse(line).is_err(), "{line:?}");
        }
        assert!(parse(&["--file=s.json"]).is_ok());
        assert!(parse(&["n", "--url=http://x/"]).unwrap().into_request().is_err(), "it never says when");
        assert!(parse(&["n", "--cron=@daily", "--method=PUT"]).unwrap().into_request().is_err());
    }
}
