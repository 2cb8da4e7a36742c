//! Listening: connections in, requests to the router, and an orderly end.
//!
//! There are only so many connections at once. A new one takes the place of the one that has been silent for longest;
//! where all are being answered it is refused at once, for a client that is refused can go elsewhere and one that waits
//! cannot. When the server shuts down a request under way is answered while an idle connection is closed. What one
//! connection may do is [`crate::conversation`]'s.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::response::IntoResponse;
use http_body_util::BodyExt;
use hyper_util::server::graceful::GracefulShutdown;
use tickwheel_protocol::Code;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::conversation::{Open, converse};
use crate::error::ApiError;

const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);
/// After a failed accept (out of file descriptors, usually): time for some to be closed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How often the log is told of it while it lasts.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(10);
/// How long a place is waited for that was just made.
const SLOT_WAIT: Duration = Duration::from_millis(200);
/// Connections beyond the bound that are being told so; more are closed without a word.
pub const REFUSALS_MAX: usize = 16;
/// How long a refused client may take to hear of it.
const REFUSAL_WAIT: Duration = Duration::from_secs(1);

/// Serves at most `connections_max` connections at once until `shutdown` completes, then answers what is under way and
/// returns.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    connections_max: usize,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let slots = ConnectionSlots::new(connections_max);
    let graceful = GracefulShutdown::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let (stream, slot) = tokio::select! {
            accepted = slots.accept(&listener) => accepted,
            () = &mut shutdown => break,
        };
        // Answers are small and whole: waiting to fill a packet would only add latency.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "could not turn off Nagle's algorithm");
        }
        let conversation = converse(stream, router.clone(), graceful.watcher(), &slots.open);
        tokio::spawn(async move {
            conversation.await;
            drop(slot);
        });
    }
    drop(listener);
    if tokio::time::timeout(SHUTDOWN_GRACE, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests were still unanswered when the shutdown grace ended");
    }
    Ok(())
}

/// Who is connected, and how many more may be.
struct ConnectionSlots {
    free: Arc<Semaphore>,
    open: Open,
    refusals: Arc<Semaphore>,
}

impl ConnectionSlots {
    fn new(connections_max: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(connections_max.min(Semaphore::MAX_PERMITS))),
            open: Open::default(),
            refusals: Arc::new(Semaphore::new(REFUSALS_MAX)),
        }
    }

    /// The next connection that gets a place.
    async fn accept(&self, listener: &TcpListener) -> (TcpStream, OwnedSemaphorePermit) {
        let mut complained_at = None;
        loop {
            match listener.accept().await {
                Ok((stream, _)) => match self.slot().await {
                    Some(slot) => return (stream, slot),
                    None => self.refuse(stream),
                },
                Err(error) => {
                    if complained_at.is_none_or(|at: Instant| at.elapsed() >= COMPLAINT_INTERVAL) {
                        complained_at = Some(Instant::now());
                        tracing::warn!(%error, "could not accept a connection");
                    }
                    self.open.close_idlest();
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// A place that is free, or that somebody silent has to leave.
    async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(slot) = self.free.clone().try_acquire_owned() {
            return Some(slot);
        }
        if !self.open.close_idlest() {
            return None;
        }
        let left = tokio::time::timeout(SLOT_WAIT, self.free.clone().acquire_owned()).await;
        left.ok().and_then(Result::ok)
    }

    fn refuse(&self, stream: TcpStream) {
        let Ok(turn) = self.refusals.clone().try_acquire_owned() else { return };
        tokio::spawn(async move {
            let _turn = turn;
            let _ = tokio::time::timeout(REFUSAL_WAIT, tell_full(stream)).await;
        });
    }
}

/// Says that there is no room, and listens for a moment: a connection closed over what the client sends would take the
/// answer with it.
async fn tell_full(mut stream: TcpStream) -> io::Result<()> {
    let detail = "all connections of the server are in use; nothing was changed";
    let (head, body) = ApiError::new(Code::Overloaded, detail).into_response().into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let mut answer =
        format!("HTTP/1.1 {}\r\nconnection: close\r\ncontent-length: {}\r\n", head.status, body.len());
    for (name, value) in &head.headers {
        answer.push_str(&format!("{name}: {}\r\n", value.to_str().unwrap_or_default()));
    }
    answer.push_str("\r\n");
    stream.write_all(&[answer.as_bytes(), &body].concat()).await?;
    stream.shutdown().await?;
    let mut rest = [0; 4096];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}
