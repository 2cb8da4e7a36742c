//! Calendars: sets of days, one of a name.

use std::collections::BTreeSet;
use std::sync::Arc;

use tickwheel_core::Timestamp;
use tickwheel_core::ports::Store;
use tickwheel_core::schedule::Calendar;
use tickwheel_core::schedule::calendar::CALENDAR_DAYS_MAX;
use tickwheel_core::schedule::civil::CivilDate;

use super::super::store::bench::{ODD_TEXT, answered};
use crate::fixtures::at;

fn calendar(tenant: &str, name: &str, days: i64, updated_at: Timestamp) -> Calendar {
    let first = CivilDate::new(2000, 2, 28).expect("a day in February");
    Calendar {
        name: name.into(),
        tenant: tenant.into(),
        days: (0..days).map(|day| first.plus_days(day)).collect(),
        weekdays: BTreeSet::new(),
        updated_at,
    }
}

pub async fn every_field_of_a_calendar_survives(store: Arc<dyn Store>) {
    let calendars = [
        calendar(ODD_TEXT, "", 0, at(1)),
        Calendar { weekdays: BTreeSet::from([0, 3, 6]), ..calendar(ODD_TEXT, ODD_TEXT, 3, at(2)) },
    ];
    for calendar in &calendars {
        answered(store.put_calendar(calendar.clone()).await);
    }
    assert_eq!(answered(store.list_calendars(ODD_TEXT).await), calendars);
}

pub async fn a_calendar_of_many_days_survives(store: Arc<dyn Store>) {
    let calendar = calendar("acme", "all", CALENDAR_DAYS_MAX as i64, at(1));
    answered(store.put_calendar(calendar.clone()).await);
    assert_eq!(answered(store.list_calendars("acme").await), [calendar]);
}

pub async fn a_calendar_takes_the_place_of_one_of_its_name(store: Arc<dyn Store>) {
    let former = Calendar { weekdays: BTreeSet::from([6]), ..calendar("acme", "holidays", 9, at(1)) };
    let latter = Calendar { weekdays: BTreeSet::from([0]), ..calendar("acme", "holidays", 2, at(2)) };
    let of_another = calendar("zoo", "holidays", 5, at(1));
    for calendar in [&former, &of_another, &latter] {
        answered(store.put_calendar(calendar.clone()).await);
    }
    assert_eq!(answered(store.list_calendars("acme").await), [latter]);
    assert_eq!(answered(store.list_calendars("zoo").await), [of_another]);
}

pub async fn calendars_are_listed_by_name(store: Arc<dyn Store>) {
    for name in ["b", "Z", "é", "a b", "a"] {
        answered(store.put_calendar(calendar("acme", name, 1, at(1))).await);
    }
    let listed = answered(store.list_calendars("acme").await);
    let names: Vec<&str> = listed.iter().map(|calendar| &*calendar.name).collect();
    assert_eq!(names, ["Z", "a", "a b", "b", "é"]);
    assert_eq!(answered(store.list_calendars("nobody").await), []);
}

pub async fn a_deleted_calendar_is_gone(store: Arc<dyn Store>) {
    let kept = [calendar("acme", "kept", 1, at(1)), calendar("zoo", "holidays", 1, at(1))];
    for calendar in [&kept[0], &kept[1], &calendar("acme", "holidays", 4, at(1))] {
        answered(store.put_calendar(calendar.clone()).await);
    }
    assert!(answered(store.delete_calendar("acme", "holidays").await));
    assert!(!answered(store.delete_calendar("acme", "holidays").await));
    assert!(!answered(store.delete_calendar("acme", "Kept").await));
    assert_eq!(answered(store.list_calendars("acme").await), [kept[0].clone()]);
    assert_eq!(answered(store.list_calendars("zoo").await), [kept[1].clone()]);
    answered(store.put_calendar(calendar("acme", "holidays", 2, at(2))).await);
    assert_eq!(answered(store.list_calendars("acme").await).len(), 2, "its name is free again");
}
