//! `submit ACTION`: the client's side of the scenario.

use std::collections::HashSet;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tickwheel_worker::client::{Client, Error, NewJob, NewSchedule, Workflow, from, task};

use crate::contract::{Echo, Reject};

type Anything = Box<dyn std::error::Error>;

const HOUR: Duration = Duration::from_secs(3600);

#[derive(Deserialize)]
struct Parameters {
    queue: String,
    #[serde(rename = "type", default)]
    job_type: String,
    #[serde(default)]
    payload: Value,
    #[serde(default)]
    count: usize,
    #[serde(default)]
    bad: Vec<usize>,
    #[serde(default)]
    name: String,
}

pub async fn submit(action: &str) -> Result<Value, Anything> {
    let asked: Parameters = serde_json::from_reader(std::io::stdin())?;
    let client = Client::from_env()?;
    match action {
        "one" => one(&client, &asked).await,
        "many" => many(&client, &asked).await,
        "unique" => unique(&client, &asked).await,
        "wait" => wait(&client, &asked).await,
        "schedule" => schedule(&client, &asked).await,
        "workflow" => workflow(&client, &asked).await,
        other => Err(format!("there is no action {other}").into()),
    }
}

async fn one(client: &Client, asked: &Parameters) -> Result<Value, Anything> {
    let job = NewJob::named(&asked.job_type, &asked.payload).queue(&asked.queue);
    let submit = client.submit_job(job);
    let submit = match std::env::var("CONFORMANCE_TRACEPARENT") {
        Ok(traceparent) => submit.traceparent(traceparent),
        Err(_) => submit,
    };
    Ok(json!({"id": submit.await?.id()}))
}

async fn many(client: &Client, asked: &Parameters) -> Result<Value, Anything> {
    let job = |i: usize| {
        let queue = if asked.bad.contains(&i) { "bad\u{1}queue" } else { asked.queue.as_str() };
        NewJob::of(&Echo(json!({"n": i}))).queue(queue)
    };
    let outcomes = client.submit_many((0..asked.count).map(job)).await;
    let ids: HashSet<_> = outcomes.iter().flatten().map(|handle| handle.id()).collect();
    let errors = outcomes.iter().enumerate().filter_map(|(index, outcome)| {
        let code = outcome.as_ref().err()?.problem().map(|problem| problem.code.clone());
        Some(json!({"index": index, "code": code}))
    });
    let submitted = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    Ok(json!({"submitted": submitted, "distinct": ids.len(), "errors": errors.collect::<Vec<_>>()}))
}

async fn unique(client: &Client, asked: &Parameters) -> Result<Value, Anything> {
    let mut ids = Vec::new();
    for _ in 0..2 {
        let submit = client.submit(Echo(json!({"same": true}))).queue(&asked.queue).delay(HOUR);
        ids.push(submit.unique_within(Duration::from_secs(300)).await?.id());
    }
    Ok(json!({"ids": ids}))
}

async fn wait(client: &Client, asked: &Parameters) -> Result<Value, Anything> {
    let half_a_minute = Duration::from_secs(30);
    let echo = client.submit(Echo(json!({"hello": "world"}))).queue(&asked.queue).await?;
    let result = echo.wait(half_a_minute).await?;
    let reject = Reject { how: "not_retryable".into(), code: "nope".into() };
    let rejected = client.submit(reject).queue(&asked.queue).await?.wait(half_a_minute).await;
    let later = client.submit(Echo(json!({}))).queue(&asked.queue).delay(HOUR).await?;
    let timeout = later.wait(Duration::from_millis(200)).await;
    let code = match &rejected {
        Err(Error::JobFailed(failure)) => Some(failure.code.clone()),
        _ => None,
    };
    Ok(json!({
        "result": result, "failed": rejected.err().map(|error| class(&error)), "code": code,
        "timeout": timeout.err().map(|error| class(&error)),
    }))
}

/// The name of the error's variant.
fn class(error: &Error) -> &'static str {
    match error {
        Error::JobFailed(_) => "JobFailed",
        Error::JobCancelled { .. } => "JobCancelled",
        Error::WaitTimeout { .. } => "WaitTimeout",
        _ => "Error",
    }
}

async fn schedule(client: &Client, asked: &Parameters) -> Result<Value, Anything> {
    let mut ids = Vec::new();
    for _ in 0..2 {
        let job = NewJob::of(&Echo(json!({}))).queue(&asked.queue);
        let schedule = NewSchedule::cron(&asked.name, "0 7 * * mon-fri", job).timezone("Europe/Berlin");
        ids.push(client.schedules().put(schedule).await?.id);
    }
    Ok(json!({"ids": ids}))
}

async fn workflow(client: &Client, asked: &Parameters) -> Result<Value, Anything> {
    let on_queue = |name: &str, payload: Value| {
        let mut task = task::<Echo>(name, payload).build();
        if let Some(job) = &mut task.job {
            job.queue = Some(asked.queue.clone());
        }
        task
    };
    let mut workflow = Workflow::named(&asked.name).build();
    workflow.tasks.push(on_queue("first", json!({"rows": from("input.rows")})));
    let mut second = on_queue("second", json!({"got": from("first.result.rows")}));
    second.depends_on.push("first".into());
    workflow.tasks.push(second);
    client.workflows().put(&workflow).await?;
    let run = client.workflows().run(&asked.name, &json!({"rows": 42})).await?;
    Ok(json!({"run_id": run.id()}))
}
