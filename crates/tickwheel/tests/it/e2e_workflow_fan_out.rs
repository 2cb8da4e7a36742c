//! Fan-out: the same for each element of an array that nobody knew before, and the join behind it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::api::text;
use crate::e2e::{Stage, on_both_stores, quick_retries};
use crate::server::StoreKind;
use crate::target::{Gate, Reply};
use crate::workflows::{assert_in_order, status_of, task_of};

on_both_stores! {
    each_element_gets_its_job_and_the_join_has_their_results_in_order,
    an_empty_array_is_done_at_once,
    no_more_elements_run_at_once_than_allowed,
    each_element_may_have_tasks_of_its_own,
    fan_outs_inside_of_each_other_use_the_data_around_them,
    too_many_elements_fail_the_task_and_run_none,
    what_is_no_array_fails_the_task,
    a_failed_element_fails_the_join_and_a_retry_runs_only_that_one,
    one_element_can_be_skipped_or_completed_by_hand,
    a_thousand_elements_are_joined,
}

/// A task for each element of what `list` answered, with the element as its payload.
fn each(stage: &Stage, fields: Value) -> Value {
    let payload = json!({"job": {"payload": {"item": {"$from": "item"}, "index": {"$from": "index"}}}});
    let fields = crate::e2e::with(json!({"for_each": "list.result.all"}), fields);
    stage.task("each", &["list"], crate::e2e::with(payload, fields))
}

fn join(stage: &Stage) -> Value {
    stage.task_with("join", &["each"], json!({"all": {"$from": "each.result"}}))
}

/// `list` answers this array, and `each` ten times its element, the later ones sooner.
fn answer_with(stage: &Stage, all: Value) {
    stage.target.reply("/list", Reply::json(json!({"all": all})));
    stage.target.on("/each", |call| {
        let item = call.json()["item"].as_u64().expect("a number");
        Reply::json(json!(item * 10)).after(Duration::from_millis(60 - item.min(6) * 10))
    });
}

async fn each_element_gets_its_job_and_the_join_has_their_results_in_order(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    answer_with(&stage, json!([1, 2, 3, 4, 5]));
    let tasks = vec![stage.task("list", &[], json!({})), each(&stage, json!({})), join(&stage)];
    let run = stage.run_to_end("fan", tasks, json!({})).await;
    assert_eq!(text(&run, "status"), "completed", "{run:#}");
    assert_eq!(stage.target.calls_to("/join")[0].json(), json!({"all": [10, 20, 30, 40, 50]}));
    assert_in_order(&run);
    let task = task_of(&run, "each");
    assert_eq!((&task["items"]["total"], &task["items"]["completed"]), (&json!(5), &json!(5)), "{task}");
    assert_eq!(run["tasks_total"], 3 + 5);
    let items = stage.items(text(&run, "id"), "each").await;
    let names: Vec<&str> = items.iter().map(|item| text(item, "name")).collect();
    assert_eq!(names, ["each[0]", "each[1]", "each[2]", "each[3]", "each[4]"]);
    for (number, item) in items.iter().enumerate() {
        let calls = stage.target.calls_for(text(item, "job_id"));
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0].json(), json!({"item": number + 1, "index": number}));
    }
}

async fn an_empty_array_is_done_at_once(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    answer_with(&stage, json!([]));
    let tasks = vec![stage.task("list", &[], json!({})), each(&stage, json!({})), join(&stage)];
    let run = stage.run_to_end("fan", tasks, json!({})).await;
    assert_eq!((text(&run, "status"), status_of(&run, "each")), ("completed", "completed"), "{run:#}");
    assert_eq!(stage.target.calls_to("/join")[0].json(), json!({"all": []}));
    assert!(stage.target.calls_to("/each").is_empty());
}

async fn no_more_elements_run_at_once_than_allowed(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let all: Vec<u32> = (0..24).collect();
    answer_with(&stage, json!(all));
    let three = json!({"concurrency": 3});
    let tasks = vec![stage.task("list", &[], json!({})), each(&stage, three), join(&stage)];
    let run = stage.run_to_end("fan", tasks, json!({})).await;
    assert_eq!(text(&run, "status"), "completed", "{run:#}");
    assert_eq!(stage.target.calls_to("/each").len(), 24, "each once");
    assert_eq!(stage.target.busiest("/each"), 3, "as many as allowed, and not one more");
    let expected: Vec<u32> = all.iter().map(|n| n * 10).collect();
    assert_eq!(stage.target.calls_to("/join")[0].json(), json!({"all": expected}));
}

async fn each_element_may_have_tasks_of_its_own(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.on("/fetch", |call| Reply::json(json!({"pages": call.json()["shop"]})));
    stage.target.on("/sum", |call| Reply::json(call.json()));
    let shop = json!({"shop": {"$from": "item"}, "factor": {"$from": "input.factor"}});
    let body = vec![
        stage.task_with("fetch", &[], shop),
        stage.task("check", &["fetch"], json!({"when": "fetch.result.pages > 1"})),
        stage.task_with("sum", &["fetch", "check"], json!({"pages": {"$from": "fetch.result.pages"}})),
    ];
    let shops = stage.task("shops", &[], json!({"for_each": "input.shops", "concurrency": 2, "tasks": body}));
    let total = stage.task_with("total", &["shops"], json!({"all": {"$from": "shops.result"}}));
    stage.store("fan", vec![shops, total], json!({})).await;
    let id = stage.start("fan", json!({"shops": [1, 2, 3], "factor": 7})).await;
    let run = stage.api.run_ended(&id).await;
    assert_eq!(text(&run, "status"), "completed", "{run:#}");
    let all = json!([{"pages": 1}, {"pages": 2}, {"pages": 3}]);
    assert_eq!(stage.target.calls_to("/total")[0].json(), json!({"all": all}));
    assert_eq!(stage.target.calls_to("/check").len(), 2, "one was skipped");
    assert_eq!(stage.target.calls_to("/fetch")[0].json()["factor"], 7);
    assert!(stage.target.busiest("/fetch") <= 2);
    let jobs = stage.api.list(&format!("/api/v1/jobs?workflow_run_id={id}")).await;
    let mut paths: Vec<&str> =
        jobs.iter().map(|job| text(job, "task")).filter(|path| path.contains('.')).collect();
    paths.sort_unstable();
    assert_eq!(paths.len(), 9);
    assert_eq!(paths[..3], ["shops[0].check", "shops[0].fetch", "shops[0].sum"]);
}

async fn fan_outs_inside_of_each_other_use_the_data_around_them(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage.target.reply("/prices", Reply::json(json!({"unit": 5})));
    stage.target.on("/page", |call| Reply::json(json!(call.json()["page"])));
    let page = json!({"page": {"$from": "item"}, "unit": {"$from": "prices.result.unit"}});
    let pages = stage.task("page", &[], json!({"for_each": "item.pages", "job": {"payload": page}}));
    let sum = stage.task_with("sum", &["page"], json!({"pages": {"$from": "page.result"}}));
    let shops = stage.task("shops", &["prices"], json!({"for_each": "input", "tasks": [pages, sum]}));
    let tasks = vec![stage.task("prices", &[], json!({})), shops];
    stage.store("fan", tasks, json!({})).await;
    let id = stage.start("fan", json!([{"pages": [1, 2]}, {"pages": []}, {"pages": [3]}])).await;
    let run = stage.api.run_ended(&id).await;
    assert_eq!(text(&run, "status"), "completed", "{run:#}");
    let mut sums: Vec<String> =
        stage.target.calls_to("/sum").iter().map(|call| call.json()["pages"].to_string()).collect();
    sums.sort_unstable();
    assert_eq!(sums, ["[1,2]", "[3]", "[]"]);
    assert!(stage.target.calls_to("/page").iter().all(|call| call.json()["unit"] == 5));
    let jobs = stage.api.list(&format!("/api/v1/jobs?workflow_run_id={id}")).await;
    assert!(jobs.iter().any(|job| job["task"] == "shops[0].page[1]"), "{jobs:#?}");
}

async fn too_many_elements_fail_the_task_and_run_none(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    answer_with(&stage, json!([1, 2, 3, 4]));
    let tasks = vec![stage.task("list", &[], json!({})), each(&stage, json!({"max_items": 3})), join(&stage)];
    let run = stage.run_to_end("fan", tasks, json!({})).await;
    assert_eq!(text(&run, "status"), "failed");
    let error = &task_of(&run, "each")["error"];
    assert_eq!(text(error, "code"), "too_many_items");
    assert!(text(error, "message").contains("4 elements, of which 3 are allowed"), "{error}");
    assert_eq!(status_of(&run, "join"), "blocked");
    assert!(stage.target.calls_to("/each").is_empty());
}

async fn what_is_no_array_fails_the_task(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    for (all, said) in [(json!({"a": 1}), "an object and no array"), (Value::Null, "null and no array")] {
        answer_with(&stage, all);
        stage.api.get("/api/v1/workflows").await.expect(200);
        let tasks = vec![stage.task("list", &[], json!({})), each(&stage, json!({}))];
        let name = if said.starts_with("null") { "fan-null" } else { "fan" };
        let run = stage.run_to_end(name, tasks, json!({})).await;
        let error = &task_of(&run, "each")["error"];
        assert!(text(error, "message").contains(said), "{error}");
    }
}

async fn a_failed_element_fails_the_join_and_a_retry_runs_only_that_one(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    answer_with(&stage, json!([1, 2, 3]));
    stage.target.on("/each", |call| match call.json()["item"].as_u64() {
        Some(2) => Reply::status(400).body("no such file"),
        _ => Reply::json(json!("fine")),
    });
    let tasks = vec![stage.task("list", &[], json!({})), each(&stage, json!({})), join(&stage)];
    let run = stage.run_to_end("fan", tasks, json!({"on_failure": "continue"})).await;
    let id = text(&run, "id");
    assert_eq!(text(&run, "status"), "failed");
    assert_eq!((status_of(&run, "each"), status_of(&run, "join")), ("failed", "blocked"), "{run:#}");
    let items = stage.items(id, "each").await;
    assert_eq!((text(&items[0], "status"), text(&items[1], "status")), ("completed", "failed"));
    assert!(text(&items[1]["error"], "message").contains("no such file"), "{}", items[1]);

    stage.target.reply("/each", Reply::json(json!("mended")));
    stage.act_on_run(id, "retry").await.expect(200);
    let run = stage.api.run_ended(id).await;
    assert_eq!(text(&run, "status"), "completed", "{run:#}");
    assert_eq!(stage.target.calls_to("/join")[0].json(), json!({"all": ["fine", "mended", "fine"]}));
    assert_eq!(stage.target.calls_to("/each").len(), 4);
    assert_eq!(stage.target.calls_to("/list").len(), 1);
}

async fn one_element_can_be_skipped_or_completed_by_hand(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    answer_with(&stage, json!([1, 2, 3]));
    stage.target.on("/each", |call| match call.json()["item"].as_u64() {
        Some(1) => Reply::json(json!("fine")),
        _ => Reply::status(400),
    });
    let tasks = vec![stage.task("list", &[], json!({})), each(&stage, json!({})), join(&stage)];
    let run = stage.run_to_end("fan", tasks, json!({"on_failure": "continue"})).await;
    let id = text(&run, "id");
    let path = |item: u32, verb: &str| format!("/api/v1/workflow-runs/{id}/tasks/each%5B{item}%5D/{verb}");
    stage.api.act(&path(1, "skip")).await.expect(200);
    stage.until_run(id, "to stop again", |run| run["status"] == "failed").await;
    stage.api.post(&path(2, "complete"), &json!({"result": "by hand"})).await.expect(200);
    let run = stage.api.run_ended(id).await;
    assert_eq!(text(&run, "status"), "completed", "{run:#}");
    assert_eq!(stage.target.calls_to("/join")[0].json(), json!({"all": ["fine", null, "by hand"]}));
}

async fn a_thousand_elements_are_joined(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let all: Vec<u32> = (0..1_000).collect();
    stage.target.reply("/list", Reply::json(json!({"all": all})));
    stage.target.on("/each", |call| {
        let first = call.fencing_token() == 1 && call.json()["index"].as_u64().is_some_and(|n| n % 50 == 0);
        if first { Reply::status(503) } else { Reply::json(call.json()["item"].clone()) }
    });
    let gate = Gate::closed();
    stage.target.on("/join", {
        let gate = gate.clone();
        move |_| Reply::ok().behind(&gate)
    });
    let retries = json!({"job": {"retry": quick_retries(3),
        "payload": {"item": {"$from": "item"}, "index": {"$from": "index"}}}});
    let tasks = vec![stage.task("list", &[], json!({})), each(&stage, retries), join(&stage)];
    stage.store("fan", tasks, json!({})).await;
    let id = stage.start("fan", Value::Null).await;
    let joined = stage.target.called("/join", 1).await;
    assert_eq!(joined[0].json(), json!({"all": all}));
    gate.open();
    let run = stage.api.run_ended(&id).await;
    assert_eq!(text(&run, "status"), "completed");
    assert_eq!(stage.target.calls_to("/each").len(), 1_020, "twenty took a second attempt");
    assert_eq!(stage.items(&id, "each").await.len(), 1_000);
}
