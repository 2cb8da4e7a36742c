//! Jobs that wait for other jobs: in order, at once, once, and whatever happens in between.
//!
//! I8: no job starts before all it depends on have completed.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::{Api, id_of, text, time};
use crate::e2e::{LATENESS_MAX, Stage, for_a_while, millis_between, on_both_stores, quick_retries, with};
use crate::eventually::{PATIENCE, eventually};
use crate::server::{Server, StoreKind};
use crate::target::{Gate, Reply};

const NOBODY: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

on_both_stores! {
    a_diamond_runs_in_its_order,
    a_child_starts_the_moment_its_parent_has_completed,
    parents_that_have_completed_already_hold_nobody_up,
    a_retry_of_a_parent_releases_nobody_before_it_completes,
    an_unknown_parent_is_refused_and_leaves_no_trace,
    a_batch_with_one_bad_parent_stores_the_others,
    a_failed_parent_blocks_its_child_until_its_retry_completes,
    a_cancelled_parent_blocks_its_child_whether_it_was_waiting_or_running,
    a_cancelled_child_never_runs,
    a_child_with_a_time_of_its_own_is_not_early,
    a_child_of_two_hundred_parents_is_released_once,
    a_job_that_waits_for_others_says_for_which,
    a_chain_goes_on_where_it_was_when_its_server_is_killed,
}

/// A job that calls `path` after these have completed, changed by `fields`.
fn after(stage: &Stage, path: &str, parents: &[&str], fields: Value) -> Value {
    with(stage.job(path, json!({"depends_on": parents})), fields)
}

async fn submit_after(stage: &Stage, path: &str, parents: &[&str]) -> String {
    id_of(&stage.api.submit(&after(stage, path, parents, json!({}))).await)
}

async fn status(stage: &Stage, id: &str) -> String {
    text(&stage.api.job(id).await, "status").to_owned()
}

/// I8 for one edge: the milliseconds from the parent's end to the first start of its child.
async fn start_after_end(api: &Api, parent: &str, child: &str) -> i64 {
    let ended = time(&api.job(parent).await, "completed_at");
    let started = time(&api.attempts(child).await[0], "started_at");
    assert!(started >= ended, "I8: {child} started at {started}, its parent {parent} completed at {ended}");
    millis_between(ended, started)
}

async fn a_diamond_runs_in_its_order(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/a", Reply::ok().behind(&gate));
    stage.target.reply("/b", Reply::ok().after(Duration::from_millis(150)));
    let a = stage.submit("/a", json!({})).await;
    let b = submit_after(&stage, "/b", &[&a]).await;
    let c = submit_after(&stage, "/c", &[&a]).await;
    let d = submit_after(&stage, "/d", &[&b, &c]).await;
    stage.target.called("/a", 1).await;
    for id in [&b, &c, &d] {
        assert_eq!(status(&stage, id).await, "pending");
    }
    gate.open();
    let last = stage.api.wait(&d).await;
    assert_eq!(text(&last, "status"), "completed", "{last}");
    assert_eq!(last["depends_on"], json!([b, c]));
    for (parent, child) in [(&a, &b), (&a, &c), (&b, &d), (&c, &d)] {
        start_after_end(&stage.api, parent, child).await;
    }
    assert_eq!(stage.target.calls().len(), 4);
}

async fn a_child_starts_the_moment_its_parent_has_completed(kind: StoreKind) {
    // Without a sweep that could help, only the end of the parent can start it.
    let server = Server::builder(kind).env("TICKWHEEL_ENGINE_SWEEP_INTERVAL", "30s").start().await;
    let stage = Stage::on(server).await;
    let gate = Gate::closed();
    stage.target.reply("/parent", Reply::ok().behind(&gate));
    let parent = stage.submit("/parent", json!({})).await;
    let child = submit_after(&stage, "/child", &[&parent]).await;
    stage.target.called("/parent", 1).await;
    for_a_while(async || assert!(stage.target.calls_to("/child").is_empty())).await;
    gate.open();
    stage.until(&child, "completed").await;
    let late = start_after_end(&stage.api, &parent, &child).await;
    assert!(late < LATENESS_MAX.as_millis() as i64, "{late} ms late");
}

async fn parents_that_have_completed_already_hold_nobody_up(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    let first = stage.submit("/parent", json!({})).await;
    let second = stage.submit("/parent", json!({})).await;
    for id in [&first, &second] {
        stage.until(id, "completed").await;
    }
    let child = stage.api.submit(&after(&stage, "/child", &[&first, &second, &first], json!({}))).await;
    assert_eq!(text(&child, "status"), "scheduled", "{child}");
    stage.until(&id_of(&child), "completed").await;

    let later = json!({"delay": "1h"});
    let child = stage.api.submit(&after(&stage, "/child", &[&first], later)).await;
    assert_eq!(child["next_run_at"], child["execute_at"]);
    stage.restart().await;
    let kept = stage.api.job(&id_of(&child)).await;
    assert_eq!(kept, child, "what it depends on is kept");
}

async fn a_retry_of_a_parent_releases_nobody_before_it_completes(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    stage
        .target
        .on("/flaky", |call| Reply::status(if call.header("tickwheel-attempt") == "3" { 200 } else { 503 }));
    let parent = stage.submit("/flaky", json!({"retry": quick_retries(5)})).await;
    let child = submit_after(&stage, "/child", &[&parent]).await;
    stage.until(&child, "completed").await;
    start_after_end(&stage.api, &parent, &child).await;
    assert_eq!((stage.target.calls_for(&parent).len(), stage.target.calls_for(&child).len()), (3, 1));
}

async fn an_unknown_parent_is_refused_and_leaves_no_trace(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let parent = stage.submit("/parent", json!({"delay": "1h"})).await;
    let request =
        after(&stage, "/child", &[&parent, NOBODY], json!({"idempotency_key": "once", "queue": "lane"}));
    let refused = stage.api.post("/api/v1/jobs", &request).await.expect(422).json();
    assert_eq!(text(&refused, "code"), "unknown_parent", "{refused}");
    assert_eq!(text(&refused["errors"][0], "pointer"), "/depends_on/1");
    assert!(text(&refused, "detail").contains(NOBODY), "{refused}");
    assert_eq!(stage.api.list("/api/v1/jobs").await.len(), 1);
    let queues = stage.api.list("/api/v1/queues").await;
    assert!(queues.iter().all(|queue| text(queue, "name") != "lane"), "{queues:?}");

    let mended = with(request, json!({"depends_on": [parent]}));
    let child = stage.api.submit(&mended).await;
    assert_eq!(text(&child, "status"), "pending", "the key was still free: {child}");
}

async fn a_batch_with_one_bad_parent_stores_the_others(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/parent", Reply::ok().behind(&gate));
    let parent = stage.submit("/parent", json!({})).await;
    let jobs = json!({"jobs": [
        after(&stage, "/child", &[&parent], json!({})),
        after(&stage, "/child", &[NOBODY], json!({})),
        stage.job("/alone", json!({})),
        after(&stage, "/child", &[&parent, &parent], json!({})),
    ]});
    let results = stage.api.post("/api/v1/jobs/batch", &jobs).await.expect(200).json()["results"].take();
    assert_eq!(results[1]["error"]["code"], "unknown_parent", "{results}");
    assert_eq!(results[1]["error"]["errors"][0]["pointer"], "/jobs/1/depends_on/0");
    assert_eq!(results[2]["job"]["status"], "scheduled");
    let children = [0, 3].map(|index| id_of(&results[index]["job"]));
    for child in &children {
        assert_eq!(status(&stage, child).await, "pending");
    }
    gate.open();
    for child in &children {
        stage.until(child, "completed").await;
        start_after_end(&stage.api, &parent, child).await;
    }
    assert_eq!(stage.target.called("/alone", 1).await.len(), 1);
    assert_eq!(stage.target.calls_to("/child").len(), 2);
}

async fn a_failed_parent_blocks_its_child_until_its_retry_completes(kind: StoreKind) {
    let mut stage = Stage::set(kind).await;
    stage.target.reply("/parent", Reply::status(400));
    let parent = stage.submit("/parent", json!({"delay": "100ms"})).await;
    let child = submit_after(&stage, "/child", &[&parent]).await;
    let grandchild = submit_after(&stage, "/grandchild", &[&child]).await;
    stage.until(&parent, "failed").await;
    // Both are of one commit: whoever sees the one sees the other.
    assert_eq!(status(&stage, &child).await, "blocked");
    assert_eq!(status(&stage, &grandchild).await, "pending");
    let late = stage.api.submit(&after(&stage, "/child", &[&parent], json!({}))).await;
    assert_eq!(text(&late, "status"), "blocked", "it had failed before: {late}");
    stage.restart().await;
    for_a_while(async || assert!(stage.target.calls_to("/child").is_empty())).await;

    stage.target.reply("/parent", Reply::ok());
    stage.act(&parent, "retry").await.expect(200);
    for id in [&child, &grandchild, &id_of(&late)] {
        stage.until(id, "completed").await;
    }
    for (parent, child) in [(&parent, &child), (&parent, &id_of(&late)), (&child, &grandchild)] {
        start_after_end(&stage.api, parent, child).await;
    }
    assert_eq!(stage.target.calls_to("/child").len(), 2);
}

async fn a_cancelled_parent_blocks_its_child_whether_it_was_waiting_or_running(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/long", Reply::ok().behind(&gate));
    let waiting = stage.submit("/parent", json!({"delay": "1h"})).await;
    let running = stage.submit("/long", json!({})).await;
    stage.target.called("/long", 1).await;
    let of_waiting = submit_after(&stage, "/child", &[&waiting]).await;
    let of_running = submit_after(&stage, "/child", &[&running]).await;
    for (parent, child) in [(&waiting, &of_waiting), (&running, &of_running)] {
        stage.act(parent, "cancel").await.expect(200);
        stage.until(parent, "cancelled").await;
        assert_eq!(status(&stage, child).await, "blocked");
        let refused = stage.act(child, "run").await.expect(409).json();
        assert_eq!(text(&refused, "detail"), "a blocked job cannot be run now");
    }
    for_a_while(async || assert!(stage.target.calls_to("/child").is_empty())).await;
    stage.act(&waiting, "retry").await.expect(200);
    stage.until(&of_waiting, "completed").await;
    assert_eq!(status(&stage, &of_running).await, "blocked");
}

async fn a_cancelled_child_never_runs(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/parent", Reply::ok().behind(&gate));
    let parent = stage.submit("/parent", json!({})).await;
    let child = submit_after(&stage, "/child", &[&parent]).await;
    for (verb, detail) in
        [("run", "a pending job cannot be run now"), ("pause", "a pending job cannot be paused")]
    {
        let refused = stage.act(&child, verb).await.expect(409).json();
        assert_eq!((text(&refused, "code"), text(&refused, "detail")), ("illegal_state", detail));
    }
    let cancelled = stage.act(&child, "cancel").await.expect(200).json();
    assert_eq!(text(&cancelled, "status"), "cancelled");
    gate.open();
    stage.until(&parent, "completed").await;
    for_a_while(async || assert!(stage.target.calls_to("/child").is_empty())).await;
    assert_eq!(status(&stage, &child).await, "cancelled");
    // Its parent has completed meanwhile: nothing holds it up when it is run again.
    stage.act(&child, "retry").await.expect(200);
    stage.until(&child, "completed").await;
}

async fn a_child_with_a_time_of_its_own_is_not_early(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/parent", Reply::ok().behind(&gate));
    let parent = stage.submit("/parent", json!({})).await;
    let later = stage.api.submit(&after(&stage, "/later", &[&parent], json!({"delay": "700ms"}))).await;
    let past = json!({"execute_at": "2001-01-01T00:00:00Z"});
    let past = id_of(&stage.api.submit(&after(&stage, "/past", &[&parent], past)).await);
    assert_eq!((text(&later, "status"), &later["next_run_at"]), ("pending", &Value::Null));
    gate.open();
    stage.until(&past, "completed").await;
    start_after_end(&stage.api, &parent, &past).await;
    let due = time(&later, "execute_at");
    let arrived = stage.target.called("/later", 1).await[0].arrived_at;
    let late = millis_between(due, arrived);
    assert!((0..LATENESS_MAX.as_millis() as i64).contains(&late), "I4: {late} ms late");
}

async fn a_child_of_two_hundred_parents_is_released_once(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/parent", Reply::ok().behind(&gate));
    let parents = stage.api.submit_batch(&vec![stage.job("/parent", json!({})); 200]).await;
    let parents: Vec<String> = parents.iter().map(id_of).collect();
    let ids: Vec<&str> = parents.iter().map(String::as_str).collect();
    let child = submit_after(&stage, "/child", &ids).await;
    stage.target.called("/parent", 200).await;
    assert_eq!(status(&stage, &child).await, "pending");
    gate.open();
    let job = stage.until(&child, "completed").await;
    assert_eq!(job["attempt"], 1, "{job}");
    let mut last_end = Timestamp::MIN;
    for parent in &parents {
        last_end = last_end.max(time(&stage.api.job(parent).await, "completed_at"));
    }
    assert!(time(&job, "started_at") >= last_end, "I8: the last of them completed at {last_end}, {job}");
    for_a_while(async || assert_eq!(stage.target.calls_to("/child").len(), 1)).await;
}

async fn a_job_that_waits_for_others_says_for_which(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let gate = Gate::closed();
    stage.target.reply("/long", Reply::status(400).body("no such order").behind(&gate));
    let done = stage.submit("/run", json!({})).await;
    stage.until(&done, "completed").await;
    let running = stage.submit("/long", json!({"type": "extract"})).await;
    stage.target.called("/long", 1).await;
    let later = stage.submit("/run", json!({"delay": "1h"})).await;
    let child = submit_after(&stage, "/child", &[&later, &running, &done]).await;
    let why = stage.why(&child).await;
    assert_eq!((text(&why, "code"), text(&why, "waits_for")), ("waits_for_parents", "its parents"));
    let sentence =
        format!("it waits for 2 of 3 jobs it depends on: {running} (running), {later} (scheduled)");
    assert_eq!(text(&why, "sentence"), sentence);

    gate.open();
    let failed = stage.until(&running, "failed").await;
    let why = stage.why(&child).await;
    assert_eq!((text(&why, "code"), &why["since"]), ("parent_failed", &failed["completed_at"]));
    let sentence = text(&why, "sentence");
    let begin = format!("job {running} (type extract), which it depends on, failed: ");
    assert!(sentence.starts_with(&begin) && sentence.ends_with("; retry that one"), "{why}");
    assert!(sentence.contains("no such order"), "{why}");
}

async fn a_chain_goes_on_where_it_was_when_its_server_is_killed(kind: StoreKind) {
    const LENGTH: usize = 30;
    // Here the server dies of something else than its jobs, and they must not be blamed for it.
    let server = Server::builder(kind).env("TICKWHEEL_POISON_LOST", "1000").start().await;
    let mut stage = Stage::on(server).await;
    stage.target.reply("/step", Reply::ok().after(Duration::from_millis(30)));
    let mut chain = vec![stage.submit("/step", json!({})).await];
    while chain.len() < LENGTH {
        let before = chain[chain.len() - 1].clone();
        chain.push(submit_after(&stage, "/step", &[&before]).await);
    }
    for link in [3, 8, 13, 18, 23, 28] {
        let what = format!("link {link} of the chain to start");
        let called = async || (!stage.target.calls_for(&chain[link]).is_empty()).then_some(());
        eventually(&what, PATIENCE, called).await;
        stage.restart().await;
    }
    let last = stage.api.wait(&chain[LENGTH - 1]).await;
    assert_eq!(text(&last, "status"), "completed", "{last}");
    for pair in chain.windows(2) {
        start_after_end(&stage.api, &pair[0], &pair[1]).await;
    }
    let mut lost = 0;
    for id in &chain {
        let attempts = stage.api.attempts(id).await;
        let outcomes: Vec<&str> = attempts.iter().map(|attempt| text(attempt, "outcome")).collect();
        let (end, before) = outcomes.split_last().expect("it completed");
        assert_eq!(*end, "completed", "I1: {id} {outcomes:?}");
        assert!(before.iter().all(|outcome| *outcome == "lost"), "I1: {id} {outcomes:?}");
        let tokens: Vec<u64> = stage.target.calls_for(id).iter().map(|call| call.fencing_token()).collect();
        assert!(tokens.is_sorted_by(|a, b| a < b), "I2: an attempt of {id} came twice, {tokens:?}");
        lost += before.len();
    }
    assert!(lost > 0, "no kill hit an attempt under way");
}

#[tokio::test]
async fn a_child_may_be_submitted_to_another_server_than_its_parent() {
    let stage = Stage::set(StoreKind::Postgres).await;
    let other = Server::builder(StoreKind::Postgres).beside(&stage.server).start().await;
    let apis = [stage.api.clone(), other.api()];
    let gate = Gate::closed();
    stage.target.reply("/held", Reply::ok().behind(&gate));
    let mut edges = Vec::new();
    // Of every other pair the parent ends at any moment while its child is being submitted.
    for (number, path) in ["/held", "/parent"].into_iter().cycle().take(40).enumerate() {
        let (one, another) = (&apis[number / 2 % 2], &apis[(number / 2 + 1) % 2]);
        let parent = id_of(&one.submit(&stage.job(path, json!({}))).await);
        let child = another.submit(&after(&stage, "/child", &[&parent], json!({}))).await;
        edges.push((parent, id_of(&child)));
    }
    gate.open();
    for (parent, child) in &edges {
        let job = other.api().wait(child).await;
        assert_eq!((text(&job, "status"), &job["attempt"]), ("completed", &json!(1)), "{job}");
        start_after_end(&stage.api, parent, child).await;
        assert_eq!(stage.target.calls_for(child).len(), 1);
    }
}
