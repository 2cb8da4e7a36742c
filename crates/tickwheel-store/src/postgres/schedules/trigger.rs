//! A job that somebody wants now.

use tickwheel_core::Job;
use tickwheel_core::ports::{Creation, NewJob, NoSuchSchedule, StoreResult, UnknownParent};
use tickwheel_core::schedule::Fire;

use super::fires::record_at_free_time;
use super::locks::{LOCK_SCHEDULES, uuids};
use crate::error::corrupt;
use crate::postgres::PostgresStore;
use crate::postgres::error::{not_done, write_failed};
use crate::postgres::pipeline::run;
use crate::postgres::submit::Submission;
use crate::postgres::workers::write_routes;

/// Stores the job and its record, unless its idempotency key was seen.
pub(super) async fn trigger_schedule(
    store: &PostgresStore,
    mut new: NewJob,
    fire: Fire,
) -> StoreResult<Creation<Job, NoSuchSchedule>> {
    write_routes(store, [&new.job].into_iter()).await?;
    let mut client = store.client().await?;
    let transaction = client.transaction().await.map_err(not_done)?;
    // Until this ends, the schedule is neither deleted nor moved on.
    if run(&transaction, LOCK_SCHEDULES, &[&uuids(&[fire.schedule_id])]).await?.is_empty() {
        return Ok(Creation::Refused(NoSuchSchedule));
    }
    let mut submission = Submission::write(store, &transaction, std::slice::from_mut(&mut new)).await?;
    let answer = submission.answers.pop().ok_or_else(|| corrupt("submission", "it has no answer"))?;
    if answer.as_new().is_some() {
        record_at_free_time(&transaction, fire).await?;
    }
    transaction.commit().await.map_err(write_failed)?;
    store.remember_queues(&submission.new_queues);
    Ok(answer.map_refused(|UnknownParent(_)| unreachable!("the job of a schedule depends on nothing")))
}
