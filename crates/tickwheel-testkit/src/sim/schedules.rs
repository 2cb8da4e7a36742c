//! Schedules in the simulated cluster: the real schedule timer and the real decisions on every node, and clients that
//! pause, edit, delete and have the past made up for.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use tickwheel_core::change::Change;
use tickwheel_core::machine::Event;
use tickwheel_core::ports::{Advanced, Changed, DueJob, DueSchedule, ScheduleCreated, ScheduleStep};
use tickwheel_core::schedule::backfill::{self, BackfillRequest};
use tickwheel_core::schedule::edit::{ScheduleEdit, edited};
use tickwheel_core::schedule::plan::{Calendars, PlanContext, QUEUE_LEN_MAX, begin, plan};
use tickwheel_core::schedule::timer::JobsMade;
use tickwheel_core::schedule::{Fire, MissedPolicy, Overlap, Rule, Schedule, Timetable};
use tickwheel_core::{Job, JobId, Priority, ScheduleId, Timestamp};

use super::injected::{FaultKind, RequestKind};
use super::requests::Request;
use super::world::{ToNode, World};
use super::{CLIENTS_STOP_MS, Violation};
use crate::fixtures::{START, schedule_id, schedule_numbered};

/// The longest range that a client has made up for.
const RANGE_MS_MAX: u64 = 6_000;

impl World {
    /// One client does something with schedules.
    pub(super) fn client_uses_schedules(&mut self) -> Result<(), Violation> {
        let known = self.schedule_checks.known();
        if known.len() < 2 || (known.len() < 4 && self.chance(30)) {
            self.create_schedule();
            return Ok(());
        }
        let id = known[self.rng.random_range(0..known.len())];
        let edit = match self.rng.random_range(0..15) {
            0..3 => ScheduleEdit::Pause { note: None },
            3..6 => ScheduleEdit::Resume,
            6..9 => return self.change_spec(id),
            9..13 => ScheduleEdit::Backfill(self.some_range()),
            13 => ScheduleEdit::CancelBackfill,
            _ => {
                self.delete_schedule(id);
                return Ok(());
            }
        };
        self.edit_schedule(id, &edit)
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
        schedule.progress = begin(schedule.id, &schedule.spec, &timetable(&schedule), self.now);
        let created = self.model.create_schedule(schedule.clone()).expect("the id is fresh");
        if created == ScheduleCreated::Created {
            self.schedule_checks.created(&schedule);
            self.hint_schedule(&schedule);
        }
    }

    fn change_spec(&mut self, id: ScheduleId) -> Result<(), Violation> {
        let every_ms = 1_000 * self.rng.random_range(1..4);
        let Some(schedule) = self.schedule(id) else { return Ok(()) };
        let mut spec = schedule.spec.clone();
        Arc::make_mut(&mut spec).rule = Rule::Every { every_ms, anchor: Timestamp::EPOCH };
        self.edit_schedule(id, &ScheduleEdit::Spec { spec, instead_of: schedule.spec })
    }

    /// Some of the time since the start, and sometimes what is yet to come.
    fn some_range(&mut self) -> BackfillRequest {
        let since_ms = self.now.since(START).as_millis() as u64;
        let from = START + Duration::from_millis(self.rng.random_range(0..=since_ms));
        let to = from + Duration::from_millis(self.rng.random_range(0..RANGE_MS_MAX));
        let priority = self.chance(50).then_some(Priority::Low);
        BackfillRequest { from, to, per_second: self.rng.random_range(1..20), priority }
    }

    /// At the end none is held.
    pub(super) fn resume_all_schedules(&mut self) -> Result<(), Violation> {
        let all = self.schedule_checks.known();
        all.into_iter().try_for_each(|id| self.edit_schedule(id, &ScheduleEdit::Resume))
    }

    /// None of them will fire again.
    pub(super) fn schedules_are_over(&self) -> bool {
        let all = self.model.get_schedules(&self.schedule_checks.known());
        all.iter().all(|schedule| schedule.progress.wake_at.is_none())
    }

    /// As the engine does it: bring it up to date, then write if nothing came in between.
    fn edit_schedule(&mut self, id: ScheduleId, edit: &ScheduleEdit) -> Result<(), Violation> {
        let Some(schedule) = self.schedule(id) else { return Ok(()) };
        let step = self.decide(&schedule);
        self.advance(step)?;
        let Some(before) = self.schedule(id) else { return Ok(()) };
        let wanted = edited(before.clone(), edit, &Calendars::new(), self.now);
        // What cannot be done is refused, and changes nothing.
        let Ok(wanted) = wanted.expect("made of sound parts") else { return Ok(()) };
        if self.model.change_schedule(wanted.clone(), Vec::new()) == Advanced::Done {
            self.schedule_checks.edited(&before, edit, &wanted);
            self.hint_schedule(&wanted);
        }
        Ok(())
    }

    fn delete_schedule(&mut self, id: ScheduleId) {
        if self.model.delete_schedule(id) {
            self.schedule_checks.deleted(id);
        }
    }

    fn schedule(&self, id: ScheduleId) -> Option<Schedule> {
        self.model.get_schedules(&[id]).pop()
    }

    /// A node steps its schedules.
    pub(super) fn step_schedules(&mut self, node: usize) {
        let now = self.now;
        if let Some(load) = self.nodes[node].schedule_timer.wants(now)
            && !self.goes_wrong(FaultKind::RequestLost(RequestKind::LoadSchedules))
        {
            let found = self.model.load_schedules(&load);
            self.nodes[node].schedule_timer.loaded(&load, found, now);
        }
        let ids = self.nodes[node].schedule_timer.take(now);
        for id in ids {
            match self.schedule(id) {
                // It was read: whatever happens until the store hears of the decision, the revision tells.
                Some(schedule) => {
                    let step = self.decide(&schedule);
                    self.ask(node, Request::Advance(Box::new(step), due(&schedule)));
                }
                None => self.nodes[node].schedule_timer.done(id, None, JobsMade::default(), now),
            }
        }
        let wake = self.nodes[node].schedule_timer.next_wake().max(now);
        let delay = (wake.since(now).as_millis() as u64).clamp(1, 200);
        self.later(node, delay, ToNode::Schedules);
    }

    fn decide(&mut self, schedule: &Schedule) -> ScheduleStep {
        let active: Vec<JobId> =
            self.model.active_jobs(&[schedule.id]).into_iter().map(|(_, job)| job).collect();
        let (timetable, calendars) = (timetable(schedule), Calendars::new());
        let ledger = self.recorded(schedule, &timetable, &calendars);
        let first = schedule.progress.held_at;
        let queued =
            first.map_or_else(Vec::new, |first| self.model.queued_firings(schedule.id, first, QUEUE_LEN_MAX));
        let context = PlanContext {
            now: self.now,
            active: &active,
            calendars: &calendars,
            ledger: &ledger,
            queued: &queued,
        };
        let plan = plan(schedule, &timetable, context);
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

    /// What is recorded where a backfill is to go on.
    fn recorded(&self, schedule: &Schedule, timetable: &Timetable, calendars: &Calendars) -> Vec<Fire> {
        let span = backfill::span(schedule, timetable, calendars, self.now);
        let range = span.and_then(|span| Some((span.after, *span.firings.last()?)));
        range.map_or_else(Vec::new, |(after, until)| self.model.fires_within(schedule.id, after, until))
    }

    /// A decision arrives at the store.
    pub(super) fn store_advances(
        &mut self,
        node: usize,
        life: u32,
        step: ScheduleStep,
        known: DueSchedule,
        answer_lost: bool,
    ) -> Result<(), Violation> {
        let (id, wake_at) = (step.id, step.progress.wake_at);
        if !self.advance(step)? || answer_lost {
            self.step_schedule_again(node, life, id, known);
        } else {
            let again = wake_at.map(|wake_at| DueSchedule { wake_at, ..known });
            self.reply(node, life, ToNode::Advanced(id, again));
        }
        Ok(())
    }

    /// Whoever hears nothing, or that it came too late, comes back.
    pub(super) fn step_schedule_again(&mut self, node: usize, life: u32, id: ScheduleId, known: DueSchedule) {
        let wake_at = self.now + Duration::from_millis(50);
        self.reply(node, life, ToNode::Advanced(id, Some(DueSchedule { wake_at, ..known })));
    }

    fn advance(&mut self, step: ScheduleStep) -> Result<bool, Violation> {
        let jobs: Vec<Job> = step.jobs.clone();
        if self.model.advance_schedules(vec![step.clone()])[0] == Advanced::Stale {
            return Ok(false);
        }
        self.schedule_checks.advanced(&self.model, &step, self.latest)?;
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

    /// A firing may wait for that. Whoever is told wakes it at once; if nobody is, a sweep finds it soon enough.
    pub(super) fn job_of_schedule_ended(&mut self, id: ScheduleId) {
        if let Some(schedule) = self.schedule(id)
            && schedule.progress.waits_for_a_job()
            && self.chance(80)
        {
            let (node, wake_at) = (self.some_node(), self.now);
            self.tell(node, ToNode::Learned(DueSchedule { wake_at, ..due(&schedule) }));
        }
    }
}

fn timetable(schedule: &Schedule) -> Timetable {
    schedule.spec.timetable().expect("made of sound parts")
}

fn due(schedule: &Schedule) -> DueSchedule {
    DueSchedule {
        id: schedule.id,
        partition: schedule.partition,
        wake_at: schedule.progress.wake_at.unwrap_or(schedule.progress.cursor),
        priority: schedule.spec.job.priority,
    }
}
