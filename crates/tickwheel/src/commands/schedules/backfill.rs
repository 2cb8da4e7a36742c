//! `tickwheel schedules backfill`: makes jobs for a past range, and follows the progress.
//!
//! The backfill runs on the server: whoever follows it may stop following at any time.

use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use tickwheel_client::Answer;
use tickwheel_core::schedule::Zone;
use tickwheel_protocol::backfill::RATE_RANGE;
use tickwheel_protocol::{
    Backfill, BackfillPreview, BackfillSchedule, BackfillStatus, BackfillWait, Priority, Schedule, Time,
};

use super::CommandContext;
use super::when::When;
use crate::cli::{one_of, whole};
use crate::failure::CommandError;
use crate::output::{Output, Tone, facts, moment, now, plain, short};

/// How often the progress is read.
const POLL: Duration = Duration::from_millis(500);
/// Without a terminal, a line is printed after this many reads.
const POLLS_PER_LINE: u32 = 10;
/// A range that ends today ends this long ago: our clock and the server's may differ.
const CLOCKS_DIFFER_MS: i64 = 10_000;

/// Options of `schedules backfill`.
#[derive(Debug, Args)]
#[command(
    after_help = "A time is RFC 3339 (2026-11-01T09:00:00Z), or without offset (2026-11-01T09:00) for the local time \
    in the schedule's zone. A date (2026-11-01) means that whole day.\n\n\
    Firings that already have a job get no second one. The command first shows what there is to do, then the progress until the end. \
    Ctrl-C stops the display, not the backfill. The exit code is 1 if the backfill is cancelled.\n\n\
    Examples:\n  \
    tickwheel schedules backfill daily-report --from 2026-10-01 --to 2026-10-31 --preview\n  \
    tickwheel schedules backfill daily-report --from 2026-10-01 --to 2026-10-31 --rate 2\n  \
    tickwheel schedules backfill daily-report --cancel"
)]
pub struct BackfillArgs {
    /// Name or id of the schedule
    #[arg(value_name = "SCHEDULE")]
    schedule: String,
    /// Start of the range
    #[arg(long, value_name = "TIME", required_unless_present_any = ["status", "cancel"])]
    from: Option<When>,
    /// End of the range, which must be in the past
    #[arg(long, value_name = "TIME", required_unless_present_any = ["status", "cancel"])]
    to: Option<When>,
    /// Make at most this many jobs per second, 1 to 1000 [default: 10]
    #[arg(long, value_name = "N", value_parser = whole(RATE_RANGE), allow_negative_numbers = true)]
    rate: Option<u32>,
    /// Priority of the jobs [default: that of the schedule's jobs]
    #[arg(long, value_name = "PRIORITY", value_parser = one_of(Priority::ALL, Priority::as_str))]
    priority: Option<Priority>,
    /// Only show what the backfill would do
    #[arg(long, conflicts_with = "detach")]
    preview: bool,
    /// Start the backfill and do not wait for its end
    #[arg(long)]
    detach: bool,
    /// Show the progress of the latest backfill
    #[arg(long, conflicts_with_all = ["cancel", "from", "to", "rate", "priority", "preview", "detach"])]
    status: bool,
    /// Cancel the running backfill; the jobs it made stay
    #[arg(long, conflicts_with_all = ["from", "to", "rate", "priority", "preview", "detach"])]
    cancel: bool,
}

/// Previews, starts, follows or cancels a backfill.
pub async fn run(args: BackfillArgs, context: &CommandContext) -> Result<(), CommandError> {
    let path = ["schedules", &args.schedule, "backfill"];
    match (args.from, args.to) {
        (Some(from), Some(to)) => {
            let (from, to) = range(from, to, &args.schedule, context).await?;
            let request =
                BackfillSchedule { from, to, rate: args.rate, priority: args.priority, preview: None };
            start(&args, &path, request, context).await
        }
        _ if args.cancel => {
            let path = ["schedules", &args.schedule, "backfill", "cancel"];
            show(&context.client.post(&path).send().await?, context)
        }
        _ => show(&context.client.get(&path).send().await?, context),
    }
}

/// The exact times of the range. If they depend on the zone, the server is asked for the schedule's.
async fn range(
    from: When,
    to: When,
    schedule: &str,
    context: &CommandContext,
) -> Result<(Time, Time), CommandError> {
    let zone = if from.needs_zone() || to.needs_zone() {
        let schedule: Schedule = context.client.get(&["schedules", schedule]).send().await?.read()?;
        let name = &schedule.timezone;
        let unknown = |_| format!("this program does not know {name:?}: give the times with their offset");
        Zone::named(name).map_err(unknown).map_err(CommandError::BadInput)?
    } else {
        Zone::utc()
    };
    let just_now = Time::from_millis(now().as_millis() - CLOCKS_DIFFER_MS);
    let last = match to {
        When::Day(_) if to.first(zone) < just_now => to.last(zone).min(just_now),
        _ => to.last(zone),
    };
    Ok((from.first(zone), last))
}

async fn start(
    args: &BackfillArgs,
    path: &[&str],
    request: BackfillSchedule,
    context: &CommandContext,
) -> Result<(), CommandError> {
    let preview = BackfillSchedule { preview: Some(true), ..request };
    let answer = context.client.post(path).json(&preview)?.send().await?;
    let sentence = previewed(&answer.read()?);
    if args.preview {
        return context.print(&answer, |_| Ok(sentence));
    }
    context.output.note(&sentence);
    let begun = context.client.post(path).json(&request)?.send().await?;
    if args.detach {
        context.output.note(&how_to_look(&args.schedule));
        return show(&begun, context);
    }
    let over = tokio::select! {
        over = follow(begun, path, context) => over?,
        _ = tokio::signal::ctrl_c() => {
            let told = format!("the backfill goes on; {}", how_to_look(&args.schedule));
            return Err(CommandError::NotGood(told));
        }
    };
    show(&over, context)?;
    match over.read::<Backfill>()?.status {
        BackfillStatus::Cancelled => Err(CommandError::NotGood("the backfill was cancelled".into())),
        _ => Ok(()),
    }
}

fn how_to_look(schedule: &str) -> String {
    let command = format!("tickwheel schedules backfill {}", plain(schedule));
    format!("see it with `{command} --status`, cancel it with `{command} --cancel`")
}

/// Shows the progress until the backfill has ended.
async fn follow(begun: Answer, path: &[&str], context: &CommandContext) -> Result<Answer, CommandError> {
    let bar = progress_bar();
    let (mut answer, mut polls) = (begun, 0_u32);
    loop {
        let backfill: Backfill = answer.read()?;
        if backfill.status != BackfillStatus::Running {
            bar.finish_and_clear();
            return Ok(answer);
        }
        bar.set_length(backfill.count);
        bar.set_position(backfill.made + backfill.already_fired);
        bar.set_message(summary(&backfill));
        if bar.is_hidden() && polls % POLLS_PER_LINE == POLLS_PER_LINE - 1 {
            context.output.note(&summary(&backfill));
        }
        polls += 1;
        tokio::time::sleep(POLL).await;
        answer = context.client.get(path).send().await?;
    }
}

/// A progress line on a terminal, and nothing elsewhere.
fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {percent:>3}%  {msg}");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn show(answer: &Answer, context: &CommandContext) -> Result<(), CommandError> {
    context.print(answer, |output| Ok(full(output, &answer.read()?)))
}

fn firings(count: u64) -> String {
    if count == 1 { "1 firing".into() } else { format!("{count} firings") }
}

fn previewed(preview: &BackfillPreview) -> String {
    let BackfillPreview { from, to, count, already_fired, .. } = *preview;
    let have = if already_fired == 1 { "has" } else { "have" };
    match (preview.first, preview.last) {
        (Some(first), Some(last)) => format!(
            "{} from {} to {}, {already_fired} {have} run already, {} to make",
            firings(count),
            short(first),
            short(last),
            count.saturating_sub(already_fired)
        ),
        _ => format!("no firing from {} to {}", short(from), short(to)),
    }
}

/// The progress of a backfill in one line.
pub fn summary(backfill: &Backfill) -> String {
    let Backfill { status, count, made, already_fired, left, .. } = *backfill;
    let waiting = match backfill.waiting {
        Some(BackfillWait::Overlap) => "; waits for a job to end",
        Some(BackfillWait::Paused) => "; waits for the schedule to be resumed",
        None => "",
    };
    format!(
        "{status}: {}, {made} made, {already_fired} had run already, {left} left{waiting}",
        firings(count)
    )
}

fn full(output: &Output, backfill: &Backfill) -> String {
    let now = now();
    let plainly = |name, value: Option<String>| (name, value, Tone::Plain);
    let time = |name, at: Option<Time>| (name, at.map(|at| moment(at, now)), Tone::Plain);
    let status = backfill.status.as_str();
    facts(
        output,
        &[
            ("backfill", Some(summary(backfill)), Tone::of_status(status)),
            time("from", Some(backfill.from)),
            time("to", Some(backfill.to)),
            time("next", backfill.next_time),
            plainly("rate", Some(format!("at most {} per second", backfill.rate))),
            plainly("priority", backfill.priority.map(|priority| priority.to_string())),
            time("requested", Some(backfill.requested_at)),
            time("ended", backfill.ended_at),
        ],
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::cli::Cli;

    #[test]
    fn a_range_is_given_or_the_latest_backfill_is_meant() {
        let parses = |line: &str| {
            let line = format!("tickwheel schedules backfill {line}");
            Cli::try_parse_from(line.split_whitespace()).is_ok()
        };
        for good in [
            "n --from 2026-11-01 --to 2026-11-02T09:00",
            "n --from 2026-11-01T00:00:00Z --to 2026-11-02 --rate 1000 --priority low --detach",
            "n --from 2026-11-01 --to 2026-11-02 --preview",
            "n --status",
            "n --cancel",
        ] {
            assert!(parses(good), "{good}");
        }
        for bad in [
            "n",
            "--status",
            "n --from 2026-11-01",
            "n --to 2026-11-01",
            "n --from yesterday --to 2026-11-01",
            "n --from 2026-11-01 --to 2026-11-02 --rate 0",
            "n --from 2026-11-01 --to 2026-11-02 --rate 1001",
            "n --from 2026-11-01 --to 2026-11-02 --priority urgent",
            "n --from 2026-11-01 --to 2026-11-02 --preview --detach",
            "n --status --cancel",
            "n --status --from 2026-11-01 --to 2026-11-02",
            "n --cancel --detach",
        ] {
            assert!(!parses(bad), "{bad}");
        }
    }
}
