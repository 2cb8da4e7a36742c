//! What becomes of a run when a task fails, when somebody interferes, and who is told.

use std::time::Duration;

use serde_json::{Value, json};

use crate::api::text;
use crate::e2e::{Stage, for_a_while, on_both_stores, quick_retries};
use crate::server::StoreKind;
use crate::target::{Gate, Reply};
use crate::workflows::{assert_in_order, status_of, statuses, task_of};

on_both_stores! {
    failing_fast_cancels_what_waits_and_stops_what_runs,
    continuing_lets_everything_go_on_that_does_not_need_the_failed_one,
    a_failing_task_is_retried_before_it_counts_as_failed,
    a_retry_of_the_run_keeps_what_completed,
    a_retry_of_the_job_that_failed_resumes_the_run,
    a_task_is_skipped_by_hand_and_the_run_goes_on,
    a_skipped_task_is_run_again_with_those_that_failed_without_it,
    an_array_that_the_input_lacks_is_missed_at_the_start,
    a_task_is_run_again_by_hand,
    what_cannot_be_done_by_hand_is_refused_with_the_reason,
    a_cancelled_run_ends_and_starts_nothing_more,
    hooks_come_first_and_last_whatever_happens,
    a_failed_hook_before_all_others_keeps_them_from_starting,
    who_asked_to_be_told_is_told,
    a_task_that_waits_too_long_is_stalled_and_that_is_told,
}

async fn failing_fast_cancels_what_waits_and_stops_what_runs(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let (gate, never) = (Gate::closed(), Gate::closed());
    stage.target.reply("/bad", Reply::status(400).behind(&gate));
    stage.target.reply("/long", Reply::ok().behind(&never));
    let tasks = vec![
        stage.task("bad", &[], json!({})),
        stage.task("long", &[], json!({})),
        stage.task("after_bad", &["bad"], json!({})),
        stage.task("after_long", &["long"], json!({})),
        stage.task("cleanup", &["bad", "long"], json!({"trigger_rule": "all_done"})),
    ];
    stage.store("etl", tasks, json!({})).await;
    let id = stage.start("etl", Value::Null).await;
    stage.target.called("/long", 1).await;
    gate.open();
    let run = stage.api.run_ended(&id).await;
    assert_eq!(text(&run, "status"), "failed");
    assert_eq!(status_of(&run, "bad"), "failed", "{run:#}");
    assert_eq!(status_of(&run, "long"), "cancelled", "{run:#}");
    assert_eq!(status_of(&run, "after_bad"), "blocked");
    assert!(matches!(status_of(&run, "after_long"), "cancelled" | "blocked"), "{run:#}");
    assert_eq!(status_of(&run, "cleanup"), "completed", "it is there for this");
    assert_in_order(&run);
    for path in ["/after_bad", "/after_long"] {
        assert!(stage.target.calls_to(path).is_empty(), "{path}");
    }
}

async fn continuing_lets_everything_go_on_that_does_not_need_the_failed_one(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/bad", Reply::status(400));
    stage.target.reply("/good", Reply::ok().after(Duration::from_millis(200)));
    let tasks = vec![
        stage.task("bad", &[], json!({})),
        stage.task("good", &[], json!({})),
        stage.task("after_bad", &["bad"], json!({})),
        stage.task("after_good", &["good"], json!({})),
        stage.task("join", &["after_bad", "after_good"], json!({})),
    ];
    let run = stage.run_to_end("etl", tasks, json!({"on_failure": "continue"})).await;
    assert_eq!(text(&run, "status"), "failed");
    assert_eq!(
        statuses(&run),
        [
            ("bad", "failed"),
            ("good", "completed"),
            ("after_bad", "blocked"),
            ("after_good", "completed"),
            ("join", "blocked")
        ]
    );
}

async fn a_failing_task_is_retried_before_it_counts_as_failed(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.on("/flaky", |call| Reply::status(if call.fencing_token() < 3 { 503 } else { 200 }));
    let flaky = stage.task("flaky", &[], json!({"job": {"retry": quick_retries(5)}}));
    let run =
        stage.run_to_end("etl", vec![flaky, stage.task("next", &["flaky"], json!({}))], json!({})).await;
    assert_eq!(text(&run, "status"), "completed", "{run:#}");
    assert_eq!(task_of(&run, "flaky")["attempt"], 3);
    assert_eq!(stage.target.calls_to("/next").len(), 1);
    assert_in_order(&run);
}

/// first → bad → last, and other beside it; `bad` fails.
async fn broken_run(stage: &Stage) -> String {
    stage.target.reply("/first", Reply::json(json!({"n": 1})));
    stage.target.reply("/bad", Reply::status(400).body("no such table"));
    let tasks = vec![
        stage.task("first", &[], json!({})),
        stage.task_with("bad", &["first"], json!({"n": {"$from": "first.result.n"}})),
        stage.task_with("last", &["bad"], json!({"bad": {"$from": "bad.result.m", "default": "nothing"}})),
        stage.task("other", &["first"], json!({})),
    ];
    let run = stage.run_to_end("etl", tasks, json!({"on_failure": "continue"})).await;
    assert_eq!((text(&run, "status"), status_of(&run, "last")), ("failed", "blocked"), "{run:#}");
    text(&run, "id").to_owned()
}

fn call_counts(stage: &Stage) -> [usize; 4] {
    ["/first", "/bad", "/last", "/other"].map(|path| stage.target.calls_to(path).len())
}

async fn a_retry_of_the_run_keeps_what_completed(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    let id = broken_run(&stage).await;
    assert_eq!(call_counts(&stage), [1, 1, 0, 1]);
    stage.restart().await;
    stage.target.reply("/bad", Reply::json(json!({"m": 5})));
    let answered = stage.act_on_run(&id, "retry").await.expect(200).json();
    assert_eq!((text(&answered, "status"), &answered["ended_at"]), ("running", &Value::Null));
    let run = stage.api.run_ended(&id).await;
    assert_eq!(text(&run, "status"), "completed", "{run:#}");
    assert_eq!(call_counts(&stage), [1, 2, 1, 1]);
    assert_eq!(stage.target.calls_to("/bad")[1].json(), json!({"n": 1}), "with the same data");
    assert_eq!(stage.target.calls_to("/last")[0].json(), json!({"bad": 5}));
    assert_eq!(stage.act_on_run(&id, "retry").await.status, 409, "nothing is left to retry");
}

async fn a_retry_of_the_job_that_failed_resumes_the_run(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let id = broken_run(&stage).await;
    let run = stage.api.run(&id).await;
    let why = stage.why(text(task_of(&run, "last"), "job_id")).await;
    assert!(text(&why, "sentence").contains("bad"), "the cause is named: {why}");
    stage.target.reply("/bad", Reply::ok());
    stage.act(text(task_of(&run, "bad"), "job_id"), "retry").await.expect(200);
    let run = stage.until_run(&id, "to complete", |run| run["status"] == "completed").await;
    assert_eq!(status_of(&run, "last"), "completed");
    assert_eq!(call_counts(&stage), [1, 2, 1, 1]);
}

async fn a_task_is_skipped_by_hand_and_the_run_goes_on(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let id = broken_run(&stage).await;
    stage.api.act(&format!("/api/v1/workflow-runs/{id}/tasks/bad/skip")).await.expect(200);
    let run = stage.api.run_ended(&id).await;
    assert_eq!((text(&run, "status"), status_of(&run, "bad")), ("completed", "skipped"), "{run:#}");
    assert_eq!(stage.target.calls_to("/last")[0].json(), json!({"bad": "nothing"}));
    assert_eq!(call_counts(&stage), [1, 1, 1, 1]);
}

/// What depends on a task that was skipped may fail for want of its result; and goes on when it has it.
async fn a_skipped_task_is_run_again_with_those_that_failed_without_it(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/first", Reply::status(400));
    stage.target.reply("/third", Reply::status(400));
    let tasks = vec![
        stage.task("first", &[], json!({})),
        stage.task_with("second", &["first"], json!({"rows": {"$from": "first.result.rows"}})),
        stage.task("third", &["first"], json!({})),
        stage.task("last", &["second", "third"], json!({})),
    ];
    stage.store("gap", tasks, json!({"on_failure": "continue"})).await;
    let id = stage.start("gap", Value::Null).await;
    stage.api.run_ended(&id).await;
    let task = |name: &str, verb: &str| format!("/api/v1/workflow-runs/{id}/tasks/{name}/{verb}");
    stage.api.act(&task("first", "skip")).await.expect(200);
    let run = stage.until_run(&id, "to fail again", |run| run["status"] == "failed").await;
    assert_eq!((status_of(&run, "second"), status_of(&run, "third")), ("failed", "failed"), "{run:#}");

    stage.target.reply("/first", Reply::json(json!({"rows": [1]})));
    stage.target.reply("/third", Reply::ok());
    stage.api.act(&task("first", "retry")).await.expect(200);
    let run = stage.api.run_ended(&id).await;
    assert_eq!(text(&run, "status"), "completed", "{run:#}");
    assert_in_order(&run);
    assert_eq!(stage.target.calls_to("/second")[0].json(), json!({"rows": [1]}));
    assert_eq!((stage.target.calls_to("/third").len(), stage.target.calls_to("/last").len()), (2, 1));
}

async fn an_array_that_the_input_lacks_is_missed_at_the_start(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let each = stage.task("each", &[], json!({"for_each": "input.files"}));
    stage.store("files", vec![each], json!({})).await;
    let start = async |body: Value| stage.api.post("/api/v1/workflows/files/runs", &body).await;
    for (input, why) in [(Value::Null, "no field"), (json!({"files": 3}), "no array")] {
        let refused = start(json!({"input": input})).await.expect(422);
        assert!(refused.text().contains("for_each over input.files"), "{}", refused.text());
        assert!(refused.text().contains(why), "{}", refused.text());
    }
    assert!(stage.api.list("/api/v1/workflow-runs").await.is_empty(), "a refused request leaves no trace");
    start(json!({"input": {"files": [1, 2]}})).await.expect(201);
    stage.target.called("/each", 2).await;
}

async fn a_task_is_run_again_by_hand(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let id = broken_run(&stage).await;
    stage.target.reply("/bad", Reply::json(json!({"m": 6})));
    stage.api.act(&format!("/api/v1/workflow-runs/{id}/tasks/bad/retry")).await.expect(200);
    let run = stage.api.run_ended(&id).await;
    assert_eq!(text(&run, "status"), "completed", "{run:#}");
    assert_eq!(stage.target.calls_to("/last")[0].json(), json!({"bad": 6}));
    assert_eq!(call_counts(&stage), [1, 2, 1, 1]);
}

async fn what_cannot_be_done_by_hand_is_refused_with_the_reason(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let id = broken_run(&stage).await;
    for (verb, said) in [
        ("tasks/first/skip", "completed"),
        ("tasks/first/retry", "completed"),
        ("tasks/nobody/skip", "nobody"),
        ("tasks/bad%5B0%5D/skip", "bad[0]"),
        ("cancel", "failed already"),
    ] {
        let refused = stage.act_on_run(&id, verb).await;
        assert!(matches!(refused.status, 404 | 409), "{verb}: {}", refused.text());
        assert!(text(&refused.json(), "detail").contains(said), "{verb}: {}", refused.text());
    }
    let nobody = "01890a5d-ac96-774b-bcce-b30209900000";
    for verb in ["cancel", "retry", "tasks/a/skip"] {
        stage.act_on_run(nobody, verb).await.expect(404);
    }
    assert_eq!(text(&stage.api.run(&id).await, "status"), "failed");
    for_a_while(async || assert_eq!(call_counts(&stage), [1, 1, 0, 1])).await;
}

async fn a_cancelled_run_ends_and_starts_nothing_more(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let never = Gate::closed();
    stage.target.reply("/long", Reply::ok().behind(&never));
    let tasks = vec![
        stage.task("long", &[], json!({})),
        stage.task("next", &["long"], json!({})),
        stage.task("cleanup", &["next"], json!({"trigger_rule": "all_done"})),
    ];
    let after = vec![stage.task_with("report", &[], json!({"status": {"$from": "run.status"}}))];
    stage.store("etl", tasks, json!({"after": after})).await;
    let id = stage.start("etl", Value::Null).await;
    stage.target.called("/long", 1).await;
    stage.act_on_run(&id, "cancel").await.expect(200);
    let run = stage.api.run_ended(&id).await;
    assert_eq!(text(&run, "status"), "cancelled", "{run:#}");
    assert_eq!((status_of(&run, "long"), status_of(&run, "report")), ("cancelled", "completed"), "{run:#}");
    assert_eq!(stage.target.calls_to("/report")[0].json(), json!({"status": "cancelled"}));
    stage.act_on_run(&id, "cancel").await.expect(200);
    for_a_while(async || {
        assert!(stage.target.calls_to("/next").is_empty() && stage.target.calls_to("/cleanup").is_empty());
    })
    .await;

    // What was cancelled can be taken up again.
    stage.target.reply("/long", Reply::ok());
    stage.act_on_run(&id, "retry").await.expect(200);
    let run = stage.api.run_ended(&id).await;
    assert_eq!(text(&run, "status"), "completed", "{run:#}");
    assert_eq!(stage.target.calls_to("/report").len(), 2, "it ended twice");
    assert_in_order(&run);
}

async fn hooks_come_first_and_last_whatever_happens(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/lock", Reply::ok().after(Duration::from_millis(100)));
    let tasks = || vec![stage.task("a", &[], json!({})), stage.task("b", &["a"], json!({}))];
    let hooks = json!({
        "before": [stage.task("lock", &[], json!({}))],
        "after": [
            stage.task_with("report", &[], json!({"status": {"$from": "run.status"}})),
            stage.task("unlock", &["report"], json!({})),
        ],
    });
    let order = |stage: &Stage| -> Vec<String> {
        stage.target.calls().iter().map(|call| call.path.clone()).collect()
    };
    let run = stage.run_to_end("fine", tasks(), hooks.clone()).await;
    assert_eq!(text(&run, "status"), "completed", "{run:#}");
    assert_eq!(order(&stage), ["/lock", "/a", "/b", "/report", "/unlock"]);
    let names: Vec<&str> = statuses(&run).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["lock", "a", "b", "report", "unlock"]);
    assert_eq!(stage.target.calls_to("/report")[0].json(), json!({"status": "completed"}));

    stage.target.reply("/a", Reply::status(400));
    let run = stage.run_to_end("broken", tasks(), hooks).await;
    assert_eq!(text(&run, "status"), "failed");
    assert_eq!(order(&stage)[5..], ["/lock", "/a", "/report", "/unlock"]);
    assert_eq!(stage.target.calls_to("/report")[1].json(), json!({"status": "failed"}));
}

async fn a_failed_hook_before_all_others_keeps_them_from_starting(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/lock", Reply::status(400));
    let hooks = json!({"before": [stage.task("lock", &[], json!({}))],
        "after": [stage.task("unlock", &[], json!({}))]});
    let run = stage.run_to_end("etl", vec![stage.task("a", &[], json!({}))], hooks).await;
    assert_eq!(text(&run, "status"), "failed");
    assert_eq!(statuses(&run), [("lock", "failed"), ("a", "blocked"), ("unlock", "completed")]);
    assert!(stage.target.calls_to("/a").is_empty());
}

async fn who_asked_to_be_told_is_told(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/bad", Reply::status(400));
    let usual = stage.target.url("/usual");
    let chosen = stage.target.url("/chosen");
    let notify = json!({"notify": [{"url": usual}, {"url": chosen, "on": ["running", "failed"]}]});
    stage.run_to_end("fine", vec![stage.task("good", &[], json!({}))], notify.clone()).await;
    let told = stage.target.called("/usual", 1).await[0].json();
    assert_eq!(text(&told, "type"), "workflow_run.completed");
    assert_eq!((text(&told["data"], "workflow"), text(&told["data"], "status")), ("fine", "completed"));
    let run = stage.run_to_end("broken", vec![stage.task("bad", &[], json!({}))], notify).await;
    let told = stage.target.called("/usual", 2).await[1].json();
    assert_eq!(text(&told, "type"), "workflow_run.failed");
    assert_eq!((&told["data"]["id"], &told["data"]["tasks"]), (&run["id"], &json!(["bad"])), "{told}");
    stage.target.reply("/bad", Reply::ok());
    stage.act_on_run(text(&run, "id"), "retry").await.expect(200);
    let mut types: Vec<String> = Vec::new();
    for call in stage.target.called("/chosen", 4).await {
        types.push(text(&call.json(), "type").to_owned());
    }
    types.sort();
    let running = "workflow_run.running";
    assert_eq!(
        types,
        ["workflow_run.failed", running, running, running],
        "two starts, a failure and a retry"
    );
    assert_eq!(text(&stage.target.called("/usual", 3).await[2].json(), "type"), "workflow_run.completed");
}

async fn a_task_that_waits_too_long_is_stalled_and_that_is_told(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/slow", Reply::ok().behind(&gate));
    let tasks = vec![stage.task("slow", &[], json!({})), stage.task("next", &["slow"], json!({}))];
    let notify = json!([{"url": stage.target.url("/told"), "on": ["stalled"]}]);
    stage.store("etl", tasks, json!({"stall_after": "1s", "notify": notify})).await;
    let id = stage.start("etl", Value::Null).await;
    let run = stage.until_run(&id, "to be stalled", |run| run["stalled"] == 1).await;
    let told = stage.target.called("/told", 1).await[0].json();
    assert_eq!(text(&told, "type"), "workflow_run.stalled");
    assert_eq!(told["data"]["tasks"], json!(["next"]));
    let why = stage.why(text(task_of(&run, "next"), "job_id")).await;
    assert_eq!(text(&why, "code"), "stalled", "{why}");
    assert!(text(&why, "sentence").contains("slow"), "{why}");
    gate.open();
    let run = stage.api.run_ended(&id).await;
    assert_eq!((text(&run, "status"), &run["stalled"]), ("completed", &json!(0)), "nothing was stopped");
    assert_eq!(stage.target.calls_to("/told").len(), 1, "told once");
}
