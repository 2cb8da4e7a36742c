//! Going through jobs newest first, along one index, without doing more than a bounded amount of work.
//!
//! A walk looks at narrow columns only and counts every row it looks at. When it has seen too many, it stops and says
//! how far it came: everything from there on up has been seen.

use const_format::{concatcp, formatcp};
use rusqlite::types::Value;
use rusqlite::{CachedStatement, Connection, Row, Rows, params_from_iter};
use tickwheel_core::ports::JobQuery;
use tickwheel_core::{JobId, ScheduleId, State};
use uuid::Uuid;

use super::fault::Verb;
use super::row::is_text;
use crate::codes::COMPLETED;
use crate::columns::ids_of;

/// So many rows are looked at for a page, along one path.
pub(super) const EXAMINED_MAX: usize = 20_000;

/// The rows of a tag, with one more column if `$more` says so.
macro_rules! tagged_sql {
    ($more:literal) => {
        concat!(
            "SELECT t.job_id, coalesce(j.tenant, f.tenant), coalesce(j.type, f.type), coalesce(j.queue, f.queue),
                 coalesce(j.priority, f.priority), coalesce(j.state, f.state)",
            $more,
            " FROM job_tags t LEFT JOIN jobs j ON j.id = t.job_id LEFT JOIN finished_jobs f ON f.id = t.job_id
             WHERE t.tag = ?3 AND t.job_id < ?1 AND t.job_id >= ?2 ORDER BY t.job_id DESC"
        )
    };
}

macro_rules! walk_sql {
    ($from:expr) => {
        concatcp!(
            "SELECT id, tenant, type, queue, priority, state FROM ",
            $from,
            " AND id < ?1 AND id >= ?2 ORDER BY id DESC"
        )
    };
}

/// An index to go along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path<'query> {
    /// All live jobs.
    Live,
    /// All of history.
    Finished,
    /// History of one type.
    FinishedOfType(&'query str),
    /// What failed, or what was cancelled.
    EndedBadly(State),
    /// Live jobs that a schedule made.
    LiveOfSchedule(ScheduleId),
    /// History of what a schedule made.
    FinishedOfSchedule(ScheduleId),
    /// Live and finished jobs with a tag.
    Tagged(&'query str),
    /// The same, when it matters which schedule made them: that column lies behind the wide ones, so others do without.
    TaggedOfSomeSchedule(&'query str),
}

impl<'query> Path<'query> {
    /// The paths that together meet every job the query could want, each the shortest there is.
    pub fn choose(query: &'query JobQuery) -> Vec<Self> {
        // Along one of the tags; whether a job has the others too is looked up when it is found.
        match (query.tags.first(), query.schedule_id) {
            (Some(tag), None) => return vec![Self::Tagged(tag)],
            (Some(tag), Some(_)) => return vec![Self::TaggedOfSomeSchedule(tag)],
            _ => {}
        }
        let any = query.states.is_empty();
        let live = any || query.states.iter().any(|state| !state.is_terminal());
        let finished = any || query.states.iter().any(|state| state.is_terminal());
        let mut paths = Vec::new();
        if live {
            paths.push(query.schedule_id.map_or(Self::Live, Self::LiveOfSchedule));
        }
        if finished {
            paths.extend(Self::choose_finished(query));
        }
        paths
    }

    fn choose_finished(query: &'query JobQuery) -> Vec<Self> {
        let ended = || query.states.iter().copied().filter(|state| state.is_terminal());
        let only_badly = !query.states.is_empty() && ended().all(|state| state != State::Completed);
        match (query.schedule_id, &query.job_type) {
            (Some(schedule), _) => vec![Self::FinishedOfSchedule(schedule)],
            (None, _) if only_badly => ended().map(Self::EndedBadly).collect(),
            (None, Some(job_type)) => vec![Self::FinishedOfType(job_type)],
            (None, None) => vec![Self::Finished],
        }
    }

    /// The statement that goes along it.
    pub fn prepare<'c>(&self, connection: &'c Connection) -> Verb<CachedStatement<'c>> {
        Ok(connection.prepare_cached(match self {
            Self::Live => walk_sql!("jobs WHERE TRUE"),
            Self::Finished => walk_sql!("finished_jobs WHERE TRUE"),
            Self::FinishedOfType(_) => {
                walk_sql!("finished_jobs INDEXED BY finished_jobs_type WHERE type = ?3")
            }
            Self::EndedBadly(_) => {
                walk_sql!(formatcp!(
                    "finished_jobs INDEXED BY finished_jobs_state WHERE state <> {COMPLETED} AND state = ?3"
                ))
            }
            Self::LiveOfSchedule(_) => walk_sql!("jobs INDEXED BY jobs_schedule WHERE schedule_id = ?3"),
            Self::FinishedOfSchedule(_) => {
                walk_sql!("finished_jobs INDEXED BY finished_jobs_schedule WHERE schedule_id = ?3")
            }
            Self::Tagged(_) => tagged_sql!(""),
            Self::TaggedOfSomeSchedule(_) => tagged_sql!(", coalesce(j.schedule_id, f.schedule_id)"),
        })?)
    }

    fn key(&self) -> Option<Value> {
        match self {
            Self::Live | Self::Finished => None,
            Self::FinishedOfType(text) | Self::Tagged(text) | Self::TaggedOfSomeSchedule(text) => {
                Some(Value::Text((*text).to_owned()))
            }
            Self::LiveOfSchedule(id) | Self::FinishedOfSchedule(id) => Some(blob(id.as_uuid())),
            Self::EndedBadly(state) => Some(Value::Integer(state.code().into())),
        }
    }
}

/// Where a walk stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WalkPosition {
    /// At a job that matches.
    Match(JobId),
    /// It stopped for having seen enough; this was the last job it saw.
    Tired(JobId),
    /// There is no further job.
    End,
}

impl WalkPosition {
    /// The job it is at.
    pub const fn job_id(self) -> Option<JobId> {
        match self {
            Self::Match(id) | Self::Tired(id) => Some(id),
            Self::End => None,
        }
    }
}

/// A walk under way.
pub(super) struct Walk<'stmt> {
    rows: Rows<'stmt>,
    examined: usize,
    position: WalkPosition,
}

impl<'stmt> Walk<'stmt> {
    /// Goes to the first match.
    pub fn start(path: &Path<'_>, statement: &'stmt mut CachedStatement<'_>, query: &JobQuery) -> Verb<Self> {
        let wanted = ids_of(query);
        let bounds = [wanted.end, wanted.start].map(|id| blob(id.as_uuid()));
        let rows = statement.query(params_from_iter(bounds.into_iter().chain(path.key())))?;
        let mut walk = Self { rows, examined: 0, position: WalkPosition::End };
        walk.go_on(query)?;
        Ok(walk)
    }

    /// Where it stands.
    pub const fn position(&self) -> WalkPosition {
        self.position
    }

    /// Goes to the next match.
    pub fn go_on(&mut self, query: &JobQuery) -> Verb<()> {
        self.position = WalkPosition::End;
        while let Some(row) = self.rows.next()? {
            self.examined += 1;
            let id = JobId::from_uuid(row.get::<_, Uuid>(0)?);
            if matches(row, query)? {
                self.position = WalkPosition::Match(id);
                break;
            }
            if self.examined >= EXAMINED_MAX {
                self.position = WalkPosition::Tired(id);
                break;
            }
        }
        Ok(())
    }
}

fn blob(id: Uuid) -> Value {
    Value::Blob(id.into_bytes().to_vec())
}

fn matches(row: &Row<'_>, query: &JobQuery) -> Verb<bool> {
    Ok(is_text(row, 1, query.tenant.as_deref())?
        && is_text(row, 2, query.job_type.as_deref())?
        && is_text(row, 3, query.queue.as_deref())?
        && is_number(row, 4, query.priority.map(|priority| priority.code()))?
        && is_in_state(row, 5, query)?
        && is_made_by(row, query)?)
}

/// Where the path does not see to it, there is a column that tells.
fn is_made_by(row: &Row<'_>, query: &JobQuery) -> Verb<bool> {
    match (query.schedule_id, query.tags.first()) {
        (Some(wanted), Some(_)) => Ok(row.get::<_, Option<Uuid>>(6)? == Some(wanted.as_uuid())),
        _ => Ok(true),
    }
}

fn is_in_state(row: &Row<'_>, column: usize, query: &JobQuery) -> Verb<bool> {
    if query.states.is_empty() {
        return Ok(true);
    }
    let found = row.get_ref(column)?.as_i64_or_null()?;
    Ok(query.states.iter().any(|state| found == Some(state.code().into())))
}

fn is_number(row: &Row<'_>, column: usize, wanted: Option<i16>) -> Verb<bool> {
    match wanted {
        None => Ok(true),
        Some(wanted) => Ok(row.get_ref(column)?.as_i64_or_null()? == Some(wanted.into())),
    }
}
