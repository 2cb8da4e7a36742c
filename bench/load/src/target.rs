//! An endpoint that does nothing: it reads a request, notes when that was, and answers 200.

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::clock::now_ms;
use crate::http::Connection;
use crate::jobs::number_in;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// The running endpoint.
#[derive(Clone)]
pub struct Target {
    /// Where it is.
    pub address: SocketAddr,
    calls: Rc<Calls>,
}

#[derive(Default)]
struct Calls {
    seen: RefCell<Vec<Call>>,
    more: Notify,
}

/// One call.
#[derive(Clone, Copy)]
pub struct Call {
    /// The job.
    pub number: usize,
    /// When, in milliseconds since 1970.
    pub at_ms: f64,
}

impl Target {
    /// Starts it on this thread; the caller is within a `LocalSet`.
    pub async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let target = Self { address: listener.local_addr()?, calls: Rc::default() };
        tokio::task::spawn_local(accept(listener, target.calls.clone()));
        Ok(target)
    }

    /// Waits for that many calls, and takes them.
    pub async fn calls(&self, count: usize) -> Vec<Call> {
        while self.calls.seen.borrow().len() < count {
            self.calls.more.notified().await;
        }
        self.calls.seen.take()
    }
}

/// Runs one on a thread of its own until the process ends.
pub fn on_a_thread_of_its_own() -> anyhow::Result<SocketAddr> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(move || {
        let accepting = async { accept(TcpListener::from_std(listener)?, Rc::default()).await };
        tokio::task::LocalSet::new().block_on(&runtime, accepting)
    });
    Ok(address)
}

async fn accept(listener: TcpListener, calls: Rc<Calls>) -> anyhow::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::task::spawn_local(answer(Connection::new(stream)?, calls.clone()));
    }
}

async fn answer(mut connection: Connection, calls: Rc<Calls>) -> anyhow::Result<()> {
    while let Some(request) = connection.read().await? {
        if let Some(number) = number_in(request.body) {
            calls.seen.borrow_mut().push(Call { number, at_ms: now_ms() });
            calls.more.notify_one();
        }
        connection.write(ANSWER).await?;
    }
    Ok(())
}
