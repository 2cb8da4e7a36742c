//! Timetables as a whole: against a naive model, and against tables of instants written out by hand.

mod against_model;
mod backfill;
mod bounds;
mod calendar;
mod edit;
mod fixtures;
pub(super) mod model;
mod plan;
mod upcoming;
mod zones;

use super::*;
use crate::Timestamp;

/// The timetable of an expression in a zone, with the default policies.
fn timetable(recurrence: &str, zone: &str) -> Timetable {
    let recurrence = Recurrence::parse(recurrence).expect("a recurrence");
    Timetable::new(recurrence, Zone::named(zone).expect("a zone"))
}

/// A moment in RFC 3339.
fn at(text: &str) -> Timestamp {
    Timestamp::from_millis(text.parse::<jiff::Timestamp>().expect("a moment").as_millisecond())
}

/// The firings after `after` up to `until`, in RFC 3339 with the zone's offset and without seconds.
fn firings(timetable: &Timetable, after: &str, until: &str) -> Vec<String> {
    let firings = timetable.firings(at(after), at(until));
    firings.map(|firing| local(timetable, firing)).collect()
}

fn local(timetable: &Timetable, at: Timestamp) -> String {
    let (time, offset) = (timetable.zone.civil_at(at).to_string(), timetable.zone.offset_at(at));
    format!("{}{offset}", time.strip_suffix(":00").unwrap_or(&time))
}
