//! What is read, how, and with which words the rest is refused.

use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> CronExpr {
    CronExpr::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refusal(text: &str) -> String {
    CronExpr::parse(text).expect_err(text).to_string()
}

/// Every one of the texts means the same.
fn same(texts: &[&str]) {
    for text in texts {
        assert_eq!(parse(text), parse(texts[0]), "{text}");
    }
}

#[test]
fn spelling_does_not_change_the_meaning() {
    same(&[
        "0 9 * * MON-FRI",
        "0 9 * * 1-5",
        "  0   9\t* * mon,tue,wed,Thu,fRi ",
        "0 0 9 * * 1-5",
        "0 9 ? * 1-5",
    ]);
    same(&["0 0 1 JAN *", "0 0 1 1 *", "@yearly", "@Annually", " @YEARLY "]);
    same(&["0 0 * * SUN", "0 0 * * 0", "0 0 * * 7", "@weekly", "0 0 * * 0,7"]);
    same(&["@daily", "@midnight", "0 0 * * *"]);
    same(&["@hourly", "0 * * * *", "00 * * * *"]);
    same(&["@monthly", "0 0 1 * *"]);
    same(&["5-59/15 0 * * *", "5/15 0 * * *", "5,20,35,50 0 * * *"]);
    same(&["0 0 * * FRI-SUN", "0 0 * * 5-7", "0 0 * * 5,6,0"]);
    same(&["0 0 l * *", "0 0 L-0 * *"]);
    same(&["0 0 lw * fril", "0 0 LW * 5L", "0 0 LW * friL"]);
    same(&["0 0 15w * fri#2", "0 0 15W * 5#2"]);
    same(&["0 0 1 * 0-7", "0 0 1 * 0-6", "0 0 1 * SUN-SAT"]);
}

#[test]
fn the_minute_or_the_hour_with_a_star_follows_real_time() {
    for text in ["* * * * *", "*/5 2 * * *", "0 * * * *", "0 */2 * * *", "@hourly", "0 30 *,5 * * *"] {
        assert!(parse(text).follows_real_time(), "{text}");
    }
    for text in ["0 2 * * *", "0-59 2 * * *", "0 0-23 * * *", "* 0 2 * * *", "@daily", "5,* 2 * * *"] {
        assert!(!parse(text).follows_real_time(), "{text}");
    }
}

#[test]
fn a_value_out_of_range_is_told_its_field_and_the_range() {
    assert_eq!(refusal("60 * * * *"), "minute: 60 is out of range, allowed are 0-59");
    assert_eq!(refusal("60 0 * * * *"), "second: 60 is out of range, allowed are 0-59");
    assert_eq!(refusal("0 24 * * *"), "hour: 24 is out of range, allowed are 0-23");
    assert_eq!(refusal("0 0 0 * *"), "day-of-month: 0 is out of range, allowed are 1-31");
    assert_eq!(refusal("0 0 1,32 * *"), "day-of-month: 32 is out of range, allowed are 1-31");
    assert_eq!(refusal("0 0 32W * *"), "day-of-month: 32 is out of range, allowed are 1-31");
    assert_eq!(refusal("0 0 * 13 *"), "month: 13 is out of range, allowed are 1-12");
    assert_eq!(refusal("0 0 * * 8"), "day-of-week: 8 is out of range, allowed are 0-7");
    assert_eq!(refusal("0 5-99999999999 * * *"), "hour: 99999999999 is out of range, allowed are 0-23");
}

#[test]
fn a_step_is_between_one_and_the_length_of_the_field() {
    assert_eq!(refusal("*/0 * * * *"), "minute: the step of */0 is out of range, allowed are 1-60");
    assert_eq!(refusal("*/90 * * * *"), "minute: the step of */90 is out of range, allowed are 1-60");
    assert_eq!(refusal("* */ * * *"), "hour: the step of */ is not a number, allowed are 1-24");
    assert_eq!(refusal("* 1-5/x * * *"), "hour: the step of 1-5/x is not a number, allowed are 1-24");
    same(&["*/60 * * * *", "*/60,0 * * * *"]);
}

#[test]
fn a_range_that_runs_backwards_is_shown_the_way_forwards() {
    assert_eq!(refusal("0 22-2 * * *"), "hour: 22-2 runs backwards, write 22-23,0-2");
    assert_eq!(refusal("0 23-0 * * *"), "hour: 23-0 runs backwards, write 23,0");
    assert_eq!(refusal("0 20-4/4 * * *"), "hour: 20-4/4 runs backwards, write 20,0,4");
    assert_eq!(refusal("0 0 * NOV-FEB *"), "month: NOV-FEB runs backwards, write NOV-DEC,JAN-FEB");
    assert_eq!(refusal("0 0 * 10-1/2 *"), "month: 10-1/2 runs backwards, write 10,12");
    assert_eq!(refusal("0 0 * * SAT-MON"), "day-of-week: SAT-MON runs backwards, write SAT,SUN-MON");
    assert_eq!(refusal("0 0 * * 7-2"), "day-of-week: 7-2 runs backwards, write 0-2");
    assert_eq!(refusal("0 0 * * 7-2/2"), "day-of-week: 7-2/2 runs backwards, write 0,2");
    assert_eq!(refusal("0 0 * * 6-0"), "day-of-week: 6-0 runs backwards, write 6,0");
}

#[test]
fn special_days_are_refused_with_their_rule() {
    assert_eq!(
        refusal("0 0 * * MON#6"),
        "day-of-week: MON#6 is out of range, allowed are #1-#5 after the day"
    );
    assert_eq!(
        refusal("0 0 * * MON#0"),
        "day-of-week: MON#0 is out of range, allowed are #1-#5 after the day"
    );
    assert_eq!(refusal("0 0 * * 9#1"), "day-of-week: 9 is out of range, allowed are 0-7");
    assert_eq!(
        refusal("0 0 * * L"),
        "day-of-week: L needs a day before it, such as 5L or FRIL for the last Friday"
    );
    assert_eq!(
        refusal("0 0 L-31 * *"),
        "day-of-month: L-31 is not understood, allowed are L, LW and L-0 to L-30"
    );
    assert_eq!(
        refusal("0 0 1-5W * *"),
        "day-of-month: 1-5W is not understood, W goes with one day, such as 15W"
    );
    assert_eq!(refusal("? * * * *"), "minute: ? is allowed only in day-of-month and day-of-week, write *");
}

#[test]
fn what_is_no_value_is_told_what_is() {
    assert_eq!(refusal("x * * * *"), "minute: x is not understood, allowed are 0-59");
    assert_eq!(refusal("-5 * * * *"), "minute: -5 is not understood, allowed are 0-59");
    assert_eq!(refusal("+5 * * * *"), "minute: +5 is not understood, allowed are 0-59");
    assert_eq!(refusal("0 0 * JANUARY *"), "month: JANUARY is not understood, allowed are 1-12 or JAN-DEC");
    assert_eq!(refusal("0 0 * * MO"), "day-of-week: MO is not understood, allowed are 0-7 or SUN-SAT");
    assert_eq!(refusal("1,,2 * * * *"), "minute: 1,,2 has an empty place in its list, write for example 1,2");
    assert_eq!(refusal("\u{7} * * * *"), "minute: \\u{7} is not understood, allowed are 0-59");
}

#[test]
fn the_number_of_fields_is_five_or_six() {
    let words =
        "expected 5 fields (minute hour day-of-month month day-of-week) or 6 with leading seconds, got";
    for (text, count) in [("", 0), ("   ", 0), ("* * * *", 4), ("* * * * * * *", 7), ("* * * * * * * *", 8)] {
        assert_eq!(refusal(text), format!("{words} {count}"));
    }
}

#[test]
fn nicknames_that_cannot_be_are_refused_with_words() {
    assert_eq!(
        refusal("@reboot"),
        "@reboot is not supported: a schedule has no machine whose start it could wait for"
    );
    assert_eq!(refusal("@every 5m"), "@every 5m is an interval, not a cron expression");
    assert!(
        refusal("@fortnightly")
            .starts_with("@fortnightly is not a known nickname, allowed are @hourly @daily")
    );
}

#[test]
fn a_text_that_is_too_long_is_refused_whatever_it_says() {
    let long = format!("0{} * * * *", ",0".repeat(200));
    assert_eq!(refusal(&long), "the expression has 409 bytes, allowed are 256");
    assert!(CronExpr::parse(&long).unwrap_err().value.chars().count() <= 41);
}

#[test]
fn an_error_carries_its_field_and_value() {
    let error = CronExpr::parse("0 0 * 1,13 *").unwrap_err();
    assert_eq!((error.field, error.value.as_str()), (Some(Field::Month), "13"));
    let error = CronExpr::parse("* * *").unwrap_err();
    assert_eq!((error.field, error.value.as_str()), (None, "* * *"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]
    #[test]
    fn no_text_at_all_makes_the_parser_panic(text in any::<String>()) {
        let _ = CronExpr::parse(&text);
    }

    #[test]
    fn no_near_miss_makes_the_parser_panic(text in "[-0-9*/,?LW#MONFRIJA@ é]{0,12}( [-0-9*/,?LW#monfrija]{1,9}){3,5}") {
        if let Err(error) = CronExpr::parse(&text) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
