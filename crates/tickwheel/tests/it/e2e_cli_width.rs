//! Every list of the program, at a width of 80 columns, with a real server and names that are longer than they need to
//! be.

use serde_json::json;

use crate::e2e::{Stage, quick_retries};
use crate::e2e_cli::ok;
use crate::eventually::{PATIENCE, eventually};
use crate::program::Run;
use crate::server::StoreKind;
use crate::target::Reply;
use crate::terminal::{on_terminal, width};

const LONG: &str = "a-name-that-says-rather-a-lot-about-what-it-is-for-and-then-some";

async fn shown(stage: &Stage, args: &[&str]) -> String {
    let (server, args) =
        (stage.server.url().to_owned(), args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>());
    let running = move || {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        on_terminal(80, &server, &args, "")
    };
    let run: Run = tokio::task::spawn_blocking(running).await.unwrap();
    assert_eq!(run.code, Some(0), "{run:?}");
    run.stdout
}

#[tokio::test]
async fn no_list_is_wider_than_80_columns() {
    let stage = Stage::set(StoreKind::Sqlite).await;
    stage.target.reply("/broken", Reply::status(422).body("no ".repeat(100)));
    let request = json!({"type": LONG, "queue": LONG, "retry": quick_retries(0),
        "callback_url": stage.target.url(&format!("/broken?{LONG}"))});
    let failed = stage.submit("/broken", request).await;
    stage.until(&failed, "failed").await;
    let callbacks = format!("/api/v1/jobs/{failed}/callbacks");
    eventually("a callback was tried", PATIENCE, async || {
        stage
            .api
            .list(&callbacks)
            .await
            .first()
            .filter(|callback| callback["tries"][0].is_object())
            .map(|_| ())
    })
    .await;
    let schedule = json!({"name": LONG, "cron": "0 0 1 1 *", "timezone": "America/Argentina/ComodRivadavia",
        "job": stage.job("/run", json!({"type": LONG}))});
    stage.api.post("/api/v1/schedules", &schedule).await.success();
    ok(&stage, &["schedules", "trigger", LONG]).await;
    let task = |name: &str, path: &str, after: &[&str]| {
        json!({"name": name, "depends_on": after,
        "job": {"target": {"http": {"url": stage.target.url(path)}}, "retry": quick_retries(0)}})
    };
    let workflow = json!({"name": LONG, "description": LONG, "tasks": [task(LONG, "/broken", &[]), task("next", "/run", &[LONG])]});
    stage.api.post("/api/v1/workflows", &workflow).await.success();
    let run = ok(&stage, &["workflows", "run", LONG]).await.trim().to_owned();
    stage.api.run_ended(&run).await;
    let calendar = json!({"days": ["2026-12-25"], "weekdays": ["saturday", "sunday"]});
    stage.api.put(&format!("/api/v1/calendars/{LONG}"), &calendar).await.success();

    for (args, heading) in [
        (&["jobs", "list"][..], "STATUS"),
        (&["jobs", "attempts", &failed], "OUTCOME"),
        (&["jobs", "callbacks", &failed], "ANSWER"),
        (&["dead-letters", "list"], "ERROR"),
        (&["queues"], "WAITING"),
        (&["schedules", "list"], "NEXT"),
        (&["schedules", "fires", LONG], "OUTCOME"),
        (&["schedules", "next", LONG], "WHEN"),
        (&["workflows", "list"], "TASKS"),
        (&["workflows", "runs"], "STATUS"),
        (&["workflows", "get", LONG, "--versions"], "VERSION"),
        (&["calendars", "list"], "DAYS"),
    ] {
        let list = shown(&stage, args).await;
        assert!(list.contains(heading), "{args:?}\n{list}");
        assert!(width(&list) <= 80, "{args:?} is {} wide\n{list}", width(&list));
    }
    // Below the facts, which are whole, stand the tasks.
    for args in [&["workflows", "show", &run][..], &["workflows", "get", LONG]] {
        let whole = shown(&stage, args).await;
        let tasks = &whole[whole.find("TASK").expect("a table of tasks")..];
        assert!(width(tasks) <= 80, "{args:?}\n{tasks}");
    }
    let short = failed.rsplit('-').next().unwrap();
    assert!(shown(&stage, &["dead-letters", "list"]).await.contains(short));
    assert!(
        ok(&stage, &["dead-letters", "get", short]).await.contains(&failed),
        "what is shown can be typed"
    );
    assert!(ok(&stage, &["workflows", "show", run.rsplit('-').next().unwrap()]).await.contains(&run));
}
