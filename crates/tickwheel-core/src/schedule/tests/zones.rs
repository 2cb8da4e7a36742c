//! Zones one by one, with the instants written out: what a person would expect who has the law at hand.

use super::super::{DstFold, DstGap, Timetable};
use super::{firings, timetable};

const GAPS: [DstGap; 3] = [DstGap::RunAfter, DstGap::Skip, DstGap::Shift];
const FOLDS: [DstFold; 3] = [DstFold::Once, DstFold::Last, DstFold::Both];

/// The firings of `expr` in `zone` between two moments, for each way to treat a gap: run after, skip, shift.
fn each_gap(expr: &str, zone: &str, after: &str, until: &str) -> [Vec<String>; 3] {
    GAPS.map(|gap| firings(&Timetable { gap, ..timetable(expr, zone) }, after, until))
}

/// The same for each way to treat a fold: once, last, both.
fn each_fold(expr: &str, zone: &str, after: &str, until: &str) -> [Vec<String>; 3] {
    FOLDS.map(|fold| firings(&Timetable { fold, ..timetable(expr, zone) }, after, until))
}

mod new_york {
    use super::*;

    const ZONE: &str = "America/New_York";
    /// 2026-03-08 in New York: 02:00 is followed by 03:00.
    const GAP_DAY: (&str, &str) = ("2026-03-08T04:59:59Z", "2026-03-09T03:59:59Z");
    /// 2026-11-01 in New York: 01:59 is followed by 01:00.
    const FOLD_DAY: (&str, &str) = ("2026-11-01T03:59:59Z", "2026-11-02T04:59:59Z");

    #[test]
    fn a_time_in_the_gap_runs_after_it_or_not_or_as_much_later() {
        let [run_after, skip, shift] = each_gap("30 2 * * *", ZONE, GAP_DAY.0, GAP_DAY.1);
        assert_eq!(run_after, ["2026-03-08T03:00-04:00"]);
        assert_eq!(skip, [""; 0]);
        assert_eq!(shift, ["2026-03-08T03:30-04:00"]);
    }

    #[test]
    fn several_times_in_the_gap_become_one() {
        let [run_after, skip, shift] = each_gap("0,15,30,45 2 * * *", ZONE, GAP_DAY.0, GAP_DAY.1);
        assert_eq!(run_after, ["2026-03-08T03:00-04:00"]);
        assert_eq!(skip, [""; 0]);
        let quarters = ["03:00", "03:15", "03:30", "03:45"].map(|time| format!("2026-03-08T{time}-04:00"));
        assert_eq!(shift, quarters);
    }

    #[test]
    fn a_made_up_firing_and_a_regular_one_at_the_same_instant_are_one() {
        let [run_after, skip, shift] = each_gap("0,30 1-3 * * *", ZONE, GAP_DAY.0, GAP_DAY.1);
        let all = ["01:00-05:00", "01:30-05:00", "03:00-04:00", "03:30-04:00"];
        let all = all.map(|time| format!("2026-03-08T{time}"));
        assert_eq!((run_after.as_slice(), skip.as_slice(), shift.as_slice()), (&all[..], &all[..], &all[..]));
    }

    #[test]
    fn made_up_and_regular_firings_come_in_order() {
        let [_, _, shift] = each_gap("15 2,3 * * *", ZONE, GAP_DAY.0, GAP_DAY.1);
        assert_eq!(shift, ["2026-03-08T03:15-04:00"]);
        let interleaved = Timetable { gap: DstGap::Shift, ..timetable("10,40 2 * * *", ZONE) };
        let found = firings(&interleaved, "2026-03-08T07:10:00Z", "2026-03-09T06:10:00Z");
        assert_eq!(found, ["2026-03-08T03:40-04:00", "2026-03-09T02:10-04:00"]);
    }

    #[test]
    fn a_time_in_the_fold_runs_the_first_time_or_the_second_or_both() {
        let [once, last, both] = each_fold("30 1 * * *", ZONE, FOLD_DAY.0, FOLD_DAY.1);
        assert_eq!(once, ["2026-11-01T01:30-04:00"]);
        assert_eq!(last, ["2026-11-01T01:30-05:00"]);
        assert_eq!(both, ["2026-11-01T01:30-04:00", "2026-11-01T01:30-05:00"]);
    }

    #[test]
    fn the_edges_of_the_fold_belong_to_it_as_the_clock_shows_them() {
        let [once, last, both] =
            each_fold("0,59 0,1,2 * * *", ZONE, "2026-11-01T04:58:00Z", "2026-11-01T07:00:00Z");
        assert_eq!(
            once,
            ["00:59-04:00", "01:00-04:00", "01:59-04:00", "02:00-05:00"].map(|t| format!("2026-11-01T{t}"))
        );
        assert_eq!(
            last,
            ["00:59-04:00", "01:00-05:00", "01:59-05:00", "02:00-05:00"].map(|t| format!("2026-11-01T{t}"))
        );
        assert_eq!(both.len(), 6);
    }

    #[test]
    fn what_follows_real_time_fires_in_both_hours_of_the_fold_and_makes_up_for_nothing() {
        for (gap, fold) in GAPS.into_iter().zip(FOLDS) {
            let half_hourly = Timetable { gap, fold, ..timetable("*/30 * * * *", ZONE) };
            let found = firings(&half_hourly, "2026-03-08T06:00:00Z", "2026-03-08T07:30:00Z");
            assert_eq!(found, ["2026-03-08T01:30-05:00", "2026-03-08T03:00-04:00", "2026-03-08T03:30-04:00"]);
            let found = firings(&half_hourly, "2026-11-01T05:00:00Z", "2026-11-01T07:00:00Z");
            let fold = ["01:30-04:00", "01:00-05:00", "01:30-05:00", "02:00-05:00"];
            assert_eq!(found, fold.map(|time| format!("2026-11-01T{time}")));
            let at_two = Timetable { gap, ..timetable("*/20 2 * * *", ZONE) };
            assert_eq!(firings(&at_two, GAP_DAY.0, GAP_DAY.1), [""; 0]);
        }
    }

    #[test]
    fn hourly_means_24_25_or_23_times_a_day() {
        let hourly = timetable("@hourly", ZONE);
        assert_eq!(firings(&hourly, GAP_DAY.0, GAP_DAY.1).len(), 23);
        assert_eq!(firings(&hourly, FOLD_DAY.0, FOLD_DAY.1).len(), 25);
    }
}

mod london {
    use super::*;

    #[test]
    fn the_hour_after_one_is_missing_in_march_and_double_in_october() {
        let [run_after, skip, shift] =
            each_gap("15 1 29 3 *", "Europe/London", "2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z");
        assert_eq!(run_after, ["2026-03-29T02:00+01:00"]);
        assert_eq!(skip, [""; 0]);
        assert_eq!(shift, ["2026-03-29T02:15+01:00"]);
        let [once, last, both] =
            each_fold("15 1 25 10 *", "Europe/London", "2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z");
        assert_eq!(once, ["2026-10-25T01:15+01:00"]);
        assert_eq!(last, ["2026-10-25T01:15+00:00"]);
        assert_eq!(both, [once, last].concat());
    }
}

mod lord_howe {
    use super::*;

    const ZONE: &str = "Australia/Lord_Howe";

    #[test]
    fn half_an_hour_is_missing_in_october() {
        let [run_after, skip, shift] =
            each_gap("15,45 2 * * *", ZONE, "2026-10-03T15:00:00Z", "2026-10-04T03:00:00Z");
        assert_eq!(run_after, ["2026-10-04T02:30+11:00", "2026-10-04T02:45+11:00"]);
        assert_eq!(skip, ["2026-10-04T02:45+11:00"]);
        assert_eq!(shift, ["2026-10-04T02:45+11:00"]);
    }

    #[test]
    fn half_an_hour_is_double_in_april() {
        let [once, last, both] =
            each_fold("15,45 1 * * *", ZONE, "2026-04-04T14:00:00Z", "2026-04-04T16:00:00Z");
        assert_eq!(once, ["2026-04-05T01:15+11:00", "2026-04-05T01:45+11:00"]);
        assert_eq!(last, ["2026-04-05T01:15+11:00", "2026-04-05T01:45+10:30"]);
        assert_eq!(both, ["2026-04-05T01:15+11:00", "2026-04-05T01:45+11:00", "2026-04-05T01:45+10:30"]);
    }
}

mod chatham {
    use super::*;

    const ZONE: &str = "Pacific/Chatham";

    #[test]
    fn the_gap_begins_at_a_quarter_to_three() {
        let [run_after, skip, shift] =
            each_gap("30,50 2,3 * * *", ZONE, "2026-09-26T13:00:00Z", "2026-09-26T20:00:00Z");
        assert_eq!(run_after, ["2026-09-27T02:30+12:45", "2026-09-27T03:45+13:45", "2026-09-27T03:50+13:45"]);
        assert_eq!(skip, ["2026-09-27T02:30+12:45", "2026-09-27T03:50+13:45"]);
        assert_eq!(shift, ["2026-09-27T02:30+12:45", "2026-09-27T03:50+13:45", "2026-09-27T04:30+13:45"]);
    }

    #[test]
    fn the_fold_ends_at_a_quarter_to_four() {
        let [once, last, both] =
            each_fold("30,50 3 * * *", ZONE, "2026-04-04T12:00:00Z", "2026-04-04T18:00:00Z");
        assert_eq!(once, ["2026-04-05T03:30+13:45", "2026-04-05T03:50+12:45"]);
        assert_eq!(last, ["2026-04-05T03:30+12:45", "2026-04-05T03:50+12:45"]);
        assert_eq!(both, ["2026-04-05T03:30+13:45", "2026-04-05T03:30+12:45", "2026-04-05T03:50+12:45"]);
    }
}

mod clocks_that_change_at_midnight {
    use super::*;

    #[test]
    fn sao_paulo_has_no_midnight_on_4_november_2018() {
        let november = ("2018-11-03T03:00:00Z", "2018-11-05T02:00:00Z");
        let [run_after, skip, shift] = each_gap("@daily", "America/Sao_Paulo", november.0, november.1);
        assert_eq!(run_after, ["2018-11-04T01:00-02:00", "2018-11-05T00:00-02:00"]);
        assert_eq!(skip, ["2018-11-05T00:00-02:00"]);
        assert_eq!(shift, run_after);
    }

    #[test]
    fn sao_paulo_comes_to_the_end_of_16_february_2019_twice() {
        let february = ("2019-02-16T12:00:00Z", "2019-02-17T12:00:00Z");
        let [once, last, both] = each_fold("0 0,23 * * *", "America/Sao_Paulo", february.0, february.1);
        assert_eq!(once, ["2019-02-16T23:00-02:00", "2019-02-17T00:00-03:00"]);
        assert_eq!(last, ["2019-02-16T23:00-03:00", "2019-02-17T00:00-03:00"]);
        assert_eq!(both, ["2019-02-16T23:00-02:00", "2019-02-16T23:00-03:00", "2019-02-17T00:00-03:00"]);
    }

    #[test]
    fn cairo_has_no_midnight_on_the_last_friday_of_april() {
        let april = ("2026-04-22T22:00:00Z", "2026-04-24T21:00:00Z");
        let [run_after, skip, shift] = each_gap("30 0 * * *", "Africa/Cairo", april.0, april.1);
        assert_eq!(run_after, ["2026-04-23T00:30+02:00", "2026-04-24T01:00+03:00"]);
        assert_eq!(skip, ["2026-04-23T00:30+02:00"]);
        assert_eq!(shift, ["2026-04-23T00:30+02:00", "2026-04-24T01:30+03:00"]);
    }

    #[test]
    fn cairo_comes_to_the_end_of_the_last_thursday_of_october_twice() {
        let october = ("2026-10-29T12:00:00Z", "2026-10-30T12:00:00Z");
        let [once, last, both] = each_fold("30 23 * * THUL", "Africa/Cairo", october.0, october.1);
        assert_eq!(once, ["2026-10-29T23:30+03:00"]);
        assert_eq!(last, ["2026-10-29T23:30+02:00"]);
        assert_eq!(both, [once, last].concat());
    }
}

mod apia {
    use super::*;

    const ZONE: &str = "Pacific/Apia";
    /// 2011-12-29 and 2011-12-31 in Apia; between them is nothing.
    const DAYS: (&str, &str) = ("2011-12-29T09:59:59Z", "2011-12-31T09:59:59Z");

    #[test]
    fn the_firing_of_the_missing_day_comes_when_the_next_begins() {
        let [run_after, skip, shift] = each_gap("0 9 * * *", ZONE, DAYS.0, DAYS.1);
        assert_eq!(run_after, ["2011-12-29T09:00-10:00", "2011-12-31T00:00+14:00", "2011-12-31T09:00+14:00"]);
        assert_eq!(skip, ["2011-12-29T09:00-10:00", "2011-12-31T09:00+14:00"]);
        assert_eq!(shift, skip, "24 hours after 09:00 is the regular firing");
    }

    #[test]
    fn a_date_that_was_left_out_is_made_up_for_too() {
        let [run_after, skip, shift] = each_gap("0 9 30 12 *", ZONE, DAYS.0, DAYS.1);
        assert_eq!(run_after, ["2011-12-31T00:00+14:00"]);
        assert_eq!(skip, [""; 0]);
        assert_eq!(shift, ["2011-12-31T09:00+14:00"]);
    }

    #[test]
    fn real_time_goes_on_as_if_nothing_had_happened() {
        let found = firings(&timetable("0 */12 * * *", ZONE), DAYS.0, DAYS.1);
        let days = ["29T00:00-10:00", "29T12:00-10:00", "31T00:00+14:00", "31T12:00+14:00"];
        assert_eq!(found, days.map(|time| format!("2011-12-{time}")));
    }
}
