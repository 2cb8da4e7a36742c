//! Schedules as they were requested: kept word for word, one of a name, found by it.

use std::collections::BTreeSet;
use std::sync::Arc;

use tickwheel_core::Partition;
use tickwheel_core::ports::{ScheduleCreated, ScheduleQuery, Store};
use tickwheel_core::schedule::civil::CivilDate;
use tickwheel_core::schedule::{
    DayLogic, DstFold, DstGap, Exclusion, JobTemplate, MissedPolicy, MissedRule, OnExcluded, Overlap, Rule,
    ScheduleProgress,
};
use tokio::task::JoinSet;

use super::super::store::bench::{ODD_TEXT, answered};
use super::super::store::submission::rich_job;
use super::bench::ScheduleBench;
use crate::fixtures::{ScheduleBuilder, at, backfill, schedule, schedule_id};

fn rich_template() -> JobTemplate {
    let job = rich_job().build();
    JobTemplate {
        job_type: job.job_type,
        queue: job.queue,
        priority: job.priority,
        spec: job.spec,
        payload: job.payload.whole().expect("it refers to nothing"),
        tags: job.tags,
    }
}

/// Nothing about it is as usual.
fn rich_schedule() -> ScheduleBuilder {
    let day = |day| CivilDate::new(2026, 12, day).expect("a day in December");
    let progress = ScheduleProgress {
        cursor: at(1),
        next_at: Some(at(5)),
        rolled_at: Some(at(4)),
        held_at: Some(at(2)),
        wake_at: Some(at(3)),
        backfill: Some(backfill()),
    };
    schedule("0 0 2 ? JAN-NOV MON#1,5L")
        .name(ODD_TEXT)
        .tenant(&format!("tenant of {ODD_TEXT}"))
        .partition(Partition(63))
        .paused(&format!("because {ODD_TEXT}"))
        .timezone("America/Argentina/ComodRivadavia")
        .spec(|spec| {
            spec.start_at = Some(at(-5_000_000_000));
            spec.end_at = Some(at(5_000_000_000_000));
            spec.jitter_ms = 86_400_000;
            spec.exclude = vec![
                Exclusion::Day(day(25)),
                Exclusion::Days(day(26), day(31)),
                Exclusion::Calendar(ODD_TEXT.into()),
            ];
            spec.missed = MissedRule { policy: MissedPolicy::Backfill, window_ms: 1, max_backfill: 1_000 };
            spec.job = rich_template();
        })
        .progress(progress)
        .with(|schedule| {
            schedule.revision = u64::from(u32::MAX) + 7;
            schedule.created_at = at(17);
            schedule.updated_at = at(18);
        })
}

/// Every field, odd characters included, whichever way it is read.
pub async fn every_field_of_a_schedule_survives(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.create(rich_schedule()).await;
    assert_eq!(bench.schedule(schedule.id).await, schedule);
    let found = answered(bench.store.find_schedule(&schedule.tenant, &schedule.name).await);
    assert_eq!(found.as_ref(), Some(&schedule));
    assert_eq!(bench.list(ScheduleQuery { limit: 10, ..ScheduleQuery::default() }).await, [schedule]);
}

pub async fn a_schedule_with_nothing_optional_survives(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let progress = ScheduleProgress {
        cursor: at(0),
        next_at: None,
        rolled_at: None,
        held_at: None,
        wake_at: None,
        backfill: None,
    };
    let schedule = bench.create(schedule("0 0 30 2 *").progress(progress)).await;
    assert_eq!(bench.schedule(schedule.id).await, schedule);
}

pub async fn an_interval_survives(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    for anchor in [at(-1), tickwheel_core::Timestamp::EPOCH] {
        let rule = Rule::Every { every_ms: 91_000, anchor };
        let schedule = bench.create(schedule("@daily").spec(|spec| spec.rule = rule)).await;
        assert_eq!(bench.schedule(schedule.id).await, schedule);
    }
}

pub async fn every_choice_of_a_schedule_survives(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let mut choices: Vec<ScheduleBuilder> = Vec::new();
    choices.extend(DstGap::ALL.map(|choice| schedule("@daily").spec(|spec| spec.dst_gap = choice)));
    choices.extend(DstFold::ALL.map(|choice| schedule("@daily").spec(|spec| spec.dst_fold = choice)));
    choices.extend(DayLogic::ALL.map(|choice| schedule("@daily").spec(|spec| spec.day_logic = choice)));
    choices.extend(OnExcluded::ALL.map(|choice| schedule("@daily").spec(|spec| spec.on_excluded = choice)));
    choices.extend(Overlap::ALL.map(|choice| schedule("@daily").overlap(choice)));
    choices.extend(MissedPolicy::ALL.map(|choice| schedule("@daily").missed(choice)));
    for schedule in bench.create_all(choices).await {
        assert_eq!(bench.schedule(schedule.id).await, schedule);
    }
}

pub async fn only_schedules_that_exist_are_found(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let known = bench.create_all((0..3).map(|_| schedule("@daily"))).await;
    let ids = vec![known[0].id, schedule_id(u64::from(u32::MAX)), known[2].id];
    let found = answered(bench.store.get_schedules(ids).await);
    let found: BTreeSet<_> = found.into_iter().map(|schedule| schedule.id).collect();
    assert_eq!(found, BTreeSet::from([known[0].id, known[2].id]));
    assert_eq!(answered(bench.store.get_schedules(Vec::new()).await), []);
}

pub async fn a_name_is_found_only_as_it_is_written_and_where_it_belongs(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.create(schedule("@daily").tenant("acme").name("Report")).await;
    for (tenant, name) in [("acme", "report"), ("acme", "Repor_"), ("acme", ""), ("zoo", "Report")] {
        assert_eq!(answered(bench.store.find_schedule(tenant, name).await), None, "{tenant} {name}");
    }
    assert_eq!(answered(bench.store.find_schedule("acme", "Report").await), Some(schedule));
}

pub async fn a_name_is_taken_once_per_tenant(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let first = bench.create(schedule("@daily").tenant("acme").name("report")).await;
    let second = schedule("@hourly").tenant("acme").name("report").build();
    let answer = answered(bench.store.create_schedule(second.clone()).await);
    assert_eq!(answer, ScheduleCreated::NameTaken(first.id));
    assert_eq!(bench.find(second.id).await, None);
    assert_eq!(bench.schedule(first.id).await, first);
    bench.create(schedule("@daily").tenant("zoo").name("report")).await;
    bench.create(schedule("@daily").tenant("acme").name("Report")).await;
}

/// Whoever did not hear the answer asks again, and hears that the name is taken by what they asked for.
pub async fn the_same_creation_sent_again_names_the_first(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    let again = answered(bench.store.create_schedule(schedule.clone()).await);
    assert_eq!(again, ScheduleCreated::NameTaken(schedule.id));
}

pub async fn many_who_create_one_name_at_once_create_one_schedule(store: Arc<dyn Store>) {
    let mut creators = JoinSet::new();
    for _ in 0..16 {
        let (store, schedule) = (store.clone(), schedule("@daily").name("once").build());
        creators.spawn(async move { (schedule.id, answered(store.create_schedule(schedule.clone()).await)) });
    }
    let answers = creators.join_all().await;
    let bench = ScheduleBench::new(store);
    let stored = bench.list(ScheduleQuery { limit: 10, ..ScheduleQuery::default() }).await;
    assert_eq!(stored.len(), 1, "{answers:?}");
    for (id, answer) in answers {
        match answer {
            ScheduleCreated::Created => assert_eq!(id, stored[0].id),
            ScheduleCreated::NameTaken(by) => assert_eq!(by, stored[0].id),
        }
    }
}

pub async fn schedules_are_listed_by_name_in_pages_of_any_size(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let names = ["b", "a", "Z", "é", "a b", " ", "a-b", "漢字", "aa", ODD_TEXT];
    let mut schedules = bench.create_all(names.map(|name| schedule("@daily").name(name))).await;
    schedules.sort_by_key(|schedule| schedule.name.clone());
    for limit in [1, 3, names.len(), 100] {
        let query = ScheduleQuery { limit, ..ScheduleQuery::default() };
        assert_eq!(bench.list(query).await, schedules, "pages of {limit}");
    }
}

pub async fn schedules_are_listed_by_tenant_and_by_being_paused(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let acme = |name| schedule("@daily").tenant("acme").name(name);
    let running = bench.create_all([acme("b"), acme("d")]).await;
    let paused = bench.create_all([acme("a").paused("no"), acme("c").paused("no")]).await;
    let other = bench.create(schedule("@daily").tenant("zoo").name("e").paused("no")).await;
    let query = |tenant: Option<&str>, paused| ScheduleQuery {
        tenant: tenant.map(str::to_owned),
        paused,
        after: None,
        limit: 1,
    };
    let mut all_acme = [running.clone(), paused.clone()].concat();
    all_acme.sort_by_key(|schedule| schedule.name.clone());
    assert_eq!(bench.list(query(Some("acme"), None)).await, all_acme);
    assert_eq!(bench.list(query(Some("acme"), Some(true))).await, paused);
    assert_eq!(bench.list(query(Some("acme"), Some(false))).await, running);
    assert_eq!(bench.list(query(None, Some(true))).await, [paused, vec![other]].concat());
    assert_eq!(bench.list(query(Some("Acme"), None)).await, []);
}
