//! `tickwheel jobs wait`: a script's way to go on when a job has ended, with its outcome as exit code.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use clap::Args;
use tickwheel_protocol::{Code, Job, Span, Status};

use super::{Session, view};
use crate::client::Answer;
use crate::failure::Failure;

/// How long one request waits. Short enough for proxies that cut silent connections.
const ROUND: Duration = Duration::from_secs(25);

/// Options of `jobs wait`.
#[derive(Debug, Args)]
pub struct WaitArgs {
    /// Id of the job
    id: String,
    /// Give up after this long (exit code 1) [default: never]
    #[arg(long, value_name = "DURATION")]
    timeout: Option<Span>,
}

/// Waits for the job and shows it.
pub async fn run(args: WaitArgs, session: &Session) -> Result<(), Failure> {
    wait_and_show(&args.id, args.timeout.map(Span::as_duration), session).await
}

/// Waits until the job has ended, shows it, and fails unless it completed.
pub async fn wait_and_show(id: &str, timeout: Option<Duration>, session: &Session) -> Result<(), Failure> {
    let answer = wait(id, timeout, session).await?;
    // How its parents stand is not what was waited for.
    session.print(&answer, |output| Ok(view::full(output, &answer.read()?, &HashMap::new())))?;
    let job: Job = answer.read()?;
    match job.status {
        Status::Completed => Ok(()),
        status => Err(Failure::NotGood(format!("job {id} {}", outcome(status)))),
    }
}

async fn wait(id: &str, timeout: Option<Duration>, session: &Session) -> Result<Answer, Failure> {
    // A timeout too long for the clock is no timeout.
    let give_up_at = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    loop {
        let left = give_up_at.map_or(ROUND, |at| at.saturating_duration_since(Instant::now()));
        let round = left.min(ROUND);
        let wait = format!("{}ms", round.as_millis().max(1));
        let answer =
            session.client.get(&["jobs", id]).query("wait", Some(&wait)).patience(round).send().await;
        match answer {
            Err(Failure::Refused(problem)) if problem.code == Code::WaitTimeout.as_str() => {
                if left <= ROUND && give_up_at.is_some() {
                    return Err(Failure::NotGood(format!("job {id} has not ended yet")));
                }
            }
            other => return other,
        }
    }
}

fn outcome(status: Status) -> &'static str {
    match status {
        Status::Failed => "failed",
        Status::Cancelled => "was cancelled",
        _ => "has not completed",
    }
}
