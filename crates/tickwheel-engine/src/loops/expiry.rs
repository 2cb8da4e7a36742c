//! Removes what counts no longer: keys of effects whose time is over, the progress of attempts that are over, and routes
//! that no job has any more. In small steps, so that nobody waits behind it.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::RouteId;
use tickwheel_core::ports::{Clock, Store, StoreResult};

use crate::store_watch::StoreWatch;

/// How the loop behaves.
#[derive(Clone, Copy, Debug)]
pub struct ExpiryOptions {
    /// How often it looks.
    pub interval: Duration,
    /// How long it waits after a step that found enough.
    pub pause: Duration,
    /// How much it removes in a step; and how many routes it looks at.
    pub step_len: usize,
    /// Progress that is younger is left alone.
    pub progress_age_min: Duration,
}

impl Default for ExpiryOptions {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(60),
            pause: Duration::from_millis(100),
            step_len: 500,
            progress_age_min: Duration::from_secs(60),
        }
    }
}

/// See the module.
pub struct Expiry {
    pub options: ExpiryOptions,
    pub store: Arc<dyn Store>,
    pub watch: StoreWatch,
    pub clock: Arc<dyn Clock>,
    /// Where the look at the routes goes on.
    pub route: Option<RouteId>,
}

impl Expiry {
    /// Removes for ever.
    pub async fn run(mut self) {
        let mut pause = self.options.interval;
        loop {
            tokio::time::sleep(pause).await;
            pause = match self.run_once().await {
                Ok(pause) => {
                    self.watch.succeeded("expire");
                    pause
                }
                Err(error) => self.watch.failed("expire", &error).max(self.options.pause),
            };
        }
    }

    /// One step. Answers how long to wait before the next one.
    pub async fn run_once(&mut self) -> StoreResult<Duration> {
        let (now, len) = (self.clock.now(), self.options.step_len);
        let keys = self.store.expire_once(now, len).await?;
        let notes = self.store.forget_progress(now - self.options.progress_age_min, len).await?;
        self.route = self.store.remove_unused_routes(self.route, len).await?.next;
        let is_done = keys < len && notes < len && self.route.is_none();
        Ok(if is_done { self.options.interval } else { self.options.pause })
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_core::Target;
    use tickwheel_core::change::Change;
    use tickwheel_core::once::{OnceAnswer, OnceCall, OnceOutcome, OnceReport, OnceScope};
    use tickwheel_core::ports::{JobStore as _, OnceStore as _, SessionStore as _, WorkerStore as _};
    use tickwheel_core::token::AttemptRef;
    use tickwheel_testkit::fixtures::{at, job_numbered, session};
    use tickwheel_testkit::{ManualClock, ModelStore};

    use super::*;

    #[tokio::test]
    async fn what_is_over_goes_in_steps() {
        let (store, clock) = (ModelStore::new(), ManualClock::at(at(0)));
        let session = session(1, at(1_000_000_000));
        let new = job_numbered(1).build_new();
        let caller = AttemptRef { job_id: new.job.id, attempt: 1 };
        store.open_session(session.clone()).await.unwrap();
        store
            .with_model(|model| {
                model.submit_jobs(vec![new])?;
                let claim = tickwheel_core::ports::Claim {
                    claimed_by: None,
                    session: session.id,
                    jobs: vec![caller.job_id],
                    now: at(1_000_000),
                };
                model.claim(&claim);
                Ok::<_, tickwheel_core::ports::StoreError>(())
            })
            .unwrap();
        for number in 0..5 {
            let (key, scope, ttl) = (number.to_string(), OnceScope::Job, Duration::from_secs(1));
            let call = OnceCall { caller, key: key.clone(), scope, ttl, now: at(0) };
            assert_eq!(store.ask_once(call).await.unwrap(), OnceAnswer::First);
            let outcome = OnceOutcome::Done(tickwheel_core::JsonText::null());
            store.report_once(OnceReport { caller, key, scope: None, outcome, now: at(0) }).await.unwrap();
        }
        let options = ExpiryOptions { step_len: 3, ..ExpiryOptions::default() };
        let mut expiry = Expiry {
            options,
            store: Arc::new(store.clone()),
            watch: StoreWatch::default(),
            clock: Arc::new(clock.clone()),
            route: None,
        };
        assert_eq!(expiry.run_once().await.unwrap(), options.interval, "nothing is over yet");
        clock.set(at(1_000));
        assert_eq!(expiry.run_once().await.unwrap(), options.pause);
        assert_eq!(expiry.run_once().await.unwrap(), options.interval);
        assert_eq!(store.expire_once(at(1_000), 10).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn routes_that_no_job_has_go_a_few_at_a_time() {
        let store = ModelStore::new();
        let jobs = (0..5).map(|number| {
            job_numbered(number).target(Target::Worker).job_type(&format!("made up {number}")).build_new()
        });
        let jobs: Vec<_> = jobs.collect();
        let ids: Vec<_> = jobs.iter().map(|new| new.job.id).collect();
        store.submit_jobs(jobs).await.unwrap();
        for id in &ids[1..] {
            store.change_job(*id, Change::Cancel, at(0)).await.unwrap();
        }
        let options = ExpiryOptions { step_len: 2, ..ExpiryOptions::default() };
        let mut expiry = Expiry {
            options,
            store: Arc::new(store.clone()),
            watch: StoreWatch::default(),
            clock: Arc::new(ManualClock::at(at(0))),
            route: None,
        };
        assert_eq!(expiry.run_once().await.unwrap(), options.pause);
        assert_eq!(expiry.run_once().await.unwrap(), options.pause);
        assert_eq!(expiry.run_once().await.unwrap(), options.interval);
        let left: Vec<_> = store.routes().await.unwrap();
        assert_eq!(
            left.iter().filter_map(|route| route.job_type().map(|name| &**name)).collect::<Vec<_>>(),
            ["made up 0"]
        );
    }
}
