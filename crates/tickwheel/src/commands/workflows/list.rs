//! `tickwheel workflows list`.

use clap::Args;

use super::{Session, view};
use crate::commands::paging::Listing;
use crate::failure::Failure;

/// Options of `workflows list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// How many at the most
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

/// Lists workflows.
pub async fn run(args: ListArgs, session: &Session) -> Result<(), Failure> {
    let listing = Listing { path: &["workflows"], filters: &[], items_max: Some(args.limit as usize) };
    let found = listing.fetch(session).await?;
    found
        .print(&session.output, "there are no workflows", |workflows| view::table(&session.output, workflows))
}
