//! Requests that wait for something to end: as long as they are willing to, and no longer than the server runs.

use tickwheel_core::JobId;
use tickwheel_protocol::{Code, Span};
use tokio::time::Instant;

use crate::error::{ApiError, ApiResult};
use crate::metrics::Present;
use crate::state::ApiState;

/// How long a request is willing to wait, and for what.
pub struct Patience<'a> {
    state: &'a ApiState,
    /// A run goes by the id of its job number zero.
    id: JobId,
    what: &'static str,
    wait: Span,
    deadline: Instant,
}

impl<'a> Patience<'a> {
    /// From now on, for as long as was asked for.
    pub fn of(state: &'a ApiState, id: JobId, what: &'static str, wait: Span) -> ApiResult<Self> {
        let longest = state.limits.wait_max();
        if wait.as_duration() > longest {
            let detail = format!("wait: must not be longer than {} seconds", longest.as_secs());
            return Err(ApiError::new(Code::InvalidParameter, detail));
        }
        Ok(Self { state, id, what, wait, deadline: Instant::now() + wait.as_duration() })
    }

    /// Starts listening for the end. Who reads after that misses nothing, and reads again only when told.
    pub fn listen(&self) -> impl Future<Output = ()> + Send + use<> {
        self.state.scheduler.end_of(self.id)
    }

    /// Returns when it may have ended, or says that it is time to give up: it stands like `status`.
    pub async fn wait(&self, end: impl Future<Output = ()>, status: &str) -> ApiResult<()> {
        let what = self.what;
        // Asked after the listening has begun: who came too late to be woken at a shutdown sees it here.
        if !(self.state.ready)() {
            let detail = format!("the server is shutting down; the {what} is {status} and goes on");
            return Err(ApiError::new(Code::ShuttingDown, detail));
        }
        let _waiting = Present::waiting();
        tokio::time::timeout_at(self.deadline, end).await.map_err(|_| {
            let detail = format!("the {what} is {status} and has not ended within {}", self.wait);
            ApiError::new(Code::WaitTimeout, detail)
        })
    }
}
