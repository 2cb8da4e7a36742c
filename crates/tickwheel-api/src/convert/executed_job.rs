//! A job that a worker was given, as its executor needs it.

use std::sync::Arc;

use tickwheel_core::{Job, JobId, JobSpec, JsonText};
use tickwheel_protocol as wire;

use super::job_request::{target, timestamp};

/// The job of an assignment, back in terms of the core: everything that a built-in executor tells its target about the
/// job. What only the scheduler needs is left at its default.
pub fn executed_job(job: &wire::Job, traceparent: Option<&str>) -> Job {
    let spec = JobSpec {
        timeout_ms: job.timeout.as_millis(),
        metadata: JsonText::from_checked(job.metadata.get()),
        created_by: job.created_by.clone(),
        traceparent: traceparent.map(Into::into),
        ..JobSpec::new(target(job.target.clone()))
    };
    let id = JobId::from_uuid(job.id);
    let mut executed = Job::new(id, &job.job_type, Arc::new(spec), timestamp(job.created_at));
    executed.queue = job.queue.clone();
    executed.tenant = job.tenant.clone();
    executed.execute_at = timestamp(job.execute_at);
    executed.tags.clone_from(&job.tags);
    executed.schedule_id = job.schedule_id.as_deref().and_then(|id| id.parse().ok());
    executed.attempt = job.attempt;
    executed
}
