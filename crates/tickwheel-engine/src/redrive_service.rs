//! Running many dead letters again: it goes on in the background, however many they are and whether somebody waits for
//! it or not.
//!
//! It walks down from the moment of the request to the oldest. What fails again meanwhile is behind it, so nothing is
//! run twice, and whoever asks again with the same moment does only what is left. How far it has come is kept in
//! memory: after a restart nobody knows it any more.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, StreamExt, TryStreamExt};
use tickwheel_core::catch_panic::catch_panic_async;
use tickwheel_core::change::Change;
use tickwheel_core::ports::{
    Changed, DeadLetterCursor, DeadLetterQuery, Projection, Redrive, RedriveProgress, RedriveStatus,
    RedriveStopped, Redrives, Scheduler, SchedulerError, Store,
};
use tickwheel_core::{JobId, Timestamp};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::host::Host;

/// So many are remembered, those that are over among them.
const KEPT_MAX: usize = 100;
/// So many go on at once.
const RUNNING_MAX: usize = 4;
/// So many dead letters are in memory at once,
const PAGE_LEN: usize = 500;
/// with so many bytes of specs and errors.
const PAGE_BYTES_MAX: usize = 16 << 20;
/// Enough to fill a commit of the store, few enough not to crowd out everybody else.
const REDRIVES_AT_ONCE: usize = 64;
/// What cannot be done is tried again, so often in a row and with this pause.
const TRIES_MAX: u32 = 60;
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// See the module.
pub struct RedriveService {
    pub host: Host,
    pub store: Arc<dyn Store>,
    pub scheduler: Arc<dyn Scheduler>,
    pub known: Known,
}

/// Those of this process, the latest last.
#[derive(Debug, Default)]
pub struct Known(Mutex<VecDeque<watch::Receiver<RedriveProgress>>>);

#[async_trait]
impl Redrives for RedriveService {
    async fn redrive(&self, redrive: Redrive, wait: Duration) -> Result<RedriveProgress, SchedulerError> {
        let (progress, mut seen) = self.known.begin(self.host.fresh_uuid(), redrive.failed_before)?;
        let (store, scheduler) = (self.store.clone(), self.scheduler.clone());
        self.host.spawn(carry_out(Walk::new(store, scheduler, redrive), progress));
        let is_over = seen.wait_for(|progress| !progress.is_running());
        // Whether it is over or not: what is known of it is told.
        let _ = timeout(wait, is_over).await;
        Ok(seen.borrow().clone())
    }

    fn progress(&self, id: Uuid) -> Option<RedriveProgress> {
        self.known.lock().iter().map(|known| known.borrow().clone()).find(|known| known.id == id)
    }
}

impl Known {
    /// One that begins. Refused if too many are under way.
    fn begin(
        &self,
        id: Uuid,
        failed_before: Timestamp,
    ) -> Result<(watch::Sender<RedriveProgress>, watch::Receiver<RedriveProgress>), SchedulerError> {
        let mut all = self.lock();
        if all.iter().filter(|known| known.borrow().is_running()).count() >= RUNNING_MAX {
            return Err(SchedulerError::Overloaded);
        }
        if all.len() >= KEPT_MAX
            && let Some(place) = all.iter().position(|known| !known.borrow().is_running())
        {
            all.remove(place);
        }
        let status = RedriveStatus::Running;
        let (progress, seen) =
            watch::channel(RedriveProgress { id, status, failed_before, redriven: 0, remaining: 0 });
        all.push_back(seen.clone());
        Ok((progress, seen))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<watch::Receiver<RedriveProgress>>> {
        // Nobody panics while holding it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Carries it out, to its end or until it cannot go on.
async fn carry_out(walk: Walk, progress: watch::Sender<RedriveProgress>) {
    let status = catch_panic_async(walk.run(&progress)).await;
    let status = status.unwrap_or(RedriveStatus::Stopped(RedriveStopped::Broken));
    progress.send_modify(|progress| progress.status = status);
}

/// Where one is.
struct Walk {
    store: Arc<dyn Store>,
    scheduler: Arc<dyn Scheduler>,
    query: DeadLetterQuery,
    /// So many more may be run again.
    left: usize,
    is_counted: bool,
}

impl Walk {
    fn new(store: Arc<dyn Store>, scheduler: Arc<dyn Scheduler>, redrive: Redrive) -> Self {
        let first = DeadLetterCursor { failed_at: redrive.failed_before, id: JobId::FIRST };
        let query = DeadLetterQuery {
            job_type: redrive.job_type,
            queue: redrive.queue,
            after: Some(first),
            limit: PAGE_LEN,
            projection: Projection { payload: false, result: false, bytes_max: PAGE_BYTES_MAX },
        };
        Self { store, scheduler, query, left: redrive.limit.unwrap_or(usize::MAX), is_counted: false }
    }

    async fn run(mut self, progress: &watch::Sender<RedriveProgress>) -> RedriveStatus {
        let mut tries = 0;
        loop {
            match self.step(progress).await {
                Ok(true) => tries = 0,
                Ok(false) => return RedriveStatus::Completed,
                Err(error) if tries >= TRIES_MAX || matches!(error, SchedulerError::ShuttingDown) => {
                    tracing::warn!(%error, "a redrive stopped early");
                    return RedriveStatus::Stopped(RedriveStopped::Failing(Arc::new(error)));
                }
                Err(_) => {
                    tries += 1;
                    sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    /// Deals with a page. `false`: there is no other. After an error the same page is read again: what was done is not
    /// on it any more.
    async fn step(&mut self, progress: &watch::Sender<RedriveProgress>) -> Result<bool, SchedulerError> {
        if !self.is_counted {
            let count = self.store.count_dead_letters_like(self.query.clone()).await?;
            progress.send_modify(|progress| progress.remaining = count);
            self.is_counted = true;
        }
        self.query.limit = PAGE_LEN.min(self.left);
        let page = self.store.list_dead_letters(self.query.clone()).await?;
        let looked_at = page.items.len();
        let ids = page.items.into_iter().map(|letter| letter.job.id).collect();
        let redriven = self.retry_all(ids).await?;
        progress.send_modify(|progress| {
            progress.redriven += redriven;
            progress.remaining = progress.remaining.saturating_sub(looked_at as u64);
        });
        self.left -= looked_at.min(self.left);
        self.query.after = page.next;
        Ok(self.query.after.is_some() && self.left > 0)
    }

    /// Several at once, so that they share commits. One that somebody else took off the list meanwhile is not counted.
    async fn retry_all(&self, ids: Vec<JobId>) -> Result<u64, SchedulerError> {
        let retried = stream::iter(ids)
            .map(|id| self.scheduler.change(id, Change::Retry { payload: None }))
            .buffer_unordered(REDRIVES_AT_ONCE);
        let count = retried.try_fold(0, |count, changed| async move {
            Ok(count + u64::from(matches!(changed, Changed::Done(_))))
        });
        count.await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_few_go_on_at_once() {
        let known = Known::default();
        let begun: Vec<_> =
            (0..RUNNING_MAX).map(|_| known.begin(Uuid::now_v7(), Timestamp::EPOCH).unwrap()).collect();
        assert!(matches!(known.begin(Uuid::now_v7(), Timestamp::EPOCH), Err(SchedulerError::Overloaded)));
        begun[0].0.send_modify(|progress| progress.status = RedriveStatus::Completed);
        known.begin(Uuid::now_v7(), Timestamp::EPOCH).unwrap();
    }

    #[test]
    fn those_that_are_over_are_forgotten_first() {
        let known = Known::default();
        let (running, _) = known.begin(Uuid::now_v7(), Timestamp::EPOCH).unwrap();
        for _ in 0..2 * KEPT_MAX {
            let (progress, _) = known.begin(Uuid::now_v7(), Timestamp::EPOCH).unwrap();
            progress.send_modify(|progress| progress.status = RedriveStatus::Completed);
        }
        let kept = known.lock();
        assert_eq!(kept.len(), KEPT_MAX);
        assert_eq!(kept[0].borrow().id, running.borrow().id);
    }
}
