//! The model's schedules behind their port, with the same faults on demand as its jobs.

use async_trait::async_trait;
use tickwheel_core::ports::{
    Advanced, CalendarStore, Creation, DueSchedule, FireQuery, LedgerStore, LoadSchedules, NewJob,
    NoSuchSchedule, Page, ScheduleCreated, ScheduleQuery, ScheduleStep, ScheduleStore, StoreResult,
};
use tickwheel_core::schedule::{Calendar, Fire, Schedule};
use tickwheel_core::{Job, JobId, ScheduleId, Timestamp};

use super::ModelStore;
use super::faults::Verb;

#[async_trait]
impl ScheduleStore for ModelStore {
    async fn create_schedule(&self, schedule: Schedule) -> StoreResult<ScheduleCreated> {
        self.try_write(Verb::CreateSchedule, move |model| model.create_schedule(schedule)).await
    }

    async fn get_schedules(&self, ids: Vec<ScheduleId>) -> StoreResult<Vec<Schedule>> {
        self.read(Verb::GetSchedules, |model| model.get_schedules(&ids)).await
    }

    async fn find_schedule(&self, tenant: &str, name: &str) -> StoreResult<Option<Schedule>> {
        self.read(Verb::FindSchedule, |model| model.find_schedule(tenant, name).cloned()).await
    }

    async fn list_schedules(&self, query: ScheduleQuery) -> StoreResult<Page<Schedule, String>> {
        self.read(Verb::ListSchedules, |model| model.list_schedules(&query)).await
    }

    async fn load_schedules(&self, load: LoadSchedules) -> StoreResult<Vec<DueSchedule>> {
        self.read(Verb::LoadSchedules, |model| model.load_schedules(&load)).await
    }

    async fn advance_schedules(&self, steps: Vec<ScheduleStep>) -> StoreResult<Vec<Advanced>> {
        self.write(Verb::AdvanceSchedules, move |model| model.advance_schedules(steps)).await
    }

    async fn change_schedule(&self, schedule: Schedule, fires: Vec<Fire>) -> StoreResult<Advanced> {
        self.write(Verb::ChangeSchedule, move |model| model.change_schedule(schedule, fires)).await
    }

    async fn delete_schedule(&self, id: ScheduleId) -> StoreResult<bool> {
        self.write(Verb::DeleteSchedule, move |model| model.delete_schedule(id)).await
    }

    async fn trigger_schedule(&self, job: NewJob, fire: Fire) -> StoreResult<Creation<Job, NoSuchSchedule>> {
        self.try_write(Verb::TriggerSchedule, move |model| model.trigger_schedule(job, fire)).await
    }

    async fn active_jobs(&self, ids: Vec<ScheduleId>) -> StoreResult<Vec<(ScheduleId, JobId)>> {
        self.read(Verb::ActiveJobs, |model| model.active_jobs(&ids)).await
    }
}

#[async_trait]
impl LedgerStore for ModelStore {
    async fn list_fires(&self, query: FireQuery) -> StoreResult<Page<Fire, Timestamp>> {
        self.read(Verb::ListFires, |model| model.list_fires(&query)).await
    }

    async fn queued_firings(
        &self,
        id: ScheduleId,
        from: Timestamp,
        limit: usize,
    ) -> StoreResult<Vec<Timestamp>> {
        self.read(Verb::QueuedFirings, |model| model.queued_firings(id, from, limit)).await
    }

    async fn fires_within(
        &self,
        id: ScheduleId,
        after: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Vec<Fire>> {
        self.read(Verb::FiresWithin, |model| model.fires_within(id, after, until)).await
    }

    async fn latest_fires(&self, ids: Vec<ScheduleId>, count: usize) -> StoreResult<Vec<Fire>> {
        self.read(Verb::LatestFires, |model| model.latest_fires(&ids, count)).await
    }
}

#[async_trait]
impl CalendarStore for ModelStore {
    async fn put_calendar(&self, calendar: Calendar) -> StoreResult<()> {
        self.write(Verb::PutCalendar, move |model| model.put_calendar(calendar)).await
    }

    async fn list_calendars(&self, tenant: &str) -> StoreResult<Vec<Calendar>> {
        self.read(Verb::ListCalendars, |model| model.list_calendars(tenant)).await
    }

    async fn delete_calendar(&self, tenant: &str, name: &str) -> StoreResult<bool> {
        let (tenant, name) = (tenant.to_owned(), name.to_owned());
        self.write(Verb::DeleteCalendar, move |model| model.delete_calendar(&tenant, &name)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::schedule;
    use crate::model::Fault;

    #[tokio::test]
    async fn a_schedule_whose_creation_was_aborted_is_not_there() {
        let store = ModelStore::new();
        store.fail_next(Fault::Aborted);
        let schedule = schedule("* * * * *").build();
        let error = store.create_schedule(schedule.clone()).await.unwrap_err();
        assert!(error.is_certainly_aborted());
        assert_eq!(store.get_schedules(vec![schedule.id]).await.unwrap(), []);
    }

    #[tokio::test]
    async fn a_schedule_whose_creation_nobody_heard_of_has_its_name_taken_by_itself() {
        let store = ModelStore::new();
        store.fail_next(Fault::LostReply);
        let schedule = schedule("* * * * *").build();
        let error = store.create_schedule(schedule.clone()).await.unwrap_err();
        assert!(!error.is_certainly_aborted());
        let again = store.create_schedule(schedule.clone()).await.unwrap();
        assert_eq!(again, ScheduleCreated::NameTaken(schedule.id));
    }
}
