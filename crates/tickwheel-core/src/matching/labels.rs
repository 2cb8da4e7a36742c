//! Labels: what a worker has, and what a job requires of it.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

/// Labels by name. Of a worker: what it has. Of a job: what it requires.
pub type Labels = BTreeMap<String, Label>;

/// The value of a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Label {
    /// `"gpu": true`
    Flag(bool),
    /// `"memory_gib": 16`
    Number(Amount),
    /// `"zone": "eu-1"`
    Text(String),
}

/// A finite number. Two are equal if they are written alike.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Amount(pub f64);

impl PartialEq for Amount {
    fn eq(&self, other: &Self) -> bool {
        self.0.total_cmp(&other.0).is_eq()
    }
}

impl Eq for Amount {}

impl Hash for Amount {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

impl Label {
    /// Whether a worker with this label has what is required: at least as much of a number, exactly that otherwise.
    pub fn meets(&self, required: &Self) -> bool {
        match (self, required) {
            (Self::Number(has), Self::Number(required)) => has.0 >= required.0,
            (has, required) => has == required,
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => flag.fmt(f),
            Self::Number(amount) => amount.0.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

/// Whether a worker with the labels `has` meets every requirement.
pub fn all_met(has: &Labels, required: &Labels) -> bool {
    required.iter().all(|(name, required)| has.get(name).is_some_and(|label| label.meets(required)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, Label)]) -> Labels {
        pairs.iter().map(|(name, label)| ((*name).to_owned(), label.clone())).collect()
    }

    fn number(value: f64) -> Label {
        Label::Number(Amount(value))
    }

    #[test]
    fn a_worker_needs_at_least_as_much_and_exactly_what_is_no_number() {
        let has = labels(&[
            ("gpu", Label::Flag(true)),
            ("memory", number(16.0)),
            ("zone", Label::Text("eu-1".into())),
        ]);
        let meets = |name: &str, label: Label| all_met(&has, &labels(&[(name, label)]));
        assert!(meets("memory", number(16.0)) && meets("memory", number(0.5)));
        assert!(!meets("memory", number(16.5)));
        assert!(meets("gpu", Label::Flag(true)) && !meets("gpu", Label::Flag(false)));
        assert!(meets("zone", Label::Text("eu-1".into())) && !meets("zone", Label::Text("eu".into())));
        assert!(!meets("memory", Label::Text("16".into())), "a text is no number");
        assert!(!meets("cpu", number(0.0)), "what it does not have, it has not even none of");
        assert!(all_met(&has, &Labels::new()));
        assert!(all_met(&Labels::new(), &Labels::new()) && !all_met(&Labels::new(), &has));
    }
}
