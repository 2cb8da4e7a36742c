//! `tickwheel import crontab`: converts the lines of a crontab, as Debian's cron reads them, into schedules.
//!
//! A line that cannot be converted is reported with its number, and the others are still converted. The exit code is
//! then 1.

mod layout;
mod line;
mod parse;
mod percent;
mod schedule;
mod write;

use std::collections::HashSet;
use std::path::PathBuf;

use clap::Args;
use tickwheel_core::schedule::Zone;

pub use self::layout::Layout;
pub use self::parse::{BadLine, CronJob, Crontab, Item, parse};
pub use self::percent::Command;
pub use self::schedule::{Schedule, TIMEOUT};
pub use self::write::{Format, Piece, document};

use self::schedule::Names;
use crate::commands::declared;
use crate::commands::input::read_file;
use crate::failure::CommandError;
use crate::output::{Output, plain, pretty};

/// Options of `import crontab`.
#[derive(Debug, Args)]
#[command(
    after_help = "Each line becomes a schedule whose job runs the command (a process target). Standard error lists what has \
    no counterpart. The exit code is 1 if a line could not be converted.\n\n\
    Examples:\n  \
    crontab -l | tickwheel import crontab - --timezone Europe/Berlin > schedules.yaml\n  \
    tickwheel import crontab /etc/crontab --format toml > schedules.toml"
)]
pub struct CrontabArgs {
    /// Crontab to convert (`-` for standard input)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Format of the output
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "yaml")]
    format: Format,
    /// The crontab belongs to a user: five fields and the command [default: guessed]
    #[arg(long, conflicts_with = "system")]
    user: bool,
    /// The crontab is a system one, such as /etc/crontab: a user before the command [default: guessed]
    #[arg(long)]
    system: bool,
    /// IANA name of the time zone for lines without CRON_TZ [default: UTC]
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
}

/// Converts a crontab.
pub fn run(args: &CrontabArgs, output: &Output) -> Result<(), CommandError> {
    let timezone = args.timezone.as_deref().map(known_zone).transpose()?;
    let text = read_file(&args.file)?;
    let layout = args.layout(&text, output);
    let crontab = parse(&text, layout, timezone.as_deref());
    output.print(&args.written(&crontab, output.json)?)?;
    args.tell(&crontab, output);
    match crontab.problems.len() {
        0 => Ok(()),
        1 => Err(CommandError::NotGood("1 line could not be converted".into())),
        count => Err(CommandError::NotGood(format!("{count} lines could not be converted"))),
    }
}

fn known_zone(name: &str) -> Result<String, CommandError> {
    let zone = Zone::named(name).map_err(|error| CommandError::BadInput(format!("--timezone: {error}")))?;
    Ok(zone.name().to_owned())
}

/// The pieces that a crontab becomes.
pub fn pieces(crontab: &Crontab) -> Vec<Piece> {
    let mut names = Names::default();
    let pieces = crontab.items.iter().map(|item| match item {
        Item::Job(job) => Piece::Schedule(Box::new(schedule::schedule(job, &mut names))),
        Item::Reboot { line, command } => {
            Piece::Remark(format!("line {line}: @reboot has no counterpart: {command}"))
        }
    });
    pieces.collect()
}

impl CrontabArgs {
    fn layout(&self, text: &str, output: &Output) -> Layout {
        if self.system {
            return Layout::System;
        }
        if self.user {
            return Layout::User;
        }
        let layout = layout::guess(&self.file, text, &users_of_this_machine());
        output.note(match layout {
            Layout::System => {
                "read as a system crontab, with a user before each command; if it is not, use --user"
            }
            Layout::User => {
                "read as the crontab of a user; if there is a user before each command, use --system"
            }
        });
        layout
    }

    /// The file. JSON has no comments, so they are left out of it.
    fn written(&self, crontab: &Crontab, json: bool) -> Result<String, CommandError> {
        let pieces = pieces(crontab);
        if !json {
            return Ok(document(&pieces, self.format));
        }
        let yaml = document(&pieces, Format::Yaml);
        let document = declared::Format::Yaml.parse(&yaml).map_err(|why| anyhow::anyhow!("{why}"))?;
        Ok(pretty(&document.to_string()))
    }

    fn tell(&self, crontab: &Crontab, output: &Output) {
        let file = if self.file.as_os_str() == "-" {
            "standard input".into()
        } else {
            self.file.display().to_string()
        };
        let mut notes: Vec<(usize, String)> =
            crontab.problems.iter().map(|problem| (problem.line, problem.what.clone())).collect();
        for item in &crontab.items {
            if let Item::Reboot { line, .. } = item {
                notes.push((*line, "@reboot has no counterpart, it became a comment".into()));
            }
        }
        notes.sort();
        for (line, what) in notes {
            output.note(&format!("{}:{line}: {}", plain(&file), plain(&what)));
        }
        let jobs = crontab.items.iter().filter_map(|item| match item {
            Item::Job(job) => Some(job),
            Item::Reboot { .. } => None,
        });
        if jobs.clone().any(|job| job.timezone.is_none()) {
            output.note("times without CRON_TZ are taken as UTC, but cron uses its machine's time zone: see --timezone");
        }
        if jobs.clone().any(|job| job.user.is_some()) {
            output.note("all commands run as the same user (see process.user): the user of each line is only kept in the metadata of its jobs");
        }
        if jobs.clone().any(|job| job.mailto.is_some()) {
            output.note("nothing is mailed: MAILTO is only kept in the metadata of the jobs");
        }
    }
}

/// Names that may occur in the column of users.
fn users_of_this_machine() -> HashSet<String> {
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let listed = passwd.lines().filter_map(|line| line.split(':').next()).map(str::to_owned);
    listed.chain(["root".to_owned()]).collect()
}
