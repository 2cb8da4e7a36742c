//! A schedule service that writes straight to the store. Nothing fires by itself: what the engine makes of time is
//! tested where the engine is.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tickwheel_core::ports::{
    Advanced, CalendarStore, Clock, Creation, NewJob, NoSuchSchedule, ScheduleCreated, ScheduleEdited,
    ScheduleStore, SchedulerError, Schedules, Trigger,
};
use tickwheel_core::schedule::edit::{ScheduleEdit, edited};
use tickwheel_core::schedule::{Calendar, Fire, FireOutcome, FireReason, Schedule, ScheduleSpec};
use tickwheel_core::{Job, ScheduleId};
use tickwheel_testkit::{ManualClock, ModelStore};

/// Changes by somebody else, each of which goes before the next change of a spec.
pub type Rivals = Arc<Mutex<VecDeque<fn(&mut ScheduleSpec)>>>;

pub struct ScheduleService {
    pub store: ModelStore,
    pub clock: ManualClock,
    pub rivals: Rivals,
}

impl ScheduleService {
    async fn get(&self, id: ScheduleId) -> Result<Option<Schedule>, SchedulerError> {
        Ok(self.store.get_schedules(vec![id]).await?.pop())
    }

    async fn let_a_rival_go_first(&self, id: ScheduleId) -> Result<(), SchedulerError> {
        let rival = self.rivals.lock().expect("nobody panics with it").pop_front();
        if let Some((change, mut schedule)) = rival.zip(self.get(id).await?) {
            change(Arc::make_mut(&mut schedule.spec));
            assert_eq!(self.store.change_schedule(schedule, Vec::new()).await?, Advanced::Done);
        }
        Ok(())
    }
}

#[async_trait]
impl Schedules for ScheduleService {
    async fn put_calendar(&self, calendar: Calendar) -> Result<(), SchedulerError> {
        Ok(self.store.put_calendar(calendar).await?)
    }

    async fn delete_calendar(&self, tenant: &str, name: &str) -> Result<bool, SchedulerError> {
        Ok(self.store.delete_calendar(tenant, name).await?)
    }

    async fn create(&self, schedule: Schedule) -> Result<ScheduleCreated, SchedulerError> {
        Ok(self.store.create_schedule(schedule).await?)
    }

    async fn edit(&self, id: ScheduleId, edit: ScheduleEdit) -> Result<ScheduleEdited, SchedulerError> {
        if matches!(edit, ScheduleEdit::Spec { .. }) {
            self.let_a_rival_go_first(id).await?;
        }
        let Some(schedule) = self.get(id).await? else { return Ok(ScheduleEdited::NotFound) };
        let calendars = self.store.list_calendars(&schedule.tenant).await?;
        let calendars = calendars.into_iter().map(|calendar| (calendar.name.clone(), calendar)).collect();
        let edited = edited(schedule, &edit, &calendars, self.clock.now());
        let changed = match edited.expect("the API lets no other edit through") {
            Ok(changed) => changed,
            Err(refused) => return Ok(ScheduleEdited::Refused(refused)),
        };
        assert_eq!(self.store.change_schedule(changed, Vec::new()).await?, Advanced::Done);
        let changed = self.get(id).await?.expect("it was just changed");
        Ok(ScheduleEdited::Done(Box::new(changed)))
    }

    async fn trigger(
        &self,
        id: ScheduleId,
        trigger: Trigger,
    ) -> Result<Creation<Job, NoSuchSchedule>, SchedulerError> {
        let Some(schedule) = self.get(id).await? else { return Ok(Creation::Refused(NoSuchSchedule)) };
        let now = self.clock.now();
        let mut job = schedule.job(trigger.job_id, now, now, now);
        job.payload = trigger.payload.map_or(job.payload, Into::into);
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
        let new = NewJob { job, idempotency: trigger.idempotency };
        Ok(self.store.trigger_schedule(new, fire).await?)
    }

    async fn delete(&self, id: ScheduleId) -> Result<bool, SchedulerError> {
        Ok(self.store.delete_schedule(id).await?)
    }
}
