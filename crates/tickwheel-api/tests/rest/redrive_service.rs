//! Runs dead letters again at once, however many they are: how it goes on in the background is the engine's business.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use tickwheel_core::JobId;
use tickwheel_core::change::Change;
use tickwheel_core::ports::{
    Clock, DeadLetterCursor, DeadLetterQuery, JobStore, Projection, QueryStore, Redrive, RedriveProgress,
    RedriveStatus, Redrives, SchedulerError,
};
use tickwheel_testkit::{ManualClock, ModelStore};
use uuid::Uuid;

pub struct RedriveService {
    pub store: ModelStore,
    pub clock: ManualClock,
    pub known: Mutex<Vec<RedriveProgress>>,
}

#[async_trait]
impl Redrives for RedriveService {
    async fn redrive(&self, redrive: Redrive, _: Duration) -> Result<RedriveProgress, SchedulerError> {
        let query = DeadLetterQuery {
            job_type: redrive.job_type,
            queue: redrive.queue,
            after: Some(DeadLetterCursor { failed_at: redrive.failed_before, id: JobId::FIRST }),
            limit: redrive.limit.unwrap_or(usize::MAX),
            projection: Projection::default(),
        };
        let count = self.store.count_dead_letters_like(query.clone()).await?;
        let letters = self.store.list_dead_letters(query).await?.items;
        for letter in &letters {
            self.store.change_job(letter.job.id, Change::Retry { payload: None }, self.clock.now()).await?;
        }
        let redriven = letters.len() as u64;
        let progress = RedriveProgress {
            id: Uuid::now_v7(),
            status: RedriveStatus::Completed,
            failed_before: redrive.failed_before,
            redriven,
            remaining: count - redriven,
        };
        self.known.lock().expect("nobody panics while holding it").push(progress.clone());
        Ok(progress)
    }

    fn progress(&self, id: Uuid) -> Option<RedriveProgress> {
        self.known
            .lock()
            .expect("nobody panics while holding it")
            .iter()
            .find(|known| known.id == id)
            .cloned()
    }
}
