//! Runs of workflows: starting, reading, the elements of fan-outs, and what people do to tasks.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use crate::server::Server;

const RUNS: &str = "/api/v1/workflow-runs";

impl Server {
    async fn define(&self, request: Value) {
        self.post("/api/v1/workflows", request).await.ok(201);
    }

    /// Starts a run of a workflow and returns its id.
    async fn run(&self, workflow: &str, input: Value) -> String {
        let started = self.post(&format!("/api/v1/workflows/{workflow}/runs"), json!({"input": input})).await;
        started.ok(201)["id"].as_str().expect("a run has an id").to_owned()
    }

    async fn read_run(&self, id: &str) -> Value {
        self.get(&format!("{RUNS}/{id}")).await.ok(200)
    }

    async fn task(&self, run: &str, name: &str) -> Value {
        let run = self.read_run(run).await;
        let tasks = run["tasks"].as_array().expect("tasks");
        tasks.iter().find(|task| task["name"] == name).expect(name).clone()
    }

    async fn items(&self, run: &str, query: &str) -> Vec<Value> {
        let items = self.get(&format!("{RUNS}/{run}/items?task={query}")).await.ok(200);
        items["items"].as_array().expect("items").clone()
    }

    async fn complete_job(&self, job: &Value, result: Value) {
        let token = self.claim(job.as_str().expect("a job")).await;
        let path = format!("/api/v1/attempts/{token}/complete");
        self.post(&path, json!({"result": result})).await.ok(204);
    }

    async fn complete_task(&self, run: &str, name: &str, result: Value) {
        let job = self.task(run, name).await["job_id"].take();
        self.complete_job(&job, result).await;
    }

    async fn fail_task(&self, run: &str, name: &str) {
        let job = self.task(run, name).await["job_id"].take();
        self.kill(job.as_str().expect("a job")).await;
    }

    async fn statuses(&self, run: &str) -> Vec<(String, String)> {
        let run = self.read_run(run).await;
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let tasks = run["tasks"].as_array().expect("tasks");
        tasks.iter().map(|task| (text(&task["name"]), text(&task["status"]))).collect()
    }

    async fn act(&self, run: &str, action: &str) -> crate::server::Answer {
        self.call("POST", &format!("{RUNS}/{run}/{action}")).await
    }
}

/// a → b → c, and a hook after them.
fn line() -> Value {
    json!({"name": "line", "tasks": [
        {"name": "a", "job": {"type": "first", "payload": {"day": {"$from": "input.day"}}}},
        {"name": "b", "depends_on": ["a"], "job": {"payload": {"$from": "a.result.n"}}},
        {"name": "c", "depends_on": ["b"], "job": {}}],
        "after": [{"name": "tell", "job": {"type": "mail"}}]})
}

/// A fan-out over the input, and what waits for it.
fn fan(fields: Value) -> Value {
    let mut each = json!({"name": "load", "for_each": "input", "job": {"payload": {"$from": "item"}}});
    for (name, value) in fields.as_object().expect("fields") {
        each[name] = value.clone();
    }
    json!({"name": "fan", "on_failure": "continue", "tasks": [each, {"name": "join", "depends_on": ["load"], "job": {}}]})
}

fn pairs(statuses: &[(String, String)]) -> Vec<(&str, &str)> {
    statuses.iter().map(|(name, status)| (name.as_str(), status.as_str())).collect()
}

#[tokio::test]
async fn a_run_is_started_goes_through_its_tasks_and_ends() {
    let server = Server::start();
    server.define(line()).await;
    let started = server.post("/api/v1/workflows/line/runs", json!({"input": {"day": 5}})).await;
    let location = started.headers["location"].to_str().expect("text").to_owned();
    let run = started.ok(201);
    let id = run["id"].as_str().expect("an id");
    assert_eq!(location, format!("{RUNS}/{id}"));
    assert_eq!(
        (&run["workflow"], &run["version"], &run["status"]),
        (&json!("line"), &json!(1), &json!("running"))
    );
    assert_eq!((&run["input"], &run["tenant"]), (&json!({"day": 5}), &json!("default")));
    assert_eq!((&run["tasks_total"], &run["tasks_open"], &run["stalled"]), (&json!(3), &json!(3), &json!(0)));
    assert_eq!((&run["ended_at"], &run["job_id"], run.get("tasks")), (&Value::Null, &Value::Null, None));

    let statuses = server.statuses(id).await;
    assert_eq!(
        pairs(&statuses),
        [("a", "scheduled"), ("b", "pending"), ("c", "pending"), ("tell", "pending")]
    );
    let b = server.task(id, "b").await;
    assert_eq!((&b["depends_on"], &b["trigger_rule"]), (&json!(["a"]), &json!("all_succeeded")));
    assert_eq!((&b["due_at"], &b["attempt"], &b["type"]), (&Value::Null, &json!(0), &json!("b")));
    assert_eq!(b["why_waiting"], "task b waits for a (scheduled)");
    let tell = server.task(id, "tell").await;
    assert_eq!((&tell["job_id"], &tell["type"]), (&Value::Null, &json!("mail")));
    assert_eq!(tell["why_waiting"], "task tell starts when all others have ended");

    server.complete_task(id, "a", json!({"n": [7]})).await;
    let a = server.task(id, "a").await;
    assert_eq!((&a["status"], &a["attempt"], a.get("why_waiting")), (&json!("completed"), &json!(1), None));
    assert_eq!(a["completed_at"], "2027-01-15T08:00:00.000Z");
    let b = server.task(id, "b").await["job_id"].take();
    let job = server.get(&format!("/api/v1/jobs/{}", b.as_str().expect("a job"))).await.ok(200);
    assert_eq!(
        (&job["payload"], &job["workflow_run_id"], &job["task"]),
        (&json!([7]), &json!(id), &json!("b"))
    );
    for task in ["b", "c", "tell"] {
        assert_eq!(server.read_run(id).await["status"], "running");
        server.complete_task(id, task, Value::Null).await;
    }
    let ended = server.read_run(id).await;
    assert_eq!(
        (&ended["status"], &ended["tasks_open"], &ended["tasks_total"]),
        (&json!("completed"), &json!(0), &json!(4))
    );
    assert_eq!(ended["ended_at"], "2027-01-15T08:00:00.000Z");
}

#[tokio::test]
async fn a_run_that_is_asked_for_twice_is_started_once() {
    let server = Server::start();
    server.define(line()).await;
    let start = async |body: Value| server.post("/api/v1/workflows/line/runs", body).await;
    let request = json!({"input": {"day": 1}, "idempotency_key": "k"});
    let first = start(request.clone()).await.ok(201);
    assert_eq!(start(request).await.ok(200)["id"], first["id"]);
    let conflict = start(json!({"input": {"day": 2}, "idempotency_key": "k"})).await;
    assert_eq!(conflict.problem(409), "idempotency_conflict");
    assert!(conflict.body["detail"].as_str().expect("text").contains(first["id"].as_str().expect("an id")));
    let request = Request::post("/api/v1/workflows/line/runs")
        .header("content-type", "application/json")
        .header("idempotency-key", "k")
        .body(Body::from(r#"{"input": {"day": 1}}"#));
    assert_eq!(
        server.send(request.expect("a request")).await.ok(200)["id"],
        first["id"],
        "the header is the field"
    );
    assert_eq!(server.get(RUNS).await.ok(200)["items"].as_array().expect("items").len(), 1);
}

#[tokio::test]
async fn what_cannot_be_started_is_refused_and_leaves_no_trace() {
    let server = Server::start();
    server.define(line()).await;
    let start = async |name: &str, body: &'static str| {
        server.send_text("POST", &format!("/api/v1/workflows/{name}/runs"), body).await
    };
    assert_eq!(start("nobody", "{}").await.problem(404), "not_found");
    let refused = server.call("POST", "/api/v1/workflows/line/runs").await;
    assert_eq!((refused.problem(422), refused.pointers()), ("validation_failed", vec!["/input"]));
    assert_eq!(
        refused.body["detail"],
        "task a: {\"$from\": \"input.day\"}: input is null and has no field \"day\""
    );
    for (body, status, code) in [
        ("[]", 400, "wrong_type"),
        (r#"{"inputs": 1}"#, 400, "unknown_field"),
        (r#"{"input": 1, "idempotency_key": ""}"#, 422, "validation_failed"),
        ("{", 400, "invalid_json"),
    ] {
        assert_eq!(start("line", body).await.problem(status), code, "{body}");
    }
    let large = format!(r#"{{"input": "{}"}}"#, "x".repeat(300_000));
    let refused = server.send_text("POST", "/api/v1/workflows/line/runs", large).await;
    assert_eq!((refused.problem(413), refused.pointers()), ("payload_too_large", vec!["/input"]));
    assert_eq!(server.get(RUNS).await.ok(200)["items"], json!([]));
    assert_eq!(server.stored().await, 0);
}

#[tokio::test]
async fn runs_are_listed_newest_first_by_workflow_and_status() {
    let server = Server::start();
    server.define(line()).await;
    server.define(fan(json!({}))).await;
    let mut ids = Vec::new();
    for day in 0..3 {
        ids.insert(0, server.run("line", json!({"day": day})).await);
    }
    let empty = server.run("fan", json!([])).await;
    server.act(&ids[1], "cancel").await.ok(200);
    let listed = async |query: &str| -> Vec<String> {
        let page = server.get(&format!("{RUNS}?{query}")).await.ok(200);
        let items = page["items"].as_array().expect("items").iter();
        items.map(|run| run["id"].as_str().expect("an id").to_owned()).collect()
    };
    assert_eq!(listed("workflow=line").await, ids);
    assert_eq!(listed("workflow=fan").await, [empty.as_str()]);
    assert_eq!(
        listed("workflow=line&status=running").await.len(),
        3,
        "the hook of the cancelled one is to come"
    );
    assert_eq!(listed("workflow=nobody").await, Vec::<String>::new());
    let page = server.get(&format!("{RUNS}?limit=2")).await.ok(200);
    assert!(page["items"][0].get("tasks").is_none());
    let cursor = page["next_cursor"].as_str().expect("there is more");
    assert_eq!(listed(&format!("limit=2&cursor={cursor}")).await, ids[1..]);
    assert_eq!(server.get(&format!("{RUNS}?status=asleep")).await.problem(400), "invalid_parameter");
    for path in ["not-an-id", "not-an-id/items?task=a"] {
        assert_eq!(server.get(&format!("{RUNS}/{path}")).await.problem(400), "invalid_id");
    }
    let nobody = "01890a5d-ac96-774b-bcce-b30209900000";
    for path in ["", "/items?task=a", "?wait=1s"] {
        assert_eq!(server.get(&format!("{RUNS}/{nobody}{path}")).await.problem(404), "not_found");
    }
    assert_eq!(server.act(nobody, "cancel").await.problem(404), "not_found");
}

#[tokio::test(start_paused = true)]
async fn a_reader_can_wait_for_the_end_of_a_run() {
    let server = Server::start();
    server.define(fan(json!({}))).await;
    let id = server.run("fan", json!([])).await;
    let waited = server.get(&format!("{RUNS}/{id}?wait=5s")).await;
    assert_eq!(waited.problem(408), "wait_timeout");
    assert_eq!(waited.body["detail"], "the run is running and has not ended within 5s");
    let path = format!("{RUNS}/{id}?wait=30s");
    let (answer, ()) = tokio::join!(server.get(&path), async {
        server.waiting.notified().await;
        server.complete_task(&id, "join", Value::Null).await;
    });
    let ended = answer.ok(200);
    assert_eq!((&ended["status"], &ended["tasks"][1]["status"]), (&json!("completed"), &json!("completed")));
    assert_eq!(server.get(&format!("{RUNS}/{id}?wait=301s")).await.problem(400), "invalid_parameter");
}

#[tokio::test]
async fn a_fan_out_stands_as_its_elements_do() {
    let server = Server::start();
    server.define(fan(json!({"concurrency": 2}))).await;
    let id = server.run("fan", json!(["x", "y", "z"])).await;
    let load = server.task(&id, "load").await;
    assert_eq!(load["status"], "running");
    let items = |completed, failed, waiting, released| {
        json!({"total": 3, "released": released, "completed": completed, "failed": failed, "cancelled": 0, "skipped": 0,
            "running": 0, "waiting": waiting})
    };
    assert_eq!(load["items"], items(0, 0, 3, 2));
    let elements = server.items(&id, "load").await;
    let names: Vec<&Value> = elements.iter().map(|element| &element["name"]).collect();
    assert_eq!(names, ["load[0]", "load[1]", "load[2]"]);
    assert_eq!((&elements[2]["item"], &elements[2]["status"]), (&json!(2), &json!("pending")));
    assert_eq!(
        elements[2]["why_waiting"],
        "task load[2] waits for its turn: the fan-out limits how many items run at once"
    );
    assert_eq!(server.task(&id, "join").await["why_waiting"], "task join waits for load (running)");

    server.complete_job(&elements[1]["job_id"], json!("Y")).await;
    let failed = elements[0]["job_id"].as_str().expect("a job");
    server.kill(failed).await;
    assert_eq!(server.task(&id, "load").await["items"], items(1, 1, 1, 3));
    server.complete_job(&elements[2]["job_id"], json!("Z")).await;
    let statuses = server.statuses(&id).await;
    assert_eq!(pairs(&statuses), [("load", "failed"), ("join", "blocked")]);
    assert_eq!(server.read_run(&id).await["status"], "failed");
    let bad = server.items(&id, "load&status=failed").await;
    assert_eq!(
        (bad.len(), &bad[0]["name"], &bad[0]["error"]["code"]),
        (1, &json!("load[0]"), &json!("boom"))
    );

    let retried = server.act(&id, "tasks/load%5B0%5D/retry").await.ok(200);
    assert_eq!((&retried["status"], &retried["tasks"][0]["status"]), (&json!("running"), &json!("running")));
    server.complete_job(&json!(failed), json!("X")).await;
    assert_eq!(server.task(&id, "load").await["status"], "completed");
    let join = server.task(&id, "join").await;
    assert_eq!(join["status"], "scheduled");
}

#[tokio::test]
async fn a_fan_out_whose_elements_were_all_cancelled_is_cancelled() {
    let server = Server::start();
    server.define(fan(json!({}))).await;
    let id = server.run("fan", json!(["x", "y"])).await;
    server.complete_job(&server.items(&id, "load").await[0]["job_id"], Value::Null).await;
    let cancelled = server.act(&id, "cancel").await.ok(200);
    assert_eq!(cancelled["status"], "cancelled");
    let load = &cancelled["tasks"][0];
    assert_eq!(
        (&load["status"], &load["items"]["cancelled"], &load["items"]["completed"]),
        (&json!("cancelled"), &json!(1), &json!(1))
    );
}

#[tokio::test]
async fn elements_come_in_pages_and_only_fan_outs_have_some() {
    let server = Server::start();
    server.define(fan(json!({}))).await;
    let id = server.run("fan", json!([1, 2, 3, 4, 5])).await;
    let mut names = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = server.get(&format!("{RUNS}/{id}/items?task=load&limit=2&cursor={cursor}")).await.ok(200);
        names.extend(page["items"].as_array().expect("items").iter().map(|item| item["item"].clone()));
        match page["next_cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    assert_eq!(names, [0, 1, 2, 3, 4]);
    let refused = async |query: &str| server.get(&format!("{RUNS}/{id}/items{query}")).await;
    assert_eq!(refused("?task=join").await.problem(400), "invalid_parameter");
    assert_eq!(refused("?task=load[2]").await.problem(400), "invalid_parameter");
    assert_eq!(refused("?task=nobody").await.problem(404), "not_found");
    assert_eq!(refused("").await.problem(400), "invalid_parameter");
    assert_eq!(refused("?task=load&cursor=x").await.problem(400), "invalid_cursor");
}

#[tokio::test]
async fn tasks_inside_of_a_fan_out_are_named_by_their_path() {
    let server = Server::start();
    let body = json!([{"name": "copy", "job": {"payload": {"$from": "item"}}},
        {"name": "check", "depends_on": ["copy"], "job": {}}]);
    server.define(fan(json!({"job": null, "tasks": body}))).await;
    let id = server.run("fan", json!(["x", "y"])).await;
    let iterations = server.items(&id, "load").await;
    assert_eq!(
        (&iterations[1]["name"], &iterations[1]["status"], &iterations[1]["item"]),
        (&json!("load[1]"), &json!("running"), &json!(1))
    );
    assert_eq!(iterations[1]["items"]["total"], 2);
    let inside = server.items(&id, "load[1]").await;
    assert_eq!((&inside[0]["name"], &inside[0]["status"]), (&json!("load[1].copy"), &json!("scheduled")));
    assert_eq!((&inside[1]["name"], &inside[1]["depends_on"]), (&json!("load[1].check"), &json!(["copy"])));
    assert_eq!(
        (&inside[1]["item"], &inside[1]["why_waiting"]),
        (&Value::Null, &json!("task load[1].check waits for copy (scheduled)"))
    );
    let job =
        server.get(&format!("/api/v1/jobs/{}", inside[1]["job_id"].as_str().expect("a job"))).await.ok(200);
    assert_eq!((&job["task"], &job["workflow_run_id"]), (&json!("load[1].check"), &json!(id)));

    let copy = inside[0]["job_id"].as_str().expect("a job");
    server.kill(copy).await;
    let iterations = server.items(&id, "load").await;
    assert_eq!((&iterations[1]["status"], &iterations[0]["status"]), (&json!("failed"), &json!("running")));
    let load = server.task(&id, "load").await;
    assert_eq!(
        (&load["status"], &load["items"]["failed"], &load["items"]["running"]),
        (&json!("running"), &json!(1), &json!(1))
    );
    let after = server.act(&id, "tasks/load%5B1%5D.copy/skip").await.ok(200);
    assert_eq!(after["status"], "running");
    let inside = server.items(&id, "load[1]").await;
    assert_eq!((&inside[0]["status"], &inside[1]["status"]), (&json!("skipped"), &json!("scheduled")));
}

#[tokio::test]
async fn a_failed_run_goes_on_where_it_failed() {
    let server = Server::start();
    server.define(line()).await;
    let id = server.run("line", json!({"day": 1})).await;
    server.complete_task(&id, "a", json!({"n": 1})).await;
    server.fail_task(&id, "b").await;
    server.complete_task(&id, "tell", Value::Null).await;
    let failed = server.read_run(&id).await;
    assert_eq!(failed["status"], "failed");
    let statuses = server.statuses(&id).await;
    assert_eq!(
        pairs(&statuses),
        [("a", "completed"), ("b", "failed"), ("c", "blocked"), ("tell", "completed")]
    );
    assert_eq!(
        server.task(&id, "c").await["why_waiting"],
        "task c waits for b, which failed: it blew up; retry, skip or complete that one"
    );
    assert_eq!(server.task(&id, "b").await["error"]["code"], "boom");

    let retried = server.act(&id, "retry").await.ok(200);
    assert_eq!((&retried["status"], &retried["ended_at"]), (&json!("running"), &Value::Null));
    let statuses = server.statuses(&id).await;
    assert_eq!(
        pairs(&statuses),
        [("a", "completed"), ("b", "scheduled"), ("c", "pending"), ("tell", "pending")]
    );
    for task in ["b", "c", "tell"] {
        server.complete_task(&id, task, Value::Null).await;
    }
    let completed = server.read_run(&id).await;
    assert_eq!(completed["status"], "completed");
    assert_eq!(server.task(&id, "b").await["attempt"], 2);
    let refused = server.act(&id, "retry").await;
    assert_eq!(
        (refused.problem(409), &refused.body["detail"]),
        ("illegal_state", &json!("no task of the run failed or was cancelled"))
    );
    let refused = server.act(&id, "cancel").await;
    assert_eq!(
        (refused.problem(409), &refused.body["detail"]),
        ("illegal_state", &json!("the run is completed already"))
    );
}

#[tokio::test]
async fn a_task_can_be_skipped_and_completed_by_hand() {
    let server = Server::start();
    server.define(line()).await;
    let id = server.run("line", json!({"day": 1})).await;
    let completed =
        server.post(&format!("{RUNS}/{id}/tasks/a/complete"), json!({"result": {"n": [3]}})).await.ok(200);
    assert_eq!(completed["tasks"][0]["status"], "completed");
    let b = server.task(&id, "b").await["job_id"].take();
    let job = server.get(&format!("/api/v1/jobs/{}", b.as_str().expect("a job"))).await.ok(200);
    assert_eq!(job["payload"], json!([3]), "the result is used like any other");
    let skipped = server.act(&id, "tasks/b/skip").await.ok(200);
    assert_eq!(
        (&skipped["tasks"][1]["status"], &skipped["tasks"][2]["status"]),
        (&json!("skipped"), &json!("scheduled"))
    );
    assert_eq!(skipped["tasks"][1]["error"]["code"], "skipped_by_hand");
    let why = server.get(&format!("/api/v1/jobs/{}/why", b.as_str().expect("a job"))).await.ok(200);
    assert_eq!(
        (&why["code"], &why["sentence"]),
        (&json!("skipped"), &json!("it was skipped: somebody skipped it"))
    );
    let listed = server.get(&format!("/api/v1/jobs?workflow_run_id={id}&status=skipped")).await.ok(200);
    assert_eq!((&listed["items"][0]["id"], &listed["items"][0]["task"]), (&b, &json!("b")));

    let body = json!({"result": "x".repeat(300_000)});
    let large = server.post(&format!("{RUNS}/{id}/tasks/c/complete"), body).await;
    assert_eq!((large.problem(413), large.pointers()), ("payload_too_large", vec!["/result"]));
    for (action, status, code) in [
        ("tasks/a/skip", 409, "illegal_state"),
        ("tasks/a/retry", 409, "illegal_state"),
        ("tasks/nobody/skip", 404, "not_found"),
        ("tasks/a%5B0%5D/skip", 404, "not_found"),
        ("tasks/%FF/skip", 400, "invalid_id"),
    ] {
        assert_eq!(server.act(&id, action).await.problem(status), code, "{action}");
    }
    let odd = server.post(&format!("{RUNS}/{id}/tasks/c/complete"), json!({"results": 1})).await;
    assert_eq!(odd.problem(400), "unknown_field");
    assert_eq!(server.task(&id, "c").await["status"], "scheduled");
}

#[tokio::test]
async fn a_cancelled_run_ends_what_has_not_started_and_still_tidies_up() {
    let server = Server::start();
    server.define(line()).await;
    let id = server.run("line", json!({"day": 1})).await;
    let cancelled = server.act(&id, "cancel").await.ok(200);
    assert_eq!((&cancelled["status"], &cancelled["cancel_requested"]), (&json!("running"), &json!(true)));
    let statuses = server.statuses(&id).await;
    assert_eq!(
        pairs(&statuses),
        [("a", "cancelled"), ("b", "cancelled"), ("c", "cancelled"), ("tell", "scheduled")]
    );
    server.complete_task(&id, "tell", Value::Null).await;
    assert_eq!(server.read_run(&id).await["status"], "cancelled");
    assert_eq!(server.act(&id, "cancel").await.ok(200)["status"], "cancelled", "it is what was wanted");
}

#[tokio::test]
async fn a_task_says_why_it_waits_and_whether_for_too_long() {
    let server = Server::start();
    let mut request = line();
    request["stall_after"] = json!("10m");
    server.define(request).await;
    let id = server.run("line", json!({"day": 1})).await;
    let why = async |task: &str| {
        let job = server.task(&id, task).await["job_id"].take();
        server.get(&format!("/api/v1/jobs/{}/why", job.as_str().expect("a job"))).await.ok(200)
    };
    let first = server.task(&id, "a").await["job_id"].take();
    server.claim(first.as_str().expect("a job")).await;
    let waits = why("b").await;
    assert_eq!(
        (&waits["code"], &waits["sentence"]),
        (&json!("waits_for_parents"), &json!("task b waits for a (running)"))
    );
    assert_eq!((&waits["status"], &waits["waits_for"]), (&json!("pending"), &json!("its parents")));
    assert_eq!(waits["since"], "2027-01-15T08:00:00.000Z");
    server.clock.advance(Duration::from_secs(601));
    let stalled = why("b").await;
    assert_eq!(stalled["code"], "stalled");
    let sentence = "task b waits for a (running), which has been running for more than 600 s";
    assert_eq!(stalled["sentence"], sentence);
    assert_eq!(server.task(&id, "b").await["why_waiting"], sentence);
    assert_eq!(why("c").await["code"], "waits_for_parents", "b itself has not been going on at all");
}

#[tokio::test]
async fn the_jobs_of_a_run_are_found_by_it() {
    let server = Server::start();
    server.define(line()).await;
    let id = server.run("line", json!({"day": 1})).await;
    server.run("line", json!({"day": 2})).await;
    server.submit(json!({"type": "t"})).await;
    let listed = async |query: &str| server.get(&format!("/api/v1/jobs?{query}")).await;
    let mine = listed(&format!("workflow_run_id={id}")).await.ok(200);
    let tasks: Vec<&Value> =
        mine["items"].as_array().expect("items").iter().map(|job| &job["task"]).collect();
    assert_eq!(tasks, ["c", "b", "a"]);
    let all = listed("").await.ok(200);
    assert_eq!(all["items"].as_array().expect("items").len(), 7);
    let plain = all["items"].as_array().expect("items").iter().filter(|job| job["task"].is_null());
    assert_eq!(plain.count(), 1, "a job by itself is no task");
    assert_eq!(listed("workflow_run_id=x").await.problem(400), "invalid_parameter");
}

#[tokio::test]
async fn a_job_may_start_a_workflow_and_stand_for_nothing_else() {
    let server = Server::start();
    let job = server
        .post("/api/v1/jobs", json!({"type": "t", "target": {"workflow": {"name": "line"}}}))
        .await
        .ok(201);
    assert_eq!(job["target"], json!({"workflow": {"name": "line"}}));
    assert_eq!((&job["timeout"], &job["max_retries"]), (&json!("7d"), &json!(0)));
    for target in [json!({"workflow": {}}), json!({"workflow": {"name": "w", "version": 1}})] {
        server.post("/api/v1/jobs", json!({"type": "t", "target": target})).await.problem(400);
    }
    let elements = server.post("/api/v1/jobs", json!({"type": "t", "target": {"fan_out": {}}})).await;
    assert_eq!((elements.problem(422), elements.pointers()), ("validation_failed", vec!["/target/fan_out"]));
}
