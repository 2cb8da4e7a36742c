//! Jobs that wait for other jobs.

use serde_json::{Value, json};
use tickwheel_core::ports::JobStore as _;
use tickwheel_testkit::fixtures;

use crate::server::Server;

const JOBS: &str = "/api/v1/jobs";
const NOBODY: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

impl Server {
    async fn read(&self, id: &str) -> Value {
        self.get(&format!("{JOBS}/{id}")).await.ok(200)
    }

    async fn complete(&self, id: &str) {
        let token = self.claim(id).await;
        self.post(&format!("/api/v1/attempts/{token}/complete"), json!({})).await.ok(204);
    }

    async fn submit_after(&self, parents: &[&str]) -> String {
        self.submit(json!({"type": "load", "depends_on": parents})).await
    }
}

#[tokio::test]
async fn a_job_is_pending_until_the_last_of_its_parents_has_completed() {
    let server = Server::start();
    let first = server.submit(json!({"type": "extract"})).await;
    let second = server.submit(json!({"type": "extract"})).await;
    let parents = json!([first, second, first]);
    let answer = server.post(JOBS, json!({"type": "load", "depends_on": parents})).await;
    assert!(answer.headers.contains_key("location"));
    let child = answer.ok(201);
    let id = child["id"].as_str().unwrap();
    assert_eq!(child["status"], "pending");
    assert_eq!(child["depends_on"], parents);
    assert_eq!((&child["next_run_at"], &child["execute_at"]), (&Value::Null, &child["created_at"]));

    server.complete(&first).await;
    assert_eq!(server.read(id).await, child, "one of two is not enough");
    server.complete(&second).await;
    let released = server.read(id).await;
    assert_eq!(released["status"], "scheduled");
    assert_eq!(released["next_run_at"], "2027-01-15T08:00:00.000Z");
    assert_eq!(server.read(&first).await["depends_on"], json!([]), "it is always there");
}

#[tokio::test]
async fn parents_that_have_ended_decide_at_once() {
    let server = Server::start();
    let done = server.submit(json!({"type": "t"})).await;
    server.complete(&done).await;
    let after_done = json!({"type": "t", "delay": "1h", "depends_on": [done]});
    let child = server.post(JOBS, after_done).await.ok(201);
    assert_eq!(
        (&child["status"], &child["next_run_at"]),
        (&json!("scheduled"), &json!("2027-01-15T09:00:00.000Z"))
    );
    let failed = server.submit(json!({"type": "t"})).await;
    server.kill(&failed).await;
    let child = server.post(JOBS, json!({"type": "t", "depends_on": [done, failed]})).await.ok(201);
    assert_eq!((&child["status"], &child["next_run_at"]), (&json!("blocked"), &Value::Null));
}

#[tokio::test]
async fn a_failed_parent_blocks_until_its_retry_completes() {
    let server = Server::start();
    let parent = server.submit(json!({"type": "extract"})).await;
    let child = server.submit_after(&[&parent]).await;
    let grandchild = server.submit_after(&[&child]).await;
    server.kill(&parent).await;
    assert_eq!(server.read(&child).await["status"], "blocked");
    assert_eq!(server.read(&grandchild).await["status"], "pending", "its own parent may still come");
    server.call("POST", &format!("{JOBS}/{parent}/retry")).await.ok(200);
    assert_eq!(server.read(&child).await["status"], "pending");
    server.complete(&parent).await;
    assert_eq!(server.read(&child).await["status"], "scheduled");
}

#[tokio::test]
async fn a_parent_nobody_has_is_refused_where_it_is_named_and_nothing_is_stored() {
    let server = Server::start();
    let mine = server.submit(json!({"type": "t"})).await;
    let theirs = fixtures::job().tenant("somebody-else").build_new();
    let their_id = theirs.job.id.to_string();
    server.store.submit_jobs(vec![theirs]).await.unwrap();
    let stored = server.stored().await;
    for unknown in [NOBODY, their_id.as_str()] {
        let request =
            json!({"type": "t", "depends_on": [mine, mine, unknown, unknown], "idempotency_key": "k"});
        let refused = server.post(JOBS, request).await;
        assert_eq!(refused.problem(422), "unknown_parent");
        assert_eq!(refused.pointers(), ["/depends_on/2"]);
        assert_eq!(refused.body["detail"], format!("there is no job {unknown}"));
    }
    assert_eq!(server.stored().await, stored);
    server.post(JOBS, json!({"type": "t", "idempotency_key": "k"})).await.ok(201);
}

#[tokio::test]
async fn a_job_of_a_batch_with_an_unknown_parent_is_refused_alone() {
    let server = Server::start();
    let parent = server.submit(json!({"type": "t"})).await;
    let batch = json!({"jobs": [
        {"type": "a", "depends_on": [parent]},
        {"type": "b", "depends_on": [parent, NOBODY]},
        {"type": "c", "depends_on": ["x"]},
        {"type": "d"},
    ]});
    let results = server.post("/api/v1/jobs/batch", batch).await.ok(200)["results"].take();
    assert_eq!(results[0]["job"]["status"], "pending");
    assert_eq!(results[0]["job"]["depends_on"], json!([parent]));
    assert_eq!(results[1]["error"]["code"], "unknown_parent");
    assert_eq!(results[1]["error"]["errors"][0]["pointer"], "/jobs/1/depends_on/1");
    assert_eq!(results[2]["error"]["code"], "validation_failed");
    assert_eq!(results[2]["error"]["errors"][0]["pointer"], "/jobs/2/depends_on/0");
    assert_eq!(results[3]["job"]["status"], "scheduled");
    assert_eq!(server.stored().await, 3);
}

#[tokio::test]
async fn a_job_may_depend_on_a_thousand_others_and_not_one_more() {
    let server = Server::start();
    let batch = json!({"jobs": vec![json!({"type": "t"}); 1_000]});
    let results = server.post("/api/v1/jobs/batch", batch).await.ok(200)["results"].take();
    let mut parents: Vec<Value> =
        results.as_array().unwrap().iter().map(|result| result["job"]["id"].clone()).collect();
    let child = server.post(JOBS, json!({"type": "t", "depends_on": parents})).await.ok(201);
    assert_eq!(child["status"], "pending");
    parents.push(parents[0].clone());
    let over = server.post(JOBS, json!({"type": "t", "depends_on": parents})).await;
    assert_eq!(over.problem(422), "validation_failed");
    assert_eq!(over.pointers(), ["/depends_on"]);
    assert_eq!(over.body["errors"][0]["code"], "too_many");
}

#[tokio::test]
async fn what_a_job_depends_on_is_part_of_what_its_idempotency_key_stands_for() {
    let server = Server::start();
    let first = server.submit(json!({"type": "t"})).await;
    let second = server.submit(json!({"type": "t"})).await;
    let request = |parent: &str| json!({"type": "t", "depends_on": [parent], "idempotency_key": "k"});
    let child = server.post(JOBS, request(&first)).await.ok(201);
    assert_eq!(server.post(JOBS, request(&first)).await.ok(200), child);
    assert_eq!(server.post(JOBS, request(&second)).await.problem(409), "idempotency_conflict");
    server.complete(&first).await;
    let again = server.post(JOBS, request(&first)).await.ok(200);
    assert_eq!((&again["id"], &again["status"]), (&child["id"], &json!("scheduled")), "as it is now");
}

#[tokio::test]
async fn a_job_that_waits_for_others_says_for_which() {
    let server = Server::start();
    let why = async |id: &str| server.get(&format!("{JOBS}/{id}/why")).await.ok(200);
    let done = server.submit(json!({"type": "extract"})).await;
    server.complete(&done).await;
    let running = server.submit(json!({"type": "extract"})).await;
    let token = server.claim(&running).await;
    let later = server.submit(json!({"type": "extract", "delay": "1h"})).await;
    let child = server.submit_after(&[&done, &running, &later, &running]).await;
    let pending = why(&child).await;
    assert_eq!(pending["code"], "waits_for_parents");
    assert_eq!(
        pending["sentence"],
        format!("it waits for 2 of 3 jobs it depends on: {running} (running), {later} (scheduled)")
    );
    assert_eq!((&pending["waits_for"], &pending["status"]), (&json!("its parents"), &json!("pending")));

    let report = json!({"error": "no such table", "retryable": false});
    server.post(&format!("/api/v1/attempts/{token}/fail"), report).await.ok(204);
    let blocked = why(&child).await;
    assert_eq!(blocked["code"], "parent_failed");
    assert_eq!(
        blocked["sentence"],
        format!("job {running} (type extract), which it depends on, failed: no such table; retry that one")
    );
    assert_eq!(
        (&blocked["status"], &blocked["since"]),
        (&json!("blocked"), &json!("2027-01-15T08:00:00.000Z"))
    );
    server.call("POST", &format!("{JOBS}/{later}/cancel")).await.ok(200);
    let sentence = why(&child).await["sentence"].take();
    let both = format!(
        "2 of 3 jobs it depends on did not complete: {running} (failed), {later} (cancelled); retry them"
    );
    assert_eq!(sentence, both);
}

#[tokio::test]
async fn a_job_that_waits_for_others_can_be_changed_and_cancelled_and_nothing_else() {
    let server = Server::start();
    let parent = server.submit(json!({"type": "t"})).await;
    let child = server.submit_after(&[&parent]).await;
    let act = async |action: &str| server.call("POST", &format!("{JOBS}/{child}/{action}")).await;
    for (action, detail) in [
        ("run", "a pending job cannot be run now"),
        ("pause", "a pending job cannot be paused"),
        ("resume", "a pending job cannot be resumed"),
        ("retry", "a pending job cannot be run again"),
    ] {
        let refused = act(action).await;
        assert_eq!(refused.problem(409), "illegal_state", "{action}");
        assert_eq!(refused.body["detail"], detail);
    }
    let patch = json!({"execute_at": "2027-02-01T00:00:00Z", "priority": "low"}).to_string();
    let changed = server.send_text("PATCH", &format!("{JOBS}/{child}"), patch).await.ok(200);
    assert_eq!((&changed["priority"], &changed["next_run_at"]), (&json!("low"), &Value::Null));
    server.complete(&parent).await;
    assert_eq!(server.read(&child).await["next_run_at"], "2027-02-01T00:00:00.000Z");

    let failed = server.submit(json!({"type": "t"})).await;
    let blocked = server.submit_after(&[&failed]).await;
    server.kill(&failed).await;
    let refused = server.call("POST", &format!("{JOBS}/{blocked}/run")).await;
    assert_eq!(
        (refused.problem(409), &refused.body["detail"]),
        ("illegal_state", &json!("a blocked job cannot be run now"))
    );
    let cancelled = server.call("POST", &format!("{JOBS}/{blocked}/cancel")).await.ok(200);
    assert_eq!(cancelled["status"], "cancelled");
    server.call("POST", &format!("{JOBS}/{failed}/retry")).await.ok(200);
    server.complete(&failed).await;
    assert_eq!(server.read(&blocked).await["status"], "cancelled", "a cancelled job is not released");
}
