//! `tickwheel workflows list`.

use clap::Args;

use super::{CommandContext, view};
use crate::commands::paging::{Listing, PageArgs};
use crate::failure::CommandError;

/// Options of `workflows list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    #[command(flatten)]
    part: PageArgs,
}

/// Lists workflows.
pub async fn run(args: ListArgs, context: &CommandContext) -> Result<(), CommandError> {
    let listing = Listing { path: &["workflows"], filters: &[], part: Some(&args.part) };
    let nothing = "no workflows yet; store one with `tickwheel workflows apply`";
    listing.show(context, nothing, |workflows| view::table(&context.output, workflows)).await
}
