//! Very many schedules: the store is filled with them once, then an engine that never saw them is started a few seconds before they fire,
//! and it is seen when their jobs start and how much memory it took.
//!
//! Nobody waits for the hour: the engine is given a clock that shows the moment before the first firing in the store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::ValueEnum;
use tickwheel_core::job::DEFAULT_TENANT;
use tickwheel_core::ports::{DueSchedule, LoadSchedules, PartitionSet, Store, WakeCursor};
use tickwheel_core::schedule::plan::begin;
use tickwheel_core::schedule::{Rule, Schedule, ScheduleSpec, Zone};
use tickwheel_core::{JobId, Partition, ScheduleId, Timestamp};
use uuid::Uuid;

use super::figure::{Figure, Spread};
use super::jobs::template;
use super::load::{Bench, ShiftedClock};
use super::usage::peak_mib;

/// From the start of the engine to the first firing.
const HEAD_START: Duration = Duration::from_secs(5);
const PAGE_LEN: usize = 10_000;
const HOUR_MS: u64 = 3_600_000;
/// 2030-01-15T23:59:00Z, a minute before a day begins in UTC. Schedules begin here.
const BEGIN: Timestamp = Timestamp::from_millis(1_894_751_940_000);

/// How the firings lie in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Pattern {
    /// Hourly, evenly over the hour
    Spread,
    /// Hourly, all at the same moment
    Together,
    /// At midnight, each of a tenant of its own, in all time zones in turn
    Midnights,
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spread => "hourly, spread over the hour",
            Self::Together => "hourly, all at the same moment",
            Self::Midnights => "at midnight, each in its own zone",
        })
    }
}

/// Stores schedules number `numbers` of `count`.
pub async fn create(
    store: Arc<dyn Store>,
    pattern: Pattern,
    numbers: std::ops::Range<usize>,
    count: usize,
) -> anyhow::Result<()> {
    let zones: Vec<&'static str> = Zone::names().collect();
    let creating = numbers.map(|number| {
        let zone = zones[number % zones.len()];
        store.create_schedule(schedule(pattern, number, count, zone))
    });
    futures::future::try_join_all(creating).await?;
    Ok(())
}

fn schedule(pattern: Pattern, number: usize, count: usize, zone: &str) -> Schedule {
    let id = ScheduleId::from_uuid(Uuid::now_v7());
    let hourly = |offset_ms: u64| Rule::Every {
        every_ms: HOUR_MS,
        anchor: BEGIN + Duration::from_secs(60) + Duration::from_millis(offset_ms),
    };
    let (rule, timezone, tenant) = match pattern {
        // Whole seconds, as timetables have them.
        Pattern::Spread => {
            (hourly(number as u64 * 3_600 / count as u64 * 1_000), "UTC", DEFAULT_TENANT.into())
        }
        Pattern::Together => (hourly(0), "UTC", DEFAULT_TENANT.into()),
        Pattern::Midnights => (Rule::Cron("0 0 * * *".into()), zone, format!("tenant-{number}").into()),
    };
    let spec = ScheduleSpec { timezone: timezone.into(), ..ScheduleSpec::new(rule, template()) };
    let timetable = spec.timetable().expect("made of sound parts");
    Schedule {
        id,
        partition: Partition::of(JobId::from_uuid(id.as_uuid())),
        tenant,
        name: format!("schedule-{number}").into(),
        paused: false,
        pause_note: None,
        revision: 1,
        created_at: BEGIN,
        updated_at: BEGIN,
        progress: begin(id, &spec, &timetable, BEGIN),
        spec: Arc::new(spec),
    }
}

/// A clock that shows a few seconds before the first firing in the store.
pub async fn clock_before_the_first(store: &Arc<dyn Store>) -> anyhow::Result<ShiftedClock> {
    Ok(ShiftedClock::showing(first_firing(store).await? - HEAD_START))
}

async fn first_firing(store: &Arc<dyn Store>) -> anyhow::Result<Timestamp> {
    let first = page(store, WakeCursor::START, Timestamp::MAX, 1).await?;
    Ok(first.first().context("there are no schedules in the store: fill it first")?.wake_at)
}

async fn page(
    store: &Arc<dyn Store>,
    after: WakeCursor,
    until: Timestamp,
    limit: usize,
) -> anyhow::Result<Vec<DueSchedule>> {
    Ok(store.load_schedules(LoadSchedules { partitions: PartitionSet::ALL, after, until, limit }).await?)
}

async fn count_until(store: &Arc<dyn Store>, until: Timestamp) -> anyhow::Result<usize> {
    let (mut after, mut count) = (WakeCursor::START, 0);
    loop {
        let found = page(store, after, until, PAGE_LEN).await?;
        count += found.len();
        match found.last() {
            Some(last) if found.len() == PAGE_LEN => after = last.cursor(),
            _ => return Ok(count),
        }
    }
}

/// Lets what is due within `seconds` of the first firing fire, and sees how late the jobs start.
pub async fn measure(bench: &Bench, seconds: u32) -> anyhow::Result<Figure> {
    let first = first_firing(bench.store()).await?;
    let last = first + Duration::from_secs(u64::from(seconds)) - Duration::from_millis(1);
    let firings = count_until(bench.store(), last).await?;
    ensure!(bench.now() < first, "it took too long to count the firings");
    let starts = bench.started(firings).await;
    let begun = starts.iter().map(|start| start.at).min();
    let ended = starts.iter().map(|start| start.at).max();
    let took = begun.zip(ended).map_or(Duration::ZERO, |(begun, ended)| ended - begun);
    Ok(Figure::Schedules {
        fired: starts.len(),
        seconds: took.as_secs_f64(),
        lag_ms: Spread::of(starts.iter().map(|start| start.lag)),
        peak_mib: peak_mib().unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_fire_when_their_pattern_says() {
        let next = |pattern, number, zone: &str| {
            schedule(pattern, number, 7_200, zone).progress.next_at.expect("it fires").since(BEGIN).as_secs()
        };
        assert_eq!((next(Pattern::Spread, 0, "UTC"), next(Pattern::Spread, 7_199, "UTC")), (60, 59));
        assert_eq!((next(Pattern::Together, 0, "UTC"), next(Pattern::Together, 7_199, "UTC")), (60, 60));
        assert_eq!(next(Pattern::Midnights, 0, "Africa/Abidjan"), 60);
        assert_eq!(next(Pattern::Midnights, 0, "America/New_York"), 60 + 5 * 3_600);
    }
}
