//! Which firings are added, removed or moved when a schedule changes. Pure.
//!
//! Kept true: the old firings without the removed and moved ones, plus the added ones and the new times of the moved
//! ones, are the new firings. Only the span in which both sides are known is compared, so that the end of a list does
//! not look like the end of firing.

use std::collections::BTreeMap;

use serde::Serialize;
use tickwheel_protocol::{LocalTime, Span, Time};

/// How many firings of each side are read.
pub const KNOWN_MAX: usize = 1_000;
/// If the horizon has fewer firings, it is extended to this many.
const LOOKED_AT_MIN: usize = 5;

/// The span to compare.
#[derive(Clone, Copy, Debug)]
pub struct Horizon {
    /// Only firings after it.
    pub after: Time,
    /// At least this long.
    pub length: Span,
}

/// The next firings of one side, as far as they are known.
#[derive(Clone, Debug, Default)]
pub struct Side {
    firings: Vec<LocalTime>,
    /// There may be more firings after this time.
    known_until: Option<Time>,
}

impl Side {
    /// The answer to a request for [`KNOWN_MAX`] firings. A shorter list is complete.
    pub fn of(firings: Vec<LocalTime>) -> Self {
        let known_until = firings.get(KNOWN_MAX - 1).map(|firing| firing.at());
        Self { firings, known_until }
    }

    /// Removes the firings for which `happens` is false.
    pub fn retain(&mut self, happens: impl Fn(LocalTime) -> bool) {
        self.firings.retain(|firing| happens(*firing));
    }
}

/// A firing that moves to another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Move {
    /// The old time.
    pub from: LocalTime,
    /// The new time.
    pub to: LocalTime,
}

/// The changes to the firings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FiringChange {
    /// The end of the compared span, inclusive.
    pub until: Time,
    /// How many firings there were.
    pub before: usize,
    /// How many firings there will be.
    pub after: usize,
    /// Old firings without a counterpart.
    pub vanish: Vec<LocalTime>,
    /// New firings without a counterpart.
    pub appear: Vec<LocalTime>,
    /// Old firings whose counterpart is at another time.
    pub moves: Vec<Move>,
}

impl FiringChange {
    /// Whether no firing changes.
    pub fn is_none(&self) -> bool {
        self.vanish.is_empty() && self.appear.is_empty() && self.moves.is_empty()
    }
}

/// Compares the next firings of both sides.
pub fn compare(old: &Side, new: &Side, horizon: Horizon) -> FiringChange {
    let until = common_end(old, new, horizon);
    let (old, new) = (by_time(old, until), by_time(new, until));
    let only_in = |these: &BTreeMap<Time, LocalTime>, those: &BTreeMap<Time, LocalTime>| {
        let alone = these.iter().filter(|(at, _)| !those.contains_key(at));
        alone.map(|(at, local)| (*at, *local)).collect::<BTreeMap<_, _>>()
    };
    let (mut vanish, mut appear) = (only_in(&old, &new), only_in(&new, &old));
    let moves = shifted(&vanish, &appear, Stretch { after: horizon.after, until })
        .or_else(|| in_step(&old, &vanish, &appear))
        .unwrap_or_default();
    for moved in &moves {
        vanish.remove(&moved.from.at());
        appear.remove(&moved.to.at());
    }
    FiringChange {
        until,
        before: old.len(),
        after: new.len(),
        vanish: vanish.into_values().collect(),
        appear: appear.into_values().collect(),
        moves,
    }
}

/// The horizon, extended to a few firings of each side, but not beyond what is known.
fn common_end(old: &Side, new: &Side, horizon: Horizon) -> Time {
    let horizon_ends = moved(horizon.after, i64::try_from(horizon.length.as_millis()).unwrap_or(i64::MAX));
    let a_few = |side: &Side| side.firings.iter().take(LOOKED_AT_MIN).next_back().map(|firing| firing.at());
    let wanted = [a_few(old), a_few(new)].into_iter().flatten().fold(horizon_ends, Time::max);
    [old.known_until, new.known_until].into_iter().flatten().fold(wanted, Time::min)
}

fn by_time(side: &Side, until: Time) -> BTreeMap<Time, LocalTime> {
    side.firings.iter().map(|firing| (firing.at(), *firing)).filter(|(at, _)| *at <= until).collect()
}

fn moved(at: Time, shift_ms: i64) -> Time {
    Time::from_millis(at.as_millis().saturating_add(shift_ms))
}

fn distance_ms(from: Time, to: Time) -> i64 {
    to.as_millis() - from.as_millis()
}

/// The compared span: after the one moment, up to the other.
#[derive(Clone, Copy)]
struct Stretch {
    after: Time,
    until: Time,
}

/// All firings moved by the same amount. Only at the ends of the span may one have its counterpart outside.
fn shifted(
    vanish: &BTreeMap<Time, LocalTime>,
    appear: &BTreeMap<Time, LocalTime>,
    stretch: Stretch,
) -> Option<Vec<Move>> {
    let first = *vanish.keys().next()?;
    let shifts = appear.keys().map(|at| distance_ms(first, *at));
    // Of two that are as near, the later one: something put off is the commoner change.
    let shift_ms = shifts.min_by_key(|shift_ms| (shift_ms.abs(), *shift_ms < 0))?;
    let inside = |at: Time| at > stretch.after && at <= stretch.until;
    let every_old_one =
        vanish.keys().map(|at| moved(*at, shift_ms)).all(|to| appear.contains_key(&to) || !inside(to));
    let every_new_one =
        appear.keys().map(|at| moved(*at, -shift_ms)).all(|from| vanish.contains_key(&from) || !inside(from));
    if !every_old_one || !every_new_one {
        return None;
    }
    let pair = |(at, from): (&Time, &LocalTime)| {
        appear.get(&moved(*at, shift_ms)).map(|to| Move { from: *from, to: *to })
    };
    Some(vanish.iter().filter_map(pair).collect())
}

/// Firings moved one by one, each by less than the interval between two of them, as across a clock change.
fn in_step(
    old: &BTreeMap<Time, LocalTime>,
    vanish: &BTreeMap<Time, LocalTime>,
    appear: &BTreeMap<Time, LocalTime>,
) -> Option<Vec<Move>> {
    if vanish.len() != appear.len() {
        return None;
    }
    let least_gap_ms =
        old.keys().zip(old.keys().skip(1)).map(|(one, next)| distance_ms(*one, *next)).min()?;
    let pairs = vanish.values().zip(appear.values()).map(|(from, to)| Move { from: *from, to: *to });
    let moves: Vec<_> = pairs.collect();
    let is_near = |moved: &Move| distance_ms(moved.from.at(), moved.to.at()).abs() < least_gap_ms;
    moves.iter().all(is_near).then_some(moves)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const MINUTE: i64 = 60_000;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;

    fn at(ms: i64) -> LocalTime {
        LocalTime::new(Time::from_millis(ms), 0)
    }

    /// Every `step_ms` after the beginning, `offset_ms` later.
    fn every(step_ms: i64, offset_ms: i64) -> Vec<LocalTime> {
        (0..).map(|n| n * step_ms + offset_ms).filter(|ms| *ms > 0).take(KNOWN_MAX).map(at).collect()
    }

    fn day(old: &[LocalTime], new: &[LocalTime]) -> FiringChange {
        let length = Span::from_millis(DAY as u64);
        let (old, new) = (Side::of(old.to_vec()), Side::of(new.to_vec()));
        compare(&old, &new, Horizon { after: Time::from_millis(0), length })
    }

    fn millis(firings: &[LocalTime]) -> Vec<i64> {
        firings.iter().map(|firing| firing.at().as_millis()).collect()
    }

    #[test]
    fn half_as_often_means_that_every_second_one_vanishes() {
        let change = day(&every(5 * MINUTE, 0), &every(10 * MINUTE, 0));
        assert_eq!((change.before, change.after), (288, 144));
        assert_eq!((change.vanish.len(), change.appear.len(), change.moves.len()), (144, 0, 0));
        assert_eq!(millis(&change.vanish[..2]), [5 * MINUTE, 15 * MINUTE]);
        assert_eq!(change.until, Time::from_millis(DAY));
    }

    #[test]
    fn the_same_firings_are_no_change() {
        assert!(day(&every(HOUR, 0), &every(HOUR, 0)).is_none());
        assert!(day(&[], &[]).is_none());
    }

    #[test]
    fn a_shift_moves_them_and_the_ends_may_be_without_counterpart() {
        let change = day(&every(HOUR, 0), &every(HOUR, 10 * MINUTE));
        assert_eq!((change.moves.len(), change.vanish.len()), (23, 1), "{change:?}");
        assert_eq!(change.moves[0], Move { from: at(HOUR), to: at(HOUR + 10 * MINUTE) });
        // Its old time is past, its new time is not.
        assert_eq!(millis(&change.appear), [10 * MINUTE]);
        assert_eq!(millis(&change.vanish), [DAY]);
    }

    #[test]
    fn the_horizon_is_extended_to_a_few_rare_firings() {
        let change = day(&every(DAY, 2 * HOUR), &every(DAY, 3 * HOUR));
        assert_eq!(change.until, Time::from_millis(4 * DAY + 3 * HOUR));
        assert_eq!((change.moves.len(), change.before, change.after), (5, 5, 5));
        let one = day(&[at(300 * DAY)], &[]);
        assert_eq!(millis(&one.vanish), [300 * DAY]);
    }

    #[test]
    fn the_end_of_what_is_known_is_not_the_end_of_firing() {
        let change = day(&every(1_000, 0), &every(HOUR, 0));
        assert_eq!(change.until, Time::from_millis(1_000_000));
        assert_eq!((change.before, change.after, change.vanish.len()), (1_000, 0, 1_000));
    }

    #[test]
    fn firings_that_do_not_happen_shorten_no_side() {
        let mut side = Side::of(every(1_000, 0));
        side.retain(|firing| firing.at().as_millis() > 990_000);
        let length = Span::from_millis(DAY as u64);
        let change = compare(&side, &Side::default(), Horizon { after: Time::from_millis(0), length });
        assert_eq!((change.until, change.vanish.len()), (Time::from_millis(1_000_000), 10));
    }

    #[test]
    fn across_a_change_of_the_clocks_they_move_in_step() {
        let old: Vec<_> = (1..=5).map(|n| at(n * DAY)).collect();
        let new: Vec<_> = (1..=5).map(|n| at(n * DAY + if n < 3 { HOUR } else { 2 * HOUR })).collect();
        let change = day(&old, &new);
        assert_eq!((change.moves.len(), change.vanish.len(), change.appear.len()), (5, 0, 0), "{change:?}");
    }

    #[test]
    fn what_has_no_pattern_appears_and_vanishes() {
        let change = day(&[at(HOUR), at(2 * HOUR)], &[at(90 * MINUTE), at(7 * HOUR), at(8 * HOUR)]);
        assert_eq!((change.moves.len(), change.vanish.len(), change.appear.len()), (0, 2, 3), "{change:?}");
    }

    proptest! {
        #[test]
        fn the_old_firings_with_the_change_are_the_new_firings(
            old in prop::collection::btree_set(1_i64..3_000, 0..60),
            new in prop::collection::btree_set(1_i64..3_000, 0..60),
            shift in prop::option::of(-50_i64..50),
        ) {
            let new: BTreeSet<i64> = match shift {
                Some(shift) => old.iter().map(|minute| minute + shift).filter(|minute| *minute > 0).collect(),
                None => new,
            };
            let firings = |minutes: &BTreeSet<i64>| minutes.iter().map(|n| at(n * MINUTE)).collect::<Vec<_>>();
            let change = day(&firings(&old), &firings(&new));
            let within = |minutes: &BTreeSet<i64>| -> BTreeSet<i64> {
                minutes.iter().map(|n| n * MINUTE).filter(|ms| *ms <= change.until.as_millis()).collect()
            };
            let mut result = within(&old);
            prop_assert_eq!(result.len(), change.before);
            for gone in change.vanish.iter().chain(change.moves.iter().map(|moved| &moved.from)) {
                prop_assert!(result.remove(&gone.at().as_millis()), "it was not there");
            }
            for come in change.appear.iter().chain(change.moves.iter().map(|moved| &moved.to)) {
                prop_assert!(result.insert(come.at().as_millis()), "it was there already");
            }
            prop_assert_eq!(result.len(), change.after);
            prop_assert_eq!(result, within(&new));
        }
    }
}
