//! Cron: how many next firings a second one thread works out, of everyday expressions in zones that change their clocks.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tickwheel_core::Timestamp;
use tickwheel_core::schedule::{Recurrence, Timetable, Zone};

use super::figure::Figure;

const FOR: Duration = Duration::from_secs(1);
/// From 2026 on, so that one search after the other meets every season.
const BEGIN: Timestamp = Timestamp::from_millis(1_767_225_600_000);
const EVERYDAY: [(&str, &str); 8] = [
    ("* * * * *", "UTC"),
    ("*/5 * * * *", "Europe/London"),
    ("0 * * * *", "Asia/Kolkata"),
    ("30 2 * * *", "America/New_York"),
    ("0 9 * * MON-FRI", "Europe/Berlin"),
    ("0 0 1 * *", "America/Sao_Paulo"),
    ("0 18 LW * *", "Australia/Lord_Howe"),
    ("@every 90s", "UTC"),
];

pub(super) fn measure() -> anyhow::Result<Figure> {
    let timetables = EVERYDAY
        .iter()
        .map(|(text, zone)| Ok(Timetable::new(Recurrence::parse(text)?, Zone::named(zone)?)))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mut moments = vec![BEGIN; timetables.len()];
    let (began, mut firings) = (Instant::now(), 0_u64);
    while began.elapsed() < FOR {
        for _ in 0..1_000 {
            for (timetable, moment) in timetables.iter().zip(&mut moments) {
                *moment = black_box(timetable.next_after(*moment)).unwrap_or(BEGIN);
            }
        }
        firings += 1_000 * timetables.len() as u64;
    }
    Ok(Figure::Cron {
        expressions: EVERYDAY.len(),
        next_per_s: firings as f64 / began.elapsed().as_secs_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_expression_can_be_read_and_fires() {
        let Figure::Cron { next_per_s, .. } = measure().unwrap() else { panic!("not cron") };
        assert!(next_per_s > 0.0);
    }
}
