//! What becomes of a schedule that is changed.

use std::sync::Arc;

use super::fixtures::{MINUTE, MONDAY, spec, with};
use crate::schedule::backfill::BackfillRequest;
use crate::schedule::edit::{EditRefused, ScheduleEdit, edited};
use crate::schedule::plan::Calendars;
use crate::schedule::{BackfillState, Schedule};

fn after(schedule: Schedule, edit: &ScheduleEdit) -> Result<Schedule, EditRefused> {
    edited(schedule, edit, &Calendars::new(), MONDAY + 5 * MINUTE).unwrap()
}

fn new_spec(schedule: &Schedule, cron: &str) -> ScheduleEdit {
    ScheduleEdit::Spec { spec: Arc::new(spec(cron)), instead_of: schedule.spec.clone() }
}

#[test]
fn a_new_spec_takes_effect_for_the_next_firing() {
    let schedule = with("0 * * * *", |_| ());
    let changed = after(schedule.clone(), &new_spec(&schedule, "*/10 * * * *")).unwrap();
    assert_eq!(changed.progress.next_at, Some(MONDAY + 10 * MINUTE));
    assert_eq!(changed.progress.cursor, MONDAY + 5 * MINUTE);
}

#[test]
fn a_spec_that_was_made_of_another_one_is_refused() {
    let schedule = with("0 * * * *", |_| ());
    let slow = new_spec(&schedule, "*/10 * * * *");
    let changed = after(schedule.clone(), &new_spec(&schedule, "*/20 * * * *")).unwrap();
    assert_eq!(after(changed, &slow), Err(EditRefused::SpecChanged));
}

#[test]
fn a_schedule_has_one_backfill_at_a_time_and_what_is_left_follows_a_new_spec() {
    let schedule = with("0 * * * *", |_| ());
    let backfill = ScheduleEdit::Backfill(BackfillRequest {
        from: MONDAY - 1440 * MINUTE,
        to: MONDAY,
        per_second: 1,
        priority: None,
    });
    assert_eq!(after(schedule.clone(), &ScheduleEdit::CancelBackfill), Err(EditRefused::NeverBackfilled));
    let running = after(schedule, &backfill).unwrap();
    assert_eq!(running.progress.wake_at, Some(MONDAY + 5 * MINUTE), "it begins at once");
    assert_eq!(after(running.clone(), &backfill), Err(EditRefused::BackfillRunning));
    let total = |schedule: &Schedule| schedule.progress.backfill.unwrap().total;
    let twice_as_often = after(running.clone(), &new_spec(&running, "*/30 * * * *")).unwrap();
    assert_eq!((total(&running), total(&twice_as_often)), (25, 49));
    let too_often = after(running.clone(), &new_spec(&running, "* * * * * *")).unwrap();
    assert_eq!(total(&too_often), 86_401);
    let cancelled = after(running, &ScheduleEdit::CancelBackfill).unwrap();
    assert_eq!(cancelled.progress.backfill.unwrap().state, BackfillState::Cancelled);
    assert!(after(cancelled, &backfill).is_ok(), "and then another");
}
