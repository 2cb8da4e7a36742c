//! `tickwheel bench`: how fast, how punctual and how prompt an engine is on this machine, with jobs that do nothing.
//!
//! The engine, the store and its durability are the real ones; only the target is missing and HTTP is left out. Figures of
//! different machines, or of one machine at different times, cannot be compared: see them beside another of the same run.

mod drain;
mod figure;
mod latency;
mod load;
mod punctuality;

use clap::{Args, ValueEnum};

use crate::config::{self, StoreUrl};
use crate::failure::Failure;
use crate::output::{Output, Table, Tone};
use figure::Seen;
use load::Bench;

/// What to measure, and on what.
#[derive(Debug, Args)]
#[command(
    after_help = "The store must be empty. Without --store, a temporary embedded store is used, and the PostgreSQL server \
    of TICKWHEEL_TEST_POSTGRES too if that is set."
)]
pub struct BenchArgs {
    /// Where to measure: `sqlite` for a temporary embedded store, or the URL of an empty PostgreSQL database
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Directory in which the temporary embedded store is made
    #[arg(long, value_name = "DIR", default_value = ".")]
    data_dir: std::path::PathBuf,
    /// What to measure
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum)]
    #[arg(default_values = ["drain", "punctuality", "latency"])]
    only: Vec<Measure>,
    /// Jobs to drain
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    jobs: usize,
    /// Jobs a second when measuring punctuality
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = [100, 1_000])]
    rates: Vec<u32>,
    /// How long each rate is kept up, in seconds
    #[arg(long, value_name = "N", default_value_t = 10)]
    seconds: u32,
    /// Jobs to run one at a time when measuring latency
    #[arg(long, value_name = "N", default_value_t = 200)]
    single_jobs: usize,
    /// Attempts that run at once
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    slots: usize,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measure {
    /// How fast waiting jobs are worked off
    Drain,
    /// How long after their time jobs start
    Punctuality,
    /// How long a single job takes from its submission
    Latency,
}

/// Measures and prints.
pub async fn run(args: BenchArgs, output: &Output) -> Result<(), Failure> {
    let mut seen = Vec::new();
    for store in stores(&args)? {
        let bench = Bench::start(&store, args.slots).await?;
        seen.extend(measure(&bench, store_name(&store), &args, output).await?);
        bench.stop().await?;
    }
    print(&seen, output)
}

async fn measure(
    bench: &Bench,
    store: &'static str,
    args: &BenchArgs,
    output: &Output,
) -> anyhow::Result<Vec<Seen>> {
    let mut figures = Vec::new();
    if args.only.contains(&Measure::Drain) {
        output.note(&format!("{store}: draining {} jobs", args.jobs));
        figures.push(drain::measure(bench, args.jobs).await?);
    }
    for rate in args.rates.iter().filter(|_| args.only.contains(&Measure::Punctuality)) {
        output.note(&format!("{store}: {rate} jobs a second for {} s", args.seconds));
        figures.push(punctuality::measure(bench, *rate, args.seconds).await?);
    }
    if args.only.contains(&Measure::Latency) {
        output.note(&format!("{store}: {} jobs, one at a time", args.single_jobs));
        figures.push(latency::measure(bench, args.single_jobs).await?);
    }
    Ok(figures.into_iter().map(|figure| Seen { store, figure }).collect())
}

fn store_name(store: &config::Store) -> &'static str {
    if store.url == StoreUrl::Sqlite { "sqlite" } else { "postgres" }
}

fn stores(args: &BenchArgs) -> Result<Vec<config::Store>, Failure> {
    let embedded = || config::Store {
        data_dir: args.data_dir.join(format!("tickwheel-bench-{}", std::process::id())),
        ..config::Store::default()
    };
    let postgres = |url: String| config::Store { url: StoreUrl::Postgres(url), ..config::Store::default() };
    Ok(match args.store.as_deref() {
        Some("sqlite") => vec![embedded()],
        Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
            vec![postgres(url.into())]
        }
        Some(other) => {
            return Err(Failure::BadInput(format!("{other:?} is no store: use `sqlite` or postgres://…")));
        }
        None => {
            let from_env = std::env::var("TICKWHEEL_TEST_POSTGRES").ok();
            std::iter::once(embedded()).chain(from_env.map(postgres)).collect()
        }
    })
}

fn print(seen: &[Seen], output: &Output) -> Result<(), Failure> {
    if output.json {
        let text = serde_json::to_string_pretty(seen).map_err(anyhow::Error::from)?;
        return Ok(output.print(&text)?);
    }
    let mut table = Table::new(output, &["STORE", "WHAT", "FIGURE", "DETAIL"]);
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
