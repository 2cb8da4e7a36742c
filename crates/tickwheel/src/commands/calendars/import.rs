//! `tickwheel calendars import`.

use std::path::{Path, PathBuf};

use clap::Args;
use tickwheel_protocol::CalendarImport;

use super::CommandContext;
use crate::commands::input::read_file;
use crate::failure::CommandError;
use crate::output::plain;

/// Options of `calendars import`.
#[derive(Debug, Args)]
#[command(
    after_help = "An all-day event adds all its days, any other event the date on which it starts. Yearly repetition is expanded for ten \
    years. Other repetition is ignored.\n\n\
    Examples:\n  \
    tickwheel calendars import holidays.ics\n  \
    tickwheel calendars import feed.ics --name holidays --replace"
)]
pub struct ImportArgs {
    /// File to import (`-` for standard input)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Name of the calendar [default: the file name without its extension]
    #[arg(long, value_name = "CALENDAR")]
    name: Option<String>,
    /// Remove the days that are not in the file
    #[arg(long)]
    replace: bool,
}

/// Imports the days of a file.
pub async fn run(args: ImportArgs, context: &CommandContext) -> Result<(), CommandError> {
    let name = args.name.map_or_else(|| name_of(&args.file), Ok)?;
    let text = read_file(&args.file)?;
    let call = context.client.post(&["calendars", &name, "import"]);
    let call = call.query("replace", args.replace.then_some("true")).text("text/calendar", text);
    let answer = call.send().await?;
    let import: CalendarImport = answer.read()?;
    if import.repeats_ignored > 0 {
        let (count, of) = (import.repeats_ignored, import.events);
        context.output.note(&format!(
            "{count} of {of} events repeat by a rule that is not supported: only their first day was imported"
        ));
    }
    context.print(&answer, |_| Ok(summary(&import)))
}

fn summary(import: &CalendarImport) -> String {
    let CalendarImport { events, days, added, total, .. } = import;
    let name = plain(&import.name);
    format!("{name}: {days} days in {events} events, {added} of them new; {total} days in the calendar")
}

fn name_of(file: &Path) -> Result<String, CommandError> {
    let stem = file.file_stem().and_then(|stem| stem.to_str()).filter(|stem| *stem != "-");
    stem.map(str::to_owned).ok_or_else(|| CommandError::BadInput("name the calendar with --name".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calendar_is_called_like_its_file_unless_that_has_no_name() {
        assert_eq!(name_of(Path::new("/tmp/holidays.de.ics")).unwrap(), "holidays.de");
        assert!(name_of(Path::new("-")).is_err());
    }
}
