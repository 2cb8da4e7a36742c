//! Large runs of a workflow, one after the other, and beside them plain jobs of the same tenant at a steady rate: how long does one of those wait?
//! Meanwhile somebody looks at the run from time to time, as a page that shows it does.

use std::time::{Duration, Instant};

use anyhow::ensure;
use tickwheel_core::RunId;
use tickwheel_core::workflow::RunStatus;

use super::end_to_end::submit_steadily;
use super::figure::{Figure, Spread};
use super::graphs::Shape;
use super::load::{Bench, Start};
use super::usage::peak_mib;

const READ_INTERVAL: Duration = Duration::from_millis(250);

/// What was seen of the runs.
struct Runs {
    starts: Vec<Duration>,
    reads: Vec<Duration>,
    next_read: tokio::time::Instant,
}

pub(super) async fn measure(bench: &Bench, tasks: usize, rate: u32, seconds: u32) -> anyhow::Result<Figure> {
    let workflow = bench.store_workflow(Shape::Layered, tasks).await?;
    let jobs = submit_steadily(bench, rate, seconds).await?;
    let alone = bench.finished(jobs).await;
    let until = Instant::now() + Duration::from_secs(u64::from(seconds));
    let (jobs, runs) =
        tokio::try_join!(submit_steadily(bench, rate, seconds), run_until(bench, &workflow, until))?;
    ensure!(!runs.reads.is_empty(), "no run went on for long enough to be read: take more seconds");
    let beside = bench.finished(jobs + tasks * runs.starts.len()).await;
    Ok(Figure::BesideWorkflows {
        tasks,
        rate,
        runs: runs.starts.len(),
        start_ms: Spread::of(runs.starts.into_iter()),
        reads: runs.reads.len(),
        read_ms: Spread::of(runs.reads.into_iter()),
        lag_ms: lag_of_plain(&beside),
        lag_alone_ms: lag_of_plain(&alone),
        peak_mib: peak_mib().unwrap_or(0),
    })
}

fn lag_of_plain(starts: &[Start]) -> Spread {
    Spread::of(starts.iter().filter(|start| !start.in_run).map(|start| start.lag))
}

/// Begins runs until then, each when the one before has ended.
async fn run_until(bench: &Bench, workflow: &str, until: Instant) -> anyhow::Result<Runs> {
    let next_read = tokio::time::Instant::now() + READ_INTERVAL;
    let mut runs = Runs { starts: Vec::new(), reads: Vec::new(), next_read };
    while Instant::now() < until {
        let starting = Instant::now();
        let id = bench.start_run(workflow).await?;
        runs.starts.push(starting.elapsed());
        runs.watch(bench, id).await?;
    }
    Ok(runs)
}

impl Runs {
    /// Looks at a run from time to time until it has ended.
    async fn watch(&mut self, bench: &Bench, id: RunId) -> anyhow::Result<()> {
        let ended = bench.run_ended(id);
        tokio::pin!(ended);
        loop {
            tokio::select! {
                ended = &mut ended => return ended.map(|_| ()),
                () = tokio::time::sleep_until(self.next_read) => {}
            }
            let reading = Instant::now();
            let found = bench.store().read_run(id).await?;
            if found.is_some_and(|(run, _)| run.progress.status == RunStatus::Running) {
                self.reads.push(reading.elapsed());
            }
            self.next_read = tokio::time::Instant::now() + READ_INTERVAL;
        }
    }
}
