//! Workers: processes elsewhere that ask for jobs. What one said of itself, and the session it has.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::id::SessionId;
use crate::matching::{ExecutorKind, Labels, Offer, Route, Skill};
use crate::time::Timestamp;

/// The shortest lease of a worker.
pub const LEASE_MIN: Duration = Duration::from_secs(5);
/// The longest lease of a worker.
pub const LEASE_MAX: Duration = Duration::from_secs(600);

/// What a worker said of itself when it registered. The stores keep it as one document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerProfile {
    /// A name for people.
    pub name: String,
    /// The queues that it serves.
    pub queues: Vec<Arc<str>>,
    /// The types that it has a handler for.
    pub types: Vec<Arc<str>>,
    /// The built-in executors that it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub executors: Vec<ExecutorKind>,
    /// What it offers to jobs that require something.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// How many jobs it runs at once.
    pub capacity: u32,
    /// How long its jobs stay its own when it falls silent, in milliseconds.
    pub lease_ms: u64,
    /// The library it is written with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// The machine it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Its process id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

impl WorkerProfile {
    /// What it can run.
    pub fn offer(&self) -> Offer {
        Offer::new(self.queues.clone(), self.types.clone(), self.labels.clone())
            .with_executors(self.executors.clone())
    }

    /// Whether it has what jobs of this route need, wherever they wait and whatever else they require.
    pub fn has(&self, skill: &Skill) -> bool {
        match skill {
            Skill::Handler(job_type) => self.types.contains(job_type),
            Skill::Executor(kind) => self.executors.contains(kind),
        }
    }

    /// Whether it can run jobs of this route.
    pub fn serves(&self, route: &Route) -> bool {
        self.offer().serves(route)
    }

    /// How long its jobs stay its own when it falls silent.
    pub const fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms)
    }

    /// How often it should be heard of.
    pub fn heartbeat_interval(&self) -> Duration {
        self.lease() / 3
    }
}

/// A worker that registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewWorker {
    /// The id of its session, if it has none yet.
    pub id: SessionId,
    /// What it calls its process. Registering again with the same one is the same session.
    pub instance: Option<Uuid>,
    /// What it said of itself.
    pub profile: Arc<WorkerProfile>,
}

/// The session of a worker: one lease for all that it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerSession {
    /// Its id.
    pub id: SessionId,
    /// What the worker said of itself.
    pub profile: Arc<WorkerProfile>,
    /// When it registered.
    pub opened_at: Timestamp,
    /// When its lease ends unless it is heard of.
    pub expires_at: Timestamp,
    /// Somebody wants it to take nothing new.
    pub draining: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_read_back_as_it_was_written() {
        let profile = WorkerProfile {
            name: "mailer".into(),
            queues: vec!["mail".into()],
            types: vec!["send".into()],
            executors: vec![ExecutorKind::Http],
            labels: Labels::from([("gpu".into(), crate::matching::Label::Flag(true))]),
            capacity: 20,
            lease_ms: 15_000,
            library: Some("rust/0.1.0".into()),
            host: None,
            pid: Some(7),
        };
        let text = serde_json::to_string(&profile).unwrap();
        assert_eq!(serde_json::from_str::<WorkerProfile>(&text).unwrap(), profile);
        assert_eq!(profile.heartbeat_interval(), Duration::from_secs(5));
        assert!(profile.serves(&Route::of_type("mail", "send")));
        assert!(!profile.serves(&Route::of_type("mail", "other")));
    }
}
