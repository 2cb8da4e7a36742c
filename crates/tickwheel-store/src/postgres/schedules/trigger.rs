//! A job that somebody wants now.

use tickwheel_core::ports::{NewJob, StoreResult, Submitted};
use tickwheel_core::schedule::Fire;

use super::fires::record_at_free_time;
use super::locks::{LOCK_SCHEDULES, uuids};
use crate::postgres::PostgresStore;
use crate::postgres::error::{not_done, write_failed};
use crate::postgres::pipeline::run;
use crate::postgres::submit::Submission;

/// Stores the job and its record, unless its idempotency key was seen. `None`: there is no such schedule.
pub(super) async fn trigger_schedule(
    store: &PostgresStore,
    mut new: NewJob,
    fire: Fire,
) -> StoreResult<Option<Submitted>> {
    let mut client = store.client().await?;
    let transaction = client.transaction().await.map_err(not_done)?;
    // Until this ends, the schedule is neither deleted nor moved on.
    if run(&transaction, LOCK_SCHEDULES, &[&uuids(&[fire.schedule_id])]).await?.is_empty() {
        return Ok(None);
    }
    let mut submission = Submission::write(store, &transaction, std::slice::from_mut(&mut new)).await?;
    let answer = submission.answers.pop();
    if answer == Some(Submitted::Created) {
        record_at_free_time(&transaction, fire).await?;
    }
    transaction.commit().await.map_err(write_failed)?;
    store.remember_queues(&submission.new_queues);
    Ok(answer)
}
