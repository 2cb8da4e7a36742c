//! `tickwheel calendars list`.

use tickwheel_protocol::CalendarSummary;

use super::{Session, weekdays};
use crate::commands::paging::Listing;
use crate::failure::Failure;
use crate::output::{Output, Table, Tone, column, now, relative};

/// Lists calendars.
pub async fn run(session: &Session) -> Result<(), Failure> {
    let listing = Listing { path: &["calendars"], filters: &[], part: None };
    let nothing = "no calendars yet; add one with `tickwheel calendars import`";
    listing.show(session, nothing, |calendars| table(&session.output, calendars)).await
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
