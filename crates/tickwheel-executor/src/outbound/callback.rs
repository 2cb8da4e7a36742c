//! Tells a job's outcome to its callback URL, or what became of a run to whoever wants to know: one POST, in the form
//! of a Standard Webhooks event.
//!
//! Deliberately not here: trying again. The engine does, and each try carries the same `webhook-id`, so that a receiver
//! can tell a repetition from news.

use std::time::Duration;

use async_trait::async_trait;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Method, Request};
use serde_json::value::RawValue;
use tickwheel_core::ports::{Callback, CallbackSender, CallbackSubject, Undelivered};
use tickwheel_core::workflow::RunEventDetails;
use tickwheel_core::{Job, JsonText, Timestamp};
use tickwheel_protocol::webhook::{EventError, JobEventData, RunEventData, WebhookEvent};
use tokio::time::timeout;

use super::client::{OutboundClient, parse_target};
use super::outgoing::Outgoing;
use super::signature::SigningSecret;
use crate::error::Error;
use crate::wire_time::time;

/// How callbacks are sent.
#[derive(Clone)]
pub struct CallbackSenderOptions {
    /// The way out.
    pub outbound: OutboundClient,
    /// Signs every callback if given.
    pub signing: Option<SigningSecret>,
    /// How long a delivery may take.
    pub timeout: Duration,
    /// What `User-Agent` says.
    pub user_agent: HeaderValue,
}

impl CallbackSenderOptions {
    /// The defaults: unsigned, ten seconds.
    pub fn new(outbound: OutboundClient) -> Self {
        Self { outbound, signing: None, timeout: Duration::from_secs(10), user_agent: super::USER_AGENT }
    }
}

/// Sends callbacks as webhooks.
pub struct WebhookCallbackSender {
    options: CallbackSenderOptions,
}

impl WebhookCallbackSender {
    /// A sender with these options.
    pub fn new(options: CallbackSenderOptions) -> Self {
        Self { options }
    }

    fn request(
        &self,
        callback: &Callback,
        job: Option<&Job>,
        now: Timestamp,
    ) -> Result<Request<Outgoing>, String> {
        let written = match (&callback.subject, job) {
            (CallbackSubject::Run { document, .. }, _) => body_of_run(document),
            (CallbackSubject::Job(_), Some(job)) => body_of_job(callback, job),
            (CallbackSubject::Job(_), None) => return Err("there is nothing to tell".into()),
        };
        let body = Outgoing::of(vec![written.map_err(|error| error.to_string())?.into()]);
        let mut request = Request::new(body.clone());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = parse_target(&callback.url).map_err(|error| error.to_string())?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, self.options.user_agent.clone());
        if let Some(secret) = &self.options.signing {
            let message_id = format!("cb_{}_{}", callback.id, callback.subject.id());
            secret
                .sign(message_id, now, body.pieces())
                .insert_into(headers)
                .map_err(|error| error.to_string())?;
        }
        Ok(request)
    }
}

#[async_trait]
impl CallbackSender for WebhookCallbackSender {
    async fn send(
        &self,
        callback: &Callback,
        job: Option<&Job>,
        now: Timestamp,
    ) -> Result<String, Undelivered> {
        let request = self.request(callback, job, now).map_err(Undelivered::Failed)?;
        let sending = self.options.outbound.send(request);
        match timeout(self.options.timeout, sending).await {
            Ok(Ok(response)) if response.status().is_success() => {
                Ok(format!("the callback URL answered {}", response.status()))
            }
            Ok(Ok(response)) => {
                Err(Undelivered::Failed(format!("the callback URL answered {}", response.status())))
            }
            Ok(Err(error @ Error::NotSent(_))) => Err(Undelivered::NotSent(error.to_string())),
            Ok(Err(error)) => Err(Undelivered::Failed(error.to_string())),
            Err(_) => {
                let waited = self.options.timeout.as_millis();
                Err(Undelivered::Failed(format!("the callback URL did not answer within {waited} ms")))
            }
        }
    }
}

fn body_of_job(callback: &Callback, job: &Job) -> serde_json::Result<Vec<u8>> {
    let status = callback.state.as_str();
    let completed_at = time(callback.completed_at);
    let error = callback.error.as_ref();
    let data = JobEventData {
        id: callback.subject.id(),
        job_type: &job.job_type,
        status,
        queue: &job.queue,
        tenant: &job.tenant,
        attempt: callback.attempt,
        execute_at: time(job.execute_at),
        completed_at,
        result: callback.result.as_ref().map(embed).transpose()?,
        error: error.map(|failure| EventError { code: &failure.code, message: &failure.message }),
        tags: &job.tags,
        metadata: embed(&job.spec.metadata)?,
    };
    serde_json::to_vec(&WebhookEvent { event_type: format!("job.{status}"), timestamp: completed_at, data })
}

fn body_of_run(document: &JsonText) -> serde_json::Result<Vec<u8>> {
    let Some(news) = RunEventDetails::from_text(document) else { return Ok(document.as_str().into()) };
    let data = RunEventData {
        id: news.run.as_uuid(),
        workflow: &news.workflow,
        version: news.version,
        tenant: &news.tenant,
        status: news.status(),
        created_at: time(news.created_at),
        input: embed(&news.input)?,
        tasks: &news.tasks,
        tasks_count: news.tasks_count,
    };
    let event_type = format!("workflow_run.{}", news.event);
    serde_json::to_vec(&WebhookEvent { event_type, timestamp: time(news.at), data })
}

/// A document as part of another, without taking it apart.
fn embed(document: &JsonText) -> serde_json::Result<&RawValue> {
    serde_json::from_str(document.as_str())
}
