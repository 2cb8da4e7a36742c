//! How far an attempt has come, in its own words. Only the latest is kept, and only while the attempt runs.

use crate::time::Timestamp;
use crate::token::AttemptRef;

/// How much of the work is done, in hundredths of a percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u16);

impl Percent {
    /// All of it.
    pub const ALL: Self = Self(10_000);

    /// From a number of percent. What is less than 0 or more than 100 becomes that; what is no number becomes 0.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is from 0 to 10,000")]
    pub fn from_number(percent: f64) -> Self {
        let hundredths = (percent * 100.0).round();
        if hundredths.is_nan() { Self(0) } else { Self(hundredths.clamp(0.0, 10_000.0) as u16) }
    }

    /// As a number of percent.
    pub fn as_number(self) -> f64 {
        f64::from(self.0) / 100.0
    }

    /// As the stores keep it.
    pub const fn hundredths(self) -> u16 {
        self.0
    }

    /// As the stores keep it; `None`: more than all.
    pub fn from_hundredths(hundredths: u16) -> Option<Self> {
        Some(Self(hundredths)).filter(|percent| *percent <= Self::ALL)
    }
}

/// How far an attempt has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Which attempt says so.
    pub attempt: AttemptRef,
    /// How much of it is done.
    pub percent: Option<Percent>,
    /// What it is doing, in words.
    pub message: Option<String>,
    /// When it said so.
    pub at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_has_two_places_and_stays_within_its_bounds() {
        let read = |number| Percent::from_number(number).as_number();
        for same in [0.0, 12.5, 33.33, 100.0] {
            assert!((read(same) - same).abs() < 1e-9, "{same}");
        }
        assert_eq!(Percent::from_number(-1.0).hundredths(), 0);
        assert_eq!(Percent::from_number(f64::NAN).hundredths(), 0);
        assert_eq!(Percent::from_number(f64::INFINITY), Percent::ALL);
        assert_eq!(Percent::from_hundredths(10_000), Some(Percent::ALL));
        assert_eq!(Percent::from_hundredths(10_001), None);
    }
}
