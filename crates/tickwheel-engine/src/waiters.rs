//! Clients that wait for the end of a job.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tickwheel_core::JobId;
use tokio::sync::Notify;

/// Who waits for which job.
#[derive(Clone, Debug, Default)]
pub struct Waiters(Arc<Mutex<HashMap<JobId, Arc<Notify>>>>);

/// A place in the list; leaving it takes the place back.
pub struct Waiting {
    waiters: Waiters,
    job_id: JobId,
    ended: Arc<Notify>,
}

impl Waiters {
    /// Starts listening; ends that happen from now on are not missed.
    pub fn listen(&self, job_id: JobId) -> Waiting {
        let ended = self.lock().entry(job_id).or_default().clone();
        Waiting { waiters: self.clone(), job_id, ended }
    }

    /// Tells everybody who waits for these jobs.
    pub fn ended(&self, jobs: impl Iterator<Item = JobId>) {
        let waiters = self.lock();
        if waiters.is_empty() {
            return;
        }
        for job_id in jobs {
            if let Some(ended) = waiters.get(&job_id) {
                ended.notify_waiters();
                // For somebody between listening and waiting.
                ended.notify_one();
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<JobId, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Resolves when the job has ended.
    pub async fn ended(&self) {
        self.ended.notified().await;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut waiters = self.waiters.lock();
        // The map's own handle and ours: nobody else is waiting.
        if Arc::strong_count(&self.ended) <= 2 {
            waiters.remove(&self.job_id);
        }
    }
}
