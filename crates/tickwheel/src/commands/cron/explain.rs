//! `tickwheel cron explain`: an expression in words.
//!
//! Distances count from the time given with `--after`, so that an answer about another year makes sense.

use tickwheel_protocol::{CronPreview, LocalTime};

use crate::failure::CommandError;
use crate::output::{Output, Table, Tone, column, facts, relative};

/// Prints the words, the clock change and the firings.
pub fn print(expression: &str, preview: &CronPreview, output: &Output) -> Result<(), CommandError> {
    let mut text = summary(expression, preview, output);
    if !preview.never {
        text.push_str("\n\n");
        text.push_str(&firings(preview, output));
    }
    Ok(output.print(&text)?)
}

fn summary(expression: &str, preview: &CronPreview, output: &Output) -> String {
    let tone = if preview.never { Tone::Bad } else { Tone::Plain };
    let zone = format!("{} (tz database {})", preview.timezone, preview.tzdb_version);
    let change = preview.next_zone_change.as_ref();
    let clock_change = match change {
        Some(change) => Some(format!("{} ({})", change.at, relative(change.at.at(), preview.after))),
        None if preview.never => None,
        None => Some("none is known".into()),
    };
    facts(
        output,
        &[
            ("expression", Some(expression.to_owned()), Tone::Plain),
            ("fires", Some(preview.description.clone()), tone),
            ("next", preview.never.then(|| "never".into()), Tone::Plain),
            ("time zone", Some(zone), Tone::Plain),
            ("clock change", clock_change, Tone::Plain),
            ("its effect", change.map(|change| change.effect.clone()), Tone::Plain),
        ],
    )
}

fn firings(preview: &CronPreview, output: &Output) -> String {
    let mut table = Table::new(output, &["DAY", "LOCAL TIME", "UTC", "WHEN"].map(column));
    for firing in &preview.next {
        table.row([
            (firing.weekday().to_owned(), Tone::Plain),
            (firing.to_string(), Tone::Plain),
            (utc(*firing), Tone::Quiet),
            (relative(firing.at(), preview.after), Tone::Plain),
        ]);
    }
    table.finish()
}

fn utc(firing: LocalTime) -> String {
    // Firings are on whole seconds.
    firing.at().to_string().replace(".000Z", "Z")
}
