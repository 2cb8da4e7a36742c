//! Definitions of workflows: storing, versions, refusals, pictures, schedules, removal.

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use tickwheel_protocol::Limits;

use crate::server::Server;

const WORKFLOWS: &str = "/api/v1/workflows";

fn etl() -> Value {
    json!({
        "name": "etl", "description": "moves files", "stall_after": "1h",
        "before": [{"name": "check", "job": {}}],
        "tasks": [
            {"name": "extract", "job": {"target": {"http": {"url": "https://svc/extract", "method": "POST", "headers": {}}},
                "payload": {"day": {"$from": "input.day"}}}},
            {"name": "load", "depends_on": ["extract"], "for_each": "extract.result.files", "concurrency": 2,
             "tasks": [{"name": "copy", "job": {}}, {"name": "verify", "depends_on": ["copy"], "job": {}}]},
            {"name": "clean", "depends_on": ["load"], "trigger_rule": "all_done", "when": "input.clean", "job": {}}],
        "after": [{"name": "tell", "job": {"timeout": "10s"}}],
        "notify": [{"url": "https://svc/told"}],
    })
}

/// A workflow of so many tasks, each of which depends on the one before.
fn chain(tasks: usize) -> Value {
    let task = |n: usize| match n {
        0 => json!({"name": "t0", "job": {}}),
        n => json!({"name": format!("t{n}"), "depends_on": [format!("t{}", n - 1)], "job": {}}),
    };
    json!({"name": "chain", "tasks": (0..tasks).map(task).collect::<Vec<_>>()})
}

fn with(mut whole: Value, fields: Value) -> Value {
    for (name, value) in fields.as_object().expect("fields") {
        whole[name] = value.clone();
    }
    whole
}

#[tokio::test]
async fn what_is_stored_is_answered_and_sent_again_changes_nothing() {
    let server = Server::start();
    let created = server.post(WORKFLOWS, etl()).await;
    assert_eq!(created.headers["location"], "/api/v1/workflows/etl?version=1");
    let created = created.ok(201);
    assert_eq!((&created["name"], &created["version"]), (&json!("etl"), &json!(1)));
    assert_eq!((&created["tasks_total"], &created["tenant"]), (&json!(7), &json!("default")));
    assert_eq!(created["created_at"], "2027-01-15T08:00:00.000Z");
    assert_eq!(created["definition"], etl());
    assert_eq!(server.get(&format!("{WORKFLOWS}/etl")).await.ok(200), created);

    server.clock.advance(std::time::Duration::from_secs(60));
    let again = server.post(WORKFLOWS, created["definition"].clone()).await.ok(200);
    assert_eq!(again, created, "the first one, with its time");
}

#[tokio::test]
async fn another_definition_is_another_version_and_the_old_one_stays() {
    let server = Server::start();
    server.post(WORKFLOWS, etl()).await.ok(201);
    let changed = server.post(WORKFLOWS, with(etl(), json!({"on_failure": "continue"}))).await.ok(201);
    assert_eq!(changed["version"], 2);
    assert_eq!(
        server.post(WORKFLOWS, etl()).await.ok(201)["version"],
        3,
        "as the first, but after the second"
    );

    let read = async |query: &str| server.get(&format!("{WORKFLOWS}/etl{query}")).await;
    assert_eq!(read("").await.ok(200)["version"], 3);
    assert_eq!(read("?version=2").await.ok(200)["definition"]["on_failure"], "continue");
    assert_eq!(read("?version=4").await.problem(404), "not_found");
    assert_eq!(read("?version=-1").await.problem(400), "invalid_parameter");

    let page = read("/versions?limit=2").await.ok(200);
    let versions = |page: &Value| -> Vec<Value> {
        page["items"].as_array().expect("items").iter().map(|item| item["version"].clone()).collect()
    };
    assert_eq!(versions(&page), [json!(3), json!(2)]);
    let cursor = page["next_cursor"].as_str().expect("there is more");
    let rest = read(&format!("/versions?limit=2&cursor={cursor}")).await.ok(200);
    assert_eq!((versions(&rest), &rest["next_cursor"]), (vec![json!(1)], &Value::Null));
    for path in ["/nobody", "/nobody/versions", "/nobody/graph"] {
        assert_eq!(server.get(&format!("{WORKFLOWS}{path}")).await.problem(404), "not_found", "{path}");
    }
}

#[tokio::test]
async fn a_list_has_the_latest_version_of_each_by_name() {
    let server = Server::start();
    for name in ["c", "a", "b"] {
        let tasks = json!([{"name": "t", "job": {}}]);
        server.post(WORKFLOWS, json!({"name": name, "tasks": tasks})).await.ok(201);
    }
    let schedule = json!({"cron": "@daily", "input": {"day": 1}});
    server.post(WORKFLOWS, with(etl(), json!({"name": "a", "schedule": schedule}))).await.ok(201);
    let page = server.get(&format!("{WORKFLOWS}?limit=2")).await.ok(200);
    let first = &page["items"][0];
    assert_eq!(
        (&first["name"], &first["version"], &first["tasks_total"]),
        (&json!("a"), &json!(2), &json!(7))
    );
    assert_eq!((&first["description"], &first["schedule"]), (&json!("moves files"), &schedule));
    assert!(first.get("definition").is_none());
    assert_eq!(page["items"][1]["name"], "b");
    let cursor = page["next_cursor"].as_str().expect("there is more");
    let rest = server.get(&format!("{WORKFLOWS}?limit=2&cursor={cursor}")).await.ok(200);
    assert_eq!((&rest["items"][0]["name"], &rest["next_cursor"]), (&json!("c"), &Value::Null));
}

#[tokio::test]
async fn a_definition_can_be_tried_without_storing_it() {
    let server = Server::start();
    let tried = async |request: Value| server.post(&format!("{WORKFLOWS}?dry_run=true"), request).await;
    let scheduled = with(etl(), json!({"schedule": {"every": "1h"}}));
    assert_eq!(tried(scheduled).await.ok(200)["version"], 1);
    assert_eq!(server.get(&format!("{WORKFLOWS}/etl")).await.problem(404), "not_found");
    assert_eq!(server.get("/api/v1/schedules/workflow.etl").await.problem(404), "not_found");
    server.post(WORKFLOWS, etl()).await.ok(201);
    assert_eq!(tried(etl()).await.ok(200)["version"], 1, "it is the one that is there");
    assert_eq!(tried(chain(2)).await.ok(200)["version"], 1);
    assert_eq!(tried(with(etl(), json!({"after": []}))).await.ok(200)["version"], 2);
    assert_eq!(tried(json!({"name": "w", "tasks": []})).await.problem(422), "validation_failed");
}

#[tokio::test]
async fn what_is_no_graph_is_refused_with_its_place_and_stores_nothing() {
    let server = Server::start();
    let job = |name: &str, parents: &[&str]| json!({"name": name, "depends_on": parents, "job": {}});
    let tasks = |tasks: Vec<Value>| json!({"name": "w", "tasks": tasks});
    let with_job =
        |job: Value| tasks(vec![json!({"name": "a", "job": {}}), json!({"name": "b", "job": job})]);
    let each = |inner: Value| tasks(vec![json!({"name": "a", "for_each": "input", "tasks": inner})]);
    let mut wheel = chain(1_000);
    wheel["tasks"][0]["depends_on"] = json!(["t999"]);
    let cases = [
        (tasks(vec![]), "validation_failed", "/tasks", "at least one task"),
        (tasks(vec![job("a", &["a"])]), "cycle", "/tasks/0/depends_on", "a -> a"),
        (tasks(vec![job("a", &["b"]), job("b", &["a"])]), "cycle", "/tasks/0/depends_on", "a -> b -> a"),
        (wheel, "cycle", "/tasks/0/depends_on", "t0 -> t999 -> t998"),
        (
            tasks(vec![job("extract", &[]), job("b", &["extrct"])]),
            "unknown_task",
            "/tasks/1/depends_on/0",
            "did you mean \"extract\"?",
        ),
        (
            tasks(vec![job("a", &[]), job("a", &[])]),
            "duplicate_task",
            "/tasks/1/name",
            "another task named \"a\"",
        ),
        (tasks(vec![job("a b", &[])]), "validation_failed", "/tasks/0/name", "cannot be a name"),
        (tasks(vec![job("input", &[])]), "validation_failed", "/tasks/0/name", "a meaning of its own"),
        (tasks(vec![job(&"n".repeat(101), &[])]), "validation_failed", "/tasks/0/name", "at most 100"),
        (
            each(json!([job("x", &["y"])])),
            "unknown_task",
            "/tasks/0/tasks/0/depends_on/0",
            "no task named \"y\"",
        ),
        (each(json!([])), "validation_failed", "/tasks/0/tasks", "at least one task"),
        (
            with_job(json!({"payload": {"$from": "a.result"}})),
            "validation_failed",
            "/tasks/1/job/payload",
            "add it to depends_on",
        ),
        (
            with_job(json!({"payload": [{"$from": "nobody.result"}]})),
            "validation_failed",
            "/tasks/1/job/payload",
            "no task named",
        ),
        (
            with_job(json!({"payload": {"$from": "item"}})),
            "validation_failed",
            "/tasks/1/job/payload",
            "inside of for_each",
        ),
        (
            with_job(json!({"payload": {"$from": 3}})),
            "validation_failed",
            "/tasks/1/job/payload",
            "has to be a string",
        ),
        (
            tasks(vec![json!({"name": "a", "when": "input.x =", "job": {}})]),
            "validation_failed",
            "/tasks/0/when",
            "is not a condition",
        ),
        (
            tasks(vec![json!({"name": "a", "for_each": "input..x", "job": {}})]),
            "validation_failed",
            "/tasks/0/for_each",
            "is not a path",
        ),
        (
            with(tasks(vec![job("a", &[])]), json!({"after": [job("b", &["a"])]})),
            "unknown_task",
            "/after/0/depends_on/0",
            "no task named \"a\"",
        ),
        (
            with(tasks(vec![job("a", &[])]), json!({"before": [job("b", &["a"])]})),
            "unknown_task",
            "/before/0/depends_on/0",
            "no task named \"a\"",
        ),
    ];
    for (request, code, pointer, words) in cases {
        let refused = server.post(WORKFLOWS, request.clone()).await;
        assert_eq!(refused.problem(422), code, "{request}");
        assert_eq!(refused.pointers(), [pointer], "{}", refused.body);
        let detail = refused.body["errors"][0]["detail"].as_str().expect("a detail");
        assert!(detail.contains(words), "{detail}");
    }
    assert_eq!(server.get(WORKFLOWS).await.ok(200)["items"], json!([]));
}

#[tokio::test]
async fn what_is_wrong_beside_the_graph_is_refused_too_and_stores_nothing() {
    let server = Server::start();
    let request = |fields: Value| with(json!({"name": "w", "tasks": [{"name": "a", "job": {}}]}), fields);
    let calls = |url: &str| json!([{"name": "a", "job": {"target": {"http": {"url": url}}}}]);
    let inner = json!([{"name": "a", "for_each": "input", "tasks": calls("http://127.1/")}]);
    let cases = [
        (
            json!({"tasks": calls("http://127.0.0.1/")}),
            422,
            "validation_failed",
            "/tasks/0/job/target/http/url",
        ),
        (json!({"tasks": inner}), 422, "validation_failed", "/tasks/0/tasks/0/job/target/http/url"),
        (json!({"notify": [{"url": "http://[::1]/"}]}), 422, "validation_failed", "/notify/0/url"),
        (json!({"schedule": {}}), 400, "missing_field", "/schedule/cron"),
        (json!({"schedule": {"cron": "60 * * * *"}}), 422, "validation_failed", "/schedule/cron"),
        (
            json!({"schedule": {"cron": "@daily", "timezone": "Mars"}}),
            422,
            "validation_failed",
            "/schedule/timezone",
        ),
        (
            json!({"schedule": {"cron": "@daily", "exclude": ["calendar:none"]}}),
            422,
            "validation_failed",
            "/schedule/exclude/0",
        ),
        (
            json!({"tasks": [{"name": "a", "job": {"payload": "x".repeat(300_000)}}]}),
            413,
            "payload_too_large",
            "/tasks/0/job/payload",
        ),
        (json!({"tasks": [{"name": "a", "jobs": {}}]}), 400, "unknown_field", "/tasks/0/jobs"),
        (json!({"version": 3}), 400, "unknown_field", "/version"),
        (json!({"name": "n".repeat(10_000)}), 422, "validation_failed", "/name"),
    ];
    for (fields, status, code, pointer) in cases {
        let refused = server.post(WORKFLOWS, request(fields)).await;
        assert_eq!(refused.problem(status), code, "{pointer}");
        assert_eq!(refused.pointers(), [pointer], "{}", refused.body);
    }
    let twice = r#"{"name": "w", "tasks": [{"name": "a", "job": {}, "job": {}}]}"#;
    let refused = server.send_text("POST", WORKFLOWS, twice).await;
    assert_eq!((refused.problem(400), refused.pointers()), ("duplicate_field", vec!["/tasks/0/job"]));
    let nested =
        format!("{}{}", r#"{"name":"w","tasks":[{"name":"a","for_each":"input","tasks":["#.repeat(40), "1");
    assert_eq!(server.send_text("POST", WORKFLOWS, nested).await.problem(400), "json_too_deep");
    assert_eq!(server.post(&format!("{WORKFLOWS}?dry=1"), etl()).await.problem(400), "unknown_parameter");
    assert_eq!(server.get(WORKFLOWS).await.ok(200)["items"], json!([]));
    assert_eq!(server.get("/api/v1/schedules").await.ok(200)["items"], json!([]));
}

#[tokio::test]
async fn a_workflow_may_have_ten_thousand_tasks_and_not_one_more() {
    let server = Server::start();
    assert_eq!(server.post(WORKFLOWS, chain(10_000)).await.ok(201)["tasks_total"], 10_000);
    let over = server.post(WORKFLOWS, chain(10_001)).await;
    assert_eq!((over.problem(422), over.pointers()), ("validation_failed", vec!["/tasks"]));
    assert_eq!(over.body["errors"][0]["code"], "too_many");

    let server = Server::with_limits(Limits { workflow_edges_max: 3, ..Limits::default() });
    server.post(WORKFLOWS, chain(4)).await.ok(201);
    let over = server.post(WORKFLOWS, chain(5)).await;
    assert_eq!(over.problem(422), "validation_failed");
    assert_eq!(over.body["errors"][0]["detail"], "more than 3 dependencies");
}

#[tokio::test]
async fn a_definition_may_be_as_large_as_a_batch_and_must_be_plain_json() {
    let server =
        Server::with_limits(Limits { body_bytes_max: 10, batch_bytes_max: 2_000, ..Limits::default() });
    server.post(WORKFLOWS, etl()).await.ok(201);
    assert_eq!(server.post(WORKFLOWS, chain(100)).await.problem(413), "body_too_large");
    for (media_type, encoding) in [("text/yaml", "identity"), ("application/json", "gzip")] {
        let request =
            Request::post(WORKFLOWS).header("content-type", media_type).header("content-encoding", encoding);
        let refused = server.send(request.body(Body::from(chain(1).to_string())).expect("a request")).await;
        assert_eq!(refused.problem(415), "unsupported_media_type", "{media_type} {encoding}");
    }
    assert_eq!(server.send_text("POST", WORKFLOWS, "").await.problem(400), "invalid_json");
}

#[tokio::test]
async fn a_workflow_can_be_drawn() {
    let server = Server::start();
    server.post(WORKFLOWS, etl()).await.ok(201);
    let draw = async |query: &str| server.get(&format!("{WORKFLOWS}/etl/graph{query}")).await;
    let drawn = draw("").await;
    assert_eq!(drawn.headers["content-type"], "text/plain; charset=utf-8");
    let mermaid = drawn.ok(200);
    assert!(mermaid.as_str().expect("text").starts_with("flowchart TD\n"), "{mermaid}");
    assert_eq!(draw("?format=mermaid&version=1").await.ok(200), mermaid);
    let dot = draw("?format=dot").await.ok(200);
    assert!(dot.as_str().expect("text").starts_with("digraph \"etl\" {\n"), "{dot}");
    assert_eq!(draw("?format=png").await.problem(400), "invalid_parameter");
    assert_eq!(draw("?version=2").await.problem(404), "not_found");
}

#[tokio::test]
async fn the_schedule_of_a_workflow_is_what_its_latest_definition_says() {
    let server = Server::start();
    let schedule = async || server.get("/api/v1/schedules/workflow.etl").await;
    let put =
        async |schedule: Value| server.post(WORKFLOWS, with(etl(), json!({"schedule": schedule}))).await;
    put(json!({"cron": "0 2 * * *", "input": {"day": 1}, "queue": "q", "overlap": "skip"})).await.ok(201);
    let first = schedule().await.ok(200);
    assert_eq!(
        (&first["cron"], &first["overlap"], &first["paused"]),
        (&json!("0 2 * * *"), &json!("skip"), &json!(false))
    );
    assert_eq!(first["job"]["target"], json!({"workflow": {"name": "etl"}}));
    assert_eq!((&first["job"]["type"], &first["job"]["payload"]), (&json!("etl"), &json!({"day": 1})));
    assert_eq!((&first["job"]["queue"], &first["job"]["timeout"]), (&json!("q"), &json!("7d")));
    assert_eq!(first["job"]["retry"]["max_retries"], 0);

    server.call("POST", "/api/v1/schedules/workflow.etl/pause").await.ok(200);
    put(json!({"every": "1h", "timeout": "2d"})).await.ok(201);
    let second = schedule().await.ok(200);
    assert_eq!(
        (&second["id"], &second["every"], &second["paused"]),
        (&first["id"], &json!("1h"), &json!(true))
    );
    assert_eq!((&second["job"]["payload"], &second["job"]["timeout"]), (&Value::Null, &json!("2d")));
    put(json!({"every": "1h", "paused": false})).await.ok(201);
    assert_eq!(schedule().await.ok(200)["paused"], false);

    server.call("DELETE", "/api/v1/schedules/workflow.etl").await.ok(204);
    put(json!({"every": "1h", "paused": false})).await.ok(200);
    assert_eq!(schedule().await.ok(200)["every"], "1h", "it is what the definition says");
    server.post(WORKFLOWS, etl()).await.ok(201);
    assert_eq!(schedule().await.problem(404), "not_found");
}

#[tokio::test]
async fn a_bad_schedule_leaves_the_definition_and_the_schedule_as_they_were() {
    let server = Server::start();
    let scheduled = |cron: &str| with(etl(), json!({"schedule": {"cron": cron}}));
    server.post(WORKFLOWS, scheduled("@daily")).await.ok(201);
    assert_eq!(server.post(WORKFLOWS, scheduled("* * *")).await.problem(422), "validation_failed");
    assert_eq!(server.get(&format!("{WORKFLOWS}/etl")).await.ok(200)["version"], 1);
    assert_eq!(server.get("/api/v1/schedules/workflow.etl").await.ok(200)["cron"], "@daily");
}

#[tokio::test]
async fn a_schedule_cannot_take_the_name_that_a_workflow_gives_to_its_own() {
    let server = Server::start();
    let request = json!({"name": "workflow.etl", "cron": "@daily", "job": {"type": "t"}});
    let refused = server.post("/api/v1/schedules", request).await;
    assert_eq!((refused.problem(422), refused.pointers()), ("validation_failed", vec!["/name"]));
    assert_eq!(refused.body["errors"][0]["code"], "reserved");
    let job = json!({"type": "t", "target": {"workflow": {"name": "etl"}}});
    let own = json!({"name": "nightly", "cron": "@daily", "job": job});
    let created = server.post("/api/v1/schedules", own).await.ok(201);
    assert_eq!(created["job"]["target"], json!({"workflow": {"name": "etl"}}));
}

#[tokio::test]
async fn a_removed_workflow_is_gone_with_its_schedule_and_its_versions_can_be_read() {
    let server = Server::start();
    let scheduled = with(etl(), json!({"schedule": {"cron": "@daily"}}));
    let stored = server.post(WORKFLOWS, scheduled).await.ok(201);
    server.post(WORKFLOWS, with(chain(2), json!({"schedule": {"cron": "@daily"}}))).await.ok(201);
    server.call("DELETE", "/api/v1/workflows/etl").await.ok(204);
    for path in ["workflows/etl", "workflows/etl/graph", "schedules/workflow.etl"] {
        assert_eq!(server.get(&format!("/api/v1/{path}")).await.problem(404), "not_found", "{path}");
    }
    let started = server.call("POST", "/api/v1/workflows/etl/runs").await;
    assert_eq!(started.problem(404), "not_found");
    let listed = server.get(WORKFLOWS).await.ok(200);
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(listed["items"][0]["name"], "chain");
    server.get("/api/v1/schedules/workflow.chain").await.ok(200);

    assert_eq!(server.get("/api/v1/workflows/etl?version=1").await.ok(200), stored);
    server.get("/api/v1/workflows/etl/graph?version=1").await.ok(200);
    let versions = server.get("/api/v1/workflows/etl/versions").await.ok(200);
    assert_eq!(versions["items"][0]["version"], 1);
}

#[tokio::test]
async fn runs_go_on_when_their_workflow_is_removed() {
    let server = Server::start();
    server.post(WORKFLOWS, chain(2)).await.ok(201);
    let run = server.call("POST", "/api/v1/workflows/chain/runs").await.ok(201);
    let path = format!("/api/v1/workflow-runs/{}", run["id"].as_str().expect("an id"));
    server.call("DELETE", "/api/v1/workflows/chain").await.ok(204);
    let task = |name: &str| format!("{path}/tasks/{name}/complete");
    for name in ["t0", "t1"] {
        server.call("POST", &task(name)).await.ok(200);
    }
    let ended = server.get(&path).await.ok(200);
    assert_eq!((&ended["status"], &ended["version"]), (&json!("completed"), &json!(1)));
    let listed = server.get("/api/v1/workflow-runs?workflow=chain").await.ok(200);
    assert_eq!(listed["items"][0]["id"], run["id"]);
}

#[tokio::test]
async fn only_a_workflow_that_is_there_can_be_removed() {
    let server = Server::start();
    let delete = async |name: &str| server.call("DELETE", &format!("{WORKFLOWS}/{name}")).await;
    assert_eq!(delete("nobody").await.problem(404), "not_found");
    server.post(WORKFLOWS, etl()).await.ok(201);
    delete("etl").await.ok(204);
    assert_eq!(delete("etl").await.problem(404), "not_found");
}

#[tokio::test]
async fn what_is_stored_after_a_removal_is_the_next_version_and_a_trial_says_so() {
    let server = Server::start();
    server.post(WORKFLOWS, etl()).await.ok(201);
    server.call("DELETE", "/api/v1/workflows/etl").await.ok(204);
    let tried = server.post(&format!("{WORKFLOWS}?dry_run=true"), etl()).await.ok(200);
    assert_eq!(tried["version"], 2);
    let again = server.post(WORKFLOWS, etl()).await;
    assert_eq!(again.headers["location"], "/api/v1/workflows/etl?version=2");
    assert_eq!(again.ok(201)["version"], 2);
    assert_eq!(server.get("/api/v1/workflows/etl").await.ok(200)["version"], 2);
    assert_eq!(server.post(WORKFLOWS, etl()).await.ok(200)["version"], 2, "it is there already");
}
