//! Requests that wait for something to end: as long as they are willing to, and no longer than the server runs.

use std::time::Duration;

use tickwheel_core::JobId;
use tickwheel_protocol::{Code, Span};
use tokio::time::Instant;

use crate::error::{ApiError, ApiResult};
use crate::state::ApiState;

/// How soon somebody who waits learns that the server is shutting down.
const READY_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// How long a request is willing to wait.
pub struct Patience {
    wait: Span,
    deadline: Instant,
}

impl Patience {
    /// From now on, for as long as was asked for.
    pub fn of(state: &ApiState, wait: Span) -> ApiResult<Self> {
        let longest = state.limits.wait_max();
        if wait.as_duration() > longest {
            let detail = format!("wait: must not be longer than {} seconds", longest.as_secs());
            return Err(ApiError::new(Code::InvalidParameter, detail));
        }
        Ok(Self { wait, deadline: Instant::now() + wait.as_duration() })
    }

    /// Returns when it may have ended, or says that it is time to give up. `what` is what is waited for and stands like `status`.
    pub async fn sleep_until_something_ends(
        &self,
        state: &ApiState,
        id: JobId,
        what: &str,
        status: &str,
    ) -> ApiResult<()> {
        if !(state.ready)() {
            let detail = format!("the server is shutting down; the {what} is {status} and goes on");
            return Err(ApiError::new(Code::ShuttingDown, detail));
        }
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let detail = format!("the {what} is {status} and has not ended within {}", self.wait);
            return Err(ApiError::new(Code::WaitTimeout, detail));
        }
        state.scheduler.wait_for_end(id, left.min(READY_CHECK_INTERVAL)).await;
        Ok(())
    }
}
