//! The model's schedules behind their port, with the same faults on demand as its jobs.

use async_trait::async_trait;
use tickwheel_core::ports::{
    Advanced, DueSchedule, FireQuery, LoadSchedules, NewJob, Page, ScheduleCreated, ScheduleQuery,
    ScheduleStep, ScheduleStore, StoreResult, Submitted,
};
use tickwheel_core::schedule::{Calendar, Fire, Schedule};
use tickwheel_core::{JobId, ScheduleId, Timestamp};

use super::ModelStore;

#[async_trait]
impl ScheduleStore for ModelStore {
    async fn create_schedule(&self, schedule: Schedule) -> StoreResult<ScheduleCreated> {
        self.try_write(|model| model.create_schedule(schedule))
    }

    async fn get_schedules(&self, ids: Vec<ScheduleId>) -> StoreResult<Vec<Schedule>> {
        self.read(|model| model.get_schedules(&ids))
    }

    async fn find_schedule(&self, tenant: &str, name: &str) -> StoreResult<Option<Schedule>> {
        self.read(|model| model.find_schedule(tenant, name).cloned())
    }

    async fn list_schedules(&self, query: ScheduleQuery) -> StoreResult<Page<Schedule, String>> {
        self.read(|model| model.list_schedules(&query))
    }

    async fn load_schedules(&self, load: LoadSchedules) -> StoreResult<Vec<DueSchedule>> {
        self.read(|model| model.load_schedules(&load))
    }

    async fn advance_schedules(&self, steps: Vec<ScheduleStep>) -> StoreResult<Vec<Advanced>> {
        self.fire(|model| model.advance_schedules(steps))
    }

    async fn change_schedule(&self, schedule: Schedule, fires: Vec<Fire>) -> StoreResult<Advanced> {
        self.write(|model| model.change_schedule(schedule, fires))
    }

    async fn delete_schedule(&self, id: ScheduleId) -> StoreResult<bool> {
        self.write(|model| model.delete_schedule(id))
    }

    async fn trigger_schedule(&self, job: NewJob, fire: Fire) -> StoreResult<Option<Submitted>> {
        self.try_write(|model| model.trigger_schedule(job, fire))
    }

    async fn active_jobs(&self, ids: Vec<ScheduleId>) -> StoreResult<Vec<(ScheduleId, JobId)>> {
        self.read(|model| model.active_jobs(&ids))
    }

    async fn list_fires(&self, query: FireQuery) -> StoreResult<Page<Fire, Timestamp>> {
        self.read(|model| model.list_fires(&query))
    }

    async fn queued_firings(
        &self,
        id: ScheduleId,
        from: Timestamp,
        limit: usize,
    ) -> StoreResult<Vec<Timestamp>> {
        self.read(|model| model.queued_firings(id, from, limit))
    }

    async fn fires_within(
        &self,
        id: ScheduleId,
        after: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Vec<Fire>> {
        self.read(|model| model.fires_within(id, after, until))
    }

    async fn latest_fires(&self, ids: Vec<ScheduleId>, count: usize) -> StoreResult<Vec<Fire>> {
        self.read(|model| model.latest_fires(&ids, count))
    }

    async fn put_calendar(&self, calendar: Calendar) -> StoreResult<()> {
        self.write(|model| model.put_calendar(calendar))
    }

    async fn list_calendars(&self, tenant: &str) -> StoreResult<Vec<Calendar>> {
        self.read(|model| model.list_calendars(tenant))
    }

    async fn delete_calendar(&self, tenant: &str, name: &str) -> StoreResult<bool> {
        self.write(|model| model.delete_calendar(tenant, name))
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
