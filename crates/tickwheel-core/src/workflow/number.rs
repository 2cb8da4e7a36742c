//! Numbers of JSON, compared by what they are: whole numbers to the last digit, also with those that have a fraction.
//!
//! Compared as floating point numbers, two ids above 2^53 that are not the same would be taken for equal.

use std::cmp::Ordering;

use serde_json::Number;

/// From here on every floating point number is larger than any whole number of JSON.
const ABOVE_ALL_WHOLE: f64 = 18_446_744_073_709_551_616.0;

/// Which one is less.
pub(super) fn compare(left: &Number, right: &Number) -> Ordering {
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(left), None) => compare_with_fraction(left, fraction(right)),
        (None, Some(right)) => compare_with_fraction(right, fraction(left)).reverse(),
        (None, None) => fraction(left).partial_cmp(&fraction(right)).unwrap_or(Ordering::Equal),
    }
}

fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn fraction(number: &Number) -> f64 {
    number.as_f64().expect("without arbitrary precision every number can be one")
}

fn compare_with_fraction(left: i128, right: f64) -> Ordering {
    if right.abs() >= ABOVE_ALL_WHOLE {
        return if right > 0.0 { Ordering::Less } else { Ordering::Greater };
    }
    // Below that bound the part before the point fits, and what is behind it decides only between equals.
    let (before_point, behind) = (right.trunc() as i128, right.fract());
    left.cmp(&before_point).then(0.0.partial_cmp(&behind).unwrap_or(Ordering::Equal))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(left: &str, right: &str) -> Ordering {
        let number = |text: &str| serde_json::from_str::<Number>(text).expect("a number");
        let order = compare(&number(left), &number(right));
        assert_eq!(compare(&number(right), &number(left)), order.reverse(), "{left} and {right}");
        order
    }

    #[test]
    fn numbers_are_the_same_however_they_are_written() {
        for (left, right) in
            [("1", "1.0"), ("-0.0", "0"), ("1e3", "1000"), ("9007199254740992", "9007199254740992.0")]
        {
            assert_eq!(compared(left, right), Ordering::Equal, "{left} and {right}");
        }
    }

    #[test]
    fn large_numbers_are_compared_to_the_last_digit() {
        for (less, more) in [
            ("18446744073709551614", "18446744073709551615"),
            ("9223372036854775807", "9223372036854775808"),
            ("-9223372036854775808", "18446744073709551615"),
            ("9007199254740992.0", "9007199254740993"),
            ("18446744073709551615", "18446744073709551616.0"),
            ("-1e300", "-9223372036854775808"),
            ("18446744073709551615", "1e300"),
            ("1e299", "1e300"),
        ] {
            assert_eq!(compared(less, more), Ordering::Less, "{less} and {more}");
        }
    }

    #[test]
    fn what_is_behind_the_point_decides_between_equals() {
        for (less, more) in
            [("1", "1.5"), ("1.5", "2"), ("-1.5", "-1"), ("-2", "-1.5"), ("0", "5e-324"), ("-0.5", "0")]
        {
            assert_eq!(compared(less, more), Ordering::Less, "{less} and {more}");
        }
    }
}
