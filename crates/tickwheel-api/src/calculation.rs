//! Work that takes a while and waits for nothing, such as searching a calendar: done beside the threads that serve
//! everybody, and only so much of it at once, so that whoever asks for much waits for himself.

use tokio::sync::Semaphore;

use crate::blocking::run_blocking;
use crate::error::ApiResult;

/// So many calculations go on at once in this process.
static PERMITS: Semaphore = Semaphore::const_new(2);

/// Does it, when it is its turn. The work itself has to have a bound: it goes on if the client leaves.
pub async fn calculated<T: Send + 'static>(
    work: impl FnOnce() -> ApiResult<T> + Send + 'static,
) -> ApiResult<T> {
    let permit = PERMITS.acquire().await.expect("nobody closes it");
    run_blocking(move || {
        let _permit = permit;
        work()
    })
    .await?
}
