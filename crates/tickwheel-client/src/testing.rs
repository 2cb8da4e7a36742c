//! For tests: a client that keeps what was submitted instead of sending it.
//!
//! ```
//! # use serde::{Deserialize, Serialize};
//! # use tickwheel_client::JobType;
//! # #[derive(Serialize, Deserialize)] struct SendEmail { to: String }
//! # impl JobType for SendEmail { const NAME: &'static str = "send_email"; type Output = (); }
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let (client, recorder) = tickwheel_client::testing::recording_client();
//! client.submit(SendEmail { to: "a@example.com".into() }).queue("mail").await.unwrap();
//!
//! let emails = recorder.payloads::<SendEmail>();
//! assert_eq!(emails[0].to, "a@example.com");
//! assert_eq!(recorder.jobs()[0].queue.as_deref(), Some("mail"));
//! # }
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use tickwheel_protocol::{Job, SubmitJob};
use uuid::Uuid;

use crate::client::Client;
use crate::error::Error;
use crate::job_type::JobType;

/// A client that sends no job, and what it keeps. Any other call than a submission still goes to a server.
pub fn recording_client() -> (Client, Recorder) {
    let recorder = Recorder::default();
    (Client::recording(recorder.clone()), recorder)
}

/// What was submitted.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Mutex<Vec<SubmitJob>>>);

impl Recorder {
    /// All jobs, in order.
    pub fn jobs(&self) -> Vec<SubmitJob> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The payloads of all jobs of type `J`, in order.
    ///
    /// # Panics
    ///
    /// If a payload is not a `J`.
    pub fn payloads<J: JobType>(&self) -> Vec<J> {
        let jobs = self.jobs().into_iter().filter(|job| job.job_type == J::NAME);
        let payload = |job: SubmitJob| {
            let text = job.payload.as_ref().map_or("null", |payload| payload.get());
            serde_json::from_str(text).expect("the payload is of its type")
        };
        jobs.map(payload).collect()
    }

    /// Keeps a job and describes it as a server would.
    pub(crate) fn keep(&self, request: SubmitJob) -> Result<Job, Error> {
        let tags = request.tags.clone().unwrap_or_default();
        let described = json!({
            "id": Uuid::now_v7(), "type": request.job_type, "status": "scheduled",
            "queue": request.queue.as_deref().unwrap_or("default"),
            "priority": request.priority.map_or("normal", |priority| priority.as_str()),
            "tenant": "default", "execute_at": "1970-01-01T00:00:00Z", "next_run_at": null,
            "created_at": "1970-01-01T00:00:00Z", "started_at": null, "completed_at": null, "deadline": null,
            "attempt": 0, "retries": 0, "max_retries": 3, "cancel_requested": false, "error": null,
            "tags": tags, "metadata": {}, "payload": request.payload, "target": {"worker": {}}, "retry": {},
            "timeout": "300s", "delivery": "at_least_once", "depends_on": [], "concurrency_key": null,
            "callback_url": null, "created_by": null, "schedule_id": null, "workflow_run_id": null, "task": null,
        });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        serde_json::from_str(&described.to_string()).map_err(|error| Error::BadAnswer(error.to_string()))
    }
}
