//! The schedule service: everything about schedules and calendars that the API may ask for.
//!
//! A change first brings the schedule up to date, so that what was due before the change is decided by the old spec,
//! and is then written only if nothing came in between. Once answered it is in force: a firing decided on the former
//! revision is refused.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tickwheel_core::ports::{
    Advanced, CalendarStore, Clock, Creation, NewJob, NoSuchSchedule, ScheduleCreated, ScheduleEdited,
    ScheduleStore, SchedulerError, Schedules, StoreError, Trigger,
};
use tickwheel_core::schedule::edit::{EditRefused, ScheduleEdit, edited};
use tickwheel_core::schedule::plan::Calendars;
use tickwheel_core::schedule::{BadTimetable, Calendar, Fire, FireOutcome, FireReason, Schedule};
use tickwheel_core::{Job, ScheduleId, Timestamp};
use tokio::sync::Semaphore;

use crate::announcer::{Announcer, scheduled};
use crate::host::Host;
use crate::metrics;
use crate::schedule_stepper::ScheduleStepper;

/// So often a change is tried that meets a firing, before somebody is told to come back.
const TRIES_MAX: usize = 50;

/// See the module.
pub struct ScheduleService {
    pub host: Host,
    pub store: Arc<dyn ScheduleStore>,
    pub calendars: Arc<dyn CalendarStore>,
    pub clock: Arc<dyn Clock>,
    pub announcer: Announcer,
    pub stepper: ScheduleStepper,
    /// Whoever has its permit counts what a backfill has to make up for.
    pub counting: Arc<Semaphore>,
}

#[async_trait]
impl Schedules for ScheduleService {
    async fn create(&self, schedule: Schedule) -> Result<ScheduleCreated, SchedulerError> {
        let created = self.store.create_schedule(schedule.clone()).await?;
        if created == ScheduleCreated::Created {
            self.announcer.schedule_changed(&schedule).await;
        }
        Ok(created)
    }

    async fn edit(&self, id: ScheduleId, edit: ScheduleEdit) -> Result<ScheduleEdited, SchedulerError> {
        for _ in 0..TRIES_MAX {
            let now = self.clock.now();
            self.stepper.bring_up_to_date(id, now).await?;
            let Some(schedule) = self.store.get_schedules(vec![id]).await?.pop() else {
                return Ok(ScheduleEdited::NotFound);
            };
            if edit.is_in_force(&schedule) {
                return Ok(ScheduleEdited::Done(Box::new(schedule)));
            }
            let calendars = self.stepper.calendars_of(&schedule).await?;
            let changed = match self.decided(schedule, edit.clone(), calendars, now).await? {
                Ok(changed) => changed,
                Err(refused) => return Ok(ScheduleEdited::Refused(refused)),
            };
            if self.store.change_schedule(changed.clone(), Vec::new()).await? == Advanced::Done {
                let changed = Schedule { revision: changed.revision + 1, ..changed };
                self.announcer.schedule_changed(&changed).await;
                return Ok(ScheduleEdited::Done(Box::new(changed)));
            }
        }
        Err(SchedulerError::Overloaded)
    }

    async fn trigger(
        &self,
        id: ScheduleId,
        trigger: Trigger,
    ) -> Result<Creation<Job, NoSuchSchedule>, SchedulerError> {
        let Some(schedule) = self.store.get_schedules(vec![id]).await?.pop() else {
            return Ok(Creation::Refused(NoSuchSchedule));
        };
        let now = self.clock.now();
        let mut job = schedule.job(trigger.job_id, now, now, now);
        if let Some(payload) = trigger.payload {
            job.payload = payload.into();
        }
        let nominal_at = Fire::by_request_after(now - Duration::from_millis(1));
        let fire = Fire {
            schedule_id: id,
            nominal_at,
            last_at: nominal_at,
            count: 1,
            outcome: FireOutcome::Triggered,
            reason: FireReason::ByRequest,
            job_id: Some(job.id),
            recorded_at: now,
        };
        let new = NewJob { job, idempotency: trigger.idempotency };
        let triggered = self.store.trigger_schedule(new, fire.clone()).await?;
        if let Some(job) = triggered.as_new() {
            metrics::fired(&fire, now);
            metrics::submitted(1);
            self.announcer.jobs_scheduled(scheduled(job)).await;
        }
        Ok(triggered)
    }

    async fn delete(&self, id: ScheduleId) -> Result<bool, SchedulerError> {
        let deleted = self.store.delete_schedule(id).await?;
        self.announcer.schedule_deleted(id).await;
        Ok(deleted)
    }

    async fn put_calendar(&self, calendar: Calendar) -> Result<(), SchedulerError> {
        Ok(self.calendars.put_calendar(calendar).await?)
    }

    async fn delete_calendar(&self, tenant: &str, name: &str) -> Result<bool, SchedulerError> {
        Ok(self.calendars.delete_calendar(tenant, name).await?)
    }
}

impl ScheduleService {
    /// What becomes of the schedule. Counting what a backfill has to make up for takes its time: that is done beside
    /// the threads that others wait for, one at a time.
    async fn decided(
        &self,
        schedule: Schedule,
        edit: ScheduleEdit,
        calendars: Calendars,
        now: Timestamp,
    ) -> Result<Result<Schedule, EditRefused>, SchedulerError> {
        if !edit.counts_firings() {
            return edited(schedule, &edit, &calendars, now).map_err(unreadable);
        }
        let permit = self.counting.clone().acquire_owned().await.expect("nobody closes it");
        let work = move || {
            let _permit = permit;
            edited(schedule, &edit, &calendars, now)
        };
        match self.host.run_blocking(work).await {
            Some(done) => done.map_err(unreadable),
            None => {
                Err(StoreError::Corrupt("what an edit of a schedule means could not be found out".into())
                    .into())
            }
        }
    }
}

/// What is stored was a timetable once.
fn unreadable(error: BadTimetable) -> SchedulerError {
    SchedulerError::Store(StoreError::Corrupt(format!("schedule: {error}")))
}
