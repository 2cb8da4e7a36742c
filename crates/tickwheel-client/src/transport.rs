//! One request and its answer over HTTP/1.1: the connector, TLS, bounds. Who is called and how often is decided
//! elsewhere.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Error;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Shorter than the time after which servers and proxies close a connection that nobody uses.
const IDLE_TIMEOUT: Duration = Duration::from_secs(50);

/// A pool of connections. Each belongs to the runtime that opened it.
pub(crate) type Http = hyper_util::client::legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// An answer, whatever it says.
pub(crate) struct Response {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Why there is no answer.
pub(crate) struct NoAnswer {
    pub cause: String,
    /// Whether the request may have arrived.
    pub maybe_sent: bool,
}

/// A fresh pool. `ca_file` has the certificates to trust instead of the usual ones.
pub(crate) fn pool(ca_file: Option<&Path>) -> Result<Http, String> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    let builder = HttpsConnectorBuilder::new();
    let builder = match ca_file {
        None => builder.with_webpki_roots(),
        Some(path) => builder.with_tls_config(trusting(path)?),
    };
    let connector = builder.https_or_http().enable_http1().wrap_connector(connector);
    let mut client = hyper_util::client::legacy::Client::builder(TokioExecutor::new());
    Ok(client.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE_TIMEOUT).build(connector))
}

fn trusting(path: &Path) -> Result<ClientConfig, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", path.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))? {
        let certificate = certificate.map_err(|error| unreadable(&error))?;
        roots.add(certificate).map_err(|error| unreadable(&error))?;
    }
    if roots.is_empty() {
        return Err(format!("{} contains no certificate", path.display()));
    }
    Ok(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}

/// One request and its answer, or what kept them from each other.
pub(crate) async fn exchange(
    http: &Http,
    request: Request<Full<Bytes>>,
    answer_bytes_max: usize,
) -> Result<Response, NoAnswer> {
    finish(begin(http, request).await?, answer_bytes_max).await
}

/// One request and the beginning of its answer.
pub(crate) async fn begin(
    http: &Http,
    request: Request<Full<Bytes>>,
) -> Result<http::Response<Incoming>, NoAnswer> {
    let failed = |error: Error| NoAnswer { cause: deepest_cause(&error), maybe_sent: !error.is_connect() };
    http.request(request).await.map_err(failed)
}

/// The rest of an answer.
pub(crate) async fn finish(
    response: http::Response<Incoming>,
    answer_bytes_max: usize,
) -> Result<Response, NoAnswer> {
    let (head, body) = response.into_parts();
    let body = Limited::new(body, answer_bytes_max).collect().await;
    let body = body.map_err(|error| NoAnswer { cause: deepest_cause(&*error), maybe_sent: true })?;
    Ok(Response { status: head.status, headers: head.headers, body: body.to_bytes() })
}

/// The end of the chain of causes says what happened ("connection refused"); the links before it say where.
fn deepest_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
