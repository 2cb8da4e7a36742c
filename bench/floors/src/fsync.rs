//! What one durable write costs: 4 KiB appended and flushed to the disk.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::ensure;
use serde_json::{Value, json};

const BLOCK: [u8; 4096] = [0x5a; 4096];

/// Every latency in milliseconds.
pub fn measure(directory: &Path, writes: usize) -> anyhow::Result<Value> {
    ensure!(writes > 0, "at least one write is needed");
    let path = directory.join("fsync");
    let mut file = File::create(&path)?;
    let mut samples_ms = Vec::with_capacity(writes);
    for _ in 0..writes {
        let begun = Instant::now();
        file.write_all(&BLOCK)?;
        file.sync_data()?;
        samples_ms.push(begun.elapsed().as_secs_f64() * 1_000.0);
    }
    std::fs::remove_file(&path)?;
    Ok(json!({ "samples_ms": samples_ms }))
}
