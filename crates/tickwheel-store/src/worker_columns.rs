//! Between rows and the sessions of workers, and between rows and routes, for both stores.

use std::sync::Arc;

use tickwheel_core::matching::Route;
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

/// What jobs of a route require, as text.
pub(crate) fn encode_requires(route: &Route) -> String {
    serde_json::to_string(&route.requires).expect("labels have only keys that are texts")
}

/// The route in a row. Its id says whether it is whole.
pub(crate) fn decode_route(id: Uuid, queue: &str, job_type: &str, requires: &str) -> StoreResult<Route> {
    let requires = serde_json::from_str(requires).map_err(|error| corrupt("route", error))?;
    let route = Route::new(queue.into(), job_type.into(), requires);
    if route.id == RouteId::from_uuid(id) {
        Ok(route)
    } else {
        Err(StoreError::Corrupt(format!("route {id} is not what its id says")))
    }
}
