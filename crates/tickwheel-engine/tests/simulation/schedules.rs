//! What clients do with schedules: create them, pause, edit, delete and have the past made up for.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use tickwheel_core::schedule::backfill::BackfillRequest;
use tickwheel_core::schedule::edit::ScheduleEdit;
use tickwheel_core::schedule::plan::begin;
use tickwheel_core::schedule::{MissedPolicy, Overlap, Rule, Schedule};
use tickwheel_core::{Priority, ScheduleId, Timestamp};
use tickwheel_testkit::fixtures::{START, schedule_id, schedule_numbered};

use crate::cluster::Cluster;
use crate::node::Process;
use crate::world::World;
use crate::{CLIENTS_STOP_MS, TIMEOUT};

/// The longest range that a client has made up for.
const RANGE_MS_MAX: u64 = 6_000;

impl World {
    /// One client does something with schedules.
    pub fn client_uses_schedules(&mut self, process: &Process) {
        let Some(schedules) = process.with_engine(|engine| engine.schedules()) else { return };
        let mut cluster = self.cluster.lock();
        let (known, now) = (cluster.schedule_checks.known(), cluster.now_of(process.node()));
        if known.len() < 2 || (known.len() < 4 && cluster.chance(30)) {
            let schedule = cluster.new_schedule(now);
            drop(cluster);
            return process.serve(async move { drop(schedules.create(schedule).await) });
        }
        let id = cluster.some_of(&known).expect("there are some");
        let edit = cluster.some_edit(id, now);
        drop(cluster);
        process.serve(async move {
            match edit {
                Some(edit) => drop(schedules.edit(id, edit).await),
                None => drop(schedules.delete(id).await),
            }
        });
    }

    /// At the end none is held.
    pub async fn resume_all_schedules(&mut self, process: &Process) {
        let Some(schedules) = process.with_engine(|engine| engine.schedules()) else { return };
        let known = self.cluster.lock().schedule_checks.known();
        for id in known {
            if let Err(error) = schedules.edit(id, ScheduleEdit::Resume).await {
                self.cluster.lock().violated("I1", format!("{id} cannot be resumed: {error}"));
            }
        }
    }
}

impl Cluster {
    fn new_schedule(&mut self, now: Timestamp) -> Schedule {
        let number = self.next_number();
        let every_ms = 1_000 * self.rng.random_range(1..3);
        let overlap = self.some_of(&Overlap::ALL).expect("there are some");
        let missed = self.some_of(&MissedPolicy::ALL).expect("there are some");
        let jitter_ms = if self.chance(30) { 700 } else { 0 };
        let mut schedule = schedule_numbered(number, "* * * * *")
            .spec(|spec| {
                spec.rule = Rule::Every { every_ms, anchor: Timestamp::EPOCH };
                spec.end_at = Some(START + Duration::from_millis(CLIENTS_STOP_MS));
                (spec.overlap, spec.missed.policy, spec.jitter_ms) = (overlap, missed, jitter_ms);
                Arc::make_mut(&mut spec.job.spec).timeout_ms = TIMEOUT.as_millis() as u64;
            })
            .build();
        schedule.id = schedule_id(number);
        let timetable = schedule.spec.timetable().expect("made of sound parts");
        schedule.progress = begin(schedule.id, &schedule.spec, &timetable, now);
        schedule
    }

    /// What a client wants to be changed; `None`: it wants it gone.
    fn some_edit(&mut self, id: ScheduleId, now: Timestamp) -> Option<ScheduleEdit> {
        Some(match self.rng.random_range(0..15) {
            0..3 => ScheduleEdit::Pause { note: None },
            3..6 => ScheduleEdit::Resume,
            6..9 => self.other_spec(id)?,
            9..13 => ScheduleEdit::Backfill(self.some_range(now)),
            13 => ScheduleEdit::CancelBackfill,
            _ => return None,
        })
    }

    fn other_spec(&mut self, id: ScheduleId) -> Option<ScheduleEdit> {
        let every_ms = 1_000 * self.rng.random_range(1..4);
        let schedule = self.model.with_model(|model| model.get_schedules(&[id]).pop())?;
        let mut spec = schedule.spec.clone();
        Arc::make_mut(&mut spec).rule = Rule::Every { every_ms, anchor: Timestamp::EPOCH };
        Some(ScheduleEdit::Spec { spec, instead_of: schedule.spec })
    }

    /// Some of the time since the start, and sometimes what is yet to come.
    fn some_range(&mut self, now: Timestamp) -> BackfillRequest {
        let since_ms = now.since(START).as_millis() as u64;
        let from = START + Duration::from_millis(self.rng.random_range(0..=since_ms));
        let to = from + Duration::from_millis(self.rng.random_range(0..RANGE_MS_MAX));
        let priority = self.chance(50).then_some(Priority::Low);
        BackfillRequest { from, to, per_second: self.rng.random_range(1..20), priority }
    }
}
