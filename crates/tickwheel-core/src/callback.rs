//! How many callbacks are sent at once, and to whom: a receiver that does not answer holds up nobody but itself.
//!
//! A receiver is a scheme, a host and a port. Each has a few slots of its own; one whose last try failed has fewer
//! until a try succeeds again, and all of those together have half of the slots. So the callbacks of the others always
//! find one.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::time::Timestamp;

/// So many tries to tell of one job, or of one run, are kept, the latest ones: those of a hundred callbacks, if each
/// has three.
pub const TRIES_KEPT_MAX: usize = 300;

/// Whom callbacks go to: a scheme, a host and a port, as a key of bounded length.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Receiver(Arc<str>);

impl Receiver {
    /// A key has at most this many characters. Receivers that differ only beyond that share their slots.
    pub const CHARS_MAX: usize = 255;

    /// The receiver behind a URL that was checked when it was accepted.
    pub fn of(url: &str) -> Self {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let key = format!("{scheme}://{authority}").to_lowercase();
        let usual_port = if key.starts_with("https:") { ":443" } else { ":80" };
        let key = key.strip_suffix(usual_port).unwrap_or(&key);
        Self(key.chars().take(Self::CHARS_MAX).collect::<String>().into())
    }

    /// The receiver with this key.
    pub fn from_key(key: &str) -> Self {
        Self(key.into())
    }

    /// Its key.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How many callbacks may be under way.
#[derive(Clone, Copy, Debug)]
pub struct CallbackLimits {
    /// In all.
    pub in_flight_max: usize,
    /// To one receiver.
    pub per_receiver_max: usize,
    /// To one receiver whose last try failed.
    pub per_failing_receiver_max: usize,
    /// How long a failed try counts if no other one follows.
    pub failing_for: Duration,
}

impl Default for CallbackLimits {
    fn default() -> Self {
        Self {
            in_flight_max: 128,
            per_receiver_max: 16,
            per_failing_receiver_max: 2,
            failing_for: Duration::from_secs(60),
        }
    }
}

/// The callbacks under way, and room for others.
#[derive(Debug)]
pub struct CallbackSlots {
    limits: CallbackLimits,
    in_flight: HashMap<i64, Receiver>,
    receivers: HashMap<Receiver, Load>,
}

/// What is known of a receiver that is being sent to, or has failed lately.
#[derive(Debug, Default)]
struct Load {
    in_flight: usize,
    failed_at: Option<Timestamp>,
    /// It got as many as it had room for: there may be more for it.
    has_more: bool,
}

impl CallbackSlots {
    /// All of them free.
    pub fn new(limits: CallbackLimits) -> Self {
        Self { limits, in_flight: HashMap::new(), receivers: HashMap::new() }
    }

    /// How many more callbacks may be sent now.
    pub fn free(&self) -> usize {
        self.limits.in_flight_max - self.in_flight.len()
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// The numbers of the callbacks under way.
    pub fn in_flight(&self) -> Vec<i64> {
        self.in_flight.keys().copied().collect()
    }

    /// How many callbacks each of these receivers may be sent, in turn until all slots are allotted. Those without room
    /// are left out.
    pub fn allot(
        &mut self,
        due: impl IntoIterator<Item = Receiver>,
        now: Timestamp,
    ) -> Vec<(Receiver, usize)> {
        self.forget_the_recovered(now);
        let (mut free, mut free_to_failing) = (self.free(), self.free_to_failing());
        let mut rooms = Vec::new();
        for receiver in due {
            let is_failing = self.is_failing(&receiver);
            let room = self.room_of(&receiver).min(free).min(if is_failing { free_to_failing } else { free });
            if room > 0 {
                free -= room;
                free_to_failing -= if is_failing { room } else { 0 };
                rooms.push((receiver, room));
            }
        }
        rooms
    }

    /// These were taken within the rooms that were allotted, and are under way.
    pub fn start(&mut self, rooms: &[(Receiver, usize)], taken: impl IntoIterator<Item = (i64, Receiver)>) {
        let mut counts: HashMap<Receiver, usize> = HashMap::new();
        for (id, receiver) in taken {
            if self.in_flight.insert(id, receiver.clone()).is_none() {
                self.receivers.entry(receiver.clone()).or_default().in_flight += 1;
            }
            *counts.entry(receiver).or_default() += 1;
        }
        for (receiver, room) in rooms {
            let load = self.receivers.entry(receiver.clone()).or_default();
            load.has_more = counts.get(receiver).is_some_and(|count| count >= room);
        }
    }

    /// A try has ended. Says whether there may be another callback for its receiver.
    pub fn end(&mut self, id: i64, is_delivered: bool, now: Timestamp) -> bool {
        let Some(receiver) = self.in_flight.remove(&id) else { return false };
        let Some(load) = self.receivers.get_mut(&receiver) else { return false };
        load.in_flight -= 1;
        load.failed_at = (!is_delivered).then_some(now);
        load.has_more
    }

    fn is_failing(&self, receiver: &Receiver) -> bool {
        self.receivers.get(receiver).is_some_and(|load| load.failed_at.is_some())
    }

    fn room_of(&self, receiver: &Receiver) -> usize {
        let Some(load) = self.receivers.get(receiver) else { return self.limits.per_receiver_max };
        let most = match load.failed_at {
            Some(_) => self.limits.per_failing_receiver_max,
            None => self.limits.per_receiver_max,
        };
        most.saturating_sub(load.in_flight)
    }

    fn free_to_failing(&self) -> usize {
        let failing = self.receivers.values().filter(|load| load.failed_at.is_some());
        let taken: usize = failing.map(|load| load.in_flight).sum();
        (self.limits.in_flight_max / 2).saturating_sub(taken)
    }

    fn forget_the_recovered(&mut self, now: Timestamp) {
        let failing_since = now - self.limits.failing_for;
        self.receivers.retain(|_, load| {
            load.in_flight > 0 || load.failed_at.is_some_and(|failed_at| failed_at > failing_since)
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn receiver(name: &str) -> Receiver {
        Receiver::of(&format!("http://{name}/told"))
    }

    /// Sends as many as there is room for, numbered from `first`.
    fn send(slots: &mut CallbackSlots, names: &[&str], first: i64) -> Vec<(Receiver, usize)> {
        let rooms = slots.allot(names.iter().map(|name| receiver(name)), at(0));
        let taken = rooms.iter().flat_map(|(receiver, room)| vec![receiver.clone(); *room]);
        slots.start(&rooms, (first..).zip(taken));
        rooms
    }

    #[test]
    fn a_receiver_is_a_scheme_a_host_and_a_port() {
        let key = |url| Receiver::of(url).as_str().to_owned();
        assert_eq!(key("http://a.example/x?y#z"), "http://a.example");
        assert_eq!(key("HTTP://A.example:80?y"), "http://a.example");
        assert_eq!(key("https://a.example:443#z"), "https://a.example");
        assert_eq!(key("https://a.example:80/"), "https://a.example:80");
        assert_eq!(key("http://[::1]:8080/x"), "http://[::1]:8080");
        assert_eq!(key(&format!("http://{}/", "ü".repeat(5_000))).chars().count(), Receiver::CHARS_MAX);
    }

    #[test]
    fn a_receiver_takes_up_no_more_than_its_slots() {
        let mut slots = CallbackSlots::new(CallbackLimits::default());
        assert_eq!(send(&mut slots, &["silent"], 0), [(receiver("silent"), 16)]);
        assert_eq!(send(&mut slots, &["silent"], 100), []);
        assert_eq!(send(&mut slots, &["silent", "healthy"], 200), [(receiver("healthy"), 16)]);
    }

    #[test]
    fn a_receiver_that_failed_has_fewer_slots_until_a_try_succeeds() {
        let mut slots = CallbackSlots::new(CallbackLimits::default());
        send(&mut slots, &["a"], 0);
        for id in 0..16 {
            assert!(slots.end(id, false, at(10)), "there may be more for it");
        }
        assert_eq!(send(&mut slots, &["a"], 100), [(receiver("a"), 2)]);
        slots.end(100, true, at(20));
        assert_eq!(send(&mut slots, &["a"], 200), [(receiver("a"), 15)]);
    }

    #[test]
    fn a_failed_try_is_forgotten_after_a_while() {
        let mut slots = CallbackSlots::new(CallbackLimits::default());
        send(&mut slots, &["a"], 0);
        (0..16).for_each(|id| _ = slots.end(id, false, at(0)));
        assert_eq!(slots.allot([receiver("a")], at(59_999)), [(receiver("a"), 2)]);
        assert_eq!(slots.allot([receiver("a")], at(60_000)), [(receiver("a"), 16)]);
        assert!(slots.receivers.is_empty(), "nobody is remembered without need");
    }

    #[test]
    fn however_many_receivers_fail_the_others_have_half_of_the_slots() {
        let mut slots = CallbackSlots::new(CallbackLimits::default());
        let failing: Vec<String> = (0..200).map(|number| format!("dead{number}")).collect();
        for (number, name) in failing.iter().enumerate() {
            let first = 1_000 * i64::try_from(number).unwrap();
            send(&mut slots, &[name], first);
            (first..first + 16).for_each(|id| _ = slots.end(id, false, at(0)));
        }
        let due = failing.iter().map(|name| receiver(name)).chain([receiver("healthy")]);
        let rooms = slots.allot(due, at(0));
        assert_eq!(rooms.iter().map(|(_, room)| room).sum::<usize>(), 64 + 16);
        assert_eq!(rooms.last(), Some(&(receiver("healthy"), 16)));
    }

    proptest! {
        /// Whatever begins and ends, no bound is ever passed.
        #[test]
        fn the_bounds_hold(steps in prop::collection::vec((0u8..12, any::<bool>(), any::<bool>()), 0..300)) {
            let limits = CallbackLimits { in_flight_max: 20, per_receiver_max: 4, ..CallbackLimits::default() };
            let mut slots = CallbackSlots::new(limits);
            for (number, (name, ends, is_delivered)) in steps.into_iter().enumerate() {
                let now = at(i64::try_from(number).unwrap() * 1_000);
                if ends {
                    let oldest = slots.in_flight().into_iter().min();
                    oldest.into_iter().for_each(|id| _ = slots.end(id, is_delivered, now));
                } else {
                    let rooms = slots.allot([receiver(&name.to_string())], now);
                    let taken = rooms.iter().flat_map(|(receiver, room)| vec![receiver.clone(); *room]);
                    let first = i64::try_from(number).unwrap() * 1_000;
                    slots.start(&rooms, (first..).zip(taken));
                }
                prop_assert!(slots.in_flight.len() <= 20);
                prop_assert!(slots.receivers.values().all(|load| load.in_flight <= 4));
                let counted: usize = slots.receivers.values().map(|load| load.in_flight).sum();
                prop_assert_eq!(counted, slots.in_flight.len());
            }
        }
    }
}
