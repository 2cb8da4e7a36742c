//! Backfills: the request for one into the core's terms, and how far one has come into what a client reads.

use std::collections::HashSet;
use std::time::Duration;

use tickwheel_core::Timestamp;
use tickwheel_core::schedule::backfill::{BackfillRequest, NoBackfill, Survey, survey};
use tickwheel_core::schedule::plan::Calendars;
use tickwheel_core::schedule::{BackfillState, Fire, Schedule, Timetable, Upcoming};
use tickwheel_protocol::backfill::RATE_DEFAULT;
use tickwheel_protocol::problem::FieldCode;
use tickwheel_protocol::{
    Backfill, BackfillPreview, BackfillSchedule, BackfillStatus, BackfillWait, FieldError, Problem,
};

use super::answer::{priority as wire_priority, time};
use super::cron::field;
use super::schedule_answer::timetable;
use super::{priority, timestamp};
use crate::error::ApiResult;

/// What was asked for. Whether the schedule has a firing there is for the core to say.
pub fn backfill_request(request: &BackfillSchedule, now: Timestamp) -> Result<BackfillRequest, Problem> {
    let to = timestamp(request.to);
    if to > now {
        let detail = "must not be in the future: a backfill is for the past";
        return Err(Problem::invalid(vec![field("/to", FieldCode::OutOfRange, detail)]));
    }
    Ok(BackfillRequest {
        from: timestamp(request.from),
        to,
        per_second: request.rate.unwrap_or(RATE_DEFAULT),
        priority: request.priority.map(priority),
    })
}

/// What is wrong with the range.
pub fn bad_range(fault: NoBackfill) -> FieldError {
    let code = match fault {
        NoBackfill::NoFirings => FieldCode::InvalidValue,
        NoBackfill::TooManyFirings => FieldCode::TooMany,
    };
    field("/to", code, fault.to_string())
}

/// The range of a backfill as it would be, and what it holds.
pub struct SurveyedRange {
    schedule: Schedule,
    timetable: Timetable,
    calendars: Calendars,
    from: Timestamp,
    to: Timestamp,
    found: Option<Survey>,
}

impl SurveyedRange {
    /// Beyond the schedule's cursor the firings are its own business. A range without firings is none to refuse here.
    pub fn of(backfill: BackfillRequest, schedule: Schedule, calendars: Calendars) -> ApiResult<Self> {
        let timetable = timetable(&schedule.spec)?;
        let (from, to) = (backfill.from, backfill.to.min(schedule.progress.cursor));
        let found = match survey(&schedule.spec, &timetable, &calendars, (from, to)) {
            Ok(survey) => Some(survey),
            Err(NoBackfill::NoFirings) => None,
            Err(fault) => return Err(Problem::invalid(vec![bad_range(fault)]).into()),
        };
        Ok(Self { schedule, timetable, calendars, from, to, found })
    }

    /// After which moment up to which one the ledger matters.
    pub fn recorded(&self) -> (Timestamp, Timestamp) {
        (self.from - Duration::from_millis(1), self.to)
    }

    /// What a client is told, with what is recorded there.
    pub fn preview(&self, ledger: &[Fire]) -> BackfillPreview {
        let with_job: HashSet<Timestamp> =
            ledger.iter().filter(|fire| fire.has_own_job()).map(|fire| fire.nominal_at).collect();
        let (after, until) = self.recorded();
        let firings = Upcoming::within(&self.schedule.spec, &self.timetable, &self.calendars, after);
        let in_range = firings.take_while(|at| *at <= until);
        BackfillPreview {
            from: time(self.from),
            to: time(self.to.max(self.from)),
            count: self.found.map_or(0, |survey| survey.count),
            first: self.found.map(|survey| time(survey.first)),
            last: self.found.map(|survey| time(survey.last)),
            already_fired: in_range.filter(|at| with_job.contains(at)).count() as u64,
        }
    }
}

/// The backfill that is under way, or else the last one.
pub fn backfill(schedule: &Schedule, timetable: &Timetable, calendars: &Calendars) -> Option<Backfill> {
    let backfill = schedule.progress.backfill?;
    let is_running = backfill.is_running();
    let next_time = || {
        let mut ahead = Upcoming::within(&schedule.spec, timetable, calendars, backfill.cursor);
        ahead.next().filter(|at| *at <= backfill.to)
    };
    Some(Backfill {
        status: status(backfill.state),
        from: time(backfill.from),
        to: time(backfill.to),
        rate: backfill.per_second,
        priority: backfill.priority.map(wire_priority),
        count: backfill.total,
        made: backfill.made,
        already_fired: backfill.passed_over,
        left: match backfill.state {
            // A calendar that changed meanwhile may have made the range richer or poorer than it was counted.
            BackfillState::Completed => 0,
            _ => backfill.total.saturating_sub(backfill.made + backfill.passed_over),
        },
        waiting: match (is_running, schedule.paused, backfill.held) {
            (true, true, _) => Some(BackfillWait::Paused),
            (true, false, true) => Some(BackfillWait::Overlap),
            _ => None,
        },
        next_time: if is_running { next_time().map(time) } else { None },
        requested_at: time(backfill.requested_at),
        ended_at: backfill.ended_at.map(time),
    })
}

const fn status(state: BackfillState) -> BackfillStatus {
    match state {
        BackfillState::Running => BackfillStatus::Running,
        BackfillState::Completed => BackfillStatus::Completed,
        BackfillState::Cancelled => BackfillStatus::Cancelled,
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_core::schedule::backfill::{DEFAULT_PER_SECOND, PER_SECOND_MAX};
    use tickwheel_protocol::backfill::RATE_RANGE;

    use super::*;

    #[test]
    fn the_rates_of_the_wire_are_those_of_the_core() {
        assert_eq!((RATE_DEFAULT, *RATE_RANGE.end()), (DEFAULT_PER_SECOND, PER_SECOND_MAX));
    }

    #[test]
    fn the_words_of_the_wire_are_those_of_the_core() {
        assert_eq!(BackfillStatus::ALL.len(), BackfillState::ALL.len());
        for state in BackfillState::ALL {
            assert_eq!(status(state).as_str(), state.as_str());
        }
    }
}
