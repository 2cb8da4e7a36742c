//! Load over the public HTTP API, and the endpoint its jobs call.
//!
//! One thread does it all, over connections that stay open, with requests that are made beforehand: on a machine with
//! two cores, what the generator uses the server lacks. `calibrate` shows what the generator itself can do: the same
//! submissions against an endpoint on the other core that reads and answers and does nothing else.
//!
//! One JSON object on standard output says what was seen; percentiles are for whoever reads it.

mod clock;
mod drain;
mod http;
mod idle;
mod jobs;
mod lag;
mod server;
mod steady;
mod submit;
mod target;
mod workers;

use std::net::SocketAddr;

use anyhow::{Context as _, bail};
use server::Server;

const USAGE: &str = "usage: load submit ADDRESS IN_FLIGHT BATCH JOBS | load calibrate IN_FLIGHT BATCH JOBS
       load drain ADDRESS JOBS | load idle ADDRESS JOBS | load steady ADDRESS RATE SECONDS
       load lag ADDRESS RATE SECONDS | load burst ADDRESS JOBS
       load worker-drain ADDRESS JOBS | load worker-lag ADDRESS RATE SECONDS | load worker-idle ADDRESS JOBS
       load worker-together ADDRESS JOBS | load worker-fill ADDRESS hold|unserved JOBS";

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let seen = match words[..] {
        ["submit", address, in_flight, batch, jobs] => {
            submit::measure(server(address)?, number(in_flight)?, number(batch)?, number(jobs)?).await?
        }
        ["calibrate", in_flight, batch, jobs] => {
            let nothing = Server::at(target::on_a_thread_of_its_own()?);
            submit::measure(nothing, number(in_flight)?, number(batch)?, number(jobs)?).await?
        }
        ["drain", address, jobs] => drain::measure(server(address)?, number(jobs)?).await?,
        ["lag", address, rate, seconds] => {
            lag::measure(server(address)?, number(rate)?, number(seconds)?).await?
        }
        ["burst", address, jobs] => lag::measure_burst(server(address)?, number(jobs)?).await?,
        ["steady", address, rate, seconds] => {
            steady::measure(server(address)?, number(rate)?, number(seconds)?).await?
        }
        ["worker-drain", address, jobs] => workers::drain(server(address)?, number(jobs)?).await?,
        ["worker-lag", address, rate, seconds] => {
            workers::lag(server(address)?, number(rate)?, number(seconds)?).await?
        }
        ["worker-idle", address, jobs] => workers::idle(server(address)?, number(jobs)?).await?,
        ["worker-together", address, jobs] => workers::together(server(address)?, number(jobs)?).await?,
        ["worker-fill", address, name, jobs] => workers::fill(server(address)?, name, number(jobs)?).await?,
        ["idle", address, jobs] => idle::measure(server(address)?, number(jobs)?).await?,
        _ => bail!(USAGE),
    };
    println!("{seen}");
    Ok(())
}

fn server(word: &str) -> anyhow::Result<Server> {
    let address: SocketAddr = word.parse().with_context(|| format!("{word:?} is no address\n{USAGE}"))?;
    Ok(Server::at(address))
}

fn number(word: &str) -> anyhow::Result<usize> {
    word.parse().with_context(|| format!("{word:?} is no number\n{USAGE}"))
}
