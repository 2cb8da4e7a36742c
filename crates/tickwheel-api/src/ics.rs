//! Calendar files (iCalendar, RFC 5545), as far as they name days.
//!
//! An all-day event names its days, from `DTSTART` up to and without `DTEND`; one with a time names the date it starts
//! on, as it is written. Yearly repetition is followed ten years ahead; of any other only the first occurrence counts,
//! and the caller is told.
//!
//! Deliberately not here: zones, alarms, to-dos, and everything else such files may hold; it is passed over.

use std::collections::BTreeSet;
use std::iter::successors;

use tickwheel_core::schedule::calendar::CALENDAR_DAYS_MAX;
use tickwheel_core::schedule::civil::CivilDate;

const YEARS_AHEAD: i32 = 10;
/// So many days all events of a file may have together. Many events may name the same day, and looking at each takes
/// its time.
const NAMED_MAX: usize = 1_000_000;

/// What a file names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The days.
    pub days: BTreeSet<CivilDate>,
    /// Events in the file.
    pub events: usize,
    /// Of them, cancelled ones; they name no day.
    pub cancelled: usize,
    /// Of them, those whose repetition was not followed.
    pub repeats_ignored: usize,
    /// The days of all events, those that several of them have as often.
    named: usize,
}

/// Why a file cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct BadFile {
    line: usize,
    reason: String,
}

impl BadFile {
    fn at(line: usize, reason: impl Into<String>) -> Self {
        Self { line, reason: reason.into() }
    }
}

/// Reads a file; yearly days are counted from the year before `this_year` on.
pub fn read(text: &str, this_year: i32) -> Result<Found, BadFile> {
    let lines = unfolded(text);
    let mut lines = lines.iter().filter(|(_, line)| !line.trim().is_empty());
    match lines.next() {
        Some((_, first)) if first.trim().eq_ignore_ascii_case("BEGIN:VCALENDAR") => {}
        _ => return Err(BadFile::at(1, "expected BEGIN:VCALENDAR")),
    }
    let mut found = Found::default();
    let mut event: Option<Event> = None;
    let mut nested = 0_usize;
    for (number, line) in lines {
        let property = Property::of(line);
        match (property.name.as_str(), &mut event) {
            ("BEGIN", Some(_)) => nested += 1,
            ("END", Some(_)) if nested > 0 => nested -= 1,
            ("BEGIN", None) if property.value.eq_ignore_ascii_case("VEVENT") => {
                event = Some(Event::from_line(*number));
            }
            ("END", Some(_)) => {
                let event = event.take().expect("it is the one that was matched");
                found.add(&event, this_year)?;
            }
            (_, Some(event)) if nested == 0 => event.learn(&property, *number)?,
            _ => {}
        }
    }
    match event {
        Some(event) => Err(BadFile::at(event.line, "the event has no end")),
        None => Ok(found),
    }
}

/// Long lines are folded: what begins with a blank continues the line before it.
fn unfolded(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, line) in text.split('\n').enumerate() {
        let line = line.strip_suffix('\r').unwrap_or(line);
        match (line.strip_prefix([' ', '\t']), lines.last_mut()) {
            (Some(rest), Some((_, before))) => before.push_str(rest),
            _ => lines.push((index + 1, line.to_owned())),
        }
    }
    lines
}

/// `NAME;PARAMETER=…:VALUE`. The parameters say nothing that matters here.
struct Property<'a> {
    name: String,
    value: &'a str,
}

impl<'a> Property<'a> {
    fn of(line: &'a str) -> Self {
        let mut quoted = false;
        let colon = line.find(|c: char| {
            quoted ^= c == '"';
            c == ':' && !quoted
        });
        let (head, value) = colon.map_or((line, ""), |colon| (&line[..colon], line[colon + 1..].trim()));
        let name = head.split(';').next().unwrap_or_default().trim().to_ascii_uppercase();
        Self { name, value }
    }
}

struct Event {
    line: usize,
    start: Option<Date>,
    end: Option<CivilDate>,
    duration_days: Option<i64>,
    rule: Option<String>,
    except: BTreeSet<CivilDate>,
    cancelled: bool,
}

#[derive(Clone, Copy)]
struct Date {
    day: CivilDate,
    has_time: bool,
}

impl Event {
    fn from_line(line: usize) -> Self {
        Self {
            line,
            start: None,
            end: None,
            duration_days: None,
            rule: None,
            except: BTreeSet::new(),
            cancelled: false,
        }
    }

    fn learn(&mut self, property: &Property<'_>, line: usize) -> Result<(), BadFile> {
        let bad = || {
            let value: String = property.value.chars().filter(|c| !c.is_control()).take(40).collect();
            BadFile::at(line, format!("{} {value:?} is not a date such as 20261225", property.name))
        };
        match property.name.as_str() {
            "DTSTART" => self.start = Some(date(property.value).ok_or_else(bad)?),
            "DTEND" => self.end = Some(date(property.value).ok_or_else(bad)?.day),
            "DURATION" => self.duration_days = whole_days(property.value),
            "RRULE" => self.rule = Some(property.value.to_ascii_uppercase()),
            "EXDATE" => {
                for value in property.value.split(',') {
                    self.except.insert(date(value).ok_or_else(bad)?.day);
                }
            }
            "STATUS" => self.cancelled = property.value.eq_ignore_ascii_case("CANCELLED"),
            _ => {}
        }
        Ok(())
    }

    /// How many days it has; so many more than a calendar may name are as good as any number.
    fn days_long(&self, start: Date) -> usize {
        let days = match (start.has_time, self.end, self.duration_days) {
            (false, Some(end), _) => start.day.days_until(end),
            (false, None, Some(days)) => days,
            _ => 1,
        };
        usize::try_from(days).unwrap_or(1).clamp(1, CALENDAR_DAYS_MAX + 1)
    }
}

impl Found {
    fn add(&mut self, event: &Event, this_year: i32) -> Result<(), BadFile> {
        self.events += 1;
        if event.cancelled {
            self.cancelled += 1;
            return Ok(());
        }
        let start = event.start.ok_or_else(|| BadFile::at(event.line, "the event has no DTSTART"))?;
        let starts = match event.rule.as_deref().map(|rule| yearly(rule, start.day, this_year)) {
            None => vec![start.day],
            Some(Some(starts)) => starts,
            Some(None) => {
                self.repeats_ignored += 1;
                vec![start.day]
            }
        };
        for first in starts.into_iter().filter(|first| !event.except.contains(first)) {
            let days = successors(Some(first), |day| day.tomorrow()).take(event.days_long(start));
            for day in days {
                self.name(day).map_err(|reason| BadFile::at(event.line, reason))?;
            }
        }
        Ok(())
    }

    fn name(&mut self, day: CivilDate) -> Result<(), String> {
        self.days.insert(day);
        self.named += 1;
        if self.days.len() > CALENDAR_DAYS_MAX {
            return Err(format!("the file names more than {CALENDAR_DAYS_MAX} days"));
        }
        if self.named > NAMED_MAX {
            return Err(format!("the events of the file have more than {NAMED_MAX} days together"));
        }
        Ok(())
    }
}

/// `20261225`, or that with a time after it.
fn date(value: &str) -> Option<Date> {
    let (day, rest) = value.trim().split_at_checked(8)?;
    if !day.bytes().all(|b| b.is_ascii_digit()) || !(rest.is_empty() || rest.starts_with('T')) {
        return None;
    }
    let day = CivilDate::new(day[..4].parse().ok()?, day[4..6].parse().ok()?, day[6..].parse().ok()?)?;
    Some(Date { day, has_time: !rest.is_empty() })
}

/// `P2D` or `P1W`.
fn whole_days(value: &str) -> Option<i64> {
    let length = value.trim().trim_start_matches('+').strip_prefix('P')?;
    let weeks = length.strip_suffix('W').and_then(|weeks| weeks.parse::<i64>().ok()?.checked_mul(7));
    weeks.or_else(|| length.strip_suffix('D')?.parse().ok())
}

/// The first days of an event that repeats every year, or every so many; `None` if the rule is another one.
fn yearly(rule: &str, start: CivilDate, this_year: i32) -> Option<Vec<CivilDate>> {
    let (mut is_yearly, mut interval, mut count, mut until) = (false, 1, usize::MAX, None);
    for part in rule.split(';').filter(|part| !part.is_empty()) {
        match part.split_once('=')? {
            ("FREQ", "YEARLY") => is_yearly = true,
            ("INTERVAL", years) => interval = years.parse::<u16>().ok().filter(|years| *years > 0)?,
            ("COUNT", times) => count = times.parse().ok()?,
            ("UNTIL", day) => until = Some(date(day)?.day),
            ("WKST", _) => {}
            ("BYMONTH", month) if month.parse() == Ok(start.month()) => {}
            ("BYMONTHDAY", day) if day.parse() == Ok(start.day()) => {}
            _ => return None,
        }
    }
    let years = (start.year()..=this_year.saturating_add(YEARS_AHEAD)).step_by(interval.into());
    // The 29th of February does not come every year.
    let days = years.filter_map(|year| CivilDate::new(year, start.month(), start.day())).take(count);
    let days = days.take_while(|day| until.is_none_or(|until| *day <= until));
    let mut days: Vec<CivilDate> = days.filter(|day| *day == start || day.year() >= this_year - 1).collect();
    if days.is_empty() {
        days.push(start);
    }
    is_yearly.then_some(days)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(events: &[&str]) -> String {
        let events: String =
            events.iter().map(|event| format!("BEGIN:VEVENT\r\n{event}\r\nEND:VEVENT\r\n")).collect();
        format!("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{events}END:VCALENDAR\r\n")
    }

    fn days(event: &str) -> Vec<String> {
        let found = read(&file(&[event]), 2026).expect(event);
        found.days.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_all_day_event_names_its_days_without_its_end() {
        assert_eq!(days("DTSTART;VALUE=DATE:20261225"), ["2026-12-25"]);
        let three = ["2026-12-24", "2026-12-25", "2026-12-26"];
        assert_eq!(days("DTSTART;VALUE=DATE:20261224\r\nDTEND;VALUE=DATE:20261227"), three);
        assert_eq!(days("dtstart;value=date:20261224\ndtend;value=date:20261227"), three);
        assert_eq!(days("DTSTART;VALUE=DATE:20261224\r\nDURATION:P3D"), three);
        assert_eq!(days("DTSTART;VALUE=DATE:20261224\r\nDTEND;VALUE=DATE:20261224"), ["2026-12-24"]);
    }

    #[test]
    fn an_event_ends_with_the_calendar_at_the_latest() {
        assert_eq!(days("DTSTART:99991230\r\nDURATION:P1W"), ["9999-12-30", "9999-12-31"]);
        assert_eq!(days("DTSTART:99991231"), ["9999-12-31"]);
    }

    #[test]
    fn an_event_with_a_time_names_the_date_it_starts_on() {
        let event = "DTSTART;TZID=\"Europe/Berlin:x\":20261224T180000\r\nDTEND:20261226T030000Z";
        assert_eq!(days(event), ["2026-12-24"]);
    }

    #[test]
    fn folded_lines_and_whatever_else_is_in_the_file_do_no_harm() {
        let event = "SUMMARY:a very long\r\n  line: with DTSTART:19990101\r\nDTSTART;VALUE=\r\n DATE:2026122\r\n 5\r\n\
            BEGIN:VALARM\r\nDTSTART:20200101\r\nEND:VALARM\r\nDESCRIPTION:x";
        assert_eq!(days(event), ["2026-12-25"]);
    }

    #[test]
    fn yearly_events_are_followed_ten_years_ahead() {
        let new_year = days("DTSTART;VALUE=DATE:20000101\r\nRRULE:FREQ=YEARLY;BYMONTH=1");
        assert_eq!((new_year[0].as_str(), new_year[1].as_str()), ("2000-01-01", "2025-01-01"));
        assert_eq!(new_year.last().map(String::as_str), Some("2036-01-01"));
        let start = "DTSTART;VALUE=DATE:20260501\r\nEXDATE;VALUE=DATE:20270501\r\nRRULE:FREQ=YEARLY";
        assert_eq!(days(&format!("{start};COUNT=3")), ["2026-05-01", "2028-05-01"]);
        assert_eq!(days(&format!("{start};INTERVAL=2;UNTIL=20290101T000000Z")), ["2026-05-01", "2028-05-01"]);
    }

    #[test]
    fn what_was_not_followed_is_counted_and_what_was_cancelled_names_nothing() {
        let found = read(
            &file(&[
                "DTSTART:20261225\r\nRRULE:FREQ=WEEKLY",
                "DTSTART:20261126\r\nRRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH",
                "DTSTART:20270101\r\nSTATUS:CANCELLED",
            ]),
            2026,
        )
        .expect("a good file");
        assert_eq!((found.events, found.cancelled, found.repeats_ignored, found.days.len()), (3, 1, 2, 2));
    }

    #[test]
    fn a_bad_file_is_told_where_it_is_bad() {
        let bad = |text: &str| read(text, 2026).expect_err(text).to_string();
        assert_eq!(bad(""), "line 1: expected BEGIN:VCALENDAR");
        assert_eq!(bad("{}"), "line 1: expected BEGIN:VCALENDAR");
        assert_eq!(bad(&file(&["SUMMARY:x"])), "line 3: the event has no DTSTART");
        assert_eq!(
            bad(&file(&["DTSTART:20260230"])),
            "line 4: DTSTART \"20260230\" is not a date such as 20261225"
        );
        assert_eq!(bad("BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20261225"), "line 2: the event has no end");
        let long = file(&["DTSTART:20000101\r\nDTEND:99991231"]);
        assert_eq!(bad(&long), "line 3: the file names more than 10000 days");
        assert_eq!(bad(&file(&["DTSTART:2026é225"])).split(' ').next(), Some("line"));
        let again_and_again = file(&["DTSTART:20000101\r\nDTEND:20270101"; 1_000]);
        let too_many = "the events of the file have more than 1000000 days together";
        assert_eq!(bad(&again_and_again), format!("line 407: {too_many}"));
    }
}
