//! Work of a request that takes its time, on a thread that nobody else waits for.

use tickwheel_core::containment::contain;
use tickwheel_protocol::Code;

use crate::error::{ApiError, ApiResult};

/// Does `work` aside. If it panics, only this request is answered with an error.
pub async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> ApiResult<T> {
    let broke = || ApiError::new(Code::Internal, "something broke inside the server");
    match tokio::task::spawn_blocking(|| contain(work)).await {
        Ok(Ok(done)) => Ok(done),
        _ => Err(broke()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_answer() {
        let answer = aside(|| -> () { panic!("on purpose") }).await;
        assert!(answer.is_err());
    }
}
