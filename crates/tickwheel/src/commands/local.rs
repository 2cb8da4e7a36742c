//! Local time: on this machine, and in the zone of a schedule.
//!
//! The zone of this machine is what `TZ` names, or else what `/etc/localtime` leads to, or else UTC.

use std::path::Path;

use tickwheel_core::Timestamp;
use tickwheel_core::schedule::Zone;
use tickwheel_core::schedule::civil::{CivilDate, CivilTime};
use tickwheel_core::schedule::zone::Moments;
use tickwheel_protocol::{LocalTime, Time};

/// The zone of this machine.
pub fn zone() -> Zone {
    let named = std::env::var("TZ").ok().filter(|name| !name.is_empty());
    let linked = || std::fs::read_link("/etc/localtime").ok().as_deref().and_then(zone_of_link);
    match named {
        Some(name) => zone_of_variable(&name).or_else(linked),
        None => linked(),
    }
    .unwrap_or_default()
}

/// `Europe/Berlin`, `:Europe/Berlin` or `/usr/share/zoneinfo/Europe/Berlin`.
fn zone_of_variable(text: &str) -> Option<Zone> {
    let name = text.strip_prefix(':').unwrap_or(text);
    Zone::named(name).ok().or_else(|| zone_of_link(Path::new(name)))
}

fn zone_of_link(target: &Path) -> Option<Zone> {
    let (_, name) = target.to_str()?.split_once("zoneinfo/")?;
    Zone::named(name).ok()
}

/// The first moment at which a clock in `zone` shows this time or, if the clock skips it, the moment after the gap.
pub fn first_moment(time: CivilTime, zone: Zone) -> Timestamp {
    match zone.moments_of(time) {
        Moments::One(at) | Moments::Two { first: at, .. } => at,
        Moments::None { gap_ends_at } => gap_ends_at,
    }
}

/// When a day begins there.
pub fn first_of(day: CivilDate, zone: Zone) -> Timestamp {
    let midnight = CivilTime::new(day, 0, 0, 0).expect("every day has a midnight");
    first_moment(midnight, zone)
}

/// What a clock in `zone` shows: `Mon 2026-11-16 02:00`. Seconds are shown where there are any.
pub fn clock(at: Time, zone: Zone) -> String {
    let offset = zone.offset_at(Timestamp::from_millis(at.as_millis()));
    shown(LocalTime::new(at, offset.seconds()))
}

/// The same, where the offset is known.
pub fn shown(local: LocalTime) -> String {
    let text = local.to_string();
    let (date, time) = text.split_once('T').unwrap_or((&text, ""));
    let time = time.get(..8).unwrap_or(time);
    format!("{} {date} {}", local.weekday(), time.strip_suffix(":00").unwrap_or(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zone_of_the_machine_is_found_however_it_is_named() {
        for text in ["Europe/Berlin", ":Europe/Berlin", "/usr/share/zoneinfo/Europe/Berlin"] {
            assert_eq!(zone_of_variable(text).map(Zone::name), Some("Europe/Berlin"), "{text}");
        }
        let link = Path::new("../usr/share/zoneinfo/America/Indiana/Knox");
        assert_eq!(zone_of_link(link).map(Zone::name), Some("America/Indiana/Knox"));
        assert_eq!(zone_of_variable("CET-1CEST,M3.5.0,M10.5.0/3"), None);
    }

    #[test]
    fn a_clock_shows_seconds_only_where_there_are_any() {
        let zone = Zone::named("America/New_York").unwrap();
        let at = |text: &str| clock(text.parse().unwrap(), zone);
        assert_eq!(at("2026-11-16T07:00:00Z"), "Mon 2026-11-16 02:00");
        assert_eq!(at("2026-11-16T03:00:30Z"), "Sun 2026-11-15 22:00:30");
    }
}
