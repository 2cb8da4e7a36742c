//! Floors: how fast the stores are when nothing but the writes themselves is done.
//!
//! A job costs three writes: it is inserted, it is claimed (an update), it is settled (a delete and an insert into the
//! finished ones). Here they are done in batches of 500 on narrow rows by nobody who schedules, checks or decides
//! anything, with the durability of the real thing: every batch is on disk before the next one starts. A scheduler on
//! the same store cannot be faster.
//!
//! One JSON object on standard output says what was seen.

mod fsync;
mod jobs;
mod postgres;
mod sqlite;

use std::path::Path;

use anyhow::{Context as _, bail};

const USAGE: &str = "usage: floors postgres URL CONNECTIONS JOBS | floors sqlite DIRECTORY JOBS | floors fsync DIRECTORY WRITES";

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let seen = match words[..] {
        ["postgres", url, connections, jobs] => postgres::measure(url, number(connections)?, number(jobs)?)?,
        ["sqlite", directory, jobs] => sqlite::measure(Path::new(directory), number(jobs)?)?,
        ["fsync", directory, writes] => fsync::measure(Path::new(directory), number(writes)?)?,
        _ => bail!(USAGE),
    };
    println!("{seen}");
    Ok(())
}

fn number(word: &str) -> anyhow::Result<usize> {
    word.parse().with_context(|| format!("{word:?} is no number\n{USAGE}"))
}
