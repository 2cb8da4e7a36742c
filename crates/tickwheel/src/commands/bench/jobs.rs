//! Jobs that do nothing, and have a payload of a hundred bytes.

use std::sync::Arc;

use tickwheel_core::job::HttpTarget;
use tickwheel_core::ports::{Clock as _, NewJob};
use tickwheel_core::schedule::JobTemplate;
use tickwheel_core::{Job, JobId, JobSpec, JsonText, Priority, Target, Timestamp};
use tickwheel_engine::SystemClock;
use uuid::Uuid;

const JOB_TYPE: &str = "bench";
/// A hundred bytes, as small jobs have.
const PAYLOAD: &str =
    r#"{"to":"somebody@example.org","template":"welcome","language":"en","number":1234567890,"n":12345678}"#;
/// The type of jobs that end with a result.
pub const WITH_RESULT: &str = "bench-result";
/// That result.
pub const RESULT: &str = r#"{"language":"en","number":1234567890,"n":12345678}"#;

/// A job for that moment.
pub fn new_job(due_at: Timestamp) -> NewJob {
    let id = JobId::from_uuid(Uuid::now_v7());
    let mut job = Job::new(id, JOB_TYPE, spec(), SystemClock.now());
    (job.execute_at, job.due_at) = (due_at, due_at);
    job.payload = JsonText::from_checked(PAYLOAD).into();
    NewJob { job, idempotency: None }
}

/// What schedules and tasks make such jobs of.
pub fn template() -> JobTemplate {
    JobTemplate {
        job_type: JOB_TYPE.into(),
        queue: "default".into(),
        priority: Priority::Normal,
        spec: Arc::new(spec()),
        payload: JsonText::from_checked(PAYLOAD),
        tags: Vec::new(),
    }
}

fn spec() -> JobSpec {
    let target = HttpTarget { url: "http://127.0.0.1:9/".into(), method: "POST".into(), headers: Vec::new() };
    JobSpec::new(Target::Http(target))
}

/// The same job of another type.
pub fn of_type(job_type: &str, mut new: NewJob) -> NewJob {
    new.job.job_type = job_type.into();
    new
}

/// The same job of another tenant.
pub fn of_tenant(tenant: &Arc<str>, mut new: NewJob) -> NewJob {
    new.job.tenant = tenant.clone();
    new
}
