//! `tickwheel jobs rerun`: a new job that is to do what one that has ended did.
//!
//! Unlike `retry`, which runs the same job again: this one has an id and a history of its own.

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
    after_help = "The new job has the type, target, payload, queue, priority, retries, timeout, tags and metadata of the other one, and \
    runs now. It belongs to no schedule or workflow run, and depends on no other job. To run the same job again, use `retry`.\n\n\
    Examples:\n  \
    tickwheel jobs rerun 5b0c2e8f0013\n  \
    tickwheel jobs rerun 5b0c2e8f0013 --payload '{\"day\": \"2026-11-14\"}' --wait"
)]
pub struct RerunArgs {
    /// Id of the job
    id: String,
    /// Other data than that job had: JSON, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// Wait until the new one has ended, at most this long; exit code 1 unless it completed
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true)]
    wait: Option<Option<Span>>,
}

/// Submits a job like the one that has ended.
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
        context.output.note("it is no task of that workflow run: what depends on the task does not see it");
    }
    match args.wait {
        Some(timeout) => {
            context.output.note(&format!("waiting for job {new}"));
            wait::wait_and_show(&new, timeout.map(Span::as_duration), context).await
        }
        None => context.print(&answer, |_| Ok(new)),
    }
}

/// A job to submit that does what `job` did.
fn like(job: Job) -> Result<SubmitJob, CommandError> {
    if !job.status.is_terminal() {
        let how = format!(
            "job {} is {}: only one that has ended can be run again as a new job",
            job.id, job.status
        );
        return Err(CommandError::BadInput(how));
    }
    if matches!(job.target, Target::FanOut(_)) {
        let why = format!("job {} stands for the elements of a fan-out, and does nothing by itself", job.id);
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
        concurrency_key: job.concurrency_key,
        callback_url: job.callback_url,
        created_by: job.created_by,
        ..SubmitJob::default()
    })
}
