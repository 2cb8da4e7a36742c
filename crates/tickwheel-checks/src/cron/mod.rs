//! Cron expressions and intervals: what is read, when it fires, and how it is explained.
//!
//! The input has up to four lines: the expression, the time zone, the moment after which firings are asked for
//! (milliseconds), and policies (`skip`, `shift`, `last`, `both`, `and`, in any order). Whatever is missing has its
//! default.
//!
//! - Case and blanks do not change the meaning.
//! - Firings are strictly increasing, on whole seconds, and the same from wherever the search begins.
//! - A second reading of the fields, written down as simply as possible (`matcher`), agrees about every firing, and
//!   about moments between two firings.
//! - "which never comes" stands in the explanation exactly if there is no firing.
//! - What a refusal suggests to write instead is accepted, and means what was meant.

mod matcher;

use tickwheel_core::Timestamp;
use tickwheel_core::schedule::zone::Moments;
use tickwheel_core::schedule::{
    CronError, CronExpr, DayLogic, DstFold, DstGap, Recurrence, Timetable, Zone, explain, next_zone_change,
};

/// 2026-03-01T00:00:00Z: gaps and folds are near.
const AFTER_DEFAULT: i64 = 1_772_323_200_000;
/// The last moment that the calendar of the wire can write.
const LAST_MS: i64 = 253_402_207_200_000;
const FIRINGS: usize = 6;
const PROBES: i64 = 8;

/// Checks what the module says.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.lines();
    let written = lines.next().unwrap_or_default();
    let zone = lines.next().and_then(known_zone);
    let after = lines.next().and_then(|ms| ms.trim().parse().ok()).unwrap_or(AFTER_DEFAULT);
    let policies = lines.next().unwrap_or_default();
    match Recurrence::parse(written) {
        Ok(recurrence) => {
            let timetable = timetable(recurrence, zone.unwrap_or_default(), policies);
            check_spelling(written, &recurrence, timetable.day_logic);
            check_explanation(&timetable);
            check_firings(written, &timetable, Timestamp::from_millis(after));
        }
        Err(error) => check_refusal(&error),
    }
}

/// Not [`Zone::named`] alone: it takes its time to say what a name that it does not know may have meant.
fn known_zone(name: &str) -> Option<Zone> {
    Zone::names().find(|known| known.eq_ignore_ascii_case(name)).and_then(|known| Zone::named(known).ok())
}

fn timetable(recurrence: Recurrence, zone: Zone, policies: &str) -> Timetable {
    let mut timetable = Timetable::new(recurrence, zone);
    for policy in policies.split_whitespace() {
        match policy {
            "skip" => timetable.gap = DstGap::Skip,
            "shift" => timetable.gap = DstGap::Shift,
            "last" => timetable.fold = DstFold::Last,
            "both" => timetable.fold = DstFold::Both,
            "and" => timetable.day_logic = DayLogic::And,
            _ => {}
        }
    }
    timetable
}

fn check_spelling(written: &str, recurrence: &Recurrence, day_logic: DayLogic) {
    let respelled = [
        written.to_ascii_uppercase(),
        written.to_ascii_lowercase(),
        written.split_whitespace().collect::<Vec<_>>().join(" "),
    ];
    for spelling in respelled {
        assert_eq!(Recurrence::parse(&spelling).as_ref(), Ok(recurrence), "{spelling:?}");
    }
    let words = explain(recurrence, day_logic);
    assert!(!words.is_empty() && !words.chars().any(char::is_control), "{words:?}");
}

fn check_explanation(timetable: &Timetable) {
    let in_utc = Timetable { zone: Zone::utc(), ..*timetable };
    let never = in_utc.next_after(Timestamp::from_millis(-1)).is_none();
    let words = explain(&timetable.recurrence, timetable.day_logic);
    assert_eq!(words.ends_with("which never comes"), never, "{words}");
}

fn check_firings(written: &str, timetable: &Timetable, after: Timestamp) {
    let _ = next_zone_change(timetable, after);
    let mut last = after;
    for count in 1..=FIRINGS {
        let Some(next) = timetable.next_after(last) else { return };
        assert!(next > last, "{next:?} is not after {last:?}");
        assert!(next.as_millis() % 1000 == 0 && (0..=LAST_MS).contains(&next.as_millis()), "{next:?}");
        let between = last.as_millis().midpoint(next.as_millis()).min(next.as_millis() - 1);
        for earlier in [between, next.as_millis() - 1] {
            let found = timetable.next_after(Timestamp::from_millis(earlier));
            assert_eq!(found, Some(next), "after {earlier} as after {last:?}");
        }
        assert_eq!(timetable.count_between(after, next, u64::MAX), count as u64);
        match &timetable.recurrence {
            Recurrence::Cron(expr) => check_against_matcher(written, expr, timetable, (last, next)),
            Recurrence::Every(interval) => {
                let every = i64::try_from(interval.every_ms()).expect("it is at most a year");
                assert_eq!(next.as_millis() % every, 0, "{next:?}");
                assert!(next.as_millis() - last.as_millis().max(-1) <= every, "{last:?} to {next:?}");
            }
        }
        last = next;
    }
}

/// Every firing matches, unless it stands in for one that the clock jumped over; nothing between two firings does.
fn check_against_matcher(
    written: &str,
    expr: &CronExpr,
    timetable: &Timetable,
    (last, next): (Timestamp, Timestamp),
) {
    let zone = timetable.zone;
    let matches = |at: Timestamp| matcher::matches(written, timetable.day_logic, zone.civil_at(at));
    let shown = zone.civil_at(next);
    let is_moved =
        !expr.follows_real_time() && timetable.gap != DstGap::Skip && is_soon_after_gap(zone, next);
    assert!(is_moved || matches(next), "{written:?} fires at {next:?}, when clocks in {zone} show {shown}");
    if zone != Zone::utc() {
        return;
    }
    let (last, next) = (last.as_millis().max(-1).div_euclid(1000), next.as_millis() / 1000);
    let step = ((next - last) / PROBES).max(1);
    let evenly = (last + 1..next).step_by(usize::try_from(step).expect("it is positive"));
    let nearby = [60, 3600, 86_400].map(|distance| next - distance);
    for second in evenly.chain(nearby).filter(|second| (last + 1..next).contains(second)) {
        let at = Timestamp::from_millis(second * 1000);
        assert!(!matches(at), "{written:?} does not fire at {}", zone.civil_at(at));
    }
}

/// Whether the clocks were put forward within the last day.
fn is_soon_after_gap(zone: Zone, at: Timestamp) -> bool {
    let a_day_before = Timestamp::from_millis(at.as_millis() - 86_400_000);
    zone.offset_at(a_day_before) < zone.offset_at(at)
        || matches!(zone.moments_of(zone.civil_at(a_day_before)), Moments::None { .. })
}

fn check_refusal(error: &CronError) {
    let words = error.to_string();
    assert!(!words.is_empty() && words.len() < 1000 && !words.chars().any(char::is_control), "{words:?}");
    // A value that was shortened cannot be read again.
    let suggestion = words.split_once(" runs backwards, write ").filter(|_| !error.value.ends_with('…'));
    // Without a field the words are those of the expression itself, which may say anything.
    let (Some((_, suggestion)), Some(field)) = (suggestion, error.field) else { return };
    let position = matcher::position(field);
    let mut fields = ["*"; 6];
    fields[position] = suggestion;
    assert!(CronExpr::parse(&fields.join(" ")).is_ok(), "{words}");
    let meant = matcher::wrapped_range(position, &error.value);
    assert_eq!(matcher::values(position, suggestion), meant, "{words}");
}
