//! Runs of a workflow, each in turn with as many plain jobs: what does it cost that tasks wait for each other?
//!
//! Both count from their submission until the last end is written. Beside a chain, in which no two tasks can go on at once, the plain jobs come
//! one after the other too: each is submitted when the one before has ended.

use std::time::{Duration, Instant};

use anyhow::ensure;
use tickwheel_core::ports::Clock as _;
use tickwheel_engine::SystemClock;

use super::figure::{Effort, Figure, Spread};
use super::graphs::Shape;
use super::jobs::{WITH_RESULT, new_job, of_type};
use super::load::Bench;
use super::usage::{Meter, Taken};

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub shape: Shape,
    pub tasks: usize,
    pub rounds: usize,
    pub meter: Meter,
}

/// What so many rounds took.
#[derive(Default)]
struct Sum {
    rounds: Vec<Duration>,
    cpu: Taken,
}

pub(super) async fn measure(bench: &Bench, load: Load) -> anyhow::Result<Figure> {
    let Load { shape, tasks, rounds, .. } = load;
    ensure!(rounds > 0, "nothing is measured in no round");
    let workflow = bench.store_workflow(shape, tasks).await?;
    let (mut as_run, mut as_jobs, mut starts) = (Sum::default(), Sum::default(), Vec::new());
    for round in 0..=rounds {
        // Who comes first changes with every round.
        for side in 0..2 {
            if (round + side) % 2 == 0 {
                starts.push(run(bench, &workflow, load, &mut as_run).await?);
            } else {
                plain(bench, load, &mut as_jobs).await?;
            }
        }
        if round == 0 {
            // The first one finds nothing prepared: not the definition, not a statement.
            (as_run, as_jobs) = (Sum::default(), Sum::default());
            starts.clear();
        }
    }
    Ok(Figure::Workflow {
        shape,
        tasks,
        rounds,
        start_ms: Spread::of(starts.into_iter()),
        as_run: as_run.effort(tasks),
        as_jobs: as_jobs.effort(tasks),
    })
}

/// Answers how long it took until the run was stored.
async fn run(bench: &Bench, workflow: &str, load: Load, sum: &mut Sum) -> anyhow::Result<Duration> {
    let metering = load.meter.start()?;
    let begun = Instant::now();
    let id = bench.start_run(workflow).await?;
    let stored = begun.elapsed();
    let ended = bench.run_ended(id).await?;
    sum.cpu += metering.stop()?;
    sum.rounds.push(ended - begun);
    bench.finished(load.tasks).await;
    Ok(stored)
}

async fn plain(bench: &Bench, load: Load, sum: &mut Sum) -> anyhow::Result<()> {
    let metering = load.meter.start()?;
    let begun = Instant::now();
    if load.shape == Shape::Deep {
        for _ in 0..load.tasks {
            bench.run_one().await?;
        }
    } else {
        let due = SystemClock.now();
        let job = || match load.shape {
            Shape::Data => of_type(WITH_RESULT, new_job(due)),
            _ => new_job(due),
        };
        bench.submit_all((0..load.tasks).map(|_| job())).await?;
    }
    bench.finished(load.tasks).await;
    sum.rounds.push(begun.elapsed());
    sum.cpu += metering.stop()?;
    Ok(())
}

impl Sum {
    fn effort(self, tasks: usize) -> Effort {
        let count = (tasks * self.rounds.len()) as f64;
        let took: Duration = self.rounds.iter().sum();
        let micros_each = |time: Duration| time.as_secs_f64() * 1e6 / count;
        Effort {
            per_s: count / took.as_secs_f64(),
            all_ms: Spread::of(self.rounds.into_iter()),
            cpu_us: micros_each(self.cpu.own),
            database_cpu_us: micros_each(self.cpu.database),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effort_is_that_of_one_task_over_all_rounds() {
        let cpu = Taken { own: Duration::from_millis(4), database: Duration::from_millis(2) };
        let rounds = vec![Duration::from_millis(10), Duration::from_millis(30)];
        let effort = Sum { rounds, cpu }.effort(100);
        assert!((effort.per_s - 5_000.0).abs() < 1e-6);
        assert!((effort.cpu_us - 20.0).abs() < 1e-9 && (effort.database_cpu_us - 10.0).abs() < 1e-9);
    }
}
