//! Enumerations in words: "1, 2 and 7", "the 3rd", "5 minutes".

use super::super::cron::values;

/// From here on, neighbours are said as "a to b".
const RUN_LEN_MIN: usize = 3;

/// Joins with commas, the last with `last_word`.
pub(super) fn joined(parts: &[String], last_word: &str) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} {last_word} {last}", first.join(", ")),
    }
}

/// The values of a set, neighbours drawn together: "1, 5 to 9 and 12".
pub(super) fn with_runs(bits: u64, name: impl Fn(u8) -> String) -> Vec<String> {
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for value in values(bits) {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == value => *last = value,
            _ => runs.push((value, value)),
        }
    }
    let mut parts = Vec::new();
    for (first, last) in runs {
        if usize::from(last - first) + 1 >= RUN_LEN_MIN {
            parts.push(format!("{} to {}", name(first), name(last)));
        } else {
            parts.extend((first..=last).map(&name));
        }
    }
    parts
}

/// The set as `first`, `last` and the step between its values, if they are three or more at equal distances.
pub(super) fn progression(bits: u64) -> Option<(u8, u8, u8)> {
    let all: Vec<u8> = values(bits).collect();
    let step = all.get(1)? - all[0];
    let even = all.len() >= RUN_LEN_MIN && all.windows(2).all(|pair| pair[1] - pair[0] == step);
    even.then(|| (all[0], all[all.len() - 1], step))
}

/// "1 minute", "5 minutes".
pub(super) fn counted(count: u64, unit: &str) -> String {
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

/// "1st", "2nd", "3rd", "4th".
pub(super) fn ordinal(number: u8) -> String {
    let suffix = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{suffix}")
}
