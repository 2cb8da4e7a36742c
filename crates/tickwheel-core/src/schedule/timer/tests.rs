//! What the schedule timer holds, loads and hands out, stepped by hand.

use uuid::Uuid;

use super::*;
use crate::id::Partition;

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn due(number: u128, wake_at: Timestamp, priority: Priority) -> DueSchedule {
    DueSchedule {
        id: ScheduleId::from_uuid(Uuid::from_u128(number)),
        partition: Partition(0),
        wake_at,
        priority,
    }
}

fn timer(options: ScheduleTimerOptions) -> ScheduleTimer {
    ScheduleTimer::new(options, PartitionSet::ALL, NOW)
}

fn numbers(taken: &[ScheduleId]) -> Vec<u128> {
    taken.iter().map(|id| id.as_uuid().as_u128()).collect()
}

#[test]
fn a_schedule_is_taken_at_its_time_and_not_before() {
    let mut timer = timer(ScheduleTimerOptions::default());
    timer.learn(due(1, NOW + seconds(5), Priority::Normal), NOW);
    assert!(timer.take(NOW + Duration::from_millis(4_999)).is_empty());
    assert_eq!(numbers(&timer.take(NOW + seconds(5))), [1]);
    assert!(timer.take(NOW + seconds(6)).is_empty(), "somebody is at it");
}

#[test]
fn what_was_missed_goes_through_the_gate_the_most_urgent_first() {
    let mut timer = timer(ScheduleTimerOptions { catch_up_per_second: 2, ..ScheduleTimerOptions::default() });
    let hours_ago = NOW - seconds(14_400);
    for number in 0..500 {
        let priority = if number >= 498 { Priority::Critical } else { Priority::Normal };
        timer.learn(due(number, hours_ago + seconds(number as u64), priority), NOW);
    }
    timer.learn(due(1_000, NOW, Priority::Low), NOW);
    assert_eq!(numbers(&timer.take(NOW)), [1_000, 498], "what is on time does not wait");
    assert_eq!(timer.next_wake(), NOW, "the sweep");
    while let Some(load) = timer.wants(NOW) {
        timer.loaded(&load, Vec::new(), NOW);
    }
    assert_eq!(timer.next_wake(), NOW + Duration::from_millis(500));
    assert!(timer.take(NOW + Duration::from_millis(499)).is_empty());
    assert_eq!(numbers(&timer.take(NOW + Duration::from_millis(500))), [499]);
    assert_eq!(numbers(&timer.take(NOW + Duration::from_millis(1_000))), [0]);
    assert_eq!(timer.catching_up(), 497);
}

#[test]
fn what_came_due_while_nobody_looked_goes_through_the_gate_wherever_it_was() {
    let options = ScheduleTimerOptions { catch_up_per_second: 1, ..ScheduleTimerOptions::default() };
    let mut timer = timer(options);
    // One waits for its turn when the outage begins, one is on the wheel, one is in the store alone.
    timer.learn(due(1, NOW, Priority::Normal), NOW);
    timer.learn(due(2, NOW + seconds(5), Priority::Normal), NOW);
    let later = NOW + seconds(20);
    timer.watch(later);
    timer.learn(due(3, NOW + seconds(9), Priority::Normal), later);
    timer.learn(due(4, NOW + seconds(19), Priority::Low), later);
    let taken = timer.take(later);
    assert_eq!(numbers(&taken), [4, 1], "what is nearly on time, and one of the missed");
    // The ledger calls both on time: a short outage is none for it.
    taken.into_iter().for_each(|id| timer.done(id, None, JobsMade { all: 1, late: 0 }, later));
    assert!(timer.take(later).is_empty());
    assert_eq!(numbers(&timer.take(later + seconds(1))), [2]);
    assert_eq!(numbers(&timer.take(later + seconds(2))), [3]);
}

#[test]
fn a_busy_minute_is_worked_off_without_the_gate_however_long_it_takes() {
    let mut timer = timer(ScheduleTimerOptions { take_len_max: 10, ..ScheduleTimerOptions::default() });
    let mut taken = 0;
    for second in 0..=100 {
        let now = NOW + seconds(second);
        timer.watch(now);
        // They come from the store page by page, all of the same moment.
        for number in 0..10 {
            timer.learn(due(u128::from(second * 10 + number), NOW, Priority::Normal), now);
        }
        taken += timer.take(now).len();
        // The store takes its time.
        timer.kept_watch(now + Duration::from_millis(4_900));
    }
    assert_eq!(taken, 1_010);
    assert_eq!(timer.catching_up(), 0);
}

#[test]
fn a_missed_one_that_makes_no_job_costs_the_others_nothing() {
    let mut timer = timer(ScheduleTimerOptions { catch_up_per_second: 1, ..ScheduleTimerOptions::default() });
    for number in 0..3 {
        timer.learn(due(number, NOW - seconds(3_600), Priority::Normal), NOW);
    }
    for number in 0..3 {
        let taken = timer.take(NOW);
        assert_eq!(numbers(&taken), [number]);
        timer.done(taken[0], None, JobsMade::default(), NOW);
    }
}

#[test]
fn a_step_that_makes_many_jobs_up_makes_the_others_wait_for_them() {
    let mut timer =
        timer(ScheduleTimerOptions { catch_up_per_second: 10, ..ScheduleTimerOptions::default() });
    for number in 0..2 {
        timer.learn(due(number, NOW - seconds(3_600), Priority::Normal), NOW);
    }
    let first = timer.take(NOW);
    assert_eq!(numbers(&first), [0]);
    timer.done(first[0], None, JobsMade { all: 100, late: 100 }, NOW);
    assert!(timer.take(NOW + Duration::from_millis(9_999)).is_empty());
    assert_eq!(numbers(&timer.take(NOW + seconds(10))), [1]);
}

#[test]
fn what_is_heard_while_somebody_is_at_it_wins_over_what_they_say() {
    let mut timer = timer(ScheduleTimerOptions::default());
    timer.learn(due(1, NOW, Priority::Normal), NOW);
    let taken = timer.take(NOW);
    timer.learn(due(1, NOW + seconds(2), Priority::Normal), NOW);
    timer.done(taken[0], Some(due(1, NOW + seconds(9), Priority::Normal)), JobsMade::default(), NOW);
    assert_eq!(numbers(&timer.take(NOW + seconds(2))), [1]);
}

#[test]
fn a_clock_that_is_set_back_is_followed() {
    let mut timer = timer(ScheduleTimerOptions::default());
    let hour_ahead = NOW + seconds(3_600);
    timer.learn(due(1, hour_ahead, Priority::Normal), hour_ahead);
    assert!(timer.wants(hour_ahead).is_some());
    timer.learn(due(3, NOW + seconds(5), Priority::Normal), NOW);
    assert!(timer.take(NOW + seconds(4)).is_empty(), "the first is not due any more");
    assert!(timer.wants(NOW + seconds(4)).is_some_and(|load| load.after == WakeCursor::START));
    assert_eq!(timer.next_wake(), NOW + seconds(4), "the sweep");
    assert_eq!(numbers(&timer.take(NOW + seconds(5))), [3]);
}

#[test]
fn a_forgotten_schedule_is_not_taken_wherever_it_was() {
    let mut timer = timer(ScheduleTimerOptions::default());
    for (number, wake_at) in [(1, NOW + seconds(1)), (2, NOW), (3, NOW - seconds(3_600))] {
        timer.learn(due(number, wake_at, Priority::Normal), NOW);
        timer.forget(ScheduleId::from_uuid(Uuid::from_u128(number)));
    }
    assert!(timer.is_empty() && timer.take(NOW + seconds(5)).is_empty());
}

#[test]
fn the_far_future_stays_in_the_store_and_more_is_loaded_when_there_is_room() {
    let mut timer = timer(ScheduleTimerOptions { load_len_max: 4, ..ScheduleTimerOptions::default() });
    timer.learn(due(9, NOW + seconds(60), Priority::Normal), NOW);
    assert!(timer.is_empty());
    let load = timer.wants(NOW).unwrap();
    assert_eq!((load.limit, load.until), (4, NOW + seconds(10)));
    timer.loaded(&load, (0..4).map(|number| due(number, NOW, Priority::Normal)).collect(), NOW);
    let sweep = timer.wants(NOW).unwrap();
    assert_eq!((sweep.after, sweep.until), (WakeCursor::START, NOW), "memory is full, so only a sweep");
    timer.loaded(&sweep, Vec::new(), NOW);
    assert!(timer.wants(NOW).is_none());
    for id in timer.take(NOW) {
        timer.done(id, None, JobsMade::default(), NOW);
    }
    let more = timer.wants(NOW).expect("there was more");
    assert_eq!(more.after, due(3, NOW, Priority::Normal).cursor(), "it goes on where it was");
    timer.loaded(&more, Vec::new(), NOW);
    assert!(timer.wants(NOW).is_none());
    assert!(timer.wants(NOW + seconds(6)).is_some_and(|load| load.until == NOW + seconds(16)));
}

#[test]
fn what_waits_for_the_gate_does_not_keep_the_others_from_being_known() {
    let mut timer = timer(ScheduleTimerOptions { load_len_max: 4, ..ScheduleTimerOptions::default() });
    let load = timer.wants(NOW).unwrap();
    let missed = (0..4).map(|number| due(number, NOW - seconds(3_600), Priority::Normal)).collect();
    timer.loaded(&load, missed, NOW);
    let more = timer.wants(NOW).unwrap();
    timer.loaded(&more, vec![due(7, NOW + seconds(1), Priority::Normal)], NOW);
    timer.take(NOW);
    assert!(numbers(&timer.take(NOW + seconds(1))).contains(&7));
}

#[test]
fn one_that_nobody_told_of_is_found_when_it_is_overdue() {
    let mut timer = timer(ScheduleTimerOptions::default());
    for _ in 0..2 {
        let load = timer.wants(NOW).unwrap();
        timer.loaded(&load, Vec::new(), NOW);
    }
    let later = NOW + seconds(2);
    let sweep = timer.wants(later).unwrap();
    assert_eq!((sweep.after, sweep.until), (WakeCursor::START, later));
    timer.loaded(&sweep, vec![due(1, NOW + seconds(1), Priority::Normal)], later);
    assert_eq!(numbers(&timer.take(later)), [1]);
}
