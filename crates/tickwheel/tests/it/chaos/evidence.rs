//! What the server says and what the target saw, once everything has ended; and what must hold between them.
//!
//! The numbers are those of the invariants: I1 nothing lost, I2 one claim per attempt, I3 tokens only grow, I4 nothing early, I6 one
//! idempotency key per job.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::load::Ledger;
use crate::api::{Api, has_ended, id_of, text, time};
use crate::eventually::{PATIENCE, eventually};
use crate::target::{Call, Target};

/// See the module.
pub struct Evidence {
    jobs: Vec<Value>,
    attempts: HashMap<String, Vec<Value>>,
    calls: Vec<Call>,
}

impl Evidence {
    /// Waits until every job there is has ended, then takes everything down.
    pub async fn gather(api: &Api, target: &Target) -> Self {
        let jobs = eventually("every job to end", PATIENCE, async || all_jobs_ended(api).await).await;
        let mut attempts = HashMap::new();
        for job in &jobs {
            attempts.insert(id_of(job), api.attempts(text(job, "id")).await);
        }
        Self { jobs, attempts, calls: target.calls() }
    }

    /// Everything that holds whatever happens to the servers.
    pub fn check(&self, acknowledged: &Ledger) {
        self.nothing_acknowledged_is_lost(acknowledged);
        self.one_job_for_one_key();
        self.every_job_completed_once();
        self.every_attempt_is_delivered_at_most_once();
        self.every_call_has_a_record();
        self.nothing_starts_early();
        self.every_call_carries_its_job_as_idempotency_key();
    }

    /// I3 as the target sees it. Holds unless a server was frozen: then a claim of its past may set off late, which is what the token
    /// is there for.
    pub fn tokens_only_grow(&self) {
        let mut latest: HashMap<&str, u64> = HashMap::new();
        for call in &self.calls {
            let before = latest.insert(call.job_id(), call.fencing_token());
            assert!(before < Some(call.fencing_token()), "I3: after token {before:?} came {call:?}");
        }
    }

    /// How many attempts ended this way.
    pub fn attempts_that(&self, outcome: &str) -> usize {
        self.attempts.values().flatten().filter(|attempt| text(attempt, "outcome") == outcome).count()
    }

    /// One line for whoever watches.
    pub fn summary(&self, acknowledged: &Ledger) -> String {
        format!(
            "{} jobs, {} of them acknowledged, {} submissions repeated, {} calls, {} attempts lost",
            self.jobs.len(),
            acknowledged.jobs.len(),
            acknowledged.repeated,
            self.calls.len(),
            self.attempts_that("lost"),
        )
    }

    fn nothing_acknowledged_is_lost(&self, acknowledged: &Ledger) {
        let found: HashMap<&str, &Value> = self.jobs.iter().map(|job| (text(job, "id"), job)).collect();
        assert_eq!(found.len(), self.jobs.len(), "I1: a job is listed twice");
        for (id, job) in &acknowledged.jobs {
            let kept = found.get(id.as_str()).unwrap_or_else(|| panic!("I1: lost {job}"));
            assert_eq!(
                time(kept, "execute_at"),
                time(job, "execute_at"),
                "acknowledged for another time: {kept}"
            );
        }
    }

    fn one_job_for_one_key(&self) {
        let mut keys = HashSet::new();
        for key in self.jobs.iter().filter_map(|job| job["metadata"]["key"].as_str()) {
            assert!(keys.insert(key), "a second job for the idempotency key {key}");
        }
    }

    fn every_job_completed_once(&self) {
        for job in &self.jobs {
            let attempts = &self.attempts[text(job, "id")];
            assert_eq!(text(job, "status"), "completed", "I1: {job}, attempts {attempts:?}");
            let numbers: Vec<u64> =
                attempts.iter().map(|attempt| attempt["number"].as_u64().unwrap()).collect();
            assert!(
                numbers.is_sorted_by(|a, b| a < b),
                "I2: each attempt has one record, {numbers:?}, {job}"
            );
            assert_eq!(
                numbers.last().copied(),
                job["attempt"].as_u64(),
                "I2: the last one has a record, {job}"
            );
            let completed = attempts.iter().filter(|attempt| text(attempt, "outcome") == "completed");
            assert_eq!(completed.count(), 1, "I1: {job}, attempts {attempts:?}");
            assert_eq!(text(attempts.last().unwrap(), "outcome"), "completed", "I1: {job}, {attempts:?}");
        }
    }

    fn every_attempt_is_delivered_at_most_once(&self) {
        let (mut tokens, mut attempts) = (HashSet::new(), HashSet::new());
        for call in &self.calls {
            assert!(tokens.insert(call.header("tickwheel-token")), "I2: a token came twice, {call:?}");
            assert!(
                attempts.insert((call.job_id(), call.fencing_token())),
                "I2: an attempt came twice, {call:?}"
            );
        }
        for job in &self.jobs {
            let last = (text(job, "id"), job["attempt"].as_u64().unwrap());
            assert!(attempts.contains(&last), "completed, but its last attempt was never delivered: {job}");
        }
    }

    /// An attempt that was taken and never sent leaves no record; one that was sent always does.
    fn every_call_has_a_record(&self) {
        for call in &self.calls {
            let recorded = self.attempts.get(call.job_id()).into_iter().flatten();
            let mut numbers = recorded.map(|attempt| attempt["number"].as_u64().unwrap());
            assert!(numbers.any(|number| number == call.fencing_token()), "I2: no record of {call:?}");
        }
    }

    fn nothing_starts_early(&self) {
        let due: HashMap<&str, _> =
            self.jobs.iter().map(|job| (text(job, "id"), time(job, "execute_at"))).collect();
        for call in &self.calls {
            let due = due.get(call.job_id()).unwrap_or_else(|| panic!("a call for no job: {call:?}"));
            assert!(call.arrived_at >= *due, "I4: due at {due}, {call:?}");
        }
    }

    fn every_call_carries_its_job_as_idempotency_key(&self) {
        for call in &self.calls {
            assert_eq!(call.header("idempotency-key"), call.job_id(), "I6: {call:?}");
        }
    }
}

/// All jobs, if all have ended. The short questions come first: they are asked often.
async fn all_jobs_ended(api: &Api) -> Option<Vec<Value>> {
    for status in ["scheduled", "running"] {
        let open = api.get(&format!("/api/v1/jobs?status={status}&limit=1")).await.expect(200).json();
        if open["items"].as_array().is_none_or(|items| !items.is_empty()) {
            return None;
        }
    }
    let jobs = api.list("/api/v1/jobs?limit=1000").await;
    jobs.iter().all(has_ended).then_some(jobs)
}
