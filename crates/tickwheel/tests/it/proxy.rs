//! A wire between a server and its database. It can be cut and mended, it can stall, and it can lose the answer to a
//! commit: the one fault after which nobody but the database knows what happened.

mod commits;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use self::commits::{AnswersSeen, ClientSide, ServerSide};
use crate::eventually::{PATIENCE, eventually};

const CHUNK_LEN: usize = 16_384;

/// Forwards connections as long as it is whole. It stops when dropped.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wire {
    Whole,
    /// Nothing gets through, and nobody is told.
    Stalled,
    Cut,
}

struct Shared {
    server: String,
    wire: watch::Sender<Wire>,
    faults: Mutex<Faults>,
}

#[derive(Default)]
struct Faults {
    /// A text of a statement: the answer to the commit of the next transaction with such a statement is to be lost.
    armed: Option<&'static str>,
    lost: usize,
}

impl Proxy {
    /// Listens on a free port and forwards to `server` (`host:port`).
    pub async fn start(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared =
            Arc::new(Shared { server, wire: watch::Sender::new(Wire::Whole), faults: Mutex::default() });
        let accepting = tokio::spawn(accept(listener, shared.clone())).abort_handle();
        Self { address, shared, accepting }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections, and every new one at once.
    pub fn cut(&self) {
        self.shared.wire.send_replace(Wire::Cut);
    }

    /// Lets nothing through any more. Connections stay open, as behind a switch that has lost its power.
    pub fn stall(&self) {
        self.shared.wire.send_replace(Wire::Stalled);
    }

    /// Lets everything through again, also what waited meanwhile.
    pub fn mend(&self) {
        self.shared.wire.send_replace(Wire::Whole);
    }

    /// The next transaction with a statement that contains `text` is committed, and instead of the answer the
    /// connection ends. Once.
    pub fn lose_answer_to(&self, text: &'static str) {
        self.shared.faults().armed = Some(text);
    }

    /// Waits until so many answers have been lost since the beginning.
    pub async fn has_lost(&self, count: usize) {
        let lost = || self.shared.faults().lost;
        let armed = self.shared.faults().armed;
        let what = format!("the answer to the commit of {armed:?} to be lost");
        eventually(&what, PATIENCE, async || (lost() >= count).then_some(())).await;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        tokio::spawn(forward(client, shared.clone()));
    }
}

async fn forward(client: TcpStream, shared: Arc<Shared>) {
    let mut wire = shared.wire.subscribe();
    if *wire.wait_for(|wire| *wire != Wire::Stalled).await.expect("held") == Wire::Cut {
        return;
    }
    let Ok(upstream) = TcpStream::connect(&shared.server).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = upstream.into_split();
    let losing = Mutex::new(None);
    tokio::select! {
        () = upwards(from_client, to_server, &shared, &losing) => {}
        () = downwards(from_server, to_client, &shared, &losing) => {}
        _ = wire.wait_for(|wire| *wire == Wire::Cut) => {}
    }
}

/// What the client says. Whether it commits is known before the server hears of it, so no answer is missed.
async fn upwards(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    shared: &Shared,
    losing: &Mutex<Option<Losing>>,
) {
    let (mut chunk, mut client) = (vec![0; CHUNK_LEN], ClientSide::default());
    while let Ok(len @ 1..) = from.read(&mut chunk).await {
        shared.passable().await;
        let armed = shared.faults().armed;
        if let Some(commit) = client.hear(&chunk[..len], armed) {
            let text = shared.faults().armed.take();
            *losing.lock().unwrap() = text.map(|text| Losing { text, answers: AnswersSeen::to(commit) });
        }
        if to.write_all(&chunk[..len]).await.is_err() {
            return;
        }
    }
}

/// An answer that is being lost.
struct Losing {
    text: &'static str,
    answers: AnswersSeen,
}

/// What the server says, up to an answer that is to be lost.
async fn downwards(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    shared: &Shared,
    losing: &Mutex<Option<Losing>>,
) {
    let (mut chunk, mut server) = (vec![0; CHUNK_LEN], ServerSide::default());
    while let Ok(len @ 1..) = from.read(&mut chunk).await {
        shared.passable().await;
        let messages = server.hear(&chunk[..len]);
        if let Some(losing) = &mut *losing.lock().unwrap() {
            match losing.answers.see(&messages) {
                None => continue,
                Some(true) => shared.faults().lost += 1,
                // It was rolled back: there was no such answer, and the next transaction may have one.
                Some(false) => shared.faults().armed = Some(losing.text),
            }
            return;
        }
        if to.write_all(&chunk[..len]).await.is_err() {
            return;
        }
    }
}

impl Shared {
    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap()
    }

    async fn passable(&self) {
        let _ = self.wire.subscribe().wait_for(|wire| *wire != Wire::Stalled).await;
    }
}
