//! `tickwheel workflows list`.

use clap::Args;

use super::{Session, view};
use crate::commands::paging::{Listing, PageArgs};
use crate::failure::Failure;

/// Options of `workflows list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    #[command(flatten)]
    part: PageArgs,
}

/// Lists workflows.
pub async fn run(args: ListArgs, session: &Session) -> Result<(), Failure> {
    let listing = Listing { path: &["workflows"], filters: &[], part: Some(&args.part) };
    let nothing = "no workflows yet; store one with `tickwheel workflows apply`";
    listing.show(session, nothing, |workflows| view::table(&session.output, workflows)).await
}
