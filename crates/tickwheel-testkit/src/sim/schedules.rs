//! Schedules in the simulated cluster: the real agenda and the real decision on every node, clients that pause, edit and delete, and
//! the check that every nominal time has one record and at most one job.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use tickwheel_core::change::Change;
use tickwheel_core::machine::Event;
use tickwheel_core::ports::{Advanced, Changed, DueJob, DueSchedule, ScheduleCreated, ScheduleStep};
use tickwheel_core::schedule::plan::{Around, Calendars, begin, plan};
use tickwheel_core::schedule::{MissedPolicy, Overlap, Rule, Schedule};
use tickwheel_core::{Job, JobId, ScheduleId, Timestamp};

use super::checks::violation;
use super::world::{Request, ToNode, World};
use super::{CLIENTS_STOP_MS, Violation};
use crate::fixtures::{START, schedule_id, schedule_numbered};

/// What was seen of schedules so far.
#[derive(Debug, Default)]
pub struct ScheduleChecks {
    /// The job of each nominal time.
    jobs: BTreeMap<(ScheduleId, Timestamp), JobId>,
    /// Acknowledged as paused or deleted: nothing fires.
    silent: BTreeMap<ScheduleId, &'static str>,
    /// From where on every nominal time must have a record.
    since: BTreeMap<ScheduleId, Timestamp>,
}

impl ScheduleChecks {
    /// The store carried out a step.
    fn advanced(&mut self, step: &ScheduleStep, now: Timestamp) -> Result<(), Violation> {
        if let (Some(why), false) = (self.silent.get(&step.id), step.jobs.is_empty()) {
            return Err(violation("I10", now, format!("{} fired although it was {why}", step.id)));
        }
        for job in &step.jobs {
            if job.execute_at > now {
                return Err(violation("I4", now, format!("{} fired before {:?}", step.id, job.execute_at)));
            }
            if let Some(first) = self.jobs.insert((step.id, job.execute_at), job.id) {
                let what = format!("{} has {first} and {} for {:?}", step.id, job.id, job.execute_at);
                return Err(violation("I2", now, what));
            }
        }
        Ok(())
    }
}

impl World {
    /// One client does something with schedules.
    pub(super) fn client_uses_schedules(&mut self) {
        let known: Vec<ScheduleId> = self.schedule_checks.since.keys().copied().collect();
        if known.len() < 2 || (known.len() < 4 && self.chance(30)) {
            return self.create_schedule();
        }
        let id = known[self.rng.random_range(0..known.len())];
        match self.rng.random_range(0..10) {
            0..3 => self.pause_schedule(id),
            3..6 => self.resume_schedule(id),
            6..9 => self.edit_schedule(id),
            _ => self.delete_schedule(id),
        }
    }

    fn create_schedule(&mut self) {
        let number = self.next_number();
        let (every_ms, overlap, missed) = (
            1_000 * self.rng.random_range(1..3),
            Overlap::ALL[self.rng.random_range(0..Overlap::ALL.len())],
            MissedPolicy::ALL[self.rng.random_range(0..MissedPolicy::ALL.len())],
        );
        let jitter_ms = if self.chance(30) { 700 } else { 0 };
        let mut schedule = schedule_numbered(number, "* * * * *")
            .spec(|spec| {
                spec.rule = Rule::Every { every_ms, anchor: Timestamp::EPOCH };
                spec.end_at = Some(START + Duration::from_millis(CLIENTS_STOP_MS as u64));
                (spec.overlap, spec.missed.policy, spec.jitter_ms) = (overlap, missed, jitter_ms);
                Arc::make_mut(&mut spec.job.spec).timeout_ms = super::TIMEOUT.as_millis() as u64;
            })
            .build();
        schedule.id = schedule_id(number);
        schedule.progress = begin_anew(&schedule, self.now);
        let created = self.model.create_schedule(schedule.clone()).expect("the id is fresh");
        if created == ScheduleCreated::Created {
            self.schedule_checks.since.insert(schedule.id, self.now);
            self.hint_schedule(&schedule);
        }
    }

    fn pause_schedule(&mut self, id: ScheduleId) {
        if self.change_schedule(id, |schedule, _| schedule.paused = true) {
            self.schedule_checks.silent.insert(id, "paused");
        }
    }

    fn resume_schedule(&mut self, id: ScheduleId) {
        let resumed = self.change_schedule(id, |schedule, now| {
            if std::mem::take(&mut schedule.paused) {
                schedule.progress = begin_anew(schedule, now.max(schedule.progress.cursor));
            }
        });
        if resumed {
            self.schedule_checks.silent.remove(&id);
        }
    }

    /// At the end none is held.
    pub(super) fn resume_all_schedules(&mut self) {
        let all: Vec<ScheduleId> = self.schedule_checks.since.keys().copied().collect();
        all.into_iter().for_each(|id| self.resume_schedule(id));
    }

    /// None of them will fire again.
    pub(super) fn schedules_are_over(&self) -> bool {
        let ids: Vec<ScheduleId> = self.schedule_checks.since.keys().copied().collect();
        self.model.get_schedules(&ids).iter().all(|schedule| schedule.progress.wake_at.is_none())
    }

    fn edit_schedule(&mut self, id: ScheduleId) {
        let every_ms = 1_000 * self.rng.random_range(1..4);
        self.change_schedule(id, |schedule, now| {
            Arc::make_mut(&mut schedule.spec).rule = Rule::Every { every_ms, anchor: Timestamp::EPOCH };
            schedule.progress = begin_anew(schedule, now.max(schedule.progress.cursor));
        });
    }

    /// As the engine does it: bring it up to date, then write if nothing came in between.
    fn change_schedule(&mut self, id: ScheduleId, change: impl FnOnce(&mut Schedule, Timestamp)) -> bool {
        let Some(schedule) = self.model.get_schedules(&[id]).pop() else { return false };
        let step = self.decide(&schedule);
        if self.advance(step).is_err() {
            return false;
        }
        let Some(mut schedule) = self.model.get_schedules(&[id]).pop() else { return false };
        change(&mut schedule, self.now);
        // What an edit makes of the past is none of the ledger's business: from here on it has to be complete.
        self.schedule_checks.since.insert(id, schedule.progress.cursor);
        let done = self.model.change_schedule(schedule.clone(), Vec::new()) == Advanced::Done;
        self.hint_schedule(&schedule);
        done
    }

    fn delete_schedule(&mut self, id: ScheduleId) {
        if self.model.delete_schedule(id) {
            self.schedule_checks.silent.insert(id, "deleted");
            self.schedule_checks.since.remove(&id);
        }
    }

    /// A node looks at its schedules.
    pub(super) fn look_at_schedules(&mut self, node: usize) {
        let now = self.now;
        if let Some(load) = self.nodes[node].agenda.wants(now)
            && !self.goes_wrong()
        {
            let found = self.model.load_schedules(&load);
            self.nodes[node].agenda.loaded(&load, found, now);
        }
        let ids = self.nodes[node].agenda.take(now);
        for id in ids {
            match self.model.get_schedules(&[id]).pop() {
                // It was read: whatever happens until the store hears of the decision, the revision tells.
                Some(schedule) => {
                    let step = self.decide(&schedule);
                    self.ask(node, Request::Advance(Box::new(step), due(&schedule)));
                }
                None => self.nodes[node].agenda.done(id, None, 0, now),
            }
        }
        let wake = self.nodes[node].agenda.next_wake().max(now);
        let delay = (wake.since(now).as_millis() as u64).clamp(1, 200);
        self.later(node, delay, ToNode::Schedules);
    }

    fn decide(&mut self, schedule: &Schedule) -> ScheduleStep {
        let active: Vec<JobId> =
            self.model.active_jobs(&[schedule.id]).into_iter().map(|(_, job)| job).collect();
        let around = Around { now: self.now, active: &active, calendars: &Calendars::new() };
        let timetable = schedule.spec.timetable().expect("made of sound parts");
        let plan = plan(schedule, &timetable, around);
        for job in &plan.cancel {
            if let Changed::Done(job) = self.model.change_job(*job, &Change::Cancel, self.now) {
                self.checks.change_acknowledged(&job);
                for node in 0..self.nodes.len() {
                    self.tell(node, ToNode::Stop(job.id));
                }
            }
        }
        let ids: Vec<JobId> = plan.fires.iter().map(|_| self.fresh_id()).collect();
        let mut ids = ids.into_iter();
        plan.into_step(schedule, self.now, || ids.next().expect("one for each"))
    }

    /// A decision arrives at the store.
    pub(super) fn store_advances(
        &mut self,
        node: usize,
        life: u32,
        step: ScheduleStep,
        known: DueSchedule,
        lost: bool,
        answer_lost: bool,
    ) -> Result<(), Violation> {
        let (id, wake_at) = (step.id, step.progress.wake_at);
        let written = !lost && self.advance(step)?;
        // Whoever hears nothing, or that it came too late, looks again.
        let again =
            if written && !answer_lost { wake_at } else { Some(self.now + Duration::from_millis(50)) };
        let again = again.map(|wake_at| DueSchedule { wake_at, ..known });
        self.reply(node, life, ToNode::Advanced(id, again));
        Ok(())
    }

    fn advance(&mut self, step: ScheduleStep) -> Result<bool, Violation> {
        let jobs: Vec<Job> = step.jobs.clone();
        if self.model.advance_schedules(vec![step.clone()])[0] == Advanced::Stale {
            return Ok(false);
        }
        self.schedule_checks.advanced(&step, self.now)?;
        for job in &jobs {
            self.checks.acknowledged(job.id);
        }
        if !jobs.is_empty() && self.chance(80) {
            let node = self.some_node();
            let due = jobs.iter().map(DueJob::from).collect();
            self.tell(node, ToNode::Machine(Event::Learned(due)));
        }
        Ok(true)
    }

    fn hint_schedule(&mut self, schedule: &Schedule) {
        if self.chance(80) && schedule.progress.wake_at.is_some() {
            let node = self.some_node();
            self.tell(node, ToNode::Learned(due(schedule)));
        }
    }

    /// A firing may wait for that. Whoever is told looks at once; if nobody is, somebody looks soon enough.
    pub(super) fn job_of_schedule_ended(&mut self, id: ScheduleId) {
        if let Some(schedule) = self.model.get_schedules(&[id]).pop()
            && schedule.progress.held_at.is_some()
            && self.chance(80)
        {
            let (node, wake_at) = (self.some_node(), self.now);
            self.tell(node, ToNode::Learned(DueSchedule { wake_at, ..due(&schedule) }));
        }
    }

    /// Everything is over: no nominal time is without a record.
    pub(super) fn schedules_are_complete(&self) -> Result<(), Violation> {
        for (id, since) in &self.schedule_checks.since {
            let Some(schedule) = self.model.get_schedules(&[*id]).pop() else { continue };
            let timetable = schedule.spec.timetable().expect("made of sound parts");
            let expected: Vec<Timestamp> = timetable.firings(*since, self.now).collect();
            let mut recorded: Vec<Timestamp> =
                self.model.fires_of(*id).map(|fire| fire.nominal_at).filter(|at| at > since).collect();
            recorded.sort_unstable();
            if recorded != expected {
                let what = format!("{id} should have fired at {expected:?}, recorded are {recorded:?}");
                return Err(violation("I1", self.now, what));
            }
        }
        Ok(())
    }
}

fn begin_anew(schedule: &Schedule, from: Timestamp) -> tickwheel_core::schedule::Progress {
    begin(schedule.id, &schedule.spec, &schedule.spec.timetable().expect("made of sound parts"), from)
}

fn due(schedule: &Schedule) -> DueSchedule {
    DueSchedule {
        id: schedule.id,
        partition: schedule.partition,
        wake_at: schedule.progress.wake_at.unwrap_or(schedule.progress.cursor),
        priority: schedule.spec.job.priority,
    }
}
