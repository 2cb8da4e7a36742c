//! Settlements turned into columns: one array a column is what a batched statement takes.

use std::borrow::Cow;

use tickwheel_core::Timestamp;
use tickwheel_core::attempt::AttemptOutcome;
use tickwheel_core::settle::{Burst, Next, Settlement};
use uuid::Uuid;

use super::{FINISH, FINISH_QUIETLY};
use crate::codes::COMPLETED;
use crate::columns::{encode_failure, receiver_key};
use crate::postgres::pipeline::Param;
use crate::postgres::row::{count, storable};

/// The outcome with which most jobs end.
const SUCCESS: i16 = AttemptOutcome::Completed.code();

/// Attempts that end their jobs.
#[derive(Default)]
pub(super) struct Finish<'a> {
    ids: Vec<Uuid>,
    attempts: Vec<i32>,
    started_at: Vec<i64>,
    ended_at: Vec<i64>,
    states: Vec<i16>,
    outcomes: Vec<i16>,
    results: Vec<Option<&'a str>>,
    error_codes: Vec<Option<Cow<'a, str>>>,
    error_messages: Vec<Option<Cow<'a, str>>>,
    reasons: Vec<Option<i16>>,
    callback_urls: Vec<Option<&'a str>>,
    receivers: Vec<Option<String>>,
}

impl<'a> Finish<'a> {
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// What writes them.
    pub fn statement(&self) -> &'static str {
        if self.is_quiet() { FINISH_QUIETLY } else { FINISH }
    }

    /// All have completed, and nobody is told.
    fn is_quiet(&self) -> bool {
        self.states.iter().all(|state| *state == COMPLETED)
            && self.outcomes.iter().all(|outcome| *outcome == SUCCESS)
            && self.callback_urls.iter().all(Option::is_none)
    }

    pub fn push(&mut self, settlement: &'a Settlement) {
        let completed = matches!(settlement.next, Next::Complete { .. });
        let (code, message) = encode_failure(settlement.error.as_ref().filter(|_| !completed));
        self.ids.push(settlement.job_id.as_uuid());
        self.attempts.push(count(settlement.attempt));
        self.started_at.push(settlement.started_at.as_millis());
        self.ended_at.push(settlement.ended_at.as_millis());
        self.states.push(settlement.next.state().code());
        self.outcomes.push(settlement.outcome.code());
        self.results.push(match &settlement.next {
            Next::Complete { result } => result.as_ref().map(|json| json.as_str()),
            _ => None,
        });
        self.error_codes.push(code.map(storable));
        self.error_messages.push(message.map(storable));
        self.reasons.push(match settlement.next {
            Next::Fail { reason } => Some(reason.code()),
            _ => None,
        });
        self.callback_urls.push(settlement.callback_url());
        self.receivers.push(settlement.callback_url().map(receiver_key));
    }

    pub fn params(&self) -> Vec<Param<'_>> {
        let mut params: Vec<Param<'_>> =
            vec![&self.ids, &self.attempts, &self.started_at, &self.ended_at, &self.results];
        if self.is_quiet() {
            params.extend([&COMPLETED as Param<'_>, &SUCCESS]);
        } else {
            params.extend([
                &self.states as Param<'_>,
                &self.outcomes,
                &self.error_codes,
                &self.error_messages,
                &self.reasons,
                &self.callback_urls,
                &self.receivers,
            ]);
        }
        params
    }
}

/// Attempts after which their jobs wait again.
#[derive(Default)]
pub(super) struct Again<'a> {
    ids: Vec<Uuid>,
    attempts: Vec<i32>,
    started_at: Vec<i64>,
    ended_at: Vec<i64>,
    outcomes: Vec<i16>,
    error_codes: Vec<Option<Cow<'a, str>>>,
    error_messages: Vec<Option<Cow<'a, str>>>,
    due_at: Vec<i64>,
    retries: Vec<i32>,
    lost: Vec<i32>,
    burst_started_at: Vec<Option<i64>>,
    burst_failures: Vec<i32>,
}

impl<'a> Again<'a> {
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub fn push(
        &mut self,
        settlement: &'a Settlement,
        due_at: Timestamp,
        retries: u32,
        lost: u32,
        burst: Burst,
    ) {
        let (code, message) = encode_failure(settlement.error.as_ref());
        self.ids.push(settlement.job_id.as_uuid());
        self.attempts.push(count(settlement.attempt));
        self.started_at.push(settlement.started_at.as_millis());
        self.ended_at.push(settlement.ended_at.as_millis());
        self.outcomes.push(settlement.outcome.code());
        self.error_codes.push(code.map(storable));
        self.error_messages.push(message.map(storable));
        self.due_at.push(due_at.as_millis());
        self.retries.push(count(retries));
        self.lost.push(count(lost));
        self.burst_started_at.push(burst.started_at.map(Timestamp::as_millis));
        self.burst_failures.push(count(burst.failures));
    }

    pub fn params(&self) -> Vec<Param<'_>> {
        vec![
            &self.ids,
            &self.attempts,
            &self.started_at,
            &self.ended_at,
            &self.outcomes,
            &self.error_codes,
            &self.error_messages,
            &self.due_at,
            &self.retries,
            &self.lost,
            &self.burst_started_at,
            &self.burst_failures,
        ]
    }

    /// The parameters that say which attempts they are.
    pub fn params_to_identify(&self) -> Vec<Param<'_>> {
        vec![&self.ids, &self.attempts]
    }
}

/// Attempts that were never sent.
#[derive(Default)]
pub(super) struct ReturnToQueue {
    ids: Vec<Uuid>,
    attempts: Vec<i32>,
    due_at: Vec<i64>,
}

impl ReturnToQueue {
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub fn push(&mut self, settlement: &Settlement, due_at: Timestamp) {
        self.ids.push(settlement.job_id.as_uuid());
        self.attempts.push(count(settlement.attempt));
        self.due_at.push(due_at.as_millis());
    }

    pub fn params(&self) -> Vec<Param<'_>> {
        vec![&self.ids, &self.attempts, &self.due_at]
    }

    /// The parameters that say which attempts they are.
    pub fn params_to_identify(&self) -> Vec<Param<'_>> {
        vec![&self.ids, &self.attempts]
    }
}
