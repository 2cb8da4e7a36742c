//! Fits a table into the width of a terminal. Pure: widths in, widths out.
//!
//! A table that fits is left alone. Otherwise, in this order: ids are shortened to their last characters, long texts
//! are cut, columns are left out, the least important one first. Whatever room that leaves goes back to the texts that
//! were cut.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
use uuid::Uuid;

/// Characters between two columns.
pub const GAP: usize = 2;
/// A short id is the last group of its characters: the others tell the time, and are the same for all tasks of a run.
pub const SHORT_ID_CHARS: usize = 12;

/// A column, and what may be done to it where there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub(super) name: &'static str,
    shape: Shape,
    /// Left out where there is no room: those with the lowest number first. `None`: never.
    spare: Option<u8>,
    optional: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Whole,
    Id,
    Cut { least: usize },
}

/// A column that is always shown, in full.
pub const fn column(name: &'static str) -> Column {
    Column { name, shape: Shape::Whole, spare: None, optional: false }
}

impl Column {
    /// Has ids, which may be shortened.
    pub const fn id(self) -> Self {
        Self { shape: Shape::Id, ..self }
    }

    /// Has texts that may be cut, but not to fewer than `least` characters.
    pub const fn cut(self, least: usize) -> Self {
        Self { shape: Shape::Cut { least }, ..self }
    }

    /// May be left out. Those with the lowest number go first.
    pub const fn spare(self, number: u8) -> Self {
        Self { spare: Some(number), ..self }
    }

    /// Left out, however much room there is, unless some row has a value.
    pub const fn optional(self) -> Self {
        Self { optional: true, ..self }
    }
}

/// How wide the texts of a column are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// As they are, the heading included.
    pub whole: usize,
    /// With short ids.
    pub short: usize,
    /// Whether any row has a value.
    pub is_used: bool,
}

/// How a column is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Its width; texts that are wider are cut.
    pub width: usize,
    /// Ids are shortened.
    pub short_ids: bool,
}

/// How the columns are shown within `width`; `None`: not at all. Without a width nothing is cut or left out.
pub fn fit(columns: &[Column], needs: &[Needs], width: Option<usize>) -> Vec<Option<Shown>> {
    let mut shown: Vec<Option<Shown>> = columns
        .iter()
        .zip(needs)
        .map(|(column, needs)| {
            (needs.is_used || !column.optional).then_some(Shown { width: needs.whole, short_ids: false })
        })
        .collect();
    let Some(width) = width else { return shown };
    if total(&shown) <= width {
        return shown;
    }
    for ((column, needs), shown) in columns.iter().zip(needs).zip(&mut shown) {
        let Some(shown) = shown else { continue };
        match column.shape {
            Shape::Whole => {}
            Shape::Id => *shown = Shown { width: needs.short, short_ids: true },
            Shape::Cut { least } => shown.width = shown.width.min(least),
        }
    }
    while total(&shown) > width {
        let spare = |index: &usize| columns[*index].spare.filter(|_| shown[*index].is_some());
        let Some(index) = (0..columns.len()).filter(|i| spare(i).is_some()).min_by_key(spare) else { break };
        shown[index] = None;
    }
    give_back(needs, width.saturating_sub(total(&shown)), &mut shown);
    shown
}

fn total(shown: &[Option<Shown>]) -> usize {
    let widths = shown.iter().flatten().map(|shown| shown.width + GAP);
    widths.sum::<usize>().saturating_sub(GAP)
}

/// One character at a time to the narrowest text that is cut, so that no long one takes everything.
fn give_back(needs: &[Needs], room: usize, shown: &mut [Option<Shown>]) {
    for _ in 0..room {
        let cut = shown.iter_mut().zip(needs).filter_map(|(shown, needs)| {
            shown.as_mut().filter(|shown| !shown.short_ids && shown.width < needs.whole)
        });
        let Some(narrowest) = cut.min_by_key(|shown| shown.width) else { return };
        narrowest.width += 1;
    }
}

/// The last characters of an id; anything else as it is.
pub fn short_id(text: &str) -> &str {
    match Uuid::try_parse(text) {
        Ok(_) if text.is_ascii() && text.len() > SHORT_ID_CHARS => &text[text.len() - SHORT_ID_CHARS..],
        _ => text,
    }
}

/// How many columns of a terminal the text takes.
pub fn width_of(text: &str) -> usize {
    text.width()
}

/// The text within `width`, with a sign where it was cut.
pub fn cut(text: &str, width: usize) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let fits = |c: &char| match room.checked_sub(c.width().unwrap_or_default()) {
        Some(left) => {
            room = left;
            true
        }
        None => false,
    };
    let kept: String = text.chars().take_while(fits).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COLUMNS: [Column; 5] = [
        column("ID").id(),
        column("TYPE").cut(8),
        column("STATUS"),
        column("QUEUE").spare(2),
        column("RETRIES").spare(1),
    ];

    fn needs(widths: [usize; 5]) -> [Needs; 5] {
        widths.map(|whole| Needs { whole, short: whole.min(SHORT_ID_CHARS), is_used: true })
    }

    fn widths(shown: &[Option<Shown>]) -> Vec<Option<usize>> {
        shown.iter().map(|shown| shown.map(|shown| shown.width)).collect()
    }

    #[test]
    fn what_fits_or_has_no_width_is_left_alone() {
        let needs = needs([36, 20, 9, 7, 7]);
        let whole = [36, 20, 9, 7, 7].map(Some);
        assert_eq!(widths(&fit(&COLUMNS, &needs, None)), whole);
        assert_eq!(widths(&fit(&COLUMNS, &needs, Some(87))), whole);
    }

    #[test]
    fn ids_are_shortened_first_then_texts_are_cut_then_columns_go() {
        let needs = needs([36, 20, 9, 7, 7]);
        let at = |width| widths(&fit(&COLUMNS, &needs, Some(width)));
        assert_eq!(at(86), [12, 20, 9, 7, 7].map(Some), "short ids are enough");
        assert_eq!(at(60), [12, 17, 9, 7, 7].map(Some), "what is left goes to the text that was cut");
        assert_eq!(at(51), [12, 8, 9, 7, 7].map(Some), "no text is cut to less than it needs");
        assert_eq!(at(50), [Some(12), Some(16), Some(9), Some(7), None], "the least important column goes");
        assert_eq!(at(41), [Some(12), Some(16), Some(9), None, None]);
        assert_eq!(at(10), [Some(12), Some(8), Some(9), None, None], "what has to be there is there");
    }

    #[test]
    fn a_column_without_any_value_is_left_out_however_much_room_there_is() {
        let columns = [column("ID"), column("TASK").optional()];
        let unused =
            [Needs { whole: 2, short: 2, is_used: true }, Needs { whole: 4, short: 4, is_used: false }];
        assert_eq!(widths(&fit(&columns, &unused, None)), [Some(2), None]);
    }

    #[test]
    fn only_ids_have_a_short_form() {
        assert_eq!(short_id("01890a5d-ac96-774b-bcce-b302099a8057"), "b302099a8057");
        assert_eq!(short_id("not-an-id-but-just-as-long-as-one-is"), "not-an-id-but-just-as-long-as-one-is");
        assert_eq!(short_id(""), "");
    }

    #[test]
    fn a_cut_text_says_so_and_counts_wide_characters_twice() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdef", 5), "abcd…");
        assert_eq!(cut("ab  cdef", 4), "ab…");
        assert_eq!(cut("日本語", 5), "日本…");
    }

    proptest! {
        #[test]
        fn a_table_is_never_wider_than_it_may_be_unless_nothing_more_can_be_done(
            whole in proptest::array::uniform5(1_usize..60),
            width in 1_usize..200,
        ) {
            let shown = fit(&COLUMNS, &needs(whole), Some(width));
            let smallest = shown[3].is_none() && shown[4].is_none() && shown[1].is_some_and(|s| s.width <= 8);
            prop_assert!(total(&shown) <= width || smallest);
            for (shown, whole) in shown.iter().zip(whole) {
                prop_assert!(shown.is_none_or(|shown| shown.width <= whole));
            }
        }

        #[test]
        fn a_cut_text_takes_no_more_than_its_width(text in "\\PC{0,40}", width in 1_usize..40) {
            prop_assert!(width_of(&cut(&text, width)) <= width.max(1));
        }
    }
}
