//! Runs of workflows while their servers are killed: they complete, with the right data, in order, and nothing runs
//! twice.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::kills::number_from;
use crate::api::{Api, text, time};
use crate::e2e::Stage;
use crate::server::{Server, StoreKind};
use crate::target::Reply;
use crate::workflows::{assert_in_order, task_of};

const LAYERS: usize = 9;
const WIDTH: usize = 6;
const ELEMENTS: u64 = 8;
const KILLS: usize = 8;
const UPTIME_MS: std::ops::Range<u64> = 60..400;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_on_sqlite_completes_in_order_however_often_its_server_is_killed() {
    kill_amid_a_run(StoreKind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_on_postgres_completes_in_order_however_often_its_server_is_killed() {
    kill_amid_a_run(StoreKind::Postgres).await;
}

async fn kill_amid_a_run(kind: StoreKind) {
    let seed = number_from("TICKWHEEL_CHAOS_SEED").unwrap_or_else(rand::random);
    println!("{kind:?}: TICKWHEEL_CHAOS_SEED={seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    // Here the server dies of something else than its jobs, and they must not be blamed for it.
    let mut stage = Stage::on(Server::builder(kind).env("TICKWHEEL_POISON_LOST", "1000").start().await).await;
    let graph = Layers::new(&mut rng);
    stage.target.on("/add", |call| {
        let sum: u64 = numbers(&call.json()["parts"]).sum();
        Reply::json(json!({"sum": sum % 1_000_003 + 1})).after(Duration::from_millis(20 + sum % 60))
    });
    stage.store("layers", graph.tasks(&stage), json!({})).await;
    let elements: Vec<u64> = (0..ELEMENTS).collect();
    let id = stage.start("layers", json!({"first": 7, "elements": elements})).await;
    for _ in 0..KILLS {
        let uptime = Duration::from_millis(rng.random_range(UPTIME_MS));
        // sleep: the moment of the kill is random
        tokio::time::sleep(uptime).await;
        stage.restart().await;
    }
    let run = stage.api.run_ended(&id).await;
    assert_eq!((text(&run, "status"), &run["tasks_open"]), ("completed", &json!(0)), "{run:#}");
    assert_in_order(&run);
    let jobs = stage.api.list(&format!("/api/v1/jobs?workflow_run_id={id}")).await;
    assert_eq!(jobs.len(), LAYERS * WIDTH + 2 + ELEMENTS as usize);
    let lost = nothing_ran_twice(&stage, &jobs).await;
    nothing_started_early(&stage.api, &jobs).await;
    let last = stage.api.job(text(task_of(&run, "join"), "job_id")).await;
    assert_eq!(last["result"]["sum"], graph.expected(7), "every task had the data of its parents");
    assert!(lost > 0, "no kill hit an attempt under way");
}

fn numbers(list: &Value) -> impl Iterator<Item = u64> {
    list.as_array().into_iter().flatten().filter_map(Value::as_u64)
}

/// Layers of tasks that add up what some of the layer before came to; then a fan-out, and a join of all.
struct Layers {
    /// The parents of each task but those of the first layer.
    parents: Vec<Vec<usize>>,
}

impl Layers {
    fn new(rng: &mut StdRng) -> Self {
        let parents = (0..LAYERS * WIDTH).map(|number| match number / WIDTH {
            0 => Vec::new(),
            layer => {
                let some = (0..3).map(|_| (layer - 1) * WIDTH + rng.random_range(0..WIDTH));
                some.collect::<BTreeSet<_>>().into_iter().collect()
            }
        });
        Self { parents: parents.collect() }
    }

    fn name(number: usize) -> String {
        format!("t{}_{}", number / WIDTH, number % WIDTH)
    }

    fn last_layer() -> std::ops::Range<usize> {
        (LAYERS - 1) * WIDTH..LAYERS * WIDTH
    }

    fn tasks(&self, stage: &Stage) -> Vec<Value> {
        let url = stage.target.url("/add");
        let task = |name: &str, parents: &[String], payload: Value| {
            json!({"name": name, "depends_on": parents,
                "job": {"target": {"http": {"url": url}}, "payload": payload}})
        };
        let sums = |names: &[String]| -> Vec<Value> {
            names.iter().map(|name| json!({"$from": format!("{name}.result.sum")})).collect()
        };
        let mut tasks: Vec<Value> = self
            .parents
            .iter()
            .enumerate()
            .map(|(number, parents)| {
                let names: Vec<String> = parents.iter().map(|parent| Self::name(*parent)).collect();
                let parts =
                    if names.is_empty() { vec![json!({"$from": "input.first"})] } else { sums(&names) };
                task(&Self::name(number), &names, json!({"parts": parts}))
            })
            .collect();
        let last: Vec<String> = Self::last_layer().map(Self::name).collect();
        let mut fan = task("fan", &last, json!({"parts": [{"$from": "item"}]}));
        fan["for_each"] = json!("input.elements");
        fan["concurrency"] = json!(3);
        tasks.push(fan);
        let mut parents = last.clone();
        parents.push("fan".into());
        let mut parts = sums(&last);
        parts.extend((0..ELEMENTS).map(|n| json!({"$from": format!("fan.result[{n}].sum")})));
        tasks.push(task("join", &parents, json!({"parts": parts})));
        tasks
    }

    fn expected(&self, first: u64) -> u64 {
        let add = |parts: &[u64]| parts.iter().sum::<u64>() % 1_000_003 + 1;
        let mut sums: Vec<u64> = Vec::new();
        for parents in &self.parents {
            let parts: Vec<u64> = parents.iter().map(|parent| sums[*parent]).collect();
            sums.push(if parts.is_empty() { add(&[first]) } else { add(&parts) });
        }
        let mut last = sums[Self::last_layer()].to_vec();
        last.extend((0..ELEMENTS).map(|element| add(&[element])));
        add(&last)
    }
}

/// No attempt reached the target twice, and of each job exactly one completed. Answers how many were lost.
async fn nothing_ran_twice(stage: &Stage, jobs: &[Value]) -> usize {
    let mut deliveries: HashMap<(String, u64), usize> = HashMap::new();
    for call in stage.target.calls() {
        *deliveries.entry((call.job_id().to_owned(), call.fencing_token())).or_default() += 1;
    }
    assert!(deliveries.values().all(|count| *count == 1), "I2: an attempt was delivered twice");
    let mut lost = 0;
    for job in jobs.iter().filter(|job| job["attempt"] != 0) {
        let attempts = stage.api.attempts(text(job, "id")).await;
        let count = |outcome: &str| attempts.iter().filter(|one| one["outcome"] == outcome).count();
        assert_eq!(count("completed"), 1, "{attempts:#?}");
        assert_eq!(count("completed") + count("lost"), attempts.len(), "{attempts:#?}");
        lost += count("lost");
    }
    lost
}

/// I8 for every attempt, also those that were lost.
async fn nothing_started_early(api: &Api, jobs: &[Value]) {
    let by_id: HashMap<&str, &Value> = jobs.iter().map(|job| (text(job, "id"), job)).collect();
    for job in jobs.iter().filter(|job| job["attempt"] != 0) {
        let first = time(&api.attempts(text(job, "id")).await[0], "started_at");
        for parent in job["depends_on"].as_array().expect("a list") {
            let ended = time(by_id[parent.as_str().expect("an id")], "completed_at");
            assert!(first >= ended, "I8: {job} started before a parent had completed");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wide_run_on_sqlite_completes() {
    wide(StoreKind::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wide_run_on_postgres_completes() {
    wide(StoreKind::Postgres).await;
}

async fn wide(kind: StoreKind) {
    const TASKS: usize = 1_000;
    let stage = Stage::set(kind).await;
    let names: Vec<String> = (0..TASKS).map(|number| format!("t{number}")).collect();
    let mut tasks = vec![stage.task("root", &[], json!({}))];
    let url = json!({"job": {"target": {"http": {"url": stage.target.url("/leaf")}}}});
    tasks.extend(names.iter().map(|name| stage.task(name, &["root"], url.clone())));
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    tasks.push(stage.task("join", &all, json!({})));
    let run = stage.run_to_end("wide", tasks, json!({})).await;
    assert_eq!((text(&run, "status"), &run["tasks_total"]), ("completed", &json!(TASKS + 2)));
    assert_in_order(&run);
    assert_eq!(stage.target.calls_to("/leaf").len(), TASKS);
    assert_eq!(stage.target.calls_to("/join").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_on_one_database_share_runs_and_one_goes_on_when_the_other_dies() {
    const RUNS: usize = 12;
    let mut stage = Stage::set(StoreKind::Postgres).await;
    let other = Server::builder(StoreKind::Postgres).beside(&stage.server).start().await;
    stage.target.reply("/list", Reply::json(json!([1, 2, 3, 4])).after(Duration::from_millis(30)));
    stage.target.reply("/each", Reply::json(json!("done")).after(Duration::from_millis(60)));
    let each =
        json!({"for_each": "list.result", "concurrency": 2, "job": {"payload": {"n": {"$from": "item"}}}});
    let tasks = vec![
        stage.task("list", &[], json!({})),
        stage.task("each", &["list"], each),
        stage.task_with("join", &["each"], json!({"all": {"$from": "each.result"}})),
    ];
    stage.store("fan", tasks, json!({})).await;
    let mut ids = Vec::new();
    for number in 0..RUNS {
        let api = if number % 2 == 0 { stage.api.clone() } else { other.api() };
        let answer = api.post("/api/v1/workflows/fan/runs", &json!({})).await.expect(201).json();
        ids.push(text(&answer, "id").to_owned());
    }
    for id in &ids[..RUNS / 2] {
        assert_eq!(text(&other.api().run_ended(id).await, "status"), "completed");
    }
    for server in [stage.server.api(), other.api()] {
        assert!(server.metric("tickwheel_attempts_started_total").await > 0.0, "one had nothing to do");
    }
    for _ in 0..RUNS / 2 {
        ids.push(stage.start("fan", Value::Null).await);
    }
    stage.server.kill9().await;
    stage.api = other.api();
    for id in &ids {
        let run = stage.api.run_ended(id).await;
        assert_eq!(text(&run, "status"), "completed", "{run:#}");
        assert_eq!(run["tasks_total"], 3 + 4, "a fan-out was made twice: {run:#}");
        assert_in_order(&run);
        let jobs = stage.api.list(&format!("/api/v1/jobs?workflow_run_id={id}")).await;
        nothing_ran_twice(&stage, &jobs).await;
        nothing_started_early(&stage.api, &jobs).await;
    }
    let joined = stage.target.calls_to("/join");
    assert!(joined.iter().all(|call| call.json() == json!({"all": ["done", "done", "done", "done"]})));
}
