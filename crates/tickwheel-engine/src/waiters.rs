//! Clients that wait for the end of a job or a run.
//!
//! Whoever ends one here says so, and nobody asks the store. What another process ends is found by asking for everything that is waited for
//! together, now and then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tickwheel_core::JobId;
use tickwheel_core::ports::Store;
use tokio::sync::Notify;

use crate::announcer::Announcer;

/// How often the store is asked what others have ended.
const SWEEP_INTERVAL: Duration = Duration::from_secs(2);
/// So many are asked for at once.
const SWEEP_LEN_MAX: usize = 1_000;

/// Who waits for which job; a run goes by the id of its job number zero.
#[derive(Clone, Debug, Default)]
pub struct Waiters(Arc<Mutex<HashMap<JobId, Awaited>>>);

#[derive(Debug, Default)]
struct Awaited {
    ended: Arc<Notify>,
    waiting: usize,
}

/// A place in the list; leaving it takes the place back.
struct Place {
    waiters: Waiters,
    job_id: JobId,
}

impl Waiters {
    /// Resolves at the end of the job. Starts listening now, not when it is first awaited.
    pub fn end_of(&self, job_id: JobId) -> impl Future<Output = ()> + Send + use<> {
        let ended = {
            let mut waiters = self.lock();
            let awaited = waiters.entry(job_id).or_default();
            awaited.waiting += 1;
            awaited.ended.clone().notified_owned()
        };
        let place = Place { waiters: self.clone(), job_id };
        async move {
            let _place = place;
            ended.await;
        }
    }

    /// Tells everybody who waits for these jobs.
    pub fn ended(&self, jobs: impl IntoIterator<Item = JobId>) {
        let waiters = self.lock();
        if waiters.is_empty() {
            return;
        }
        for job_id in jobs {
            if let Some(awaited) = waiters.get(&job_id) {
                awaited.ended.notify_waiters();
            }
        }
    }

    /// Tells everybody, whatever they wait for.
    pub fn wake_all(&self) {
        self.lock().values().for_each(|awaited| awaited.ended.notify_waiters());
    }

    /// What is waited for.
    pub fn awaited(&self) -> Vec<JobId> {
        self.lock().keys().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, Awaited>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut waiters = self.waiters.lock();
        if let Some(awaited) = waiters.get_mut(&self.job_id) {
            awaited.waiting -= 1;
            if awaited.waiting == 0 {
                waiters.remove(&self.job_id);
            }
        }
    }
}

/// Finds, for ever, what other processes have ended.
pub async fn sweep(store: Arc<dyn Store>, waiters: Waiters, announcer: Announcer) {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        sweep_once(&*store, &waiters, &announcer).await;
    }
}

async fn sweep_once(store: &dyn Store, waiters: &Waiters, announcer: &Announcer) {
    for some in waiters.awaited().chunks(SWEEP_LEN_MAX) {
        match store.ended_among(some.to_vec()).await {
            Ok(ended) => announcer.jobs_ended_elsewhere(ended),
            // Nobody misses anything: the next round asks again.
            Err(error) => return tracing::debug!(%error, "could not ask for what is waited for"),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tickwheel_core::change::Change;
    use tickwheel_core::ports::NewJob;
    use tickwheel_testkit::ModelStore;
    use tickwheel_testkit::fixtures::{at, job};

    use super::*;
    use crate::announcer::tests::listening::listening;

    fn id(number: u128) -> JobId {
        JobId::from_uuid(uuid::Uuid::from_u128(number))
    }

    #[test]
    fn everybody_who_listens_is_told_and_nobody_else() {
        let waiters = Waiters::default();
        let (mut first, mut second) = (Box::pin(waiters.end_of(id(1))), Box::pin(waiters.end_of(id(1))));
        let mut other = Box::pin(waiters.end_of(id(2)));
        waiters.ended([id(1)]);
        assert!(first.as_mut().now_or_never().is_some(), "told before it was first awaited");
        assert!(second.as_mut().now_or_never().is_some());
        assert!(other.as_mut().now_or_never().is_none());
        waiters.wake_all();
        assert!(other.as_mut().now_or_never().is_some());
    }

    #[test]
    fn who_leaves_is_forgotten() {
        let waiters = Waiters::default();
        let (first, second) = (waiters.end_of(id(1)), waiters.end_of(id(1)));
        drop(first);
        assert_eq!(waiters.awaited(), [id(1)]);
        drop(second);
        assert_eq!(waiters.awaited(), []);
    }

    #[tokio::test]
    async fn what_another_process_ended_is_found() {
        let (announcer, listening) = listening();
        let (store, waiters) = (ModelStore::new(), listening.waiters);
        let waiting = job().build();
        let mut end = Box::pin(waiters.end_of(waiting.id));
        store.submit_jobs(vec![NewJob { job: waiting.clone(), idempotency: None }]).await.expect("stored");
        sweep_once(&store, &waiters, &announcer).await;
        assert!(end.as_mut().now_or_never().is_none());
        store.change_job(waiting.id, Change::Cancel, at(1)).await.expect("cancelled");
        sweep_once(&store, &waiters, &announcer).await;
        assert!(end.as_mut().now_or_never().is_some());
    }
}
