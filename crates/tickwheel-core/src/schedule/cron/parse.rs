//! From text to a [`CronExpr`]: nicknames, fields, and what is refused as a whole. Items of a field are in `item`.

use super::CronExpr;
use super::days::{DaysOfMonth, DaysOfWeek};
use super::error::CronError;
use super::field::Field;
use super::item::{self, Item};

/// No expression is longer, in bytes.
pub const TEXT_BYTES_MAX: usize = 256;

const NICKNAMES: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

impl CronExpr {
    /// Reads an expression. Case and blanks around and between the fields do not matter.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(CronError::whole(text, |_| {
                format!("the expression has {} bytes, allowed are {TEXT_BYTES_MAX}", text.len())
            }));
        }
        let text = text.trim();
        if text.starts_with('@') {
            return Self::parse_fields(nickname(text)?);
        }
        Self::parse_fields(text)
    }

    fn parse_fields(text: &str) -> Result<Self, CronError> {
        let written: Vec<&str> = text.split_whitespace().collect();
        let fields = match written.len() {
            5 => &Field::ALL[1..],
            6 => &Field::ALL[..],
            count => return Err(wrong_field_count(text, count)),
        };
        let mut expr = Self {
            seconds: 1,
            minutes: 0,
            hours: 0,
            months: 0,
            days_of_month: DaysOfMonth::default(),
            days_of_week: DaysOfWeek::default(),
            follows_real_time: false,
        };
        for (field, written) in fields.iter().zip(written) {
            expr.set_field(*field, written)?;
        }
        Ok(expr)
    }

    fn set_field(&mut self, field: Field, written: &str) -> Result<(), CronError> {
        if field == Field::Second {
            self.seconds = 0;
        }
        for part in written.split(',') {
            if part.is_empty() {
                return Err(CronError::in_field(field, written, |value| {
                    format!("{value} has an empty place in its list, write for example 1,2")
                }));
            }
            self.add(field, item::parse(field, part)?);
        }
        let starts_with_star = written.starts_with(['*', '?']);
        match field {
            Field::Minute | Field::Hour => self.follows_real_time |= starts_with_star,
            Field::DayOfMonth => self.days_of_month.starts_with_star = starts_with_star,
            Field::DayOfWeek => self.days_of_week.starts_with_star = starts_with_star,
            Field::Second | Field::Month => {}
        }
        Ok(())
    }

    fn add(&mut self, field: Field, item: Item) {
        match item {
            Item::Values(bits) => match field {
                Field::Second => self.seconds |= bits,
                Field::Minute => self.minutes |= bits,
                Field::Hour => self.hours |= bits as u32,
                Field::DayOfMonth => self.days_of_month.plain |= bits as u32,
                Field::Month => self.months |= bits as u16,
                // Sunday is 0 and 7.
                Field::DayOfWeek => self.days_of_week.plain |= (bits | bits >> 7) as u8 & 0b111_1111,
            },
            Item::BeforeLast(days) => self.days_of_month.before_last |= 1 << days,
            Item::NearestWeekday(day) => self.days_of_month.nearest_weekday |= 1 << day,
            Item::LastWeekday => self.days_of_month.last_weekday = true,
            Item::LastOfMonth { weekday } => self.days_of_week.last |= 1 << weekday,
            Item::NthOfMonth { weekday, nth } => self.days_of_week.nth[usize::from(nth) - 1] |= 1 << weekday,
        }
    }
}

fn nickname(text: &str) -> Result<&'static str, CronError> {
    let word = text.split_whitespace().next().unwrap_or(text);
    if let Some((_, fields)) = NICKNAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)) {
        return Ok(fields);
    }
    Err(match word.to_ascii_lowercase().as_str() {
        "@reboot" => CronError::whole(word, |value| {
            format!("{value} is not supported: a schedule has no machine whose start it could wait for")
        }),
        "@every" => CronError::whole(text, |value| format!("{value} is an interval, not a cron expression")),
        _ => CronError::whole(text, |value| {
            let known = NICKNAMES.map(|(name, _)| name).join(" ");
            format!("{value} is not a known nickname, allowed are {known} and @every with a duration")
        }),
    })
}

fn wrong_field_count(text: &str, count: usize) -> CronError {
    CronError::whole(text, |_| {
        let names = Field::ALL[1..].iter().map(|field| field.as_str()).collect::<Vec<_>>().join(" ");
        format!("expected 5 fields ({names}) or 6 with leading seconds, got {count}")
    })
}
