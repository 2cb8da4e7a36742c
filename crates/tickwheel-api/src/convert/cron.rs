//! Expressions, zones and policies of the wire into timetables, and what a timetable does into words and times.

use tickwheel_core::Timestamp;
use tickwheel_core::schedule::explain::ClockChange;
use tickwheel_core::schedule::{
    BadInterval, Interval, Recurrence, Timetable, ZONE_DATA_VERSION, Zone, ZoneChange, explain,
    next_zone_change,
};
use tickwheel_protocol::cron::{COUNT_DEFAULT, TIMEZONE_DEFAULT};
use tickwheel_protocol::problem::FieldCode;
use tickwheel_protocol::{self as wire, Code, FieldError, LocalTime, Problem, Span, Time};

use super::timestamp;
use super::words::{day_logic, fold, gap};

/// Says what a validated request asks for. `now` is where it looks from unless it says otherwise.
pub fn preview_cron(request: &wire::PreviewCron, now: Timestamp) -> Result<wire::CronPreview, Problem> {
    let timetable = timetable(request)?;
    let after = request.after.map_or(now, timestamp);
    let count = request.count.unwrap_or(COUNT_DEFAULT) as usize;
    let local = |at: Timestamp| local_time(timetable.zone, at);
    let next: Vec<LocalTime> = timetable.firings(after, Timestamp::MAX).take(count).map(local).collect();
    // A change of the clocks does nothing to what never fires.
    let change = next_zone_change(&timetable, after).filter(|_| !next.is_empty());
    Ok(wire::CronPreview {
        description: explain(&timetable.recurrence, timetable.day_logic),
        timezone: timetable.zone.name().into(),
        tzdb_version: ZONE_DATA_VERSION.into(),
        after: Time::from_millis(after.as_millis()),
        never: next.is_empty(),
        next,
        next_zone_change: change.map(|change| zone_change(timetable.zone, change)),
    })
}

/// Reports a bad expression and a bad zone together.
fn timetable(request: &wire::PreviewCron) -> Result<Timetable, Problem> {
    let recurrence = match (&request.cron, request.every) {
        (Some(cron), _) => cron_expression(cron),
        (None, Some(every)) => interval(every, Timestamp::EPOCH),
        (None, None) => return Err(no_recurrence()),
    };
    let zone = zone(request.timezone.as_deref().unwrap_or(TIMEZONE_DEFAULT));
    match (recurrence, zone) {
        (Ok(recurrence), Ok(zone)) => Ok(Timetable {
            gap: request.dst_gap.map(gap).unwrap_or_default(),
            fold: request.dst_fold.map(fold).unwrap_or_default(),
            day_logic: request.day_logic.map(day_logic).unwrap_or_default(),
            ..Timetable::new(recurrence, zone)
        }),
        (recurrence, zone) => Err(Problem::invalid(recurrence.err().into_iter().chain(zone.err()).collect())),
    }
}

/// Neither an expression nor an interval was given.
pub(super) fn no_recurrence() -> Problem {
    let detail = "missing field `cron` (or `every`)";
    Problem::at(Code::MissingField, field("/cron", FieldCode::Malformed, detail))
}

pub(super) fn zone(name: &str) -> Result<Zone, FieldError> {
    Zone::named(name).map_err(|error| field("/timezone", FieldCode::UnknownTimezone, error.to_string()))
}

pub(super) fn cron_expression(text: &str) -> Result<Recurrence, FieldError> {
    Recurrence::parse(text).map_err(|error| field("/cron", FieldCode::InvalidCron, error.to_string()))
}

pub(super) fn interval(every: Span, anchor: Timestamp) -> Result<Recurrence, FieldError> {
    Interval::new(every.as_millis(), anchor).map(Recurrence::Every).map_err(|error| {
        let code = match error {
            BadInterval::TooShort(_) | BadInterval::TooLong(_) => FieldCode::OutOfRange,
            BadInterval::NotWholeSeconds(_) => FieldCode::InvalidValue,
        };
        field("/every", code, error.to_string())
    })
}

pub(super) fn field(pointer: &str, code: FieldCode, detail: impl Into<String>) -> FieldError {
    FieldError { pointer: pointer.into(), code, detail: detail.into() }
}

fn zone_change(zone: Zone, change: ZoneChange) -> wire::ZoneChange {
    wire::ZoneChange {
        at: local_time(zone, change.at),
        kind: match change.kind {
            ClockChange::Gap => wire::ClockChange::Gap,
            ClockChange::Fold => wire::ClockChange::Fold,
        },
        offset_before: change.offset_before.to_string(),
        offset_after: change.offset_after.to_string(),
        effect: change.effect,
    }
}

/// The moment as a clock in the zone shows it.
pub fn local_time(zone: Zone, at: Timestamp) -> LocalTime {
    LocalTime::new(Time::from_millis(at.as_millis()), zone.offset_at(at).seconds())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_for_clock_changes_are_those_of_the_core() {
        for kind in [ClockChange::Gap, ClockChange::Fold] {
            assert!(wire::ClockChange::ALL.iter().any(|word| word.as_str() == kind.as_str()));
        }
    }
}
