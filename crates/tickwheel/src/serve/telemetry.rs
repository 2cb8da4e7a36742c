//! The log on standard error, and the metrics behind `/metrics`.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use anyhow::Context as _;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;

use super::log::{self, LogWriter};
use crate::config::{Log, LogFormat};

/// How long the end of the program waits for a log that nobody takes.
pub const LAST_LINES_TIME_MAX: Duration = Duration::from_secs(1);

/// Seconds: from a tenth of a millisecond to a minute, three a decade.
const SECONDS: [f64; 18] = [
    0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0,
    60.0,
];
/// Jobs in a commit.
const BATCH: [f64; 11] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0];
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Starts to write the log as configured. The first one in a process stays.
pub fn start_log(settings: &Log) -> io::Result<LogWriter> {
    let writer = LogWriter::start()?;
    let filter = EnvFilter::new(settings.level.as_str());
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer.clone());
    // The subscriber would print what goes wrong, and panic where that cannot be printed either.
    let builder = builder.log_internal_errors(false);
    let _ = match settings.format {
        LogFormat::Json => builder.json().try_init(),
        LogFormat::Text => builder.with_ansi(io::stderr().is_terminal()).try_init(),
    };
    Ok(writer)
}

/// Starts to collect metrics.
pub fn start_metrics() -> anyhow::Result<PrometheusHandle> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &SECONDS)?
        .set_buckets_for_metric(Matcher::Suffix("_jobs".into()), &BATCH)?
        .install_recorder()
        .context("metrics are being collected already")?;
    log::describe_metrics();
    let upkeep = handle.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(UPKEEP_INTERVAL).await;
            upkeep.run_upkeep();
        }
    });
    Ok(handle)
}
