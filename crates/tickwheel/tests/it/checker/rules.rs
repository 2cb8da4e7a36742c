//! The invariants, one function each. Every function answers what it found broken, and nothing else.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::{Breach, Checker, Conditions, LATENESS_MAX, Ledger, Pause, ScheduleStory};
use crate::api::{has_ended, text, time};

const PERIOD: Duration = Duration::from_secs(1);
/// A call that left just before a pause was acknowledged may arrive just after.
const ON_THE_WAY: Duration = Duration::from_millis(500);

/// A time field.
pub fn moment(value: &Value, field: &str) -> Timestamp {
    time(value, field)
}

/// The number of an attempt.
pub fn number(attempt: &Value) -> u64 {
    attempt["number"].as_u64().expect("an attempt has a number")
}

fn breach(invariant: &'static str, job_id: &str, what: impl Into<String>) -> Breach {
    Breach { invariant, what: what.into(), job_id: Some(job_id.to_owned()) }
}

impl Checker {
    /// Everything that was broken.
    pub(super) fn breaches(&self, ledger: &Ledger, conditions: &Conditions) -> Vec<Breach> {
        let mut breaches = Vec::new();
        breaches.extend(self.nothing_acknowledged_is_lost(ledger));
        breaches.extend(self.each_job_ends_once(ledger));
        breaches.extend(self.each_firing_has_a_record(ledger, conditions));
        breaches.extend(self.one_job_for_one_time());
        breaches.extend(self.one_claim_for_one_attempt());
        breaches.extend(self.tokens_only_grow(conditions));
        breaches.extend(self.no_stale_end_counts());
        breaches.extend(self.nothing_starts_early(conditions));
        breaches.extend(self.lateness_is_bounded(ledger, conditions));
        breaches.extend(self.each_call_carries_its_job_as_idempotency_key());
        breaches.extend(self.nothing_stays_unowned(ledger, conditions));
        breaches.extend(self.parents_come_first(conditions));
        breaches.extend(self.nothing_starts_after_it_was_stopped(ledger, conditions));
        breaches
    }

    /// I1: what was acknowledged is there, once, and for the time that was acknowledged.
    fn nothing_acknowledged_is_lost(&self, ledger: &Ledger) -> Vec<Breach> {
        let mut breaches = Vec::new();
        let mut found: HashMap<&str, &Value> = HashMap::new();
        for job in &self.jobs {
            if found.insert(text(job, "id"), job).is_some() {
                breaches.push(breach("I1", text(job, "id"), "a job is there twice"));
            }
        }
        for (id, job) in &ledger.jobs {
            match found.get(id.as_str()) {
                None => breaches.push(breach("I1", id, "a job that was acknowledged is not there")),
                Some(kept) if time(kept, "execute_at") != time(job, "execute_at") => {
                    breaches.push(breach("I1", id, "a job was acknowledged for another time"));
                }
                Some(_) => {}
            }
        }
        let mut keys = HashSet::new();
        for job in &self.jobs {
            if job["metadata"]["key"].as_str().is_some_and(|key| !keys.insert(key)) {
                breaches.push(breach("I1", text(job, "id"), "a second job for an idempotency key"));
            }
        }
        breaches
    }

    /// I1: each job has ended in the one state that its attempts lead to.
    fn each_job_ends_once(&self, ledger: &Ledger) -> Vec<Breach> {
        let mut breaches = Vec::new();
        for job in &self.jobs {
            let id = text(job, "id");
            let expected = match id {
                id if ledger.cancelled.contains_key(id) => "cancelled",
                id if ledger.given_up.contains(id) => "failed",
                _ => "completed",
            };
            let completes = usize::from(text(job, "status") == "completed" && !stands_for_others(job));
            let attempts = self.attempts.get(id);
            let mut outcomes = attempts.into_iter().flatten().map(|attempt| text(attempt, "outcome"));
            let completed = outcomes.clone().filter(|outcome| *outcome == "completed").count();
            if !has_ended(job) {
                breaches.push(breach("I1", id, "a job has not ended"));
            } else if text(job, "status") != expected {
                breaches.push(breach("I1", id, format!("a job that is to be {expected} is not")));
            } else if attempts.is_some() && completed != completes {
                breaches.push(breach("I1", id, format!("{completed} of its attempts completed")));
            } else if completed == 1 && outcomes.next_back() != Some("completed") {
                breaches.push(breach("I1", id, "an attempt came after the one that completed"));
            }
        }
        breaches
    }

    /// I1: from the creation of a schedule to its pause every second has one record.
    fn each_firing_has_a_record(&self, ledger: &Ledger, conditions: &Conditions) -> Vec<Breach> {
        ledger.schedules.iter().filter_map(|story| self.gap_in(story, conditions)).collect()
    }

    fn gap_in(&self, story: &ScheduleStory, conditions: &Conditions) -> Option<Breach> {
        let name = &story.name;
        let breach = |what: String| Some(Breach { invariant: "I1", what, job_id: None });
        let fires = self.fires.get(name).map(Vec::as_slice).unwrap_or_default();
        let Some(first) = fires.first() else { return breach(format!("{name} has never fired")) };
        if moment(first, "nominal_time") > story.created_at + 2 * PERIOD + conditions.clock_off {
            return breach(format!("the first firing of {name} has no record: {first}"));
        }
        let mut expected = moment(first, "nominal_time");
        for fire in fires {
            if moment(fire, "nominal_time") != expected {
                return breach(format!("{name} has a gap or a double at {expected}: {fire}"));
            }
            expected = moment(fire, "last_nominal_time") + PERIOD;
        }
        let last = fires.last().expect("there is a first one");
        if moment(last, "last_nominal_time") + LATENESS_MAX + conditions.clock_off < story.pause_asked_at {
            return breach(format!("the last firings of {name} have no record: {last}"));
        }
        None
    }

    /// I2: a nominal time of a schedule has one job.
    fn one_job_for_one_time(&self) -> Vec<Breach> {
        let mut breaches = Vec::new();
        let mut times = HashSet::new();
        for job in self.jobs.iter().filter(|job| job["schedule_id"].is_string()) {
            if !times.insert((text(job, "schedule_id"), text(job, "execute_at"))) {
                breaches.push(breach("I2", text(job, "id"), "a second job for a time of a schedule"));
            }
        }
        breaches
    }

    /// I2: an attempt is delivered once, and has one record.
    fn one_claim_for_one_attempt(&self) -> Vec<Breach> {
        let mut breaches = Vec::new();
        let (mut tokens, mut delivered) = (HashSet::new(), HashSet::new());
        for call in &self.calls {
            let (id, attempt) = (call.job_id(), call.fencing_token());
            if !tokens.insert(call.header("tickwheel-token")) || !delivered.insert((id, attempt)) {
                breaches.push(breach("I2", id, format!("attempt {attempt} was delivered twice")));
            }
            let records = self.attempts.get(id);
            let count = |all: &Vec<Value>| all.iter().filter(|record| number(record) == attempt).count();
            if records.is_some_and(|records| count(records) != 1) {
                breaches.push(breach("I2", id, format!("attempt {attempt} was delivered and has no record")));
            }
        }
        for job in self.jobs.iter().filter(|job| !stands_for_others(job) && job["attempt"] != 0) {
            let (id, last) = (text(job, "id"), job["attempt"].as_u64());
            let recorded = |all: &Vec<Value>| all.iter().map(number).collect();
            let numbers: Vec<u64> =
                self.attempts.get(id).map_or_else(|| last.into_iter().collect(), recorded);
            if !numbers.is_sorted_by(|a, b| a < b) {
                breaches.push(breach("I2", id, format!("records of attempts {numbers:?}")));
            }
            let is_delivered = last.is_some_and(|last| delivered.contains(&(id, last)));
            if text(job, "status") == "completed" && (numbers.last().copied() != last || !is_delivered) {
                breaches.push(breach("I2", id, "it completed in an attempt nobody knows of"));
            }
        }
        breaches
    }

    /// I3 as the target sees it.
    fn tokens_only_grow(&self, conditions: &Conditions) -> Vec<Breach> {
        if conditions.late_calls {
            return Vec::new();
        }
        let mut breaches = Vec::new();
        let mut latest: HashMap<&str, u64> = HashMap::new();
        for call in &self.calls {
            let before = latest.insert(call.job_id(), call.fencing_token());
            if before > Some(call.fencing_token()) {
                breaches.push(breach(
                    "I3",
                    call.job_id(),
                    format!("after token {before:?} came a smaller one"),
                ));
            }
        }
        breaches
    }

    /// I3: the result of a job is the answer to its last attempt, which the target has signed with the token.
    fn no_stale_end_counts(&self) -> Vec<Breach> {
        let signed = self.jobs.iter().filter(|job| job["result"]["attempt"].is_u64());
        let stale = signed.filter(|job| job["result"]["attempt"] != job["attempt"]);
        stale.map(|job| breach("I3", text(job, "id"), "its result is that of an earlier attempt")).collect()
    }

    /// I4: no call comes before the time of its job.
    fn nothing_starts_early(&self, conditions: &Conditions) -> Vec<Breach> {
        let due: HashMap<&str, Timestamp> =
            self.jobs.iter().map(|job| (text(job, "id"), time(job, "execute_at"))).collect();
        let mut breaches = Vec::new();
        for call in &self.calls {
            match due.get(call.job_id()) {
                None => breaches.push(breach("I1", call.job_id(), "a call for a job that is not there")),
                Some(due) if call.arrived_at + conditions.clock_off < *due => {
                    breaches.push(breach("I4", call.job_id(), format!("due at {due}, called before")));
                }
                Some(_) => {}
            }
        }
        breaches
    }

    /// I5: whatever is ready starts, at the latest when the fault is over that was in its way.
    fn lateness_is_bounded(&self, ledger: &Ledger, conditions: &Conditions) -> Vec<Breach> {
        let by_id: HashMap<&str, &Value> = self.jobs.iter().map(|job| (text(job, "id"), job)).collect();
        let calls = self.calls_by_job();
        let mut breaches = Vec::new();
        for job in &self.jobs {
            let id = text(job, "id");
            let Some(first) = calls.first(id) else { continue };
            let Some(stored_at) = stored_at(job, ledger) else { continue };
            let mut ready = time(job, "execute_at").max(stored_at);
            for parent in parents_of(job).filter_map(|parent| by_id.get(parent)) {
                ready = ready.max(moment(parent, "completed_at"));
            }
            let settled = conditions.settled_after(after_pauses(job, ready, ledger));
            if first > settled + LATENESS_MAX + conditions.clock_off {
                let late = first.duration_since(settled);
                breaches.push(breach("I5", id, format!("started {late:#} too late")));
            }
        }
        breaches
    }

    /// I6: every call of a job carries the same idempotency key.
    fn each_call_carries_its_job_as_idempotency_key(&self) -> Vec<Breach> {
        let wrong = self.calls.iter().filter(|call| call.header("idempotency-key") != call.job_id());
        wrong.map(|call| breach("I6", call.job_id(), call.header("idempotency-key"))).collect()
    }

    /// I7: what was lost with a server runs elsewhere when the fault has to be over.
    fn nothing_stays_unowned(&self, ledger: &Ledger, conditions: &Conditions) -> Vec<Breach> {
        let by_id: HashMap<&str, &Value> = self.jobs.iter().map(|job| (text(job, "id"), job)).collect();
        let calls = self.calls_by_job();
        let mut breaches = Vec::new();
        for (id, lost) in self.lost_attempts() {
            let ended = moment(lost, "ended_at");
            let before = conditions.faults.iter().filter(|fault| fault.began <= ended);
            let Some(fault) = before.max_by_key(|fault| fault.began) else {
                breaches.push(breach("I7", id, format!("lost without a reason: {lost}")));
                continue;
            };
            let by = conditions.settled_after(after_pauses(by_id[id], fault.recovered_by, ledger));
            match calls.after(id, number(lost)) {
                Some(call) if call.arrived_at > by => {
                    let late = call.arrived_at.duration_since(fault.began);
                    breaches.push(breach("I7", id, format!("it was taken over {late:#} after the fault")));
                }
                _ => {}
            }
        }
        breaches
    }

    /// I8: no task starts before its parents have completed, and a run ends once.
    fn parents_come_first(&self, conditions: &Conditions) -> Vec<Breach> {
        let by_id: HashMap<&str, &Value> = self.jobs.iter().map(|job| (text(job, "id"), job)).collect();
        let calls = self.calls_by_job();
        let mut breaches = Vec::new();
        for job in &self.jobs {
            let id = text(job, "id");
            let first_call = calls.first(id);
            // Of an attempt that was lost before it was sent, the record tells when its claim was asked for. The job
            // itself tells of its last attempt, which is its first one if nothing went wrong.
            let is_sent = |one: &&Value| calls.of(id).any(|call| call.fencing_token() == number(one));
            let started = self.attempts.get(id).map_or(Some(job), |all| all.iter().find(is_sent));
            let first_record =
                started.filter(|one| one["started_at"].is_string()).map(|one| moment(one, "started_at"));
            for parent in parents_of(job).filter_map(|parent| by_id.get(parent)) {
                let ended = moment(parent, "completed_at");
                if first_record.is_some_and(|start| start + conditions.clock_off < ended) {
                    breaches.push(breach("I8", id, format!("started before its parent ended: {parent}")));
                }
                let last =
                    calls.of(text(parent, "id")).find(|call| parent["attempt"] == call.fencing_token());
                if first_call.zip(last).is_some_and(|(child, parent)| child < parent.arrived_at) {
                    breaches.push(breach("I8", id, format!("called before its parent: {parent}")));
                }
            }
        }
        let ends = ["completed", "failed", "cancelled"];
        for run in &self.runs {
            let has_ended = ends.contains(&text(run, "status"));
            if !has_ended || run["ended_at"].is_null() || run["tasks_open"] != 0 {
                let what = format!("a run has not ended in one terminal state: {run}");
                breaches.push(Breach { invariant: "I8", what, job_id: None });
            }
        }
        breaches
    }

    /// I10: nothing starts after an acknowledged pause or cancel.
    fn nothing_starts_after_it_was_stopped(&self, ledger: &Ledger, conditions: &Conditions) -> Vec<Breach> {
        let mut breaches = Vec::new();
        let by_id: HashMap<&str, &Value> = self.jobs.iter().map(|job| (text(job, "id"), job)).collect();
        for call in &self.calls {
            let job = by_id.get(call.job_id());
            let is_held = |pause: &&Pause| job.is_some_and(|job| pause.holds(job));
            for pause in ledger.pauses.iter().filter(is_held) {
                let since = pause.acknowledged_at + ON_THE_WAY;
                if call.arrived_at > since && call.arrived_at < pause.until && !conditions.late_calls {
                    breaches.push(breach("I10", call.job_id(), format!("started in spite of {pause:?}")));
                }
            }
            let cancelled = ledger.cancelled.get(call.job_id());
            if cancelled.is_some_and(|at| call.arrived_at > *at) {
                breaches.push(breach("I10", call.job_id(), "started after it was cancelled"));
            }
        }
        for story in &ledger.schedules {
            let stopped_at = story.pause_acknowledged_at + conditions.clock_off;
            for fire in self.fires.get(&story.name).into_iter().flatten() {
                let id = fire["job_id"].as_str().filter(|_| fire["outcome"] == "fired");
                if id.is_some() && moment(fire, "nominal_time") > stopped_at {
                    let what = format!("{} fired after it was paused: {fire}", story.name);
                    breaches.push(Breach { invariant: "I10", what, job_id: id.map(str::to_owned) });
                }
            }
        }
        breaches
    }
}

/// When a job that is ready at `ready` may start, if its queue or its run is paused then.
fn after_pauses(job: &Value, ready: Timestamp, ledger: &Ledger) -> Timestamp {
    ledger.pauses.iter().filter(|pause| pause.holds(job)).fold(ready, |ready, pause| {
        // The pause was in force some time before it was acknowledged.
        let is_paused = pause.acknowledged_at <= ready + LATENESS_MAX && pause.until > ready;
        if is_paused { pause.until } else { ready }
    })
}

/// When a job was stored at the latest, if anybody knows.
fn stored_at(job: &Value, ledger: &Ledger) -> Option<Timestamp> {
    if job["schedule_id"].is_string() {
        return Some(time(job, "created_at"));
    }
    let acknowledged = |field: &str| ledger.acknowledged_at.get(job[field].as_str()?).copied();
    acknowledged("id").or_else(|| acknowledged("workflow_run_id"))
}

fn parents_of(job: &Value) -> impl Iterator<Item = &str> {
    job["depends_on"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// A job that waits for the jobs it made (a fan-out, a run) has no attempts of its own.
fn stands_for_others(job: &Value) -> bool {
    job["target"]["http"].is_null()
}
