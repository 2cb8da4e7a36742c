//! Something to look at: a tiny endpoint, and a handful of jobs and schedules and a workflow for it.
//!
//! The endpoint is the one exception to the address guard, by its exact address. Everything goes through the public API
//! like anybody's.

mod endpoint;

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use tickwheel_client::Client;
use tickwheel_core::ports::{JobQuery, Store};

use crate::commands::declared::Format;
use crate::failure::CommandError;

/// Where it listens, unless somebody else does: the same address after a restart, so that waiting jobs still find it.
const PORT: u16 = 7181;
/// The workflow, as the guide shows it.
const ETL: &str = include_str!("etl.yaml");

/// The endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Echo {
    address: SocketAddr,
}

impl Echo {
    /// Listens on loopback for as long as the process lives.
    pub async fn start() -> anyhow::Result<Self> {
        let address = endpoint::start(PORT).await?;
        tracing::info!("demo endpoint: http://{address}/echo (also /slow, /flaky, /broken)");
        Ok(Self { address })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Submits the demo's jobs, schedules and workflow to the server at `api`, unless there are jobs to look at
    /// already.
    pub async fn submit_jobs(self, store: Arc<dyn Store>, api: SocketAddr) {
        let found = store.list_jobs(JobQuery { limit: 1, ..JobQuery::default() }).await;
        if found.is_ok_and(|page| !page.items.is_empty()) {
            tracing::info!("there are jobs already, so no demo jobs were submitted: tickwheel jobs list");
            return;
        }
        for job in demo_jobs(self.address) {
            if let Err(error) = post(api, &["jobs"], &job).await {
                tracing::warn!(%error, "a demo job was not accepted");
                return;
            }
            let job_type = job["type"].as_str().unwrap_or_default();
            tracing::info!(job_type, about = %job["metadata"]["about"], "demo job submitted");
        }
        for schedule in demo_schedules(self.address) {
            // One that was created before is left as it is.
            match post(api, &["schedules"], &schedule).await {
                Ok(()) => tracing::info!(
                    name = %schedule["name"], about = %schedule["job"]["metadata"]["about"], "demo schedule created"
                ),
                Err(error) => {
                    tracing::warn!(%error, name = %schedule["name"], "a demo schedule was not accepted")
                }
            }
        }
        if let Err(error) = self.start_workflow(api).await {
            tracing::warn!(%error, "the demo workflow was not accepted");
        }
        tracing::info!(
            "to see them: tickwheel workflows watch etl; tickwheel jobs list; tickwheel schedules list; tickwheel dead-letters list; \
            tickwheel jobs why <ID>"
        );
    }

    /// Stores the workflow and runs it at once: its schedule does so at the next minute.
    async fn start_workflow(self, api: SocketAddr) -> Result<(), CommandError> {
        let workflow = demo_workflow(self.address);
        post(api, &["workflows"], &workflow).await?;
        tracing::info!(name = %workflow["name"], about = %workflow["description"], "demo workflow stored");
        post(api, &["workflows", "etl", "runs"], &json!({"idempotency_key": "demo"})).await
    }
}

async fn post(api: SocketAddr, path: &[&str], body: &Value) -> Result<(), CommandError> {
    Client::new(&format!("http://{api}"))?.post(path).json(body)?.send().await?;
    Ok(())
}

fn demo_workflow(echo: SocketAddr) -> Value {
    let text = ETL.replace(&format!("127.0.0.1:{PORT}"), &echo.to_string());
    Format::Yaml.parse(&text).expect("a document that was read in a test")
}

fn demo_jobs(echo: SocketAddr) -> Vec<Value> {
    let target = |path: &str| json!({"http": {"url": format!("http://{echo}/{path}")}});
    let quick_retries = json!({"max_retries": 3, "backoff": "exponential", "initial_delay": "500ms"});
    vec![
        json!({"type": "hello", "target": target("echo"), "payload": {"hello": "world"}, "tags": ["demo"],
            "metadata": {"about": "runs at once"}}),
        json!({"type": "punctual", "target": target("echo"), "delay": "250ms", "tags": ["demo"],
            "metadata": {"about": "runs after 250 ms, not at the next poll"}}),
        json!({"type": "slow_report", "target": target("slow"), "delay": "1s", "queue": "reports", "tags": ["demo"],
            "metadata": {"about": "takes two seconds"}}),
        json!({"type": "flaky", "target": target("flaky"), "priority": "high", "retry": quick_retries, "tags": ["demo"],
            "metadata": {"about": "fails twice, then completes"}}),
        json!({"type": "broken", "target": target("broken"), "tags": ["demo"],
            "metadata": {"about": "is refused and becomes a dead letter"}}),
        json!({"type": "tomorrow", "target": target("echo"), "delay": "1d", "priority": "low", "tags": ["demo"],
            "metadata": {"about": "waits: ask why"}}),
    ]
}

fn demo_schedules(echo: SocketAddr) -> Vec<Value> {
    let job = |job_type: &str, path: &str, about: &str| {
        json!({"type": job_type, "target": {"http": {"url": format!("http://{echo}/{path}")}}, "tags": ["demo"],
            "metadata": {"about": about}})
    };
    vec![
        json!({"name": "heartbeat", "every": "10s", "job": job("heartbeat", "echo", "every ten seconds")}),
        json!({"name": "minutely-report", "cron": "* * * * *", "overlap": "skip",
            "job": job("report", "slow", "every minute, never two at once")}),
        json!({"name": "nightly-backup", "cron": "30 2 * * *", "timezone": "America/New_York", "jitter": "5m",
            "missed": {"policy": "fire_once", "window": "12h"},
            "job": job("backup", "echo", "half past two in New York, also on the days the clock is moved")}),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workflow_calls_the_endpoint_wherever_it_is() {
        let workflow = demo_workflow("127.0.0.1:9".parse().unwrap());
        assert_eq!(workflow["tasks"][0]["job"]["target"]["http"]["url"], "http://127.0.0.1:9/etl/extract");
        assert!(!workflow.to_string().contains(&PORT.to_string()));
    }
}
