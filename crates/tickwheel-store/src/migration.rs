//! The steps that build a schema: numbered, forward-only, never edited once released, the same numbers and names in
//! both stores.
//!
//! Each store runs them in its own way; here is what a step is and which ones are still to be run.

use tickwheel_core::ports::{StoreError, StoreResult};

/// One step of the schema.
#[derive(Debug)]
pub(crate) struct Migration {
    /// Its number, one more than that of the step before.
    pub version: i64,
    /// What it brings, in a word.
    pub name: &'static str,
    /// What to execute.
    pub sql: &'static str,
}

/// The steps after `applied` (0: none yet). A schema newer than what this program knows is refused.
pub(crate) fn pending(all: &'static [Migration], applied: i64) -> StoreResult<&'static [Migration]> {
    let known = all.last().map_or(0, |latest| latest.version);
    if applied > known {
        return Err(StoreError::Corrupt(format!(
            "the schema has version {applied}, this program knows versions up to {known}: use a newer program"
        )));
    }
    let first = all.partition_point(|migration| migration.version <= applied);
    Ok(&all[first..])
}

#[cfg(test)]
mod tests {
    use super::*;

    static TWO: [Migration; 2] =
        [Migration { version: 1, name: "one", sql: "" }, Migration { version: 2, name: "two", sql: "" }];

    #[test]
    fn only_what_was_not_applied_is_pending() {
        let versions = |applied| -> Vec<i64> {
            pending(&TWO, applied).expect("known").iter().map(|m| m.version).collect()
        };
        assert_eq!(versions(0), [1, 2]);
        assert_eq!(versions(1), [2]);
        assert!(versions(2).is_empty());
    }

    #[test]
    fn a_schema_newer_than_the_program_is_refused() {
        assert!(matches!(pending(&TWO, 3), Err(StoreError::Corrupt(_))));
    }
}
