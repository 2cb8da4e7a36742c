//! Somebody who runs workflows and a schedule, pauses a queue and runs, and cancels jobs, while things happen to the
//! servers.
//!
//! Every request is repeated until it is answered. What was acknowledged is written down with its time, for nothing may
//! start in spite of it.

use http::Method;
use jiff::Timestamp;
use rand::RngExt as _;
use serde_json::{Value, json};

use super::load::{Desk, LANE};
use crate::api::{Answer, http_job, id_of};
use crate::checker::{Pause, Paused, ScheduleStory};

const SCHEDULE: &str = "tick";
const WORKFLOW: &str = "diamond";
const PAUSE_MS_MAX: u64 = 300;
/// Long enough to see who starts something in spite of it.
const LANE_PAUSE_MS_MAX: u64 = 1_200;

/// See the module.
pub struct Operator {
    desk: Desk,
}

impl Operator {
    /// At this desk.
    pub fn new(desk: Desk) -> Self {
        Self { desk }
    }

    /// Works until the desk closes, and leaves nothing behind that would go on.
    pub async fn run(mut self) {
        let created_at = self.create().await;
        while !self.desk.is_closing() {
            match self.desk.rng.random_range(0..4) {
                0 => drop(self.run_workflow().await),
                1 => self.pause_lane().await,
                2 => self.pause_run().await,
                _ => self.cancel_job().await,
            }
            self.desk.pause(PAUSE_MS_MAX).await;
        }
        let pause_asked_at = Timestamp::now();
        self.ask(&format!("/api/v1/schedules/{SCHEDULE}/pause"), None).await.expect(200);
        let pause_acknowledged_at = Timestamp::now();
        let story =
            ScheduleStory { name: SCHEDULE.into(), created_at, pause_asked_at, pause_acknowledged_at };
        self.desk.ledger.lock().unwrap().schedules.push(story);
    }

    async fn ask(&mut self, path: &str, body: Option<&Value>) -> Answer {
        self.desk.until_answered(Method::POST, path, body).await
    }

    fn job(&self, path: &str) -> Value {
        http_job(&format!("{}{path}", self.desk.target))
    }

    /// A workflow and a schedule; says since when the schedule fires.
    async fn create(&mut self) -> Timestamp {
        let task = |name: &str, parents: &[&str]| {
            let target = json!({"http": {"url": format!("{}/fast", self.desk.target)}});
            json!({"name": name, "depends_on": parents, "job": {"target": target}})
        };
        let tasks = [
            task("first", &[]),
            task("left", &["first"]),
            task("right", &["first"]),
            task("last", &["left", "right"]),
        ];
        self.ask("/api/v1/workflows", Some(&json!({"name": WORKFLOW, "tasks": tasks}))).await.success();
        let schedule = json!({"name": SCHEDULE, "every": "1s", "overlap": "allow", "job": self.job("/fast")});
        let created = self.ask("/api/v1/schedules", Some(&schedule)).await;
        // Whoever repeats it finds that it is there already.
        assert!([201, 409].contains(&created.status), "{}", created.text());
        Timestamp::now()
    }

    /// Starts a run; its id.
    async fn run_workflow(&mut self) -> String {
        let run = self.ask(&format!("/api/v1/workflows/{WORKFLOW}/runs"), Some(&json!({}))).await.success();
        let id = id_of(&run.json());
        self.desk.ledger.lock().unwrap().acknowledged_at.insert(id.clone(), Timestamp::now());
        id
    }

    /// It may have ended before, or, when it is to be resumed, with the last task that ran.
    async fn pause_run(&mut self) {
        let id = self.run_workflow().await;
        let paused = self.ask(&format!("/api/v1/workflow-runs/{id}/pause"), None).await;
        assert!([200, 409].contains(&paused.status), "{}", paused.text());
        let acknowledged_at = Timestamp::now();
        if paused.status == 200 {
            self.desk.pause(LANE_PAUSE_MS_MAX).await;
            let until = Timestamp::now();
            let resumed = self.ask(&format!("/api/v1/workflow-runs/{id}/resume"), None).await;
            assert!([200, 409].contains(&resumed.status), "{}", resumed.text());
            let pause = Pause { what: Paused::Run(id), acknowledged_at, until };
            self.desk.ledger.lock().unwrap().pauses.push(pause);
        }
    }

    async fn pause_lane(&mut self) {
        self.ask(&format!("/api/v1/queues/{LANE}/pause"), None).await.expect(200);
        let acknowledged_at = Timestamp::now();
        self.desk.pause(LANE_PAUSE_MS_MAX).await;
        let until = Timestamp::now();
        self.ask(&format!("/api/v1/queues/{LANE}/resume"), None).await.expect(200);
        let pause = Pause { what: Paused::Queue(LANE.into()), acknowledged_at, until };
        self.desk.ledger.lock().unwrap().pauses.push(pause);
    }

    /// A job that is far away, and is cancelled before it comes.
    async fn cancel_job(&mut self) {
        let mut job = self.job("/fast");
        job["delay"] = json!("1h");
        job["idempotency_key"] = json!(format!("cancelled-{}", self.desk.rng.random::<u64>()));
        let job = self.ask("/api/v1/jobs", Some(&job)).await.success().json();
        self.desk.acknowledge(&job);
        let id = id_of(&job);
        let answer = self.ask(&format!("/api/v1/jobs/{id}/cancel"), None).await;
        // Whoever repeats it finds that it is cancelled already.
        assert!([200, 409].contains(&answer.status), "{}", answer.text());
        self.desk.ledger.lock().unwrap().cancelled.insert(id, Timestamp::now());
    }
}
