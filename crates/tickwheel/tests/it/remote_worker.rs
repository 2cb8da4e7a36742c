//! A worker that a test drives by hand, call by call.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::{Answer, Api, text};
use crate::eventually::PATIENCE;

/// See the module.
pub struct RemoteWorker {
    pub api: Api,
    pub id: String,
}

impl RemoteWorker {
    /// Registers a worker for jobs of type `work`.
    pub async fn register(api: &Api, fields: Value) -> Self {
        let mut body = json!({"name": "by hand", "types": ["work"], "capacity": 10, "lease": "5s"});
        for (name, value) in fields.as_object().expect("an object") {
            body[name] = value.clone();
        }
        let answer = api.post("/api/v1/workers", &body).await.expect(201).json();
        Self { api: api.clone(), id: text(&answer, "worker_id").to_owned() }
    }

    /// The answer to a poll.
    pub async fn poll_for(&self, body: Value) -> Value {
        self.call("poll", &body).await.expect(200).json()
    }

    /// The jobs that a poll brings, or none after the wait.
    pub async fn poll(&self, max: usize, wait: Duration) -> Vec<Value> {
        let answer = self.poll_for(json!({"max": max, "wait": format!("{}ms", wait.as_millis())})).await;
        answer["jobs"].as_array().expect("a list").clone()
    }

    /// Polls until it has so many.
    pub async fn take(&self, count: usize) -> Vec<Value> {
        let (mut taken, began) = (Vec::new(), Instant::now());
        while taken.len() < count {
            // An answer without a job may bring news.
            assert!(began.elapsed() < PATIENCE, "{} of {count} came", taken.len());
            taken.extend(self.poll(count - taken.len(), Duration::from_secs(5)).await);
        }
        taken
    }

    /// Sends a heartbeat.
    pub async fn beat(&self, body: Value) -> Value {
        self.call("heartbeat", &body).await.expect(200).json()
    }

    /// Reports this outcome of each, and says what was answered.
    pub async fn report(&self, jobs: &[Value], fields: Value) -> Vec<Value> {
        let report = |job: &Value| {
            let mut report = fields.clone();
            report["token"] = job["token"].clone();
            report
        };
        let reports: Vec<Value> = jobs.iter().map(report).collect();
        let mut results = Vec::new();
        for part in reports.chunks(1_000) {
            let answer = self.call("report", &json!({"reports": part})).await.expect(200).json();
            results.extend(answer["results"].as_array().expect("a list").clone());
        }
        results
    }

    /// Leaves.
    pub async fn leave(&self, reason: &str) -> Answer {
        self.api.delete(&format!("/api/v1/workers/{}?reason={reason}", self.id)).await
    }

    /// Any call.
    pub async fn call(&self, verb: &str, body: &Value) -> Answer {
        self.api.post(&format!("/api/v1/workers/{}/{verb}", self.id), body).await
    }
}
