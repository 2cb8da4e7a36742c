//! Changes: the spec, pause and resume; in force once answered, and never on top of something else.

use std::sync::Arc;

use tickwheel_core::ports::{Advanced, Store};
use tickwheel_core::schedule::{FireReason, Overlap, Rule, Schedule, ScheduleProgress};
use tickwheel_core::{Partition, Priority};
use tokio::task::JoinSet;

use super::super::store::bench::answered;
use super::bench::{ScheduleBench, fired, fires_at, minute, skipped};
use crate::fixtures::{at, backfill, schedule};

/// The schedule with everything changed that a change may touch.
fn changed(schedule: &Schedule) -> Schedule {
    let mut changed = schedule.clone();
    let spec = Arc::make_mut(&mut changed.spec);
    spec.rule = Rule::Every { every_ms: 1_000, anchor: at(3) };
    spec.timezone = "Asia/Tokyo".into();
    spec.overlap = Overlap::Queue;
    spec.job.priority = Priority::Critical;
    changed.paused = true;
    changed.pause_note = Some("it's late".into());
    changed.updated_at = minute(7);
    changed.progress = ScheduleProgress {
        cursor: minute(8),
        next_at: Some(minute(12)),
        rolled_at: Some(minute(11)),
        held_at: Some(minute(9)),
        wake_at: Some(minute(10)),
        backfill: Some(backfill()),
    };
    changed
}

pub async fn a_change_writes_the_spec_the_pause_and_the_progress(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let before = bench.minutely().await;
    let wanted = changed(&before);
    assert_eq!(bench.change(wanted.clone(), Vec::new()).await, Advanced::Done);
    let after = bench.schedule(before.id).await;
    assert_eq!(after, Schedule { revision: before.revision + 1, ..wanted });
    let resumed = Schedule { paused: false, pause_note: None, ..after.clone() };
    assert_eq!(bench.change(resumed.clone(), Vec::new()).await, Advanced::Done);
    assert_eq!(bench.schedule(before.id).await, Schedule { revision: after.revision + 1, ..resumed });
}

pub async fn a_change_records_what_became_of_firings_meanwhile(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    let mut fires = [2, 1].map(|count| skipped(&schedule, minute(count)));
    fires.iter_mut().for_each(|fire| fire.reason = FireReason::Paused);
    assert_eq!(bench.change(schedule.clone(), fires.to_vec()).await, Advanced::Done);
    assert_eq!(bench.ledger(schedule.id).await, fires);
}

pub async fn a_change_keeps_the_record_of_a_firing_that_made_a_job(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    let job = bench.fire(schedule.id, minute(1)).await;
    let now = bench.schedule(schedule.id).await;
    let fires = vec![skipped(&schedule, minute(1)), skipped(&schedule, minute(2))];
    assert_eq!(bench.change(now, fires).await, Advanced::Done);
    let expected = [skipped(&schedule, minute(2)), fired(&schedule, &job)];
    assert_eq!(bench.ledger(schedule.id).await, expected);
}

pub async fn a_change_does_not_rename(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let before = bench.create(schedule("@daily").name("old").partition(Partition(5))).await;
    let wanted = Schedule { name: "new".into(), ..before.clone() };
    assert_eq!(bench.change(wanted, Vec::new()).await, Advanced::Done);
    assert_eq!(bench.schedule(before.id).await, Schedule { revision: before.revision + 1, ..before });
}

pub async fn a_change_of_another_revision_changes_nothing(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let first = bench.minutely().await;
    bench.fire(first.id, minute(1)).await;
    let before = bench.picture(first.id).await;
    for revision in [0, first.revision, first.revision + 2, u64::from(u32::MAX)] {
        let wanted = Schedule { revision, ..changed(&first) };
        let fires = vec![skipped(&first, minute(2))];
        assert_eq!(bench.change(wanted, fires).await, Advanced::Stale, "revision {revision}");
        assert_eq!(bench.picture(first.id).await, before);
    }
}

pub async fn a_change_of_an_unknown_schedule_is_stale(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let unknown = schedule("@daily").build();
    let fires = vec![skipped(&unknown, minute(1))];
    assert_eq!(bench.change(unknown.clone(), fires).await, Advanced::Stale);
    assert_eq!(bench.find(unknown.id).await, None);
    assert_eq!(bench.ledger(unknown.id).await, []);
}

pub async fn a_decision_made_before_a_change_is_stale(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    let decided = fires_at(&schedule, minute(1));
    assert_eq!(bench.change(changed(&schedule), Vec::new()).await, Advanced::Done);
    let before = bench.picture(schedule.id).await;
    assert_eq!(bench.advance(decided).await, Advanced::Stale);
    assert_eq!(bench.picture(schedule.id).await, before);
}

pub async fn of_many_changes_at_once_one_wins(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    let mut changers = JoinSet::new();
    for number in 0..8 {
        let (store, before) = (bench.store.clone(), schedule.clone());
        changers.spawn(async move {
            let wanted = Schedule { pause_note: Some(format!("note {number}")), ..before };
            let fires = vec![skipped(&wanted, minute(number))];
            let answer = answered(store.change_schedule(wanted.clone(), fires.clone()).await);
            (answer == Advanced::Done).then_some((wanted.pause_note, fires))
        });
    }
    let winners: Vec<_> = changers.join_all().await.into_iter().flatten().collect();
    let [(note, fires)] = winners.as_slice() else { panic!("one change wins: {winners:?}") };
    let after = bench.schedule(schedule.id).await;
    assert_eq!(&after.pause_note, note);
    assert_eq!(after.revision, schedule.revision + 1);
    assert_eq!(&bench.ledger(schedule.id).await, fires);
}

/// An edit and a firing at the same moment: whichever comes first, the other was decided on something else.
pub async fn of_a_change_and_a_firing_at_once_one_wins(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    for _ in 0..20 {
        let schedule = bench.minutely().await;
        let (firing, changing) = (fires_at(&schedule, minute(1)), changed(&schedule));
        let (store, other) = (bench.store.clone(), bench.store.clone());
        let firing = tokio::spawn(async move { answered(store.advance_schedules(vec![firing]).await)[0] });
        let changing =
            tokio::spawn(async move { answered(other.change_schedule(changing, Vec::new()).await) });
        let (fired, changed) = (firing.await.expect("no panic"), changing.await.expect("no panic"));
        let after = bench.picture(schedule.id).await;
        let paused = after.schedule.expect("nobody deleted it").paused;
        match (fired, changed) {
            (Advanced::Done, Advanced::Stale) => {
                assert_eq!((after.ledger.len(), after.jobs.len(), paused), (1, 1, false));
            }
            (Advanced::Stale, Advanced::Done) => {
                assert_eq!((after.ledger.len(), after.jobs.len(), paused), (0, 0, true));
            }
            both => panic!("one wins, one is stale: {both:?}"),
        }
    }
}
