//! From matching local times to firings in real time: the one place where daylight saving is decided.
//!
//! Real time is walked stretch by stretch of constant offset. Within one, local time is real time plus the offset; what
//! happens at its edges depends on the policies:
//!
//! ```text
//!   local  ──────────┐gap┌──────────────        ─────────────┐
//!                    :   :                              ┌fold┘
//!                    :   :                              └────────────
//!   gap:   run_after     ● the first instant after      once: the upper line only
//!          shift         ├──● as far after it           last: the lower line only
//!          skip          nothing                        both: both lines
//! ```
//! An expression that follows real time is the same walk with `skip` and `both`: every instant whose local time
//! matches.

use super::civil::{CivilTime, LAST_SECOND, SECONDS_PER_DAY};
use super::cron::CronExpr;
use super::policy::{DayLogic, DstFold, DstGap};
use super::zone::{Regime, Zone};

/// 400 years of the Gregorian calendar.
const CALENDAR_CYCLE_SECONDS: i64 = 146_097 * SECONDS_PER_DAY;
/// 2101-01-01T00:00:00Z: from here on the clocks of every zone change by the same rule each year.
const LAST_IRREGULAR_SECOND: i64 = 4_133_980_800;

/// An expression, laid on the real time of a zone.
pub(super) struct CronFirings<'a> {
    expr: &'a CronExpr,
    zone: Zone,
    gap: DstGap,
    fold: DstFold,
    day_logic: DayLogic,
}

impl<'a> CronFirings<'a> {
    pub fn new(expr: &'a CronExpr, zone: Zone, (gap, fold): (DstGap, DstFold), day_logic: DayLogic) -> Self {
        let (gap, fold) = if expr.follows_real_time() { (DstGap::Skip, DstFold::Both) } else { (gap, fold) };
        Self { expr, zone, gap, fold, day_logic }
    }

    /// The first firing that is not before `from`, in seconds since the epoch; `None` if there is none.
    pub fn first_from(&self, from: i64) -> Option<i64> {
        let mut matches = Matches::new(self.expr, self.day_logic);
        let mut from = from.max(0);
        // Calendar and clock changes repeat by then: what did not fire will never fire.
        let horizon = from.max(LAST_IRREGULAR_SECOND) + CALENDAR_CYCLE_SECONDS;
        while from <= horizon {
            let regime = self.zone.regime_at(from);
            let made_up = self.first_made_up(&regime, from, &mut matches);
            let Some(regular) = self.first_regular(&regime, from, &mut matches) else {
                return made_up.filter(|second| *second <= LAST_SECOND);
            };
            let found = made_up.unwrap_or(i64::MAX).min(regular);
            if found < regime.end {
                return Some(found).filter(|second| *second <= LAST_SECOND);
            }
            if !regime.ends() {
                return None;
            }
            from = regime.end;
        }
        None
    }

    /// The first firing that takes the place of one in the gap at the start of the stretch.
    fn first_made_up(&self, regime: &Regime, from: i64, matches: &mut Matches<'_>) -> Option<i64> {
        if !regime.starts_with_gap() {
            return None;
        }
        let offset_before = i64::from(regime.offset_before);
        let in_gap_from = match self.gap {
            DstGap::RunAfter if from <= regime.start => regime.previous_civil_end(),
            DstGap::Shift => CivilTime::at(from, offset_before),
            DstGap::RunAfter | DstGap::Skip => return None,
        };
        if in_gap_from >= regime.first_civil() {
            return None;
        }
        let skipped = matches.first_from(in_gap_from).filter(|time| *time < regime.first_civil())?;
        Some(if self.gap == DstGap::Shift { skipped.second_at(offset_before) } else { regime.start })
    }

    /// The first firing at a local time of the stretch itself, or something past its end; `None` if nothing matches any
    /// more.
    fn first_regular(&self, regime: &Regime, from: i64, matches: &mut Matches<'_>) -> Option<i64> {
        let offset = i64::from(regime.offset);
        let from = CivilTime::at(from, offset);
        let (first, end) = match self.fold {
            DstFold::Once => (from.max(regime.previous_civil_end()), regime.last_civil_end()),
            DstFold::Last => (from, regime.last_civil_end().min(regime.next_first_civil())),
            DstFold::Both => (from, regime.last_civil_end()),
        };
        // After a gap the local time before the change is behind the one after it, and the maximum has no effect.
        let time = matches.first_from(first)?;
        Some(if time < end { time.second_at(offset) } else { i64::MAX })
    }
}

/// Matching local times, the last answer remembered: most stretches of a rare date lie before its next match, and then
/// crossing them costs no search.
struct Matches<'a> {
    expr: &'a CronExpr,
    day_logic: DayLogic,
    known: Option<(CivilTime, CivilTime)>,
}

impl<'a> Matches<'a> {
    fn new(expr: &'a CronExpr, day_logic: DayLogic) -> Self {
        Self { expr, day_logic, known: None }
    }

    /// The first match that is not before `from`.
    fn first_from(&mut self, from: CivilTime) -> Option<CivilTime> {
        if let Some((asked, found)) = self.known
            && (asked..=found).contains(&from)
        {
            return Some(found);
        }
        let found = self.expr.first_match(from, self.day_logic)?;
        self.known = Some((from, found));
        Some(found)
    }
}
