//! Firings: what became of each, and the jobs they made. No nominal time of a schedule ever has a second job.

use std::collections::btree_map::Entry;

use tickwheel_core::ports::{
    Advanced, Creation, FireQuery, NewJob, NoSuchSchedule, Page, ScheduleStep, StoreResult, UnknownParent,
};
use tickwheel_core::schedule::Fire;
use tickwheel_core::{Job, JobId, ScheduleId, Timestamp};

use super::Model;
use super::lists::{is_none_or, page};

impl Model {
    /// Carries decisions out, one after the other.
    pub fn advance_schedules(&mut self, steps: Vec<ScheduleStep>) -> Vec<Advanced> {
        steps.into_iter().map(|step| self.advance_one(step)).collect()
    }

    fn advance_one(&mut self, step: ScheduleStep) -> Advanced {
        if self.is_stale(step.id, step.revision) || self.would_have_a_second_job(&step.fires) {
            return Advanced::Stale;
        }
        self.schedules.entry(step.id).and_modify(|schedule| {
            schedule.progress = step.progress;
            schedule.revision += 1;
        });
        step.fires.into_iter().for_each(|fire| self.record(fire));
        step.jobs.into_iter().for_each(|job| self.insert(job));
        Advanced::Done
    }

    /// Whether one of these records names a job for a nominal time that has its own.
    pub(super) fn would_have_a_second_job(&self, fires: &[Fire]) -> bool {
        let has_job = |fire: &Fire| self.fires.get(&key(fire)).is_some_and(Fire::has_own_job);
        fires.iter().any(|fire| fire.job_id.is_some() && has_job(fire))
    }

    /// Writes a record, in place of one that has no job of its own.
    pub(super) fn record(&mut self, fire: Fire) {
        match self.fires.entry(key(&fire)) {
            Entry::Occupied(former) if former.get().has_own_job() => {}
            position => {
                position.insert_entry(fire);
            }
        }
    }

    /// Stores a job that somebody asked for, and its record at the first free millisecond, unless its key was seen.
    pub fn trigger_schedule(
        &mut self,
        job: NewJob,
        fire: Fire,
    ) -> StoreResult<Creation<Job, NoSuchSchedule>> {
        if !self.schedules.contains_key(&fire.schedule_id) {
            return Ok(Creation::Refused(NoSuchSchedule));
        }
        self.refuse_taken_ids(std::slice::from_ref(&job))?;
        let answer = self.submit_one(job);
        if answer.as_new().is_some() {
            let nominal_at = self.first_free(fire.schedule_id, fire.nominal_at);
            self.record(Fire { nominal_at, last_at: nominal_at, ..fire });
        }
        Ok(answer.map_refused(|UnknownParent(_)| unreachable!("the job of a schedule depends on nothing")))
    }

    fn first_free(&self, id: ScheduleId, from: Timestamp) -> Timestamp {
        let mut at = from;
        while self.fires.contains_key(&(id, at)) {
            at = Fire::by_request_after(at);
        }
        at
    }

    /// The jobs of these schedules that are not over.
    pub fn active_jobs(&self, ids: &[ScheduleId]) -> Vec<(ScheduleId, JobId)> {
        let of_schedule = |job: &Job| Some((job.schedule_id.filter(|id| ids.contains(id))?, job.id));
        self.live.values().filter_map(of_schedule).collect()
    }

    /// What became of a schedule's firings, the latest first.
    pub fn list_fires(&self, query: &FireQuery) -> Page<Fire, Timestamp> {
        let wanted = |fire: &&Fire| {
            is_none_or(&query.outcome, |outcome| *outcome == fire.outcome)
                && is_none_or(&query.before, |before| fire.nominal_at < *before)
        };
        let found = self.fires_of(query.schedule_id).filter(wanted).collect();
        page(found, query.limit, |fire| fire.nominal_at)
    }

    /// Firings that wait for their turn, the oldest first.
    pub fn queued_firings(&self, id: ScheduleId, from: Timestamp, limit: usize) -> Vec<Timestamp> {
        let all = self.fires.range((id, from)..=(id, Timestamp::MAX)).map(|(_, fire)| fire);
        all.filter(|fire| fire.is_queued()).map(|fire| fire.nominal_at).take(limit).collect()
    }

    /// The records of a range, the oldest first, and a run of firings that reaches into it.
    pub fn fires_within(&self, id: ScheduleId, after: Timestamp, until: Timestamp) -> Vec<Fire> {
        let within = |fire: &&Fire| {
            let reaches_in = fire.count > 1 && fire.nominal_at <= after && fire.last_at > after;
            reaches_in || (fire.nominal_at > after && fire.nominal_at <= until)
        };
        let mut found: Vec<Fire> = self.fires_of(id).filter(within).cloned().collect();
        found.reverse();
        found
    }

    /// The latest `count` records of each of these schedules, the latest first.
    pub fn latest_fires(&self, ids: &[ScheduleId], count: usize) -> Vec<Fire> {
        ids.iter().flat_map(|id| self.fires_of(*id).take(count)).cloned().collect()
    }

    /// A schedule's ledger, the latest first.
    pub fn fires_of(&self, id: ScheduleId) -> impl Iterator<Item = &Fire> {
        let first = (id, Timestamp::from_millis(i64::MIN));
        self.fires.range(first..=(id, Timestamp::MAX)).rev().map(|(_, fire)| fire)
    }
}

const fn key(fire: &Fire) -> (ScheduleId, Timestamp) {
    (fire.schedule_id, fire.nominal_at)
}
