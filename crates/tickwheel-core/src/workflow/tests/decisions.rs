//! How a run goes on: rules, failure, hooks, its end.

use std::collections::HashMap;
use std::time::Duration;

use super::*;

fn ruled(rule: TriggerRule, task: TaskSpec) -> TaskSpec {
    TaskSpec { rule, ..task }
}

fn diamond() -> WorkflowSpec {
    spec(vec![task("a", &[]), task("b", &["a"]), task("c", &["a"]), task("d", &["b", "c"])])
}

#[test]
fn what_needs_no_decision_is_released_by_its_counts() {
    let stage = Stage::new(diamond());
    let states: Vec<State> = stage.tasks.iter().map(|task| task.state).collect();
    assert_eq!(states, [State::Scheduled, State::Pending, State::Pending, State::Pending]);
    assert!(stage.tasks.iter().all(|task| task.position.release == Release::Task));
    assert_eq!(stage.tasks[3].parents, Parents { open: 2, failed: 0 });
    assert_eq!(stage.ready(), Vec::<String>::new());
    assert!(!stage.review().over);
}

#[test]
fn whatever_depends_on_a_failed_task_is_blocked_and_the_rest_goes_on() {
    let mut stage = Stage::new(diamond());
    stage.put_all(&[("a", State::Completed), ("b", State::Failed), ("c", State::Running)]);
    assert_eq!(stage.changes(), ["d: blocked"]);
    assert!(!stage.review().over, "c runs");
    stage.put_all(&[("c", State::Completed), ("d", State::Blocked)]);
    let review = stage.review();
    assert_eq!((review.over, review.status, review.blocked), (true, RunStatus::Failed, 1));
}

#[test]
fn blocking_reaches_to_the_end_of_a_chain_and_so_does_its_undoing() {
    let mut stage = Stage::new(spec(vec![task("a", &[]), task("b", &["a"]), task("c", &["b"])]));
    stage.put("a", State::Failed);
    assert_eq!(stage.changes(), ["b: blocked", "c: blocked"]);
    stage.put_all(&[("a", State::Scheduled), ("b", State::Blocked), ("c", State::Blocked)]);
    assert_eq!(stage.changes(), ["b: unblocked", "c: unblocked"]);
}

#[test]
fn clean_up_waits_for_everything_and_an_alarm_for_the_first_failure() {
    let mut stage = Stage::new(spec(vec![
        task("a", &[]),
        task("b", &[]),
        ruled(TriggerRule::AllDone, task("clean", &["a", "b"])),
        ruled(TriggerRule::AnyFailed, task("alarm", &["a", "b"])),
        task("report", &["clean"]),
    ]));
    stage.put_all(&[("a", State::Failed), ("b", State::Running)]);
    assert_eq!(stage.ready(), ["alarm"]);
    stage.put_all(&[("b", State::Completed), ("alarm", State::Completed)]);
    assert_eq!(stage.ready(), ["clean"]);
    stage.put_all(&[("clean", State::Completed), ("report", State::Completed)]);
    assert_eq!(stage.review().status, RunStatus::Failed, "nobody mended a");
}

#[test]
fn clean_up_does_not_wait_for_what_is_blocked() {
    let mut stage = Stage::new(spec(vec![
        task("a", &[]),
        task("b", &["a"]),
        ruled(TriggerRule::AllDone, task("clean", &["b"])),
    ]));
    stage.put("a", State::Failed);
    assert_eq!(stage.ready(), ["clean"]);
    assert_eq!(stage.changes(), ["b: blocked"]);
}

#[test]
fn an_alarm_for_nothing_is_skipped() {
    let mut stage =
        Stage::new(spec(vec![task("a", &[]), ruled(TriggerRule::AnyFailed, task("alarm", &["a"]))]));
    stage.put("a", State::Completed);
    assert_eq!(stage.changes(), ["alarm: skipped"]);
    stage.put("alarm", State::Skipped);
    assert_eq!((stage.review().over, stage.review().status), (true, RunStatus::Completed));
}

#[test]
fn a_branch_that_is_skipped_ends_where_another_one_joins_it() {
    let mut stage = Stage::new(spec(vec![
        task("a", &[]),
        task("no", &["a"]),
        task("no_more", &["no"]),
        task("yes", &["a"]),
        task("join", &["no_more", "yes"]),
    ]));
    stage.put_all(&[("a", State::Completed), ("no", State::Skipped), ("yes", State::Completed)]);
    assert_eq!(stage.changes(), ["no_more: skipped"]);
    assert_eq!(stage.ready(), ["join"], "in the same step");
}

#[test]
fn fail_fast_ends_what_has_not_started_but_not_what_is_there_for_failures() {
    let mut stage = Stage::new(WorkflowSpec {
        on_failure: OnFailure::FailFast,
        ..spec(vec![
            task("a", &[]),
            task("b", &["a"]),
            task("slow", &[]),
            task("waiting", &[]),
            task("later", &["slow"]),
            ruled(TriggerRule::AllDone, task("clean", &["a", "slow"])),
            task("after_clean", &["clean"]),
        ])
    });
    stage.put_all(&[("a", State::Failed), ("slow", State::Running)]);
    assert_eq!(
        stage.changes(),
        ["b: blocked", "slow: stopped", "waiting: cancelled", "later: cancelled"],
        "the dependant of the failed one is blocked, not ended"
    );
    assert!(!stage.review().over);
}

#[test]
fn what_comes_after_all_others_is_added_once_all_others_are_over_and_knows_how_it_went() {
    let after = vec![with_payload(task("tell", &[]), r#"{"how": {"$from": "run.status"}}"#)];
    let mut stage = Stage::new(WorkflowSpec { after, ..spec(vec![task("a", &[])]) });
    assert!(!stage.review().add_after);
    stage.put("a", State::Failed);
    let review = stage.review();
    assert!(review.add_after && !review.over);
    let step = step_of_review(&stage.context(), &stage.tasks, &review, &ParentResults::default());
    assert_eq!(step.jobs.len(), 1);
    assert_eq!(step.jobs[0].payload.as_str(), r#"{"how":"failed"}"#);
    let progress = step.progress.expect("it went on");
    assert_eq!((progress.after_first, progress.status), (Some(2), RunStatus::Running));
    stage.run.progress = progress;
    stage.tasks.push(RunTask::of(&step.jobs[0]).expect("a task"));
    assert!(!stage.review().over);
    stage.tasks[1].state = State::Completed;
    assert_eq!((stage.review().over, stage.review().status), (true, RunStatus::Failed));
}

#[test]
fn a_fan_out_makes_a_job_an_element_and_joins_their_results_in_order() {
    let each = Each::Job(template(
        r#"{"file": {"$from": "item.path"}, "n": {"$from": "index"}, "of": {"$from": "input.n"}}"#,
    ));
    let tasks = vec![task("list", &[]), fanned(task("load", &["list"]), "list.result.files", None, each)];
    let mut stage = Stage::new(spec(tasks));
    stage.put("list", State::Completed);
    let result = |text: &str| ParentData {
        state: State::Completed,
        result: Some(JsonText::from_checked(text)),
        error: None,
    };
    let list = stage.tasks[0].job_id;
    let data = HashMap::from([(list, result(r#"{"files": [{"path": "x"}, {"path": "y"}]}"#))]);
    let step = step_of_tasks(&stage.context(), &[&stage.tasks[1]], &data.into());
    let payloads: Vec<&str> = step.jobs.iter().map(|job| job.payload.as_str()).collect();
    assert_eq!(payloads, [r#"{"file":"x","n":0,"of":1}"#, r#"{"file":"y","n":1,"of":1}"#]);
    assert!(step.jobs.iter().all(|job| job.state == State::Scheduled));
    let fan_out = FanOut { first: 3, items: 2, released: 2, unmade: 0 };
    assert_eq!(step.changes, [(stage.tasks[1].job_id, TaskChange::Expand { fan_out, fresh: true })]);

    stage.tasks[1].fan_out = Some(fan_out);
    stage.tasks[1].parents = Parents { open: 0, failed: 0 };
    let done = HashMap::from([(step.jobs[1].id, result("2")), (step.jobs[0].id, result("1"))]);
    let joined = step_of_tasks(&stage.context(), &[&stage.tasks[1]], &done.into());
    let TaskChange::End { state: State::Completed, result: Some(text), .. } = &joined.changes[0].1 else {
        panic!("{joined:?}")
    };
    assert_eq!(text.as_str(), "[1,2]");
}

#[test]
fn a_limited_fan_out_lets_the_next_go_when_one_has_ended() {
    let load = fanned(task("load", &[]), "input.list", Some(2), Each::Job(template(r#"{"$from": "item"}"#)));
    let mut stage = Stage::new(spec(vec![TaskSpec { when: Some("true".into()), ..load }]));
    stage.run.input = JsonText::from_checked(r#"{"list": [1, 2, 3, 4]}"#);
    let step = step_of_tasks(&stage.context(), &[&stage.tasks[0]], &ParentResults::default());
    let states: Vec<State> = step.jobs.iter().map(|job| job.state).collect();
    assert_eq!(states, [State::Scheduled, State::Scheduled, State::Pending, State::Pending]);
    stage.tasks[0].fan_out = Some(FanOut { first: 2, items: 4, released: 2, unmade: 0 });
    stage.tasks[0].parents = Parents { open: 3, failed: 0 };
    let next = step_of_tasks(&stage.context(), &[&stage.tasks[0]], &ParentResults::default());
    let released = FanOut { first: 2, items: 4, released: 3, unmade: 0 };
    assert_eq!(
        next.changes,
        [
            (stage.tasks[0].job_id, TaskChange::Expand { fan_out: released, fresh: false }),
            (step.jobs[2].id, TaskChange::Release { payload: None }),
        ]
    );
}

#[test]
fn what_cannot_be_prepared_fails_with_the_reason() {
    let failure = |over: &str, input: &str| {
        let load = fanned(task("load", &[]), over, None, Each::Job(template("null")));
        let mut stage = Stage::new(spec(vec![TaskSpec { when: Some("true".into()), ..load }]));
        stage.run.input = JsonText::from_checked(input);
        let step = step_of_tasks(&stage.context(), &[&stage.tasks[0]], &ParentResults::default());
        let TaskChange::End { state: State::Failed, error: Some(error), .. } = step.changes[0].1.clone()
        else {
            panic!("{step:?}")
        };
        error.message
    };
    assert_eq!(failure("input.x", "{}"), "for_each over input.x: input is an object and has no field \"x\"");
    assert_eq!(failure("input", "{}"), "for_each over input: that is an object and no array");
    assert_eq!(failure("input", "[1,2,3,4,5,6]"), "for_each over input: 6 elements, of which 5 are allowed");
}

#[test]
fn an_input_that_a_task_needs_is_missed_before_the_run_begins() {
    let workflow = workflow(spec(vec![with_payload(task("a", &[]), r#"{"day": {"$from": "input.day"}}"#)]));
    let graph = Graph::stored(&workflow.spec).expect("a graph");
    let id = RunId::fresh(Uuid::from_u128(7 << 100));
    let refused = begin(&graph, &workflow, id, JsonText::null(), None, NOW).expect_err("no day");
    assert_eq!(
        refused.to_string(),
        "task a: {\"$from\": \"input.day\"}: input is null and has no field \"day\""
    );
}

#[test]
fn a_task_is_stalled_when_what_it_waits_for_takes_too_long() {
    let mut stage = Stage::new(diamond());
    stage.put("a", State::Running);
    stage.tasks[0].started_at = Some(NOW - Duration::from_secs(60));
    let stalled =
        |limit| review(&stage.graph, &stage.run, &stage.tasks, Some(Duration::from_secs(limit)), NOW).stalled;
    assert_eq!(stalled(60), [2, 3], "d waits for tasks that wait themselves");
    assert_eq!(stalled(61), Vec::<u32>::new());
}

#[test]
fn what_waits_for_a_fan_out_goes_on_when_fail_fast_leaves_some_of_its_items_unmade() {
    let load = fanned(task("load", &[]), "input.list", None, Each::Job(template(r#"{"$from": "item"}"#)));
    let mut stage = Stage::new(WorkflowSpec {
        on_failure: OnFailure::FailFast,
        ..spec(vec![
            task("broken", &[]),
            TaskSpec { when: Some("true".into()), ..load },
            ruled(TriggerRule::AllDone, task("clean", &["load"])),
        ])
    });
    stage.put_all(&[("broken", State::Failed), ("load", State::Blocked)]);
    stage.tasks[1].fan_out = Some(FanOut { first: 4, items: 1, released: 1, unmade: 2 });
    stage.tasks[1].parents = Parents { open: 2, failed: 1 };
    assert_eq!(stage.ready(), ["clean"]);
    stage.put("clean", State::Completed);
    assert!(stage.review().over);
}
