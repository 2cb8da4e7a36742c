//! Why a text is no cron expression, in words a person can act on.

use super::field::Field;

/// What is wrong with an expression: where, what was written, and what could be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", .field.map(|f| format!("{f}: ")).unwrap_or_default())]
pub struct CronError {
    /// The field at fault; none if it is the expression as a whole.
    pub field: Option<Field>,
    /// The offending part, as it was written; shortened if it is very long.
    pub value: String,
    reason: String,
}

const VALUE_CHARS_MAX: usize = 40;

impl CronError {
    /// The expression as a whole is wrong; `reason` makes a sentence after the value.
    pub(in crate::schedule) fn whole(value: &str, reason: impl FnOnce(&str) -> String) -> Self {
        Self { field: None, value: shortened(value), reason: reason(&printable(value)) }
    }

    /// One field is wrong; `reason` gets the value as it can be printed.
    pub(super) fn in_field(field: Field, value: &str, reason: impl FnOnce(&str) -> String) -> Self {
        Self { field: Some(field), value: shortened(value), reason: reason(&printable(value)) }
    }
}

fn shortened(value: &str) -> String {
    match value.char_indices().nth(VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

/// Control characters would garble a terminal or a log line.
fn printable(value: &str) -> String {
    shortened(value)
        .chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] })
        .collect()
}
