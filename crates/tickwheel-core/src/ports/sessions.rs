//! Sessions in the store: who runs jobs, and until when they are trusted to be alive.

use std::time::Duration;

use async_trait::async_trait;

use super::store::StoreResult;
use crate::id::SessionId;
use crate::job::Job;
use crate::time::Timestamp;

/// A process that runs jobs, and until when it is trusted to be alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// A name for people.
    pub node: String,
    /// When its lease ends unless renewed.
    pub expires_at: Timestamp,
}

/// Which running jobs nobody takes care of any more.
#[derive(Clone, Copy, Debug)]
pub struct FindAbandoned {
    /// The time.
    pub now: Timestamp,
    /// How long past its deadline a running attempt counts as abandoned.
    pub grace: Duration,
    /// This many at the most.
    pub limit: usize,
}

/// Sessions and their leases.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// What time it is for everybody who shares this store: leases are written and judged by it. A store that several
    /// processes share MUST answer by a clock of its own, for theirs may differ; others answer `ours`.
    async fn now(&self, ours: Timestamp) -> StoreResult<Timestamp> {
        Ok(ours)
    }

    /// Makes a session known. It MUST be fresh.
    async fn open_session(&self, session: Session) -> StoreResult<()>;

    /// Prolongs a session's lease. `false`: it has ended, and so has the right to its jobs.
    async fn renew_session(&self, id: SessionId, expires_at: Timestamp) -> StoreResult<bool>;

    /// Ends a session; its attempts, if any are left, are abandoned.
    async fn end_session(&self, id: SessionId) -> StoreResult<()>;

    /// Ends every session whose lease is over or whose process is known to be dead, except `own`; says which. Of a
    /// worker's process nobody knows that it is dead: only its lease counts.
    async fn expire_sessions(&self, own: SessionId, now: Timestamp) -> StoreResult<Vec<SessionId>>;

    /// Running jobs whose session has ended, or whose deadline passed more than the grace ago.
    async fn find_abandoned(&self, find: FindAbandoned) -> StoreResult<Vec<Job>>;
}
