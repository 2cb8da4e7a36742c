//! The tree of commands. The options of each command are beside its code, in `commands/`.

use std::ops::RangeInclusive;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::commands::{
    bench, calendars, completions, config, cron, dead_letters, declared, import, jobs, queues, schedules,
    serve, worker, workers, workflows,
};
use crate::output::Output;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "tickwheel",
    version,
    about = "A job scheduler in one binary: runs jobs at their time and records every outcome",
    after_help = "Exit codes: 0 done, 1 the job or check failed, 2 bad usage or input, 3 no connection.",
    disable_help_subcommand = true
)]
pub struct Cli {
    /// The server to talk to, and how to print its answers.
    #[command(flatten)]
    pub connection: Connection,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The server to talk to, and how to print its answers.
#[derive(Debug, Args)]
#[command(next_help_heading = "Talking to a server")]
pub struct Connection {
    /// Address of the server: HOST:PORT or a URL [env: TICKWHEEL_SERVER] [default: 127.0.0.1:7180]
    #[arg(long, global = true, value_name = "ADDRESS")]
    server: Option<String>,
    /// API key [env: TICKWHEEL_API_KEY]
    #[arg(long, global = true, value_name = "KEY")]
    api_key: Option<String>,
    /// Print JSON instead of tables
    #[arg(long, global = true)]
    pub json: bool,
    /// Show all columns in full, instead of fitting tables to the terminal
    #[arg(long, global = true)]
    pub wide: bool,
}

// The environment is not read by the parser: it would count what it found there as typed, and show it in every hint.
impl Connection {
    /// The address of the server.
    pub fn server(&self) -> String {
        let address = self.server.clone().or_else(|| variable("TICKWHEEL_SERVER"));
        address.unwrap_or_else(|| "127.0.0.1:7180".into())
    }

    /// The form of the output.
    pub fn output(&self) -> Output {
        Output::detect(self.json, self.wide)
    }

    /// The API key.
    pub fn api_key(&self) -> Option<String> {
        self.api_key.clone().or_else(|| variable("TICKWHEEL_API_KEY"))
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a server: API, scheduler and workers in one process
    Serve(Box<serve::ServeArgs>),
    /// Run a worker: executes HTTP targets and commands of jobs that require its labels
    Worker(Box<worker::WorkerArgs>),
    /// Submit and manage jobs
    #[command(subcommand)]
    Jobs(jobs::JobsCommand),
    /// Create and manage schedules, and read the record of their firings
    #[command(subcommand)]
    Schedules(schedules::SchedulesCommand),
    /// Store workflows, run them, and watch the runs
    #[command(subcommand)]
    Workflows(workflows::WorkflowsCommand),
    /// Manage calendars: days on which schedules do not fire
    #[command(subcommand)]
    Calendars(calendars::CalendarsCommand),
    /// Show what `apply` would change, and which firings would be added, removed or moved
    Diff(declared::diff::DiffArgs),
    /// Make schedules, calendars and workflows match files, after showing the changes
    Apply(declared::apply::ApplyArgs),
    /// Convert configuration of other programs into files for `apply`
    #[command(subcommand)]
    Import(import::ImportCommand),
    /// List, redrive and discard jobs that were given up
    #[command(subcommand)]
    DeadLetters(dead_letters::DeadLettersCommand),
    /// List, pause and resume queues
    Queues(queues::QueuesArgs),
    /// List workers, see what they execute, and drain them
    Workers(workers::WorkersArgs),
    /// Stop starting jobs on all nodes, until `resume`
    Halt,
    /// Start jobs again after `halt`
    Resume,
    /// Show when a cron expression fires, without a server
    #[command(subcommand)]
    Cron(cron::CronCommand),
    /// Check and show the configuration of a server
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Measure throughput, punctuality and latency on this machine
    Bench(bench::BenchArgs),
    /// Print a shell completion script
    Completions(completions::CompletionsArgs),
}

/// The command tree, for completions and for the reference.
pub fn tree() -> clap::Command {
    Cli::command()
}

/// Parses a whole number. If it is not in the range, the message says which numbers are.
pub fn whole(
    range: RangeInclusive<u32>,
) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.trim().parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| match (range.start(), range.end()) {
            (least, &u32::MAX) => format!("expected a whole number, {least} or more"),
            (least, most) => format!("expected a whole number from {least} to {most}"),
        })
    }
}

/// Parses a fraction.
pub fn part(text: &str) -> Result<f64, String> {
    let part = text.trim().parse().ok().filter(|part| (0.0..=1.0).contains(part));
    part.ok_or_else(|| "expected a number from 0 to 1, such as 0.1".into())
}

/// Parses one of a fixed set of words. `--help` and completions show them too.
pub fn one_of<T>(words: &'static [T], word: fn(T) -> &'static str) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let names: Vec<_> = words.iter().map(|known| word(*known)).collect();
    PossibleValuesParser::new(names).map(move |said| {
        let known = words.iter().copied().find(|known| word(*known) == said);
        known.expect("the parser before this one lets only these words through")
    })
}
