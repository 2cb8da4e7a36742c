//! Tasks that wait for others of their run: known from the places of those, told while the run is locked, and started if that is wished for.

use std::collections::BTreeMap;

use tickwheel_core::ports::{Scheduled, StartTasks, StoreResult};
use tickwheel_core::{Job, JobId, State, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

use super::Told;
use crate::links::{Ended, Tie, run_tallies, tallies, ties};
use crate::postgres::claim::timeout_max;
use crate::postgres::pipeline::Param;
use crate::postgres::row::{JOB_COLUMNS, column, count, live_columns, read_sound_jobs};

/// Children of tasks, which are known.
macro_rules! children_in_the_run {
    () => {
        "unnest($1::uuid[], $2::boolean[], $3::bigint[], $4::integer[], $5::integer[]) AS s (child, is_group, ended_at, completed, failed)"
    };
}

/// Takes ended tasks off the open jobs of their runs. Looks are wanted at those of which something ended badly or of which nothing but blocked jobs is open.
macro_rules! count_in_runs {
    () => {
        ", tallied AS (
    UPDATE workflow_runs AS r SET open = GREATEST(r.open - s.ended, 0), spoiled = r.spoiled OR s.badly
    FROM unnest($6::uuid[], $7::integer[], $8::boolean[]) AS s (run, ended, badly)
    WHERE r.id = ANY (ARRAY[s.run])
    RETURNING r.id, s.badly OR r.open <= r.blocked AS is_wanted
)"
    };
}

macro_rules! wanted_runs {
    () => {
        "\n    UNION ALL\n    SELECT id FROM tallied WHERE is_wanted"
    };
}

/// The same as [`RELEASE`](super::RELEASE) for tasks, whose children are known and whose run is locked. A job that stands for others (above 3) waits for those and for nobody else.
pub(in crate::postgres) const RELEASE_TASKS: &str = concat!(
    "\
WITH told AS (
    ",
    tell_children!(
        concat!(children_in_the_run!(), ", LATERAL (SELECT s.*, NULL::uuid AS parent) AS w"),
        " AND (j.release > 3) = w.is_group"
    ),
    "
)",
    count_in_runs!(),
    ask_and_answer!(wanted_runs!())
);

/// Which of those that wait for nothing any more are started: those that a claim ([`CLAIM`](crate::postgres::claim)) would take.
macro_rules! may_be_started {
    ($now:literal, $kinds:literal) => {
        concat!(
            "GREATEST(j.execute_at, w.ended_at) <= ",
            $now,
            " AND j.target = ANY (",
            $kinds,
            ") AND w.may_start AND j.queue <> ALL (w.paused)"
        )
    };
}

/// What a claim has to know, read once.
macro_rules! leave {
    ($session:literal) => {
        concat!(
            "leave (may_start, paused) AS MATERIALIZED (
    SELECT NOT halted AND EXISTS (SELECT 1 FROM sessions WHERE id = ",
            $session,
            "), ARRAY(SELECT name FROM queues WHERE paused)
    FROM installation WHERE single
)"
        )
    };
}

/// What becomes of those that are started.
macro_rules! start {
    ($is_started:expr, $session:literal, $now:literal, $timeout_max:literal) => {
        concat!(
            "
        attempt = CASE WHEN ",
            $is_started,
            " THEN j.attempt + 1 ELSE j.attempt END,
        session = CASE WHEN ",
            $is_started,
            " THEN ",
            $session,
            " ELSE j.session END,
        started_at = CASE WHEN ",
            $is_started,
            " THEN ",
            $now,
            " ELSE j.started_at END,
        deadline = CASE WHEN ",
            $is_started,
            " THEN ",
            $now,
            " + LEAST(j.timeout_ms, ",
            $timeout_max,
            ") ELSE j.deadline END"
        )
    };
}

/// The same as [`RELEASE_TASKS`], and what a claim would take is started. Answers are for [`read_started`].
pub(in crate::postgres) const START_TASKS: &str = concat!(
    "WITH ",
    leave!("$9::uuid"),
    ", told AS (
    ",
    tell_children!(
        concat!(children_in_the_run!(), ", leave, LATERAL (SELECT s.*, leave.*) AS w"),
        " AND (j.release > 3) = w.is_group",
        concat!("CASE WHEN ", may_be_started!("$10::bigint", "$12::smallint[]"), " THEN 3 ELSE 1 END"),
        concat!(
            ",",
            start!(
                concat!(
                    "j.release <= 1 AND j.failed_parents + w.failed = 0 AND j.open_parents <= w.completed + w.failed AND ",
                    may_be_started!("$10::bigint", "$12::smallint[]")
                ),
                "$9::uuid",
                "$10::bigint",
                "$11::bigint"
            )
        ),
        concat!(live_columns!(), ", j.release")
    ),
    "
)",
    count_in_runs!(),
    ask_for_looks!(wanted_runs!()),
    "
SELECT told.*, looked.looks FROM (SELECT count(*) FROM asked) AS looked (looks) LEFT JOIN told ON told.state IN (1, 3)"
);

/// The same where the counts decide about everybody ([`Place::counted`](tickwheel_core::workflow::Place)), all has gone well so far, and those that ended now have completed: nobody
/// has failed parents, and there is nothing to look at. The runs have counted before ([`COUNT_IN_RUNS`]). Answers those who wait on, too.
pub(in crate::postgres) const START_COUNTED: &str = concat!(
    "WITH ",
    leave!("$4::uuid"),
    "
UPDATE jobs AS j
    SET open_parents = GREATEST(j.open_parents - w.completed, 0),
        state = CASE WHEN j.open_parents > w.completed THEN j.state WHEN ",
    may_be_started!("$5::bigint", "$7::smallint[]"),
    " THEN 3 ELSE 1 END,
        due_at = CASE WHEN j.open_parents > w.completed THEN j.due_at ELSE GREATEST(j.execute_at, w.ended_at) END,",
    start!(
        concat!("j.open_parents <= w.completed AND ", may_be_started!("$5::bigint", "$7::smallint[]")),
        "$4::uuid",
        "$5::bigint",
        "$6::bigint"
    ),
    "
    FROM unnest($1::uuid[], $2::bigint[], $3::integer[]) AS s (child, ended_at, completed), leave, LATERAL (SELECT s.*, leave.*) AS w
    WHERE j.id = ANY (ARRAY[w.child]) AND j.state IN (0, 8)
    RETURNING ",
    live_columns!()
);

/// Takes so many jobs off the open ones of each run, all of which are said to have completed, and locks the runs by that. Answers whether something of them ever
/// ended other than well, and whether nothing but blocked jobs is open now.
pub(in crate::postgres) const COUNT_IN_RUNS: &str = "\
UPDATE workflow_runs AS r SET open = GREATEST(r.open - s.ended, 0)
FROM unnest($1::uuid[], $2::integer[]) AS s (run, ended)
WHERE r.id = ANY (ARRAY[s.run])
RETURNING r.spoiled, r.open <= r.blocked, r.id";

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

/// The answers to [`START_TASKS`].
pub(in crate::postgres) fn read_started(rows: &[Row]) -> StoreResult<Told> {
    let looks = rows.first().map_or(Ok(0), |row| column::<i64>(row, JOB_COLUMNS + 1))? > 0;
    Ok(Told { looks, ..read_moved(rows) })
}

/// The answers to [`START_COUNTED`]: those who neither run nor are scheduled wait on.
pub(in crate::postgres) fn read_moved(rows: &[Row]) -> Told {
    let has_moved = |row: &&Row| matches!(row.try_get::<_, Option<i16>>(6), Ok(Some(1 | 3)));
    let moved = rows.iter().filter(has_moved);
    let (started, scheduled): (Vec<Job>, Vec<Job>) =
        read_sound_jobs(moved).into_iter().partition(|job| job.state == State::Running);
    let released = scheduled.iter().map(|job| (Scheduled::from(job), None)).collect();
    Told { released, started, looks: false }
}

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

    /// Tells them, if there are any, and starts those that may be.
    pub fn start<'a>(&'a self, start: &'a StartRows) -> Option<(&'static str, Vec<Param<'a>>)> {
        let params = self.params().into_iter().chain(start.params()).collect();
        (!self.children.is_empty()).then_some((START_TASKS, params))
    }

    /// The same if the counts decide about all of them.
    pub fn start_counted<'a>(&'a self, start: &'a StartRows) -> Option<(&'static str, Vec<Param<'a>>)> {
        let told: [Param<'_>; 3] = [&self.children, &self.ended_at, &self.completed];
        let params = told.into_iter().chain(start.params()).collect();
        (!self.children.is_empty()).then_some((START_COUNTED, params))
    }

    /// Counts in the runs alone, and locks them.
    pub fn count_in_runs(&self) -> (&'static str, Vec<Param<'_>>) {
        (COUNT_IN_RUNS, vec![&self.runs, &self.ended])
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

/// Leave to start tasks, as parameters.
pub(in crate::postgres) struct StartRows {
    session: Uuid,
    now: i64,
    timeout_max: i64,
    kinds: Vec<i16>,
}

impl StartRows {
    pub fn of(start: &StartTasks) -> Self {
        let now = start.now.as_millis();
        Self {
            session: start.session.as_uuid(),
            now,
            timeout_max: timeout_max(now),
            kinds: start.kinds.iter().map(|kind| kind.code()).collect(),
        }
    }

    fn params(&self) -> [Param<'_>; 4] {
        [&self.session, &self.now, &self.timeout_max, &self.kinds]
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
