//! `tickwheel bench`: how fast and how punctual an engine is on this machine, with jobs that do nothing.
//!
//! The engine, the store and its durability are the real ones; only the target is missing and HTTP is left out. Figures of
//! different machines, or of one machine at different times, cannot be compared: see them beside another of the same run.

mod drain;
mod load;
mod punctuality;

use clap::Args;
use serde::Serialize;

use crate::config::{self, StoreUrl};
use crate::failure::Failure;
use crate::output::{Output, Table, Tone};
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
    /// Jobs to drain
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    jobs: usize,
    /// Jobs a second when measuring punctuality
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values_t = [100, 1_000])]
    rates: Vec<u32>,
    /// How long each rate is kept up, in seconds
    #[arg(long, value_name = "N", default_value_t = 10)]
    seconds: u32,
    /// Attempts that run at once
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    slots: usize,
}

/// One figure.
#[derive(Debug, Serialize)]
struct Figure {
    store: &'static str,
    what: String,
    value: String,
    detail: String,
}

/// Measures and prints.
pub async fn run(args: BenchArgs, output: &Output) -> Result<(), Failure> {
    let mut figures = Vec::new();
    for store in stores(&args)? {
        let name = if store.url == StoreUrl::Sqlite { "sqlite" } else { "postgres" };
        let bench = Bench::start(&store, args.slots).await?;
        output.note(&format!("{name}: draining {} jobs", args.jobs));
        figures.push(drain::measure(&bench, name, args.jobs).await?);
        for rate in &args.rates {
            output.note(&format!("{name}: {rate} jobs a second for {} s", args.seconds));
            figures.push(punctuality::measure(&bench, name, *rate, args.seconds).await?);
        }
        bench.stop().await?;
    }
    print(&figures, output)
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

fn print(figures: &[Figure], output: &Output) -> Result<(), Failure> {
    if output.json {
        let text = serde_json::to_string_pretty(figures).map_err(anyhow::Error::from)?;
        return Ok(output.print(&text)?);
    }
    let mut table = Table::new(output, &["STORE", "WHAT", "FIGURE", "DETAIL"]);
    for figure in figures {
        table.row([
            (figure.store.to_owned(), Tone::Plain),
            (figure.what.clone(), Tone::Plain),
            (figure.value.clone(), Tone::Good),
            (figure.detail.clone(), Tone::Quiet),
        ]);
    }
    Ok(output.print(&table.finish())?)
}
