//! Schedules on the server: a verb a function, a concern a file, the same names as for SQLite.
//!
//! Whoever writes anything of a schedule first locks its row (`locks.rs`), in the order of the ids, and looks at it and
//! its ledger only then: a statement that waits for a lock and goes on would see the row as it is, but the ledger as it
//! was.
//!
//! Invariant: what belongs to a schedule is written in the transaction that moved its row, and only if that did.

mod advance;
mod calendars;
pub(super) mod definition;
pub(super) mod fires;
mod locks;
mod trigger;

use async_trait::async_trait;
use tickwheel_core::ports::{
    Advanced, CalendarStore, Creation, DueSchedule, FireQuery, LedgerStore, LoadSchedules, NewJob,
    NoSuchSchedule, Page, ScheduleCreated, ScheduleQuery, ScheduleStep, ScheduleStore, StoreResult,
};
use tickwheel_core::schedule::{Calendar, Fire, Schedule};
use tickwheel_core::{Job, JobId, ScheduleId, Timestamp};

use super::PostgresStore;
use super::lists::EXAMINED_MAX;

#[cfg(test)]
pub(super) const STATEMENTS: &[&[&str]] = &[
    advance::STATEMENTS,
    calendars::STATEMENTS,
    definition::STATEMENTS,
    fires::STATEMENTS,
    locks::STATEMENTS,
];

#[async_trait]
impl ScheduleStore for PostgresStore {
    async fn create_schedule(&self, schedule: Schedule) -> StoreResult<ScheduleCreated> {
        definition::create_schedule(self, &schedule).await
    }

    async fn get_schedules(&self, ids: Vec<ScheduleId>) -> StoreResult<Vec<Schedule>> {
        definition::get_schedules(self, &ids).await
    }

    async fn find_schedule(&self, tenant: &str, name: &str) -> StoreResult<Option<Schedule>> {
        definition::find_schedule(self, tenant, name).await
    }

    async fn list_schedules(&self, query: ScheduleQuery) -> StoreResult<Page<Schedule, String>> {
        definition::list_schedules(self, &query, EXAMINED_MAX).await
    }

    async fn load_schedules(&self, load: LoadSchedules) -> StoreResult<Vec<DueSchedule>> {
        advance::load_schedules(self, load).await
    }

    async fn advance_schedules(&self, steps: Vec<ScheduleStep>) -> StoreResult<Vec<Advanced>> {
        advance::advance_schedules(self, steps).await
    }

    async fn change_schedule(&self, schedule: Schedule, fires: Vec<Fire>) -> StoreResult<Advanced> {
        definition::change_schedule(self, &schedule, &fires).await
    }

    async fn delete_schedule(&self, id: ScheduleId) -> StoreResult<bool> {
        definition::delete_schedule(self, id).await
    }

    async fn trigger_schedule(&self, job: NewJob, fire: Fire) -> StoreResult<Creation<Job, NoSuchSchedule>> {
        trigger::trigger_schedule(self, job, fire).await
    }

    async fn active_jobs(&self, ids: Vec<ScheduleId>) -> StoreResult<Vec<(ScheduleId, JobId)>> {
        advance::active_jobs(self, &ids).await
    }
}

#[async_trait]
impl LedgerStore for PostgresStore {
    async fn list_fires(&self, query: FireQuery) -> StoreResult<Page<Fire, Timestamp>> {
        fires::list_fires(self, &query, EXAMINED_MAX).await
    }

    async fn queued_firings(
        &self,
        id: ScheduleId,
        from: Timestamp,
        limit: usize,
    ) -> StoreResult<Vec<Timestamp>> {
        fires::queued_firings(self, id, from, limit).await
    }

    async fn fires_within(
        &self,
        id: ScheduleId,
        after: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Vec<Fire>> {
        fires::fires_within(self, id, after, until).await
    }

    async fn latest_fires(&self, ids: Vec<ScheduleId>, count: usize) -> StoreResult<Vec<Fire>> {
        fires::latest_fires(self, &ids, count).await
    }
}

#[async_trait]
impl CalendarStore for PostgresStore {
    async fn put_calendar(&self, calendar: Calendar) -> StoreResult<()> {
        calendars::put_calendar(self, &calendar).await
    }

    async fn list_calendars(&self, tenant: &str) -> StoreResult<Vec<Calendar>> {
        calendars::list_calendars(self, tenant).await
    }

    async fn delete_calendar(&self, tenant: &str, name: &str) -> StoreResult<bool> {
        calendars::delete_calendar(self, tenant, name).await
    }
}
