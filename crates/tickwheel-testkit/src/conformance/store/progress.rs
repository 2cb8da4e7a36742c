//! How far running attempts have come.

use std::sync::Arc;

use tickwheel_core::ports::Store;
use tickwheel_core::progress::{Percent, Progress};
use tickwheel_core::token::AttemptRef;
use tickwheel_core::{Job, JobId};

use super::bench::{Bench, LATER, ODD_TEXT, answered, completes, goes_again};
use crate::fixtures::{at, job, job_id};

fn note(job: &Job, percent: f64, at_ms: i64) -> Progress {
    Progress {
        attempt: AttemptRef { job_id: job.id, attempt: job.attempt },
        percent: Some(Percent::from_number(percent)),
        message: None,
        at: at(at_ms),
    }
}

impl Bench {
    async fn note(&self, notes: impl IntoIterator<Item = Progress>) {
        answered(self.store.put_progress(notes.into_iter().collect()).await);
    }

    async fn progress(&self, id: JobId) -> Option<Progress> {
        answered(self.store.get_progress(id).await)
    }
}

pub async fn the_latest_progress_of_each_job_is_kept(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let (first, second) = (bench.running(job()).await, bench.running(job()).await);
    assert_eq!(bench.progress(first.id).await, None);
    bench.note([note(&first, 10.0, 1), note(&second, 99.99, 1)]).await;
    let latest = Progress { percent: None, message: Some(ODD_TEXT.into()), ..note(&first, 0.0, 2) };
    bench.note([latest.clone()]).await;
    assert_eq!(bench.progress(first.id).await, Some(latest));
    assert_eq!(bench.progress(second.id).await, Some(note(&second, 99.99, 1)));
    bench.note([]).await;
}

pub async fn a_new_attempt_starts_without_progress(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let first = bench.running(job()).await;
    bench.note([note(&first, 50.0, 1)]).await;
    bench.settle(goes_again(&first)).await;
    assert_eq!(bench.progress(first.id).await, None, "it does not run");
    let second = bench.start(&bench.job(first.id).await).await;
    assert_eq!(bench.progress(first.id).await, None);
    bench.note([note(&first, 60.0, 2)]).await;
    assert_eq!(bench.progress(first.id).await, None, "it came too late");
    bench.note([note(&second, 5.0, 3)]).await;
    bench.note([note(&first, 70.0, 4)]).await;
    assert_eq!(bench.progress(first.id).await, Some(note(&second, 5.0, 3)));
    bench.settle(completes(&second)).await;
    assert_eq!(bench.progress(first.id).await, None);
}

pub async fn the_progress_of_what_is_over_is_forgotten(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let mut ended = Vec::new();
    for _ in 0..3 {
        ended.push(bench.running(job()).await);
    }
    let runs_on = bench.running(job()).await;
    bench.note(ended.iter().chain([&runs_on]).map(|job| note(job, 1.0, 10))).await;
    answered(bench.store.settle(ended.iter().map(completes).collect()).await);
    assert_eq!(answered(bench.store.forget_progress(at(10), 10).await), 0, "not old enough");
    assert_eq!(answered(bench.store.forget_progress(LATER, 2).await), 2);
    assert_eq!(answered(bench.store.forget_progress(LATER, 2).await), 1);
    assert_eq!(answered(bench.store.forget_progress(LATER, 2).await), 0);
    assert!(bench.progress(runs_on.id).await.is_some());
}

pub async fn what_does_not_exist_makes_no_progress(store: Arc<dyn Store>) {
    let bench = Bench::new(store);
    let running = bench.running(job()).await;
    let nobody = Progress {
        attempt: AttemptRef { job_id: job_id(at(0), 1 << 40), attempt: 1 },
        ..note(&running, 3.0, 1)
    };
    bench.note([nobody.clone(), note(&running, 4.0, 1)]).await;
    assert_eq!(bench.progress(nobody.attempt.job_id).await, None);
    assert_eq!(bench.progress(running.id).await, Some(note(&running, 4.0, 1)));
}
