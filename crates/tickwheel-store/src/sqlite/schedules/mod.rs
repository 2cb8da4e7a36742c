//! Schedules in the file: a verb a function, a concern a file, the same names as for PostgreSQL.
//!
//! Invariant: whoever moves a schedule compares its revision in the same transaction; there is one writer, so nobody
//! comes in between.

mod advance;
mod calendars;
mod definition;
mod fires;
mod trigger;

use async_trait::async_trait;
use tickwheel_core::ports::{
    Advanced, CalendarStore, Creation, DueSchedule, FireQuery, LedgerStore, LoadSchedules, NewJob,
    NoSuchSchedule, Page, ScheduleCreated, ScheduleQuery, ScheduleStep, ScheduleStore, StoreResult,
};
use tickwheel_core::schedule::{Calendar, Fire, Schedule};
use tickwheel_core::{Job, JobId, ScheduleId, Timestamp};

use super::SqliteStore;

#[async_trait]
impl ScheduleStore for SqliteStore {
    async fn create_schedule(&self, schedule: Schedule) -> StoreResult<ScheduleCreated> {
        self.writer.write(move |c| definition::create_schedule(c, &schedule)).await
    }

    async fn get_schedules(&self, ids: Vec<ScheduleId>) -> StoreResult<Vec<Schedule>> {
        self.readers.read(move |c| definition::get_schedules(c, &ids)).await
    }

    async fn find_schedule(&self, tenant: &str, name: &str) -> StoreResult<Option<Schedule>> {
        let (tenant, name) = (tenant.to_owned(), name.to_owned());
        self.readers.read(move |c| definition::find_schedule(c, &tenant, &name)).await
    }

    async fn list_schedules(&self, query: ScheduleQuery) -> StoreResult<Page<Schedule, String>> {
        self.readers.read(move |c| definition::list_schedules(c, &query)).await
    }

    async fn load_schedules(&self, load: LoadSchedules) -> StoreResult<Vec<DueSchedule>> {
        self.readers.read(move |c| advance::load_schedules(c, &load)).await
    }

    async fn advance_schedules(&self, steps: Vec<ScheduleStep>) -> StoreResult<Vec<Advanced>> {
        self.writer.write(move |c| advance::advance_schedules(c, &steps)).await
    }

    async fn change_schedule(&self, schedule: Schedule, fires: Vec<Fire>) -> StoreResult<Advanced> {
        self.writer.write(move |c| definition::change_schedule(c, &schedule, &fires)).await
    }

    async fn delete_schedule(&self, id: ScheduleId) -> StoreResult<bool> {
        self.writer.write(move |c| definition::delete_schedule(c, id)).await
    }

    async fn trigger_schedule(&self, job: NewJob, fire: Fire) -> StoreResult<Creation<Job, NoSuchSchedule>> {
        self.writer.write(move |c| trigger::trigger_schedule(c, job, &fire)).await
    }

    async fn active_jobs(&self, ids: Vec<ScheduleId>) -> StoreResult<Vec<(ScheduleId, JobId)>> {
        self.readers.read(move |c| advance::active_jobs(c, &ids)).await
    }
}

#[async_trait]
impl LedgerStore for SqliteStore {
    async fn list_fires(&self, query: FireQuery) -> StoreResult<Page<Fire, Timestamp>> {
        self.readers.read(move |c| fires::list_fires(c, &query)).await
    }

    async fn queued_firings(
        &self,
        id: ScheduleId,
        from: Timestamp,
        limit: usize,
    ) -> StoreResult<Vec<Timestamp>> {
        self.readers.read(move |c| fires::queued_firings(c, id, from, limit)).await
    }

    async fn fires_within(
        &self,
        id: ScheduleId,
        after: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Vec<Fire>> {
        self.readers.read(move |c| fires::fires_within(c, id, after, until)).await
    }

    async fn latest_fires(&self, ids: Vec<ScheduleId>, count: usize) -> StoreResult<Vec<Fire>> {
        self.readers.read(move |c| fires::latest_fires(c, &ids, count)).await
    }
}

#[async_trait]
impl CalendarStore for SqliteStore {
    async fn put_calendar(&self, calendar: Calendar) -> StoreResult<()> {
        self.writer.write(move |c| calendars::put_calendar(c, &calendar)).await
    }

    async fn list_calendars(&self, tenant: &str) -> StoreResult<Vec<Calendar>> {
        let tenant = tenant.to_owned();
        self.readers.read(move |c| calendars::list_calendars(c, &tenant)).await
    }

    async fn delete_calendar(&self, tenant: &str, name: &str) -> StoreResult<bool> {
        let (tenant, name) = (tenant.to_owned(), name.to_owned());
        self.writer.write(move |c| calendars::delete_calendar(c, &tenant, &name)).await
    }
}
