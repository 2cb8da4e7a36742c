//! What executes a job.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

pub use crate::process::{ExitCodes, ProcessTarget, Snooze, Stdin};

use crate::document;
use crate::time::Span;

/// How long a workflow run that a job starts may take, unless the job says otherwise.
pub const WORKFLOW_TIMEOUT_DEFAULT: Span = Span::from_millis(7 * 24 * 3_600_000);

/// What executes a job: exactly one of these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// An HTTP endpoint, which the server calls.
    Http(HttpTarget),
    /// A worker, which asks the server for jobs. The default.
    Worker(WorkerTarget),
    /// A workflow. The job starts a run with the payload as its input, and ends when the run ends.
    Workflow(WorkflowTarget),
    /// Nothing: the job is a fan-out and ends when its items have ended. Only in answers; rejected with 422 in
    /// requests.
    FanOut(FanOutTarget),
    /// A command on the server's machine. Rejected with 422 unless the operator allows it.
    Process(ProcessTarget),
    /// A message to a broker. Not available yet: rejected with 422.
    Message(Unavailable),
}

impl Default for Target {
    fn default() -> Self {
        Self::Worker(WorkerTarget {})
    }
}

/// What a request may ask for, and what it means.
const OFFERED: [(&str, &str, &str); 4] = [
    ("http", "HttpTarget", "An HTTP endpoint, which the server calls"),
    ("worker", "WorkerTarget", "A worker, which asks the server for jobs. The default"),
    (
        "workflow",
        "WorkflowTarget",
        "A workflow. The job starts a run with the payload as its input, and ends when the run ends",
    ),
    (
        "process",
        "ProcessTarget",
        "A command on the server's machine. Rejected with 422 unless the operator allows it",
    ),
];
/// What only answers contain.
const FAN_OUT: (&str, &str, &str) =
    ("fan_out", "FanOutTarget", "Nothing: the job is a fan-out and ends when its items have ended");

type Schemas = Vec<(String, RefOr<Schema>)>;

fn offered_schemas(schemas: &mut Schemas) {
    HttpTarget::schemas(schemas);
    schemas.push((HttpTarget::name().into(), HttpTarget::schema()));
    schemas.push((WorkerTarget::name().into(), WorkerTarget::schema()));
    WorkflowTarget::schemas(schemas);
    schemas.push((WorkflowTarget::name().into(), WorkflowTarget::schema()));
    ProcessTarget::schemas(schemas);
    schemas.push((ProcessTarget::name().into(), ProcessTarget::schema()));
}

impl PartialSchema for Target {
    fn schema() -> RefOr<Schema> {
        document::exactly_one(&OFFERED, "What executes a job: exactly one of these")
    }
}

impl ToSchema for Target {
    fn schemas(schemas: &mut Schemas) {
        offered_schemas(schemas);
    }
}

/// [`Target`] in an answer.
#[derive(Debug)]
pub enum AnsweredTarget {}

impl PartialSchema for AnsweredTarget {
    fn schema() -> RefOr<Schema> {
        let all: Vec<_> = OFFERED.into_iter().chain([FAN_OUT]).collect();
        document::exactly_one(&all, "What executes a job: exactly one of these")
    }
}

impl ToSchema for AnsweredTarget {
    fn schemas(schemas: &mut Schemas) {
        offered_schemas(schemas);
        schemas.push((FanOutTarget::name().into(), FanOutTarget::schema()));
    }
}

/// Any worker that handles the job's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerTarget {}

/// The items of a fan-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FanOutTarget {}

/// A workflow. The job runs the version that is the latest when it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowTarget {
    /// Its name.
    #[schema(value_type = document::WorkflowName, example = "etl")]
    pub name: String,
}

/// An HTTP endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpTarget {
    /// Absolute `http` or `https` URL without user info.
    #[schema(value_type = document::Url, example = "https://svc/run")]
    pub url: String,
    /// GET, POST, PUT, PATCH, DELETE or HEAD.
    #[serde(default = "post")]
    #[schema(value_type = document::Method, default = "POST")]
    pub method: String,
    /// Headers to send in addition to Tickwheel's own, up to 64.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, document::HeaderValue>)]
    pub headers: BTreeMap<String, String>,
}

impl HttpTarget {
    /// A POST to this URL.
    pub fn post(url: impl Into<String>) -> Self {
        Self { url: url.into(), method: post(), headers: BTreeMap::new() }
    }
}

fn post() -> String {
    "POST".into()
}

/// A kind of target that this server knows but cannot run. The server ignores its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Unavailable {}

impl<'de> Deserialize<'de> for Unavailable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self {})
    }
}
