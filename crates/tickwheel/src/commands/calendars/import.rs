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
    after_help = "All-day events name their days, others the date they start on. Yearly repetition is followed ten years ahead, any \
    other is not.\n\n\
    Examples:\n  \
    tickwheel calendars import holidays.ics\n  \
    tickwheel calendars import feed.ics --name holidays --replace"
)]
pub struct ImportArgs {
    /// The file (`-`: standard input)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Name of the calendar [default: that of the file without its ending]
    #[arg(long, value_name = "CALENDAR")]
    name: Option<String>,
    /// Forget the days that are not in the file
    #[arg(long)]
    replace: bool,
}

/// Adds the days of a file.
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
            "{count} of {of} events repeat in a way that is not followed: only their first day was taken"
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
    stem.map(str::to_owned)
        .ok_or_else(|| CommandError::BadInput("say how the calendar is to be called, with --name".into()))
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
