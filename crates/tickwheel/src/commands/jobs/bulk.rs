//! `tickwheel jobs cancel|retry` without ids: acts on every job that matches, after showing how many there are.
//!
//! The set of jobs is fixed before the question: jobs that match only later are not touched. Each job is changed by its
//! own request, several at a time. Whoever interrupts the command can run it again, and it does the rest.

use std::collections::BTreeMap;

use futures::StreamExt;
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};
use tickwheel_protocol::Status;
use uuid::Uuid;

use super::CommandContext;
use super::act::{ManyArgs, Verb};
use crate::commands::consent;
use crate::commands::paging::Listing;
use crate::failure::CommandError;
use crate::output::{plain, pretty};

/// How many jobs one command acts on. For more, run it again.
const JOBS_MAX: usize = 100_000;
/// How many requests are under way at once.
const AT_ONCE: usize = 16;
const REFUSALS_SHOWN_MAX: u64 = 5;

#[derive(Deserialize)]
struct Match {
    id: Uuid,
    status: Status,
}

/// The outcome, as JSON.
#[derive(Serialize)]
struct Report {
    matched: usize,
    done: u64,
    refused: u64,
}

/// Applies `verb` to every job that matches.
pub async fn run(verb: Verb, args: &ManyArgs, context: &CommandContext) -> Result<(), CommandError> {
    let matches = matches(verb, args, context).await?;
    if matches.is_empty() {
        return tell(&Report { matched: 0, done: 0, refused: 0 }, verb, context);
    }
    let jobs = said(&matches);
    if args.dry_run {
        let report = Report { matched: matches.len(), done: 0, refused: 0 };
        return print(&report, &format!("would {} {jobs}", verb.word()), context);
    }
    consent::require(&format!("{} {jobs}?", verb.word()), args.yes, context)?;
    let report = perform(verb, &matches, context).await?;
    tell(&report, verb, context)?;
    match report.refused {
        0 => Ok(()),
        refused => {
            Err(CommandError::NotGood(format!("{refused} of {} jobs were not changed", report.matched)))
        }
    }
}

async fn matches(verb: Verb, args: &ManyArgs, context: &CommandContext) -> Result<Vec<Match>, CommandError> {
    let mut filter = args.filter.clone();
    if filter.status.is_empty() {
        filter.status = Status::ALL.iter().copied().filter(|status| verb.applies_to(*status)).collect();
    }
    let filters = filter.query(context).await?;
    let listing = Listing { path: &["jobs"], filters: &filters, part: None };
    let (mut pages, mut found) = (listing.large_pages(context), Vec::new());
    let wanted = args.limit.map_or(JOBS_MAX, |limit| JOBS_MAX.min(limit as usize));
    while let Some(page) = pages.items::<Match>().await? {
        found.extend(page);
        if found.len() >= wanted {
            found.truncate(wanted);
            if wanted == JOBS_MAX {
                context.output.note(&format!(
                    "only the newest {JOBS_MAX} that match; run the command again for the others"
                ));
            }
            break;
        }
    }
    Ok(found)
}

/// `12 jobs (2 running, 10 scheduled)`
fn said(matches: &[Match]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for found in matches {
        *counts.entry(found.status.as_str()).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(status, count)| format!("{count} {status}")).collect();
    let jobs = if matches.len() == 1 { "job" } else { "jobs" };
    format!("{} {jobs} ({})", matches.len(), counts.join(", "))
}

async fn perform(verb: Verb, matches: &[Match], context: &CommandContext) -> Result<Report, CommandError> {
    let bar = progress_bar(matches.len());
    let change = async |found: &Match| {
        let id = found.id.to_string();
        let changed = context.client.post(&["jobs", &id, verb.word()]).send().await;
        changed.map_err(|error| (id, CommandError::from(error)))
    };
    let mut changes = futures::stream::iter(matches.iter().map(change)).buffer_unordered(AT_ONCE);
    let mut report = Report { matched: matches.len(), done: 0, refused: 0 };
    while let Some(changed) = changes.next().await {
        bar.inc(1);
        match changed {
            Ok(_) => report.done += 1,
            // It has changed since it was found.
            Err((id, CommandError::Refused(problem))) if problem.status < 500 => {
                report.refused += 1;
                if report.refused <= REFUSALS_SHOWN_MAX {
                    let note = format!("job {id}: {} ({})", plain(&problem.detail), plain(&problem.code));
                    bar.suspend(|| context.output.note(&note));
                }
            }
            Err((id, failure)) => {
                bar.finish_and_clear();
                let (done, all) = (report.done, report.matched);
                context.output.note(&format!("stopped after {done} of {all} jobs"));
                return Err(failure.about("job", &id));
            }
        }
    }
    bar.finish_and_clear();
    Ok(report)
}

/// A progress line on a terminal, and nothing elsewhere.
fn progress_bar(jobs: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {percent:>3}%  {pos} of {len}  {eta} left");
    ProgressBar::new(jobs as u64).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn tell(report: &Report, verb: Verb, context: &CommandContext) -> Result<(), CommandError> {
    if report.matched == 0 && !context.output.json {
        context.output.note("no jobs match");
        return Ok(());
    }
    print(report, &verb.done(report.done), context)
}

fn print(report: &Report, words: &str, context: &CommandContext) -> Result<(), CommandError> {
    if context.output.json {
        let text = serde_json::to_string(report).map_err(anyhow::Error::from)?;
        return Ok(context.output.print(&pretty(&text))?);
    }
    Ok(context.output.print(words)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preview_says_how_many_and_how_they_stand() {
        let found = |status| Match { id: Uuid::nil(), status };
        let some = [found(Status::Running), found(Status::Scheduled), found(Status::Scheduled)];
        assert_eq!(said(&some), "3 jobs (1 running, 2 scheduled)");
        assert_eq!(said(&[found(Status::Failed)]), "1 job (1 failed)");
    }

    #[test]
    fn only_what_can_be_changed_is_meant() {
        let meant = |verb: Verb| Status::ALL.iter().filter(|status| verb.applies_to(**status)).count();
        assert!(Verb::Cancel.applies_to(Status::Running) && !Verb::Cancel.applies_to(Status::Completed));
        assert_eq!((meant(Verb::Cancel), meant(Verb::Retry)), (6, 2));
    }
}
