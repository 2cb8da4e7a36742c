//! Talks to a server over HTTP. Knows addresses, keys and errors; what a request means is for the commands.
//!
//! Every request has a time limit, every answer a size limit.

use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tickwheel_protocol::Problem;
use url::Url;

use crate::failure::CommandError;
use crate::output::{plain, pretty};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
const ANSWER_BYTES_MAX: usize = 1 << 30;
const EXCERPT_CHARS_MAX: usize = 200;

type Http = hyper_util::client::legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// A server to talk to.
pub struct Client {
    server: Url,
    api_key: Option<String>,
    http: Http,
}

/// A request in the making.
pub struct Call<'a> {
    client: &'a Client,
    method: Method,
    url: Url,
    body: Bytes,
    content_type: &'static str,
    answer_timeout: Duration,
}

/// What the server answered: always a success.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    body: Bytes,
}

impl Client {
    /// A client of `server`: an `http` or `https` address, or a host and a port, which are called by `http`.
    pub fn new(server: &str, api_key: Option<String>) -> Result<Self, CommandError> {
        let wrong = || {
            let forms = "use HOST:PORT, http://HOST:PORT or https://HOST";
            CommandError::BadInput(format!("{server:?} is not the address of a server: {forms}"))
        };
        // `localhost:7180` alone would be read as a scheme and a path.
        let with_scheme = if server.contains("://") { server.into() } else { format!("http://{server}") };
        let url = Url::parse(&with_scheme).map_err(|_| wrong())?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(wrong());
        }
        if api_key.as_ref().is_some_and(|key| header::HeaderValue::from_str(key).is_err()) {
            return Err(CommandError::BadInput("the API key contains characters no key has".into()));
        }
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_webpki_roots()
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { server: url, api_key, http })
    }

    /// A request that reads.
    pub fn get(&self, path: &[&str]) -> Call<'_> {
        self.call(Method::GET, path)
    }

    /// A request that does something.
    pub fn post(&self, path: &[&str]) -> Call<'_> {
        self.call(Method::POST, path)
    }

    /// A request that puts something in the place of what was there.
    pub fn put(&self, path: &[&str]) -> Call<'_> {
        self.call(Method::PUT, path)
    }

    /// A request that changes a part of something.
    pub fn patch(&self, path: &[&str]) -> Call<'_> {
        self.call(Method::PATCH, path)
    }

    /// A request that removes something.
    pub fn delete(&self, path: &[&str]) -> Call<'_> {
        self.call(Method::DELETE, path)
    }

    fn call(&self, method: Method, path: &[&str]) -> Call<'_> {
        let mut url = self.server.clone();
        url.set_query(None);
        url.path_segments_mut()
            .expect("http addresses have a path")
            .pop_if_empty()
            .extend(["api", "v1"].iter().chain(path));
        let (body, content_type) = (Bytes::new(), "application/json");
        Call { client: self, method, url, body, content_type, answer_timeout: ANSWER_TIMEOUT }
    }
}

impl Call<'_> {
    /// Adds a query parameter, if there is a value.
    pub fn query(mut self, name: &str, value: Option<&str>) -> Self {
        if let Some(value) = value {
            self.url.query_pairs_mut().append_pair(name, value);
        }
        self
    }

    /// Sends `body` as JSON.
    pub fn json(self, body: &impl Serialize) -> Result<Self, CommandError> {
        let body = serde_json::to_vec(body).context("cannot write the request as JSON")?;
        Ok(self.body(body))
    }

    /// Sends text that is JSON already.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Sends text that is something else.
    pub fn text(self, content_type: &'static str, text: String) -> Self {
        Self { content_type, ..self.body(text) }
    }

    /// Gives the server `extra` time beyond the usual to answer.
    pub fn patience(mut self, extra: Duration) -> Self {
        self.answer_timeout = ANSWER_TIMEOUT.saturating_add(extra);
        self
    }

    /// Sends it and waits for the answer.
    pub async fn send(self) -> Result<Answer, CommandError> {
        let (client, answer_timeout) = (self.client, self.answer_timeout);
        let request = self.into_request()?;
        let too_late = |_| Err(format!("no answer within {}s", answer_timeout.as_secs()));
        let server = client.server_name();
        match tokio::time::timeout(answer_timeout, client.exchange(request)).await.unwrap_or_else(too_late) {
            Ok(answer) if answer.status.is_success() => Ok(answer),
            Ok(answer) => Err(answer.into_failure(server)),
            Err(cause) => Err(CommandError::NoConnection { server, cause }),
        }
    }

    fn into_request(self) -> Result<Request<Full<Bytes>>, CommandError> {
        let changes = self.method != Method::GET;
        let mut request = Request::builder()
            .method(self.method)
            .uri(self.url.as_str())
            .header(header::USER_AGENT, concat!("tickwheel/", env!("CARGO_PKG_VERSION")))
            .header(header::ACCEPT, "application/json");
        // Also without a body: that is how the server tells a request that changes something from one any web page
        // could send.
        if changes {
            request = request.header(header::CONTENT_TYPE, self.content_type);
        }
        if let Some(key) = &self.client.api_key {
            request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        }
        let request = request.body(Full::new(self.body)).context("cannot build the request")?;
        Ok(request)
    }
}

impl Client {
    /// One request and its answer, or what kept them from each other.
    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Answer, String> {
        let response = self.http.request(request).await.map_err(|error| deepest_cause(&error))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        Ok(Answer { status, body })
    }

    /// The server's address without a password, for messages.
    fn server_name(&self) -> String {
        self.server.origin().ascii_serialization()
    }
}

impl Answer {
    /// The answer as a `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, CommandError> {
        let answer = serde_json::from_slice(&self.body)
            .context("the server's answer is not what this version expects")?;
        Ok(answer)
    }

    /// The answer as the server gave it, with line breaks.
    pub fn pretty(&self) -> Result<String, CommandError> {
        if self.body.is_empty() {
            return Ok("null".into());
        }
        let text: Box<RawValue> = self.read()?;
        Ok(pretty(text.get()))
    }

    fn into_failure(self, server: String) -> CommandError {
        match serde_json::from_slice::<Problem>(&self.body) {
            Ok(problem) => CommandError::Refused(Box::new(problem)),
            Err(_) => {
                let text = String::from_utf8_lossy(&self.body);
                let excerpt = plain(&text.chars().take(EXCERPT_CHARS_MAX).collect::<String>());
                CommandError::Strange { server, status: self.status, excerpt }
            }
        }
    }
}

/// The end of the chain of causes says what happened ("connection refused"); the links before it say where.
fn deepest_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
