//! Something that keeps failing: how long to wait before it is asked again, and when to say so.
//!
//! A state that lasts is said when it begins and every ten seconds, with the number of failures that were not said.
//! Also something that fails and works in turn is not said more often.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::retry::Jitter;

const WAIT_MIN: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(1);
const SAY_INTERVAL: Duration = Duration::from_secs(10);

/// The failures in a row of one thing that is asked for again and again.
#[derive(Clone, Copy, Debug, Default)]
pub struct FailureStreak {
    /// Without a success in between.
    failures: u32,
    said_at: Option<Instant>,
    unsaid: u64,
    /// Since the last success.
    said: bool,
}

impl FailureStreak {
    /// Nothing has failed yet.
    pub const fn none() -> Self {
        Self { failures: 0, said_at: None, unsaid: 0, said: false }
    }

    /// It failed. If that is to be said now: how many failures were not said since the last time.
    pub fn failed(&mut self, now: Instant) -> Option<u64> {
        self.failures = self.failures.saturating_add(1);
        if self.said_at.is_some_and(|at| now.saturating_duration_since(at) < SAY_INTERVAL) {
            self.unsaid += 1;
            return None;
        }
        self.said_at = Some(now);
        self.said = true;
        Some(std::mem::take(&mut self.unsaid))
    }

    /// It worked. If that is to be said, because the failure was: after how many failures.
    pub fn succeeded(&mut self) -> Option<u32> {
        let failures = std::mem::take(&mut self.failures);
        (std::mem::take(&mut self.said) && failures > 0).then_some(failures)
    }

    /// Whether it failed the last time.
    pub const fn is_ongoing(&self) -> bool {
        self.failures > 0
    }

    /// How long to wait before it is asked again: longer each time, up to a second.
    pub fn wait(&self, jitter: Jitter) -> Duration {
        let doublings = self.failures.saturating_sub(1).min(16);
        jitter.shorten(WAIT_MIN.saturating_mul(1 << doublings).min(WAIT_MAX))
    }
}

/// A streak that many callers know of, each at its own moment.
#[derive(Debug)]
pub struct SharedFailureStreak(Mutex<FailureStreak>);

impl SharedFailureStreak {
    /// Nothing has failed yet.
    pub const fn none() -> Self {
        Self(Mutex::new(FailureStreak::none()))
    }

    /// See [`FailureStreak::failed`].
    pub fn failed(&self, now: Instant) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).failed(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_state_that_lasts_is_said_when_it_begins_every_ten_seconds_and_when_it_is_over() {
        let (mut streak, began) = (FailureStreak::none(), Instant::now());
        let said: Vec<(u64, u64)> = (0..600)
            .filter_map(|tenth| {
                Some((tenth, streak.failed(began + Duration::from_millis(100) * u32::try_from(tenth).ok()?)?))
            })
            .collect();
        assert_eq!(said, [(0, 0), (100, 99), (200, 99), (300, 99), (400, 99), (500, 99)]);
        assert_eq!(streak.succeeded(), Some(600));
        assert_eq!(streak.succeeded(), None);
        assert_eq!(streak.failed(began + MINUTE), Some(99));
    }

    #[test]
    fn what_fails_and_works_in_turn_is_not_said_more_often() {
        let (mut streak, began) = (FailureStreak::none(), Instant::now());
        let mut lines = 0;
        for millis in 0..60_000 {
            lines += usize::from(streak.failed(began + Duration::from_millis(millis)).is_some());
            lines += usize::from(streak.succeeded().is_some());
        }
        assert_eq!(lines, 12);
    }

    #[test]
    fn waits_grow_to_a_second_and_start_again_after_a_success() {
        let mut streak = FailureStreak::none();
        let mut waits = Vec::new();
        for _ in 0..100 {
            streak.failed(Instant::now());
            let (least, most) = (streak.wait(Jitter::from_bits(0)), streak.wait(Jitter::from_bits(u64::MAX)));
            assert!(least >= most / 2 && most <= WAIT_MAX, "{least:?} {most:?}");
            waits.push(most.as_millis());
        }
        assert_eq!(waits[..6], [50, 100, 200, 400, 800, 1_000]);
        streak.succeeded();
        streak.failed(Instant::now());
        assert!(streak.wait(Jitter::NONE) <= WAIT_MIN);
    }
}
