//! Draws the operations on schedules. Nominal times are few, so that decisions meet.

use std::time::Duration;

use rand::RngExt;
use tickwheel_core::ports::{
    FireQuery, Idempotency, LoadSchedules, NewJob, PartitionSet, ScheduleQuery, ScheduleStep, WakeCursor,
};
use tickwheel_core::schedule::{
    Backfill, BackfillState, Fire, FireOutcome, FireReason, Overlap, Schedule, ScheduleProgress,
};
use tickwheel_core::{Job, Partition, Priority, ScheduleId, Timestamp};

use super::generator::{Generator, QUEUES, TENANTS};
use super::schedule_operation::ScheduleOperation as Operation;
use crate::conformance::schedules::bench::BEFORE_ALL;
use crate::fixtures::{START, backfill, job_id, schedule_id, schedule_numbered};
use crate::model::Model;

const SCHEDULES_MAX: usize = 12;
const NAMES: [&str; 6] = ["daily", "hourly", "Daily", " ", "ñ", "%"];

impl Generator {
    /// The next operation on schedules.
    pub fn schedule_operation(&mut self, model: &Model) -> Operation {
        if model.schedules().is_empty() || (self.schedules.len() < SCHEDULES_MAX && self.chance(15)) {
            return self.create_schedule();
        }
        match self.rng.random_range(0..100) {
            0..40 => self.advance(model),
            40..50 => self.change_schedule(model),
            50..52 => Operation::Delete(self.any_schedule()),
            52..65 => self.trigger(model),
            65..72 => Operation::Load(self.load_schedules()),
            72..78 => Operation::ActiveJobs(self.some_schedules()),
            78..83 => self.fires_within(),
            83..88 => Operation::ListFires(self.fire_query()),
            88..94 => Operation::LatestFires(self.some_schedules(), self.rng.random_range(0..4)),
            _ => Operation::List(self.schedule_query()),
        }
    }

    fn create_schedule(&mut self) -> Operation {
        let number = self.schedules.len() as u64 + 1;
        let wake_at = self.sometimes();
        let schedule = schedule_numbered(number, "* * * * *")
            .name(self.one_of(NAMES))
            .tenant(self.one_of(TENANTS))
            .partition(Partition(self.rng.random_range(0..Partition::COUNT)))
            .priority(self.one_of(Priority::ALL))
            .queue(self.one_of(QUEUES))
            .wake_at(wake_at)
            .build();
        // Also those whose name turns out to be taken: then the id is one that does not exist.
        self.schedules.push(schedule.id);
        Operation::Create(schedule)
    }

    fn advance(&mut self, model: &Model) -> Operation {
        let ids = self.some_schedules();
        let known: Vec<Schedule> = ids.iter().map(|id| self.as_stored(model, *id)).collect();
        Operation::Advance(known.iter().map(|schedule| self.step(schedule)).collect())
    }

    fn step(&mut self, schedule: &Schedule) -> ScheduleStep {
        let mut fires = self.fires(schedule);
        let mut jobs = Vec::new();
        for fire in &mut fires {
            if self.chance(40)
                && let Some(job) = self.job_of(schedule, fire.nominal_at)
            {
                fire.job_id = Some(job.id);
                jobs.push(job);
            }
        }
        let (revision, progress) = (self.revision(schedule), self.progress());
        ScheduleStep { id: schedule.id, revision, progress, fires, jobs }
    }

    fn change_schedule(&mut self, model: &Model) -> Operation {
        let id = self.any_schedule();
        let mut wanted = self.as_stored(model, id);
        let fires = self.fires(&wanted);
        wanted.revision = self.revision(&wanted);
        wanted.paused = self.chance(50);
        wanted.pause_note = self.chance(50).then(|| format!("at {:?}", self.now));
        wanted.updated_at = self.now;
        wanted.progress = self.progress();
        let spec = std::sync::Arc::make_mut(&mut wanted.spec);
        spec.job.priority = self.one_of(Priority::ALL);
        spec.overlap = self.one_of(Overlap::ALL);
        Operation::Change(wanted, fires)
    }

    fn trigger(&mut self, model: &Model) -> Operation {
        let id = self.any_schedule();
        let (schedule, nominal) = (self.as_stored(model, id), self.nominal());
        let Some(job) = self.job_of(&schedule, nominal) else {
            return Operation::ListFires(self.fire_query());
        };
        let fire = Fire {
            last_at: nominal,
            count: 1,
            outcome: FireOutcome::Triggered,
            job_id: Some(job.id),
            ..self.fire(&schedule, nominal)
        };
        let idempotency = self.chance(50).then(|| Idempotency {
            key: format!("key-{}", self.rng.random_range(0..6)),
            fingerprint: [self.one_of([1, 1, 1, 2]); 32],
        });
        Operation::Trigger(Box::new(NewJob { job, idempotency }), fire)
    }

    /// A new job of that firing, while there may be more.
    fn job_of(&mut self, schedule: &Schedule, nominal: Timestamp) -> Option<Job> {
        if !self.has_room_for_jobs() {
            return None;
        }
        let id = job_id(self.now, self.jobs.len() as u64 + 1);
        self.jobs.push(id);
        Some(schedule.job(id, nominal, nominal, self.now))
    }

    /// Records without jobs, of distinct times.
    fn fires(&mut self, schedule: &Schedule) -> Vec<Fire> {
        let mut times: Vec<Timestamp> = (0..self.rng.random_range(0..4)).map(|_| self.nominal()).collect();
        times.sort();
        times.dedup();
        times.into_iter().map(|nominal| self.fire(schedule, nominal)).collect()
    }

    fn fire(&mut self, schedule: &Schedule, nominal: Timestamp) -> Fire {
        let count = self.rng.random_range(1..4);
        Fire {
            schedule_id: schedule.id,
            nominal_at: nominal,
            last_at: nominal + Duration::from_secs(60 * (count - 1)),
            count,
            outcome: self.one_of(FireOutcome::ALL),
            reason: self.one_of(FireReason::ALL),
            job_id: None,
            recorded_at: self.now,
        }
    }

    fn progress(&mut self) -> ScheduleProgress {
        ScheduleProgress {
            cursor: self.around_now(),
            next_at: self.sometimes(),
            rolled_at: self.sometimes(),
            held_at: self.sometimes(),
            wake_at: self.sometimes(),
            backfill: self.chance(40).then(|| self.backfill()),
        }
    }

    fn backfill(&mut self) -> Backfill {
        Backfill {
            state: self.one_of(BackfillState::ALL),
            priority: self.chance(50).then(|| self.one_of(Priority::ALL)),
            cursor: self.around_now(),
            made: self.rng.random_range(0..1_000),
            held: self.chance(50),
            ended_at: self.sometimes(),
            ..backfill()
        }
    }

    fn fires_within(&mut self) -> Operation {
        let (one, other) = (self.nominal(), self.nominal());
        Operation::FiresWithin(self.any_schedule(), one.min(other), one.max(other))
    }

    fn load_schedules(&mut self) -> LoadSchedules {
        let mut partitions = PartitionSet::ALL;
        for partition in 0..Partition::COUNT {
            if self.chance(20) {
                partitions = partitions.without(Partition(partition));
            }
        }
        let after = WakeCursor { wake_at: self.around_now(), id: self.any_schedule() };
        LoadSchedules {
            partitions,
            after: if self.chance(30) { after } else { BEFORE_ALL },
            until: self.around_now(),
            limit: self.rng.random_range(1..8),
        }
    }

    fn fire_query(&mut self) -> FireQuery {
        FireQuery {
            schedule_id: self.any_schedule(),
            outcome: self.chance(30).then(|| self.one_of(FireOutcome::ALL)),
            before: self.chance(30).then(|| self.nominal()),
            limit: self.rng.random_range(1..6),
        }
    }

    fn schedule_query(&mut self) -> ScheduleQuery {
        ScheduleQuery {
            // A name is unique within a tenant only, and so is a place in the list.
            tenant: Some(self.one_of(TENANTS).to_owned()),
            paused: self.chance(40).then(|| self.chance(50)),
            after: self.chance(20).then(|| self.one_of(NAMES).to_owned()),
            limit: self.rng.random_range(1..5),
        }
    }

    /// As the store has it, or as it would have been.
    fn as_stored(&self, model: &Model, id: ScheduleId) -> Schedule {
        let made_up = || schedule_numbered(1, "* * * * *").with(|schedule| schedule.id = id).build();
        model.schedules().get(&id).cloned().unwrap_or_else(made_up)
    }

    fn revision(&mut self, schedule: &Schedule) -> u64 {
        if self.chance(85) { schedule.revision } else { schedule.revision - 1 }
    }

    fn nominal(&mut self) -> Timestamp {
        START + Duration::from_secs(60 * self.rng.random_range(0..15))
    }

    fn sometimes(&mut self) -> Option<Timestamp> {
        self.chance(80).then(|| self.around_now())
    }

    pub(super) fn any_schedule(&mut self) -> ScheduleId {
        match self.schedules.is_empty() || self.chance(3) {
            true => schedule_id(u64::MAX >> 8),
            false => self.schedules[self.rng.random_range(0..self.schedules.len())],
        }
    }

    fn some_schedules(&mut self) -> Vec<ScheduleId> {
        let mut ids: Vec<ScheduleId> = (0..4).map(|_| self.any_schedule()).collect();
        ids.sort();
        ids.dedup();
        ids
    }
}
