//! Calendar files.
//!
//! The input is a file as it is.
//!
//! - Every day that is found is a day of the calendar that can be written and read, and there are not too many.
//! - How lines end and where they are folded does not matter.
//! - A file that is read twice over names the same days.
//! - Whatever cannot be read is refused with its line.

use tickwheel_api::ics::{self, Found};
use tickwheel_core::schedule::calendar::{CALENDAR_DAYS_MAX, parse_date};

const THIS_YEAR: i32 = 2026;

/// Checks what the module says.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let found = match ics::read(text, THIS_YEAR) {
        Ok(found) => found,
        Err(refusal) => {
            let words = refusal.to_string();
            let line = words.strip_prefix("line ").and_then(|rest| rest.split(':').next()?.parse().ok());
            let lines = text.split('\n').count();
            assert!(line.is_some_and(|line: usize| (1..=lines).contains(&line)), "{words}");
            return;
        }
    };
    check_found(&found);
    check_layout(text, &found);
    check_twice(text, &found);
}

fn check_found(found: &Found) {
    assert!(found.days.len() <= CALENDAR_DAYS_MAX);
    assert!(found.cancelled + found.repeats_ignored <= found.events, "{found:?}");
    for day in &found.days {
        assert_eq!(parse_date(&day.to_string()), Some(*day), "{day}");
    }
}

fn check_layout(text: &str, found: &Found) {
    // A carriage return alone is not the end of a line.
    if !text.contains('\r') {
        assert_eq!(ics::read(&text.replace('\n', "\r\n"), THIS_YEAR).as_ref(), Ok(found));
    }
    let folded: Vec<String> = text.trim_start_matches('\u{feff}').split('\n').map(folded).collect();
    assert_eq!(ics::read(&folded.join("\n"), THIS_YEAR).as_ref(), Ok(found), "{folded:?}");
}

/// The line with a fold in its middle.
fn folded(line: &str) -> String {
    let chars = line.chars().count();
    // A carriage return at the end of the line is part of it here, and a fold before it would leave it alone.
    if chars < 4 {
        return line.to_owned();
    }
    let middle = line.char_indices().nth(chars / 2).map_or(0, |(at, _)| at);
    format!("{}\r\n {}", &line[..middle], &line[middle..])
}

fn check_twice(text: &str, found: &Found) {
    // A blank before the second half would make it part of the last line.
    let twice = format!("{text}\n{}", text.trim_start_matches('\u{feff}').trim_start());
    match ics::read(&twice, THIS_YEAR) {
        Ok(again) => assert_eq!((&again.days, again.events), (&found.days, found.events * 2)),
        // The work that a file may cost is bounded, and it is twice as much now.
        Err(refusal) => assert!(refusal.to_string().ends_with("together"), "{refusal}"),
    }
}
