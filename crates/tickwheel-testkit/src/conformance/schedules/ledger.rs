//! Reading the ledger: the latest first, in pages, by outcome.

use std::sync::Arc;

use tickwheel_core::ports::{Advanced, FireQuery, Store};
use tickwheel_core::schedule::{Fire, FireOutcome, FireReason, Schedule};

use super::super::store::bench::answered;
use super::bench::{ScheduleBench, all_fires, fires_at, minute, skipped};
use crate::fixtures::schedule_id;

/// A ledger of `count` records, one a minute, every third of them missed; the latest first.
async fn kept(bench: &ScheduleBench, count: i64) -> (Schedule, Vec<Fire>) {
    let schedule = bench.minutely().await;
    let outcome = |n| if n % 3 == 0 { FireOutcome::Missed } else { FireOutcome::Skipped };
    let mut fires: Vec<Fire> =
        (1..=count).map(|n| Fire { outcome: outcome(n), ..skipped(&schedule, minute(n)) }).collect();
    bench.record(schedule.id, fires.clone()).await;
    fires.reverse();
    (schedule, fires)
}

pub async fn every_outcome_and_every_reason_is_kept_as_it_was(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    let mut fires = Vec::new();
    for outcome in FireOutcome::ALL {
        for reason in FireReason::ALL {
            let nominal = minute(1_000 - fires.len() as i64);
            fires.push(Fire { outcome, reason, recorded_at: minute(2_000), ..skipped(&schedule, nominal) });
        }
    }
    bench.record(schedule.id, fires.clone()).await;
    assert_eq!(bench.ledger(schedule.id).await, fires);
}

pub async fn firings_are_listed_the_latest_first_in_pages_of_any_size(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let (schedule, fires) = kept(&bench, 10).await;
    kept(&bench, 3).await;
    for limit in [1, 3, 10, 11] {
        let query = FireQuery { limit, ..all_fires(schedule.id) };
        assert_eq!(bench.fires(query).await, fires, "pages of {limit}");
    }
    assert_eq!(bench.ledger(schedule_id(u64::from(u32::MAX))).await, []);
}

pub async fn firings_are_found_by_their_outcome(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let (schedule, fires) = kept(&bench, 10).await;
    for outcome in FireOutcome::ALL {
        let expected: Vec<Fire> = fires.iter().filter(|fire| fire.outcome == outcome).cloned().collect();
        for limit in [1, 2, 100] {
            let query = FireQuery { outcome: Some(outcome), limit, ..all_fires(schedule.id) };
            assert_eq!(bench.fires(query).await, expected, "{outcome}, pages of {limit}");
        }
    }
}

pub async fn firings_are_found_by_their_time(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let (schedule, fires) = kept(&bench, 10).await;
    let before = |count| FireQuery { before: Some(minute(count)), limit: 2, ..all_fires(schedule.id) };
    assert_eq!(bench.fires(before(11)).await, fires);
    assert_eq!(bench.fires(before(5)).await, fires[6..]);
    assert_eq!(bench.fires(before(1)).await, []);
}

pub async fn the_latest_firings_of_each_schedule_are_read_at_once(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let (many, many_fires) = kept(&bench, 10).await;
    let (few, few_fires) = kept(&bench, 2).await;
    let none = bench.minutely().await;
    let (other, _) = kept(&bench, 4).await;
    let ids = vec![few.id, none.id, many.id, schedule_id(u64::from(u32::MAX))];
    let latest = answered(bench.store.latest_fires(ids.clone(), 3).await);
    let of = |schedule: &Schedule| -> Vec<Fire> {
        latest.iter().filter(|fire| fire.schedule_id == schedule.id).cloned().collect()
    };
    assert_eq!(of(&many), many_fires[..3]);
    assert_eq!(of(&few), few_fires);
    assert_eq!(of(&other), [], "not asked for");
    assert_eq!(latest.len(), 5);
    assert_eq!(answered(bench.store.latest_fires(ids, 0).await), []);
    assert_eq!(answered(bench.store.latest_fires(Vec::new(), 3).await), []);
}

pub async fn queued_firings_are_read_the_oldest_first_until_they_are_over(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let (schedule, _) = kept(&bench, 3).await;
    let (other, _) = kept(&bench, 3).await;
    let queued =
        |schedule: &Schedule, at| Fire { reason: FireReason::Queued, ..skipped(schedule, minute(at)) };
    bench.record(schedule.id, vec![queued(&schedule, 7), queued(&schedule, 5)]).await;
    bench.record(schedule.id, vec![queued(&schedule, 6), skipped(&schedule, minute(8))]).await;
    bench.record(other.id, vec![queued(&other, 9)]).await;
    let read =
        async |from, limit| answered(bench.store.queued_firings(schedule.id, minute(from), limit).await);
    assert_eq!(read(0, 10).await, [minute(5), minute(6), minute(7)]);
    assert_eq!(read(5, 2).await, [minute(5), minute(6)]);
    assert_eq!(read(6, 10).await, [minute(6), minute(7)]);
    // One starts, one is not wanted any more.
    let starts = fires_at(&bench.schedule(schedule.id).await, minute(5));
    assert_eq!(bench.advance(starts).await, Advanced::Done);
    bench.record(schedule.id, vec![skipped(&schedule, minute(7))]).await;
    assert_eq!(read(0, 10).await, [minute(6)]);
    assert_eq!(bench.ledger(schedule.id).await.len(), 7, "one record a nominal time");
}
