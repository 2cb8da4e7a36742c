//! Work of a request that takes its time, on a thread that nobody else waits for.

use tickwheel_core::catch_panic::catch_panic;
use tickwheel_protocol::Code;

use crate::error::{ApiError, ApiResult};

/// Does `work` on a blocking thread. If it panics, only this request is answered with an error.
pub async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> ApiResult<T> {
    let broke = || ApiError::new(Code::Internal, "the server has a fault");
    match tokio::task::spawn_blocking(|| catch_panic(work)).await {
        Ok(Ok(done)) => Ok(done),
        _ => Err(broke()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_answer() {
        let answer = run_blocking(|| -> () { panic!("on purpose") }).await;
        assert!(answer.is_err());
    }
}
