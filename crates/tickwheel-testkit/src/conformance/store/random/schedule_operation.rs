//! The verbs of schedules as data, and how a store answers them.

use tickwheel_core::ports::{
    Advanced, Creation, DueSchedule, FireQuery, LoadSchedules, NewJob, NoSuchSchedule, ScheduleCreated,
    ScheduleQuery, ScheduleStep,
};
use tickwheel_core::schedule::{Fire, Schedule};
use tickwheel_core::{Job, JobId, ScheduleId, Timestamp};

use super::super::bench::answered;
use crate::conformance::schedules::bench::ScheduleBench;

/// A verb with everything it needs.
#[derive(Clone, Debug)]
pub enum ScheduleOperation {
    Create(Schedule),
    Advance(Vec<ScheduleStep>),
    Change(Schedule, Vec<Fire>),
    Delete(ScheduleId),
    Trigger(Box<NewJob>, Fire),
    Load(LoadSchedules),
    ActiveJobs(Vec<ScheduleId>),
    ListFires(FireQuery),
    FiresWithin(ScheduleId, Timestamp, Timestamp),
    LatestFires(Vec<ScheduleId>, usize),
    List(ScheduleQuery),
    /// The schedules and their ledgers.
    Inspect(Vec<ScheduleId>),
}

/// What a store said.
#[derive(Debug, PartialEq)]
pub enum ScheduleAnswer {
    Created(ScheduleCreated),
    Advanced(Vec<Advanced>),
    Deleted(bool),
    Triggered(Creation<Job, NoSuchSchedule>),
    Due(Vec<DueSchedule>),
    Active(Vec<(ScheduleId, JobId)>),
    Fires(Vec<Fire>),
    Schedules(Vec<Schedule>),
    Inspected(Vec<(Option<Schedule>, Vec<Fire>)>),
}

impl ScheduleOperation {
    /// The jobs it may have made.
    pub fn touched_jobs(&self) -> Vec<JobId> {
        match self {
            Self::Advance(steps) => steps.iter().flat_map(|step| &step.jobs).map(|job| job.id).collect(),
            Self::Trigger(new, _) => vec![new.job.id],
            _ => Vec::new(),
        }
    }

    /// The schedules it may have changed.
    pub fn touched_schedules(&self) -> Vec<ScheduleId> {
        match self {
            Self::Create(schedule) | Self::Change(schedule, _) => vec![schedule.id],
            Self::Advance(steps) => steps.iter().map(|step| step.id).collect(),
            Self::Delete(id) => vec![*id],
            Self::Trigger(_, fire) => vec![fire.schedule_id],
            _ => Vec::new(),
        }
    }

    pub async fn apply_to(self, bench: &ScheduleBench) -> ScheduleAnswer {
        use ScheduleAnswer as Answer;
        let store = &bench.store;
        match self {
            Self::Create(schedule) => Answer::Created(answered(store.create_schedule(schedule).await)),
            Self::Advance(steps) => Answer::Advanced(answered(store.advance_schedules(steps).await)),
            Self::Change(schedule, fires) => Answer::Advanced(vec![bench.change(schedule, fires).await]),
            Self::Delete(id) => Answer::Deleted(answered(store.delete_schedule(id).await)),
            Self::Trigger(job, fire) => Answer::Triggered(bench.trigger(*job, fire).await),
            Self::Load(load) => Answer::Due(bench.load(load).await),
            Self::ActiveJobs(ids) => {
                let mut active = answered(store.active_jobs(ids).await);
                active.sort();
                Answer::Active(active)
            }
            Self::ListFires(query) => Answer::Fires(bench.fires(query).await),
            Self::FiresWithin(id, after, until) => Answer::Fires(bench.fires_within(id, after, until).await),
            Self::LatestFires(ids, count) => {
                let mut latest = answered(store.latest_fires(ids, count).await);
                // Stable: within a schedule the order is promised.
                latest.sort_by_key(|fire| fire.schedule_id);
                Answer::Fires(latest)
            }
            Self::List(query) => Answer::Schedules(bench.list(query).await),
            Self::Inspect(ids) => {
                let mut inspected = Vec::new();
                for id in ids {
                    inspected.push((bench.find(id).await, bench.ledger(id).await));
                }
                Answer::Inspected(inspected)
            }
        }
    }
}
