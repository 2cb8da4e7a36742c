//! Triggers: a job because somebody asked, once a key, and a record of it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::ports::{Creation, Idempotency, NewJob, NoSuchSchedule, Store};
use tickwheel_core::schedule::{Fire, FireOutcome, FireReason, Schedule};
use tickwheel_core::{Job, Timestamp};
use tokio::task::JoinSet;

use super::super::store::bench::{answered, completes};
use super::bench::{Picture, ScheduleBench, fired, job_of, minute, skipped};
use crate::fixtures::{at, job, schedule};

/// A request for a job now.
pub fn triggered(schedule: &Schedule, now: Timestamp) -> (NewJob, Fire) {
    let job = job_of(schedule, now);
    let (outcome, reason) = (FireOutcome::Triggered, FireReason::ByRequest);
    let fire = Fire { outcome, reason, ..fired(schedule, &job) };
    (NewJob { job, idempotency: None }, fire)
}

/// The same under a key; `request` stands for the request's digest.
fn triggered_once(schedule: &Schedule, now: Timestamp, key: &str, request: u8) -> (NewJob, Fire) {
    let (job, fire) = triggered(schedule, now);
    let idempotency = Some(Idempotency { key: key.to_owned(), fingerprint: [request; 32] });
    (NewJob { idempotency, ..job }, fire)
}

type Triggered = Creation<Job, NoSuchSchedule>;

fn existing(job: &Job) -> Triggered {
    Creation::existing(job.clone())
}

/// Paused or not, and how far the schedule is stays as it was.
pub async fn a_trigger_makes_a_job_and_its_record(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    for builder in [schedule("* * * * *"), schedule("* * * * *").paused("on holiday").queue("never-seen")] {
        let before = bench.create(builder).await;
        let (new, fire) = triggered(&before, at(1_234));
        assert_eq!(bench.trigger(new.clone(), fire.clone()).await, Creation::created(new.job.clone()));
        let after = bench.picture(before.id).await;
        assert_eq!(after.schedule.map(|schedule| schedule.progress), Some(before.progress));
        assert_eq!((after.ledger, after.jobs), (vec![fire], vec![new.job]));
    }
    assert_eq!(bench.queue_names().await, ["default", "never-seen"]);
}

pub async fn the_same_request_again_is_answered_with_its_job_as_it_is_now(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    let (new, fire) = triggered_once(&schedule, at(1), "now", 1);
    assert_eq!(bench.trigger(new.clone(), fire.clone()).await, Creation::created(new.job.clone()));
    // The very same, as by somebody who did not hear the answer; and with a job of its own.
    assert_eq!(bench.trigger(new.clone(), fire.clone()).await, existing(&new.job));
    let running = bench.jobs.start(&new.job).await;
    let (again, later) = triggered_once(&schedule, at(2), "now", 1);
    assert_eq!(bench.trigger(again.clone(), later.clone()).await, existing(&running));
    bench.jobs.settle(completes(&running)).await;
    let ended = bench.jobs.job(running.id).await;
    assert_eq!(bench.trigger(again, later).await, existing(&ended));
    let after = bench.picture(schedule.id).await;
    assert_eq!((after.ledger, after.jobs), (vec![fire], vec![ended]));
}

pub async fn another_request_under_the_same_key_is_a_conflict(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let (schedule, other) = (bench.minutely().await, bench.minutely().await);
    let (new, fire) = triggered_once(&schedule, at(1), "now", 1);
    bench.trigger(new.clone(), fire).await;
    let before = bench.picture(schedule.id).await;
    let (another, later) = triggered_once(&schedule, at(2), "now", 2);
    assert_eq!(bench.trigger(another, later).await, Creation::Conflict(new.job.id));
    assert_eq!(bench.picture(schedule.id).await, before);
    let (another, later) = triggered_once(&other, at(2), "now", 3);
    assert_eq!(bench.trigger(another, later).await, Creation::Conflict(new.job.id));
    assert_eq!(bench.ledger(other.id).await, []);
}

/// A key stands for one request of the tenant, whatever was asked for.
pub async fn submissions_and_triggers_share_their_keys(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    let submitted = bench.jobs.submit(job().idempotency("job", 1)).await;
    let (new, fire) = triggered_once(&schedule, at(1), "job", 2);
    assert_eq!(bench.trigger(new, fire).await, Creation::Conflict(submitted.id));
    let (new, fire) = triggered_once(&schedule, at(1), "trigger", 1);
    bench.trigger(new.clone(), fire).await;
    let again = job().idempotency("trigger", 2).build_new();
    let answers = answered(bench.jobs.store.submit_jobs(vec![again]).await);
    assert_eq!(answers, [Creation::Conflict(new.job.id)]);
}

pub async fn the_same_key_of_another_tenant_is_another_request(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    for tenant in ["acme", "zoo"] {
        let schedule = bench.create(schedule("* * * * *").tenant(tenant)).await;
        let (new, fire) = triggered_once(&schedule, at(1), "now", 1);
        assert!(bench.trigger(new, fire).await.as_new().is_some());
    }
}

pub async fn a_trigger_of_an_unknown_schedule_leaves_no_trace(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let unknown = schedule("* * * * *").queue("never-seen").build();
    let (new, fire) = triggered_once(&unknown, at(1), "now", 1);
    assert_eq!(bench.trigger(new, fire).await, Creation::Refused(NoSuchSchedule));
    let nothing = Picture { schedule: None, ledger: Vec::new(), jobs: Vec::new() };
    assert_eq!(bench.picture(unknown.id).await, nothing);
    assert!(bench.queue_names().await.is_empty());
    let schedule = bench.minutely().await;
    let (new, fire) = triggered_once(&schedule, at(2), "now", 2);
    assert!(bench.trigger(new, fire).await.as_new().is_some(), "the key is still free");
}

pub async fn many_who_trigger_under_one_key_at_once_make_one_job(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    let mut triggers = JoinSet::new();
    for ms in 0..16 {
        let (store, (new, fire)) = (bench.store.clone(), triggered_once(&schedule, at(ms), "once", 1));
        triggers.spawn(async move { answered(store.trigger_schedule(new, fire).await) });
    }
    let answers = triggers.join_all().await;
    let after = bench.picture(schedule.id).await;
    let [made] = after.jobs.as_slice() else { panic!("one job: {:?}", after.jobs) };
    assert_eq!(after.ledger.len(), 1);
    assert_eq!(after.ledger[0].job_id, Some(made.id));
    let created = answers.iter().filter_map(Creation::as_new).count();
    assert_eq!(created, 1, "{answers:?}");
    assert_eq!(answers.iter().filter(|answer| **answer == existing(made)).count(), 15, "{answers:?}");
}

/// Whether the record that is there has a job or not.
pub async fn a_trigger_takes_the_next_free_millisecond(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    let regular = bench.fire(schedule.id, minute(1)).await;
    let skip = skipped(&schedule, minute(1) + Duration::from_millis(1));
    bench.record(schedule.id, vec![skip.clone()]).await;
    let mut expected = vec![fired(&schedule, &regular), skip];
    for ms in [2, 3] {
        let (new, fire) = triggered(&schedule, minute(1));
        assert!(bench.trigger(new, fire.clone()).await.as_new().is_some());
        let moved = minute(1) + Duration::from_millis(ms);
        expected.push(Fire { nominal_at: moved, last_at: moved, ..fire });
    }
    expected.reverse();
    assert_eq!(bench.ledger(schedule.id).await, expected);
}

pub async fn many_who_trigger_at_once_each_have_their_job_and_record(store: Arc<dyn Store>) {
    let bench = ScheduleBench::new(store);
    let schedule = bench.minutely().await;
    let mut triggers = JoinSet::new();
    for _ in 0..12 {
        let (store, (new, fire)) = (bench.store.clone(), triggered(&schedule, at(5)));
        triggers.spawn(async move { answered(store.trigger_schedule(new, fire).await) });
    }
    let answers: Vec<Triggered> = triggers.join_all().await;
    assert_eq!(answers.iter().filter_map(Creation::as_new).count(), 12);
    let after = bench.picture(schedule.id).await;
    let made: BTreeSet<_> = after.jobs.iter().map(|job| job.id).collect();
    let recorded: BTreeSet<_> = after.ledger.iter().filter_map(|fire| fire.job_id).collect();
    assert_eq!((made.len(), after.ledger.len()), (12, 12));
    assert_eq!(recorded, made);
    let times: Vec<_> = after.ledger.iter().rev().map(|fire| fire.nominal_at).collect();
    assert_eq!(times, (5..17).map(at).collect::<Vec<_>>(), "one after the other");
}
