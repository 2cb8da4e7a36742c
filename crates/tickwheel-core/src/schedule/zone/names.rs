//! What to say about a zone that does not exist: which one was probably meant.

use std::fmt;

const SUGGESTIONS_MAX: usize = 3;
/// Nothing longer is compared with every name; the longest zone has 32 letters.
const COMPARED_BYTES_MAX: usize = 64;

/// There is no time zone of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownZone {
    /// The name that was asked for; shortened if it is very long.
    pub name: String,
    /// Existing names that look like it, the likeliest first.
    pub close: Vec<&'static str>,
}

impl UnknownZone {
    pub(super) fn new(name: &str, known: impl Iterator<Item = &'static str>) -> Self {
        let asked = name.trim().to_ascii_lowercase().replace(' ', "_");
        let mut ranked: Vec<(usize, &'static str)> = match asked.len() {
            3..=COMPARED_BYTES_MAX => known.filter_map(|k| distance(&asked, k).map(|d| (d, k))).collect(),
            _ => Vec::new(),
        };
        ranked.sort_unstable();
        // Once there is an exact hit on the city, near misses only distract.
        let best = ranked.first().map_or(0, |(distance, _)| *distance);
        ranked.retain(|(distance, _)| best > 0 || *distance == 0);
        let close = ranked.into_iter().map(|(_, name)| name).take(SUGGESTIONS_MAX).collect();
        Self { name: name.chars().take(COMPARED_BYTES_MAX).collect(), close }
    }
}

/// How far a known name is from what was asked for; `None` if it is out of the question.
fn distance(asked: &str, known: &str) -> Option<usize> {
    let known = known.to_ascii_lowercase();
    let last = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    if last(&known) == last(asked) {
        return Some(0);
    }
    let whole = strsim::osa_distance(asked, &known);
    let city = strsim::osa_distance(asked, &last(&known));
    let nearest = whole.min(city);
    (nearest <= asked.len() / 4).then_some(nearest)
}

impl fmt::Display for UnknownZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown time zone {:?}; ", self.name)?;
        match self.close.as_slice() {
            [] => f.write_str("use a name of the IANA database, such as Europe/Berlin"),
            [first @ .., last] => {
                f.write_str("did you mean ")?;
                for name in first {
                    write!(f, "{name} or ")?;
                }
                write!(f, "{last}?")
            }
        }
    }
}

impl std::error::Error for UnknownZone {}
