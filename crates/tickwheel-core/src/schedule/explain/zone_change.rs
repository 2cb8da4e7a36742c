//! The next change of a zone's clocks, and what it does to a timetable.

use std::fmt;

use super::super::civil::CivilTime;
use super::super::cron::CronExpr;
use super::super::policy::{DstFold, DstGap};
use super::super::recurrence::Recurrence;
use super::super::timetable::Timetable;
use super::super::zone::{Regime, UtcOffset, moment};
use super::length_words;
use super::lists::counted;
use crate::time::Timestamp;

/// Whether local times are jumped over or happen twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClockChange {
    /// The clock is put forward: some local times do not exist.
    Gap,
    /// The clock is put back: some local times happen twice.
    Fold,
}

impl ClockChange {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gap => "gap",
            Self::Fold => "fold",
        }
    }
}

impl fmt::Display for ClockChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A change of the clocks of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneChange {
    /// The first moment of the new offset.
    pub at: Timestamp,
    /// The offset until then.
    pub offset_before: UtcOffset,
    /// The offset from then on.
    pub offset_after: UtcOffset,
    /// Forward or back.
    pub kind: ClockChange,
    /// One sentence: what it does to the firings of the timetable.
    pub effect: String,
}

/// The next change of the clocks after `after` that happens while the timetable runs; `None` if there is none.
pub fn next_zone_change(timetable: &Timetable, after: Timestamp) -> Option<ZoneChange> {
    let after = timetable.start_at.map_or(after, |start| after.max(start));
    let ended = timetable.zone.regime_at(after.as_millis().div_euclid(1000).max(0));
    let at = Some(moment(ended.end)).filter(|_| ended.ends())?;
    if timetable.end_at.is_some_and(|end| end < at) {
        return None;
    }
    let regime = timetable.zone.regime_at(ended.end);
    Some(ZoneChange {
        at,
        offset_before: UtcOffset::from_seconds(regime.offset_before),
        offset_after: UtcOffset::from_seconds(regime.offset),
        kind: if regime.starts_with_gap() { ClockChange::Gap } else { ClockChange::Fold },
        effect: effect(timetable, &regime),
    })
}

fn effect(timetable: &Timetable, regime: &Regime) -> String {
    let from = regime.previous_civil_end();
    let to = regime.first_civil();
    let clock = format!("the clock goes from {} to {}", shown(from), shown_beside(to, from));
    let what = match &timetable.recurrence {
        Recurrence::Every(_) => {
            format!(
                "the interval goes on in real time, {} on the local clock",
                by_how_much(regime, "later", "earlier")
            )
        }
        Recurrence::Cron(expr) => {
            let touched = Touched::find(timetable, expr, from.min(to), from.max(to));
            match &touched {
                None => format!(
                    "no firing is touched: local times stay the same, {} in UTC",
                    by_how_much(regime, "earlier", "later")
                ),
                Some(touched) if regime.starts_with_gap() => gap_effect(timetable, expr, touched, regime),
                Some(touched) => fold_effect(timetable, expr, touched),
            }
        }
    };
    format!("{clock}: {what}")
}

fn by_how_much(regime: &Regime, forward: &str, back: &str) -> String {
    let seconds = regime.offset.abs_diff(regime.offset_before);
    let direction = if regime.starts_with_gap() { forward } else { back };
    format!("{} {direction}", length_words(seconds.into()))
}

/// The local times of firings within a gap or a fold.
struct Touched {
    first: CivilTime,
    last: CivilTime,
    count: u64,
    more: bool,
}

/// Counting further would not tell anybody more.
const COUNTED_MAX: u64 = 10_000;

impl Touched {
    fn find(timetable: &Timetable, expr: &CronExpr, from: CivilTime, end: CivilTime) -> Option<Self> {
        let next = |from| expr.first_match(from, timetable.day_logic).filter(|time| *time < end);
        let first = next(from)?;
        let mut touched = Self { first, last: first, count: 1, more: false };
        while let Some(time) = next(CivilTime::at(touched.last.second_at(0), 1)) {
            if touched.count == COUNTED_MAX {
                touched.more = true;
                break;
            }
            touched.last = time;
            touched.count += 1;
        }
        Some(touched)
    }

    /// "the firing of 02:30", "the 4 firings of 02:00 to 02:45".
    fn words(&self) -> String {
        if self.count == 1 {
            return format!("the firing of {}", time(self.first));
        }
        let more = if self.more { "more than " } else { "" };
        let count = counted(self.count, "firing");
        format!("the {more}{count} of {} to {}", time(self.first), shown_beside(self.last, self.first))
    }

    /// The verb that goes with [`Self::words`].
    fn verb(&self, one: &'static str, many: &'static str) -> &'static str {
        if self.count == 1 { one } else { many }
    }
}

fn gap_effect(timetable: &Timetable, expr: &CronExpr, touched: &Touched, regime: &Regime) -> String {
    let firings = touched.words();
    let after_gap = time(regime.first_civil());
    if expr.follows_real_time() {
        let verb = touched.verb("does", "do");
        return format!("{firings} {verb} not exist that day, it goes on in real time");
    }
    match timetable.gap {
        DstGap::Skip => format!("{firings} {} left out", touched.verb("is", "are")),
        DstGap::RunAfter
            if expr.first_match(regime.first_civil(), timetable.day_logic) == Some(regime.first_civil()) =>
        {
            format!("{firings} {} one with that of {after_gap}", touched.verb("becomes", "become"))
        }
        DstGap::RunAfter if touched.count == 1 => format!("{firings} comes right after it, at {after_gap}"),
        DstGap::RunAfter => format!("{firings} become one, right after it, at {after_gap}"),
        DstGap::Shift => {
            let length = by_how_much(regime, "later", "earlier");
            format!("{firings} {} {length}", touched.verb("comes", "come"))
        }
    }
}

fn fold_effect(timetable: &Timetable, expr: &CronExpr, touched: &Touched) -> String {
    let firings = touched.words();
    let comes = touched.verb("comes", "come");
    if expr.follows_real_time() {
        return format!("{firings} {comes} twice, it goes on in real time");
    }
    match timetable.fold {
        DstFold::Once => format!("{firings} {comes} once, the first time"),
        DstFold::Last => format!("{firings} {comes} once, the second time"),
        DstFold::Both => format!("{firings} {comes} twice"),
    }
}

/// Date and time of day.
fn shown(at: CivilTime) -> String {
    format!("{} {}", at.date(), time(at))
}

/// The time of day, and the date too if it is another one than that of `beside`.
fn shown_beside(at: CivilTime, beside: CivilTime) -> String {
    if at.date() == beside.date() { time(at) } else { shown(at) }
}

/// The time of day, seconds only where there are some.
fn time(at: CivilTime) -> String {
    match at.second() {
        0 => format!("{:02}:{:02}", at.hour(), at.minute()),
        second => format!("{:02}:{:02}:{second:02}", at.hour(), at.minute()),
    }
}
