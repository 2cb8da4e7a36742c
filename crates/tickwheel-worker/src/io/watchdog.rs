//! Watches the handlers' runtime: says who blocks it, and gives back what it cannot start.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::Io;

const INTERVAL: Duration = Duration::from_millis(250);
/// A runtime that does not answer for so long is blocked.
const BLOCKED_AFTER: Duration = Duration::from_secs(1);
const LOG_INTERVAL: Duration = Duration::from_secs(30);

impl Io {
    /// Watches for ever. Does nothing while nothing runs.
    pub async fn watchdog_loop(&self) {
        let mut ping: Option<(Instant, Arc<AtomicBool>)> = None;
        let mut said: Option<Instant> = None;
        let mut last_turn = Instant::now();
        loop {
            tokio::time::sleep(INTERVAL).await;
            let was_frozen = last_turn.elapsed() > INTERVAL + BLOCKED_AFTER;
            last_turn = Instant::now();
            if was_frozen {
                // The whole process stood still, not only the handlers.
                ping = None;
            }
            let blocked_for = match &ping {
                Some((_, answered)) if answered.load(Ordering::Acquire) => {
                    ping = None;
                    None
                }
                Some((sent, _)) => Some(sent.elapsed()).filter(|age| *age >= BLOCKED_AFTER),
                None => None,
            };
            if ping.is_none() && !self.session.is_idle() {
                ping = Some((Instant::now(), self.ping()));
            }
            let is_blocked = blocked_for.is_some();
            if self.session.runtime_is_blocked.swap(is_blocked, Ordering::AcqRel) != is_blocked {
                self.session.wake_poll.notify_one();
            }
            self.look_at_attempts(is_blocked, &mut said);
        }
    }

    fn ping(&self) -> Arc<AtomicBool> {
        let answered = Arc::new(AtomicBool::new(false));
        let pong = answered.clone();
        self.dispatch.ping(Box::new(move || pong.store(true, Ordering::Release)));
        answered
    }

    /// Names the handlers that keep a thread, and gives back what has waited too long for one.
    fn look_at_attempts(&self, is_blocked: bool, said: &mut Option<Instant>) {
        let attempts = self.session.attempts();
        let mut somebody_blocks = false;
        for attempt in &attempts {
            let keeps_a_thread = attempt.blocking_for().filter(|time| *time >= BLOCKED_AFTER);
            if let Some(time) = keeps_a_thread {
                somebody_blocks = true;
                if said.is_none_or(|said| said.elapsed() >= LOG_INTERVAL) {
                    *said = Some(Instant::now());
                    let (job_id, number) = (attempt.job.id, attempt.number);
                    let what =
                        if is_blocked { "main loop blocked" } else { "a thread of the runtime is blocked" };
                    tracing::warn!(%job_id, "type" = attempt.job_type(), attempt = number, ms = time.as_millis(), "{what} by a handler: use handle_blocking for work that does not await");
                }
            }
            if attempt.waiting_for_runtime().is_some_and(|time| time >= BLOCKED_AFTER) && is_blocked {
                self.release(attempt);
            }
        }
        if !somebody_blocks {
            *said = None;
        }
    }
}
