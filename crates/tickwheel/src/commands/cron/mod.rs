//! `tickwheel cron`: when an expression fires. Needs no server, and gives the same answer as a server of this version.

mod explain;
mod next;

use clap::{Args, Subcommand};
use tickwheel_core::Timestamp;
use tickwheel_protocol::cron::{COUNT_DEFAULT, COUNT_RANGE, TIMEZONE_DEFAULT};
use tickwheel_protocol::{CronPreview, DayLogic, DstFold, DstGap, PreviewCron, Time};

use crate::cli::{one_of, whole};
use crate::failure::CommandError;
use crate::output::{Output, now, pretty};

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum CronCommand {
    /// Print the next firings, one per line
    #[command(
        after_help = "Times are RFC 3339 with the zone's offset. If the expression never fires, standard output is empty, standard error says \
        so, and the exit code is 0. --json prints the same as POST /api/v1/cron/preview."
    )]
    Next(CronArgs),
    /// Explain an expression in words, with its next firings and the effect of the next clock change
    #[command(after_help = "--json prints the same as POST /api/v1/cron/preview.")]
    Explain(CronArgs),
}

/// An expression and its options.
#[derive(Debug, Args)]
pub struct CronArgs {
    /// Five fields, six with leading seconds, a nickname such as @daily, or an interval such as '@every 90s'
    #[arg(value_name = "EXPR")]
    expression: String,
    /// IANA name of the time zone for local times
    #[arg(long, value_name = "ZONE", default_value = TIMEZONE_DEFAULT)]
    timezone: String,
    /// Only firings after this time (RFC 3339) [default: now]
    #[arg(long, value_name = "TIME")]
    after: Option<Time>,
    /// How many firings to show, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = COUNT_DEFAULT, value_parser = whole(COUNT_RANGE), allow_negative_numbers = true)]
    count: u32,
    /// What happens to fixed times that the clock skips [default: run_after]
    #[arg(long, value_name = "GAP", value_parser = one_of(DstGap::ALL, DstGap::as_str))]
    dst_gap: Option<DstGap>,
    /// What happens to fixed times that occur twice [default: once]
    #[arg(long, value_name = "FOLD", value_parser = one_of(DstFold::ALL, DstFold::as_str))]
    dst_fold: Option<DstFold>,
    /// How day-of-month and day-of-week combine [default: or]
    #[arg(long, value_name = "LOGIC", value_parser = one_of(DayLogic::ALL, DayLogic::as_str))]
    day_logic: Option<DayLogic>,
}

impl CronArgs {
    fn preview(&self) -> Result<CronPreview, CommandError> {
        let request = PreviewCron {
            cron: Some(self.expression.clone()),
            every: None,
            timezone: Some(self.timezone.clone()),
            dst_gap: self.dst_gap,
            dst_fold: self.dst_fold,
            day_logic: self.day_logic,
            count: Some(self.count),
            after: self.after,
        };
        tickwheel_api::preview_cron(&request, Timestamp::from_millis(now().as_millis())).map_err(|problem| {
            // Each sentence names what it is about; pointers into a request would be foreign here.
            let sentences: Vec<_> = problem.errors.into_iter().map(|error| error.detail).collect();
            CommandError::BadInput(sentences.join("\n"))
        })
    }
}

/// Runs the command.
pub fn run(command: CronCommand, output: &Output) -> Result<(), CommandError> {
    let (CronCommand::Next(args) | CronCommand::Explain(args)) = &command;
    let preview = args.preview()?;
    if output.json {
        let text = serde_json::to_string(&preview).map_err(anyhow::Error::from)?;
        return Ok(output.print(&pretty(&text))?);
    }
    match &command {
        CronCommand::Next(_) => next::print(&preview, output),
        CronCommand::Explain(args) => explain::print(&args.expression, &preview, output),
    }
}
