//! When nobody was looking.
//!
//! A schedule is dealt with late for one of two reasons. So many are due at the same moment that they take a while:
//! that is work, and it is done as fast as it can be. Or nobody looked when its time came: the process was not there or
//! stood still, its store did not answer, its clock was set forward. Then all that came due meanwhile is there at once,
//! and is to be made up for at a measured pace.
//!
//! Kept true: what came due while somebody looked is never counted among the second, however late it is by now.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Timestamp;

/// A shorter time without a look is none, and what came due in the last moments of a longer one is as good as on time.
const HICCUP: Duration = Duration::from_secs(2);
/// So many are told apart; of more, the oldest are taken for one.
const LEN_MAX: usize = 16;

/// See the module.
#[derive(Debug)]
pub(super) struct Outages {
    /// First and last moment of each, in order.
    spans: VecDeque<(Timestamp, Timestamp)>,
    watched_until: Timestamp,
}

impl Outages {
    /// Nobody looked before `now`.
    pub fn before(now: Timestamp) -> Self {
        Self { spans: [(Timestamp::from_millis(i64::MIN), now)].into(), watched_until: now }
    }

    /// Somebody looks, and has done so since the last time this was said, unless that is too long ago: then this ends
    /// an outage, and the answer is `true`.
    pub fn watch(&mut self, now: Timestamp) -> bool {
        let is_outage = now.since(self.watched_until) > HICCUP;
        if is_outage {
            self.add(self.watched_until, now);
        }
        self.kept_watch(now);
        is_outage
    }

    /// Somebody was busy up to now, however long that took.
    pub fn kept_watch(&mut self, now: Timestamp) {
        if now < self.watched_until {
            // The clock was set back. Somebody looks at the times that come again.
            self.spans.retain_mut(|(from, to)| {
                *to = now.min(*to);
                *from < now
            });
        }
        self.watched_until = now;
    }

    /// Nobody looked at some of what was due before `now`.
    pub fn all_before(&mut self, now: Timestamp) {
        self.spans.clear();
        self.add(Timestamp::from_millis(i64::MIN), now);
    }

    /// Whether nobody looked at this moment.
    pub fn contains(&self, at: Timestamp) -> bool {
        self.spans.iter().any(|(from, to)| *from <= at && at + HICCUP < *to)
    }

    fn add(&mut self, from: Timestamp, to: Timestamp) {
        self.spans.push_back((from, to));
        if self.spans.len() > LEN_MAX
            && let (Some((from, _)), Some((_, to))) = (self.spans.pop_front(), self.spans.pop_front())
        {
            self.spans.push_front((from, to));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn at(seconds: u64) -> Timestamp {
        NOW + Duration::from_secs(seconds)
    }

    #[test]
    fn what_was_due_before_the_start_came_due_in_an_outage_but_for_the_last_moments() {
        let outages = Outages::before(NOW);
        assert!(outages.contains(NOW - Duration::from_secs(3_600)));
        assert!(outages.contains(NOW - Duration::from_secs(3)));
        assert!(!outages.contains(NOW - Duration::from_secs(2)) && !outages.contains(NOW));
    }

    #[test]
    fn only_what_came_due_while_nobody_looked_counts_however_late_the_rest_is() {
        let mut outages = Outages::before(NOW);
        for second in 0..=100 {
            assert!(!outages.watch(at(second)));
        }
        assert!(!outages.contains(at(1)), "it is late, but somebody is at it");
        assert!(outages.watch(at(120)));
        let during: Vec<u64> = (90..130).filter(|second| outages.contains(at(*second))).collect();
        assert_eq!(during, (100..118).collect::<Vec<_>>());
        assert!(!outages.watch(at(121)));
    }

    #[test]
    fn a_store_that_takes_its_time_is_no_outage() {
        let mut outages = Outages::before(NOW);
        outages.kept_watch(at(8));
        assert!(!outages.watch(at(9)) && !outages.contains(at(4)));
    }

    #[test]
    fn a_clock_that_is_set_back_is_no_outage_and_one_that_is_set_forward_is() {
        let mut outages = Outages::before(NOW);
        outages.watch(at(1));
        assert!(!outages.watch(NOW - Duration::from_secs(3_600)));
        assert!(!outages.contains(NOW - Duration::from_secs(600)), "the times that come again are watched");
        assert!(outages.contains(NOW - Duration::from_secs(7_200)));
        assert!(outages.watch(at(2)) && outages.contains(NOW - Duration::from_secs(60)));
    }

    #[test]
    fn many_outages_take_a_bounded_room() {
        let mut outages = Outages::before(NOW);
        for number in 1..100 {
            outages.watch(at(number * 10));
        }
        assert!(outages.spans.len() <= LEN_MAX);
        assert!(outages.contains(at(5)) && outages.contains(at(985)));
    }
}
