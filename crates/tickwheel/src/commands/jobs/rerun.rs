//! `tickwheel jobs rerun`: submits a copy of a job that has ended.
//!
//! `retry` runs the same job again. A rerun is a new job with its own id and history.

use anyhow::Context as _;
use clap::Args;
use tickwheel_protocol::{Job, Span, SubmitJob, Target};

use super::{CommandContext, wait};
use crate::commands::ids;
use crate::commands::input::json_argument;
use crate::failure::CommandError;

/// Options of `jobs rerun`.
#[derive(Debug, Args)]
#[command(
    after_help = "The new job has the type, target, payload, queue, priority, retries, timeout, tags and metadata of the old one, and \
    runs now. It belongs to no schedule or workflow run, and depends on no other job. To run the same job again, use `retry`.\n\n\
    Examples:\n  \
    tickwheel jobs rerun 5b0c2e8f0013\n  \
    tickwheel jobs rerun 5b0c2e8f0013 --payload '{\"day\": \"2026-11-14\"}' --wait"
)]
pub struct RerunArgs {
    /// Id of the job
    id: String,
    /// New payload as JSON: the text, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// Wait until the new job has ended, for up to this long; exits with 1 unless it completed
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true)]
    wait: Option<Option<Span>>,
}

/// Submits a copy of the job.
pub async fn run(args: RerunArgs, context: &CommandContext) -> Result<(), CommandError> {
    let payload = args.payload.map(|payload| json_argument("--payload", &payload)).transpose()?;
    let id = ids::whole(ids::Kind::Job, &args.id, context).await?;
    let job: Job = context.client.get(&["jobs", &id]).send().await?.read()?;
    let outside = job.task.is_some();
    let mut again = like(job)?;
    again.payload = payload.or(again.payload);
    let body = serde_json::to_string(&again).context("cannot write the job as JSON")?;
    let answer = context.client.post(&["jobs"]).body(body).send().await?;
    let new = answer.read::<Job>()?.id.to_string();
    if outside {
        context
            .output
            .note("it does not belong to that workflow run: tasks that depend on the old job do not see it");
    }
    match args.wait {
        Some(timeout) => {
            context.output.note(&format!("waiting for job {new}"));
            wait::wait_and_show(&new, timeout.map(Span::as_duration), context).await
        }
        None => context.print(&answer, |_| Ok(new)),
    }
}

/// A request for a job that does the same as `job`.
fn like(job: Job) -> Result<SubmitJob, CommandError> {
    if !job.status.is_terminal() {
        let how = format!("job {} is {}: only a job that has ended can be rerun", job.id, job.status);
        return Err(CommandError::BadInput(how));
    }
    if matches!(job.target, Target::FanOut(_)) {
        let why = format!("job {} is a fan-out and does nothing by itself", job.id);
        return Err(CommandError::BadInput(why));
    }
    Ok(SubmitJob {
        job_type: job.job_type.to_string(),
        target: Some(job.target),
        payload: job.payload,
        queue: Some(job.queue.to_string()),
        priority: Some(job.priority),
        retry: Some(job.retry),
        timeout: Some(job.timeout),
        delivery: Some(job.delivery),
        tags: Some(job.tags),
        metadata: Some(job.metadata),
        requires: Some(job.requires).filter(|labels| !labels.is_empty()),
        concurrency_key: job.concurrency_key,
        callback_url: job.callback_url,
        created_by: job.created_by,
        ..SubmitJob::default()
    })
}
