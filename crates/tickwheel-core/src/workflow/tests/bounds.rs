//! How much a run and its steps make.

use super::*;
use crate::JobId;

/// What a step makes of the fan-out that is the first task; the stage is as the step leaves it.
fn go_on(stage: &mut Stage) -> RunStep {
    let step = step_of_tasks(&stage.context(), &[&stage.tasks[0]], &ParentResults::default());
    stage.run.progress = step.progress.unwrap_or(stage.run.progress);
    for (id, change) in &step.changes {
        if let (TaskChange::Expand { fan_out, fresh }, true) = (change, *id == stage.tasks[0].job_id) {
            stage.tasks[0].fan_out = Some(*fan_out);
            if *fresh {
                stage.tasks[0].parents = Parents { open: fan_out.items, failed: 0 };
            }
        }
    }
    stage.tasks.extend(step.jobs.iter().filter_map(RunTask::of));
    step
}

fn failure(step: &RunStep) -> &Failure {
    match &step.changes[..] {
        [(_, TaskChange::End { state: State::Failed, error: Some(error), .. })] => error,
        other => panic!("{other:?}"),
    }
}

/// A fan-out over an array of `items` numbers, with this payload for each.
fn fan(items: usize, concurrency: Option<u32>, payload: &str) -> Stage {
    let each = Each::Job(template(payload));
    let work = ForEach { over: "input.list".into(), max_items: 1_000, concurrency, each };
    let fan = TaskSpec { work: Work::ForEach(work), when: Some("true".into()), ..task("fan", &[]) };
    let mut stage = Stage::new(spec(vec![fan]));
    let list: Vec<usize> = (0..items).collect();
    let input = serde_json::json!({"list": list, "text": "x".repeat(10_000)});
    stage.run.input = JsonText::from_checked(input.to_string());
    stage
}

/// The same over texts of 10,000 characters.
fn fan_of_texts(items: usize, payload: &str) -> Stage {
    let mut stage = fan(items, None, payload);
    let input = serde_json::json!({"list": vec!["x".repeat(10_000); items]});
    stage.run.input = JsonText::from_checked(input.to_string());
    stage
}

#[test]
fn items_are_made_in_steps_and_keep_their_numbers() {
    let mut stage = fan(5, None, r#"{"$from": "item"}"#);
    stage.limits.step_jobs_max = 2;
    let me = stage.tasks[0].job_id;
    let mut numbers: Vec<(u32, String)> = Vec::new();
    for made in [2, 2, 1] {
        let step = go_on(&mut stage);
        assert_eq!(step.jobs.len(), made);
        assert!(step.progress.is_some(), "nobody else may make the same");
        assert!(step.jobs.iter().all(|job| job.state == State::Scheduled));
        assert!(
            step.reconcile_requests.contains(&me),
            "it goes on, and is requested once more when all are made"
        );
        numbers.extend(step.jobs.iter().map(|job| (job.id.task_index(), job.payload.as_str().to_owned())));
    }
    let expected: Vec<(u32, String)> = (0..5).map(|item| (item + 2, item.to_string())).collect();
    assert_eq!(numbers, expected);
    assert_eq!(stage.tasks[0].fan_out, Some(FanOut { first: 2, items: 5, released: 5, unmade: 0 }));
    let step = go_on(&mut stage);
    assert!(step.jobs.is_empty() && step.changes.is_empty());
}

#[test]
fn a_step_ends_after_so_many_bytes() {
    let mut stage = fan_of_texts(10, r#"[{"$from": "item"}, {"$from": "index"}]"#);
    stage.limits.step_bytes_max = 25_000;
    assert_eq!(go_on(&mut stage).jobs.len(), 3);
    assert_eq!(stage.run.progress.data_bytes, 10 * (10_006 - 1_024), "all of it was counted at once");
    assert_eq!(go_on(&mut stage).jobs.len(), 3);
    assert_eq!(stage.run.progress.data_bytes, 10 * (10_006 - 1_024), "and no more");
}

#[test]
fn what_all_items_have_in_common_is_not_made_for_each() {
    let mut stage = fan(1_000, None, r#"{"all": {"$from": "input.text"}, "mine": {"$from": "item"}}"#);
    stage.limits.run_bytes_max = 5_000;
    let step = go_on(&mut stage);
    let payloads: Vec<&str> = step.jobs.iter().map(|job| job.payload.as_str()).collect();
    assert_eq!(payloads.len(), 1_000);
    assert_eq!(payloads[7], r#"@["{\"all\":",{"path":"input.text"},",\"mine\":7}"]"#);
    assert_eq!(stage.run.progress.data_bytes, 0);
    assert!(step.data_bytes() < 100_000);
}

#[test]
fn items_of_a_limited_fan_out_are_held_back_until_all_are_made() {
    let mut stage = fan(5, Some(3), r#"{"$from": "item"}"#);
    stage.limits.step_jobs_max = 2;
    let states = |step: &RunStep| step.jobs.iter().map(|job| job.state).collect::<Vec<_>>();
    assert_eq!(states(&go_on(&mut stage)), [State::Scheduled, State::Scheduled]);
    stage.tasks[0].parents.open -= 1;
    assert_eq!(states(&go_on(&mut stage)), [State::Scheduled, State::Pending]);
    assert_eq!(states(&go_on(&mut stage)), [State::Pending]);
    let step = go_on(&mut stage);
    let fourth = JobId::of_task(stage.run.id, 5);
    assert_eq!(step.changes[1], (fourth, TaskChange::Release { payload: None }), "one has ended meanwhile");
    assert_eq!(stage.tasks[0].fan_out, Some(FanOut { first: 2, items: 5, released: 4, unmade: 0 }));
}

#[test]
fn a_fan_out_that_would_take_its_run_over_the_bound_fails_and_makes_nothing() {
    let mut stage = fan_of_texts(1_000, r#"{"all": {"$from": "item"}}"#);
    stage.limits.run_bytes_max = 5_000_000;
    let step = go_on(&mut stage);
    let error = failure(&step);
    assert_eq!(error.code, "data_too_large");
    assert_eq!(
        error.message,
        "item 556: with it the run would have made over 5000000 bytes of data, which are allowed"
    );
    assert!(step.jobs.is_empty() && step.progress.is_none());
}

#[test]
fn one_payload_is_not_made_that_would_be_too_large() {
    let many = vec![r#"{"$from": "input.text"}"#; 1_000].join(",");
    let step = go_on(&mut fan(1, None, &format!("[{many}]")));
    assert_eq!(failure(&step).code, "data_too_large");
    assert_eq!(failure(&step).message, "item 0: its payload would be over 8388608 bytes, which are allowed");
}

#[test]
fn a_run_cannot_begin_with_too_much() {
    // Just too small to be referred to.
    let payload = format!("[{}]", vec![r#"{"$from": "input"}"#; 1_000].join(","));
    let tasks = (0..40).map(|n| with_payload(task(&format!("t{n}"), &[]), &payload)).collect();
    let workflow = workflow(spec(tasks));
    let graph = Graph::stored(&workflow.spec).expect("a graph");
    let id = RunId::fresh(Uuid::from_u128(7 << 100));
    let input = JsonText::from_checked(format!("\"{}\"", "x".repeat(1_000)));
    let refused = begin(&graph, &workflow, id, input, None, NOW).expect_err("40 MB");
    assert!(matches!(refused.why, DataFault::TooLarge(_)), "{refused}");
}

#[test]
fn what_a_step_has_no_room_for_is_requested_again() {
    let tasks = (0..4).map(|n| {
        with_payload(task(&format!("t{n}"), &["a"]), r#"[{"$from": "a.result"}, {"$from": "a.result"}]"#)
    });
    let mut stage = Stage::new(spec([task("a", &[])].into_iter().chain(tasks).collect()));
    stage.put("a", State::Completed);
    stage.limits.step_bytes_max = 3_000;
    let result = Some(JsonText::from_checked(format!("\"{}\"", "x".repeat(1_000))));
    let data = ParentData { state: State::Completed, result, error: None };
    let needed = |is_cut| ParentResults { jobs: [(stage.tasks[0].job_id, data.clone())].into(), is_cut };
    let ready: Vec<&RunTask> = stage.tasks[1..].iter().collect();
    let step = step_of_tasks(&stage.context(), &ready, &needed(false));
    assert_eq!((step.changes.len(), step.data_bytes()), (2, 4_014));
    assert_eq!(step.reconcile_requests, [ready[2].job_id, ready[3].job_id]);

    // If not even the results could be read that the first one uses, it never gets any further.
    let step =
        step_of_tasks(&stage.context(), &ready, &ParentResults { is_cut: true, ..ParentResults::default() });
    assert_eq!(failure(&step).code, "data_too_large");
    assert_eq!(step.reconcile_requests.len(), 3);
}

#[test]
fn an_array_of_the_input_is_missed_before_the_run_begins_unless_the_task_may_be_skipped() {
    let fan = |when: Option<&str>| {
        let each = Each::Job(template("null"));
        let fan = fanned(task("load", &[]), "input.files", None, each);
        workflow(spec(vec![TaskSpec { when: when.map(Into::into), ..fan }]))
    };
    let begun = |workflow: &Workflow, input: &str| {
        let graph = Graph::stored(&workflow.spec).expect("a graph");
        let id = RunId::fresh(Uuid::from_u128(7 << 100));
        let begun = begin(&graph, workflow, id, JsonText::from_checked(input), None, NOW);
        begun.map(|_| ()).map_err(|refused| refused.to_string())
    };
    let missed = "task load: for_each over input.files: input is null and has no field \"files\"";
    assert_eq!(begun(&fan(None), "null"), Err(missed.into()));
    let no_array = "task load: for_each over input.files: that is a number and no array";
    assert_eq!(begun(&fan(None), r#"{"files": 1}"#), Err(no_array.into()));
    let many = "task load: for_each over input.files: 6 elements, of which 5 are allowed";
    assert_eq!(begun(&fan(None), r#"{"files": [1,2,3,4,5,6]}"#), Err(many.into()));
    assert_eq!(begun(&fan(None), r#"{"files": []}"#), Ok(()));
    assert_eq!(begun(&fan(Some("input.files")), "null"), Ok(()));
}
