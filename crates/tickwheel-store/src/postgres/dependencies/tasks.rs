//! Tasks that wait for others of their run: known from the places of those, and told while the run is locked.

use std::collections::BTreeMap;

use tickwheel_core::{Job, JobId, Timestamp};
use uuid::Uuid;

use crate::links::{Ended, Tie, run_tallies, tallies, ties};
use crate::postgres::pipeline::Param;
use crate::postgres::row::count;

/// The same as [`RELEASE`](super::RELEASE) for tasks, whose children are known and whose run is locked. A job that stands for others (above 3) waits for those and for nobody else.
///
/// Takes ended tasks off the open jobs of their runs, too. Looks are wanted at those of which something ended badly or
/// of which nothing but blocked jobs is open.
pub(in crate::postgres) const RELEASE_TASKS: &str = concat!(
    "\
WITH told AS (
    ",
    tell_children!(
        "unnest($1::uuid[], $2::boolean[], $3::bigint[], $4::integer[], $5::integer[]) AS s (child, is_group, ended_at, completed, failed),
         LATERAL (SELECT s.*, NULL::uuid AS parent) AS w",
        " AND (j.release > 3) = w.is_group"
    ),
    "
), tallied AS (
    UPDATE workflow_runs AS r SET open = GREATEST(r.open - s.ended, 0), spoiled = r.spoiled OR s.badly
    FROM unnest($6::uuid[], $7::integer[], $8::boolean[]) AS s (run, ended, badly)
    WHERE r.id = ANY (ARRAY[s.run])
    RETURNING r.id, s.badly OR r.open <= r.blocked AS is_wanted
)",
    ask_and_answer!("\n    UNION ALL\n    SELECT id FROM tallied WHERE is_wanted")
);

/// The same as [`HOLD_AGAIN`](super::HOLD_AGAIN) for tasks. Those that are watched are looked at.
pub(in crate::postgres) const HOLD_TASKS_AGAIN: &str = "\
WITH told AS (
    UPDATE jobs AS j
    SET open_parents = j.open_parents + w.revived, failed_parents = GREATEST(j.failed_parents - w.revived, 0)
    FROM unnest($1::uuid[], $2::boolean[], $3::integer[]) AS w (child, is_group, revived)
    WHERE j.id = ANY (ARRAY[w.child]) AND j.state IN (0, 8) AND (j.release > 3) = w.is_group
    RETURNING j.id, j.release
)
INSERT INTO workflow_looks (id) SELECT id FROM told WHERE release IN (3, 5) ORDER BY id
ON CONFLICT (id) DO UPDATE SET times = DEFAULT";

/// What ends mean to the tasks that wait for them, as columns.
#[derive(Default)]
pub(in crate::postgres) struct TallyRows {
    children: Vec<Uuid>,
    are_groups: Vec<bool>,
    ended_at: Vec<Option<i64>>,
    completed: Vec<i32>,
    failed: Vec<i32>,
    runs: Vec<Uuid>,
    ended: Vec<i32>,
    badly: Vec<bool>,
}

impl TallyRows {
    pub fn of(ended: &[Ended<'_>]) -> Self {
        let mut rows = Self::default();
        for ((child, tie), tally) in tallies(ended) {
            rows.children.push(child.as_uuid());
            rows.are_groups.push(tie == Tie::Group);
            rows.ended_at.push(tally.latest.map(Timestamp::as_millis));
            rows.completed.push(count(tally.completed));
            rows.failed.push(count(tally.failed));
        }
        rows
    }

    /// And to their runs, if those are not written otherwise.
    pub fn with_runs(mut self, ended: &[Ended<'_>]) -> Self {
        for (run, tally) in run_tallies(ended) {
            self.runs.push(run.as_uuid());
            self.ended.push(count(tally.ended));
            self.badly.push(tally.badly);
        }
        self
    }

    /// Tells them, if there are any.
    pub fn release(&self) -> Option<(&'static str, Vec<Param<'_>>)> {
        let is_wanted = !self.children.is_empty() || !self.runs.is_empty();
        is_wanted.then(|| (RELEASE_TASKS, self.params()))
    }

    fn params(&self) -> Vec<Param<'_>> {
        vec![
            &self.children,
            &self.are_groups,
            &self.ended_at,
            &self.completed,
            &self.failed,
            &self.runs,
            &self.ended,
            &self.badly,
        ]
    }
}

/// Tasks that wait for jobs that have come back, as columns.
#[derive(Default)]
pub(in crate::postgres) struct HeldRows {
    children: Vec<Uuid>,
    are_groups: Vec<bool>,
    revived: Vec<i32>,
}

impl HeldRows {
    pub fn of<'a>(revived: impl IntoIterator<Item = &'a Job>) -> Self {
        let mut counts: BTreeMap<(JobId, Tie), u32> = BTreeMap::new();
        for child in revived.into_iter().filter_map(|job| job.spec.place.as_ref()).flat_map(ties) {
            *counts.entry(child).or_default() += 1;
        }
        let mut rows = Self::default();
        for ((child, tie), revived) in counts {
            rows.children.push(child.as_uuid());
            rows.are_groups.push(tie == Tie::Group);
            rows.revived.push(count(revived));
        }
        rows
    }

    /// Tells them, if there are any.
    pub fn hold(&self) -> Option<(&'static str, Vec<Param<'_>>)> {
        let params: [Param<'_>; 3] = [&self.children, &self.are_groups, &self.revived];
        (!self.children.is_empty()).then(|| (HOLD_TASKS_AGAIN, params.to_vec()))
    }
}
