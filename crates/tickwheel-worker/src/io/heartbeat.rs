//! Heartbeats: every third of the lease, also when idle and while draining. They carry progress and bring cancels.

use std::time::{Duration, Instant};

use tickwheel_client::Error;
use tickwheel_protocol::{Code, WorkerHeartbeat, WorkerHeartbeatAnswer, WorkerState};

use super::{Io, REFUSED_DELAY};
use crate::session::Registration;

/// News bring a heartbeat forward, at most that often.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// Attempts whose progress fits into one request.
const PROGRESS_MAX: usize = 1000;
const TIMEOUT_MIN: Duration = Duration::from_secs(1);

impl Io {
    /// Sends heartbeats for ever.
    pub async fn heartbeat_loop(&self) {
        let mut last_sent = Instant::now();
        let mut failures = 0;
        let mut resync = false;
        loop {
            let registration = self.registered().await;
            let pause = match failures {
                0 => registration.heartbeat_interval.mul_f64(rand::random_range(0.9..1.1)),
                failures => retry_delay(failures),
            };
            self.until_next(last_sent, pause).await;
            last_sent = Instant::now();
            match self.heartbeat(&registration, resync).await {
                Ok(answer) => {
                    failures = 0;
                    if answer.resync {
                        // An answer to a poll may be lost: ask again for the same.
                        self.dispatch.poll_again();
                        self.session.wake_heartbeat.notify_one();
                    }
                    resync = answer.resync;
                }
                Err(error) if error.code() == Some(Code::UnknownWorker) => {
                    failures = 0;
                    self.session_is_gone(&registration);
                }
                Err(error) => {
                    failures += 1;
                    let is_refused = matches!(error.status(), Some(401 | 403 | 422));
                    if is_refused {
                        tracing::error!(%error, "refused by the server");
                        tokio::time::sleep(REFUSED_DELAY.min(registration.lease / 4)).await;
                    } else {
                        self.away.note(&error);
                    }
                }
            }
        }
    }

    /// Waits for the next heartbeat, or until there is a reason to send it sooner.
    async fn until_next(&self, last_sent: Instant, pause: Duration) {
        let planned = last_sent + pause;
        loop {
            let soonest = if self.session.wants_confirmation() {
                last_sent
            } else if self.session.has_progress() {
                last_sent + PROGRESS_INTERVAL
            } else {
                planned
            };
            tokio::select! {
                () = tokio::time::sleep_until(planned.min(soonest).into()) => return,
                () = self.session.wake_heartbeat.notified() => {}
            }
        }
    }

    /// One heartbeat. With `tokens` the server learns exactly what we have.
    pub async fn heartbeat(
        &self,
        registration: &Registration,
        with_tokens: bool,
    ) -> Result<WorkerHeartbeatAnswer, Error> {
        let confirmations = self.session.take_confirmations();
        let progress = self.session.take_progress(PROGRESS_MAX);
        let with_tokens = with_tokens || !confirmations.is_empty();
        let (held, stuck) = self.session.counts();
        let request = WorkerHeartbeat {
            attempts: Some(progress.iter().map(|(_, progress)| progress.clone()).collect()),
            held: Some(held),
            tokens: with_tokens.then(|| self.session.tokens()),
            state: Some(if self.session.is_draining() { WorkerState::Draining } else { WorkerState::Active }),
            stuck: Some(stuck),
        };
        let sent_at = Instant::now();
        let path = ["workers", &registration.worker_id, "heartbeat"];
        let call = self.heartbeat_client.post(&path).json(&request)?;
        let timeout = registration.heartbeat_interval.max(TIMEOUT_MIN);
        let answer: Result<WorkerHeartbeatAnswer, Error> =
            call.within(timeout).send().await.and_then(|answer| answer.read());
        match answer {
            Ok(answer) => {
                self.away.is_back();
                self.lease_was_renewed(sent_at, answer.lease.as_duration());
                self.hear(&answer.cancel, &answer.lost, answer.drain);
                // After what was heard, so that whoever asked knows of it.
                for confirmation in confirmations {
                    let _ = confirmation.send(());
                }
                Ok(answer)
            }
            Err(error) => {
                self.session.put_progress_back(progress);
                self.session.put_confirmations_back(confirmations);
                Err(error)
            }
        }
    }
}

/// 250 ms, 500 ms, then every second.
fn retry_delay(failures: u32) -> Duration {
    Duration::from_millis(250).saturating_mul(1 << (failures - 1).min(2)).min(Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_heartbeat_is_tried_again_soon() {
        let delays: Vec<_> = (1..6).map(|failures| retry_delay(failures).as_millis()).collect();
        assert_eq!(delays, [250, 500, 1000, 1000, 1000]);
    }
}
