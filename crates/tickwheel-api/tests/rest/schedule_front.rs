//! A front door for schedules that writes straight to the store. Nothing fires by itself: what the engine makes of time is tested where
//! the engine is.

use std::sync::Arc;

use async_trait::async_trait;
use tickwheel_core::ScheduleId;
use tickwheel_core::ports::{
    Advanced, Clock, NewJob, ScheduleCreated, ScheduleEdit, ScheduleStore, SchedulerError, Schedules,
    Submitted, Trigger, Triggered,
};
use tickwheel_core::schedule::{Fire, FireOutcome, FireReason, Schedule, plan};
use tickwheel_testkit::{ManualClock, ModelStore};

pub struct Front {
    pub store: ModelStore,
    pub clock: ManualClock,
}

impl Front {
    async fn get(&self, id: ScheduleId) -> Result<Option<Schedule>, SchedulerError> {
        Ok(self.store.get_schedules(vec![id]).await?.pop())
    }
}

#[async_trait]
impl Schedules for Front {
    async fn create(&self, schedule: Schedule) -> Result<ScheduleCreated, SchedulerError> {
        Ok(self.store.create_schedule(schedule).await?)
    }

    async fn edit(&self, id: ScheduleId, edit: ScheduleEdit) -> Result<Option<Schedule>, SchedulerError> {
        let Some(mut schedule) = self.get(id).await? else { return Ok(None) };
        let now = self.clock.now();
        match edit {
            ScheduleEdit::Order(spec) => schedule.spec = Arc::new(*spec),
            ScheduleEdit::Pause { note } => {
                schedule.paused = true;
                schedule.pause_note = note;
            }
            ScheduleEdit::Resume => {
                schedule.paused = false;
                schedule.pause_note = None;
            }
        }
        let timetable = schedule.spec.timetable().expect("the API lets no other through");
        schedule.progress = plan::begin(id, &schedule.spec, &timetable, now);
        schedule.updated_at = now;
        assert_eq!(self.store.change_schedule(schedule, Vec::new()).await?, Advanced::Done);
        self.get(id).await
    }

    async fn trigger(&self, id: ScheduleId, trigger: Trigger) -> Result<Triggered, SchedulerError> {
        let Some(schedule) = self.get(id).await? else { return Ok(Triggered::NotFound) };
        let now = self.clock.now();
        let mut job = schedule.job(trigger.job_id, now, now, now);
        job.payload = trigger.payload.unwrap_or(job.payload);
        let fire = Fire {
            schedule_id: id,
            nominal_at: now,
            last_at: now,
            count: 1,
            outcome: FireOutcome::Triggered,
            reason: FireReason::ByRequest,
            job_id: Some(job.id),
            recorded_at: now,
        };
        let new = NewJob { job: job.clone(), idempotency: trigger.idempotency };
        Ok(match self.store.trigger_schedule(new, fire).await? {
            None => Triggered::NotFound,
            Some(Submitted::Created) => Triggered::Created(Box::new(job)),
            Some(Submitted::Existing(job)) => Triggered::Existing(job),
            Some(Submitted::Conflict(first)) => Triggered::Conflict(first),
        })
    }

    async fn delete(&self, id: ScheduleId) -> Result<bool, SchedulerError> {
        Ok(self.store.delete_schedule(id).await?)
    }
}
