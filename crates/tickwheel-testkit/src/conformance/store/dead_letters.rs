//! Dead letters: what was given up, until it is discarded or run again.

use std::sync::Arc;
use std::time::Duration;

use tickwheel_core::change::Change;
use tickwheel_core::ports::{DeadLetter, DeadLetterCursor, DeadLetterQuery, Projection, Store};
use tickwheel_core::settle::{DeadReason, Settlement};
use tickwheel_core::{Job, JobId, JsonText};
use uuid::Uuid;

use super::bench::{Bench, answered, completes, fails, fails_because, goes_again, is_cancelled};
use crate::fixtures::{JobBuilder, at, job, job_id};

fn all() -> DeadLetterQuery {
    DeadLetterQuery { limit: 100, ..DeadLetterQuery::default() }
}

/// The whole list, page by page.
pub(super) async fn list(bench: &Bench, mut query: DeadLetterQuery) -> Vec<DeadLetter> {
    let mut letters = Vec::new();
    for _ in 0..1_000 {
        let page = answered(bench.store.list_dead_letters(query.clone()).await);
        assert!(page.items.len() <= query.limit);
        letters.extend(page.items);
        match page.next {
            None => return letters,
            next => query.after = next,
        }
    }
    panic!("the list does not end: {query:?}");
}

async fn list_ids(bench: &Bench, query: DeadLetterQuery) -> Vec<JobId> {
    list(bench, query).await.into_iter().map(|letter| letter.job.id).collect()
}

async fn failed_at(bench: &Bench, builder: JobBuilder, ended_ms: i64) -> Job {
    bench.settled(builder, |job| Settlement { ended_at: at(ended_ms), ..fails(job) }).await
}

pub async fn only_jobs_that_were_given_up_are_dead_letters(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    for end in [completes, is_cancelled, goes_again] {
        let job = bench.settled(job(), end).await;
        assert_eq!(answered(bench.store.get_dead_letter(job.id).await), None);
    }
    assert_eq!(list(&bench, all()).await, []);
    assert_eq!(answered(bench.store.get_dead_letter(job_id(at(0), 1 << 40)).await), None);
    let running = bench.running(job()).await;
    let end = fails_because(&running, DeadReason::PoisonPill);
    bench.settle(end.clone()).await;
    let job = bench.job(running.id).await;
    let letter = DeadLetter { job, failed_at: end.ended_at, reason: DeadReason::PoisonPill };
    assert_eq!(list(&bench, all()).await, [letter]);
    assert_eq!(answered(bench.store.count_dead_letters().await), 1);
}

pub async fn a_page_of_dead_letters_ends_when_it_has_enough_bytes(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let long = format!("\"{}\"", "x".repeat(10_000));
    let mut ids = Vec::new();
    for n in 0..7 {
        ids.push(failed_at(&bench, job().payload(&long), 5_000 + n).await.id);
    }
    ids.reverse();
    for (bytes_max, first_page) in [(1, 1), (25_000, 3), (usize::MAX, 7)] {
        let query =
            DeadLetterQuery { projection: Projection { bytes_max, ..Projection::default() }, ..all() };
        assert_eq!(list_ids(&bench, query.clone()).await, ids, "{bytes_max} bytes");
        let page = answered(bench.store.list_dead_letters(query).await);
        assert_eq!(page.items.len(), first_page, "{bytes_max} bytes");
    }
    let narrow = Projection { payload: false, result: false, bytes_max: 30_000 };
    let page = answered(bench.store.list_dead_letters(DeadLetterQuery { projection: narrow, ..all() }).await);
    assert!(
        page.items.len() == 7
            && page.items.iter().all(|letter| letter.job.payload == JsonText::null().into())
    );
}

/// By the moment of giving up, not by age; then by id.
pub async fn the_latest_dead_letter_comes_first(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let mut jobs = Vec::new();
    for ended_ms in [5_000, 7_000, 6_000, 7_000] {
        jobs.push(failed_at(&bench, job(), ended_ms).await.id);
    }
    let expected = [jobs[3], jobs[1], jobs[2], jobs[0]];
    assert_eq!(list_ids(&bench, all()).await, expected);
    for limit in [1, 2, 3, 4] {
        assert_eq!(list_ids(&bench, DeadLetterQuery { limit, ..all() }).await, expected, "pages of {limit}");
    }
}

pub async fn dead_letters_are_found_by_type_and_queue(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let a = failed_at(&bench, job().job_type("t1").queue("q1"), 5_000).await.id;
    let b = failed_at(&bench, job().job_type("t1").queue("q2"), 6_000).await.id;
    let c = failed_at(&bench, job().job_type("t2").queue("q1"), 7_000).await.id;
    let by_type = DeadLetterQuery { job_type: Some("t1".into()), limit: 1, ..all() };
    assert_eq!(list_ids(&bench, by_type.clone()).await, [b, a]);
    let by_queue = DeadLetterQuery { queue: Some("q1".into()), limit: 1, ..all() };
    assert_eq!(list_ids(&bench, by_queue).await, [c, a]);
    let by_both = DeadLetterQuery { queue: Some("q2".into()), ..by_type };
    assert_eq!(list_ids(&bench, by_both).await, [b]);
    let nothing = DeadLetterQuery { queue: Some("q3".into()), ..all() };
    assert_eq!(list_ids(&bench, nothing).await, []);
}

/// On all pages, however long a page is, and from a place on.
pub async fn dead_letters_are_counted_as_they_are_found(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    for (job_type, queue, ended_ms) in [("t1", "q1", 5_000), ("t1", "q2", 6_000), ("t2", "q1", 7_000)] {
        failed_at(&bench, job().job_type(job_type).queue(queue), ended_ms).await;
    }
    let before = |ms| Some(DeadLetterCursor { failed_at: at(ms), id: JobId::from_uuid(Uuid::nil()) });
    let some = |text: &str| Some(text.to_owned());
    for (job_type, queue, after) in [
        (None, None, None),
        (some("t1"), None, None),
        (None, some("q1"), None),
        (some("t1"), some("q2"), None),
        (some("t3"), None, None),
        (None, None, before(7_000)),
        (None, some("q1"), before(6_000)),
        (None, None, before(5_000)),
    ] {
        let query = DeadLetterQuery { job_type, queue, after, limit: 1, ..all() };
        let found = list_ids(&bench, query.clone()).await.len() as u64;
        assert_eq!(answered(bench.store.count_dead_letters_like(query.clone()).await), found, "{query:?}");
    }
}

pub async fn a_discarded_dead_letter_stays_in_history(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let failed = bench.settled(job(), fails).await;
    let other = bench.settled(job(), fails).await;
    assert!(answered(bench.store.discard_dead_letter(failed.id).await));
    assert!(!answered(bench.store.discard_dead_letter(failed.id).await), "it was on it only once");
    assert!(!answered(bench.store.discard_dead_letter(job_id(at(0), 1 << 40)).await));
    assert_eq!(list_ids(&bench, all()).await, [other.id]);
    assert_eq!(answered(bench.store.get_dead_letter(failed.id).await), None);
    assert_eq!(answered(bench.store.count_dead_letters().await), 1);
    assert_eq!(bench.job(failed.id).await, failed);
    bench.changed(failed.id, Change::Retry { payload: None }, at(9_000)).await;
}

/// Given up, mended, given up again: one letter, about the last time.
pub async fn a_redriven_job_that_fails_again_is_a_new_dead_letter(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let failed = bench.settled(job().payload("1"), fails).await;
    let payload = JsonText::from_checked("2");
    let retry = Change::Retry { payload: Some(payload.clone()) };
    let retried = bench.changed(failed.id, retry, at(50_000)).await;
    assert_eq!(list(&bench, all()).await, []);
    let running = bench.start(&retried).await;
    let end = fails_because(&running, DeadReason::NotRetryable);
    let end = Settlement { ended_at: end.ended_at + Duration::from_millis(3), ..end };
    bench.settle(end.clone()).await;
    let letters = list(&bench, all()).await;
    assert_eq!(letters.len(), 1);
    assert_eq!((letters[0].failed_at, letters[0].reason), (end.ended_at, DeadReason::NotRetryable));
    assert_eq!((letters[0].job.attempt, &letters[0].job.payload), (2, &payload.into()));
}
