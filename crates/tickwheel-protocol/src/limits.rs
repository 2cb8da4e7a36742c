//! How large a request may be. All of it can be configured; the configuration reference lists the defaults.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The bounds of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Bytes of a request body.
    pub body_bytes_max: usize,
    /// Bytes of the body of a batch.
    pub batch_bytes_max: usize,
    /// Bytes of all request bodies under way.
    pub bodies_bytes_max: usize,
    /// Bytes of a page of a list. One item more may exceed them.
    pub page_bytes_max: usize,
    /// Jobs in a batch.
    pub batch_jobs_max: usize,
    /// Levels of nesting in a JSON document.
    pub json_depth_max: usize,
    /// Bytes of a payload, and of a reported result.
    pub payload_bytes_max: usize,
    /// Bytes of the metadata.
    pub metadata_bytes_max: usize,
    /// Characters of a name or a key.
    pub name_chars_max: usize,
    /// Tags of a job.
    pub tags_max: usize,
    /// Characters of a tag.
    pub tag_chars_max: usize,
    /// Jobs that a job may depend on.
    pub depends_on_max: usize,
    /// Retries of a job, and entries in an explicit list of delays.
    pub retries_max: u32,
    /// Characters of a URL.
    pub url_chars_max: usize,
    /// Headers of an HTTP target.
    pub headers_max: usize,
    /// Characters of a header's value.
    pub header_chars_max: usize,
    /// Seconds an attempt may take.
    pub timeout_seconds_max: u64,
    /// Seconds between an attempt and its retry.
    pub retry_delay_seconds_max: u64,
    /// Seconds by which `delay` may put off a job.
    pub delay_seconds_max: u64,
    /// Seconds a request may wait for a job to end.
    pub wait_seconds_max: u64,
    /// Bytes of a reported error message that are stored.
    pub error_bytes_max: usize,
    /// Tasks of a workflow, including those inside fan-outs.
    pub workflow_tasks_max: usize,
    /// Dependencies between the tasks of a workflow.
    pub workflow_edges_max: usize,
}

const DAY: u64 = 24 * 3600;

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: 1 << 20,
            batch_bytes_max: 16 << 20,
            bodies_bytes_max: 128 << 20,
            page_bytes_max: 4 << 20,
            batch_jobs_max: 10_000,
            json_depth_max: 64,
            payload_bytes_max: 256 << 10,
            metadata_bytes_max: 64 << 10,
            name_chars_max: 255,
            tags_max: 64,
            tag_chars_max: 255,
            depends_on_max: 1_000,
            retries_max: 100,
            url_chars_max: 2048,
            headers_max: 64,
            header_chars_max: 4096,
            timeout_seconds_max: DAY,
            retry_delay_seconds_max: 365 * DAY,
            delay_seconds_max: 100 * 365 * DAY,
            wait_seconds_max: 300,
            error_bytes_max: 16 << 10,
            workflow_tasks_max: 10_000,
            workflow_edges_max: 100_000,
        }
    }
}

impl Limits {
    /// How long a request may wait for a job to end.
    pub const fn wait_max(&self) -> Duration {
        Duration::from_secs(self.wait_seconds_max)
    }
}
