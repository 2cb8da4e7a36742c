//! `tickwheel jobs`: submit and manage jobs.

mod act;
mod attempts;
mod batch;
mod bulk;
mod callbacks;
mod edit;
mod filter;
mod get;
mod list;
mod logs;
mod rerun;
mod submit;
mod view;
mod wait;
mod why;

use clap::Subcommand;

use super::CommandContext;
use crate::failure::CommandError;

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum JobsCommand {
    /// Submit a job, or many from a file
    Submit(Box<submit::SubmitArgs>),
    /// List jobs, newest first
    List(list::ListArgs),
    /// Show a job
    #[command(after_help = "Examples:\n  \
        tickwheel jobs get 5b0c2e8f0013\n  \
        tickwheel jobs get 5b0c2e8f0013 --json")]
    Get(get::GetArgs),
    /// Wait until a job has ended; exits with 1 unless it completed
    #[command(after_help = "Example: tickwheel jobs wait 5b0c2e8f0013 --timeout 5m")]
    Wait(wait::WaitArgs),
    /// Cancel jobs, by id or all that match; running ones are asked to stop
    Cancel(act::ManyArgs),
    /// Retry failed or cancelled jobs, by id or all that match
    Retry(act::ManyArgs),
    /// Submit a copy of a job that has ended; prints the new id
    Rerun(rerun::RerunArgs),
    /// Change the time, priority, payload or tags of jobs that have not started
    Edit(edit::EditArgs),
    /// Run jobs now instead of at their time
    #[command(after_help = "Example: tickwheel jobs run 5b0c2e8f0013")]
    Run(act::JobIds),
    /// Pause jobs until they are resumed
    #[command(after_help = "Example: tickwheel jobs pause 5b0c2e8f0013")]
    Pause(act::JobIds),
    /// Resume paused jobs
    #[command(after_help = "Example: tickwheel jobs resume 5b0c2e8f0013")]
    Resume(act::JobIds),
    /// Show the log of a job, or follow it while the job runs
    #[command(after_help = "Examples:\n  \
        tickwheel jobs logs 5b0c2e8f0013 --attempt 1\n  \
        tickwheel jobs logs 5b0c2e8f0013 --follow")]
    Logs(logs::LogsArgs),
    /// Explain why a job is not running
    #[command(after_help = "Example: tickwheel jobs why 5b0c2e8f0013")]
    Why(why::WhyArgs),
    /// List the attempts of a job
    #[command(after_help = "Example: tickwheel jobs attempts 5b0c2e8f0013")]
    Attempts(attempts::AttemptsArgs),
    /// List the callbacks about a job and their tries, or send the outcome again
    #[command(after_help = "Examples:\n  \
        tickwheel jobs callbacks 5b0c2e8f0013\n  \
        tickwheel jobs callbacks 5b0c2e8f0013 --resend")]
    Callbacks(callbacks::CallbacksArgs),
}

/// Runs the command.
pub async fn run(command: JobsCommand, context: &CommandContext) -> Result<(), CommandError> {
    match command {
        JobsCommand::Submit(args) => submit::run(*args, context).await,
        JobsCommand::List(args) => list::run(args, context).await,
        JobsCommand::Get(args) => get::run(args, context).await,
        JobsCommand::Wait(args) => wait::run(args, context).await,
        JobsCommand::Cancel(args) => act::many(act::Verb::Cancel, &args, context).await,
        JobsCommand::Retry(args) => act::many(act::Verb::Retry, &args, context).await,
        JobsCommand::Rerun(args) => rerun::run(args, context).await,
        JobsCommand::Edit(args) => edit::run(args, context).await,
        JobsCommand::Run(jobs) => act::run("run", &jobs, context).await,
        JobsCommand::Pause(jobs) => act::run("pause", &jobs, context).await,
        JobsCommand::Resume(jobs) => act::run("resume", &jobs, context).await,
        JobsCommand::Logs(args) => logs::run(args, context).await,
        JobsCommand::Why(args) => why::run(args, context).await,
        JobsCommand::Attempts(args) => attempts::run(args, context).await,
        JobsCommand::Callbacks(args) => callbacks::run(args, context).await,
    }
}
