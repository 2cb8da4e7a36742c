//! What was seen, in numbers for machines and in words for people.

use std::time::Duration;

use serde::Serialize;

use super::graphs::Shape;

/// One figure, and the store it was seen on.
#[derive(Debug, Serialize)]
pub struct Seen {
    /// Which store.
    pub store: &'static str,
    /// The figure.
    #[serde(flatten)]
    pub figure: Figure,
}

/// One figure.
#[derive(Debug, Serialize)]
#[serde(tag = "measure", rename_all = "snake_case")]
pub enum Figure {
    /// How fast waiting jobs are worked off, and how fast they had been submitted, one batch after the other.
    Drain { jobs: usize, submit_per_s: f64, drain_per_s: f64 },
    /// How long after their time jobs start.
    Punctuality { jobs: usize, rate: u32, lag_ms: Spread },
    /// How long a single job takes from its submission.
    Latency { jobs: usize, to_start_ms: Spread, to_completed_ms: Spread },
    /// How long after their submission jobs start that come at a steady rate.
    EndToEnd { jobs: usize, rate: u32, lag_ms: Spread },
    /// How long after the beginning of a second jobs start that are all due then.
    Burst { jobs: usize, lag_ms: Spread },
    /// How long the few jobs of one tenant wait beside the many of another, and how long those do.
    Fairness { jobs: usize, few_wait_ms: Spread, many_wait_ms: Spread },
    /// How many next firings one thread works out.
    Cron { expressions: usize, next_per_s: f64 },
    /// How long it takes to give one job to a worker while others are parked.
    Parked { jobs: usize, take_us: f64 },
    /// How long after their nominal time the jobs of schedules start, and over how many seconds; the memory of the process.
    Schedules { fired: usize, seconds: f64, lag_ms: Spread, peak_mib: u64 },
    /// What runs of a workflow take, and what as many plain jobs do; how long it takes until a run is stored.
    Workflow { shape: Shape, tasks: usize, rounds: usize, start_ms: Spread, as_run: Effort, as_jobs: Effort },
    /// How long plain jobs wait beside runs of a workflow and without, and how long it takes to start such a run and to read it.
    BesideWorkflows {
        tasks: usize,
        rate: u32,
        runs: usize,
        start_ms: Spread,
        reads: usize,
        read_ms: Spread,
        lag_ms: Spread,
        lag_alone_ms: Spread,
        peak_mib: u64,
    },
    /// What was put into the store beforehand.
    Fill { waiting: usize, finished: usize, schedules: usize, seconds: f64 },
}

impl Figure {
    /// What it is, the figure itself, and what else is worth knowing.
    pub fn words(&self) -> [String; 3] {
        match self {
            Self::Drain { jobs, submit_per_s, drain_per_s } => [
                "drain".into(),
                format!("{drain_per_s:.0} jobs/s"),
                format!(
                    "{jobs} jobs, submitted at {submit_per_s:.0} jobs/s in batches of 500, one after the other"
                ),
            ],
            Self::Punctuality { jobs, rate, lag_ms } => {
                [format!("lag at {rate}/s"), lag_ms.body(), format!("{}, {jobs} jobs", lag_ms.tail())]
            }
            Self::Latency { jobs, to_start_ms, to_completed_ms } => [
                "submit to start".into(),
                to_start_ms.body(),
                format!("to completed {}, {jobs} jobs", to_completed_ms.body()),
            ],
            Self::EndToEnd { jobs, rate, lag_ms } => {
                [format!("end to end at {rate}/s"), lag_ms.body(), format!("{}, {jobs} jobs", lag_ms.tail())]
            }
            Self::Burst { jobs, lag_ms } => [
                "burst".into(),
                format!("last start after {:.0} ms", lag_ms.max),
                format!("{}, {jobs} jobs", lag_ms.body()),
            ],
            Self::Fairness { jobs, few_wait_ms, many_wait_ms } => [
                "wait of a few".into(),
                format!("p50 {:.1} ms, max {:.1} ms", few_wait_ms.p50, few_wait_ms.max),
                format!(
                    "beside {jobs} jobs of another tenant, the last of which waits {:.0} ms",
                    many_wait_ms.max
                ),
            ],
            Self::Cron { expressions, next_per_s } => [
                "next firing".into(),
                format!("{:.1} million/s", next_per_s / 1e6),
                format!("one thread, {expressions} everyday expressions"),
            ],
            Self::Parked { jobs, take_us } => [
                "taking a job".into(),
                format!("{take_us:.2} µs"),
                format!("beside {jobs} parked ones, without a store"),
            ],
            Self::Schedules { fired, seconds, lag_ms, peak_mib } => [
                "firings".into(),
                format!("{}, last {:.0} ms", lag_ms.body(), lag_ms.max),
                format!("{fired} firings over {seconds:.1} s, {peak_mib} MiB"),
            ],
            Self::Workflow { shape, tasks, rounds, start_ms, as_run, as_jobs } => [
                format!("run, {shape}"),
                format!("{}, {:.2} times a plain job", as_run.words(), as_run.cpu() / as_jobs.cpu()),
                format!(
                    "{tasks} tasks, {rounds} runs, stored within {:.1} ms; plain jobs {}",
                    start_ms.p50,
                    as_jobs.words()
                ),
            ],
            Self::BesideWorkflows { tasks, rate, runs, start_ms, read_ms, lag_ms, lag_alone_ms, .. } => [
                format!("lag at {rate}/s beside runs"),
                lag_ms.body(),
                format!(
                    "alone {}; {runs} runs of {tasks} tasks, stored within {:.0} ms, read within {:.0} ms",
                    lag_alone_ms.body(),
                    start_ms.p50,
                    read_ms.p50
                ),
            ],
            Self::Fill { waiting, finished, schedules, seconds } => [
                "fill".into(),
                format!("{waiting} waiting, {finished} finished, {schedules} schedules"),
                format!("written in {seconds:.1} s"),
            ],
        }
    }
}

/// What it takes to do something many times: how fast, and for each one how much processor time, of this process and of the database server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effort {
    pub per_s: f64,
    pub all_ms: Spread,
    pub cpu_us: f64,
    pub database_cpu_us: f64,
}

impl Effort {
    fn cpu(&self) -> f64 {
        self.cpu_us + self.database_cpu_us
    }

    fn words(&self) -> String {
        format!("{:.0}/s, {:.1} µs of CPU each", self.per_s, self.cpu())
    }
}

/// How a number of times are spread, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    p50: f64,
    p99: f64,
    p999: f64,
    max: f64,
}

impl Spread {
    /// Of these times; all zeros if there are none.
    pub fn of(times: impl Iterator<Item = Duration>) -> Self {
        let mut times: Vec<Duration> = times.collect();
        times.sort_unstable();
        let at = |part: f64| {
            let place = (times.len().saturating_sub(1) as f64 * part) as usize;
            times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1_000.0)
        };
        Self { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: at(1.0) }
    }

    fn body(&self) -> String {
        format!("p50 {:.1} ms, p99 {:.1} ms", self.p50, self.p99)
    }

    fn tail(&self) -> String {
        format!("p99.9 {:.1} ms, max {:.1} ms", self.p999, self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_names_the_times_at_its_places() {
        let spread = Spread::of((0..=1_000).rev().map(Duration::from_millis));
        assert_eq!(spread, Spread { p50: 500.0, p99: 990.0, p999: 999.0, max: 1_000.0 });
    }

    #[test]
    fn no_times_have_an_empty_spread() {
        assert_eq!(Spread::of(std::iter::empty()), Spread { p50: 0.0, p99: 0.0, p999: 0.0, max: 0.0 });
    }

    #[test]
    fn machines_get_numbers() {
        let figure = Figure::Drain { jobs: 2, submit_per_s: 1.5, drain_per_s: 2.5 };
        let json = serde_json::to_value(Seen { store: "sqlite", figure }).unwrap();
        let expected = serde_json::json!({
            "store": "sqlite", "measure": "drain", "jobs": 2, "submit_per_s": 1.5, "drain_per_s": 2.5
        });
        assert_eq!(json, expected);
    }
}
