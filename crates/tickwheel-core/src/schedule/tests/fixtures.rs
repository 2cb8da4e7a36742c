//! Schedules to decide on.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::id::{Partition, ScheduleId};
use crate::job::{JobSpec, JsonText, Priority, Target};
use crate::schedule::plan::begin;
use crate::schedule::{JobTemplate, Rule, Schedule, ScheduleSpec};
use crate::time::Timestamp;

/// 2026-11-16T00:00:00Z, a Monday.
pub const MONDAY: Timestamp = Timestamp::from_millis(1_794_787_200_000);
pub const MINUTE: Duration = Duration::from_secs(60);

pub fn spec(cron: &str) -> ScheduleSpec {
    let job = JobTemplate {
        job_type: "report".into(),
        queue: "default".into(),
        priority: Priority::Normal,
        spec: Arc::new(JobSpec::new(Target::Worker)),
        payload: JsonText::null(),
        tags: Vec::new(),
    };
    ScheduleSpec::new(Rule::Cron(cron.into()), job)
}

/// One that begins on Monday.
pub fn with(cron: &str, change: impl FnOnce(&mut ScheduleSpec)) -> Schedule {
    let mut spec = spec(cron);
    change(&mut spec);
    let id = ScheduleId::from_uuid(Uuid::from_u128(7));
    let progress = begin(id, &spec, &spec.timetable().unwrap(), MONDAY);
    Schedule {
        id,
        partition: Partition(0),
        tenant: "default".into(),
        name: "s".into(),
        spec: Arc::new(spec),
        paused: false,
        pause_note: None,
        revision: 1,
        created_at: MONDAY,
        updated_at: MONDAY,
        progress,
    }
}
