//! `tickwheel bench`: measures throughput, punctuality and latency of an engine on this machine, with jobs that do
//! nothing.
//!
//! The engine, the store and its durability are the real ones; only the target and HTTP are left out. Figures from
//! different machines, or from one machine at different times, cannot be compared. Compare a figure only with another
//! of the same run.

mod beside;
mod burst;
mod cron;
mod drain;
mod end_to_end;
mod fairness;
mod figure;
mod fill;
mod graphs;
mod jobs;
mod latency;
mod load;
mod parked;
mod punctuality;
mod schedules;
mod stores;
mod usage;
mod workflows;

use clap::{Args, ValueEnum};

use crate::failure::CommandError;
use crate::output::{Output, Table, Tone, column};
use figure::{Figure, Seen};
use fill::Contents;
use graphs::Shape;
use load::{Bench, ShiftedClock};
use schedules::Pattern;
use stores::BenchStore;
use usage::Meter;

/// What to measure, and on which store.
#[derive(Debug, Args)]
#[command(
    after_help = "The store must be empty unless --keep is given. Without --store, a temporary embedded store is used, and the \
    PostgreSQL server of TICKWHEEL_TEST_POSTGRES too if that is set."
)]
pub struct BenchArgs {
    /// Store to measure: `sqlite` for an embedded store, or the URL of a PostgreSQL database
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Directory for the temporary embedded store
    #[arg(long, value_name = "DIR", default_value = ".")]
    data_dir: std::path::PathBuf,
    /// Measure on the store as it is and keep it; an embedded one is then in the directory itself
    #[arg(long)]
    keep: bool,
    /// Before measuring, add this many jobs that are due between tomorrow and a month from now
    #[arg(long, value_name = "N", default_value_t = 0)]
    fill_waiting: usize,
    /// Before measuring, add this many completed jobs
    #[arg(long, value_name = "N", default_value_t = 0)]
    fill_finished: usize,
    /// Before measuring, add this many schedules
    #[arg(long, value_name = "N", default_value_t = 0)]
    fill_schedules: usize,
    /// When those schedules fire
    #[arg(long, value_enum, value_name = "PATTERN", default_value = "spread")]
    pattern: Pattern,
    /// What to measure
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum)]
    #[arg(default_values = ["drain", "punctuality", "latency"])]
    only: Vec<Measure>,
    /// Jobs to drain, in a burst, parked, or of the large tenant
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    jobs: usize,
    /// Jobs per second for punctuality, end-to-end and beside-workflows
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = [100, 1_000])]
    rates: Vec<u32>,
    /// How long to keep up each rate, and to watch schedules, in seconds
    #[arg(long, value_name = "N", default_value_t = 10)]
    seconds: u32,
    /// Jobs to run one at a time for latency
    #[arg(long, value_name = "N", default_value_t = 200)]
    single_jobs: usize,
    /// Shapes of the graphs for workflows
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum)]
    #[arg(default_values = ["wide", "deep", "layered", "data"])]
    shapes: Vec<Shape>,
    /// Tasks of a workflow
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    tasks: usize,
    /// Runs of each shape
    #[arg(long, value_name = "N", default_value_t = 10)]
    rounds: usize,
    /// Process id of the database server on this machine, to count its processor time for workflows
    #[arg(long, value_name = "PID")]
    database_pid: Option<u32>,
    /// Attempts that run at once
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    slots: usize,
}

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measure {
    /// How fast waiting jobs are executed
    Drain,
    /// How long after their time jobs start
    Punctuality,
    /// How long a single job takes from its submission
    Latency,
    /// How long after submission jobs start that arrive one by one at a steady rate
    EndToEnd,
    /// How long it takes until the last of many jobs that are due in the same second has started
    Burst,
    /// How long ten jobs wait when many jobs of another tenant are due before them
    Fairness,
    /// How many next firings of cron expressions one thread computes
    Cron,
    /// How long it takes to give a job to a worker while very many wait whose workers do not ask for any
    Parked,
    /// How late the jobs of the schedules in the store start, by a clock set to the moment before the first of them
    Schedules,
    /// How long workflow runs take, each compared with as many plain jobs
    Workflows,
    /// How long plain jobs wait beside workflow runs
    BesideWorkflows,
    /// Nothing: only fill the store
    Fill,
}

/// Measures and prints the figures.
pub async fn run(args: BenchArgs, output: &Output) -> Result<(), CommandError> {
    let mut seen = Vec::new();
    for bench_store in stores::asked_for(&args)? {
        let figures = measure_on(&bench_store, &args, output).await?;
        seen.extend(figures.into_iter().map(|figure| Seen { store: bench_store.name(), figure }));
    }
    print(&seen, output)
}

async fn measure_on(
    bench_store: &BenchStore,
    args: &BenchArgs,
    output: &Output,
) -> anyhow::Result<Vec<Figure>> {
    let opened = bench_store.open().await?;
    let mut figures = Vec::new();
    let contents = Contents {
        waiting: args.fill_waiting,
        finished: args.fill_finished,
        schedules: args.fill_schedules,
        pattern: args.pattern,
    };
    if contents.waiting + contents.finished + contents.schedules > 0 {
        output.note(&format!("{}: filling the store", bench_store.name()));
        figures.push(fill::fill(&opened.store, contents).await?);
    }
    // Nothing but the schedules is measured by another clock than everybody's.
    let clock = match args.only.as_slice() {
        [Measure::Schedules] => schedules::clock_before_the_first(&opened.store).await?,
        _ => ShiftedClock::default(),
    };
    let bench = Bench::start(opened, args.slots, bench_store.temporary(), clock).await?;
    for task in tasks(args) {
        output.note(&format!("{}: {}", bench_store.name(), task.words()));
        figures.push(task.measure(&bench).await?);
    }
    bench.stop().await?;
    Ok(figures)
}

/// One measurement and its load.
enum Task {
    Drain { jobs: usize },
    Punctuality { rate: u32, seconds: u32 },
    Latency { jobs: usize },
    EndToEnd { rate: u32, seconds: u32 },
    Burst { jobs: usize },
    Fairness { jobs: usize },
    Cron,
    Parked { jobs: usize },
    Schedules { seconds: u32 },
    Workflows(workflows::Load),
    BesideWorkflows { tasks: usize, rate: u32, seconds: u32 },
}

impl Task {
    fn words(&self) -> String {
        match self {
            Self::Drain { jobs } => format!("draining {jobs} jobs"),
            Self::Punctuality { rate, seconds } => format!("{rate} jobs a second for {seconds} s"),
            Self::Latency { jobs } => format!("{jobs} jobs, one at a time"),
            Self::EndToEnd { rate, seconds } => format!("submitting {rate} jobs a second for {seconds} s"),
            Self::Burst { jobs } => format!("{jobs} jobs due in the same second"),
            Self::Fairness { jobs } => format!("{jobs} jobs of one tenant before a few of another"),
            Self::Cron => "next firings of cron expressions".into(),
            Self::Parked { jobs } => format!("taking jobs beside {jobs} that are parked"),
            Self::Schedules { seconds } => format!("schedules, {seconds} s from the first firing"),
            Self::Workflows(load) => format!("{} runs of {} tasks, {}", load.rounds, load.tasks, load.shape),
            Self::BesideWorkflows { tasks, rate, seconds } => {
                format!("{rate} jobs a second for {seconds} s beside runs of {tasks} tasks")
            }
        }
    }

    async fn measure(&self, bench: &Bench) -> anyhow::Result<Figure> {
        match *self {
            Self::Drain { jobs } => drain::measure(bench, jobs).await,
            Self::Punctuality { rate, seconds } => punctuality::measure(bench, rate, seconds).await,
            Self::Latency { jobs } => latency::measure(bench, jobs).await,
            Self::EndToEnd { rate, seconds } => end_to_end::measure(bench, rate, seconds).await,
            Self::Burst { jobs } => burst::measure(bench, jobs).await,
            Self::Fairness { jobs } => fairness::measure(bench, jobs).await,
            Self::Cron => cron::measure(),
            Self::Parked { jobs } => parked::measure(jobs),
            Self::Schedules { seconds } => schedules::measure(bench, seconds).await,
            Self::Workflows(load) => workflows::measure(bench, load).await,
            Self::BesideWorkflows { tasks, rate, seconds } => {
                beside::measure(bench, tasks, rate, seconds).await
            }
        }
    }
}

fn tasks(args: &BenchArgs) -> Vec<Task> {
    let (jobs, seconds) = (args.jobs, args.seconds);
    let rates = || args.rates.iter().copied();
    let (tasks, rounds, meter) = (args.tasks, args.rounds, Meter { database_pid: args.database_pid });
    let shaped = |shape| Task::Workflows(workflows::Load { shape, tasks, rounds, meter });
    let tasks = args.only.iter().map(|measure| match measure {
        Measure::Drain => vec![Task::Drain { jobs }],
        Measure::Punctuality => rates().map(|rate| Task::Punctuality { rate, seconds }).collect(),
        Measure::Latency => vec![Task::Latency { jobs: args.single_jobs }],
        Measure::EndToEnd => rates().map(|rate| Task::EndToEnd { rate, seconds }).collect(),
        Measure::Burst => vec![Task::Burst { jobs }],
        Measure::Fairness => vec![Task::Fairness { jobs }],
        Measure::Cron => vec![Task::Cron],
        Measure::Parked => vec![Task::Parked { jobs }],
        Measure::Schedules => vec![Task::Schedules { seconds }],
        Measure::Workflows => args.shapes.iter().copied().map(shaped).collect(),
        Measure::BesideWorkflows => {
            rates().map(|rate| Task::BesideWorkflows { tasks, rate, seconds }).collect()
        }
        Measure::Fill => Vec::new(),
    });
    tasks.flatten().collect()
}

fn print(seen: &[Seen], output: &Output) -> Result<(), CommandError> {
    if output.json {
        let text = serde_json::to_string_pretty(seen).map_err(anyhow::Error::from)?;
        return Ok(output.print(&text)?);
    }
    let mut table = Table::new(output, &["STORE", "WHAT", "FIGURE", "DETAIL"].map(column));
    for Seen { store, figure } in seen {
        let [what, value, detail] = figure.words();
        table.row([
            ((*store).to_owned(), Tone::Plain),
            (what, Tone::Plain),
            (value, Tone::Good),
            (detail, Tone::Quiet),
        ]);
    }
    Ok(output.print(&table.finish())?)
}
