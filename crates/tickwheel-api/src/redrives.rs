//! Running many dead letters again: it goes on in the background, however many they are and whether somebody waits for
//! it or not.
//!
//! It walks down from the moment of the request to the oldest. What fails again meanwhile is behind it, so nothing is
//! run twice, and whoever asks again with the same moment does only what is left. How far it has come is kept in
//! memory: after a restart nobody knows it any more.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::stream::{self, StreamExt, TryStreamExt};
use tickwheel_core::catch_panic::catch_panic_async;
use tickwheel_core::change::Change;
use tickwheel_core::ports::{Changed, DeadLetterCursor, DeadLetterQuery, Projection, SchedulerError};
use tickwheel_core::{JobId, Timestamp};
use tickwheel_protocol::{Code, RedriveFilter, RedriveProgress, RedriveStatus, Time};
use uuid::Uuid;

use crate::convert;
use crate::error::{ApiError, ApiResult};
use crate::state::ApiState;

/// So many are remembered, those that are over among them.
const KEPT_MAX: usize = 100;
/// So many go on at once.
const RUNNING_MAX: usize = 4;
/// So many dead letters are in memory at once.
const PAGE_LEN: usize = 500;
/// Enough to fill a commit of the store, few enough not to crowd out everybody else.
const REDRIVES_AT_ONCE: usize = 64;
/// What cannot be done is tried again, so often in a row and with this pause.
const TRIES_MAX: u32 = 60;
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Those of this process. Cheap to clone; the clones share what they know.
#[derive(Clone, Debug, Default)]
pub struct Redrives(Arc<Mutex<VecDeque<Operation>>>);

/// One of them, and how far it is.
#[derive(Clone, Debug)]
pub struct Operation(Arc<Mutex<RedriveProgress>>);

impl Redrives {
    /// One that begins. Refused if too many are under way.
    pub fn begin(&self, failed_before: Timestamp) -> ApiResult<Operation> {
        let mut all = lock(&self.0);
        let running = all.iter().filter(|operation| operation.is_running()).count();
        if running >= RUNNING_MAX {
            let detail = "too many redrives are running already; nothing was changed";
            return Err(ApiError::new(Code::Overloaded, detail));
        }
        if all.len() >= KEPT_MAX
            && let Some(place) = all.iter().position(|operation| !operation.is_running())
        {
            all.remove(place);
        }
        let operation = Operation(Arc::new(Mutex::new(RedriveProgress {
            id: Uuid::now_v7(),
            status: RedriveStatus::Running,
            failed_before: Time::from_millis(failed_before.as_millis()),
            redriven: 0,
            remaining: 0,
            error: None,
        })));
        all.push_back(operation.clone());
        Ok(operation)
    }

    /// The one of that name.
    pub fn find(&self, id: Uuid) -> Option<Operation> {
        lock(&self.0).iter().find(|operation| lock(&operation.0).id == id).cloned()
    }
}

impl Operation {
    /// How far it is.
    pub fn progress(&self) -> RedriveProgress {
        lock(&self.0).clone()
    }

    fn is_running(&self) -> bool {
        lock(&self.0).status == RedriveStatus::Running
    }

    /// Carries it out, to its end or until it cannot go on.
    pub async fn carry_out(self, state: ApiState, filter: RedriveFilter, failed_before: Timestamp) {
        if catch_panic_async(self.walk(state, filter, failed_before)).await.is_err() {
            self.ends(RedriveStatus::Stopped, Some("the server has a fault".into()));
        }
    }

    async fn walk(&self, state: ApiState, filter: RedriveFilter, failed_before: Timestamp) {
        let mut walk = Walk {
            query: DeadLetterQuery {
                job_type: filter.job_type,
                queue: filter.queue,
                after: Some(DeadLetterCursor { failed_at: failed_before, id: JobId::from_uuid(Uuid::nil()) }),
                limit: PAGE_LEN,
                projection: Projection {
                    payload: false,
                    result: false,
                    bytes_max: state.limits.page_bytes_max,
                },
            },
            left: filter.limit.unwrap_or(usize::MAX),
            is_counted: false,
        };
        let mut tries = 0;
        loop {
            match walk.step(&state, self).await {
                Ok(true) => tries = 0,
                Ok(false) => return self.ends(RedriveStatus::Completed, None),
                Err(error) if tries >= TRIES_MAX || matches!(error, SchedulerError::ShuttingDown) => {
                    tracing::warn!(%error, "a redrive stopped early");
                    return self.ends(RedriveStatus::Stopped, Some(ApiError::from(error).0.detail));
                }
                Err(_) => {
                    tries += 1;
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    fn ends(&self, status: RedriveStatus, error: Option<String>) {
        let mut progress = lock(&self.0);
        (progress.status, progress.error) = (status, error);
    }
}

/// Where an operation is.
struct Walk {
    query: DeadLetterQuery,
    /// So many more may be run again.
    left: usize,
    is_counted: bool,
}

impl Walk {
    /// Deals with a page. `false`: there is no other. After an error the same page is read again: what was done is not
    /// on it any more.
    async fn step(&mut self, state: &ApiState, operation: &Operation) -> Result<bool, SchedulerError> {
        if !self.is_counted {
            let count = state.store.count_dead_letters_like(self.query.clone()).await?;
            lock(&operation.0).remaining = count;
            self.is_counted = true;
        }
        self.query.limit = PAGE_LEN.min(self.left);
        let page = state.store.list_dead_letters(self.query.clone()).await?;
        let looked_at = page.items.len();
        let ids = page.items.into_iter().map(|letter| letter.job.id).collect();
        let redriven = retry_all(state, ids).await?;
        {
            let mut progress = lock(&operation.0);
            progress.redriven += redriven;
            progress.remaining = progress.remaining.saturating_sub(looked_at as u64);
        }
        self.left -= looked_at.min(self.left);
        self.query.after = page.next;
        Ok(self.query.after.is_some() && self.left > 0)
    }
}

/// Several at once, so that they share commits. One that somebody else took off the list meanwhile is not counted.
async fn retry_all(state: &ApiState, ids: Vec<JobId>) -> Result<u64, SchedulerError> {
    let retried = stream::iter(ids)
        .map(|id| state.scheduler.change(id, Change::Retry { payload: None }))
        .buffer_unordered(REDRIVES_AT_ONCE);
    let count = retried.try_fold(0, |count, changed| async move {
        Ok(count + u64::from(matches!(changed, Changed::Done(_))))
    });
    count.await
}

/// The moment before which a request means dead letters: those of this very millisecond are among them.
pub fn failed_before(filter: &RedriveFilter, now: Timestamp) -> Timestamp {
    filter.failed_before.map_or(now + Duration::from_millis(1), convert::timestamp)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nobody panics while holding one.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
