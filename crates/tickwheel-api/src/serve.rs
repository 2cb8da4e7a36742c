//! Listening: connections in, requests to the router, and an orderly end.
//!
//! There are only so many connections at once, and when the server shuts down a request under way is answered while an idle
//! connection is closed. What one connection may do is [`crate::conversation`]'s.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::conversation::converse;

const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);
/// After a failed accept (out of file descriptors, usually): time for some to be closed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves at most `connections_max` connections at once until `shutdown` completes, then answers what is under way and returns.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    connections_max: usize,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(connections_max.min(Semaphore::MAX_PERMITS)));
    let graceful = GracefulShutdown::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let (stream, place) = tokio::select! {
            accepted = accept(&listener, &places) => accepted,
            () = &mut shutdown => break,
        };
        // Answers are small and whole: waiting to fill a packet would only add latency.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "could not turn off Nagle's algorithm");
        }
        let conversation = converse(stream, router.clone(), graceful.watcher());
        tokio::spawn(async move {
            conversation.await;
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(SHUTDOWN_GRACE, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests were still unanswered at the end of the shutdown grace");
    }
    Ok(())
}

async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> (TcpStream, OwnedSemaphorePermit) {
    let place = places.clone().acquire_owned().await.expect("this semaphore is never closed");
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
