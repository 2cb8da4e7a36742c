//! A wire between a server and its database that can be cut and mended.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// Forwards connections as long as it is whole. It stops when dropped.
pub struct Proxy {
    address: SocketAddr,
    whole: Arc<watch::Sender<bool>>,
    accepting: AbortHandle,
}

impl Proxy {
    /// Listens on a free port and forwards to `server` (`host:port`).
    pub async fn start(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let whole = Arc::new(watch::Sender::new(true));
        let accepting = tokio::spawn(accept(listener, server, whole.clone())).abort_handle();
        Self { address, whole, accepting }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections, and every new one at once.
    pub fn cut(&self) {
        self.whole.send_replace(false);
    }

    /// Lets new connections through again.
    pub fn mend(&self) {
        self.whole.send_replace(true);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

async fn accept(listener: TcpListener, server: String, whole: Arc<watch::Sender<bool>>) {
    loop {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut whole = whole.subscribe();
        if !*whole.borrow_and_update() {
            continue;
        }
        let server = server.clone();
        tokio::spawn(async move {
            let Ok(mut upstream) = TcpStream::connect(server).await else { return };
            tokio::select! {
                _ = copy_bidirectional(&mut client, &mut upstream) => {}
                _ = whole.wait_for(|whole| !*whole) => {}
            }
        });
    }
}
