//! The columns of a job, said once. What inserts a job, moves it to history and back, or reads it is made of this list,
//! in both stores.
//!
//! A job is in `jobs` while it waits or runs and in `finished_jobs` afterwards. Most columns are in both tables. What
//! only a live job has (its session) or only an ended one (its result) is in one, and reads as a constant from the
//! other; so a row of either table is read the same way, by place.
//!
//! Kept true, when compiling: a column that is named anywhere is in the list; a job is written with all of them.

use crate::sql_text::{SqlText, is_same};

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// `jobs`.
    Live,
    /// `finished_jobs`.
    Finished,
}

/// One column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobColumn {
    pub name: &'static str,
    /// Its type in PostgreSQL. SQLite needs none.
    pub pg_type: &'static str,
    /// The only table that has it.
    only: Option<Table>,
    /// What is read from the other one.
    elsewhere: &'static str,
}

impl JobColumn {
    const fn of(name: &'static str, pg_type: &'static str) -> Self {
        Self { name, pg_type, only: None, elsewhere: "NULL" }
    }

    const fn live(self) -> Self {
        Self { only: Some(Table::Live), ..self }
    }

    const fn finished(self) -> Self {
        Self { only: Some(Table::Finished), ..self }
    }

    const fn or(self, elsewhere: &'static str) -> Self {
        Self { elsewhere, ..self }
    }

    /// Whether the table has it.
    pub const fn is_in(&self, table: Table) -> bool {
        matches!(
            (self.only, table),
            (None, _) | (Some(Table::Live), Table::Live) | (Some(Table::Finished), Table::Finished)
        )
    }
}

/// How many of them are read: those that come first. The others repeat what the spec says, for the statements.
pub(crate) const READ_LEN: usize = 31;

/// All of them.
pub(crate) const COLUMNS: [JobColumn; 35] = [
    JobColumn::of("id", "uuid"),
    JobColumn::of("partition", "smallint"),
    JobColumn::of("tenant", "text"),
    JobColumn::of("type", "text"),
    JobColumn::of("queue", "text"),
    JobColumn::of("priority", "smallint"),
    JobColumn::of("state", "smallint"),
    JobColumn::of("execute_at", "bigint"),
    JobColumn::of("due_at", "bigint"),
    JobColumn::of("created_at", "bigint"),
    JobColumn::of("spec", "text"),
    JobColumn::of("payload", "text"),
    JobColumn::of("fan_out", "text"),
    JobColumn::of("tags", "text"),
    JobColumn::of("attempt", "integer"),
    JobColumn::of("retries", "integer"),
    JobColumn::of("lost", "integer"),
    JobColumn::of("burst_started_at", "bigint").live(),
    JobColumn::of("burst_failures", "integer").live().or("0"),
    JobColumn::of("session", "uuid").live(),
    JobColumn::of("started_at", "bigint"),
    JobColumn::of("deadline", "bigint").live(),
    JobColumn::of("cancel_requested", "boolean").live().or("false"),
    JobColumn::of("completed_at", "bigint").finished(),
    JobColumn::of("last_outcome", "smallint").finished(),
    JobColumn::of("result", "text").finished(),
    JobColumn::of("error_code", "text"),
    JobColumn::of("error_message", "text"),
    JobColumn::of("schedule_id", "uuid"),
    JobColumn::of("open_parents", "integer"),
    JobColumn::of("failed_parents", "integer"),
    JobColumn::of("target", "smallint"),
    JobColumn::of("timeout_ms", "bigint"),
    JobColumn::of("release", "smallint").live(),
    JobColumn::of("route", "uuid").live(),
];

/// The place of a column in the list. One that is not in it does not compile.
pub(crate) const fn place(name: &str) -> usize {
    let mut at = 0;
    while at < COLUMNS.len() {
        if is_same(COLUMNS[at].name, name) {
            return at;
        }
        at += 1;
    }
    panic!("a job has no such column")
}

/// The place of a column in a row that a job is read from.
macro_rules! at {
    ($name:literal) => {
        const { $crate::job_columns::place($name) }
    };
}

pub(crate) use at;

/// Some columns of a table: all of them, or those that have other values than the table's defaults.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selection {
    table: Table,
    without: [&'static [&'static str]; 2],
}

impl Selection {
    pub const fn all(table: Table) -> Self {
        Self { table, without: [&[], &[]] }
    }

    pub const fn without(table: Table, without: &'static [&'static str]) -> Self {
        let _ = list(without);
        Self { table, without: [without, &[]] }
    }

    /// The same without these too.
    pub const fn and_without(self, more: &'static [&'static str]) -> Self {
        let _ = list(more);
        Self { without: [self.without[0], more], ..self }
    }

    const fn has(&self, column: &JobColumn) -> bool {
        let [without, more] = self.without;
        column.is_in(self.table) && !is_among(column.name, without) && !is_among(column.name, more)
    }

    /// `id, partition, …`: what is inserted, or read from what was moved.
    pub const fn names(self) -> SqlText {
        self.values("", &[], &[])
    }

    /// The values of the columns in the same order: from the row `from` (`"j."`), or as one of the `given` from the row
    /// `s`, or whatever expression is `set`.
    pub const fn values(self, from: &str, given: &[&str], set: &[(&str, &str)]) -> SqlText {
        let (mut text, mut at) = (SqlText::EMPTY, 0);
        let _ = list(given);
        while at < COLUMNS.len() {
            let column = &COLUMNS[at];
            if self.has(column) {
                text = match expression(column.name, set) {
                    Some(expression) => text.with_item(expression).with(" AS ").with(column.name),
                    None if is_among(column.name, given) => text.with_item("s.").with(column.name),
                    None => text.with_item(from).with(column.name),
                };
            }
            at += 1;
        }
        text
    }

    /// `$1::uuid[], $2::bigint[], …`: the columns as arrays for PostgreSQL.
    pub const fn arrays(self) -> SqlText {
        let (mut text, mut at, mut number) = (SqlText::EMPTY, 0, 1);
        while at < COLUMNS.len() {
            if self.has(&COLUMNS[at]) {
                text = array(text, &COLUMNS[at], number);
                number += 1;
            }
            at += 1;
        }
        text
    }

    /// `?1, ?3, …`: the columns as parameters for SQLite, each numbered by its place in the list.
    pub const fn parameters(self) -> SqlText {
        let (mut text, mut at) = (SqlText::EMPTY, 0);
        while at < COLUMNS.len() {
            if self.has(&COLUMNS[at]) {
                text = text.with_item("?").with_number(at + 1);
            }
            at += 1;
        }
        text
    }

    /// The columns, for whoever has a value for each.
    pub fn columns(self) -> impl Iterator<Item = &'static JobColumn> {
        COLUMNS.iter().filter(move |column| self.has(column))
    }
}

/// `$1::uuid[], $2::integer[], …`: these columns, in this order, as arrays for PostgreSQL.
pub(crate) const fn arrays(names: &[&str]) -> SqlText {
    let (mut text, mut at) = (SqlText::EMPTY, 0);
    while at < names.len() {
        text = array(text, &COLUMNS[place(names[at])], at + 1);
        at += 1;
    }
    text
}

/// `id, attempt, …`: these columns, in this order.
pub(crate) const fn list(names: &[&str]) -> SqlText {
    let (mut text, mut at) = (SqlText::EMPTY, 0);
    while at < names.len() {
        text = text.with_item(COLUMNS[place(names[at])].name);
        at += 1;
    }
    text
}

const fn array(text: SqlText, column: &JobColumn, number: usize) -> SqlText {
    text.with_item("$").with_number(number).with("::").with(column.pg_type).with("[]")
}

/// Everything that is read of a job, from a table whose rows are called `from`; in PostgreSQL with the types of what
/// the table does not have.
pub(crate) const fn read(table: Table, from: &str, typed: bool) -> SqlText {
    let (mut text, mut at) = (SqlText::EMPTY, 0);
    while at < READ_LEN {
        let column = &COLUMNS[at];
        text = if column.is_in(table) {
            text.with_item(from).with(column.name)
        } else {
            let constant = text.with_item(column.elsewhere);
            let typed = if typed { constant.with("::").with(column.pg_type) } else { constant };
            typed.with(" AS ").with(column.name)
        };
        at += 1;
    }
    text
}

/// The same of rows that were read so, with other expressions in place of some.
pub(crate) const fn read_again(set: &[(&str, &str)]) -> SqlText {
    let (mut text, mut at) = (SqlText::EMPTY, 0);
    while at < READ_LEN {
        text = match expression(COLUMNS[at].name, set) {
            Some(expression) => text.with_item(expression).with(" AS ").with(COLUMNS[at].name),
            None => text.with_item(COLUMNS[at].name),
        };
        at += 1;
    }
    text
}

/// Stops compiling unless these are all columns there are.
pub(crate) const fn require_all(names: &[&str]) {
    let mut at = 0;
    while at < COLUMNS.len() {
        assert!(is_among(COLUMNS[at].name, names), "a job is written with all its columns");
        at += 1;
    }
    assert!(names.len() == COLUMNS.len(), "and with each of them once");
}

const fn is_among(name: &str, names: &[&str]) -> bool {
    let mut at = 0;
    while at < names.len() {
        if is_same(name, names[at]) {
            return true;
        }
        at += 1;
    }
    false
}

const fn expression<'e>(name: &str, set: &[(&str, &'e str)]) -> Option<&'e str> {
    let mut at = 0;
    while at < set.len() {
        if is_same(name, set[at].0) {
            return Some(set[at].1);
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql_text::sql;

    #[test]
    fn a_table_reads_what_it_lacks_as_a_constant() {
        const LIVE: &str = sql!(read(Table::Live, "j.", true));
        assert!(
            LIVE.starts_with("j.id, j.partition, ") && LIVE.contains("NULL::bigint AS completed_at, "),
            "{LIVE}"
        );
        const FINISHED: &str = sql!(read(Table::Finished, "", false));
        assert!(FINISHED.contains(" 0 AS burst_failures, NULL AS session, started_at, "), "{FINISHED}");
        assert!(!LIVE.contains("release") && !LIVE.contains("target"), "nobody reads them: {LIVE}");
    }

    #[test]
    fn names_values_and_parameters_have_one_order() {
        const SOME: Selection = Selection::without(
            Table::Finished,
            &["partition", "tenant", "type", "queue", "priority", "spec", "tags"],
        );
        let names: Vec<&str> = sql!(SOME.names()).split(", ").collect();
        assert_eq!(names, SOME.columns().map(|column| column.name).collect::<Vec<_>>());
        assert_eq!(sql!(SOME.arrays()).split(", ").count(), names.len());
        let moved = sql!(SOME.values("j.", &["result"], &[("state", "$6::smallint")]));
        assert!(moved.starts_with("j.id, $6::smallint AS state, j.execute_at, "), "{moved}");
        assert!(moved.contains(", s.result, "), "{moved}");
        assert!(sql!(SOME.parameters()).starts_with("?1, ?7, ?8, "), "numbered by their places");
    }
}
