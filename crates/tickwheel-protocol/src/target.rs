//! Who runs a job.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::time::Span;

/// How long a run may take that a job starts, when nobody says.
pub const WORKFLOW_TIMEOUT_DEFAULT: Span = Span::from_millis(7 * 24 * 3_600_000);

/// Who runs a job: exactly one of these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// An HTTP endpoint that is called.
    Http(HttpTarget),
    /// A worker that asks for work. The default.
    Worker(WorkerTarget),
    /// A workflow of which a run is started: the payload is its input, and the job ends as the run does.
    Workflow(WorkflowTarget),
    /// Nobody: the job stands for the elements of a fan-out and ends with them. Only in answers: refused with 422.
    Parts(PartsTarget),
    /// A command on the worker's machine. Not available yet: refused with 422.
    #[schema(value_type = Object)]
    Process(Unavailable),
    /// A message to a broker. Not available yet: refused with 422.
    #[schema(value_type = Object)]
    Message(Unavailable),
}

impl Default for Target {
    fn default() -> Self {
        Self::Worker(WorkerTarget {})
    }
}

/// Any worker that handles the job's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerTarget {}

/// The elements of a fan-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PartsTarget {}

/// A workflow, in the version that is the latest when the job starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkflowTarget {
    /// Its name.
    #[schema(example = "etl", min_length = 1, max_length = 246)]
    pub name: String,
}

/// An HTTP endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpTarget {
    /// Absolute `http` or `https` URL without user info.
    #[schema(example = "https://svc/run", max_length = 2048)]
    pub url: String,
    /// GET, POST, PUT, PATCH, DELETE or HEAD.
    #[serde(default = "post")]
    #[schema(default = "POST")]
    pub method: String,
    /// Headers to send beside Tickwheel's own.
    #[serde(default)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Unavailable {}

impl<'de> Deserialize<'de> for Unavailable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self {})
    }
}
