//! Tables without lines: a header, columns, nothing else.

use comfy_table::{Attribute, Cell, Color, ContentArrangement, presets};

use super::{Output, plain};

/// What a cell wants to say with its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Nothing in particular.
    Plain,
    /// It went well.
    Good,
    /// It went wrong.
    Bad,
    /// It is going on.
    Busy,
    /// It waits for somebody to do something.
    Held,
    /// It matters less.
    Quiet,
}

impl Tone {
    /// The tone of a job's status or an attempt's outcome.
    pub fn of_status(status: &str) -> Self {
        match status {
            "completed" => Self::Good,
            "failed" | "timed_out" | "lost" => Self::Bad,
            "running" | "dispatched" => Self::Busy,
            "paused" | "blocked" => Self::Held,
            "cancelled" | "released" | "skipped" => Self::Quiet,
            _ => Self::Plain,
        }
    }

    /// `text` in the colour of the tone, where colours are welcome.
    pub fn paint(self, output: &Output, text: &str) -> String {
        let code = match self {
            Self::Plain => return text.into(),
            Self::Good => 32,
            Self::Bad => 31,
            Self::Busy => 36,
            Self::Held => 33,
            Self::Quiet => 90,
        };
        if output.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.into() }
    }

    fn color(self) -> Option<Color> {
        match self {
            Self::Plain => None,
            Self::Good => Some(Color::Green),
            Self::Bad => Some(Color::Red),
            Self::Busy => Some(Color::Cyan),
            Self::Held => Some(Color::Yellow),
            Self::Quiet => Some(Color::DarkGrey),
        }
    }
}

/// A table in the making.
pub struct Table {
    table: comfy_table::Table,
    color: bool,
}

impl Table {
    /// An empty table with these columns.
    pub fn new(output: &Output, columns: &[&str]) -> Self {
        let mut this = Self::bare(output);
        let header: Vec<_> = columns.iter().map(|name| this.cell(name, Tone::Quiet)).collect();
        this.table.set_header(header);
        this
    }

    fn bare(output: &Output) -> Self {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        if output.color {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        Self { table, color: output.color }
    }

    fn cell(&self, text: &str, tone: Tone) -> Cell {
        let cell = Cell::new(plain(text));
        match tone.color() {
            Some(color) if self.color => cell.fg(color),
            _ => cell,
        }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [(String, Tone); N]) {
        let cells: Vec<_> = cells.iter().map(|(text, tone)| self.cell(text, *tone)).collect();
        self.table.add_row(cells);
    }

    /// The finished table.
    pub fn finish(mut self) -> String {
        for column in self.table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        self.table.trim_fmt()
    }
}

/// Facts about one thing: a name and a value a line. Facts without a value are left out.
pub fn facts(output: &Output, facts: &[(&str, Option<String>, Tone)]) -> String {
    let mut table = Table::bare(output);
    for (name, value, tone) in facts {
        if let Some(value) = value {
            let name = table.cell(name, Tone::Quiet).add_attribute(Attribute::Reset);
            let value = table.cell(value, *tone);
            table.table.add_row(vec![name, value]);
        }
    }
    table.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_columns_and_nothing_else() {
        let output = Output { json: false, color: false };
        let mut table = Table::new(&output, &["ID", "STATUS"]);
        table.row([("a-long-id".into(), Tone::Plain), ("failed".into(), Tone::Bad)]);
        assert_eq!(table.finish(), "ID         STATUS\na-long-id  failed");
    }

    #[test]
    fn colour_appears_only_where_it_is_welcome() {
        for color in [true, false] {
            let mut table = Table::new(&Output { json: false, color }, &["STATUS"]);
            table.row([("failed".into(), Tone::Bad)]);
            assert_eq!(table.finish().contains('\u{1b}'), color);
            assert_eq!(Tone::Bad.paint(&Output { json: false, color }, "x").contains('\u{1b}'), color);
        }
    }

    #[test]
    fn facts_without_a_value_are_left_out() {
        let output = Output { json: false, color: false };
        let shown = facts(&output, &[("id", Some("7".into()), Tone::Plain), ("error", None, Tone::Bad)]);
        assert_eq!(shown, "id  7");
    }
}
