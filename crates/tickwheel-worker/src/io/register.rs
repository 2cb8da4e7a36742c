//! Registers the worker: at the start, and again whenever the server does not know its session any more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tickwheel_client::{Backoff, Error as ClientError};
use tickwheel_protocol::worker::PROTOCOL;
use tickwheel_protocol::{RegisterWorker, RegisteredWorker, ServerInfo, Span};
use uuid::Uuid;

use super::{ANSWER_TIMEOUT, Io, REFUSED_DELAY};
use crate::error::Error;
use crate::options::host;
use crate::session::Registration;

const LIBRARY: &str = concat!("rust/", env!("CARGO_PKG_VERSION"));

/// A worker that waits for its server has nothing else to do, and takes its first job soon after it is back.
const DELAY_MAX: Duration = Duration::from_secs(2);

/// Why there is no session.
enum Refusal {
    /// Later it may be another matter.
    Transient(ClientError),
    /// Somebody has to put something right first.
    Final(String),
}

impl Io {
    /// Registers for the first time. Waits for ever for a server that is away; a refusal is final.
    pub async fn register_first(&self) -> Result<(), Error> {
        let instance = Uuid::now_v7();
        let mut backoff = Backoff::up_to(DELAY_MAX);
        loop {
            match self.register(instance).await {
                Ok(()) => return Ok(()),
                // Whoever runs the worker says so: it is the reason for which it ends.
                Err(Refusal::Final(why)) => return Err(Error::Refused(why)),
                Err(Refusal::Transient(error)) => {
                    self.away.note(&error);
                    tokio::time::sleep(backoff.next(error.retry_after())).await;
                }
            }
        }
    }

    /// Registers again whenever the session is gone.
    pub async fn register_loop(&self) {
        let mut registration = self.session.registration.subscribe();
        loop {
            if registration.wait_for(Option::is_none).await.is_err() {
                return;
            }
            // Workers that all lost their sessions do not come back all at once.
            tokio::time::sleep(Duration::from_secs(1).mul_f64(rand::random())).await;
            let instance = Uuid::now_v7();
            let mut backoff = Backoff::up_to(DELAY_MAX);
            loop {
                let delay = match self.register(instance).await {
                    Ok(()) => break,
                    Err(Refusal::Final(why)) => {
                        tracing::error!(why, "refused by the server");
                        REFUSED_DELAY
                    }
                    Err(Refusal::Transient(error)) => {
                        self.away.note(&error);
                        backoff.next(error.retry_after())
                    }
                };
                tokio::time::sleep(delay).await;
            }
        }
    }

    /// The same `instance` again is the same session, so this can be repeated.
    async fn register(&self, instance: Uuid) -> Result<(), Refusal> {
        let server = self.server_info().await?;
        let range = server.worker_protocol;
        if !(range.min..=range.max).contains(&PROTOCOL) {
            let (min, max) = (range.min, range.max);
            let why =
                format!("it speaks versions {min} to {max} of the worker protocol, this library {PROTOCOL}");
            return Err(Refusal::Final(why));
        }
        if !self.executors.is_empty() && !server.features.iter().any(|known| known == "executors") {
            let why = "it is older than this program and gives jobs with a target to no worker";
            return Err(Refusal::Final(why.into()));
        }
        let request = self.request(instance);
        let sent_at = Instant::now();
        let call = self.client.post(&["workers"]).json(&request).map_err(refusal)?.within(ANSWER_TIMEOUT);
        let answer: RegisteredWorker = call.send().await.and_then(|answer| answer.read()).map_err(refusal)?;
        self.away.is_back();
        let has = |feature: &str| server.features.iter().any(|known| known == feature);
        let registration = Registration {
            lease: answer.lease.as_duration(),
            heartbeat_interval: answer.heartbeat_interval.as_duration(),
            poll_wait: answer.poll_wait.as_duration(),
            limits: answer.limits,
            has_logs: has("logs"),
            has_once: has("once"),
            worker_id: answer.worker_id,
        };
        tracing::info!(
            worker_id = registration.worker_id,
            server = server.version,
            types = self.types.join(","),
            executors = self.executors.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(","),
            queues = self.options.queues.join(","),
            capacity = self.options.capacity,
            lease = %answer.lease,
            "registered"
        );
        self.lease_was_renewed(sent_at, registration.lease);
        self.session.registration.send_replace(Some(Arc::new(registration)));
        Ok(())
    }

    async fn server_info(&self) -> Result<ServerInfo, Refusal> {
        let call = self.client.get(&["server"]).within(ANSWER_TIMEOUT);
        call.send().await.and_then(|answer| answer.read()).map_err(refusal)
    }

    fn request(&self, instance: Uuid) -> RegisterWorker {
        let lease = self.options.lease;
        RegisterWorker {
            name: self.options.name.clone(),
            queues: Some(self.options.queues.clone()),
            types: self.types.clone(),
            executors: Some(self.executors.clone()).filter(|executors| !executors.is_empty()),
            capacity: Some(self.options.capacity),
            labels: Some(self.options.labels.clone()).filter(|labels| !labels.is_empty()),
            protocol: Some(PROTOCOL),
            library: Some(LIBRARY.into()),
            instance: Some(instance.to_string()),
            lease: lease.map(|lease| Span::from_millis(u64::try_from(lease.as_millis()).unwrap_or(u64::MAX))),
            host: Some(host()),
            pid: Some(std::process::id()),
        }
    }
}

fn refusal(error: ClientError) -> Refusal {
    match error.status() {
        Some(400 | 401 | 403 | 404 | 405 | 422) => Refusal::Final(error.to_string()),
        _ => Refusal::Transient(error),
    }
}
