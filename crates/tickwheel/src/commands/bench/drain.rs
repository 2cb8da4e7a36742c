//! The drain rate: many jobs are due, none has started; how long until the last one is durably completed?

use std::time::Instant;

use tickwheel_core::ports::Clock as _;
use tickwheel_engine::SystemClock;

use super::Figure;
use super::load::Bench;

pub(super) async fn measure(bench: &Bench, store: &'static str, jobs: usize) -> anyhow::Result<Figure> {
    bench.scheduler.set_halted(true).await?;
    let submitting = Instant::now();
    let due = SystemClock.now();
    bench.submit(jobs, |_| due).await?;
    let submitted = jobs as f64 / submitting.elapsed().as_secs_f64();
    let draining = Instant::now();
    bench.scheduler.set_halted(false).await?;
    bench.finished(jobs).await;
    let drained = jobs as f64 / draining.elapsed().as_secs_f64();
    Ok(Figure {
        store,
        what: "drain".into(),
        value: format!("{drained:.0} jobs/s"),
        detail: format!("submitted before at {submitted:.0} jobs/s in batches of 500, one after the other"),
    })
}
