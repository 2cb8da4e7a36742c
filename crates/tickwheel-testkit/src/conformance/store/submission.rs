//! Submission: durable, atomic, harmless when repeated.

use std::sync::Arc;

use tickwheel_core::job::HttpTarget;
use tickwheel_core::ports::{Creation, Store, UnknownParent};
use tickwheel_core::retry::{Backoff, RetryPolicy};
use tickwheel_core::{Delivery, Job, JsonText, Partition, Priority, State, Target};
use tokio::task::JoinSet;

use super::bench::{Bench, ODD_TEXT, answered, completes};
use crate::fixtures::{JobBuilder, JobInTest as _, at, job};

/// Nothing about it is as usual.
pub fn rich_job() -> JobBuilder {
    let retry = RetryPolicy {
        max_retries: 7,
        backoff: Backoff::Delays(vec![0, 250, u64::from(u32::MAX)]),
        initial_delay_ms: 1,
        max_delay_ms: 86_400_000,
        jitter: 0.123_456_789,
        non_retryable: vec![ODD_TEXT.into(), "http_*".into()],
    };
    let target = Target::Http(HttpTarget {
        url: "https://example.com/a?b=c&d=%20#é".into(),
        method: "PATCH".into(),
        headers: vec![("x-odd".into(), ODD_TEXT.into()), ("x-odd".into(), String::new())],
    });
    job()
        .created_at(at(17))
        .due_at(at(5_000_000_000))
        .partition(Partition(63))
        .tenant(ODD_TEXT)
        .job_type("invoice.render/v2 ü")
        .queue("queue with spaces ☃")
        .priority(Priority::Low)
        .payload(&format!(r#"{{"text":{ODD_TEXT:?},"n":12345678901234567890,"nested":[[null,1e300]]}}"#))
        .tags(["", "a", "Ä'\"", "z, y"])
        .target(target)
        .retry(retry)
        .delivery(Delivery::AtMostOnce)
        .callback_url("https://example.com/done?x='1'")
        .with(|job| {
            job.execute_at = at(4_000_000_000);
            let spec = Arc::make_mut(&mut job.spec);
            spec.timeout_ms = 86_400_000;
            spec.metadata = JsonText::from_checked(r#"{"a":"\u0000","b":[]}"#);
            spec.created_by = Some(ODD_TEXT.into());
            spec.traceparent = Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".into());
            spec.concurrency_key = Some(String::new());
        })
}

/// Every field, odd characters included, while it lives and after it ended.
pub async fn every_field_of_a_job_survives(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let job = bench.submit(rich_job()).await;
    assert_eq!(bench.job(job.id).await, job);
    let running = bench.start(&job).await;
    assert_eq!(bench.job(job.id).await, running);
    bench.settle(completes(&running)).await;
    let ended = bench.job(job.id).await;
    let as_requested = job.in_state(State::Completed).with(|job| {
        job.attempt = 1;
        job.started_at = ended.started_at;
        job.completed_at = ended.completed_at;
        job.last_outcome = ended.last_outcome;
        job.result = ended.result.clone();
    });
    assert_eq!(ended, as_requested);
}

pub async fn a_job_with_nothing_optional_survives(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let job = bench.submit(job().target(Target::Worker).payload("null")).await;
    assert_eq!(bench.job(job.id).await, job);
}

pub async fn a_payload_of_256_kib_survives(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let text = "0123456789abcdeü".repeat(256 * 1024 / 17);
    let job = bench.submit(job().payload(&format!("{text:?}"))).await;
    assert_eq!(bench.job(job.id).await.payload, job.payload);
}

pub async fn a_job_can_be_submitted_in_every_waiting_state(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    for state in [State::Pending, State::Scheduled, State::Paused, State::Blocked] {
        let job = bench.submit(job().state(state)).await;
        assert_eq!(bench.job(job.id).await, job);
    }
}

pub async fn a_job_that_repeats_a_tag_is_stored(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let job = bench.submit(job().tags(["a", "b", "a"])).await;
    assert_eq!(bench.job(job.id).await.tags, ["a", "b", "a"]);
}

pub async fn a_large_batch_is_stored_whole(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let jobs = bench.submit_all((0..1_000).map(|n| job().due_at(at(n)).tags(["bulk"]))).await;
    let mut stored = answered(bench.store.get_jobs(jobs.iter().map(|job| job.id).collect()).await);
    stored.sort_by_key(|job| job.id);
    assert_eq!(stored, jobs);
}

pub async fn an_empty_batch_is_answered_with_nothing(store: Arc<dyn Store>) {
    assert_eq!(answered(store.submit_jobs(Vec::new()).await), []);
}

/// A batch in which one job cannot be stored stores none, and leaves its keys free.
pub async fn a_refused_batch_leaves_no_trace(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let taken = bench.submit(job()).await;
    let before = job().idempotency("free", 1).queue("never-seen");
    let clash = job().with(|job| job.id = taken.id).queue("clash");
    let batch = vec![before.clone().build_new(), clash.build_new(), job().build_new()];
    let ids = batch.iter().map(|new| new.job.id).collect();
    let refusal = bench.store.submit_jobs(batch).await.expect_err("an id cannot be used twice");
    assert!(refusal.is_certainly_aborted(), "nothing was stored, and the error says so: {refusal}");
    assert_eq!(answered(bench.store.get_jobs(ids).await), [taken]);
    let again = before.build_new();
    let created = Creation::created(again.job.clone());
    assert_eq!(answered(bench.store.submit_jobs(vec![again]).await), [created]);
}

pub async fn a_repeated_key_is_answered_with_its_job_as_it_is_now(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let first = bench.submit(job().idempotency("order-1", 1)).await;
    assert_eq!(submit_one(&bench, job().idempotency("order-1", 1)).await, existing(&first));
    let running = bench.start(&first).await;
    assert_eq!(submit_one(&bench, job().idempotency("order-1", 1)).await, existing(&running));
    bench.settle(completes(&running)).await;
    let ended = bench.job(first.id).await;
    assert_eq!(submit_one(&bench, job().idempotency("order-1", 1)).await, existing(&ended));
}

/// Whoever did not hear the answer submits the same job, same id and all, once more.
pub async fn the_same_submission_sent_again_is_answered_with_its_job(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let builder = job().idempotency("order-1", 1);
    let first = bench.submit(builder.clone()).await;
    assert_eq!(submit_one(&bench, builder).await, existing(&first));
}

pub async fn a_job_that_was_seen_before_is_not_stored(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    bench.submit(job().idempotency("order-1", 1)).await;
    let repeated = job().idempotency("order-1", 1).build_new();
    let conflicting = job().idempotency("order-1", 2).build_new();
    let ids = vec![repeated.job.id, conflicting.job.id];
    answered(bench.store.submit_jobs(vec![repeated, conflicting]).await);
    assert_eq!(answered(bench.store.get_jobs(ids).await), []);
}

pub async fn the_same_key_with_another_request_is_a_conflict(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let first = bench.submit(job().idempotency("order-1", 1)).await;
    let answer = submit_one(&bench, job().idempotency("order-1", 2)).await;
    assert_eq!(answer, Creation::Conflict(first.id));
    // A conflict does not change what the key stands for.
    assert_eq!(submit_one(&bench, job().idempotency("order-1", 1)).await, existing(&first));
}

pub async fn the_same_key_of_another_tenant_is_another_key(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    bench.submit(job().tenant("a").idempotency("order-1", 1)).await;
    let other = job().tenant("b").idempotency("order-1", 2);
    assert_eq!(submit_one(&bench, other.clone()).await, Creation::created(other.build()));
}

/// Keys are seen within a batch too, and every answer stands where its job stood.
pub async fn a_batch_is_answered_in_order_and_knows_its_own_keys(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let old = bench.submit(job().idempotency("old", 1)).await;
    let (new, plain) = (job().idempotency("new", 1), job());
    let elsewhere = job().tenant("other").idempotency("new", 2);
    let batch = [
        job().idempotency("old", 1),
        new.clone(),
        plain.clone(),
        job().idempotency("new", 1),
        job().idempotency("new", 2),
        job().idempotency("old", 2),
        elsewhere.clone(),
    ];
    let answers = answered(bench.store.submit_jobs(batch.map(JobBuilder::build_new).to_vec()).await);
    let new = new.build();
    let expected = [
        existing(&old),
        Creation::created(new.clone()),
        Creation::created(plain.build()),
        existing(&new),
        Creation::Conflict(new.id),
        Creation::Conflict(old.id),
        Creation::created(elsewhere.build()),
    ];
    assert_eq!(answers, expected);
}

pub async fn many_who_submit_one_key_at_once_create_one_job(store: Arc<dyn Store>) {
    let mut submitters = JoinSet::new();
    for _ in 0..16 {
        let store = store.clone();
        let new = job().idempotency("once", 1).build_new();
        submitters.spawn(async move { (new.job.id, answered(store.submit_jobs(vec![new]).await)) });
    }
    let answers = submitters.join_all().await;
    let created: Vec<_> = answers
        .iter()
        .flat_map(|(_, answer)| answer)
        .filter_map(Creation::as_new)
        .map(|job| job.id)
        .collect();
    assert_eq!(created.len(), 1, "{answers:?}");
    for (_, answer) in answers {
        match &answer[..] {
            [Creation::Created(_)] => {}
            [Creation::Existing(job)] => assert_eq!(job.id, created[0]),
            other => panic!("neither created nor existing: {other:?}"),
        }
    }
}

type Submitted = Creation<Job, UnknownParent>;

async fn submit_one(bench: &Bench, builder: JobBuilder) -> Submitted {
    let mut answers = answered(bench.store.submit_jobs(vec![builder.build_new()]).await);
    assert_eq!(answers.len(), 1, "one answer a job");
    answers.remove(0)
}

fn existing(job: &Job) -> Submitted {
    Creation::existing(job.clone())
}
