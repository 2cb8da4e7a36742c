//! `tickwheel cron next`. Scripts rely on its output: one RFC 3339 time per line, and nothing else.

use tickwheel_protocol::CronPreview;

use crate::failure::CommandError;
use crate::output::Output;

/// Prints the firings.
pub fn print(preview: &CronPreview, output: &Output) -> Result<(), CommandError> {
    if preview.never {
        output.note("never: no such date up to the year 9999");
        return Ok(());
    }
    let lines: Vec<_> = preview.next.iter().map(ToString::to_string).collect();
    Ok(output.print(&lines.join("\n"))?)
}
