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

fn put(cron: &str, paused: Option<bool>) -> ScheduleEdit {
    ScheduleEdit::Put { spec: Arc::new(spec(cron)), paused }
}

/// As the schedule is, what is put, and whether that is in force already.
#[test]
fn what_is_put_is_in_force_if_the_spec_and_the_pause_are_the_same_or_the_pause_is_left_out() {
    let schedule = |paused| Schedule { paused, ..with("0 * * * *", |_| ()) };
    for (was_paused, cron, paused, in_force) in [
        (false, "0 * * * *", None, true),
        (true, "0 * * * *", None, true),
        (false, "0 * * * *", Some(false), true),
        (true, "0 * * * *", Some(true), true),
        (false, "0 * * * *", Some(true), false),
        (true, "0 * * * *", Some(false), false),
        (false, "1 * * * *", None, false),
        (true, "1 * * * *", Some(true), false),
    ] {
        let case = (was_paused, cron, paused);
        assert_eq!(put(cron, paused).is_in_force(&schedule(was_paused)), in_force, "{case:?}");
        let put = after(schedule(was_paused), &put(cron, paused)).unwrap();
        assert_eq!(put.paused, paused.unwrap_or(was_paused), "{case:?}");
        assert_eq!(*put.spec, spec(cron), "{case:?}");
    }
    assert!(!ScheduleEdit::Resume.is_in_force(&schedule(false)), "every other request is a write");
}

#[test]
fn a_spec_that_is_put_replaces_whatever_is_there_and_counts_from_now() {
    let pause_note = Some("moving".into());
    let schedule = Schedule { paused: true, pause_note, ..with("0 * * * *", |_| ()) };
    let changed = after(schedule.clone(), &put("*/10 * * * *", None)).unwrap();
    assert_eq!(changed, after(schedule.clone(), &new_spec(&schedule, "*/10 * * * *")).unwrap());
    let resumed = after(schedule, &put("*/10 * * * *", Some(false))).unwrap();
    assert_eq!((resumed.paused, resumed.pause_note), (false, None));
    assert_eq!(resumed.progress.next_at, Some(MONDAY + 10 * MINUTE));
}

#[test]
fn a_pause_that_is_put_leaves_the_next_firing_where_it_was() {
    let schedule = with("0 * * * *", |_| ());
    let paused = after(schedule.clone(), &put("0 * * * *", Some(true))).unwrap();
    assert_eq!((paused.paused, paused.progress), (true, schedule.progress));
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
