//! One item of a field's list: a value, a range, a step, or one of the letters `L`, `W` and `#`.

use super::error::CronError;
use super::field::Field;

/// What one item stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// Plain values as a bit set; day-of-week may still have bit 7 for Sunday.
    Values(u64),
    /// `L` and `L-3`.
    BeforeLast(u8),
    /// `15W`.
    NearestWeekday(u8),
    /// `LW`.
    LastWeekday,
    /// `FRIL`.
    LastOfMonth { weekday: u8 },
    /// `FRI#2`.
    NthOfMonth { weekday: u8, nth: u8 },
}

const LAST_OFFSET_MAX: u8 = 30;
const WEEKS_MAX: u8 = 5;

/// Reads one item that is not empty.
pub(super) fn parse(field: Field, text: &str) -> Result<Item, CronError> {
    let special = match field {
        Field::DayOfMonth => special_day_of_month(text),
        Field::DayOfWeek => special_day_of_week(text),
        _ => None,
    };
    special.unwrap_or_else(|| plain(field, text).map(Item::Values))
}

/// `L`, `L-3`, `LW` and `15W`; `None` if it is nothing of the kind.
fn special_day_of_month(text: &str) -> Option<Result<Item, CronError>> {
    let field = Field::DayOfMonth;
    if let Some(rest) = strip_prefix_letter(text, 'L') {
        return Some(match rest {
            "" => Ok(Item::BeforeLast(0)),
            "w" | "W" => Ok(Item::LastWeekday),
            _ => rest
                .strip_prefix('-')
                .and_then(|days| number(days).filter(|days| *days <= LAST_OFFSET_MAX))
                .map(Item::BeforeLast)
                .ok_or_else(|| refuse(field, text, "is not understood, allowed are L, LW and L-0 to L-30")),
        });
    }
    let day = strip_suffix_letter(text, 'W')?;
    if day.contains(['-', '/', '*']) {
        return Some(Err(refuse(field, text, "is not understood, W goes with one day, such as 15W")));
    }
    Some(value(field, day, text).map(Item::NearestWeekday))
}

/// `FRIL`, `5L` and `FRI#2`; `None` if it is nothing of the kind.
fn special_day_of_week(text: &str) -> Option<Result<Item, CronError>> {
    let field = Field::DayOfWeek;
    if let Some((day, nth)) = text.split_once('#') {
        return Some(value(field, day, text).and_then(|weekday| {
            number(nth)
                .filter(|nth| (1..=WEEKS_MAX).contains(nth))
                .map(|nth| Item::NthOfMonth { weekday: weekday % 7, nth })
                .ok_or_else(|| refuse(field, text, "is out of range, allowed are #1-#5 after the day"))
        }));
    }
    let day = strip_suffix_letter(text, 'L')?;
    if day.is_empty() {
        return Some(Err(refuse(
            field,
            text,
            "needs a day before it, such as 5L or FRIL for the last Friday",
        )));
    }
    Some(value(field, day, text).map(|weekday| Item::LastOfMonth { weekday: weekday % 7 }))
}

fn plain(field: Field, text: &str) -> Result<u64, CronError> {
    let (range, step) = match text.split_once('/') {
        Some((range, step)) => (range, Some(step)),
        None => (text, None),
    };
    let (min, max) = field.span();
    let step_value = step.map_or(Ok(1), |written| parse_step(field, written, text))?;
    let (first, last) = match range {
        "*" => (min, max),
        "?" if step.is_none() => question_mark(field, text)?,
        _ => match range.split_once('-') {
            Some((first, last)) => ordered_range(field, (first, last), step_value, text)?,
            None => {
                let first = value(field, range, text)?;
                // `10/15` runs to the end of the field; `7/2` would have no other way to go than Sunday alone.
                (first, if step.is_some() { max.max(first) } else { first })
            }
        },
    };
    Ok((first..=last).step_by(usize::from(step_value)).fold(0, |bits, value| bits | 1 << value))
}

fn question_mark(field: Field, text: &str) -> Result<(u8, u8), CronError> {
    if field.has_question_mark() {
        return Ok(field.span());
    }
    Err(refuse(field, text, "is allowed only in day-of-month and day-of-week, write *"))
}

fn parse_step(field: Field, written: &str, text: &str) -> Result<u8, CronError> {
    let len = field.len();
    number(written).filter(|step| (1..=len).contains(step)).ok_or_else(|| {
        let problem = if is_number(written) { "is out of range" } else { "is not a number" };
        CronError::in_field(field, text, |value| {
            format!("the step of {value} {problem}, allowed are 1-{len}")
        })
    })
}

fn ordered_range(
    field: Field,
    (first_text, last_text): (&str, &str),
    step: u8,
    text: &str,
) -> Result<(u8, u8), CronError> {
    let first = value(field, first_text, text)?;
    let last = value(field, last_text, text)?;
    // A week that is written to its end by name: FRI-SUN.
    let last =
        if field == Field::DayOfWeek && last == 0 && first > 0 && !is_number(last_text) { 7 } else { last };
    if first <= last {
        return Ok((first, last));
    }
    let as_names = !is_number(first_text);
    let suggestion = forwards(field, (first, last), step, as_names);
    Err(CronError::in_field(field, text, |value| format!("{value} runs backwards, write {suggestion}")))
}

/// What somebody means who writes a range over the end of the field.
fn forwards(field: Field, (first, last): (u8, u8), step: u8, as_names: bool) -> String {
    let (min, max) = field.span();
    let shown = |value: u8| match field.name_of(value).filter(|_| as_names) {
        Some(name) => name.to_owned(),
        None => value.to_string(),
    };
    let range = |from: u8, to: u8| match from == to {
        true => shown(from),
        false => format!("{}-{}", shown(from), shown(to)),
    };
    match step {
        // Sunday written as 7 at the beginning.
        1 if first > max => range(min, last),
        1 => format!("{},{}", range(first, max), range(min, last)),
        _ => {
            let values = (first..=max + 1 + last - min).step_by(usize::from(step));
            let wrapped = values.map(|value| if value > max { value - field.len() } else { value });
            wrapped.map(shown).collect::<Vec<_>>().join(",")
        }
    }
}

/// One value, by number or by name. `text` is the whole item, for the error.
fn value(field: Field, written: &str, text: &str) -> Result<u8, CronError> {
    if let Some(value) = field.value_of(written) {
        return Ok(value);
    }
    if is_number(written) {
        let (min, max) = (field.span().0, field.largest_written());
        return number(written)
            .filter(|value| (min..=max).contains(value))
            .ok_or_else(|| refuse(field, written, &format!("is out of range, allowed are {min}-{max}")));
    }
    let at_fault = if written.is_empty() { text } else { written };
    Err(refuse(field, at_fault, &format!("is not understood, allowed are {}", field.allowed())))
}

fn refuse(field: Field, value: &str, reason: &str) -> CronError {
    CronError::in_field(field, value, |value| format!("{value} {reason}"))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn number(text: &str) -> Option<u8> {
    text.parse().ok().filter(|_| is_number(text))
}

fn strip_prefix_letter(text: &str, letter: char) -> Option<&str> {
    text.strip_prefix([letter, letter.to_ascii_lowercase()])
}

fn strip_suffix_letter(text: &str, letter: char) -> Option<&str> {
    text.strip_suffix([letter, letter.to_ascii_lowercase()])
}
