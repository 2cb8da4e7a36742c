//! What a job is: the spec (what, when, how often) and how far it has come.

mod lifecycle;
mod process;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::attempt::{AttemptOutcome, AttemptRecord, Failure};
use crate::id::{JobId, Partition, RunId, ScheduleId, SessionId};
use crate::matching::Labels;
use crate::parents::{Parents, Release};
use crate::payload::Payload;
use crate::retry::RetryPolicy;
use crate::settle::Burst;
use crate::state::State;
use crate::time::Timestamp;
use crate::words::words;
use crate::workflow::{FanOut, TaskPosition};

pub use process::{ExitCodes, ExitMeaning, ProcessTarget, Stdin};

/// Who owns a job when nobody says.
pub const DEFAULT_TENANT: &str = "default";
/// Where a job waits when nobody says.
pub const DEFAULT_QUEUE: &str = "default";
/// How long an attempt may take when nobody says: five minutes.
pub const DEFAULT_TIMEOUT_MS: u64 = 300_000;

/// A JSON document as text. Whoever makes one has checked it; the core never looks inside.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JsonText(Arc<str>);

impl JsonText {
    /// Wraps text that is known to be one valid JSON value.
    pub fn from_checked(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The value `null`.
    pub fn null() -> Self {
        Self("null".into())
    }

    /// The value `{}`.
    pub fn empty_object() -> Self {
        Self("{}".into())
    }

    /// Whether it is `{}`, written just so.
    pub fn is_empty_object(&self) -> bool {
        &*self.0 == "{}"
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, as it is shared by all clones.
    pub fn into_shared(self) -> Arc<str> {
        self.0
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

words! {
    /// How urgent a job is. A higher priority always goes first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Priority {
        /// Before everything else.
        Critical = "critical",
        /// Before normal.
        High = "high",
        /// The default.
        #[default]
        Normal = "normal",
        /// When nothing else is waiting.
        Low = "low",
    }
}

impl FromStr for Priority {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|p| p.as_str() == text)
            .ok_or_else(|| format!("unknown priority {text:?}: use critical, high, normal or low"))
    }
}

/// What is promised about the number of executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// Run until it is known to have run: a crash can repeat it.
    #[default]
    AtLeastOnce,
    /// Never start it a second time: a crash can leave it undone, and then it fails.
    AtMostOnce,
}

/// Who runs a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A worker that asks for work.
    Worker,
    /// An HTTP endpoint that is called.
    Http(HttpTarget),
    /// A workflow of which a run is started; the job ends with the run. Its payload is the run's input.
    Workflow(WorkflowTarget),
    /// Nobody: it is a fan-out and ends with its items. Only in a run of a workflow.
    #[serde(rename = "parts")]
    FanOut,
    /// A command that the server starts.
    Process(ProcessTarget),
}

/// A workflow to be run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowTarget {
    /// Its name.
    pub name: String,
}

/// An HTTP endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpTarget {
    /// Absolute `http` or `https` address.
    pub url: String,
    /// Upper-case method.
    pub method: String,
    /// Headers to send beside Tickwheel's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
}

words! {
    /// The kind of a target, as a number in the stores: what a node must be able to run in order to claim the job.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum TargetKind {
        /// [`Target::Worker`].
        Worker = "worker",
        /// [`Target::Http`].
        Http = "http",
        /// [`Target::Workflow`].
        Workflow = "workflow",
        /// [`Target::FanOut`].
        FanOut = "parts",
        /// [`Target::Process`].
        Process = "process",
    }
}

impl Target {
    /// Its kind.
    pub const fn kind(&self) -> TargetKind {
        match self {
            Self::Worker => TargetKind::Worker,
            Self::Http(_) => TargetKind::Http,
            Self::Workflow(_) => TargetKind::Workflow,
            Self::FanOut => TargetKind::FanOut,
            Self::Process(_) => TargetKind::Process,
        }
    }
}

/// What was requested and does not change while the job lives. The stores keep it as one document, which leaves out
/// what is as usual: most of a small job would be defaults otherwise. A default therefore never changes its meaning: a
/// new one gets a new name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// Who runs it.
    pub target: Target,
    /// When to try again after a failure.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry: RetryPolicy,
    /// How long an attempt may take, in milliseconds.
    #[serde(default = "default_timeout_ms", skip_serializing_if = "is_default_timeout")]
    pub timeout_ms: u64,
    /// At least once or at most once.
    #[serde(default, skip_serializing_if = "is_default")]
    pub delivery: Delivery,
    /// Free-form facts of the submitter.
    #[serde(default = "JsonText::empty_object", skip_serializing_if = "JsonText::is_empty_object")]
    pub metadata: JsonText,
    /// Where to send the outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback_url: Option<String>,
    /// Who submitted it, if they said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// W3C trace context to carry to the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// Jobs with the same key are meant to share a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_key: Option<String>,
    /// What a worker needs in order to run it.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub requires: Labels,
    /// It starts when these jobs have completed. Those of a task of a workflow are in its position.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<JobId>,
    /// Its position in the run of a workflow.
    #[serde(rename = "place", default, skip_serializing_if = "Option::is_none")]
    pub position: Option<TaskPosition>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

const fn default_timeout_ms() -> u64 {
    DEFAULT_TIMEOUT_MS
}

const fn is_default_timeout(timeout_ms: &u64) -> bool {
    *timeout_ms == DEFAULT_TIMEOUT_MS
}

impl JobSpec {
    /// The defaults for this target.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            retry: RetryPolicy::default(),
            timeout_ms: DEFAULT_TIMEOUT_MS,
            delivery: Delivery::default(),
            metadata: JsonText::empty_object(),
            callback_url: None,
            created_by: None,
            traceparent: None,
            concurrency_key: None,
            requires: Labels::new(),
            depends_on: Vec::new(),
            position: None,
        }
    }

    /// The jobs that it depends on.
    pub fn parents(&self) -> impl Iterator<Item = JobId> {
        let tasks = self
            .position
            .iter()
            .flat_map(|position| position.parents.iter().map(|index| JobId::of_task(position.run, *index)));
        self.depends_on.iter().copied().chain(tasks)
    }

    /// How long an attempt may take.
    pub const fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }
}

/// A job: the spec and how far it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// UUIDv7.
    pub id: JobId,
    /// The slice of the job space it belongs to.
    pub partition: Partition,
    /// Who owns it.
    pub tenant: Arc<str>,
    /// What kind of work it is: the handler's name. (`type` in the API.)
    pub job_type: Arc<str>,
    /// The lane it waits in.
    pub queue: Arc<str>,
    /// How urgent it is.
    pub priority: Priority,
    /// Where it stands: [`Job::state`]. Only `lifecycle` changes it.
    pub(crate) state: State,
    /// When it was requested to run.
    pub execute_at: Timestamp,
    /// When its next attempt may start: `execute_at` at first, later the time of the retry.
    pub due_at: Timestamp,
    /// When it was submitted.
    pub created_at: Timestamp,
    /// The spec. Shared, because it never changes and a job is passed on many times.
    pub spec: Arc<JobSpec>,
    /// The data for the target.
    pub payload: Payload,
    /// Its items, if it is a fan-out and has some already.
    pub fan_out: Option<FanOut>,
    /// Labels to find it by.
    pub tags: Vec<String>,
    /// The schedule that made it.
    pub schedule_id: Option<ScheduleId>,
    /// How the jobs stand that it depends on. Counted while it waits for them.
    pub parents: Parents,
    /// Number of the latest attempt, 0 before the first. It only grows: it is the fencing token.
    pub attempt: u32,
    /// Failures that were answered by a retry, since the job was submitted or retried.
    pub retries: u32,
    /// Attempts whose worker died, since the job was submitted or retried.
    pub lost: u32,
    /// The latest run of quick failures, for the poison-pill rule.
    pub burst: Burst,
    /// Who runs it now; none while waiting, and none while a target that answered 202 is to report by itself.
    pub session: Option<SessionId>,
    /// When the latest attempt started.
    pub started_at: Option<Timestamp>,
    /// When the running attempt has to be over.
    pub deadline: Option<Timestamp>,
    /// Somebody asked the running attempt to stop.
    pub cancel_requested: bool,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// How its last attempt ended; only of an ended job whose end was the end of an attempt.
    pub last_outcome: Option<AttemptOutcome>,
    /// What the target answered.
    pub result: Option<JsonText>,
    /// Why the latest attempt that failed did so.
    pub error: Option<Failure>,
}

impl Job {
    /// A new job: scheduled for now, in the default queue, no attempt made. What is different is assigned to its
    /// fields. Its state is not one of them: that changes by what happens to the job.
    pub fn new(id: JobId, job_type: &str, spec: impl Into<Arc<JobSpec>>, now: Timestamp) -> Self {
        let spec = spec.into();
        Self {
            id,
            partition: spec.concurrency_key.as_deref().map_or_else(|| Partition::of(id), Partition::of_key),
            tenant: DEFAULT_TENANT.into(),
            job_type: job_type.into(),
            queue: DEFAULT_QUEUE.into(),
            priority: Priority::default(),
            state: State::Scheduled,
            execute_at: now,
            due_at: now,
            created_at: now,
            spec,
            payload: JsonText::null().into(),
            fan_out: None,
            tags: Vec::new(),
            schedule_id: None,
            parents: Parents::default(),
            attempt: 0,
            retries: 0,
            lost: 0,
            burst: Burst::default(),
            session: None,
            started_at: None,
            deadline: None,
            cancel_requested: false,
            completed_at: None,
            last_outcome: None,
            result: None,
            error: None,
        }
    }

    /// The jobs that it waits for: what it depends on, or its items once it has some.
    pub fn waits_for(&self) -> Vec<JobId> {
        match self.fan_out {
            Some(fan_out) => {
                fan_out.indices().map(|index| JobId::of_task(RunId::of_task(self.id), index)).collect()
            }
            None => self.spec.parents().collect(),
        }
    }

    /// Who releases it when those it waits for are done.
    pub fn release(&self) -> Release {
        let Some(position) = &self.spec.position else { return Release::Counted };
        match (position.release, self.fan_out) {
            (Release::Watched, Some(_)) => Release::Paced,
            (_, Some(_)) => Release::Joined,
            (release, None) => release,
        }
    }

    /// Whether its attempt goes on without us, until somebody reports on it: its target answered 202. A job that waits
    /// for a run of a workflow is none of those: it ends with the run.
    pub fn awaits_report(&self) -> bool {
        let is_elsewhere = self.state == State::Running && self.session.is_none();
        is_elsewhere && self.spec.target.kind() != TargetKind::Workflow
    }

    /// The latest attempt as a record, unless there was none or it has its own row already (a retry is waiting).
    pub fn current_attempt(&self) -> Option<AttemptRecord> {
        let ongoing = self.state == State::Running;
        if self.attempt == 0 || !(ongoing || self.state.is_terminal()) {
            return None;
        }
        // A job cancelled while it waited has a row for its last attempt already, and no outcome of its own.
        if !ongoing && self.last_outcome.is_none() {
            return None;
        }
        Some(AttemptRecord {
            number: self.attempt,
            started_at: self.started_at?,
            ended_at: self.completed_at.filter(|_| !ongoing),
            outcome: self.last_outcome.filter(|_| !ongoing),
            error: self.error.clone().filter(|_| !ongoing && self.state != State::Completed),
        })
    }
}
