//! Calendars of the wire into those of the core, and back.

use std::collections::BTreeSet;
use std::sync::Arc;

use tickwheel_core::Timestamp;
use tickwheel_core::job::DEFAULT_TENANT;
use tickwheel_core::schedule::calendar::CALENDAR_DAYS_MAX;
use tickwheel_core::schedule::civil::CivilDate;
use tickwheel_core::schedule::{Calendar, Exclusion};
use tickwheel_protocol::problem::FieldCode;
use tickwheel_protocol::{self as wire, CalendarSummary, FieldError, Problem, PutCalendar, Weekday};

use super::answer::time;
use super::cron::field;

/// The requested calendar.
pub fn new_calendar(name: Arc<str>, request: &PutCalendar, now: Timestamp) -> Result<Calendar, Problem> {
    let mut days = BTreeSet::new();
    let mut errors = Vec::new();
    for (index, text) in request.days.iter().enumerate() {
        errors.extend(add_days(&mut days, &format!("/days/{index}"), text).err());
    }
    if !errors.is_empty() {
        return Err(Problem::invalid(errors));
    }
    let weekdays = request.weekdays.iter().map(|weekday| *weekday as u8).collect();
    Ok(Calendar { name, tenant: DEFAULT_TENANT.into(), days, weekdays, updated_at: now })
}

/// The calendar as storing it would answer it, without storing it.
pub fn preview_calendar(
    name: &str,
    request: &PutCalendar,
    now: Timestamp,
) -> Result<wire::Calendar, Problem> {
    new_calendar(name.into(), request, now).map(|ours| calendar(&ours))
}

fn add_days(days: &mut BTreeSet<CivilDate>, pointer: &str, text: &str) -> Result<(), FieldError> {
    let (first, last) = match text.parse() {
        Ok(Exclusion::Day(day)) => (day, day),
        Ok(Exclusion::Days(first, last)) => (first, last),
        Ok(Exclusion::Calendar(_)) | Err(_) => {
            let detail = "is not a date (2026-12-25) or a range of dates (2026-12-24/2026-12-31)";
            return Err(field(pointer, FieldCode::InvalidValue, detail));
        }
    };
    let mut day = first;
    while day <= last {
        days.insert(day);
        if days.len() > CALENDAR_DAYS_MAX {
            let detail = format!("covers more than {CALENDAR_DAYS_MAX} days");
            return Err(field(pointer, FieldCode::TooMany, detail));
        }
        day = day.plus_days(1);
    }
    Ok(())
}

/// A calendar.
pub fn calendar(calendar: &Calendar) -> wire::Calendar {
    wire::Calendar {
        name: calendar.name.to_string(),
        days: calendar.days.iter().map(ToString::to_string).collect(),
        weekdays: weekdays(calendar),
        updated_at: time(calendar.updated_at),
    }
}

/// A calendar without its days.
pub fn calendar_summary(calendar: &Calendar) -> CalendarSummary {
    CalendarSummary {
        name: calendar.name.to_string(),
        day_count: calendar.days.len(),
        first_day: calendar.days.first().map(ToString::to_string),
        last_day: calendar.days.last().map(ToString::to_string),
        weekdays: weekdays(calendar),
        updated_at: time(calendar.updated_at),
    }
}

/// Both sides count from Sunday.
fn weekdays(calendar: &Calendar) -> Vec<Weekday> {
    calendar.weekdays.iter().filter_map(|number| Weekday::ALL.get(usize::from(*number)).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requested(days: &[&str], weekdays: &[Weekday]) -> Result<wire::Calendar, Vec<String>> {
        let request =
            PutCalendar { days: days.iter().map(|day| (*day).into()).collect(), weekdays: weekdays.to_vec() };
        match new_calendar("c".into(), &request, Timestamp::EPOCH) {
            Ok(ours) => Ok(calendar(&ours)),
            Err(problem) => Err(problem.errors.into_iter().map(|error| error.pointer).collect()),
        }
    }

    #[test]
    fn days_come_back_in_order_once_and_one_by_one() {
        let calendar = requested(
            &["2026-12-31", "2026-12-24/2026-12-26", "2026-12-25"],
            &[Weekday::Saturday, Weekday::Sunday],
        );
        let calendar = calendar.expect("a good calendar");
        assert_eq!(calendar.days, ["2026-12-24", "2026-12-25", "2026-12-26", "2026-12-31"]);
        assert_eq!(calendar.weekdays, [Weekday::Sunday, Weekday::Saturday]);
    }

    #[test]
    fn the_number_of_a_weekday_is_that_of_the_core() {
        let sunday = CivilDate::new(2026, 11, 15).expect("a day");
        for (offset, weekday) in (0..7).zip(Weekday::ALL) {
            assert_eq!(sunday.plus_days(offset).weekday(), *weekday as u8);
        }
    }

    #[test]
    fn what_is_no_day_or_too_many_is_refused_where_it_stands() {
        let bad = |days: &[&str]| requested(days, &[]).expect_err("bad");
        assert_eq!(bad(&["2026-12-25", "2026-02-30", "calendar:x"]), ["/days/1", "/days/2"]);
        assert_eq!(bad(&["2026-12-25", "1000-01-01/9999-12-31"]), ["/days/1"]);
    }
}
