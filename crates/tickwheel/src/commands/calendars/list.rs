//! `tickwheel calendars list`.

use tickwheel_protocol::CalendarSummary;

use super::{CommandContext, weekdays};
use crate::commands::paging::Listing;
use crate::failure::CommandError;
use crate::output::{Output, Table, Tone, column, now, relative};

/// Lists calendars.
pub async fn run(context: &CommandContext) -> Result<(), CommandError> {
    let listing = Listing { path: &["calendars"], filters: &[], part: None };
    let nothing = "no calendars yet; add one with `tickwheel calendars import`";
    listing.show(context, nothing, |calendars| table(&context.output, calendars)).await
}

fn table(output: &Output, calendars: &[CalendarSummary]) -> Table {
    let now = now();
    let columns = [
        column("CALENDAR").cut(16),
        column("DAYS"),
        column("FIRST"),
        column("LAST"),
        column("WEEKDAYS").cut(10).optional(),
        column("CHANGED").spare(1),
    ];
    let mut table = Table::new(output, &columns);
    for calendar in calendars {
        table.row([
            (calendar.name.clone(), Tone::Plain),
            (calendar.day_count.to_string(), Tone::Plain),
            (calendar.first_day.clone().unwrap_or_default(), Tone::Plain),
            (calendar.last_day.clone().unwrap_or_default(), Tone::Plain),
            (weekdays(&calendar.weekdays), Tone::Plain),
            (relative(calendar.updated_at, now), Tone::Quiet),
        ]);
    }
    table
}
