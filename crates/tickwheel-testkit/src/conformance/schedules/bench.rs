//! What the rules for schedules share: the store on a bench, and the decisions that rules have it carry out.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::ports::{
    Advanced, Creation, DueSchedule, FireQuery, LoadSchedules, NewJob, NoSuchSchedule, PartitionSet,
    ScheduleCreated, ScheduleQuery, ScheduleStep, Store, WakeCursor,
};
use tickwheel_core::schedule::{Fire, FireOutcome, FireReason, Schedule, ScheduleProgress};
use tickwheel_core::{Job, ScheduleId, Timestamp};
use uuid::Uuid;

use super::super::store::bench::{Bench, LATER, answered, list_all};
use crate::fixtures::{ScheduleBuilder, at, job, schedule};

/// A store, the moves with schedules, and those with jobs.
pub struct ScheduleBench {
    pub store: Arc<dyn Store>,
    pub jobs: Bench,
}

/// All the store tells of a schedule: what a write that is refused must not change.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    pub schedule: Option<Schedule>,
    pub ledger: Vec<Fire>,
    pub jobs: Vec<Job>,
}

impl ScheduleBench {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { jobs: Bench::new(store.clone()), store }
    }

    /// Stored, and nothing more.
    pub async fn create(&self, builder: ScheduleBuilder) -> Schedule {
        let schedule = builder.build();
        let created = answered(self.store.create_schedule(schedule.clone()).await);
        assert_eq!(created, ScheduleCreated::Created);
        schedule
    }

    pub async fn create_all(&self, builders: impl IntoIterator<Item = ScheduleBuilder>) -> Vec<Schedule> {
        let mut schedules = Vec::new();
        for builder in builders {
            schedules.push(self.create(builder).await);
        }
        schedules
    }

    /// A schedule that fires every minute.
    pub async fn minutely(&self) -> Schedule {
        self.create(schedule("* * * * *")).await
    }

    pub async fn find(&self, id: ScheduleId) -> Option<Schedule> {
        let mut found = answered(self.store.get_schedules(vec![id]).await);
        assert!(found.len() <= 1, "one schedule an id");
        found.pop()
    }

    pub async fn schedule(&self, id: ScheduleId) -> Schedule {
        self.find(id).await.expect("the schedule exists")
    }

    pub async fn advance(&self, step: ScheduleStep) -> Advanced {
        let answers = answered(self.store.advance_schedules(vec![step]).await);
        assert_eq!(answers.len(), 1, "one answer a step");
        answers[0]
    }

    pub async fn change(&self, schedule: Schedule, fires: Vec<Fire>) -> Advanced {
        answered(self.store.change_schedule(schedule, fires).await)
    }

    /// Fires as the schedule is now; the job it makes.
    pub async fn fire(&self, id: ScheduleId, nominal: Timestamp) -> Job {
        let step = fires_at(&self.schedule(id).await, nominal);
        let job = step.jobs[0].clone();
        assert_eq!(self.advance(step).await, Advanced::Done);
        job
    }

    /// Writes records, and the jobs they name if these belong to the step.
    pub async fn record(&self, id: ScheduleId, fires: Vec<Fire>) {
        let now = self.schedule(id).await;
        let step = step(&now, now.progress.cursor, fires, Vec::new());
        assert_eq!(self.advance(step).await, Advanced::Done);
    }

    pub async fn trigger(&self, job: NewJob, fire: Fire) -> Creation<Job, NoSuchSchedule> {
        answered(self.store.trigger_schedule(job, fire).await)
    }

    pub async fn load(&self, load: LoadSchedules) -> Vec<DueSchedule> {
        answered(self.store.load_schedules(load).await)
    }

    pub async fn load_ids(&self, load: LoadSchedules) -> Vec<ScheduleId> {
        self.load(load).await.into_iter().map(|due| due.id).collect()
    }

    /// The whole ledger of a schedule.
    pub async fn ledger(&self, id: ScheduleId) -> Vec<Fire> {
        self.fires(all_fires(id)).await
    }

    pub async fn fires_within(&self, id: ScheduleId, after: Timestamp, until: Timestamp) -> Vec<Fire> {
        answered(self.store.fires_within(id, after, until).await)
    }

    /// What a query finds, page by page.
    pub async fn fires(&self, query: FireQuery) -> Vec<Fire> {
        let (mut query, mut all) = (query, Vec::new());
        for _ in 0..1_000 {
            let page = answered(self.store.list_fires(query.clone()).await);
            assert!(page.items.len() <= query.limit, "a page has at most {} items", query.limit);
            all.extend(page.items);
            match page.next {
                None => return all,
                next => query.before = next,
            }
        }
        panic!("the ledger does not end: {query:?}");
    }

    /// What a query finds, page by page.
    pub async fn list(&self, query: ScheduleQuery) -> Vec<Schedule> {
        let (mut query, mut all) = (query, Vec::new());
        for _ in 0..1_000 {
            let page = answered(self.store.list_schedules(query.clone()).await);
            assert!(page.items.len() <= query.limit, "a page has at most {} items", query.limit);
            all.extend(page.items);
            match page.next {
                None => return all,
                next => query.after = next,
            }
        }
        panic!("the list does not end: {query:?}");
    }

    pub async fn picture(&self, id: ScheduleId) -> Picture {
        let of_schedule = tickwheel_core::ports::JobQuery { schedule_id: Some(id), ..list_all() };
        Picture {
            schedule: self.find(id).await,
            ledger: self.ledger(id).await,
            jobs: self.jobs.list(of_schedule).await,
        }
    }

    pub async fn queue_names(&self) -> Vec<String> {
        answered(self.jobs.store.list_queues().await).into_iter().map(|queue| queue.name).collect()
    }
}

/// So many minutes after the start: the nominal times of a schedule that fires every minute.
pub const fn minute(count: i64) -> Timestamp {
    at(count * 60_000)
}

/// Everything that ever wakes.
pub const fn load_all() -> LoadSchedules {
    LoadSchedules { partitions: PartitionSet::ALL, after: BEFORE_ALL, until: LATER, limit: 1_000 }
}

/// Before everything.
pub const BEFORE_ALL: WakeCursor =
    WakeCursor { wake_at: Timestamp::from_millis(i64::MIN), id: ScheduleId::from_uuid(Uuid::nil()) };

/// The whole ledger, a hundred a page.
pub const fn all_fires(schedule_id: ScheduleId) -> FireQuery {
    FireQuery { schedule_id, outcome: None, before: None, limit: 100 }
}

/// A new job of the firing at `nominal`.
pub fn job_of(schedule: &Schedule, nominal: Timestamp) -> Job {
    schedule.job(job().created_at(nominal).build().id, nominal, nominal, nominal)
}

/// The record of a firing that made no job.
pub const fn skipped(schedule: &Schedule, nominal: Timestamp) -> Fire {
    Fire {
        schedule_id: schedule.id,
        nominal_at: nominal,
        last_at: nominal,
        count: 1,
        outcome: FireOutcome::Skipped,
        reason: FireReason::Overlap,
        job_id: None,
        recorded_at: nominal,
    }
}

/// The record of the firing that made this job.
pub fn fired(schedule: &Schedule, job: &Job) -> Fire {
    let (outcome, reason) = (FireOutcome::Fired, FireReason::OnTime);
    Fire { outcome, reason, job_id: Some(job.id), ..skipped(schedule, job.execute_at) }
}

/// A decision on the schedule as given: it is at `cursor` then and fires again a minute later.
pub fn step(schedule: &Schedule, cursor: Timestamp, fires: Vec<Fire>, jobs: Vec<Job>) -> ScheduleStep {
    let next = Some(cursor + Duration::from_secs(60));
    let progress = ScheduleProgress {
        cursor,
        next_at: next,
        rolled_at: None,
        held_at: None,
        wake_at: next,
        backfill: None,
    };
    ScheduleStep { id: schedule.id, revision: schedule.revision, progress, fires, jobs }
}

/// The decision to fire: one job, one record.
pub fn fires_at(schedule: &Schedule, nominal: Timestamp) -> ScheduleStep {
    let job = job_of(schedule, nominal);
    step(schedule, nominal, vec![fired(schedule, &job)], vec![job])
}

/// The decision not to.
pub fn skips_at(schedule: &Schedule, nominal: Timestamp) -> ScheduleStep {
    step(schedule, nominal, vec![skipped(schedule, nominal)], Vec::new())
}
