//! Opens connections, to allowed addresses only.
//!
//! The host is resolved once, every address found is shown to the guard, and the connection goes to one of the very
//! addresses that passed. There is no second resolution, so a name that answers differently next time (DNS rebinding)
//! gains nothing, and no spelling of an address (`2130706433`, `0x7f.1`, `[::ffff:127.0.0.1]`) matters: what counts is
//! where it leads.
//!
//! Deliberately not here: TLS (wrapped around this), proxies (their environment variables are not read).

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tower::Service;

use super::guard::AddressGuard;
use super::local_failure::local_failure;
use super::resolver::Resolver;
use crate::error::Error;

/// How many of a host's addresses are tried at the most.
const ADDRESSES_TRIED_MAX: usize = 8;

/// Connects to the host of a URI if the guard allows one of its addresses.
#[derive(Clone)]
pub(crate) struct GuardedConnector(Arc<Settings>);

struct Settings {
    guard: AddressGuard,
    resolver: Arc<dyn Resolver>,
    connect_timeout: Duration,
}

impl GuardedConnector {
    pub(crate) fn new(guard: AddressGuard, resolver: Arc<dyn Resolver>, connect_timeout: Duration) -> Self {
        Self(Arc::new(Settings { guard, resolver, connect_timeout }))
    }
}

impl Service<Uri> for GuardedConnector {
    type Response = TokioIo<TcpStream>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let settings = Arc::clone(&self.0);
        Box::pin(async move {
            let (host, port) = host_and_port(&uri)?;
            settings.connect(host, port).await.map(TokioIo::new)
        })
    }
}

impl Settings {
    async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, Error> {
        let within = self.connect_timeout;
        let give_up_at = Instant::now() + within;
        let timed_out = || Error::ConnectTimedOut { host: host.to_owned(), within };
        let addresses =
            timeout_at(give_up_at, self.allowed_addresses(host, port)).await.map_err(|_| timed_out())??;
        match connect_to_first(&addresses, give_up_at).await {
            Ok(stream) => {
                // Requests are small and somebody is waiting: without this, the last segment can wait 40 ms.
                stream.set_nodelay(true).map_err(|error| failed(host, &error))?;
                Ok(stream)
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(timed_out()),
            Err(error) => Err(failed(host, &error)),
        }
    }

    async fn allowed_addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, Error> {
        let found = match host.parse::<IpAddr>() {
            Ok(literal) => vec![literal],
            Err(_) => self.resolver.resolve(host).await.map_err(|error| failed(host, &error))?,
        };
        if found.is_empty() {
            return Err(failed(host, &io::Error::other("the name has no address")));
        }
        let (allowed, refused): (Vec<_>, Vec<_>) = found
            .into_iter()
            .map(|ip| SocketAddr::new(ip, port))
            .partition(|address| self.guard.allows(*address));
        if allowed.is_empty() {
            tracing::info!(host, ?refused, "target refused by the address guard");
            return Err(Error::TargetForbidden { host: host.to_owned() });
        }
        Ok(allowed)
    }
}

/// Tries the addresses in order; each gets its share of the time that is left, so that one that swallows packets does
/// not keep the others from being tried.
async fn connect_to_first(addresses: &[SocketAddr], give_up_at: Instant) -> io::Result<TcpStream> {
    let tried = &addresses[..addresses.len().min(ADDRESSES_TRIED_MAX)];
    let mut last_error = io::ErrorKind::TimedOut.into();
    for (index, address) in tried.iter().enumerate() {
        let share = (give_up_at - Instant::now()) / u32::try_from(tried.len() - index).unwrap_or(1);
        last_error = match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => error,
            Err(_) => io::ErrorKind::TimedOut.into(),
        };
    }
    Err(last_error)
}

fn host_and_port(uri: &Uri) -> Result<(&str, u16), Error> {
    let default_port = match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTP => 80,
        Some(scheme) if *scheme == Scheme::HTTPS => 443,
        _ => return Err(Error::InvalidTarget("only http and https can be called".into())),
    };
    let host = uri.host().ok_or_else(|| Error::InvalidTarget("the address has no host".into()))?;
    // An IPv6 address stands in brackets in a URI, and nowhere else.
    let host = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    Ok((host, uri.port_u16().unwrap_or(default_port)))
}

fn failed(host: &str, error: &io::Error) -> Error {
    match local_failure(error) {
        Some(reason) => Error::NotSent(reason),
        None => Error::ConnectFailed { host: host.to_owned(), reason: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::super::resolver::SystemResolver;
    use super::*;

    async fn connect(guard: AddressGuard, uri: &'static str) -> Error {
        let mut connector = GuardedConnector::new(guard, Arc::new(SystemResolver), Duration::from_secs(5));
        connector.call(Uri::from_static(uri)).await.err().unwrap()
    }

    #[tokio::test]
    async fn no_spelling_of_a_private_address_gets_past_the_guard() {
        for uri in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://017700000001/",
            "http://0/",
            "http://localhost/",
            "http://someone@127.0.0.1/",
            "http://example.org:80@127.0.0.1/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://169.254.169.254/latest/meta-data",
            "http://2852039166/",
            "https://10.0.0.1/",
            "https://[fd00:ec2::254]/",
        ] {
            let error = connect(AddressGuard::public_only(), uri).await;
            assert!(matches!(error, Error::TargetForbidden { .. }), "{uri}: {error:?}");
        }
    }

    #[tokio::test]
    async fn only_http_and_https_are_connected_to() {
        for uri in
            ["ftp://127.0.0.1/", "file://localhost/etc/passwd", "gopher://127.0.0.1:70/", "/etc/passwd"]
        {
            let error = connect(AddressGuard::allow_private(), uri).await;
            assert!(matches!(error, Error::InvalidTarget(_)), "{uri}: {error:?}");
        }
    }

    #[test]
    fn the_port_is_the_one_written_or_the_one_of_the_scheme() {
        for (uri, expected) in [
            ("http://a/", ("a", 80)),
            ("https://a/", ("a", 443)),
            ("https://a:8443/", ("a", 8443)),
            ("http://[::1]:81/", ("::1", 81)),
        ] {
            assert_eq!(host_and_port(&Uri::from_static(uri)).unwrap(), expected);
        }
    }
}
