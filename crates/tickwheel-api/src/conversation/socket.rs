//! The client's end of a conversation, closed with care.
//!
//! A connection is never closed over bytes still under way. The kernel would answer those with a reset, and a reset can
//! overtake the answer: a client that sends a large body in one go would never learn why it was refused. So what still
//! comes is read and thrown away, for a while.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::Progress;

/// How long, and for how much, a refused client is listened to. The amount is four times the default limit of a batch.
pub const LINGER_WAIT: Duration = Duration::from_secs(5);
pub const LINGER_BYTES_MAX: usize = 64 << 20;

/// A stream that reports what moves on it, and lingers when it is closed too early for the client.
pub struct Socket<S> {
    stream: S,
    progress: Arc<Progress>,
    linger: Option<Linger>,
}

/// The bounds of listening to a client that has its answer.
struct Linger {
    until: Pin<Box<Sleep>>,
    bytes_left: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    pub fn new(stream: S, progress: Arc<Progress>) -> Self {
        Self { stream, progress, linger: None }
    }

    /// Throws away what comes, until the client closes its side too or the bounds are reached.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let linger = self.linger.get_or_insert_with(|| Linger {
            until: Box::pin(sleep(LINGER_WAIT)),
            bytes_left: LINGER_BYTES_MAX,
        });
        let mut scratch = [0; 16 << 10];
        while linger.until.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer)) {
                Ok(()) if (1..=linger.bytes_left).contains(&buffer.filled().len()) => {
                    linger.bytes_left -= buffer.filled().len();
                }
                _ => break,
            }
        }
        Poll::Ready(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Socket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled_before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if buffer.filled().len() > filled_before {
            self.progress.received();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.progress.sent();
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, slices))?;
        self.progress.sent();
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            if !self.progress.may_receive_more() {
                return Poll::Ready(Ok(()));
            }
        }
        self.poll_linger(cx).map(Ok)
    }
}
