//! A small HTTP server that does what real ones do and what they should not.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

/// Longer than anything takes; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a request is answered.
#[derive(Clone, Debug)]
pub enum Reply {
    /// With these bytes; the connection stays open.
    Bytes(Vec<u8>),
    /// With these bytes; then the connection is closed.
    BytesThenClose(Vec<u8>),
    /// With these bytes, then the letter `x` without end, as fast as it goes.
    Endless(Vec<u8>),
    /// With these bytes, then the letter `x` without end, one at a time.
    Trickle(Vec<u8>),
    /// Never.
    Silence,
}

impl Reply {
    /// A well-formed answer.
    pub fn new(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut bytes = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len()).into_bytes();
        for header in headers {
            bytes.extend_from_slice(header.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(body);
        Self::Bytes(bytes)
    }

    /// `200 OK` with a body.
    pub fn ok(body: impl AsRef<[u8]>) -> Self {
        Self::new("200 OK", &[], body)
    }
}

/// A request as it came over the wire.
#[derive(Clone, Debug)]
pub struct Seen {
    pub request_line: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Seen {
    /// All values of a header.
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str()).collect()
    }

    /// The only value of a header.
    pub fn one(&self, name: &str) -> &str {
        match self.all(name)[..] {
            [value] => value,
            ref values => panic!("{name} has values {values:?}"),
        }
    }
}

pub struct TestServer {
    pub address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    seen: Mutex<UnboundedReceiver<Seen>>,
    closed: Mutex<UnboundedReceiver<()>>,
}

impl TestServer {
    /// Answers every request with `reply`.
    pub async fn always(reply: Reply) -> Self {
        Self::on(([127, 0, 0, 1], 0).into(), vec![reply]).await
    }

    /// Answers with the replies in turn, and with the last one from then on.
    pub async fn in_turn(replies: Vec<Reply>) -> Self {
        Self::on(([127, 0, 0, 1], 0).into(), replies).await
    }

    pub async fn on(address: SocketAddr, replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (seen_tx, seen) = mpsc::unbounded_channel();
        let (closed_tx, closed) = mpsc::unbounded_channel();
        let accepted = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&accepted);
        let script =
            Arc::new(Script { replies, next: AtomicUsize::new(0), seen: seen_tx, closed: closed_tx });
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, Arc::clone(&script)));
            }
        });
        Self { address, accepted, seen: Mutex::new(seen), closed: Mutex::new(closed) }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// The next request that arrives, or arrived and was not looked at yet.
    pub async fn seen(&self) -> Seen {
        within_patience(async { self.seen.lock().await.recv().await.unwrap() }).await
    }

    /// The requests that arrived and were not looked at yet.
    pub async fn seen_so_far(&self) -> Vec<Seen> {
        let mut seen = self.seen.lock().await;
        std::iter::from_fn(|| seen.try_recv().ok()).collect()
    }

    /// Waits until the other side has closed a connection.
    pub async fn closed(&self) {
        within_patience(async { self.closed.lock().await.recv().await.unwrap() }).await;
    }
}

pub async fn within_patience<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, wait).await.expect("it should have happened by now")
}

struct Script {
    replies: Vec<Reply>,
    next: AtomicUsize,
    seen: UnboundedSender<Seen>,
    closed: UnboundedSender<()>,
}

async fn serve(mut stream: TcpStream, script: Arc<Script>) {
    while let Some(request) = read_request(&mut stream).await {
        // The test may be over and gone: then nobody wants to know.
        let _ = script.seen.send(request);
        let turn = script.next.fetch_add(1, Ordering::SeqCst).min(script.replies.len() - 1);
        if !answer(&mut stream, &script.replies[turn]).await {
            break;
        }
    }
    let _ = script.closed.send(());
}

/// Whether the connection may be used further.
async fn answer(stream: &mut TcpStream, reply: &Reply) -> bool {
    match reply {
        Reply::Bytes(bytes) => stream.write_all(bytes).await.is_ok(),
        Reply::BytesThenClose(bytes) => {
            let _ = stream.write_all(bytes).await;
            false
        }
        Reply::Endless(head) => {
            let mut sent = stream.write_all(head).await;
            while sent.is_ok() {
                sent = stream.write_all(&[b'x'; 4096]).await;
            }
            false
        }
        Reply::Trickle(head) => {
            let mut sent = stream.write_all(head).await;
            while sent.is_ok() {
                sent = stream.write_all(b"x").await;
                // sleep: one byte at a time is what this target is about
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            false
        }
        Reply::Silence => {
            while matches!(stream.read(&mut [0; 64]).await, Ok(read) if read > 0) {}
            false
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let request_line = lines.next().unwrap().to_owned();
    let headers: Vec<_> = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let mut seen = Seen { request_line, headers, body: bytes.split_off(head_end + 4) };
    let length = seen.all("content-length").first().map_or(0, |length| length.parse().unwrap());
    while seen.body.len() < length {
        if stream.read_buf(&mut seen.body).await.ok()? == 0 {
            return None;
        }
    }
    Some(seen)
}
