//! A worker that sends e-mails, to start from. `docs/guide/workers-rust.md` explains it.
//!
//! ```sh
//! cargo run -p tickwheel-worker --example mailer                          # works until Ctrl-C
//! cargo run -p tickwheel-worker --example mailer -- submit a@example.com  # in another terminal
//! ```

mod contract;
mod handler;
mod submit;

use tickwheel_worker::{Client, Worker, log_layer};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use handler::{Mailer, deliver};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => work().await,
        [verb, to] if verb == "submit" => Ok(submit::submit(to).await?),
        _ => Err("usage: mailer [submit ADDRESS]".into()),
    }
}

async fn work() -> Result<(), Box<dyn std::error::Error>> {
    let to_stderr = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let levels = tracing_subscriber::filter::LevelFilter::INFO;
    tracing_subscriber::registry().with(levels).with(to_stderr).with(log_layer()).init();

    let mailer = Mailer { from: "news@example.com".into() };
    Worker::new(Client::from_env()?)
        .name("mailer")
        .queue("mail")
        .capacity(20)
        .state(mailer)
        .handle(deliver)
        .run()
        .await?;
    Ok(())
}
