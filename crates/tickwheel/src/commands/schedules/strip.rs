//! The latest outcomes of a schedule as a strip of signs, latest last, and a legend.

use std::io::{self, IsTerminal as _};

use tickwheel_protocol::{Fire, FireOutcome};

/// The set of signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signs {
    /// Circles and crosses, for a terminal.
    Drawn,
    /// Plain letters, for anything else.
    Ascii,
}

impl Signs {
    /// The set for standard output.
    pub fn detect() -> Self {
        if io::stdout().is_terminal() { Self::Drawn } else { Self::Ascii }
    }

    const fn of(self, outcome: FireOutcome) -> char {
        let (drawn, ascii) = match outcome {
            FireOutcome::Fired => ('●', '+'),
            FireOutcome::Skipped => ('○', 'o'),
            FireOutcome::Missed => ('✕', 'x'),
            FireOutcome::Coalesced => ('◌', '~'),
            FireOutcome::Triggered => ('▲', '!'),
            FireOutcome::Backfilled => ('◆', '*'),
        };
        match self {
            Self::Drawn => drawn,
            Self::Ascii => ascii,
        }
    }

    /// The outcomes of `fires`, which are ordered latest first.
    pub fn strip(self, fires: &[Fire]) -> String {
        fires.iter().rev().map(|fire| self.of(fire.outcome)).collect()
    }

    /// The legend for the signs that occur among `fires`. Empty if none does.
    pub fn legend<'a>(self, fires: impl Iterator<Item = &'a Fire> + Clone) -> Option<String> {
        let occurs = |outcome: FireOutcome| fires.clone().any(|fire| fire.outcome == outcome);
        let known = FireOutcome::ALL.iter().filter(|outcome| occurs(**outcome));
        let meanings: Vec<_> = known.map(|outcome| format!("{} {outcome}", self.of(*outcome))).collect();
        (!meanings.is_empty()).then(|| meanings.join("   "))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use tickwheel_protocol::Time;

    use super::*;

    fn fire(outcome: FireOutcome) -> Fire {
        let at = Time::from_millis(0);
        Fire {
            nominal_time: at,
            last_nominal_time: at,
            count: 1,
            outcome,
            reason: String::new(),
            job_id: None,
            recorded_at: at,
        }
    }

    #[test]
    fn the_latest_outcome_comes_last_and_the_legend_says_what_occurs() {
        let fires = [FireOutcome::Missed, FireOutcome::Fired, FireOutcome::Fired].map(fire);
        assert_eq!(Signs::Ascii.strip(&fires), "++x");
        assert_eq!(Signs::Drawn.strip(&fires), "●●✕");
        assert_eq!(Signs::Ascii.legend(fires.iter()).as_deref(), Some("+ fired   x missed"));
        assert_eq!(Signs::Ascii.legend([].iter()), None);
    }

    #[test]
    fn every_outcome_has_a_sign_of_its_own() {
        for signs in [Signs::Drawn, Signs::Ascii] {
            let all: HashSet<_> = FireOutcome::ALL.iter().map(|outcome| signs.of(*outcome)).collect();
            assert_eq!(all.len(), FireOutcome::ALL.len());
        }
    }
}
