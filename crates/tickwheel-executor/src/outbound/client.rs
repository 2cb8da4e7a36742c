//! The one HTTP client of the house: pooled connections over the guarded connector, and errors in our own terms.
//!
//! A request is written at most once. The pool may put a request that found its idle connection closed onto another
//! connection, but only while nothing of it has been written: hyper hands the request back unstarted then. Whatever was
//! written and got no answer is reported as lost and never sent again from here.
//!
//! Dropping the future of a request, or the body of its answer before the end, closes the connection.

use std::error::Error as StdError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::uri::Scheme;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::Notify;
use url::Url;

use super::connector::GuardedConnector;
use super::guard::AddressGuard;
use super::outgoing::Outgoing;
use super::resolver::{Resolver, SystemResolver};
use crate::error::Error;

/// An answer's head, and what is buffered of its body at a time, may take this much.
const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// So many interim answers are passed over for each answer.
const INTERIM_ANSWERS_MAX: u32 = 16;

/// How to reach the outside.
#[derive(Clone)]
pub struct OutboundOptions {
    /// Which addresses may be reached.
    pub guard: AddressGuard,
    /// Who finds a host's addresses.
    pub resolver: Arc<dyn Resolver>,
    /// How long finding and reaching a host may take.
    pub connect_timeout: Duration,
    /// How many idle connections to one host are kept.
    pub idle_per_host_max: usize,
    /// How long an idle connection is kept.
    pub idle_timeout: Duration,
}

impl OutboundOptions {
    /// The defaults with this guard.
    pub fn guarded_by(guard: AddressGuard) -> Self {
        Self {
            guard,
            resolver: Arc::new(SystemResolver),
            connect_timeout: Duration::from_secs(10),
            idle_per_host_max: 64,
            // Shorter than the keep-alive of common servers: it is better to let go than to be let go.
            idle_timeout: Duration::from_secs(4),
        }
    }
}

/// Sends requests. Clones share one pool of connections.
#[derive(Clone, Debug)]
pub struct OutboundClient(Client<HttpsConnector<GuardedConnector>, Outgoing>);

impl OutboundClient {
    /// A client with its own pool.
    pub fn new(options: OutboundOptions) -> Self {
        let tcp = GuardedConnector::new(options.guard, options.resolver, options.connect_timeout);
        let connector = HttpsConnectorBuilder::new()
            .with_provider_and_webpki_roots(rustls::crypto::ring::default_provider())
            .expect("ring supports the default versions of TLS")
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(options.idle_timeout)
            .pool_max_idle_per_host(options.idle_per_host_max)
            .http1_max_buf_size(BUFFER_BYTES_MAX)
            .build(connector);
        Self(client)
    }

    /// Sends one request and waits for the head of the answer. Has no timeout of its own beyond that of connecting.
    pub(crate) async fn send(&self, mut request: Request<Outgoing>) -> Result<Response<Incoming>, Error> {
        let over_tls = request.uri().scheme() == Some(&Scheme::HTTPS);
        let interim = Arc::new(Interim::default());
        let counted = interim.clone();
        hyper::ext::on_informational(&mut request, move |_| counted.count());
        tokio::select! {
            biased;
            () = interim.too_many() => {
                let detail = format!("more than {INTERIM_ANSWERS_MAX} interim answers (1xx) and no final one");
                Err(Error::ResponseInvalid(detail))
            }
            answer = self.0.request(request) => answer.map_err(|error| explain(&error, over_tls)),
        }
    }
}

/// Answers before the answer (`100 Continue`, `103 Early Hints`). They would keep a call going for as long as they
/// come.
#[derive(Debug, Default)]
struct Interim {
    seen: AtomicU32,
    too_many: Notify,
}

impl Interim {
    fn count(&self) {
        if self.seen.fetch_add(1, Ordering::Relaxed) == INTERIM_ANSWERS_MAX {
            self.too_many.notify_one();
        }
    }

    async fn too_many(&self) {
        self.too_many.notified().await;
    }
}

/// Reads a target's address: absolute, `http` or `https`, with a host. User info and fragment are left out; they are
/// never sent.
pub(crate) fn parse_target(text: &str) -> Result<Uri, Error> {
    let invalid = |reason: &str| Error::InvalidTarget(format!("the address cannot be called: {reason}"));
    let mut url = Url::parse(text).map_err(|error| invalid(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid("only http and https can be"));
    }
    url.set_fragment(None);
    url.set_username("").and_then(|()| url.set_password(None)).map_err(|()| invalid("it has no host"))?;
    url.as_str().parse().map_err(|error: http::uri::InvalidUri| invalid(&error.to_string()))
}

fn explain(error: &legacy::Error, over_tls: bool) -> Error {
    if let Some(ours) = find_in_chain::<Error>(error) {
        return ours.clone();
    }
    // Our connector speaks for itself, so any other trouble while connecting comes from the layer around it.
    if error.is_connect() && over_tls {
        return Error::TlsFailed(root_cause(error));
    }
    match find_in_chain::<hyper::Error>(error) {
        Some(cause) => explain_exchange(cause),
        None => Error::ConnectionLost(root_cause(error)),
    }
}

/// What an error in the middle of an exchange means.
pub(super) fn explain_exchange(error: &hyper::Error) -> Error {
    if error.is_parse() {
        Error::ResponseInvalid(root_cause(error))
    } else {
        Error::ConnectionLost(root_cause(error))
    }
}

fn find_in_chain<'a, E: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    chain(error).find_map(|cause| cause.downcast_ref())
}

fn root_cause(error: &(dyn StdError + 'static)) -> String {
    chain(error).last().map_or_else(|| error.to_string(), ToString::to_string)
}

fn chain<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |cause: &&'a (dyn StdError + 'static)| (*cause).source())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_info_and_fragment_never_leave_the_house() {
        for (written, called) in [
            ("http://me:secret@example.org/a?b=c#d", "http://example.org/a?b=c"),
            ("https://example.org", "https://example.org/"),
            ("HTTP://EXAMPLE.org:8080/Ä", "http://example.org:8080/%C3%84"),
            ("http://2130706433/", "http://127.0.0.1/"),
        ] {
            assert_eq!(parse_target(written).unwrap(), called);
        }
    }

    #[test]
    fn what_is_not_an_absolute_http_address_is_refused() {
        for text in [
            "",
            "example.org",
            "/path",
            "//example.org/",
            "http://",
            "file:///etc/passwd",
            "ftp://a/",
            "mailto:a@b",
        ] {
            assert!(matches!(parse_target(text), Err(Error::InvalidTarget(_))), "{text}");
        }
    }
}
