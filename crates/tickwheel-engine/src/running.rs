//! The attempts this node has taken and not yet settled: how many, which can be told to stop, and the slots they take.
//!
//! An attempt frees its slot when it ends, but stays known until its end is written. That is what tells a job that a
//! claim with a lost answer has just taken from one that this node took before: see the dispatcher.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tickwheel_core::JobId;
use tickwheel_core::id::IdMap;
use tokio::sync::Notify;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Running(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    attempts: Mutex<IdMap<JobId, Handle>>,
    slots_freed: AtomicUsize,
    slot_freed: Notify,
    idle: Notify,
}

#[derive(Debug)]
struct Handle {
    attempt: u32,
    stop: Arc<Notify>,
    queue: Arc<str>,
}

/// One attempt, known until this is dropped.
#[derive(Debug)]
pub struct RunningAttempt {
    running: Running,
    job_id: JobId,
    attempt: u32,
    stop: Arc<Notify>,
    holds_slot: bool,
}

impl Running {
    /// Registers an attempt.
    pub fn start(&self, job_id: JobId, attempt: u32, queue: Arc<str>) -> RunningAttempt {
        let stop = Arc::new(Notify::new());
        self.lock().insert(job_id, Handle { attempt, stop: stop.clone(), queue });
        RunningAttempt { running: self.clone(), job_id, attempt, stop, holds_slot: true }
    }

    /// Asks an attempt to stop, if it runs here.
    pub fn stop(&self, job_id: JobId) {
        if let Some(handle) = self.lock().get(&job_id) {
            handle.stop.notify_one();
        }
    }

    /// Whether an attempt of the job is known here.
    pub fn contains(&self, job_id: JobId) -> bool {
        self.lock().contains_key(&job_id)
    }

    /// The attempts known here of these jobs, by job.
    pub fn attempts_of(&self, jobs: &[JobId]) -> IdMap<JobId, u32> {
        let attempts = self.lock();
        jobs.iter().filter_map(|id| Some((*id, attempts.get(id)?.attempt))).collect()
    }

    /// Attempts by queue.
    pub fn by_queue(&self) -> HashMap<Arc<str>, u64> {
        let mut counts = HashMap::new();
        for handle in self.lock().values() {
            *counts.entry(handle.queue.clone()).or_default() += 1;
        }
        counts
    }

    /// How many attempts are known here.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Waits for slots to become free and says how many did since the last time.
    pub async fn slots_freed(&self) -> usize {
        loop {
            let freed = self.0.slots_freed.swap(0, Ordering::AcqRel);
            if freed > 0 {
                return freed;
            }
            self.0.slot_freed.notified().await;
        }
    }

    /// Waits until none is known.
    pub async fn idle(&self) {
        loop {
            let idle = self.0.idle.notified();
            if self.len() == 0 {
                return;
            }
            idle.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, IdMap<JobId, Handle>> {
        self.0.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunningAttempt {
    /// Resolves when the attempt is asked to stop.
    pub async fn stop_requested(&self) {
        self.stop.notified().await;
    }

    /// The attempt has ended: another may start in its place.
    pub fn free_slot(&mut self) {
        if std::mem::take(&mut self.holds_slot) {
            self.running.0.slots_freed.fetch_add(1, Ordering::AcqRel);
            self.running.0.slot_freed.notify_one();
        }
    }
}

impl Drop for RunningAttempt {
    fn drop(&mut self) {
        self.free_slot();
        let left = {
            let mut attempts = self.running.lock();
            // The job's next attempt may be running already.
            if attempts.get(&self.job_id).is_some_and(|handle| handle.attempt == self.attempt) {
                attempts.remove(&self.job_id);
            }
            attempts.len()
        };
        if left == 0 {
            self.running.0.idle.notify_waiters();
        }
    }
}
