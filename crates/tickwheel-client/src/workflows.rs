//! Workflows: store a definition, run it, wait for the run.

use std::time::Duration;

use serde::Serialize;
use serde_json::value::{Value, to_raw_value};
use tickwheel_protocol::workflow::builder::Task;
use tickwheel_protocol::{StartRun, SubmitWorkflow, TaskJob, Workflow, WorkflowRun};
use uuid::Uuid;

use crate::client::Client;
use crate::error::Error;
use crate::handle::until_ended;
use crate::job_type::JobType;
use crate::repeat::Repeat;

/// A task whose job is a `J`, with the defaults of its type. The payload may refer to data of the run
/// ([`from`](crate::from)), so it is JSON here.
///
/// ```
/// use serde_json::json;
/// use tickwheel_client::{JobType, Workflow, from, task};
/// # #[derive(serde::Serialize, serde::Deserialize)] struct Extract { day: String }
/// # #[derive(serde::Serialize, serde::Deserialize)] struct Load { rows: u64 }
/// # impl JobType for Extract { const NAME: &'static str = "extract"; type Output = u64; }
/// # impl JobType for Load { const NAME: &'static str = "load"; type Output = (); }
///
/// let etl = Workflow::named("etl")
///     .task(task::<Extract>("extract", json!({"day": from("input.day")})))
///     .task(task::<Load>("load", json!({"rows": from("extract.result")})).depends_on("extract"))
///     .build();
/// assert_eq!(etl.tasks[1].job.as_ref().unwrap().job_type.as_deref(), Some("load"));
/// ```
pub fn task<J: JobType>(name: impl Into<String>, payload: Value) -> Task {
    let job = J::options().request(J::NAME);
    let job = TaskJob {
        job_type: Some(job.job_type),
        queue: job.queue,
        priority: job.priority,
        retry: job.retry,
        timeout: job.timeout,
        delivery: job.delivery,
        ..TaskJob::default()
    };
    Task::named(name).job(job).payload(payload)
}

/// What a client can do with workflows.
#[derive(Clone, Copy, Debug)]
pub struct Workflows<'a>(pub(crate) &'a Client);

impl Workflows<'_> {
    /// Stores a definition: a new workflow, or a new version of the one with its name.
    pub async fn put(&self, workflow: &SubmitWorkflow) -> Result<Workflow, Error> {
        let call = self.0.post(&["workflows"]).json(workflow)?;
        self.0.repeated(Repeat::Always, || call.clone()).await
    }

    /// The latest version of a definition.
    pub async fn get(&self, name: &str) -> Result<Workflow, Error> {
        self.0.repeated(Repeat::Always, || self.0.get(&["workflows", name])).await
    }

    /// Starts a run.
    pub async fn run(&self, name: &str, input: &impl Serialize) -> Result<RunHandle, Error> {
        let input = to_raw_value(input)
            .map_err(|error| Error::BadRequest(format!("cannot write the input as JSON: {error}")))?;
        let start = StartRun { input: Some(input), idempotency_key: Some(Uuid::now_v7().to_string()) };
        let call = self.0.post(&["workflows", name, "runs"]).json(&start)?;
        let run = self.0.repeated(Repeat::Always, || call.clone()).await?;
        Ok(RunHandle { client: self.0.clone(), run })
    }

    /// A run that was started before.
    pub async fn get_run(&self, id: Uuid) -> Result<RunHandle, Error> {
        let text = id.to_string();
        let run = self.0.repeated(Repeat::Always, || self.0.get(&["workflow-runs", &text])).await?;
        Ok(RunHandle { client: self.0.clone(), run })
    }
}

/// A run of a workflow.
#[derive(Clone, Debug)]
pub struct RunHandle {
    client: Client,
    run: WorkflowRun,
}

impl RunHandle {
    /// Its id.
    pub fn id(&self) -> Uuid {
        self.run.id
    }

    /// The run as the server last described it to this handle.
    pub fn run(&self) -> &WorkflowRun {
        &self.run
    }

    /// The run once it has ended, however it ended: its `status` says. Fails with [`Error::WaitTimeout`] after
    /// `timeout`; the run goes on in that case.
    pub async fn wait(&self, timeout: Duration) -> Result<WorkflowRun, Error> {
        until_ended(&self.client, &["workflow-runs", &self.run.id.to_string()], self.run.id, timeout).await
    }

    /// Cancels it.
    pub async fn cancel(&self) -> Result<WorkflowRun, Error> {
        let id = self.run.id.to_string();
        self.client.repeated(Repeat::Always, || self.client.post(&["workflow-runs", &id, "cancel"])).await
    }
}
