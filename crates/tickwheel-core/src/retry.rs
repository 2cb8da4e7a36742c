//! When to try again after a failure.
//!
//! Randomness comes in as a [`Jitter`], so that the same failure gives the same delay in a test and thousands of
//! jobs that failed together do not come back together in production.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::attempt::Failure;

/// How the delay grows from one retry to the next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// Always the initial delay.
    Fixed,
    /// The initial delay times the number of the retry.
    Linear,
    /// The initial delay, doubled each time.
    Exponential,
    /// These delays in milliseconds, in order; the last one repeats.
    Delays(Vec<u64>),
}

/// How often and how soon a failed job is tried again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// Retries after the first attempt.
    pub max_retries: u32,
    /// How the delay grows.
    pub backoff: Backoff,
    /// The first delay, in milliseconds.
    pub initial_delay_ms: u64,
    /// No delay is longer, in milliseconds.
    pub max_delay_ms: u64,
    /// By which part of itself (0 to 1) a delay may be shorter or longer.
    pub jitter: f64,
    /// Failures after which there is no retry: patterns of their code or of their message, in which `*` stands for
    /// anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub non_retryable: Vec<String>,
}

impl Eq for RetryPolicy {}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 3,
            backoff: Backoff::Exponential,
            initial_delay_ms: 1_000,
            max_delay_ms: 3_600_000,
            jitter: 0.1,
            non_retryable: Vec::new(),
        }
    }
}

/// A draw from 0 (inclusive) to 1 (exclusive) that decides how far a delay is shifted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter(f64);

impl Jitter {
    /// No shift at all.
    pub const NONE: Self = Self(0.5);

    /// From 64 random bits.
    pub fn from_bits(bits: u64) -> Self {
        Self((bits >> 11) as f64 / (1u64 << 53) as f64)
    }

    /// Between half of the time and all of it.
    pub fn shorten(self, time: Duration) -> Duration {
        time.mul_f64(0.5 + self.0 / 2.0)
    }

    fn shift(self, delay_ms: u64, part: f64) -> u64 {
        let factor = 1.0 + part.clamp(0.0, 1.0) * (2.0 * self.0 - 1.0);
        (delay_ms as f64 * factor).round() as u64
    }
}

impl RetryPolicy {
    /// How long to wait before retry number `retry` (1 for the first), or `None` when there is none left.
    pub fn delay(&self, retry: u32, jitter: Jitter) -> Option<Duration> {
        if retry == 0 || retry > self.max_retries {
            return None;
        }
        let nominal = self.nominal_delay_ms(retry).min(self.max_delay_ms);
        let shifted = jitter.shift(nominal, self.jitter).min(self.max_delay_ms);
        Some(Duration::from_millis(shifted))
    }

    /// Whether there is to be no retry after this failure.
    pub fn forbids(&self, failure: &Failure) -> bool {
        let is_meant =
            |pattern: &String| matches(pattern, &failure.code) || matches(pattern, &failure.message);
        self.non_retryable.iter().any(is_meant)
    }

    fn nominal_delay_ms(&self, retry: u32) -> u64 {
        match &self.backoff {
            Backoff::Fixed => self.initial_delay_ms,
            Backoff::Linear => self.initial_delay_ms.saturating_mul(u64::from(retry)),
            Backoff::Exponential => {
                let doublings = (retry - 1).min(63);
                self.initial_delay_ms.saturating_mul(1u64 << doublings)
            }
            Backoff::Delays(delays) => {
                let index =
                    usize::try_from(retry - 1).unwrap_or(usize::MAX).min(delays.len().saturating_sub(1));
                delays.get(index).copied().unwrap_or(0)
            }
        }
    }
}

/// Whether a text is like a pattern, in which `*` stands for anything. Takes time in proportion to their lengths.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return pattern == text };
    let (between, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(text) = text.strip_prefix(begin).and_then(|text| text.strip_suffix(end)) else { return false };
    let mut left = text;
    between.split('*').all(|part| {
        let found = left.split_once(part).map(|(_, after)| after);
        left = found.unwrap_or_default();
        found.is_some()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn policy(backoff: Backoff) -> RetryPolicy {
        RetryPolicy {
            max_retries: 4,
            backoff,
            initial_delay_ms: 100,
            max_delay_ms: 350,
            jitter: 0.0,
            non_retryable: Vec::new(),
        }
    }

    fn delays(policy: &RetryPolicy) -> Vec<u64> {
        (1..).map_while(|n| policy.delay(n, Jitter::NONE)).map(|d| d.as_millis() as u64).collect()
    }

    #[test]
    fn each_backoff_grows_in_its_way_and_stops_at_the_maximum() {
        assert_eq!(delays(&policy(Backoff::Fixed)), [100, 100, 100, 100]);
        assert_eq!(delays(&policy(Backoff::Linear)), [100, 200, 300, 350]);
        assert_eq!(delays(&policy(Backoff::Exponential)), [100, 200, 350, 350]);
        assert_eq!(delays(&policy(Backoff::Delays(vec![10, 200]))), [10, 200, 200, 200]);
    }

    #[test]
    fn failures_that_are_not_retried_are_told_by_code_or_message() {
        let failure = Failure::new("http_status", "the target answered 409 Conflict: duplicate key");
        for (pattern, is_meant) in [
            ("http_status", true),
            ("http_*", true),
            ("*answered 409*", true),
            ("*duplicate*key", true),
            ("*", true),
            ("*409*409*", false),
            ("http", false),
            ("status", false),
            ("*answered 500*", false),
            ("HTTP_STATUS", false),
            ("", false),
        ] {
            let policy =
                RetryPolicy { non_retryable: vec!["no".into(), pattern.into()], ..RetryPolicy::default() };
            assert_eq!(policy.forbids(&failure), is_meant, "{pattern}");
        }
        assert!(!RetryPolicy::default().forbids(&failure));
        assert!(!matches("ab*ba", "aba"), "beginning and end do not share a letter");
    }

    proptest! {
        /// Against a matcher that tries everything.
        #[test]
        fn a_pattern_matches_what_it_should(pattern in "[ab*]{0,8}", text in "[ab]{0,10}") {
            fn naive(pattern: &[u8], text: &[u8]) -> bool {
                match (pattern, text) {
                    ([], text) => text.is_empty(),
                    ([b'*', rest @ ..], text) => (0..=text.len()).any(|skipped| naive(rest, &text[skipped..])),
                    ([p, pattern @ ..], [t, text @ ..]) => p == t && naive(pattern, text),
                    _ => false,
                }
            }
            prop_assert_eq!(matches(&pattern, &text), naive(pattern.as_bytes(), text.as_bytes()));
        }

        #[test]
        fn a_delay_stays_within_its_jitter_and_its_maximum(
            retry in 1u32..200, bits: u64, initial in 0u64..10_000_000, jitter in 0.0f64..=1.0, max in 0u64..100_000_000,
        ) {
            let policy = RetryPolicy {
                max_retries: 100, backoff: Backoff::Exponential, initial_delay_ms: initial, max_delay_ms: max, jitter,
                non_retryable: Vec::new(),
            };
            let Some(delay) = policy.delay(retry, Jitter::from_bits(bits)) else {
                prop_assert!(retry > 100);
                return Ok(());
            };
            let nominal = policy.nominal_delay_ms(retry).min(max) as f64;
            let delay = delay.as_millis() as f64;
            prop_assert!(delay <= max as f64);
            prop_assert!(delay >= (nominal * (1.0 - jitter)).floor());
            prop_assert!(delay <= (nominal * (1.0 + jitter)).ceil());
        }
    }
}
