//! Effects that happen once: who may carry one out, and what others are told.
//!
//! A key stands for an effect. The first who asks for it becomes its holder, carries out the effect and says what came
//! of it; that is remembered for a while. Whoever dies in between leaves the key in doubt: the effect may have happened.
//!
//! ```text
//! (none) ──ask──▶ held ──done──▶ done ──ttl──▶ (none)
//!    ▲             │ └─holder is over─▶ in doubt ──ask──▶ held, in doubt ──done──▶ done
//!    └──abandon────┘                       ▲                   │
//!                                          └─abandon, or over──┘
//! ```
//!
//! Stores carry this out, each call in one transaction.

use std::time::Duration;

use crate::job::JsonText;
use crate::time::Timestamp;
use crate::token::AttemptRef;
use crate::words::words;

/// How long what came of an effect is remembered, if the caller does not say.
pub const TTL_DEFAULT: Duration = Duration::from_secs(7 * 24 * 3600);
/// When to ask again for a key that somebody else holds.
pub const RETRY_IN: Duration = Duration::from_secs(1);

words! {
    /// For whom a key is the same.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
    pub enum OnceScope {
        /// For all attempts of one job.
        #[default]
        Job = "job",
        /// For all jobs of the tenant.
        Tenant = "tenant",
    }
}

/// An attempt asks whether it is to carry out an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnceCall {
    /// Who asks.
    pub caller: AttemptRef,
    /// For which effect.
    pub key: String,
    /// For whom the key is the same.
    pub scope: OnceScope,
    /// How long to remember what comes of it.
    pub ttl: Duration,
    /// The time.
    pub now: Timestamp,
}

/// An attempt says what came of an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnceReport {
    /// Who says it.
    pub caller: AttemptRef,
    /// Of which effect.
    pub key: String,
    /// For whom the key is the same. `None`: whichever the caller holds, that of its job first.
    pub scope: Option<OnceScope>,
    /// What came of it.
    pub outcome: OnceOutcome,
    /// The time.
    pub now: Timestamp,
}

/// What came of an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnceOutcome {
    /// It happened, with this result.
    Done(JsonText),
    /// It did not happen.
    Abandoned,
}

/// A key that somebody asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnceKey {
    /// Who was told to carry out the effect.
    pub holder: AttemptRef,
    /// Somebody before the holder may have carried it out.
    pub in_doubt: bool,
    /// What came of it. `None`: not known yet.
    pub result: Option<JsonText>,
    /// How long that is remembered.
    pub ttl: Duration,
    /// When the key is forgotten.
    pub expires_at: Timestamp,
}

/// The answer to an attempt that asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnceAnswer {
    /// Carry it out, then say what came of it.
    First,
    /// It happened, with this result.
    Done(JsonText),
    /// Somebody else is at it.
    Busy,
    /// Somebody may have carried it out and died. The caller decides, and holds the key from now on.
    InDoubt,
    /// The caller's attempt is not the current one.
    Stale,
}

/// What became of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnceReported {
    /// It is recorded, now or before.
    Recorded,
    /// The caller does not hold the key.
    NotHeld,
    /// The caller's attempt is not the current one.
    Stale,
}

/// What to do with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyChange {
    /// Nothing.
    Keep,
    /// Store it like this.
    Put(OnceKey),
    /// Remove it.
    Remove,
}

/// Decides about an attempt that asks. `key` is what is stored, and `holder_is_current` whether its holder's attempt is
/// still the current one of a running job. The caller's own is.
pub fn ask(key: Option<OnceKey>, holder_is_current: bool, call: &OnceCall) -> (OnceAnswer, KeyChange) {
    let held = |in_doubt| {
        KeyChange::Put(OnceKey {
            holder: call.caller,
            in_doubt,
            result: None,
            ttl: call.ttl,
            expires_at: call.now + call.ttl,
        })
    };
    let Some(key) = key else { return (OnceAnswer::First, held(false)) };
    if is_forgotten(&key, holder_is_current, call.now) {
        return (OnceAnswer::First, held(false));
    }
    match key {
        OnceKey { result: Some(result), .. } => (OnceAnswer::Done(result), KeyChange::Keep),
        // The answer to it may have been lost.
        OnceKey { holder, in_doubt: false, .. } if holder == call.caller => {
            (OnceAnswer::First, KeyChange::Keep)
        }
        OnceKey { holder, .. } if holder == call.caller => (OnceAnswer::InDoubt, KeyChange::Keep),
        _ if holder_is_current => (OnceAnswer::Busy, KeyChange::Keep),
        _ => (OnceAnswer::InDoubt, held(true)),
    }
}

/// Whether a key counts no longer. One whose effect may be under way always counts.
pub fn is_forgotten(key: &OnceKey, holder_is_current: bool, now: Timestamp) -> bool {
    key.expires_at <= now && (key.result.is_some() || !holder_is_current)
}

/// Decides about what an attempt says came of an effect. The attempt is the current one of its job.
pub fn report(key: Option<OnceKey>, report: &OnceReport) -> (OnceReported, KeyChange) {
    let own = key.filter(|key| key.holder == report.caller);
    match (own, &report.outcome) {
        // What is not held need not be given up: perhaps it was, and the answer was lost.
        (None, OnceOutcome::Abandoned) => (OnceReported::Recorded, KeyChange::Keep),
        (None, OnceOutcome::Done(_)) => (OnceReported::NotHeld, KeyChange::Keep),
        // The first word counts.
        (Some(OnceKey { result: Some(_), .. }), OnceOutcome::Done(_)) => {
            (OnceReported::Recorded, KeyChange::Keep)
        }
        (Some(OnceKey { result: Some(_), .. }), OnceOutcome::Abandoned) => {
            (OnceReported::NotHeld, KeyChange::Keep)
        }
        (Some(key), OnceOutcome::Done(result)) => {
            let expires_at = report.now + key.ttl;
            let done = OnceKey { result: Some(result.clone()), in_doubt: false, expires_at, ..key };
            (OnceReported::Recorded, KeyChange::Put(done))
        }
        // That this holder did not do it says nothing about the one before.
        (Some(key), OnceOutcome::Abandoned) if key.in_doubt => {
            let holder = AttemptRef { attempt: 0, ..key.holder };
            (OnceReported::Recorded, KeyChange::Put(OnceKey { holder, ..key }))
        }
        (Some(_), OnceOutcome::Abandoned) => (OnceReported::Recorded, KeyChange::Remove),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::id::JobId;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);
    const TTL: Duration = Duration::from_secs(60);

    fn attempt(job: u128, attempt: u32) -> AttemptRef {
        AttemptRef { job_id: JobId::from_uuid(Uuid::from_u128(job)), attempt }
    }

    fn call(caller: AttemptRef) -> OnceCall {
        OnceCall { caller, key: "k".into(), scope: OnceScope::Tenant, ttl: TTL, now: NOW }
    }

    fn seven() -> JsonText {
        JsonText::from_checked("7")
    }

    fn held_by(holder: AttemptRef) -> OnceKey {
        OnceKey { holder, in_doubt: false, result: None, ttl: TTL, expires_at: NOW + TTL }
    }

    fn done_by(holder: AttemptRef) -> OnceKey {
        OnceKey { result: Some(seven()), ..held_by(holder) }
    }

    fn expired(key: OnceKey) -> OnceKey {
        OnceKey { expires_at: NOW, ..key }
    }

    fn in_doubt(key: OnceKey) -> OnceKey {
        OnceKey { in_doubt: true, ..key }
    }

    #[test]
    fn who_asks_is_told_by_this_table() {
        use OnceAnswer::{Busy, Done, First, InDoubt};
        let (me, other) = (attempt(1, 2), attempt(2, 1));
        let mine = || KeyChange::Put(held_by(me));
        let doubtful = || KeyChange::Put(in_doubt(held_by(me)));
        let cases = [
            ("nobody asked before", None, false, First, mine()),
            ("the answer was lost", Some(held_by(me)), true, First, KeyChange::Keep),
            ("in doubt, the answer was lost", Some(in_doubt(held_by(me))), true, InDoubt, KeyChange::Keep),
            ("somebody is at it", Some(held_by(other)), true, Busy, KeyChange::Keep),
            ("somebody is at it for long", Some(expired(held_by(other))), true, Busy, KeyChange::Keep),
            ("somebody died", Some(held_by(other)), false, InDoubt, doubtful()),
            ("an earlier attempt of mine died", Some(held_by(attempt(1, 1))), false, InDoubt, doubtful()),
            ("the second one died as well", Some(in_doubt(held_by(other))), false, InDoubt, doubtful()),
            ("done", Some(done_by(other)), false, Done(seven()), KeyChange::Keep),
            ("done by one who runs on", Some(done_by(other)), true, Done(seven()), KeyChange::Keep),
            ("done by me", Some(done_by(me)), true, Done(seven()), KeyChange::Keep),
            ("done and forgotten", Some(expired(done_by(other))), false, First, mine()),
            ("done and forgotten, runs on", Some(expired(done_by(other))), true, First, mine()),
            ("died and forgotten", Some(expired(held_by(other))), false, First, mine()),
        ];
        for (case, key, holder_is_current, answer, change) in cases {
            assert_eq!(ask(key, holder_is_current, &call(me)), (answer, change), "{case}");
        }
    }

    #[test]
    fn what_came_of_it_is_recorded_by_this_table() {
        use OnceOutcome::{Abandoned, Done};
        use OnceReported::{NotHeld, Recorded};
        let (me, other) = (attempt(1, 2), attempt(2, 1));
        let nobody = attempt(1, 0);
        let done = || Done(seven());
        let cases = [
            ("nobody asked", None, done(), NotHeld, KeyChange::Keep),
            ("mine", Some(held_by(me)), done(), Recorded, KeyChange::Put(done_by(me))),
            ("mine in doubt", Some(in_doubt(held_by(me))), done(), Recorded, KeyChange::Put(done_by(me))),
            ("said before", Some(done_by(me)), done(), Recorded, KeyChange::Keep),
            ("another's", Some(held_by(other)), done(), NotHeld, KeyChange::Keep),
            ("done by another", Some(done_by(other)), done(), NotHeld, KeyChange::Keep),
            ("an earlier attempt's", Some(held_by(attempt(1, 1))), done(), NotHeld, KeyChange::Keep),
            ("given up", Some(held_by(me)), Abandoned, Recorded, KeyChange::Remove),
            ("given up before", None, Abandoned, Recorded, KeyChange::Keep),
            ("another has it by now", Some(held_by(other)), Abandoned, Recorded, KeyChange::Keep),
            ("too late to give up", Some(done_by(me)), Abandoned, NotHeld, KeyChange::Keep),
            (
                "given up in doubt",
                Some(in_doubt(held_by(me))),
                Abandoned,
                Recorded,
                KeyChange::Put(in_doubt(held_by(nobody))),
            ),
        ];
        for (case, key, outcome, answer, change) in cases {
            let said = OnceReport { caller: me, key: "k".into(), scope: None, outcome, now: NOW };
            assert_eq!(report(key, &said), (answer, change), "{case}");
        }
    }

    #[test]
    fn what_was_given_up_in_doubt_stays_in_doubt() {
        let me = attempt(1, 2);
        let (_, change) = report(
            Some(in_doubt(held_by(me))),
            &OnceReport {
                caller: me,
                key: "k".into(),
                scope: None,
                outcome: OnceOutcome::Abandoned,
                now: NOW,
            },
        );
        let KeyChange::Put(key) = change else { panic!("it is kept") };
        assert_eq!(ask(Some(key), false, &call(attempt(1, 3))).0, OnceAnswer::InDoubt);
    }
}
