//! Waits for the end of a job or a run, by requests that the server answers when it has ended.

use std::time::{Duration, Instant};

use tickwheel_client::Answer;
use tickwheel_protocol::Code;

use super::CommandContext;
use crate::failure::CommandError;

/// How long one request waits. Short enough for proxies that cut silent connections.
const ROUND: Duration = Duration::from_secs(25);

/// What is at `path` once it has ended. `what` names it in the message if that takes longer than `timeout`.
pub async fn until_ended(
    path: &[&str],
    what: &str,
    timeout: Option<Duration>,
    context: &CommandContext,
) -> Result<Answer, CommandError> {
    // A timeout too long for the clock is no timeout.
    let give_up_at = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    loop {
        let left = give_up_at.map_or(ROUND, |at| at.saturating_duration_since(Instant::now()));
        let round = left.min(ROUND);
        let wait = format!("{}ms", round.as_millis().max(1));
        let answer = context.client.get(path).query("wait", Some(&wait)).patience(round).send().await;
        match answer {
            Err(error) if error.code() == Some(Code::WaitTimeout) => {
                if left <= ROUND && give_up_at.is_some() {
                    return Err(CommandError::NotGood(format!("{what} has not ended yet")));
                }
            }
            answer => return Ok(answer?),
        }
    }
}
