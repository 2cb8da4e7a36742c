//! What the end-to-end tests share. Each behaviour is one function of a [`StoreKind`], stamped for both stores: what a
//! user sees must not depend on where the jobs are kept.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::{Answer, Api, http_job, text};
use crate::eventually::{PATIENCE, eventually};
use crate::server::{Server, StoreKind};
use crate::target::Target;

/// How late something may be on a busy machine and still count as punctual.
pub const LATENESS_MAX: Duration = Duration::from_millis(1_500);

/// Makes a test for each store of each behaviour.
macro_rules! on_both_stores {
    ($($behaviour:ident,)+) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $behaviour() {
                super::$behaviour(crate::server::StoreKind::Sqlite).await;
            })+
        }

        mod postgres {
            $(#[tokio::test]
            async fn $behaviour() {
                super::$behaviour(crate::server::StoreKind::Postgres).await;
            })+
        }
    };
}
pub(crate) use on_both_stores;

/// A server, a target for its jobs, and a client: what most behaviours need.
pub struct Stage {
    /// The server.
    pub server: Server,
    /// What its jobs call.
    pub target: Target,
    /// A client of the server.
    pub api: Api,
}

impl Stage {
    /// With nothing out of the ordinary.
    pub async fn set(kind: StoreKind) -> Self {
        Self::on(Server::start(kind).await).await
    }

    /// With one place to run jobs: what is due waits in line.
    pub async fn with_one_slot(kind: StoreKind) -> Self {
        Self::on(Server::builder(kind).env("TICKWHEEL_ENGINE_SLOTS", "1").start().await).await
    }

    /// Around this server.
    pub async fn on(server: Server) -> Self {
        let api = server.api();
        Self { server, target: Target::start().await, api }
    }

    /// A job that calls `path` of the target, changed by `fields`.
    pub fn job(&self, path: &str, fields: Value) -> Value {
        with(http_job(&self.target.url(path)), fields)
    }

    /// Submits such a job; its id.
    pub async fn submit(&self, path: &str, fields: Value) -> String {
        let job = self.api.submit(&self.job(path, fields)).await;
        text(&job, "id").to_owned()
    }

    /// Kills the server and starts it again on its data.
    pub async fn restart(&mut self) {
        self.server.restart().await;
        self.api = self.server.api();
    }

    /// Does `verb` to a job.
    pub async fn act(&self, id: &str, verb: &str) -> Answer {
        self.api.act(&format!("/api/v1/jobs/{id}/{verb}")).await
    }

    /// The job, once it is as `status` says.
    pub async fn until(&self, id: &str, status: &str) -> Value {
        self.until_job(id, &format!("to be {status}"), |job| job["status"] == status).await
    }

    /// The job, once it waits for a retry after `attempt` attempts.
    pub async fn until_backoff(&self, id: &str, attempt: u32) -> Value {
        let waits = move |job: &Value| job["status"] == "scheduled" && job["attempt"] == attempt;
        self.until_job(id, &format!("to wait after attempt {attempt}"), waits).await
    }

    async fn until_job(&self, id: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let what = format!("job {id} {what}");
        eventually(&what, PATIENCE, async || Some(self.api.job(id).await).filter(&holds)).await
    }

    /// Why a job is not running.
    pub async fn why(&self, id: &str) -> Value {
        self.api.get(&format!("/api/v1/jobs/{id}/why")).await.expect(200).json()
    }

    /// Returns once the 202 of a job's target is on record.
    pub async fn awaits_report(&self, id: &str) {
        let waits = async || Some(self.why(id).await).filter(|why| why["code"] == "awaiting_report");
        eventually("the 202 to be on record", PATIENCE, waits).await;
    }

    /// The dead letter of a job.
    pub async fn dead_letter(&self, id: &str) -> Answer {
        self.api.get(&format!("/api/v1/dead-letters/{id}")).await
    }
}

/// `base` with the members of `fields` in place of its own.
pub fn with(mut base: Value, fields: Value) -> Value {
    let (Some(members), Value::Object(fields)) = (base.as_object_mut(), fields) else {
        panic!("only objects have members")
    };
    members.extend(fields);
    base
}

/// A retry policy without jitter that tries again at once, a little later each time.
pub fn quick_retries(max_retries: u32) -> Value {
    json!({"max_retries": max_retries, "backoff": "fixed", "initial_delay": "1ms", "jitter": 0})
}

/// The milliseconds from `from` to `to`.
pub fn millis_between(from: Timestamp, to: Timestamp) -> i64 {
    to.duration_since(from).as_millis().try_into().expect("not ages apart")
}

/// Waits until the clock that the server has too is past `moment`.
pub async fn until_past(moment: Timestamp) {
    eventually("a moment to pass", PATIENCE, async || (Timestamp::now() > moment).then_some(())).await;
}

/// Looks at something that must not change for a while: the only way to see that nothing happens.
pub async fn for_a_while(mut look: impl AsyncFnMut()) {
    const WHILE: Duration = Duration::from_millis(300);
    let began = Instant::now();
    while began.elapsed() < WHILE {
        look().await;
        // sleep: the pause between two looks
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
