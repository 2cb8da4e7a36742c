//! Tables without lines: a header, columns, nothing else. What does not fit the terminal is cut or left out (see
//! [`fit`](super::fit)).

use super::fit::{Column, GAP, Needs, Shown, column, cut, fit, short_id, width_of};
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
            "cancelled" | "released" | "snoozed" | "skipped" => Self::Quiet,
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
        if output.color && !text.is_empty() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.into() }
    }
}

/// A table in the making.
pub struct Table {
    output: Output,
    columns: Vec<Column>,
    rows: Vec<Vec<(String, Tone)>>,
}

/// How the columns of a table are shown. Pages that follow each other share one, so that they stand below each other.
#[derive(Clone, Debug)]
pub struct Layout(Vec<Option<Shown>>);

impl Table {
    /// An empty table with these columns.
    pub fn new(output: &Output, columns: &[Column]) -> Self {
        Self { output: *output, columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [(String, Tone); N]) {
        debug_assert_eq!(N, self.columns.len(), "a row has a cell for every column");
        self.rows.push(cells.into_iter().map(|(text, tone)| (plain(&text), tone)).collect());
    }

    /// How it fits the terminal.
    pub fn layout(&self) -> Layout {
        let needs: Vec<Needs> = (0..self.columns.len()).map(|index| self.needs(index)).collect();
        Layout(fit(&self.columns, &needs, self.output.width))
    }

    fn needs(&self, index: usize) -> Needs {
        let heading = width_of(self.columns[index].name);
        let texts = || self.rows.iter().map(|row| row[index].0.as_str());
        let widest = |widths: &mut dyn Iterator<Item = usize>| widths.max().unwrap_or_default().max(heading);
        Needs {
            whole: widest(&mut texts().map(width_of)),
            short: widest(&mut texts().map(|text| width_of(short_id(text)))),
            is_used: texts().any(|text| !text.is_empty()),
        }
    }

    /// Its header and rows.
    pub fn finish(&self) -> String {
        let layout = self.layout();
        let header = self.header(&layout);
        std::iter::once(header).chain(self.lines(&layout)).collect::<Vec<_>>().join("\n")
    }

    /// Its rows, without a header, for a table that goes on.
    pub fn rest(&self, layout: &Layout) -> String {
        self.lines(layout).collect::<Vec<_>>().join("\n")
    }

    fn header(&self, layout: &Layout) -> String {
        let names = self.columns.iter().map(|column| (column.name, Tone::Quiet));
        self.line(layout, names)
    }

    fn lines<'a>(&'a self, layout: &'a Layout) -> impl Iterator<Item = String> + 'a {
        let cells = |row: &'a Vec<(String, Tone)>| row.iter().map(|(text, tone)| (text.as_str(), *tone));
        self.rows.iter().map(move |row| self.line(layout, cells(row)))
    }

    fn line<'a>(&self, layout: &Layout, cells: impl Iterator<Item = (&'a str, Tone)>) -> String {
        let (mut line, mut gap) = (String::new(), 0);
        for (shown, (text, tone)) in layout.0.iter().zip(cells) {
            let Some(shown) = shown else { continue };
            let text = if shown.short_ids { short_id(text) } else { text };
            // A page that came later may have wider texts: only a terminal has a reason to cut them.
            let text = if self.output.width.is_some() { cut(text, shown.width) } else { text.to_owned() };
            line.push_str(&" ".repeat(gap));
            line.push_str(&tone.paint(&self.output, &text));
            gap = GAP + shown.width.saturating_sub(width_of(&text));
        }
        line.trim_end().to_owned()
    }
}

/// Facts about one thing: a name and a value a line. Facts without a value are left out; none is cut.
pub fn facts(output: &Output, facts: &[(&str, Option<String>, Tone)]) -> String {
    let whole = Output { width: None, ..*output };
    let mut table = Table::new(&whole, &[column(""), column("")]);
    for (name, value, tone) in facts {
        if let Some(value) = value {
            table.row([((*name).to_owned(), Tone::Quiet), (value.clone(), *tone)]);
        }
    }
    table.rest(&table.layout())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIPED: Output = Output { json: false, color: false, width: None };

    fn table(output: &Output) -> Table {
        let mut table = Table::new(output, &[column("ID").id(), column("STATUS"), column("QUEUE").spare(1)]);
        let id = "01890a5d-ac96-774b-bcce-b302099a8057";
        table.row([(id.into(), Tone::Plain), ("failed".into(), Tone::Bad), ("default".into(), Tone::Plain)]);
        table
    }

    #[test]
    fn a_table_has_columns_and_nothing_else() {
        let whole = "ID                                    STATUS  QUEUE\n01890a5d-ac96-774b-bcce-b302099a8057  failed  default";
        assert_eq!(table(&PIPED).finish(), whole);
        assert_eq!(table(&Output { width: Some(53), ..PIPED }).finish(), whole);
    }

    #[test]
    fn a_narrow_terminal_gets_short_ids_and_fewer_columns() {
        let short = "ID            STATUS  QUEUE\nb302099a8057  failed  default";
        assert_eq!(table(&Output { width: Some(52), ..PIPED }).finish(), short);
        let fewer = "ID            STATUS\nb302099a8057  failed";
        assert_eq!(table(&Output { width: Some(26), ..PIPED }).finish(), fewer);
    }

    #[test]
    fn pages_that_follow_stand_below_the_first() {
        let layout = table(&PIPED).layout();
        let mut next = Table::new(&PIPED, &[column("ID").id(), column("STATUS"), column("QUEUE").spare(1)]);
        next.row([("x".into(), Tone::Plain), ("ok".into(), Tone::Good), ("q".into(), Tone::Plain)]);
        assert_eq!(next.rest(&layout), format!("x{}ok      q", " ".repeat(37)));
    }

    #[test]
    fn colour_appears_only_where_it_is_welcome_and_takes_no_room() {
        for color in [true, false] {
            let output = Output { color, ..PIPED };
            let shown = table(&output).finish();
            assert_eq!(shown.contains('\u{1b}'), color);
            assert_eq!(Tone::Bad.paint(&output, "x").contains('\u{1b}'), color);
            assert!(shown.ends_with(if color {
                "\u{1b}[31mfailed\u{1b}[0m  default"
            } else {
                "failed  default"
            }));
        }
    }

    #[test]
    fn facts_without_a_value_are_left_out_and_long_ones_are_whole() {
        let output = Output { width: Some(10), ..PIPED };
        let long = "a value that is longer than the terminal is wide";
        let shown = facts(&output, &[("id", Some(long.into()), Tone::Plain), ("error", None, Tone::Bad)]);
        assert_eq!(shown, format!("id  {long}"));
    }
}
