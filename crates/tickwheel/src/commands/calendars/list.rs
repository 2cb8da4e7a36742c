//! `tickwheel calendars list`.

use tickwheel_protocol::CalendarSummary;

use super::{Session, weekdays};
use crate::commands::paging::Listing;
use crate::failure::Failure;
use crate::output::{Output, Table, Tone, now, relative};

/// Lists calendars.
pub async fn run(session: &Session) -> Result<(), Failure> {
    let found = Listing { path: &["calendars"], filters: &[], items_max: None }.fetch(session).await?;
    found.print(&session.output, "no calendars yet", |calendars| table(&session.output, calendars))
}

fn table(output: &Output, calendars: &[CalendarSummary]) -> String {
    let now = now();
    let mut table = Table::new(output, &["CALENDAR", "DAYS", "FIRST", "LAST", "WEEKDAYS", "CHANGED"]);
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
    table.finish()
}
