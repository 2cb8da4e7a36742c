//! One call: a request in the making, sent to the first server that can be reached.
//!
//! A request goes to the next server only if the one before certainly did not get it. Every request has a time limit,
//! every answer a size limit.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::Full;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tickwheel_protocol::Problem;
use url::Url;

use crate::client::Client;
use crate::error::Error;
use crate::lines::Lines;
use crate::transport::{NoAnswer, Response, begin, exchange, finish};

const EXCERPT_CHARS_MAX: usize = 200;
const USER_AGENT: &str = concat!("tickwheel/", env!("CARGO_PKG_VERSION"));

/// A request in the making.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    client: &'a Client,
    method: Method,
    path: Vec<String>,
    query: Vec<(String, String)>,
    body: Bytes,
    content_type: &'static str,
    traceparent: Option<HeaderValue>,
    answer_timeout: Duration,
}

/// What the server answered: always a success.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    body: Bytes,
}

impl<'a> Call<'a> {
    pub(crate) fn new(client: &'a Client, method: Method, path: &[&str]) -> Self {
        Self {
            client,
            method,
            path: path.iter().map(|segment| (*segment).to_owned()).collect(),
            query: Vec::new(),
            body: Bytes::new(),
            content_type: "application/json",
            traceparent: None,
            answer_timeout: client.options().answer_timeout,
        }
    }

    /// Adds a query parameter, if there is a value.
    #[must_use]
    pub fn query(mut self, name: &str, value: Option<&str>) -> Self {
        self.query.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        self
    }

    /// Sends `body` as JSON.
    pub fn json(self, body: &impl Serialize) -> Result<Self, Error> {
        let body = serde_json::to_vec(body)
            .map_err(|error| Error::BadRequest(format!("cannot write the request as JSON: {error}")))?;
        Ok(self.body(body))
    }

    /// Sends text that is JSON already.
    #[must_use]
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Sends text that is something else.
    #[must_use]
    pub fn text(self, content_type: &'static str, text: String) -> Self {
        Self { content_type, ..self.body(text) }
    }

    /// The trace that the request belongs to (W3C trace context).
    #[must_use]
    pub(crate) fn traceparent(mut self, traceparent: Option<&str>) -> Self {
        self.traceparent = traceparent.and_then(|text| HeaderValue::from_str(text).ok());
        self
    }

    /// Gives the server `extra` time beyond the usual to answer.
    #[must_use]
    pub fn patience(mut self, extra: Duration) -> Self {
        self.answer_timeout = self.client.options().answer_timeout.saturating_add(extra);
        self
    }

    /// Gives the server so much time to answer, and no more.
    #[must_use]
    pub fn within(mut self, answer_timeout: Duration) -> Self {
        self.answer_timeout = answer_timeout;
        self
    }

    /// Sends it and waits for the answer.
    pub async fn send(self) -> Result<Answer, Error> {
        let mut servers_left = self.client.servers_len();
        let mut key_was_renewed = false;
        loop {
            servers_left -= 1;
            let (index, server) = self.client.server();
            let key = self.client.key();
            let response = match self.exchange(server, key.clone()).await? {
                Ok(response) => response,
                Err(no_answer) => {
                    self.client.leave_server(index);
                    if !no_answer.maybe_sent && servers_left > 0 {
                        continue;
                    }
                    let NoAnswer { cause, maybe_sent } = no_answer;
                    return Err(Error::NoConnection { server: name(server), cause, maybe_sent });
                }
            };
            if response.status == StatusCode::UNAUTHORIZED
                && !key_was_renewed
                && self.client.renew_key(key.as_ref())
            {
                key_was_renewed = true;
                servers_left += 1;
                continue;
            }
            return read(response, server);
        }
    }

    /// Sends it and gives the lines of the answer as they come. The answer may go on for any time.
    pub async fn lines(self) -> Result<Lines, Error> {
        let (index, server) = self.client.server();
        let request = self.request(server, self.client.key())?;
        let begun = tokio::time::timeout(self.answer_timeout, begin(&self.client.shared.http, request)).await;
        let begun = begun.unwrap_or_else(|_| {
            let cause = format!("no answer within {}s", self.answer_timeout.as_secs());
            Err(NoAnswer { cause, maybe_sent: true })
        });
        let no_connection = |NoAnswer { cause, maybe_sent }| {
            self.client.leave_server(index);
            Error::NoConnection { server: name(server), cause, maybe_sent }
        };
        let response = begun.map_err(no_connection)?;
        if response.status().is_success() {
            return Ok(Lines::new(response.into_body()));
        }
        let refusal =
            finish(response, self.client.options().answer_bytes_max).await.map_err(no_connection)?;
        Err(read(refusal, server).err().unwrap_or_else(|| Error::BadAnswer("an answer without lines".into())))
    }

    /// Sends it to this server. The outer error is about the request itself.
    async fn exchange(
        &self,
        server: &Url,
        key: Option<HeaderValue>,
    ) -> Result<Result<Response, NoAnswer>, Error> {
        let request = self.request(server, key)?;
        let exchange = exchange(&self.client.shared.http, request, self.client.options().answer_bytes_max);
        let answer = tokio::time::timeout(self.answer_timeout, exchange).await;
        Ok(answer.unwrap_or_else(|_| {
            let cause = format!("no answer within {}s", self.answer_timeout.as_secs());
            Err(NoAnswer { cause, maybe_sent: true })
        }))
    }

    fn request(&self, server: &Url, key: Option<HeaderValue>) -> Result<Request<Full<Bytes>>, Error> {
        let mut request = Request::builder()
            .method(&self.method)
            .uri(self.url(server).as_str())
            .header(header::USER_AGENT, USER_AGENT)
            .header(header::ACCEPT, "application/json");
        // Also without a body: that is how the server tells a request that changes something from one any web page
        // could send.
        if self.method != Method::GET {
            request = request.header(header::CONTENT_TYPE, self.content_type);
        }
        if let Some(key) = key {
            request = request.header(header::AUTHORIZATION, key);
        }
        if let Some(traceparent) = &self.traceparent {
            request = request.header("traceparent", traceparent);
        }
        let request = request.body(Full::new(self.body.clone()));
        request.map_err(|error| Error::BadRequest(format!("cannot build the request: {error}")))
    }

    fn url(&self, server: &Url) -> Url {
        let mut url = server.clone();
        url.set_query(None);
        url.path_segments_mut()
            .expect("http addresses have a path")
            .pop_if_empty()
            .extend(["api", "v1"].into_iter().chain(self.path.iter().map(String::as_str)));
        if !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.query);
        }
        url
    }
}

impl Answer {
    /// The answer as a `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| {
            Error::BadAnswer(format!("the server's answer is not what this version expects: {error}"))
        })
    }

    /// The answer as the server gave it.
    pub fn bytes(&self) -> &Bytes {
        &self.body
    }
}

fn read(response: Response, server: &Url) -> Result<Answer, Error> {
    let Response { status, headers, body } = response;
    if status.is_success() {
        return Ok(Answer { status, body });
    }
    let seconds = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    match serde_json::from_slice::<Problem>(&body) {
        Ok(problem) => {
            Err(Error::Refused { problem: Box::new(problem), retry_after: seconds.map(Duration::from_secs) })
        }
        Err(_) => {
            let text = String::from_utf8_lossy(&body);
            let excerpt = text.chars().take(EXCERPT_CHARS_MAX).collect();
            Err(Error::Strange { server: name(server), status, excerpt })
        }
    }
}

/// The server's address without a password, for messages.
fn name(server: &Url) -> String {
    server.origin().ascii_serialization()
}
