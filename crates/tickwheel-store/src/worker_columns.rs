//! Between rows and the sessions of workers, and between rows and routes, for both stores.

use std::sync::Arc;

use tickwheel_core::matching::{ExecutorKind, Route, Skill};
use tickwheel_core::ports::{StoreError, StoreResult};
use tickwheel_core::worker::{WorkerProfile, WorkerSession};
use tickwheel_core::{RouteId, SessionId, Timestamp};
use uuid::Uuid;

use crate::error::corrupt;

/// What a worker said of itself, as text.
pub(crate) fn encode_profile(profile: &WorkerProfile) -> String {
    serde_json::to_string(profile).expect("a profile has only keys that are texts")
}

/// The columns of a worker's session.
pub(crate) struct WorkerRow<'r> {
    pub id: Uuid,
    pub profile: &'r str,
    pub opened_at: i64,
    pub expires_at: i64,
    pub draining: bool,
}

impl WorkerRow<'_> {
    pub fn decode(self) -> StoreResult<WorkerSession> {
        let profile: WorkerProfile =
            serde_json::from_str(self.profile).map_err(|error| corrupt("profile of a worker", error))?;
        Ok(WorkerSession {
            id: SessionId::from_uuid(self.id),
            profile: Arc::new(profile),
            opened_at: Timestamp::from_millis(self.opened_at),
            expires_at: Timestamp::from_millis(self.expires_at),
            draining: self.draining,
        })
    }
}

/// The columns of a route.
pub(crate) struct RouteRow<'r> {
    pub id: Uuid,
    pub queue: &'r str,
    /// Empty if its jobs need an executor and no handler.
    pub job_type: &'r str,
    pub executor: Option<i16>,
    pub requires: &'r str,
}

impl RouteRow<'_> {
    /// The route in a row. Its id says whether it is whole.
    pub fn decode(self) -> StoreResult<Route> {
        let requires = serde_json::from_str(self.requires).map_err(|error| corrupt("route", error))?;
        let skill = match self.executor {
            None => Skill::Handler(self.job_type.into()),
            Some(code) => {
                let kind = ExecutorKind::from_code(code);
                Skill::Executor(kind.ok_or_else(|| corrupt("route", format!("there is no executor {code}")))?)
            }
        };
        let route = Route::new(self.queue.into(), skill, requires);
        if route.id == RouteId::from_uuid(self.id) {
            Ok(route)
        } else {
            Err(StoreError::Corrupt(format!("route {} is not what its id says", self.id)))
        }
    }
}

/// What jobs of a route require, as text.
pub(crate) fn encode_requires(route: &Route) -> String {
    serde_json::to_string(&route.requires).expect("labels have only keys that are texts")
}

/// The type of a route's jobs and the number of their executor: one of them is empty.
pub(crate) fn encode_skill(route: &Route) -> (&str, Option<i16>) {
    match &route.skill {
        Skill::Handler(job_type) => (job_type, None),
        Skill::Executor(kind) => ("", Some(kind.code())),
    }
}
