//! `tickwheel jobs list`.

use clap::Args;
use tickwheel_protocol::{Priority, Status, Time};

use super::{Session, view};
use crate::cli::one_of;
use crate::commands::paging::Listing;
use crate::failure::Failure;

/// Options of `jobs list`: every filter narrows it further.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only jobs in this state
    #[arg(long, value_name = "STATUS", value_parser = one_of(Status::ALL, Status::as_str))]
    status: Option<Status>,
    /// Only jobs of this type
    #[arg(long = "type", value_name = "TYPE")]
    job_type: Option<String>,
    /// Only jobs of this queue
    #[arg(long, value_name = "QUEUE")]
    queue: Option<String>,
    /// Only jobs with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Only jobs of this priority
    #[arg(long, value_name = "PRIORITY", value_parser = one_of(Priority::ALL, Priority::as_str))]
    priority: Option<Priority>,
    /// Only jobs of this schedule
    #[arg(long, value_name = "ID")]
    schedule_id: Option<String>,
    /// Only jobs created at this time or later (RFC 3339)
    #[arg(long, value_name = "TIME")]
    from: Option<Time>,
    /// Only jobs created before this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    to: Option<Time>,
    /// How many at the most
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

/// Lists jobs.
pub async fn run(args: ListArgs, session: &Session) -> Result<(), Failure> {
    let filters = [
        ("status", args.status.map(|status| status.to_string())),
        ("type", args.job_type),
        ("queue", args.queue),
        ("tag", args.tag),
        ("priority", args.priority.map(|priority| priority.to_string())),
        ("schedule_id", args.schedule_id),
        ("from", args.from.map(|time| time.to_string())),
        ("to", args.to.map(|time| time.to_string())),
        // The table shows neither; a machine gets whole jobs.
        ("include", session.output.json.then(|| "payload,result".into())),
    ];
    let listing = Listing { path: &["jobs"], filters: &filters, items_max: Some(args.limit as usize) };
    let found = listing.fetch(session).await?;
    found.print(&session.output, "no jobs match", |jobs| view::table(&session.output, jobs))
}
