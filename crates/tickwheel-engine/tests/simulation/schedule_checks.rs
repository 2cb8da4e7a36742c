//! What must hold of schedules: one job a nominal time, nothing that was paused, deleted or cancelled, no nominal time
//! without a record, and no firing without its job in a range that was made up for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::ports::ScheduleStep;
use tickwheel_core::schedule::plan::Calendars;
use tickwheel_core::schedule::{Backfill, BackfillState, FireReason, Schedule, Upcoming};
use tickwheel_core::{JobId, ScheduleId, Timestamp};
use tickwheel_testkit::Model;

use crate::Violation;
use crate::checks::violation;

/// What was seen of schedules so far.
#[derive(Debug, Default)]
pub struct ScheduleChecks {
    /// The job of each nominal time.
    jobs: BTreeMap<(ScheduleId, Timestamp), JobId>,
    /// Paused or deleted: nothing fires.
    silent: BTreeMap<ScheduleId, &'static str>,
    /// From where on every nominal time must have a record.
    since: BTreeMap<ScheduleId, Timestamp>,
    /// Backfills under way, with the firings of their range; none if the spec was changed meanwhile.
    backfills: BTreeMap<ScheduleId, Option<Vec<Timestamp>>>,
    backfills_completed: usize,
}

impl ScheduleChecks {
    /// Those that were created and not deleted.
    pub fn known(&self) -> Vec<ScheduleId> {
        self.since.keys().copied().collect()
    }

    /// How many backfills came to their end.
    pub const fn backfills_completed(&self) -> usize {
        self.backfills_completed
    }

    /// A schedule is stored.
    pub fn created(&mut self, schedule: &Schedule) {
        self.since.insert(schedule.id, schedule.progress.cursor);
    }

    /// A schedule is gone.
    pub fn deleted(&mut self, id: ScheduleId) {
        self.silent.insert(id, "deleted");
        self.since.remove(&id);
        self.backfills.remove(&id);
    }

    /// Somebody's change is in force.
    pub fn changed(&mut self, before: &Schedule, after: &Schedule) {
        let id = after.id;
        if after.paused {
            self.silent.insert(id, "paused");
        } else {
            self.silent.remove(&id);
        }
        // Also by one that says the same.
        let spec_changed = !Arc::ptr_eq(&before.spec, &after.spec);
        if spec_changed || (before.paused && !after.paused) {
            self.begins_anew(after);
        }
        match (before.progress.backfill, after.progress.backfill) {
            (_, Some(backfill)) if backfill.is_running() && spec_changed => {
                self.backfills.insert(id, None);
            }
            (before, Some(backfill)) if before != after.progress.backfill && backfill.is_running() => {
                self.backfills.insert(id, Some(firings_in_range(after, &backfill)));
            }
            (_, Some(backfill)) if backfill.is_running() => {}
            _ => drop(self.backfills.remove(&id)),
        }
    }

    /// What was due before is none of its business any more.
    fn begins_anew(&mut self, schedule: &Schedule) {
        self.since.insert(schedule.id, schedule.progress.cursor);
    }

    /// The store carried out a step; `now` is the latest that a clock has ever shown. One that was set back since makes
    /// the jobs wait, not the step.
    pub fn advanced(&mut self, model: &Model, step: &ScheduleStep, now: Timestamp) -> Result<(), Violation> {
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
        self.made_up_for(model, step, now)
    }

    /// The part of a step that is a backfill's.
    fn made_up_for(&mut self, model: &Model, step: &ScheduleStep, now: Timestamp) -> Result<(), Violation> {
        let id = step.id;
        let by_request = step.fires.iter().any(|fire| fire.reason == FireReason::ByRequest);
        if by_request && !self.backfills.contains_key(&id) {
            return Err(violation("I10", now, format!("{id} makes up for what nobody asks for")));
        }
        let Some(backfill) = step.progress.backfill else { return Ok(()) };
        if backfill.to > step.progress.cursor {
            return Err(violation("I2", now, format!("{id} makes up for what is yet to come: {backfill:?}")));
        }
        if backfill.made > made_max(&backfill, now) {
            return Err(violation("I10", now, format!("{id} is faster than it may be: {backfill:?}")));
        }
        if backfill.state == BackfillState::Completed
            && let Some(firings) = self.backfills.remove(&id)
        {
            self.backfills_completed += 1;
            return firings.map_or(Ok(()), |firings| is_whole(model, id, &backfill, &firings, now));
        }
        Ok(())
    }

    /// Everything is over: no nominal time is without a record, and no backfill is under way.
    pub fn finished(&self, model: &Model, now: Timestamp) -> Result<(), Violation> {
        for (id, since) in &self.since {
            let Some(schedule) = model.get_schedules(&[*id]).pop() else { continue };
            let timetable = schedule.spec.timetable().expect("made of sound parts");
            let expected: Vec<Timestamp> = timetable.firings(*since, now).collect();
            let ledger = model.fires_within(*id, *since, Timestamp::MAX);
            let recorded: Vec<Timestamp> = ledger.iter().map(|fire| fire.nominal_at).collect();
            if recorded != expected {
                let what = format!("{id} should have fired at {expected:?}, recorded are {recorded:?}");
                return Err(violation("I1", now, what));
            }
            let backfill = schedule.progress.backfill;
            if self.backfills.contains_key(id) || backfill.is_some_and(|backfill| backfill.is_running()) {
                return Err(violation("I1", now, format!("{id} has not made up for all: {backfill:?}")));
            }
        }
        Ok(())
    }
}

fn firings_in_range(schedule: &Schedule, backfill: &Backfill) -> Vec<Timestamp> {
    let timetable = schedule.spec.timetable().expect("made of sound parts");
    let calendars = Calendars::new();
    let firings = Upcoming::within(&schedule.spec, &timetable, &calendars, before(backfill.from));
    firings.take_while(|at| *at <= backfill.to).collect()
}

/// What it may have made by now, the jobs of a second at once.
fn made_max(backfill: &Backfill, now: Timestamp) -> u64 {
    let since_ms = now.since(backfill.requested_at).as_millis() as u64;
    u64::from(backfill.per_second) * (since_ms + 1_000) / 1_000
}

/// Every firing of the range has a record with a job of its own, and each was counted once.
fn is_whole(
    model: &Model,
    id: ScheduleId,
    backfill: &Backfill,
    firings: &[Timestamp],
    now: Timestamp,
) -> Result<(), Violation> {
    let ledger = model.fires_within(id, before(backfill.from), backfill.to);
    let has_own_job =
        |at: &&Timestamp| ledger.iter().any(|fire| fire.nominal_at == **at && fire.has_own_job());
    if let Some(without) = firings.iter().find(|at| !has_own_job(at)) {
        return Err(violation("I1", now, format!("{id} has no job for {without:?}: {backfill:?}")));
    }
    let count = firings.len() as u64;
    if (backfill.total, backfill.made + backfill.passed_over) != (count, count) {
        return Err(violation("I1", now, format!("{id} has {count} firings there: {backfill:?}")));
    }
    Ok(())
}

fn before(at: Timestamp) -> Timestamp {
    at - Duration::from_millis(1)
}
