//! How a list of jobs goes through one table: along the index that leaves the least to look at, for so many rows and no
//! further.
//!
//! What is examined is a subquery with a limit of its own, which the planner cannot see through: rows are looked at
//! from the newest down, filtered, and the statement stops at a full page or at the bound. Where the bound was is asked
//! only when a page is not full.

use std::collections::BTreeSet;

use const_format::{concatcp, formatcp};
use tickwheel_core::State;
use tickwheel_core::ports::JobQuery;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::pipeline::Param;
use super::row::{FINISHED_COLUMNS, LIVE_COLUMNS, limit, listed};
use crate::codes::COMPLETED;
use crate::columns::ids_of;

/// A page. Parameters: 1 from id, 2 before id, 3 states, 4 type, 5 queue, 6 priority, 7 tenant, 8 rows found, 9 rows
/// examined, 10 schedule, 11 bytes, 12 whether with payloads, 13 whether with results, 14 tags, and 15 the key in the
/// index if it has one.
macro_rules! page {
    ($columns:expr, $examined:expr) => {
        listed!(
            concatcp!(
                "SELECT ",
                $columns,
                " FROM ",
                $examined,
                "
WHERE ($3::smallint[] IS NULL OR j.state = ANY ($3))
  AND ($4::text IS NULL OR j.type = $4)
  AND ($5::text IS NULL OR j.queue = $5)
  AND ($6::smallint IS NULL OR j.priority = $6)
  AND ($7::text IS NULL OR j.tenant = $7)
  AND ($10::uuid IS NULL OR j.schedule_id = $10)
  AND ($14::text[] IS NULL
       OR (SELECT count(*) FROM job_tags WHERE job_id = j.id AND tag = ANY ($14)) = cardinality($14))
ORDER BY j.id DESC LIMIT $8::bigint"
            ),
            "",
            "id DESC",
            payload "$12",
            result "$13",
            bytes "$11"
        )
    };
}

/// One table along one index: the statement for a page, and the one for the last row it examines if it gets that far
/// (parameters: 1 from id, 2 before id, 3 rows examined, 4 the key).
#[derive(Debug)]
pub(super) struct Walk {
    pub page: &'static str,
    pub bound: &'static str,
}

const BOUND_BY_TAG: &str = "\
SELECT job_id FROM job_tags WHERE job_id >= $1::uuid AND job_id < $2::uuid AND tag = $4::text
ORDER BY job_id DESC OFFSET $3::bigint - 1 LIMIT 1";

const LIVE: Walk = Walk {
    page: page!(
        LIVE_COLUMNS,
        "(SELECT * FROM jobs WHERE id >= $1::uuid AND id < $2::uuid ORDER BY id DESC LIMIT $9::bigint) AS j"
    ),
    bound: "\
SELECT id FROM jobs WHERE id >= $1::uuid AND id < $2::uuid
ORDER BY id DESC OFFSET $3::bigint - 1 LIMIT 1",
};

const LIVE_BY_TAG: Walk = Walk {
    page: page!(
        LIVE_COLUMNS,
        "(SELECT job_id FROM job_tags WHERE job_id >= $1::uuid AND job_id < $2::uuid AND tag = $15::text \
          ORDER BY job_id DESC LIMIT $9::bigint) AS t JOIN jobs AS j ON j.id = t.job_id"
    ),
    bound: BOUND_BY_TAG,
};

const FINISHED: Walk = Walk {
    page: page!(
        FINISHED_COLUMNS,
        "(SELECT * FROM finished_jobs WHERE id >= $1::uuid AND id < $2::uuid ORDER BY id DESC LIMIT $9::bigint) AS j"
    ),
    bound: "\
SELECT id FROM finished_jobs WHERE id >= $1::uuid AND id < $2::uuid
ORDER BY id DESC OFFSET $3::bigint - 1 LIMIT 1",
};

const FINISHED_BY_TAG: Walk = Walk {
    page: page!(
        FINISHED_COLUMNS,
        "(SELECT job_id FROM job_tags WHERE job_id >= $1::uuid AND job_id < $2::uuid AND tag = $15::text \
          ORDER BY job_id DESC LIMIT $9::bigint) AS t JOIN finished_jobs AS j ON j.id = t.job_id"
    ),
    bound: BOUND_BY_TAG,
};

const FINISHED_BY_TYPE: Walk = Walk {
    page: page!(
        FINISHED_COLUMNS,
        "(SELECT * FROM finished_jobs WHERE id >= $1::uuid AND id < $2::uuid AND type = $15::text \
          ORDER BY id DESC LIMIT $9::bigint) AS j"
    ),
    bound: "\
SELECT id FROM finished_jobs WHERE id >= $1::uuid AND id < $2::uuid AND type = $4::text
ORDER BY id DESC OFFSET $3::bigint - 1 LIMIT 1",
};

// That it is not completed is what makes the partial index usable, whatever the planner knows of the parameter.
const FINISHED_BY_STATE: Walk = Walk {
    page: page!(
        FINISHED_COLUMNS,
        formatcp!(
            "(SELECT * FROM finished_jobs WHERE id >= $1::uuid AND id < $2::uuid AND state = $15::smallint \
              AND state <> {COMPLETED} ORDER BY id DESC LIMIT $9::bigint) AS j"
        )
    ),
    bound: formatcp!(
        "\
SELECT id FROM finished_jobs WHERE id >= $1::uuid AND id < $2::uuid AND state = $4::smallint AND state <> {COMPLETED}
ORDER BY id DESC OFFSET $3::bigint - 1 LIMIT 1"
    ),
};

const LIVE_BY_SCHEDULE: Walk = Walk {
    page: page!(
        LIVE_COLUMNS,
        "(SELECT * FROM jobs WHERE id >= $1::uuid AND id < $2::uuid AND schedule_id = $15::uuid \
          ORDER BY schedule_id DESC, id DESC LIMIT $9::bigint) AS j"
    ),
    bound: "\
SELECT id FROM jobs WHERE id >= $1::uuid AND id < $2::uuid AND schedule_id = $4::uuid
ORDER BY schedule_id DESC, id DESC OFFSET $3::bigint - 1 LIMIT 1",
};

const FINISHED_BY_SCHEDULE: Walk = Walk {
    page: page!(
        FINISHED_COLUMNS,
        "(SELECT * FROM finished_jobs WHERE id >= $1::uuid AND id < $2::uuid AND schedule_id = $15::uuid \
          ORDER BY schedule_id DESC, id DESC LIMIT $9::bigint) AS j"
    ),
    bound: "\
SELECT id FROM finished_jobs WHERE id >= $1::uuid AND id < $2::uuid AND schedule_id = $4::uuid
ORDER BY schedule_id DESC, id DESC OFFSET $3::bigint - 1 LIMIT 1",
};

#[cfg(test)]
pub(super) const WALKS: &[Walk] = &[
    LIVE,
    LIVE_BY_TAG,
    LIVE_BY_SCHEDULE,
    FINISHED,
    FINISHED_BY_TAG,
    FINISHED_BY_TYPE,
    FINISHED_BY_STATE,
    FINISHED_BY_SCHEDULE,
];

/// What is asked for, as the walks' parameters.
#[derive(Debug)]
pub(super) struct Question<'q> {
    from: Uuid,
    before: Uuid,
    states: Option<Vec<i16>>,
    job_type: Option<&'q str>,
    queue: Option<&'q str>,
    priority: Option<i16>,
    tenant: Option<&'q str>,
    /// The one to go along,
    tag: Option<&'q str>,
    /// and the others.
    other_tags: Option<Vec<&'q str>>,
    schedule: Option<Uuid>,
    found_max: i64,
    examined_max: i64,
    bytes_max: i64,
    payload: bool,
    result: bool,
}

impl<'q> Question<'q> {
    /// Asks for one row more than the page takes: it tells whether there is a next one.
    pub fn new(query: &'q JobQuery, examined_max: usize) -> Self {
        let wanted = ids_of(query);
        Self {
            from: wanted.start.as_uuid(),
            before: wanted.end.as_uuid(),
            states: some(query.states.iter().map(|state| state.code()).collect()),
            job_type: query.job_type.as_deref(),
            queue: query.queue.as_deref(),
            priority: query.priority.map(|priority| priority.code()),
            tenant: query.tenant.as_deref(),
            tag: query.tags.first().map(String::as_str),
            other_tags: some(query.tags.iter().skip(1).map(String::as_str).collect()),
            schedule: query.schedule_id.map(|schedule| schedule.as_uuid()),
            found_max: limit(query.limit.saturating_add(1)),
            examined_max: limit(examined_max),
            bytes_max: limit(query.projection.bytes_max),
            payload: query.projection.payload,
            result: query.projection.result,
        }
    }

    pub fn page_params<'a>(&'a self, planned: &'a Planned<'q>) -> Vec<Param<'a>> {
        let params: [Param<'a>; 14] = [
            &self.from,
            &self.before,
            &self.states,
            &self.job_type,
            &self.queue,
            &self.priority,
            &self.tenant,
            &self.found_max,
            &self.examined_max,
            &self.schedule,
            &self.bytes_max,
            &self.payload,
            &self.result,
            &self.other_tags,
        ];
        params.into_iter().chain(planned.key.param()).collect()
    }

    pub fn bound_params<'a>(&'a self, planned: &'a Planned<'q>) -> Vec<Param<'a>> {
        let params: [Param<'a>; 3] = [&self.from, &self.before, &self.examined_max];
        params.into_iter().chain(planned.key.param()).collect()
    }

    /// The walks that together see everything that could be meant.
    pub fn plan(&self, states: &BTreeSet<State>) -> Vec<Planned<'q>> {
        let any = states.is_empty();
        let mut walks = Vec::new();
        if any || states.iter().any(|state| !state.is_terminal()) {
            walks.push(self.plan_live());
        }
        if any || states.iter().any(|state| state.is_terminal()) {
            walks.extend(self.plan_finished(states));
        }
        walks
    }

    fn plan_live(&self) -> Planned<'q> {
        match (self.tag, self.schedule) {
            (Some(tag), _) => Planned { walk: LIVE_BY_TAG, key: Key::Text(tag) },
            (None, Some(schedule)) => Planned { walk: LIVE_BY_SCHEDULE, key: Key::Schedule(schedule) },
            (None, None) => Planned { walk: LIVE, key: Key::None },
        }
    }

    /// A walk for each of the states that are rare, or one for all.
    fn plan_finished(&self, states: &BTreeSet<State>) -> Vec<Planned<'q>> {
        let ended = || states.iter().copied().filter(|state| state.is_terminal());
        let only_rare = !states.is_empty() && ended().all(|state| state != State::Completed);
        let one = |walk, key| vec![Planned { walk, key }];
        match (self.tag, self.schedule, self.job_type) {
            (Some(tag), ..) => one(FINISHED_BY_TAG, Key::Text(tag)),
            (None, Some(schedule), _) => one(FINISHED_BY_SCHEDULE, Key::Schedule(schedule)),
            (None, None, _) if only_rare => {
                let of = |rare: State| Planned { walk: FINISHED_BY_STATE, key: Key::State(rare.code()) };
                ended().map(of).collect()
            }
            (None, None, Some(job_type)) => one(FINISHED_BY_TYPE, Key::Text(job_type)),
            (None, None, None) => one(FINISHED, Key::None),
        }
    }
}

/// A list that says something, or nothing at all.
fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    Some(list).filter(|list| !list.is_empty())
}

/// A walk and where in its index.
#[derive(Debug)]
pub(super) struct Planned<'q> {
    pub walk: Walk,
    key: Key<'q>,
}

#[derive(Debug)]
enum Key<'q> {
    None,
    Text(&'q str),
    State(i16),
    Schedule(Uuid),
}

impl Key<'_> {
    fn param(&self) -> Option<Param<'_>> {
        match self {
            Self::None => None,
            Self::Text(text) => Some(text as &(dyn ToSql + Sync)),
            Self::State(code) => Some(code),
            Self::Schedule(id) => Some(id),
        }
    }
}
