//! Two servers on one database: what is turned through one of them holds for the other.

use std::time::Duration;

use serde_json::json;

use crate::api::{Api, http_job, id_of, text};
use crate::e2e::{for_a_while, with};
use crate::eventually::eventually;
use crate::server::{Server, StoreKind};
use crate::target::Target;

/// Controls are read every second.
const SOON: Duration = Duration::from_secs(10);

async fn why(api: &Api, id: &str) -> String {
    let why = api.get(&format!("/api/v1/jobs/{id}/why")).await.expect(200).json();
    text(&why, "code").to_owned()
}

#[tokio::test]
async fn what_was_stopped_through_one_server_is_started_again_through_the_other() {
    let target = Target::start().await;
    let one = Server::start(StoreKind::Postgres).await;
    let mut other = Server::builder(StoreKind::Postgres).beside(&one).start().await;
    for (stop, go, code) in [
        ("/api/v1/admin/halt", "/api/v1/admin/resume", "halted"),
        ("/api/v1/queues/lane/pause", "/api/v1/queues/lane/resume", "queue_paused"),
    ] {
        one.api().act(stop).await.expect(200);
        let job = with(http_job(&target.url("/stopped")), json!({"queue": "lane"}));
        let stopped = id_of(&one.api().submit(&job).await);
        for_a_while(async || assert!(target.calls_for(&stopped).is_empty(), "I10")).await;
        assert_eq!([why(&one.api(), &stopped).await, why(&other.api(), &stopped).await], [code, code]);
        other.api().act(go).await.expect(200);
        target.called("/stopped", 1).await;
    }
    // Whatever runs from here on, the first one runs.
    other.terminate().await;
    let queues = ["lane", "another"];
    let jobs: Vec<String> = {
        let mut jobs = Vec::new();
        for queue in queues {
            let job = with(http_job(&target.url("/again")), json!({"queue": queue}));
            jobs.push(id_of(&one.api().submit(&job).await));
        }
        jobs
    };
    for job in jobs {
        eventually("the first server to start jobs again", SOON, async || {
            (!target.calls_for(&job).is_empty()).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_server_shows_what_was_stopped_through_the_other() {
    let one = Server::start(StoreKind::Postgres).await;
    let other = Server::builder(StoreKind::Postgres).beside(&one).start().await;
    for (verb, halted) in [("halt", true), ("resume", false)] {
        one.api().act(&format!("/api/v1/admin/{verb}")).await.expect(200);
        for server in [&one, &other] {
            let status = server.api().get("/api/v1/admin/status").await.expect(200).json();
            assert_eq!(status["halted"], halted, "{status}");
        }
    }
}
