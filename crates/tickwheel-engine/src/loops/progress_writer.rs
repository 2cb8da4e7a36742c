//! Writes how far attempts have come: of each the latest, about once a second. It is a hint for people, so nobody waits
//! for it, and what cannot be written is dropped.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tickwheel_core::JobId;
use tickwheel_core::ports::{ProgressStore, StoreResult};
use tickwheel_core::progress::Progress;

use crate::store_watch::StoreWatch;

/// Attempts whose progress waits to be written. Those that are too many are not noted this time.
const WAITING_LEN_MAX: usize = 100_000;

/// What waits to be written. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct LatestProgress(Arc<Mutex<HashMap<JobId, Progress>>>);

impl LatestProgress {
    /// Keeps what attempts say, instead of what was said of their jobs before.
    pub fn note(&self, notes: Vec<Progress>) {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for note in notes {
            let is_full = latest.len() >= WAITING_LEN_MAX;
            match latest.entry(note.attempt.job_id) {
                Entry::Occupied(before) if before.get().attempt.attempt > note.attempt.attempt => {}
                Entry::Occupied(mut before) => drop(before.insert(note)),
                Entry::Vacant(place) if !is_full => {
                    place.insert(note);
                }
                Entry::Vacant(_) => {}
            }
        }
    }

    fn take(&self) -> Vec<Progress> {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut notes: Vec<Progress> = latest.drain().map(|(_, note)| note).collect();
        drop(latest);
        notes.sort_unstable_by_key(|note| note.attempt.job_id);
        notes
    }
}

/// How the loop behaves.
#[derive(Clone, Copy, Debug)]
pub struct ProgressWriterOptions {
    /// How often it writes.
    pub interval: Duration,
    /// How much it writes at once.
    pub batch_len: usize,
}

impl Default for ProgressWriterOptions {
    fn default() -> Self {
        Self { interval: Duration::from_secs(1), batch_len: 1_000 }
    }
}

/// See the module.
pub struct ProgressWriter {
    pub options: ProgressWriterOptions,
    pub store: Arc<dyn ProgressStore>,
    pub watch: StoreWatch,
    pub latest: LatestProgress,
}

impl ProgressWriter {
    /// Writes for ever.
    pub async fn run(self) {
        loop {
            tokio::time::sleep(self.options.interval).await;
            match self.run_once().await {
                Ok(()) => self.watch.succeeded("progress"),
                Err(error) => self.watch.wait_after("progress", &error).await,
            }
        }
    }

    /// Writes what was said.
    pub async fn run_once(&self) -> StoreResult<()> {
        for some in self.latest.take().chunks(self.options.batch_len) {
            self.store.put_progress(some.to_vec()).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_core::Timestamp;
    use tickwheel_core::progress::Percent;
    use tickwheel_core::token::AttemptRef;
    use tickwheel_testkit::Fault;
    use tickwheel_testkit::ModelStore;
    use tickwheel_testkit::model::Verb;

    use super::*;

    fn note(job: u128, attempt: u32, percent: f64) -> Progress {
        Progress {
            attempt: AttemptRef { job_id: JobId::from_uuid(uuid::Uuid::from_u128(job)), attempt },
            percent: Some(Percent::from_number(percent)),
            message: None,
            at: Timestamp::EPOCH,
        }
    }

    #[test]
    fn of_each_job_the_latest_of_the_latest_attempt_is_kept() {
        let latest = LatestProgress::default();
        latest.note(vec![note(1, 1, 10.0), note(2, 1, 5.0), note(1, 1, 20.0)]);
        latest.note(vec![note(2, 2, 0.0), note(2, 1, 99.0)]);
        assert_eq!(latest.take(), [note(1, 1, 20.0), note(2, 2, 0.0)]);
        assert_eq!(latest.take(), []);
    }

    #[tokio::test]
    async fn what_cannot_be_written_is_dropped() {
        let store = ModelStore::new();
        let writer = ProgressWriter {
            options: ProgressWriterOptions::default(),
            store: Arc::new(store.clone()),
            watch: StoreWatch::default(),
            latest: LatestProgress::default(),
        };
        writer.latest.note(vec![note(1, 1, 10.0)]);
        store.fail(Verb::PutProgress, Fault::Aborted);
        assert!(writer.run_once().await.is_err());
        store.fail(Verb::PutProgress, Fault::Aborted);
        assert!(writer.run_once().await.is_ok());
        assert_eq!(store.faults_left(Verb::PutProgress), 1, "nothing was left to write");
    }
}
