//! When to try again: the back-off, and the loop of a request that can be repeated.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::Error;

const DELAY_MIN: Duration = Duration::from_millis(100);
const DELAY_MAX: Duration = Duration::from_secs(5);

/// Delays that double from 100 ms to 5 s, each drawn between nothing and its bound, so that many clients of a server
/// that was away do not come back all at once.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    tries: u32,
    delay_max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::up_to(DELAY_MAX)
    }
}

impl Backoff {
    /// Delays of no more than that.
    pub fn up_to(delay_max: Duration) -> Self {
        Self { tries: 0, delay_max }
    }

    /// The delay before the next try. The server's own wish is honoured on top of it.
    pub fn next(&mut self, server_said: Option<Duration>) -> Duration {
        let bound = DELAY_MIN.saturating_mul(1 << self.tries.min(10)).min(self.delay_max);
        self.tries += 1;
        bound.mul_f64(rand::random::<f64>()) + server_said.unwrap_or_default()
    }

    /// How many delays there were.
    pub fn tries(self) -> u32 {
        self.tries
    }
}

/// Whether a request may be sent again after this error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It does the same however often it is sent.
    Always,
    /// Only if it certainly was not carried out.
    IfNotDone,
}

/// Sends a request until it is answered for good, for as long as `patience`.
pub(crate) async fn repeated<T, F>(
    patience: Duration,
    repeat: Repeat,
    send: impl Fn() -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let give_up_at = Instant::now() + patience;
    let mut backoff = Backoff::default();
    loop {
        let error = match send().await {
            Err(error) if error.is_transient() => error,
            answered => return answered,
        };
        let delay = backoff.next(error.retry_after());
        let is_safe = repeat == Repeat::Always || !error.is_in_doubt();
        if !is_safe || Instant::now() + delay > give_up_at {
            return Err(error);
        }
        tracing::debug!(%error, tries = backoff.tries(), "the request is sent again");
        tokio::time::sleep(delay).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tickwheel_protocol::{Code, Problem};

    use super::*;

    #[test]
    fn delays_grow_stay_bounded_and_honour_the_server() {
        let mut backoff = Backoff::default();
        for tries in 0..40 {
            let bound = DELAY_MIN.saturating_mul(1 << tries.min(10)).min(DELAY_MAX);
            assert!(backoff.next(None) <= bound);
        }
        assert!(backoff.next(Some(Duration::from_secs(7))) >= Duration::from_secs(7));
    }

    async fn tries(repeat: Repeat, answers: &[Result<u8, Error>]) -> (u32, Result<u8, Error>) {
        let sent = AtomicU32::new(0);
        let outcome = repeated(Duration::from_secs(60), repeat, || {
            let answer = answers[sent.fetch_add(1, Ordering::Relaxed) as usize].clone();
            async move { answer }
        });
        let outcome = outcome.await;
        (sent.load(Ordering::Relaxed), outcome)
    }

    fn lost(maybe_sent: bool) -> Result<u8, Error> {
        Err(Error::NoConnection { server: "s".into(), cause: "reset".into(), maybe_sent })
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_repeated_until_it_is_answered_for_good() {
        let (sent, outcome) = tries(Repeat::Always, &[lost(true), lost(false), Ok(7)]).await;
        assert_eq!((sent, outcome.ok()), (3, Some(7)));
        let refused = Err(Error::refused(Problem::new(Code::NotFound, "no")));
        assert_eq!(tries(Repeat::Always, &[refused]).await.0, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_have_been_done_is_not_done_twice_unless_that_is_the_same() {
        assert_eq!(tries(Repeat::IfNotDone, &[lost(false), lost(true)]).await.0, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn patience_ends() {
        let started = Instant::now();
        let outcome = repeated(Duration::from_secs(30), Repeat::Always, || async { lost(true) }).await;
        assert!(outcome.is_err());
        assert!(started.elapsed() <= Duration::from_secs(30));
    }
}
