//! The lock that orders everything that is written of a schedule, and the proof that this transaction has moved it.

use tickwheel_core::ScheduleId;
use uuid::Uuid;

/// Locks the rows that exist, in the order of their ids whatever order they are asked for in, and answers which they
/// are.
pub(super) const LOCK_SCHEDULES: &str = "\
SELECT s.id FROM unnest($1::uuid[]) AS w (id) JOIN schedules AS s ON s.id = ANY (ARRAY[w.id])
ORDER BY s.id FOR NO KEY UPDATE OF s";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[LOCK_SCHEDULES];

/// Joins the schedule of a row `n`, if this very transaction has written it: a step that was stale left it to another
/// one.
macro_rules! join_moved_schedule {
    () => {
        "JOIN schedules AS moved ON moved.id = ANY (ARRAY[n.schedule_id]) AND moved.xmin = pg_current_xact_id()::xid"
    };
}

pub(super) use join_moved_schedule;

/// Ids as a parameter.
pub(super) fn uuids(ids: &[ScheduleId]) -> Vec<Uuid> {
    ids.iter().map(|id| id.as_uuid()).collect()
}
