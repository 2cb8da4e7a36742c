//! Whether everything that must hold did hold, whatever was done to the servers.
//!
//! It knows three stories of the same jobs: what clients were told ([`Ledger`]), what the target saw, and what the
//! server says when everything has ended. The rules between them (`rules.rs`) have the numbers of the invariants I1 to
//! I8 and I10. Every breach is reported with its number and the whole history of the job.

mod rules;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::api::{Api, has_ended, id_of, text};
use crate::eventually::{PATIENCE, eventually};
use crate::target::{Call, Target};

/// How late a job may start on a busy machine when nothing is done to the servers.
pub const LATENESS_MAX: Duration = Duration::from_secs(4);
/// What a promise about recovery is granted on a machine that compiles and runs other tests meanwhile.
pub const BUSY: Duration = Duration::from_secs(1);
const BREACHES_SHOWN_MAX: usize = 8;
/// Of the jobs that went as smoothly as can be, the records of one in so many are read.
const SMOOTH_SAMPLE: usize = 8;

/// What clients were told, and what they asked for.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The jobs, as they were acknowledged, by id.
    pub jobs: HashMap<String, Value>,
    /// When a job or a run was acknowledged, by its id. One that waited in a server that stood still is stored only
    /// then.
    pub acknowledged_at: HashMap<String, Timestamp>,
    /// Submissions whose answer was lost or that were put off, and that were sent again under the same key.
    pub repeated: usize,
    /// Jobs that were acknowledged as cancelled, and when.
    pub cancelled: HashMap<String, Timestamp>,
    /// Jobs that are expected to be given up.
    pub given_up: HashSet<String>,
    /// Times in which a queue or a run was paused.
    pub pauses: Vec<Pause>,
    /// Schedules that fire every second.
    pub schedules: Vec<ScheduleStory>,
}

/// From the acknowledgement of a pause to the request that ended it.
#[derive(Clone, Debug)]
pub struct Pause {
    pub what: Paused,
    pub acknowledged_at: Timestamp,
    pub until: Timestamp,
}

/// What was paused: the name of a queue, or the id of a run.
#[derive(Clone, Debug)]
pub enum Paused {
    Queue(String),
    Run(String),
}

impl Pause {
    /// Whether the job is not to start meanwhile.
    fn holds(&self, job: &Value) -> bool {
        match &self.what {
            Paused::Queue(name) => job["queue"] == name.as_str(),
            Paused::Run(id) => job["workflow_run_id"] == id.as_str(),
        }
    }
}

/// A schedule, from its creation to its last pause.
#[derive(Clone, Debug)]
pub struct ScheduleStory {
    pub name: String,
    pub created_at: Timestamp,
    pub pause_asked_at: Timestamp,
    pub pause_acknowledged_at: Timestamp,
}

/// Something that was done to a server or its database.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub began: Timestamp,
    /// By then everything has to run as if nothing had happened, on whichever server.
    pub recovered_by: Timestamp,
}

/// What the rules have to know of the test.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// In the order in which they began.
    pub faults: Vec<Fault>,
    /// A server that stood still or was cut off may send late what it took before: that is what fencing tokens are for.
    pub late_calls: bool,
    /// How far the clock of a server was off, ahead or behind. Within that, what is early or late cannot be told.
    pub clock_off: Duration,
}

impl Ledger {
    /// Writes down that a job was acknowledged just now.
    pub fn acknowledge(&mut self, job: &Value) {
        self.acknowledged_at.insert(id_of(job), Timestamp::now());
        self.jobs.insert(id_of(job), job.clone());
    }
}

impl Conditions {
    /// Notes a fault that began now and has to be over for everybody so much later.
    pub fn fault_for(&mut self, recovery: Duration) -> Fault {
        let began = Timestamp::now();
        let fault = Fault { began, recovered_by: began + recovery };
        self.faults.push(fault);
        fault
    }

    /// Notes a fault that lasted from `began` until now, after which a server needs a moment.
    pub fn fault_since(&mut self, began: Timestamp, recovery: Duration) {
        self.faults.push(Fault { began, recovered_by: Timestamp::now() + recovery });
    }

    /// When something that was ready at `moment` has to be under way, but for [`LATENESS_MAX`].
    fn settled_after(&self, moment: Timestamp) -> Timestamp {
        self.faults.iter().fold(moment, |ready, fault| {
            let touches = fault.began <= ready + LATENESS_MAX && fault.recovered_by > ready;
            if touches { fault.recovered_by } else { ready }
        })
    }
}

/// A rule that was broken.
#[derive(Debug)]
pub struct Breach {
    /// Which invariant.
    pub invariant: &'static str,
    /// What was seen.
    pub what: String,
    /// The job it was seen at.
    pub job_id: Option<String>,
}

/// Everything that is known once all jobs have ended.
#[derive(Default)]
pub struct Checker {
    jobs: Vec<Value>,
    /// The records of attempts, of the jobs of which they were read.
    attempts: HashMap<String, Vec<Value>>,
    /// The records of each schedule by its name, the earliest first.
    fires: HashMap<String, Vec<Value>>,
    runs: Vec<Value>,
    calls: Vec<Call>,
}

impl Checker {
    /// Waits until every job there is has ended, then takes everything down.
    pub async fn gather(api: &Api, target: &Target, ledger: &Ledger) -> Self {
        let jobs = eventually("every job to end", PATIENCE, async || all_jobs_ended(api).await).await;
        let runs = eventually("every run to end", PATIENCE, async || {
            let runs = api.list("/api/v1/workflow-runs?limit=1000").await;
            runs.iter().all(|run| !run["ended_at"].is_null()).then_some(runs)
        })
        .await;
        let mut checker = Self { jobs, runs, calls: target.calls(), ..Self::default() };
        let mut calls: HashMap<&str, usize> = HashMap::new();
        for call in &checker.calls {
            *calls.entry(call.job_id()).or_default() += 1;
        }
        for (number, job) in checker.jobs.iter().enumerate() {
            let id = text(job, "id");
            let is_smooth = job["status"] == "completed" && job["attempt"] == 1 && calls.get(id) == Some(&1);
            if !is_smooth || number % SMOOTH_SAMPLE == 0 {
                checker.attempts.insert(id.to_owned(), api.attempts(id).await);
            }
        }
        for story in &ledger.schedules {
            let mut fires = api.list(&format!("/api/v1/schedules/{}/fires?limit=1000", story.name)).await;
            fires.reverse();
            checker.fires.insert(story.name.clone(), fires);
        }
        checker
    }

    /// Nothing was broken.
    ///
    /// # Panics
    /// If something was.
    #[track_caller]
    pub fn check(&self, ledger: &Ledger, conditions: &Conditions) {
        // Whoever leaves a field out of the lists makes us blind.
        let sees_results = self.jobs.iter().any(|job| job["result"]["attempt"].is_u64());
        assert!(sees_results || !self.calls.iter().any(|call| call.path == "/fast"), "no result is seen");
        let breaches = self.breaches(ledger, conditions);
        let mut report = String::new();
        for breach in breaches.iter().take(BREACHES_SHOWN_MAX) {
            let _ = writeln!(report, "{}: {}", breach.invariant, breach.what);
            if let Some(id) = &breach.job_id {
                report.push_str(&self.history(id, ledger));
            }
        }
        assert!(breaches.is_empty(), "{} breaches\n{report}faults: {:#?}", breaches.len(), conditions.faults);
    }

    /// How many attempts ended this way.
    pub fn attempts_that(&self, outcome: &str) -> usize {
        self.attempts.values().flatten().filter(|attempt| text(attempt, "outcome") == outcome).count()
    }

    /// The longest time from `fault` to the next call of a job that lost an attempt by it; nothing if none did.
    pub fn slowest_takeover(&self, fault: Fault) -> Option<Duration> {
        let lost_by_it = self.lost_attempts().filter(|(_, lost)| {
            rules::moment(lost, "started_at") <= fault.began && rules::moment(lost, "ended_at") >= fault.began
        });
        let calls = self.calls_by_job();
        let next_calls = lost_by_it.filter_map(|(id, lost)| calls.after(id, rules::number(lost)));
        let latest = next_calls.map(|call| call.arrived_at).max()?;
        Some(latest.duration_since(fault.began).try_into().unwrap_or_default())
    }

    /// One line for whoever watches.
    pub fn summary(&self, ledger: &Ledger) -> String {
        format!(
            "{} jobs, {} of them acknowledged, {} submissions repeated, {} calls, {} attempts lost, {} runs, {} firings",
            self.jobs.len(),
            ledger.jobs.len(),
            ledger.repeated,
            self.calls.len(),
            self.attempts_that("lost"),
            self.runs.len(),
            self.fires.values().map(Vec::len).sum::<usize>(),
        )
    }

    fn lost_attempts(&self) -> impl Iterator<Item = (&str, &Value)> {
        let all =
            self.attempts.iter().flat_map(|(id, attempts)| attempts.iter().map(move |one| (&**id, one)));
        all.filter(|(_, attempt)| text(attempt, "outcome") == "lost")
    }

    fn calls_by_job(&self) -> CallsByJob<'_> {
        let mut by_job = HashMap::new();
        for call in &self.calls {
            by_job.entry(call.job_id()).or_insert_with(Vec::new).push(call);
        }
        CallsByJob(by_job)
    }

    /// All that is known of a job, in the order of time.
    fn history(&self, id: &str, ledger: &Ledger) -> String {
        let mut lines: Vec<(Timestamp, String)> = Vec::new();
        if let Some(job) = ledger.jobs.get(id) {
            let what = format!("acknowledged, to start at {}", job["execute_at"]);
            let at = ledger.acknowledged_at.get(id).copied();
            lines.push((at.unwrap_or_else(|| rules::moment(job, "created_at")), what));
        }
        if let Some(at) = ledger.cancelled.get(id) {
            lines.push((*at, "acknowledged as cancelled".into()));
        }
        for call in self.calls_by_job().of(id) {
            lines.push((call.arrived_at, format!("call of {}, attempt {}", call.path, call.fencing_token())));
        }
        for attempt in self.attempts.get(id).into_iter().flatten() {
            lines.push((rules::moment(attempt, "started_at"), format!("record of attempt {attempt}")));
        }
        lines.sort();
        let mut history = format!("  job {id}\n");
        for (at, what) in lines {
            let _ = writeln!(history, "    {at} {what}");
        }
        for job in self.jobs.iter().filter(|job| job["id"] == id) {
            let _ = writeln!(history, "    in the end: {job}");
        }
        history
    }
}

/// The calls of each job, in the order of their arrival.
struct CallsByJob<'c>(HashMap<&'c str, Vec<&'c Call>>);

impl<'c> CallsByJob<'c> {
    fn of(&self, job_id: &str) -> impl Iterator<Item = &'c Call> {
        self.0.get(job_id).into_iter().flatten().copied()
    }

    fn first(&self, job_id: &str) -> Option<Timestamp> {
        self.of(job_id).map(|call| call.arrived_at).min()
    }

    /// The first call of a later attempt than this.
    fn after(&self, job_id: &str, attempt: u64) -> Option<&'c Call> {
        self.of(job_id).find(|call| call.fencing_token() > attempt)
    }
}

/// All jobs, if all have ended. The short questions come first: they are asked often.
async fn all_jobs_ended(api: &Api) -> Option<Vec<Value>> {
    for status in ["pending", "scheduled", "running"] {
        let open = api.get(&format!("/api/v1/jobs?status={status}&limit=1")).await.expect(200).json();
        if open["items"].as_array().is_none_or(|items| !items.is_empty()) {
            return None;
        }
    }
    let jobs = api.list("/api/v1/jobs?limit=1000&include=result").await;
    jobs.iter().all(has_ended).then_some(jobs)
}
