//! The worker program of the conformance scenario; `sdks/conformance/README.md` says what it has to do.
//!
//! It uses the library the way a user would, and sets no option except those named there.

mod contract;
mod events;
mod handlers;
#[cfg(feature = "otel")]
mod spans;
mod submit;

use std::process::ExitCode;

use tickwheel_worker::{BatchOptions, HandlerOptions, OnLeaseLost, Worker, log_layer};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use handlers::ListedError;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => work().await,
        ["submit", action] => match submit::submit(action).await {
            Ok(answer) => {
                println!("{answer}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("usage: conformance [submit ACTION]");
            ExitCode::from(2)
        }
    }
}

async fn work() -> ExitCode {
    #[cfg(feature = "otel")]
    spans::install();
    let is_debug = std::env::var("CONFORMANCE_LOG").is_ok_and(|level| level == "debug");
    let level = if is_debug { LevelFilter::DEBUG } else { LevelFilter::INFO };
    let log =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_filter(level);
    tracing_subscriber::registry().with(log).with(log_layer()).init();

    let worker = Worker::from_env()
        .handle(handlers::echo)
        .handle_with(sleep_options(), handlers::sleep)
        .handle(handlers::block)
        .handle(handlers::fail)
        .handle_with(HandlerOptions::default().not_retryable::<ListedError>(), handlers::reject)
        .handle(handlers::retry_after)
        .handle(handlers::snooze)
        .handle(handlers::progress)
        .handle(handlers::log)
        .handle(handlers::once)
        .handle(handlers::exit)
        .handle_blocking(handlers::stubborn)
        .handle_batch(
            BatchOptions { jobs_max: 100, wait_max: std::time::Duration::from_millis(50) },
            handlers::batch_echo,
        );
    match worker.run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            error.exit_code()
        }
    }
}

fn sleep_options() -> HandlerOptions {
    let mut options = HandlerOptions::default();
    if let Some(capacity) =
        std::env::var("CONFORMANCE_SLEEP_CAPACITY").ok().and_then(|text| text.parse().ok())
    {
        options = options.capacity(capacity);
    }
    if std::env::var("CONFORMANCE_ON_LEASE_LOST").is_ok_and(|what| what == "continue") {
        options = options.on_lease_lost(OnLeaseLost::Continue);
    }
    options
}
