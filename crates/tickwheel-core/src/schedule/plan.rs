//! The decision: what becomes of every firing that is due.
//!
//! ```text
//!   due ──▶ paused? ──▶ excluded day? ──▶ missed? ──▶ overlap? ──▶ a job
//!             │             │               │            │
//!          skipped     skipped, moved   missed,      skipped, queued, replaced
//!                                       coalesced
//! ```
//! A queued firing has its record at once, and another one in its place when its turn has come. A pause stops what is
//! yet to come; what was queued before it stays queued.
//!
//! Pure: the schedule, the time and what else matters come in; records, jobs to make and the new progress come out.
//! Whoever carries it out writes all of it in one transaction, or nothing.
//!
//! Kept true: every nominal time between the old cursor and the new one is in exactly one record; the cursor never goes
//! back; the work of one call is bounded, whatever was missed.

use std::collections::VecDeque;
use std::time::Duration;

use super::backfill;
use super::definition::{GRACE_MS, MissedPolicy, Overlap, Schedule, ScheduleProgress, ScheduleSpec};
use super::ledger::{Fire, FireOutcome, FireReason};
use super::open_days::OpenDays;
pub use super::open_days::{Calendars, excludes_every_day};
use super::timetable::Timetable;
use crate::id::{JobId, ScheduleId};
use crate::job::{Job, Priority};
use crate::ports::ScheduleStep;
use crate::time::Timestamp;

/// So many firings have a record of their own in one plan; what is older is written as one span.
const RECORDS_MAX: usize = 1_000;
/// So many firings of a schedule wait for the job of an earlier one at the most.
pub const QUEUE_LEN_MAX: usize = 1_000;
/// So many firings are looked at in one plan, some milliseconds' work; the next one goes on from there.
const FIRINGS_MAX: usize = 20_000;
/// So much is done in one plan to find firings that moved; the next one goes on from there.
const MOVED_STEPS_MAX: u64 = 20_000;
/// Several firings that are due together are all on time within this.
const HICCUP: Duration = Duration::from_secs(2);
const GRACE: Duration = Duration::from_millis(GRACE_MS);
/// How often a firing that waits for another job is looked at, beside being told of its end.
pub(super) const HELD_RECHECK: Duration = Duration::from_secs(5);
/// How often a paused schedule writes down what it skipped.
const PAUSED_RECHECK: Duration = Duration::from_secs(60);

/// What matters beside the schedule itself.
#[derive(Clone, Copy, Debug)]
pub struct PlanContext<'a> {
    /// The time.
    pub now: Timestamp,
    /// The schedule's jobs that are not over.
    pub active: &'a [JobId],
    /// The tenant's calendars. One that does not exist excludes nothing.
    pub calendars: &'a Calendars,
    /// What is recorded where a backfill is to go on: see [`backfill::span`]. Nothing is needed where there is none.
    pub ledger: &'a [Fire],
    /// The nominal times of firings that are recorded as queued, the oldest first. Nothing is needed where none is
    /// held.
    pub queued: &'a [Timestamp],
}

/// Which job belongs to a firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlannedJob {
    /// None.
    None,
    /// A new one, which may start then.
    New {
        /// When.
        due_at: Timestamp,
    },
    /// That of the firing with this place in the plan.
    OfFiring(usize),
}

/// What becomes of a firing, or of a span of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFire {
    /// The (first) nominal time.
    pub nominal_at: Timestamp,
    /// The last one of a span.
    pub last_at: Timestamp,
    /// How many there are.
    pub count: u64,
    /// What becomes of it.
    pub outcome: FireOutcome,
    /// Why.
    pub reason: FireReason,
    /// Its job.
    pub job: PlannedJob,
}

impl PlannedFire {
    /// How urgent its job is: whoever asks for a backfill may want it to stand back.
    fn priority(&self, schedule: &Schedule) -> Priority {
        let backfill = schedule.progress.backfill.filter(|_| self.reason == FireReason::ByRequest);
        backfill.and_then(|backfill| backfill.priority).unwrap_or(schedule.spec.job.priority)
    }
}

/// What to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The records: what is due in the order of its times, then what a backfill made up for.
    pub fires: Vec<PlannedFire>,
    /// Jobs to cancel before.
    pub cancel: Vec<JobId>,
    /// How far the schedule has come then.
    pub progress: ScheduleProgress,
}

impl Plan {
    /// What the store is to write, with ids for the new jobs.
    pub fn into_step(
        self,
        schedule: &Schedule,
        now: Timestamp,
        mut new_id: impl FnMut() -> JobId,
    ) -> ScheduleStep {
        let ids: Vec<Option<JobId>> = self
            .fires
            .iter()
            .map(|fire| matches!(fire.job, PlannedJob::New { .. }).then(&mut new_id))
            .collect();
        let mut jobs = Vec::new();
        let mut fires = Vec::with_capacity(self.fires.len());
        for (place, planned) in self.fires.iter().enumerate() {
            let job_id = match planned.job {
                PlannedJob::None => None,
                PlannedJob::OfFiring(other) => ids[other],
                PlannedJob::New { due_at } => {
                    jobs.extend(ids[place].map(|id| Job {
                        priority: planned.priority(schedule),
                        ..schedule.job(id, planned.nominal_at, due_at, now)
                    }));
                    ids[place]
                }
            };
            fires.push(Fire {
                schedule_id: schedule.id,
                nominal_at: planned.nominal_at,
                last_at: planned.last_at,
                count: planned.count,
                outcome: planned.outcome,
                reason: planned.reason,
                job_id,
                recorded_at: now,
            });
        }
        ScheduleStep { id: schedule.id, revision: schedule.revision, progress: self.progress, fires, jobs }
    }

    /// How many jobs it makes for firings that were missed.
    pub fn late_jobs(&self) -> u32 {
        let late = |fire: &&PlannedFire| {
            fire.reason == FireReason::CaughtUp && matches!(fire.job, PlannedJob::New { .. })
        };
        u32::try_from(self.fires.iter().filter(late).count()).unwrap_or(u32::MAX)
    }
}

/// The progress of a schedule that begins, or begins anew, at `from`: what was due before is none of its business.
pub fn begin(
    id: ScheduleId,
    spec: &ScheduleSpec,
    timetable: &Timetable,
    from: Timestamp,
) -> ScheduleProgress {
    let next_at = timetable.next_after(from);
    let wake_at = next_at.map(|at| at + spread(id, spec, timetable, at));
    ScheduleProgress { cursor: from, next_at, rolled_at: None, held_at: None, wake_at, backfill: None }
}

/// How long after its nominal time a firing happens: always the same part of the jitter for one schedule, and always
/// before the next firing.
pub fn spread(id: ScheduleId, spec: &ScheduleSpec, timetable: &Timetable, nominal: Timestamp) -> Duration {
    if spec.jitter_ms == 0 {
        return Duration::ZERO;
    }
    let to_next = timetable.next_after(nominal).map_or(u64::MAX, |next| millis(next.since(nominal)));
    let room = spec.jitter_ms.min(to_next - 1);
    Duration::from_millis((id.as_uuid().as_u128() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % (room + 1))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Decides on everything that is due.
pub fn plan(schedule: &Schedule, timetable: &Timetable, context: PlanContext<'_>) -> Plan {
    let mut planner = PlanBuilder {
        schedule,
        timetable,
        days: OpenDays::new(&schedule.spec, timetable, context.calendars),
        context,
        fires: Vec::new(),
        rolled_at: schedule.progress.rolled_at,
    };
    let due = planner.gather();
    let starters = planner.judge(&due);
    planner.conclude(&due, starters)
}

/// What is due, oldest first.
struct Due {
    /// More than can be recorded one by one.
    span: Option<(Timestamp, Timestamp, u64)>,
    /// The latest ones.
    recent: VecDeque<Timestamp>,
    /// The last one that was looked at.
    last: Option<Timestamp>,
}

/// A firing that is to make a job unless another one is in its way.
#[derive(Clone, Copy)]
struct Starter {
    nominal_at: Timestamp,
    outcome: FireOutcome,
    reason: FireReason,
}

struct PlanBuilder<'a> {
    schedule: &'a Schedule,
    timetable: &'a Timetable,
    days: OpenDays<'a>,
    context: PlanContext<'a>,
    fires: Vec<PlannedFire>,
    rolled_at: Option<Timestamp>,
}

impl PlanBuilder<'_> {
    fn gather(&mut self) -> Due {
        let mut due = Due { span: None, recent: VecDeque::new(), last: None };
        let cursor = self.schedule.progress.cursor;
        let firings = self.timetable.firings(cursor, self.context.now);
        let mut firings = firings.take_while(|nominal| self.starts_at(*nominal) <= self.context.now);
        firings.by_ref().take(FIRINGS_MAX).for_each(|nominal| due.push(nominal));
        let behind: Vec<Timestamp> = firings.take(RECORDS_MAX).collect();
        if behind.len() == RECORDS_MAX {
            // There are enough behind those looked at to be judged one by one, by the next plan.
            due.all_in_one_run();
            return due;
        }
        behind.into_iter().for_each(|nominal| due.push(nominal));
        // Those that moved here from an excluded day have their place among them.
        let steps_max = self.days.steps() + MOVED_STEPS_MAX;
        while let Some(rolled) = self.rolled_at.filter(|at| *at <= self.context.now) {
            if due.recent.len() >= 2 * RECORDS_MAX || self.days.steps() >= steps_max {
                break;
            }
            let place = due.recent.partition_point(|nominal| *nominal < rolled);
            if due.recent.get(place) != Some(&rolled) {
                due.recent.insert(place, rolled);
            }
            self.rolled_at = self.days.next_moved(rolled);
        }
        due
    }

    fn judge(&mut self, due: &Due) -> Vec<Starter> {
        use {FireOutcome as Outcome, FireReason as Reason};
        if self.schedule.paused {
            self.record_span(due.span, Outcome::Skipped, Reason::Paused);
            due.recent.iter().for_each(|at| self.record(*at, Outcome::Skipped, Reason::Paused));
            return Vec::new();
        }
        self.record_span(due.span, Outcome::Missed, Reason::OverCap);
        let mut open = Vec::new();
        for nominal in &due.recent {
            if self.days.is_excluded_at(*nominal) {
                self.record(*nominal, Outcome::Skipped, Reason::ExcludedDay);
                self.roll(*nominal);
            } else if self.is_outside_window(*nominal) {
                self.record(*nominal, Outcome::Missed, Reason::OutsideWindow);
            } else {
                open.push(*nominal);
            }
        }
        self.judge_missed(&open)
    }

    fn judge_missed(&mut self, open: &[Timestamp]) -> Vec<Starter> {
        use {FireOutcome as Outcome, FireReason as Reason};
        let (on_time, late): (Vec<_>, Vec<_>) = open.iter().partition(|at| self.is_on_time(**at, open));
        let mut starters: Vec<Starter> = Vec::new();
        let rule = self.schedule.spec.missed;
        match rule.policy {
            MissedPolicy::Skip => {
                late.iter().for_each(|at| self.record(*at, Outcome::Missed, Reason::MissedPolicy))
            }
            MissedPolicy::FireOnce => {
                let stands_for_all =
                    if on_time.is_empty() { late.len().saturating_sub(1) } else { late.len() };
                late[..stands_for_all]
                    .iter()
                    .for_each(|at| self.record(*at, Outcome::Coalesced, Reason::CaughtUp));
                starters.extend(late[stands_for_all..].iter().map(|at| Starter {
                    nominal_at: *at,
                    outcome: Outcome::Fired,
                    reason: Reason::CaughtUp,
                }));
            }
            MissedPolicy::Backfill => {
                let over = late.len().saturating_sub(rule.max_backfill as usize);
                late[..over].iter().for_each(|at| self.record(*at, Outcome::Missed, Reason::OverCap));
                starters.extend(late[over..].iter().map(|at| Starter {
                    nominal_at: *at,
                    outcome: Outcome::Backfilled,
                    reason: Reason::CaughtUp,
                }));
            }
        }
        starters.extend(on_time.iter().map(|at| Starter {
            nominal_at: *at,
            outcome: Outcome::Fired,
            reason: Reason::OnTime,
        }));
        starters.sort_by_key(|starter| starter.nominal_at);
        starters
    }

    /// Applies the rule for jobs that overlap, and says where the schedule is then.
    fn conclude(mut self, due: &Due, starters: Vec<Starter>) -> Plan {
        use {FireOutcome as Outcome, FireReason as Reason};
        let mut queue = self.go_on_with_queue();
        // What was there before goes before.
        let busy = !self.context.active.is_empty() || !self.context.queued.is_empty();
        let mut cancel = Vec::new();
        match self.schedule.spec.overlap {
            Overlap::Allow => starters.iter().for_each(|starter| self.start(*starter)),
            Overlap::Skip => {
                for (place, starter) in starters.iter().enumerate() {
                    if busy || place > 0 {
                        self.record(starter.nominal_at, Outcome::Skipped, Reason::Overlap);
                    } else {
                        self.start(*starter);
                    }
                }
            }
            Overlap::Queue => {
                let now = usize::from(!busy);
                starters.iter().take(now).for_each(|starter| self.start(*starter));
                self.enqueue(&mut queue, starters.iter().skip(now));
            }
            Overlap::Replace => {
                if let [earlier @ .., last] = starters.as_slice() {
                    earlier
                        .iter()
                        .for_each(|s| self.record(s.nominal_at, Outcome::Skipped, Reason::Replaced));
                    self.start(*last);
                    cancel = self.context.active.to_vec();
                }
            }
        }
        self.fires.sort_by_key(|fire| fire.nominal_at);
        self.point_coalesced_at_their_job();
        let mut progress = self.progress(due, queue.front().copied());
        let idle = !busy && queue.is_empty() && starters.is_empty();
        if let Some(filled) = backfill::go_on(self.schedule, self.timetable, self.context, idle) {
            self.fires.extend(filled.fires);
            progress.backfill = Some(filled.backfill);
        }
        progress.wake_at =
            progress.wake_at.into_iter().chain(progress.backfill_wakes_at(self.schedule.paused)).min();
        Plan { fires: self.fires, cancel, progress }
    }

    /// Starts the first of those that are queued, if it is its turn; the others.
    fn go_on_with_queue(&mut self) -> VecDeque<Timestamp> {
        use {FireOutcome as Outcome, FireReason as Reason};
        if self.schedule.paused {
            return self.context.queued.iter().copied().collect();
        }
        let queued = self.context.queued.iter().copied();
        let (mut queue, too_late): (VecDeque<Timestamp>, VecDeque<Timestamp>) =
            queued.partition(|at| !self.is_outside_window(*at));
        too_late.into_iter().for_each(|at| self.record(at, Outcome::Missed, Reason::OutsideWindow));
        if self.context.active.is_empty()
            && let Some(nominal_at) = queue.pop_front()
        {
            self.start(Starter { nominal_at, outcome: Outcome::Fired, reason: Reason::Overlap });
        }
        queue
    }

    /// These wait for their turn; if that is too many, the oldest do not.
    fn enqueue<'s>(&mut self, queue: &mut VecDeque<Timestamp>, more: impl Iterator<Item = &'s Starter>) {
        use {FireOutcome as Outcome, FireReason as Reason};
        let known = queue.len();
        queue.extend(more.map(|starter| starter.nominal_at));
        let over = queue.len().saturating_sub(QUEUE_LEN_MAX);
        queue.drain(..over).for_each(|at| self.record(at, Outcome::Missed, Reason::OverCap));
        for nominal_at in queue.iter().skip(known.saturating_sub(over)) {
            self.record(*nominal_at, Outcome::Skipped, Reason::Queued);
        }
    }

    fn progress(&self, due: &Due, held_at: Option<Timestamp>) -> ScheduleProgress {
        let before = self.schedule.progress;
        let now = self.context.now;
        let cursor = due.last.unwrap_or(before.cursor);
        let next_at = self.timetable.next_after(cursor);
        let regular =
            next_at.map(|at| at + spread(self.schedule.id, &self.schedule.spec, self.timetable, at));
        let soonest = regular.into_iter().chain(self.rolled_at).min();
        // Where jobs may overlap nobody is waited for, and nobody tells.
        let patience =
            if self.schedule.spec.overlap == Overlap::Allow { Duration::ZERO } else { HELD_RECHECK };
        let wake_at = match (held_at, self.schedule.paused) {
            (_, true) => soonest.map(|at| at.max(now + PAUSED_RECHECK)),
            (Some(_), false) => soonest.into_iter().chain(Some(now + patience)).min(),
            (None, false) => soonest,
        };
        ScheduleProgress {
            cursor,
            next_at,
            rolled_at: self.rolled_at,
            held_at,
            wake_at,
            backfill: before.backfill,
        }
    }

    fn start(&mut self, starter: Starter) {
        let due_at = self.starts_at(starter.nominal_at);
        self.fires.push(PlannedFire {
            nominal_at: starter.nominal_at,
            last_at: starter.nominal_at,
            count: 1,
            outcome: starter.outcome,
            reason: starter.reason,
            job: PlannedJob::New { due_at },
        });
    }

    fn record(&mut self, nominal_at: Timestamp, outcome: FireOutcome, reason: FireReason) {
        self.record_span(Some((nominal_at, nominal_at, 1)), outcome, reason);
    }

    fn record_span(
        &mut self,
        span: Option<(Timestamp, Timestamp, u64)>,
        outcome: FireOutcome,
        reason: FireReason,
    ) {
        let Some((nominal_at, last_at, count)) = span else { return };
        self.fires.push(PlannedFire { nominal_at, last_at, count, outcome, reason, job: PlannedJob::None });
    }

    /// A missed firing that another one stands for belongs to the first job made after it.
    fn point_coalesced_at_their_job(&mut self) {
        let mut job = PlannedJob::None;
        for place in (0..self.fires.len()).rev() {
            let fire = &mut self.fires[place];
            match (fire.outcome, fire.job) {
                (_, PlannedJob::New { .. }) => job = PlannedJob::OfFiring(place),
                (FireOutcome::Coalesced, _) => fire.job = job,
                _ => {}
            }
        }
    }

    fn starts_at(&self, nominal: Timestamp) -> Timestamp {
        nominal + spread(self.schedule.id, &self.schedule.spec, self.timetable, nominal)
    }

    fn lateness(&self, nominal: Timestamp) -> Duration {
        self.context.now.since(self.starts_at(nominal))
    }

    /// Too long ago to be made up for.
    fn is_outside_window(&self, nominal: Timestamp) -> bool {
        let window = Duration::from_millis(self.schedule.spec.missed.window_ms);
        self.lateness(nominal) > window.max(GRACE)
    }

    /// The latest one due may be late by the grace; the others only if all of them are late by no more than a hiccup.
    fn is_on_time(&self, nominal: Timestamp, open: &[Timestamp]) -> bool {
        // Versions that did not record what was queued left the cursor before it.
        let ScheduleProgress { held_at, cursor, .. } = self.schedule.progress;
        let was_held = held_at.is_some_and(|held| nominal >= held && held > cursor);
        let hiccup = open.first().is_some_and(|first| self.lateness(*first) <= HICCUP);
        was_held || hiccup || (open.last() == Some(&nominal) && self.lateness(nominal) <= GRACE)
    }

    /// Moves a firing on an excluded day.
    fn roll(&mut self, nominal: Timestamp) {
        if let Some(at) = self.days.moved(nominal) {
            self.rolled_at = Some(self.rolled_at.map_or(at, |other| other.min(at)));
        }
    }
}

impl Due {
    fn all_in_one_run(&mut self) {
        let first = self.span.map(|(first, ..)| first).or(self.recent.front().copied());
        let count = self.span.map_or(0, |(.., count)| count) + self.recent.len() as u64;
        self.span = first.zip(self.last).map(|(first, last)| (first, last, count));
        self.recent.clear();
    }

    fn push(&mut self, nominal: Timestamp) {
        self.last = Some(nominal);
        self.recent.push_back(nominal);
        if self.recent.len() > RECORDS_MAX {
            let Some(oldest) = self.recent.pop_front() else { return };
            let (first, count) = self.span.map_or((oldest, 0), |(first, _, count)| (first, count));
            self.span = Some((first, oldest, count + 1));
        }
    }
}
