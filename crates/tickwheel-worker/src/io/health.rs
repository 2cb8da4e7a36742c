//! The health port: `/healthz` says whether the worker is heard, `/readyz` whether it takes jobs.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::Io;

const CONNECTIONS_MAX: usize = 16;
const REQUEST_TIME_MAX: Duration = Duration::from_secs(2);
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// The lease that counts before the server has said one.
const LEASE_DEFAULT: Duration = Duration::from_secs(15);

impl Io {
    /// Answers for ever. Without a listener it waits for ever.
    pub async fn serve_health(self: &Arc<Self>, listener: Option<TcpListener>) {
        let Some(listener) = listener else { return std::future::pending().await };
        let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let Ok(permit) = connections.clone().acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, _)) => {
                    let io = self.clone();
                    tokio::spawn(async move {
                        let _ = tokio::time::timeout(REQUEST_TIME_MAX, io.answer(stream)).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::debug!(%error, "the health port could not accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    async fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut request = Vec::new();
        let mut piece = [0; 1024];
        while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST_BYTES_MAX {
            match stream.read(&mut piece).await? {
                0 => break,
                read => request.extend_from_slice(&piece[..read]),
            }
        }
        let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let path = line.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
        let (status, word) = match path {
            b"/healthz" if self.is_healthy() => ("200 OK", "ok"),
            b"/readyz" if self.is_ready() => ("200 OK", "ok"),
            b"/healthz" | b"/readyz" => ("503 Service Unavailable", "not now"),
            _ => ("404 Not Found", "try /healthz or /readyz"),
        };
        let length = word.len() + 1;
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(format!("{head}{word}\n").as_bytes()).await?;
        stream.shutdown().await
    }

    /// Whether a heartbeat was accepted within a lease, and the poll loop turns.
    fn is_healthy(&self) -> bool {
        let registration = self.session.registration.borrow().clone();
        let lease =
            registration.as_ref().map_or(self.options.lease.unwrap_or(LEASE_DEFAULT), |known| known.lease);
        let poll_wait = registration.as_ref().map_or(lease, |known| known.poll_wait);
        let (heartbeat_age, poll_age) = self.session.ages();
        let heartbeat_age = heartbeat_age.unwrap_or_else(|| self.started.elapsed());
        heartbeat_age <= lease && poll_age.is_none_or(|age| age <= poll_wait * 2)
    }

    fn is_ready(&self) -> bool {
        self.is_healthy() && self.session.registration.borrow().is_some() && !self.session.is_draining()
    }
}
