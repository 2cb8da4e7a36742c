//! One connection: how long its client is waited for, and how it ends.
//!
//! Between requests a client may be silent for longer than clients keep pooled connections; from the first byte of a
//! request on it has seconds to send its headers. While a request is being answered no clock runs here: whoever reads
//! the body and whoever makes the answer have their own. From its first piece on an answer has to be fetched: a client
//! that takes nothing for as long as it might be silent between requests is gone.
//!
//! The answer to a request whose body was not read to its end says `connection: close`: what is left of it could not be
//! told from the next request.

mod open;
mod socket;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::Watcher;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, watch};
use tower::ServiceExt;

pub use open::Open;
use socket::Socket;

/// From the first byte of a request to the end of its headers.
const HEADERS_WAIT: Duration = Duration::from_secs(10);
/// From one request to the next. Longer than common clients keep an idle connection, so that it is they who close it: a
/// client that sends just while the server closes cannot know whether its request was read.
const IDLE_WAIT: Duration = Duration::from_secs(75);

/// What is read ahead of a connection, and the most that headers may have.
const BUFFER_BYTES_MAX: usize = 64 << 10;

/// Answers the requests of one connection until it ends.
pub fn converse<S>(
    stream: S,
    router: Router,
    watcher: Watcher,
    open: &Open,
) -> impl Future<Output = ()> + use<S>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let progress = Arc::new(Progress::default());
    let entry = open.enter(progress.clone());
    async move {
        let _entry = entry;
        answer_all(stream, router, watcher, progress).await;
    }
}

async fn answer_all<S>(stream: S, router: Router, watcher: Watcher, progress: Arc<Progress>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let socket = Socket::new(stream, progress.clone());
    let answered = progress.clone();
    let connection = http1::Builder::new().max_buf_size(BUFFER_BYTES_MAX).serve_connection(
        TokioIo::new(socket),
        service_fn(move |request| answer(router.clone(), request, answered.clone())),
    );
    tokio::select! {
        ended = watcher.watch(connection) => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended with an error");
            }
        }
        () = progress.stalled() => tracing::debug!("a silent connection was closed"),
        () = progress.sent_away() => tracing::debug!("a silent connection was closed for a new one"),
    }
}

async fn answer(
    router: Router,
    request: Request<Incoming>,
    progress: Arc<Progress>,
) -> Result<Response<Body>, Infallible> {
    progress.unread.store(!request.body().is_end_stream(), Ordering::Relaxed);
    progress.enter(Stage::Answering);
    let request = request.map(|body| Body::new(RequestBody { body, progress: progress.clone() }));
    let mut response = router.oneshot(request).await?;
    if progress.unread.load(Ordering::Relaxed) {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response.map(|body| Body::new(ResponseBody { body, progress })))
}

/// What a connection is about at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// No request yet, or none after the last one.
    #[default]
    Idle,
    /// A request has begun to arrive.
    Headers,
    /// A request is being answered.
    Answering,
    /// A part of the answer waits for the client to take it.
    Sending,
}

/// How far a conversation is, as its socket, its requests and its answers report it.
struct Progress {
    stage: watch::Sender<Stage>,
    /// When it became idle, in milliseconds since the process began to count; [`NOT_IDLE`] while it is not.
    idle_since: AtomicU64,
    /// Told when somebody else needs the place.
    leave: Notify,
    /// Whether the body of the latest request has not been read to its end.
    unread: AtomicBool,
}

const NOT_IDLE: u64 = u64::MAX;

/// Milliseconds since the first call.
fn uptime_ms() -> u64 {
    static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(FIRST.elapsed().as_millis()).unwrap_or(NOT_IDLE - 1)
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            stage: watch::Sender::default(),
            idle_since: AtomicU64::new(uptime_ms()),
            leave: Notify::new(),
            unread: AtomicBool::new(false),
        }
    }
}

impl Progress {
    fn enter(&self, stage: Stage) {
        let idle_since = if stage == Stage::Idle { uptime_ms() } else { NOT_IDLE };
        self.idle_since.store(idle_since, Ordering::Relaxed);
        self.stage.send_replace(stage);
    }

    /// Since when it has been idle, if it is.
    fn idle_since(&self) -> Option<u64> {
        Some(self.idle_since.load(Ordering::Relaxed)).filter(|since| *since != NOT_IDLE)
    }

    /// Completes when somebody else needs the place.
    async fn sent_away(&self) {
        self.leave.notified().await;
    }

    fn received(&self) {
        if *self.stage.borrow() == Stage::Idle {
            self.enter(Stage::Headers);
        }
    }

    /// A large answer may still be on its way long after it was made: that is not silence.
    fn sent(&self) {
        let stage = *self.stage.borrow();
        if matches!(stage, Stage::Idle | Stage::Sending) {
            self.enter(stage);
        }
    }

    /// A piece of an answer was made that is not its last; `false`: the next one is still to be made.
    fn answering(&self, has_piece: bool) {
        let stage = if has_piece { Stage::Sending } else { Stage::Answering };
        if *self.stage.borrow() != stage {
            self.enter(stage);
        }
    }

    fn may_receive_more(&self) -> bool {
        self.unread.load(Ordering::Relaxed) || *self.stage.borrow() == Stage::Headers
    }

    /// Completes when the client has been silent for too long.
    async fn stalled(&self) {
        let mut stage = self.stage.subscribe();
        loop {
            let wait = match *stage.borrow_and_update() {
                Stage::Idle | Stage::Sending => IDLE_WAIT,
                Stage::Headers => HEADERS_WAIT,
                Stage::Answering => Duration::MAX,
            };
            if tokio::time::timeout(wait, stage.changed()).await.is_err() {
                return;
            }
        }
    }
}

/// A request's body that tells when it has been read to its end.
struct RequestBody {
    body: Incoming,
    progress: Arc<Progress>,
}

impl hyper::body::Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_none() || self.body.is_end_stream() {
            self.progress.unread.store(false, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer's body; once it is gone the connection is idle.
struct ResponseBody {
    body: Body,
    progress: Arc<Progress>,
}

impl hyper::body::Body for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        match frame {
            Poll::Pending => self.progress.answering(false),
            // What has no other piece is on its way: the body is gone in a moment.
            Poll::Ready(_) if self.body.is_end_stream() => {}
            Poll::Ready(_) => self.progress.answering(true),
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.progress.enter(Stage::Idle);
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::{get, post};
    use hyper_util::server::graceful::GracefulShutdown;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
    use tokio::time::{Instant, sleep};

    use super::socket::{LINGER_BYTES_MAX, LINGER_WAIT};
    use super::*;

    const ASK: &str = "GET /quick HTTP/1.1\r\nhost: x\r\n\r\n";

    /// A connection to a server that answers quickly, slowly, at length, or without reading.
    fn connect() -> DuplexStream {
        let (client, server) = tokio::io::duplex(64 << 10);
        let router = Router::new()
            .route("/read", post(async |_: String| "{}"))
            .route("/quick", get(async || "{}"))
            .route("/slow", get(async || sleep(10 * IDLE_WAIT).await))
            .route("/long", get(async || "x".repeat(1 << 20)))
            .route("/pieces", get(async || Body::from_stream(pieces())))
            .route("/refuse", post(async || "{}"));
        tokio::spawn(async move {
            let never_shut_down = GracefulShutdown::new();
            converse(server, router, never_shut_down.watcher(), &Open::default()).await;
        });
        client
    }

    /// Small pieces without end.
    fn pieces() -> impl futures::Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
        futures::stream::repeat_with(|| Ok(Bytes::from_static(&[b'x'; 1 << 10])))
    }

    async fn send(client: &mut DuplexStream, text: &str) {
        client.write_all(text.as_bytes()).await.expect("an open connection");
    }

    /// Reads up to the end of a small answer.
    async fn read_answer(client: &mut DuplexStream) -> String {
        let mut answer = String::new();
        while !answer.ends_with("{}") {
            let mut bytes = [0; 1024];
            let read = client.read(&mut bytes).await.expect("an open connection");
            assert_ne!(read, 0, "closed after {answer:?}");
            answer.push_str(std::str::from_utf8(&bytes[..read]).expect("text"));
        }
        answer
    }

    /// How long it takes until the server closes the connection, and what it says until then.
    async fn until_closed(client: &mut DuplexStream) -> (Duration, String) {
        let (began, mut text) = (Instant::now(), String::new());
        client.read_to_string(&mut text).await.expect("text");
        (began.elapsed(), text)
    }

    fn assert_about(waited: Duration, expected: Duration) {
        assert!(waited >= expected && waited < expected + Duration::from_secs(1), "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_is_kept_for_the_next_request_but_not_for_ever() {
        let mut client = connect();
        for _ in 0..3 {
            sleep(IDLE_WAIT - Duration::from_secs(1)).await;
            send(&mut client, ASK).await;
            assert!(read_answer(&mut client).await.starts_with("HTTP/1.1 200"));
        }
        let (waited, said) = until_closed(&mut client).await;
        assert_about(waited, IDLE_WAIT);
        assert_eq!(said, "");
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_for_headers_starts_with_their_first_byte() {
        for requests_before in 0..2 {
            let mut client = connect();
            for _ in 0..requests_before {
                send(&mut client, ASK).await;
                read_answer(&mut client).await;
            }
            sleep(IDLE_WAIT - Duration::from_secs(1)).await;
            send(&mut client, "GET /quick HTTP/1.1\r\nhost:").await;
            assert_about(until_closed(&mut client).await.0, HEADERS_WAIT);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn headers_that_trickle_in_are_not_waited_for_any_longer() {
        let mut client = connect();
        let began = Instant::now();
        while client.write_all(b"x").await.is_ok() {
            sleep(Duration::from_millis(100)).await;
        }
        assert_about(began.elapsed(), HEADERS_WAIT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_takes_long_to_answer_is_not_silence() {
        let mut client = connect();
        send(&mut client, "GET /slow HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
        let (waited, said) = until_closed(&mut client).await;
        assert_about(waited, 10 * IDLE_WAIT);
        assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_fetched_slowly_is_not_silence() {
        let mut client = connect();
        send(&mut client, "GET /long HTTP/1.1\r\nhost: x\r\n\r\n").await;
        let mut fetched = 0;
        while fetched < 1 << 20 {
            sleep(IDLE_WAIT / 2).await;
            let read = client.read(&mut [0; 64 << 10]).await.expect("an open connection");
            assert_ne!(read, 0, "closed after {fetched} bytes");
            fetched += read;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_in_pieces_is_waited_for_as_long_as_the_client_takes_some() {
        let mut client = connect();
        send(&mut client, "GET /pieces HTTP/1.1\r\nhost: x\r\n\r\n").await;
        for _ in 0..5 {
            sleep(IDLE_WAIT - Duration::from_secs(1)).await;
            let read = client.read(&mut [0; 64 << 10]).await.expect("an open connection");
            assert_ne!(read, 0, "closed though it was being fetched");
        }
        sleep(IDLE_WAIT + Duration::from_secs(1)).await;
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(IDLE_WAIT, client.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "a client that fetches nothing any more is not waited for");
    }

    #[tokio::test(start_paused = true)]
    async fn an_unread_body_ends_the_connection_once_the_client_has_had_time_to_send_it() {
        let mut client = connect();
        send(&mut client, "POST /refuse HTTP/1.1\r\nhost: x\r\ncontent-length: 999999999\r\n\r\n").await;
        let (waited, said) = until_closed(&mut client).await;
        assert!(said.starts_with("HTTP/1.1 200") && said.contains("connection: close"), "{said}");
        assert_eq!(waited, Duration::ZERO, "the answer does not wait for the body");
        let began = Instant::now();
        while client.write_all(b"x").await.is_ok() {
            sleep(Duration::from_millis(100)).await;
        }
        assert_about(began.elapsed(), LINGER_WAIT);
    }

    #[tokio::test(start_paused = true)]
    async fn an_unread_body_without_end_is_not_listened_to_for_ever() {
        let mut client = connect();
        send(&mut client, "POST /refuse HTTP/1.1\r\nhost: x\r\ncontent-length: 999999999\r\n\r\n").await;
        let (chunk, mut sent) = (vec![b' '; 64 << 10], 0);
        while client.write_all(&chunk).await.is_ok() {
            sent += chunk.len();
            assert!(sent < 2 * LINGER_BYTES_MAX);
        }
        assert!(sent >= LINGER_BYTES_MAX, "{sent}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_was_read_leaves_the_connection_open() {
        let mut client = connect();
        for body in ["content-length: 2\r\n\r\nhi", "transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"]
        {
            send(&mut client, &format!("POST /read HTTP/1.1\r\nhost: x\r\n{body}")).await;
            let answer = read_answer(&mut client).await;
            assert!(answer.starts_with("HTTP/1.1 200") && !answer.contains("connection"), "{answer}");
        }
    }
}
