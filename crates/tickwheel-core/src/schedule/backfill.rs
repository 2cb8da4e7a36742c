//! Making up for a past range on request: a job for every firing in it that has none.
//!
//! ```text
//!   from ───── cursor ·····span····· ─────────── to        (to ≤ the schedule's own cursor)
//!     dealt with │  looked at now  │  to be looked at
//! ```
//! A schedule has one backfill at a time, and it is part of the schedule's progress: it moves in the same transaction,
//! under the same revision as everything else, so whatever crashes or runs twice, a nominal time has one job.
//!
//! Kept true: it never goes beyond the schedule's cursor, so that the two never meet at a firing; it makes no more jobs
//! a second than it was asked to, and, unless the schedule's jobs may overlap, one after the other; a firing that made
//! its job is left alone. While the schedule is paused nothing is made.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::definition::{Overlap, Schedule, ScheduleSpec};
use super::ledger::{Fire, FireOutcome, FireReason};
use super::open_days::Calendars;
use super::plan::{HELD_RECHECK, PlanContext, PlannedFire, PlannedJob};
use super::timetable::Timetable;
use super::upcoming::Upcoming;
use crate::job::Priority;
use crate::time::Timestamp;
use crate::words::words;

/// So many firings a backfill may have.
pub const FIRINGS_MAX: u64 = 100_000;
/// So many jobs a second are made when nobody says.
pub const DEFAULT_PER_SECOND: u32 = 10;
/// Nobody may ask for more.
pub const PER_SECOND_MAX: u32 = 1_000;
/// So many firings are looked at in one step.
const SPAN_LEN_MAX: usize = 1_000;
/// So much is done to find them.
const SPAN_STEPS_MAX: u64 = 50_000;
/// The jobs of a second are made in so many steps.
const STEPS_A_SECOND: u32 = 4;

words! {
    /// How far a backfill is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum BackfillState {
        /// It goes on.
        Running = "running",
        /// Every firing of the range was dealt with.
        Completed = "completed",
        /// Somebody stopped it.
        Cancelled = "cancelled",
    }
}

/// A backfill and how far it has come. The stores keep it as one document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backfill {
    /// How far it is.
    pub state: BackfillState,
    /// The range: from here,
    pub from: Timestamp,
    /// up to and including here.
    pub to: Timestamp,
    /// So many jobs a second at the most.
    pub per_second: u32,
    /// How urgent its jobs are, if not as the schedule's.
    pub priority: Option<Priority>,
    /// Every firing of the range up to here was dealt with.
    pub cursor: Timestamp,
    /// How many firings the range has.
    pub total: u64,
    /// Jobs it made.
    pub made: u64,
    /// Firings that had their job already.
    pub passed_over: u64,
    /// It waits for a job of the schedule to end.
    pub held: bool,
    /// Before this it does not go on, or it would be faster than it was asked to be.
    pub ready_at: Timestamp,
    /// When it is looked at again, unless a job ends that it waits for.
    pub wake_at: Timestamp,
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// When it was completed or cancelled.
    pub ended_at: Option<Timestamp>,
}

/// A request for a backfill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackfillRequest {
    /// From here
    pub from: Timestamp,
    /// up to and including here.
    pub to: Timestamp,
    /// So many jobs a second at the most.
    pub per_second: u32,
    /// How urgent its jobs are, if not as the schedule's.
    pub priority: Option<Priority>,
}

/// What a range holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survey {
    /// How many firings.
    pub count: u64,
    /// The first one.
    pub first: Timestamp,
    /// The last one.
    pub last: Timestamp,
}

/// Why there is no backfill of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoBackfill {
    /// Nothing to make up for.
    #[error("the schedule has no firing in this range")]
    NoFirings,
    /// Too much to make up for.
    #[error("the range has more than {FIRINGS_MAX} firings, choose a shorter one")]
    TooManyFirings,
}

impl Backfill {
    /// One that begins.
    pub fn begin(request: BackfillRequest, survey: Survey, now: Timestamp) -> Self {
        Self {
            state: BackfillState::Running,
            from: request.from,
            to: request.to,
            per_second: request.per_second.clamp(1, PER_SECOND_MAX),
            priority: request.priority,
            cursor: request.from - Duration::from_millis(1),
            total: survey.count,
            made: 0,
            passed_over: 0,
            held: false,
            ready_at: now,
            wake_at: now,
            requested_at: now,
            ended_at: None,
        }
    }

    /// Whether it goes on.
    pub fn is_running(&self) -> bool {
        self.state == BackfillState::Running
    }

    /// It ends here.
    pub fn cancelled(self, now: Timestamp) -> Self {
        if !self.is_running() {
            return self;
        }
        Self { state: BackfillState::Cancelled, held: false, ended_at: Some(now), ..self }
    }
}

/// What there is to make up for in a range, without looking at what was recorded.
pub fn survey(
    spec: &ScheduleSpec,
    timetable: &Timetable,
    calendars: &Calendars,
    (from, to): (Timestamp, Timestamp),
) -> Result<Survey, NoBackfill> {
    let mut firings = Upcoming::within(spec, timetable, calendars, from - Duration::from_millis(1));
    let mut found: Option<Survey> = None;
    for at in firings.by_ref().take_while(|at| *at <= to) {
        let survey = found.get_or_insert(Survey { count: 0, first: at, last: at });
        (survey.count, survey.last) = (survey.count + 1, at);
        if survey.count > FIRINGS_MAX {
            return Err(NoBackfill::TooManyFirings);
        }
    }
    if firings.ran_out() {
        return Err(NoBackfill::TooManyFirings);
    }
    found.ok_or(NoBackfill::NoFirings)
}

/// The firings a step is going to look at; it wants to know what is recorded from the first moment to the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FiringSpan {
    /// After this,
    pub after: Timestamp,
    /// these, and none between them.
    pub firings: Vec<Timestamp>,
    /// There are no more in the range.
    pub is_last: bool,
}

/// What a schedule's backfill is going to look at now, if it goes on now.
pub fn span(
    schedule: &Schedule,
    timetable: &Timetable,
    calendars: &Calendars,
    now: Timestamp,
) -> Option<FiringSpan> {
    let backfill = schedule.progress.backfill?;
    if !backfill.is_running() || schedule.paused || backfill.ready_at > now {
        return None;
    }
    let mut all =
        Upcoming::within(&schedule.spec, timetable, calendars, backfill.cursor).steps_max(SPAN_STEPS_MAX);
    let in_range = all.by_ref().take_while(|at| *at <= backfill.to);
    let firings: Vec<Timestamp> = in_range.take(SPAN_LEN_MAX).collect();
    // What is not in it because the search was too long is looked for from the last one on.
    let is_last = firings.len() < SPAN_LEN_MAX && (firings.is_empty() || !all.ran_out());
    Some(FiringSpan { after: backfill.cursor, firings, is_last })
}

/// What a step of a backfill comes to.
pub(super) struct Filled {
    pub fires: Vec<PlannedFire>,
    pub backfill: Backfill,
}

/// Goes on with a backfill, if there is one and it is time. `idle`: no job of the schedule is under way or about to be.
pub(super) fn go_on(
    schedule: &Schedule,
    timetable: &Timetable,
    context: PlanContext<'_>,
    idle: bool,
) -> Option<Filled> {
    let before = schedule.progress.backfill?;
    let span = span(schedule, timetable, context.calendars, context.now)?;
    let one_by_one = schedule.spec.overlap != Overlap::Allow;
    let room = match (one_by_one, idle) {
        (false, _) => before.per_second.div_ceil(STEPS_A_SECOND) as usize,
        (true, true) => 1,
        (true, false) => 0,
    };
    let mut fires = Vec::new();
    let mut after = Backfill { held: false, ..before };
    let mut all_dealt_with = true;
    for nominal in &span.firings {
        let recorded = context.ledger.iter().find(|fire| fire.nominal_at == *nominal);
        if recorded.is_some_and(Fire::has_own_job) {
            after.passed_over += 1;
        } else if fires.len() < room && !recorded.is_some_and(Fire::is_queued) {
            fires.push(made_up_for(*nominal, context.now));
        } else {
            all_dealt_with = false;
            break;
        }
        after.cursor = *nominal;
    }
    after.made += fires.len() as u64;
    after.held = one_by_one && !all_dealt_with;
    let spans = context.ledger.iter().filter(|fire| fire.count > 1);
    let dealt_with = span.firings.partition_point(|at| *at <= after.cursor);
    let rest: Vec<PlannedFire> =
        spans.flat_map(|record| carve(record, timetable, &span.firings[..dealt_with])).collect();
    let made = fires.len() as u32;
    fires.extend(rest);
    if all_dealt_with && span.is_last {
        (after.state, after.ended_at) = (BackfillState::Completed, Some(context.now));
    }
    after.ready_at =
        context.now + Duration::from_millis(1_000 * u64::from(made) / u64::from(before.per_second));
    after.wake_at = if after.held { after.ready_at.max(context.now + HELD_RECHECK) } else { after.ready_at };
    Some(Filled { fires, backfill: after })
}

fn made_up_for(nominal_at: Timestamp, now: Timestamp) -> PlannedFire {
    PlannedFire {
        nominal_at,
        last_at: nominal_at,
        count: 1,
        outcome: FireOutcome::Backfilled,
        reason: FireReason::ByRequest,
        job: PlannedJob::New { due_at: now },
    }
}

/// What is left of a span of firings in one record when some of them have got their own: those before, between and
/// behind them. The record itself always gives way, to the first of its parts or to a firing's own.
fn carve(record: &Fire, timetable: &Timetable, own: &[Timestamp]) -> Vec<PlannedFire> {
    let Some(last_own) = own.last().filter(|last| **last >= record.nominal_at) else { return Vec::new() };
    if own.first().is_none_or(|first| *first > record.last_at) {
        return Vec::new();
    }
    let part = |nominal_at, last_at, count| PlannedFire {
        nominal_at,
        last_at,
        count,
        outcome: record.outcome,
        reason: record.reason,
        job: PlannedJob::None,
    };
    let looked_at = timetable.firings(record.nominal_at, record.last_at.min(*last_own));
    let (mut parts, mut is_open, mut seen) = (Vec::<PlannedFire>::new(), false, 0);
    for at in std::iter::once(record.nominal_at).chain(looked_at).take(record.count as usize) {
        seen += 1;
        match parts.last_mut() {
            _ if own.binary_search(&at).is_ok() => is_open = false,
            Some(open) if is_open => (open.last_at, open.count) = (at, open.count + 1),
            _ => {
                parts.push(part(at, at, 1));
                is_open = true;
            }
        }
    }
    if *last_own < record.last_at && seen < record.count {
        let next = timetable.next_after(*last_own).filter(|next| *next <= record.last_at);
        parts.push(part(next.unwrap_or(record.last_at), record.last_at, record.count - seen));
    }
    parts
}
