//! Who runs a job.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use crate::document;
use crate::time::Span;

/// How long a run may take that a job starts, when nobody says.
pub const WORKFLOW_TIMEOUT_DEFAULT: Span = Span::from_millis(7 * 24 * 3_600_000);

/// Who runs a job: exactly one of these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// An HTTP endpoint that is called.
    Http(HttpTarget),
    /// A worker that asks for work. The default.
    Worker(WorkerTarget),
    /// A workflow of which a run is started: the payload is its input, and the job ends as the run does.
    Workflow(WorkflowTarget),
    /// Nobody: the job stands for the elements of a fan-out and ends with them. Only in answers: refused with 422.
    FanOut(FanOutTarget),
    /// A command on the worker's machine. Not available yet: refused with 422.
    Process(Unavailable),
    /// A message to a broker. Not available yet: refused with 422.
    Message(Unavailable),
}

impl Default for Target {
    fn default() -> Self {
        Self::Worker(WorkerTarget {})
    }
}

/// What can be asked for, and what it means.
const OFFERED: [(&str, &str, &str); 3] = [
    ("http", "HttpTarget", "An HTTP endpoint that is called"),
    ("worker", "WorkerTarget", "A worker that asks for work. The default"),
    (
        "workflow",
        "WorkflowTarget",
        "A workflow of which a run is started: the payload is its input, and the job ends as the run does",
    ),
];
/// What is found in answers only.
const FAN_OUT: (&str, &str, &str) =
    ("fan_out", "FanOutTarget", "Nobody: the job stands for the elements of a fan-out and ends with them");

type Schemas = Vec<(String, RefOr<Schema>)>;

fn offered_schemas(schemas: &mut Schemas) {
    HttpTarget::schemas(schemas);
    schemas.push((HttpTarget::name().into(), HttpTarget::schema()));
    schemas.push((WorkerTarget::name().into(), WorkerTarget::schema()));
    WorkflowTarget::schemas(schemas);
    schemas.push((WorkflowTarget::name().into(), WorkflowTarget::schema()));
}

impl PartialSchema for Target {
    fn schema() -> RefOr<Schema> {
        document::exactly_one(&OFFERED, "Who runs a job: exactly one of these")
    }
}

impl ToSchema for Target {
    fn schemas(schemas: &mut Schemas) {
        offered_schemas(schemas);
    }
}

/// [`Target`] as it is answered.
#[derive(Debug)]
pub enum AnsweredTarget {}

impl PartialSchema for AnsweredTarget {
    fn schema() -> RefOr<Schema> {
        let all: Vec<_> = OFFERED.into_iter().chain([FAN_OUT]).collect();
        document::exactly_one(&all, "Who runs a job: exactly one of these")
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

/// The elements of a fan-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FanOutTarget {}

/// A workflow, in the version that is the latest when the job starts.
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
    /// Headers to send beside Tickwheel's own, 64 at the most.
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

/// A kind of target that this server knows of but cannot run; what it says is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Unavailable {}

impl<'de> Deserialize<'de> for Unavailable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self {})
    }
}
