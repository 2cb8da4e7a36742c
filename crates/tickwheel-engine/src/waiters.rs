//! Clients that wait for the end of a job or a run.
//!
//! What this process ends is announced, and nobody asks the store. What another process ends, the
//! [end poller](crate::loops::end_poller) finds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tickwheel_core::JobId;
use tokio::sync::Notify;

/// Who waits for which job; a run goes by the id of its job number zero.
#[derive(Clone, Debug, Default)]
pub struct Waiters(Arc<Mutex<HashMap<JobId, Awaited>>>);

#[derive(Debug, Default)]
struct Awaited {
    ended: Arc<Notify>,
    waiting: usize,
}

/// One client in the list, until this is dropped.
struct Registration {
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
        let registration = Registration { waiters: self.clone(), job_id };
        async move {
            let _registration = registration;
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

impl Drop for Registration {
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

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

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
}
