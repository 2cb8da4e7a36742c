//! Going through jobs newest first, along one index, without doing more than a bounded amount of work.
//!
//! A walk looks at narrow columns only and counts every row it looks at. When it has seen too many, it stops and says how far it
//! came: everything from there on up has been seen.

use rusqlite::types::Value;
use rusqlite::{CachedStatement, Connection, Row, Rows, params_from_iter};
use tickwheel_core::ports::JobQuery;
use tickwheel_core::{JobId, State};
use uuid::Uuid;

use super::fault::Verb;
use super::row::is_text;

/// So many rows are looked at for a page, along one path.
pub(super) const EXAMINED_MAX: usize = 20_000;

macro_rules! walk_sql {
    ($from:literal) => {
        concat!(
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
    /// Live and finished jobs with a tag.
    Tagged(&'query str),
}

impl<'query> Path<'query> {
    /// The paths that together meet every job the query could want, each the shortest there is.
    pub fn choose(query: &'query JobQuery) -> Vec<Self> {
        if let Some(tag) = &query.tag {
            return vec![Self::Tagged(tag)];
        }
        let finished = query.job_type.as_deref().map_or(Self::Finished, Self::FinishedOfType);
        match query.state {
            None => vec![Self::Live, finished],
            Some(State::Completed) => vec![finished],
            Some(state) if state.is_terminal() => vec![Self::EndedBadly(state)],
            Some(_) => vec![Self::Live],
        }
    }

    /// The statement that goes along it.
    pub fn prepare<'c>(&self, connection: &'c Connection) -> Verb<CachedStatement<'c>> {
        Ok(connection.prepare_cached(match self {
            Self::Live => walk_sql!("jobs WHERE TRUE"),
            Self::Finished => walk_sql!("finished_jobs WHERE TRUE"),
            Self::FinishedOfType(_) => walk_sql!("finished_jobs INDEXED BY finished_jobs_type WHERE type = ?3"),
            Self::EndedBadly(_) => {
                walk_sql!("finished_jobs INDEXED BY finished_jobs_state WHERE state <> 4 AND state = ?3")
            }
            Self::Tagged(_) => {
                "SELECT t.job_id, coalesce(j.tenant, f.tenant), coalesce(j.type, f.type), coalesce(j.queue, f.queue),
                     coalesce(j.priority, f.priority), coalesce(j.state, f.state)
                 FROM job_tags t LEFT JOIN jobs j ON j.id = t.job_id LEFT JOIN finished_jobs f ON f.id = t.job_id
                 WHERE t.tag = ?3 AND t.job_id < ?1 AND t.job_id >= ?2 ORDER BY t.job_id DESC"
            }
        })?)
    }

    fn key(&self) -> Option<Value> {
        match self {
            Self::Live | Self::Finished => None,
            Self::FinishedOfType(text) | Self::Tagged(text) => Some(Value::Text((*text).to_owned())),
            Self::EndedBadly(state) => Some(Value::Integer(state.code().into())),
        }
    }
}

/// Where a walk stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At a job that matches.
    Match(JobId),
    /// It stopped for having seen enough; this was the last job it saw.
    Tired(JobId),
    /// There is no further job.
    End,
}

impl Place {
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
    place: Place,
}

impl<'stmt> Walk<'stmt> {
    /// Goes to the first match.
    pub fn start(path: &Path<'_>, statement: &'stmt mut CachedStatement<'_>, query: &JobQuery) -> Verb<Self> {
        let bounds = [newest(query), oldest(query)].map(|id| Value::Blob(id.as_uuid().into_bytes().to_vec()));
        let rows = statement.query(params_from_iter(bounds.into_iter().chain(path.key())))?;
        let mut walk = Self { rows, examined: 0, place: Place::End };
        walk.go_on(query)?;
        Ok(walk)
    }

    /// Where it stands.
    pub const fn place(&self) -> Place {
        self.place
    }

    /// Goes to the next match.
    pub fn go_on(&mut self, query: &JobQuery) -> Verb<()> {
        self.place = Place::End;
        while let Some(row) = self.rows.next()? {
            self.examined += 1;
            let id = JobId::from_uuid(row.get::<_, Uuid>(0)?);
            if matches(row, query)? {
                self.place = Place::Match(id);
                break;
            }
            if self.examined >= EXAMINED_MAX {
                self.place = Place::Tired(id);
                break;
            }
        }
        Ok(())
    }
}

/// Every wanted job is older than this.
fn newest(query: &JobQuery) -> JobId {
    let created = query.created_before.map_or(JobId::LAST, JobId::first_at);
    query.after.map_or(created, |after| after.min(created))
}

/// No wanted job is older than this.
fn oldest(query: &JobQuery) -> JobId {
    query.created_from.map_or(JobId::FIRST, JobId::first_at)
}

fn matches(row: &Row<'_>, query: &JobQuery) -> Verb<bool> {
    Ok(is_text(row, 1, query.tenant.as_deref())?
        && is_text(row, 2, query.job_type.as_deref())?
        && is_text(row, 3, query.queue.as_deref())?
        && is_number(row, 4, query.priority.map(|priority| priority.code()))?
        && is_number(row, 5, query.state.map(|state| state.code()))?)
}

fn is_number(row: &Row<'_>, column: usize, wanted: Option<i16>) -> Verb<bool> {
    match wanted {
        None => Ok(true),
        Some(wanted) => Ok(row.get_ref(column)?.as_i64_or_null()? == Some(wanted.into())),
    }
}
