//! Lists of jobs and dead letters.

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::store::{Page, StoreResult};
use crate::id::{JobId, RunId, ScheduleId};
use crate::job::{Job, Priority};
use crate::settle::DeadReason;
use crate::state::State;
use crate::time::Timestamp;

/// What a list carries of the jobs in it. Unless told otherwise, all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Projection {
    /// Their payloads; left out, each is `null`.
    pub payload: bool,
    /// Their results; left out, there is none.
    pub result: bool,
    /// A page ends, whatever its limit, when what it carries has this many bytes. Whatever comes first is in it,
    /// however large.
    pub bytes_max: usize,
}

impl Default for Projection {
    fn default() -> Self {
        Self { payload: true, result: true, bytes_max: usize::MAX }
    }
}

/// Which jobs to list, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobQuery {
    /// In one of these states; none: in any.
    pub states: BTreeSet<State>,
    /// Of this type.
    pub job_type: Option<String>,
    /// In this queue.
    pub queue: Option<String>,
    /// With all of these tags.
    pub tags: BTreeSet<String>,
    /// Of this priority.
    pub priority: Option<Priority>,
    /// Of this tenant.
    pub tenant: Option<String>,
    /// Made by this schedule.
    pub schedule_id: Option<ScheduleId>,
    /// A task of this run.
    pub run: Option<RunId>,
    /// Created at this moment or later.
    pub created_from: Option<Timestamp>,
    /// Created before this moment.
    pub created_before: Option<Timestamp>,
    /// Older than this job.
    pub after: Option<JobId>,
    /// This many at the most.
    pub limit: usize,
    /// What of them.
    pub projection: Projection,
}

/// A job that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The job, as it ended.
    pub job: Job,
    /// When it was given up.
    pub failed_at: Timestamp,
    /// Why there was no other attempt.
    pub reason: DeadReason,
}

impl DeadLetter {
    /// Its place in the list.
    pub const fn cursor(&self) -> DeadLetterCursor {
        DeadLetterCursor { failed_at: self.failed_at, id: self.job.id }
    }
}

/// A place in the list of dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLetterCursor {
    /// When it was given up.
    pub failed_at: Timestamp,
    /// Which job.
    pub id: JobId,
}

/// Which dead letters to list, the latest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadLetterQuery {
    /// Of this type.
    pub job_type: Option<String>,
    /// Of this queue.
    pub queue: Option<String>,
    /// After this place.
    pub after: Option<DeadLetterCursor>,
    /// This many at the most.
    pub limit: usize,
    /// What of their jobs.
    pub projection: Projection,
}

/// Reads for people: nothing here is on the hot path.
#[async_trait]
pub trait QueryStore: Send + Sync {
    /// Jobs, live and finished, newest first. MUST do bounded work a call: a page may be short and still have a next.
    /// MUST NOT read what is wide of more jobs than the page has, nor what its [`Projection`] leaves out.
    async fn list_jobs(&self, query: JobQuery) -> StoreResult<Page<Job, JobId>>;

    /// Dead letters, the latest first. The same holds.
    async fn list_dead_letters(
        &self,
        query: DeadLetterQuery,
    ) -> StoreResult<Page<DeadLetter, DeadLetterCursor>>;

    /// One dead letter.
    async fn get_dead_letter(&self, id: JobId) -> StoreResult<Option<DeadLetter>>;

    /// How many dead letters there are.
    async fn count_dead_letters(&self) -> StoreResult<u64>;

    /// How many a query would find on all its pages.
    async fn count_dead_letters_like(&self, query: DeadLetterQuery) -> StoreResult<u64>;
}
