//! `once`: an effect that happens once per job, however often the job is tried.
//!
//! The first caller runs the effect with a stable idempotency key, and its result is remembered. Whoever dies between
//! the effect and the record leaves the key *in doubt*.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use tickwheel_client::{Backoff, Client};
use tickwheel_protocol::attempt::{AskOnce, OnceAbandon, OnceAnswer, OnceDone, OnceScope, OnceState};
use tickwheel_protocol::{Code, Span};

use crate::attempt::CancelReason;
use crate::ctx::Ctx;
use crate::error::JobError;

const RESULT_BYTES_MAX: usize = 64 << 10;
/// How long one of its requests may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait for another caller, if the server does not say.
const BUSY_DELAY: Duration = Duration::from_millis(500);

/// Where results are kept.
#[derive(Clone)]
pub(crate) enum OnceRecords {
    /// By the server.
    Server,
    /// The server cannot.
    Unavailable,
    /// In memory, for tests.
    Memory(Arc<Mutex<HashMap<String, Box<RawValue>>>>),
}

/// What to do if nobody knows whether the effect happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InDoubt {
    /// Run it again with the same idempotency key.
    #[default]
    Again,
    /// Fail the job for good.
    Fail,
}

/// How `once` remembers.
#[derive(Clone, Copy, Debug)]
pub struct OnceOptions {
    /// Who shares the key. Default: the attempts of the job.
    pub scope: OnceScope,
    /// What to do in doubt.
    pub in_doubt: InDoubt,
    /// How long the result is remembered. Default: 7 days.
    pub ttl: Option<Duration>,
}

impl Default for OnceOptions {
    fn default() -> Self {
        Self { scope: OnceScope::Job, in_doubt: InDoubt::default(), ttl: None }
    }
}

impl<S> Ctx<S> {
    /// Runs `effect` once per job, and returns its result to every later caller with this key. The effect gets an
    /// idempotency key that is the same whenever it runs for this key.
    pub async fn once<T, E, F, Fut>(&self, key: &str, effect: F) -> Result<T, JobError>
    where
        T: Serialize + DeserializeOwned,
        E: Into<JobError>,
        F: FnOnce(String) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        self.once_with(OnceOptions::default(), key, effect).await
    }

    /// The same with options.
    pub async fn once_with<T, E, F, Fut>(
        &self,
        options: OnceOptions,
        key: &str,
        effect: F,
    ) -> Result<T, JobError>
    where
        T: Serialize + DeserializeOwned,
        E: Into<JobError>,
        F: FnOnce(String) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let record = Record {
            token: &self.current.attempts[0].token,
            key,
            scope: options.scope,
            client: self.client(),
            ctx: self,
        };
        let records = self.current.link.once_records();
        let known = match &records {
            OnceRecords::Server => record.begin(options).await?,
            OnceRecords::Memory(memory) => {
                memory.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
            }
            OnceRecords::Unavailable => {
                let why = "this server has no `once`: it does not list it among its features";
                return Err(JobError::not_retryable(why).code("once_unavailable"));
            }
        };
        if let Some(result) = known {
            return read(&result);
        }
        let idempotency_key = match options.scope {
            OnceScope::Job => format!("{}:{key}", self.idempotency_key()),
            OnceScope::Tenant => key.to_owned(),
        };
        let result = match effect(idempotency_key).await {
            Ok(result) => result,
            Err(error) => {
                // Whoever wants to be sure does not take its word for it: then the key stays in doubt.
                if matches!(records, OnceRecords::Server) && options.in_doubt == InDoubt::Again {
                    record.abandon().await;
                }
                return Err(error.into());
            }
        };
        let text = to_raw_value(&result).map_err(|error| {
            JobError::not_retryable(format!("cannot write the result of `once` as JSON: {error}"))
                .code("result_invalid")
        })?;
        if text.get().len() > RESULT_BYTES_MAX {
            let why =
                format!("the result of `once` has {} bytes, more than {RESULT_BYTES_MAX}", text.get().len());
            return Err(JobError::not_retryable(why).code("result_too_large"));
        }
        match records {
            OnceRecords::Memory(memory) => {
                memory.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned(), text);
            }
            _ => record.done(text).await?,
        }
        Ok(result)
    }
}

fn read<T: DeserializeOwned>(result: &RawValue) -> Result<T, JobError> {
    serde_json::from_str(result.get()).map_err(|error| {
        JobError::not_retryable(format!("what `once` remembers is not of this type: {error}"))
            .code("once_invalid")
    })
}

/// The server's record of one key.
struct Record<'a, S> {
    token: &'a str,
    key: &'a str,
    scope: OnceScope,
    client: &'a Client,
    ctx: &'a Ctx<S>,
}

impl<S> Record<'_, S> {
    /// The remembered result; or nothing, and the effect is ours to run.
    async fn begin(&self, options: OnceOptions) -> Result<Option<Box<RawValue>>, JobError> {
        let ttl =
            options.ttl.map(|ttl| Span::from_millis(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)));
        let ask = AskOnce { scope: Some(options.scope), ttl };
        loop {
            self.ctx.check()?;
            let answer = self.call(None, &ask).await?;
            let begun: OnceAnswer = answer.read().map_err(JobError::from)?;
            match begun.state {
                OnceState::Done => {
                    return Ok(Some(begun.result.unwrap_or_else(|| RawValue::NULL.to_owned())));
                }
                OnceState::Busy => {
                    let delay = begun.retry_in.map_or(BUSY_DELAY, Span::as_duration);
                    self.ctx.sleep(delay).await?;
                }
                OnceState::InDoubt if options.in_doubt == InDoubt::Fail => {
                    let why = format!("nobody knows whether {:?} happened", self.key);
                    return Err(JobError::not_retryable(why).code("in_doubt"));
                }
                OnceState::First | OnceState::InDoubt => return Ok(None),
            }
        }
    }

    async fn done(&self, result: Box<RawValue>) -> Result<(), JobError> {
        let done = OnceDone { result: Some(result), scope: Some(self.scope) };
        self.call(Some("done"), &done).await.map(drop)
    }

    /// If this does not arrive, the key is in doubt for the next caller. That is less exact, and not wrong.
    async fn abandon(&self) {
        if let Err(error) = self.call(Some("abandon"), &OnceAbandon { scope: Some(self.scope) }).await {
            tracing::debug!(%error, key = self.key, "could not say that the effect did not happen");
        }
    }

    /// One call, repeated until it is answered. Also after a cancel: what happened is to be recorded, and the grace of a
    /// cancelled handler ends by itself.
    async fn call(
        &self,
        verb: Option<&str>,
        body: &impl Serialize,
    ) -> Result<tickwheel_client::Answer, JobError> {
        let path: Vec<&str> = ["attempts", self.token, "once", self.key].into_iter().chain(verb).collect();
        let mut backoff = Backoff::default();
        loop {
            let call = self.client.post(&path).json(body)?.within(ANSWER_TIMEOUT);
            match call.send().await {
                Ok(answer) => return Ok(answer),
                Err(error) if error.code() == Some(Code::StaleToken) => {
                    return Err(JobError::stopped(CancelReason::LeaseLost));
                }
                Err(error) if error.is_transient() => {
                    if verb.is_none() {
                        self.ctx.check()?;
                    }
                    tokio::time::sleep(backoff.next(error.retry_after())).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}
