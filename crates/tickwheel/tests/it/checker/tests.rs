//! The checker finds what is broken: one story in which everything holds, and for each invariant a change that breaks
//! it.

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::json;

use super::*;

const BEGAN: i64 = 1_800_000_000_000;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(BEGAN + millis).unwrap()
}

/// The same as JSON has it.
fn said(millis: i64) -> String {
    at(millis).to_string()
}

fn job(id: &str, due: i64, attempt: u64) -> Value {
    json!({"id": id, "status": "completed", "queue": "default", "attempt": attempt, "depends_on": [],
        "execute_at": said(due), "created_at": said(0), "completed_at": said(due + 60), "metadata": {"key": id},
        "result": {"attempt": attempt}, "target": {"http": {"url": "http://somewhere"}}})
}

fn record(number: u64, outcome: &str, started: i64, ended: i64) -> Value {
    json!({"number": number, "outcome": outcome, "started_at": said(started), "ended_at": said(ended)})
}

fn call(id: &str, attempt: u64, arrived: i64) -> Call {
    let mut headers = HeaderMap::new();
    headers.insert("tickwheel-job-id", id.parse().unwrap());
    headers.insert("idempotency-key", id.parse().unwrap());
    headers.insert("tickwheel-fencing-token", attempt.into());
    headers.insert("tickwheel-token", format!("{id}-{attempt}").parse().unwrap());
    let (method, path) = (Method::POST, "/".to_owned());
    Call { arrived_at: at(arrived), method, path, query: None, headers, body: Bytes::new() }
}

fn fire(second: i64) -> Value {
    let nominal = said(second * 1_000);
    json!({"nominal_time": nominal, "last_nominal_time": nominal, "outcome": "fired", "job_id": format!("f{second}")})
}

/// A parent whose first attempt is lost with its server, its child, a job that is cancelled, a run, and a schedule.
fn sound() -> (Checker, Ledger, Conditions) {
    let mut cancelled = job("cancelled", 9_000, 0);
    cancelled["status"] = json!("cancelled");
    cancelled["result"] = Value::Null;
    let mut child = job("child", 0, 1);
    child["depends_on"] = json!(["parent"]);
    child["completed_at"] = json!(said(2_000));
    let mut parent = job("parent", 100, 2);
    parent["completed_at"] = json!(said(1_500));
    let mut jobs = vec![parent, child, cancelled];
    let mut attempts = HashMap::from([
        ("parent".to_owned(), vec![record(1, "lost", 100, 1_000), record(2, "completed", 1_100, 1_500)]),
        ("child".to_owned(), vec![record(1, "completed", 1_500, 2_000)]),
    ]);
    let mut calls = vec![call("parent", 1, 110), call("parent", 2, 1_110), call("child", 1, 1_510)];
    for second in 1..=3 {
        let id = format!("f{second}");
        let mut fired = job(&id, second * 1_000, 1);
        fired["schedule_id"] = json!("tick");
        jobs.push(fired);
        calls.push(call(&id, 1, second * 1_000 + 5));
        attempts.insert(id, vec![record(1, "completed", second * 1_000, second * 1_000 + 50)]);
    }
    let run = json!({"status": "completed", "ended_at": said(2_000), "tasks_open": 0});
    let fires = HashMap::from([("tick".to_owned(), vec![fire(1), fire(2), fire(3)])]);
    let checker = Checker { jobs, attempts, fires, runs: vec![run], calls };
    let ledger = Ledger {
        jobs: checker.jobs.iter().take(3).map(|job| (id_of(job), job.clone())).collect(),
        acknowledged_at: ["parent", "child", "cancelled"].map(|id| (id.to_owned(), at(0))).into(),
        cancelled: HashMap::from([("cancelled".to_owned(), at(500))]),
        pauses: vec![Pause {
            what: Paused::Queue("lane".into()),
            acknowledged_at: at(100),
            until: at(9_000),
        }],
        schedules: vec![ScheduleStory {
            name: "tick".into(),
            created_at: at(0),
            pause_asked_at: at(3_200),
            pause_acknowledged_at: at(3_300),
        }],
        ..Ledger::default()
    };
    let faults = vec![Fault { began: at(500), recovered_by: at(2_500) }];
    (checker, ledger, Conditions { faults, ..Conditions::default() })
}

#[test]
fn nothing_is_found_where_everything_holds() {
    let (checker, ledger, conditions) = sound();
    checker.check(&ledger, &conditions);
    assert_eq!(checker.slowest_takeover(conditions.faults[0]), Some(Duration::from_millis(610)));
}

/// Which invariants are reported when the story is changed like this.
fn broken(change: impl FnOnce(&mut Checker, &mut Ledger, &mut Conditions)) -> HashSet<&'static str> {
    let (mut checker, mut ledger, mut conditions) = sound();
    change(&mut checker, &mut ledger, &mut conditions);
    checker.breaches(&ledger, &conditions).iter().map(|breach| breach.invariant).collect()
}

#[test]
fn every_breach_is_found_and_has_its_number() {
    let found = [
        ("I1", broken(|checker, _, _| drop(checker.jobs.remove(2)))),
        ("I1", broken(|checker, _, _| checker.jobs[0]["status"] = json!("failed"))),
        ("I1", broken(|checker, _, _| checker.jobs[0]["status"] = json!("running"))),
        ("I1", broken(|checker, _, _| checker.jobs[1]["metadata"] = json!({"key": "parent"}))),
        ("I1", broken(|checker, _, _| checker.jobs[2]["execute_at"] = json!(said(9_001)))),
        ("I1", broken(|checker, _, _| drop(checker.fires.get_mut("tick").unwrap().remove(1)))),
        ("I1", broken(|_, ledger, _| ledger.schedules[0].pause_asked_at = at(60_000))),
        (
            "I1",
            broken(|checker, _, _| {
                checker.attempts.get_mut("parent").unwrap()[0]["outcome"] = json!("completed")
            }),
        ),
        ("I2", broken(|checker, _, _| checker.jobs[4]["execute_at"] = json!(said(1_000)))),
        ("I2", broken(|checker, _, _| checker.calls.push(call("child", 1, 1_600)))),
        ("I2", broken(|checker, _, _| checker.calls.push(call("child", 2, 1_600)))),
        ("I2", broken(|checker, _, _| drop(checker.calls.remove(2)))),
        ("I3", broken(|checker, _, _| checker.calls.swap(0, 1))),
        ("I3", broken(|checker, _, _| checker.jobs[0]["result"]["attempt"] = json!(1))),
        ("I4", broken(|checker, _, _| checker.calls[0].arrived_at = at(99))),
        ("I5", broken(|checker, _, _| checker.calls[5].arrived_at = at(3_000) + 2 * LATENESS_MAX)),
        ("I5", broken(|checker, _, _| checker.calls[2].arrived_at = at(2_500) + 2 * LATENESS_MAX)),
        ("I6", broken(|checker, _, _| drop(checker.calls[0].headers.remove("idempotency-key")))),
        ("I7", broken(|checker, _, _| checker.calls[1].arrived_at = at(2_501))),
        ("I7", broken(|_, _, conditions| conditions.faults.clear())),
        ("I8", broken(|checker, _, _| checker.jobs[0]["completed_at"] = json!(said(1_501)))),
        ("I8", broken(|checker, _, _| checker.calls[2].arrived_at = at(1_109))),
        ("I8", broken(|checker, _, _| checker.runs[0]["status"] = json!("running"))),
        ("I10", broken(|_, ledger, _| ledger.pauses[0].what = Paused::Queue("default".into()))),
        (
            "I10",
            broken(|checker, ledger, _| {
                checker.jobs[0]["workflow_run_id"] = json!("run");
                ledger.pauses[0].what = Paused::Run("run".into());
            }),
        ),
        ("I10", broken(|checker, _, _| checker.calls.push(call("cancelled", 1, 9_000)))),
        ("I10", broken(|_, ledger, _| ledger.schedules[0].pause_acknowledged_at = at(2_900))),
    ];
    for (number, (invariant, reported)) in found.iter().enumerate() {
        assert!(reported.contains(invariant), "change {number} breaks {invariant}, reported: {reported:?}");
    }
}

#[test]
#[should_panic(expected = "I3: after token Some(2) came a smaller one\n  job parent\n    2027-")]
fn a_report_tells_the_history_of_the_job() {
    let (mut checker, ledger, conditions) = sound();
    checker.calls.swap(0, 1);
    checker.check(&ledger, &conditions);
}
