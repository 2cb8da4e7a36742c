//! Schedules as files declare them: what `diff` tells, what `apply` does, and what `import crontab` makes of a crontab.

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::api::text;
use crate::e2e::{Stage, on_both_stores};
use crate::e2e_cli::{cli, cli_with_input};
use crate::program::Run;
use crate::server::{Server, StoreKind};

on_both_stores! {
    what_is_declared_appears_once_it_is_applied_and_then_there_is_no_difference,
    a_change_is_told_with_the_firings_that_vanish_appear_and_move,
    what_a_file_does_not_mention_returns_to_its_default_but_a_pause_stays,
    what_is_in_no_file_is_deleted_only_if_that_is_asked_for,
    a_bad_entry_is_told_with_its_place_and_nothing_is_changed,
    a_calendar_is_applied_before_the_schedules_that_are_on_it,
    toml_and_standard_input_declare_the_same_as_yaml,
    a_crontab_becomes_a_file_that_can_be_applied,
}

const TWO: &str = r#"
schedules:
  - name: cleanup
    cron: "*/5 * * * *"
    job: { type: cleanup, payload: { b: 1, a: 2 } }
  - name: daily-report
    cron: "0 2 * * *"
    timezone: America/New_York
    missed: { window: 6h }
    job: { type: report, tags: [money] }
"#;

/// Files to declare something in.
pub struct Files(TempDir);

impl Files {
    /// None yet.
    pub fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// A file; its path.
    pub fn write(&self, name: &str, text: &str) -> String {
        let path: PathBuf = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// Ended with this code, and said all of this on one of its streams.
#[track_caller]
pub fn assert_says(run: &Run, code: i32, parts: &[&str]) {
    assert_eq!(run.code, Some(code), "{run:?}");
    for part in parts {
        assert!(
            run.stdout.contains(part) || run.stderr.contains(part),
            "{part:?} in {}\n{}",
            run.stdout,
            run.stderr
        );
    }
}

async fn schedules(stage: &Stage) -> Vec<Value> {
    stage.api.list("/api/v1/schedules").await
}

async fn names(stage: &Stage) -> Vec<String> {
    schedules(stage).await.iter().map(|schedule| text(schedule, "name").to_owned()).collect()
}

async fn what_is_declared_appears_once_it_is_applied_and_then_there_is_no_difference(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let files = Files::new();
    let file = files.write("two.yaml", TWO);
    let diff = cli(&stage, &["diff", "-f", &file]).await;
    assert_says(
        &diff,
        1,
        &[
            "+ cleanup  new: every 5 minutes, UTC",
            "+ daily-report  new: at 02:00 every day, America/New_York",
            ": 0 → 288",
            "and 283 more appear",
            "2 to create, 0 to change, 0 to delete, 0 unchanged",
        ],
    );
    assert_eq!(diff.stderr, "", "differences are no error");
    assert_says(&cli(&stage, &["apply", "-f", &file]).await, 2, &["--yes"]);
    assert_says(&cli(&stage, &["apply", "-f", &file, "--dry-run"]).await, 0, &["2 to create"]);
    assert!(schedules(&stage).await.is_empty(), "nobody agreed to anything");

    let applied = cli(&stage, &["apply", "-f", &file, "--yes"]).await;
    assert_says(&applied, 0, &["created cleanup", "created daily-report"]);
    let stored = schedules(&stage).await;
    assert_eq!(names(&stage).await, ["cleanup", "daily-report"]);
    assert_eq!(
        (text(&stored[1], "timezone"), text(&stored[1]["missed"], "window")),
        ("America/New_York", "6h")
    );

    assert_says(
        &cli(&stage, &["diff", "-f", &file]).await,
        0,
        &["= cleanup  unchanged", "nothing to change"],
    );
    assert_says(&cli(&stage, &["apply", "-f", &file, "--yes"]).await, 0, &["nothing to change"]);
    let updated = |schedules: &[Value]| -> Vec<String> {
        schedules.iter().map(|schedule| text(schedule, "updated_at").to_owned()).collect()
    };
    assert_eq!(updated(&schedules(&stage).await), updated(&stored), "a second time changes nothing");
}

async fn a_change_is_told_with_the_firings_that_vanish_appear_and_move(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let files = Files::new();
    let file = files.write("two.yaml", TWO);
    assert_says(&cli(&stage, &["apply", "-f", &file, "--yes"]).await, 0, &[]);
    files.write("two.yaml", &TWO.replace("*/5", "*/10").replace("0 2 * * *", "30 2 * * *"));
    let diff = cli(&stage, &["diff", "-f", &file]).await;
    assert_says(
        &diff,
        1,
        &[
            "~ cleanup",
            r#"cron: "*/5 * * * *" → "*/10 * * * *""#,
            ": 288 → 144",
            "and 139 more vanish",
            r#"cron: "0 2 * * *" → "30 2 * * *""#,
            " → 02:30",
            "0 to create, 2 to change, 0 to delete, 0 unchanged",
        ],
    );
    let printed = cli(&stage, &["diff", "-f", &file, "--json"]).await;
    assert_eq!(printed.code, Some(1), "{printed:?}");
    let told: Value = serde_json::from_str(&printed.stdout).unwrap();
    assert_eq!((&told["changes"], &told["applied"]), (&json!(true), &json!(false)));
    let cleanup = &told["schedules"][0];
    assert_eq!((text(cleanup, "name"), text(cleanup, "action")), ("cleanup", "change"));
    let field = json!({"path": "cron", "before": "*/5 * * * *", "after": "*/10 * * * *"});
    assert_eq!(cleanup["fields"], json!([field]));
    assert_eq!(cleanup["firings"]["vanish"].as_array().map(Vec::len), Some(144));

    let applied = cli(&stage, &["apply", "-f", &file, "--yes", "--json"]).await;
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert_eq!(serde_json::from_str::<Value>(&applied.stdout).unwrap()["applied"], true);
    assert_eq!(text(&schedules(&stage).await[0], "cron"), "*/10 * * * *");
    assert_says(&cli(&stage, &["diff", "-f", &file]).await, 0, &["nothing to change"]);
}

async fn what_a_file_does_not_mention_returns_to_its_default_but_a_pause_stays(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let files = Files::new();
    let file = files.write("two.yaml", TWO);
    assert_says(&cli(&stage, &["apply", "-f", &file, "--yes"]).await, 0, &[]);
    let by_hand = json!({"jitter": "5m", "end_at": "2090-01-01T00:00:00Z", "overlap": "skip"});
    stage.api.patch("/api/v1/schedules/cleanup", &by_hand).await.expect(200);
    stage.api.act("/api/v1/schedules/daily-report/pause").await.expect(200);
    let diff = cli(&stage, &["diff", "-f", &file]).await;
    let parts = ["end_at: ", "→ none", r#"jitter: "300s" → "0s""#, "overlap", "= daily-report  unchanged"];
    assert_says(&diff, 1, &parts);
    assert_says(&cli(&stage, &["apply", "-f", &file, "--yes"]).await, 0, &["changed cleanup"]);
    let stored = schedules(&stage).await;
    assert_eq!((text(&stored[0], "jitter"), &stored[0]["end_at"]), ("0s", &Value::Null));
    assert_eq!(stored[1]["paused"], true);

    let resumed = TWO.replace("    timezone:", "    paused: false\n    timezone:");
    files.write("two.yaml", &resumed);
    assert_says(&cli(&stage, &["diff", "-f", &file]).await, 1, &["paused: true → false", "appear"]);
    assert_says(&cli(&stage, &["apply", "-f", &file, "--yes"]).await, 0, &["changed daily-report"]);
    assert_eq!(schedules(&stage).await[1]["paused"], false);
}

async fn what_is_in_no_file_is_deleted_only_if_that_is_asked_for(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let files = Files::new();
    let both = files.write("two.yaml", TWO);
    assert_says(&cli(&stage, &["apply", "-f", &both, "--yes"]).await, 0, &[]);
    let one = files.write("one.yaml", TWO.split("  - name: daily-report").next().unwrap());
    assert_says(&cli(&stage, &["diff", "-f", &one]).await, 0, &["nothing to change"]);
    let diff = cli(&stage, &["diff", "-f", &one, "--prune"]).await;
    assert_says(
        &diff,
        1,
        &["- daily-report  deleted", "vanish", "0 to create, 0 to change, 1 to delete, 1 unchanged"],
    );
    assert_eq!(names(&stage).await, ["cleanup", "daily-report"]);
    let applied = cli(&stage, &["apply", "-f", &one, "--prune", "--yes"]).await;
    assert_says(&applied, 0, &["deleted daily-report"]);
    assert_eq!(names(&stage).await, ["cleanup"]);
}

async fn a_bad_entry_is_told_with_its_place_and_nothing_is_changed(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let files = Files::new();
    files.write("a.yaml", TWO);
    files.write(
        "b.yaml",
        "schedules:\n\
         - { name: x, crno: '@daily', job: { type: t } }\n\
         - { name: y, cron: '60 * * * *', timezone: Berlin, job: { type: t } }\n\
         calendars:\n\
         - { name: off, days: [someday] }\n",
    );
    let directory = files.0.path().to_str().unwrap();
    for verb in [&["diff"][..], &["apply", "--yes"]] {
        let run = cli(&stage, &[verb, &["-f", directory]].concat()).await;
        assert_says(
            &run,
            2,
            &[
                r#"b.yaml: schedules[0] ("x"): /crno: unknown field"#,
                r#"b.yaml: schedules[1] ("y"): /cron: minute: 60 is out of range"#,
                r#"b.yaml: schedules[1] ("y"): /timezone: unknown time zone"#,
                r#"b.yaml: calendars[0] ("off"): /days/0: is not a date"#,
            ],
        );
    }
    let twice = files.write("c.yaml", "schedules: [{ name: cleanup, cron: '@daily', job: { type: t } }]");
    let a = format!("{directory}/a.yaml");
    let run = cli(&stage, &["diff", "-f", &a, "-f", &twice]).await;
    assert_says(
        &run,
        2,
        &["c.yaml: schedules[0] (\"cleanup\") is declared a second time", "a.yaml: schedules[0]"],
    );
    for (name, content, part) in [
        ("d.yaml", "jobs: []", "unknown section `jobs`"),
        ("e.toml", "schedules = [", "e.toml: line 1"),
        ("f.json", "{\"schedules\": [}", "f.json: not valid JSON"),
        ("g.txt", "{}", ".yaml, .yml, .toml or .json"),
    ] {
        let file = files.write(name, content);
        assert_says(&cli(&stage, &["apply", "-f", &file, "--yes"]).await, 2, &[part]);
    }
    assert!(schedules(&stage).await.is_empty());
}

async fn a_calendar_is_applied_before_the_schedules_that_are_on_it(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let files = Files::new();
    let declared = |weekdays: &str| {
        format!(
            "calendars:\n- {{ name: off, days: [2090-12-25], weekdays: [{weekdays}] }}\n\
             schedules:\n- {{ name: tick, cron: '0 * * * *', exclude: ['calendar:off'], job: {{ type: t }} }}\n"
        )
    };
    let all = "monday, tuesday, wednesday, thursday, friday, saturday, sunday";
    let file = files.write("off.yaml", &declared(""));
    let diff = cli(&stage, &["diff", "-f", &file]).await;
    assert_says(&diff, 1, &["+ calendar off  new", "+ 2090-12-25", "+ tick  new", ": 0 → 24"]);
    let applied = cli(&stage, &["apply", "-f", &file, "--yes"]).await;
    assert_says(&applied, 0, &["created calendar off\ncreated tick"]);
    assert_says(&cli(&stage, &["diff", "-f", &file]).await, 0, &["= calendar off  unchanged"]);

    files.write("off.yaml", &declared(all));
    let diff = cli(&stage, &["diff", "-f", &file]).await;
    assert_says(
        &diff,
        1,
        &["~ calendar off", "every monday", "= tick  unchanged, but on a calendar", ": 24 → 0", "vanish"],
    );
    let only_calendar = declared(all);
    let only_calendar = files.write("only.yaml", only_calendar.split("schedules:").next().unwrap());
    let diff = cli(&stage, &["diff", "-f", &only_calendar]).await;
    assert_says(&diff, 1, &["also changes firings of tick, not in these files"]);
    assert_says(&cli(&stage, &["apply", "-f", &file, "--yes"]).await, 0, &["changed calendar off"]);
    assert_says(&cli(&stage, &["diff", "-f", &file]).await, 0, &["nothing to change"]);
}

async fn toml_and_standard_input_declare_the_same_as_yaml(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let applied = cli_with_input(&stage, &["apply", "-f", "-", "--yes"], TWO).await;
    assert_says(&applied, 0, &["created cleanup", "created daily-report"]);
    let files = Files::new();
    let toml = r#"
        [[schedules]]
        name = "cleanup"
        cron = "*/5 * * * *"
        job = { type = "cleanup", payload = { a = 2, b = 1 } }

        [[schedules]]
        name = "daily-report"
        cron = "0 2 * * *"
        timezone = "America/New_York"
        missed.window = "6h"
        job = { type = "report", tags = ["money"] }
    "#;
    let file = files.write("two.toml", toml);
    assert_says(&cli(&stage, &["diff", "-f", &file]).await, 0, &["nothing to change"]);
    let bad = cli_with_input(&stage, &["diff", "-f", "-"], "schedules: [{}]").await;
    assert_says(&bad, 2, &["standard input: schedules[0]: needs a `name`"]);
}

const CRONTAB: &str = r#"# /etc/crontab: system-wide crontab
SHELL=/bin/bash
PATH="/usr/local/bin:/usr/bin:/bin"
MAILTO=ops@example.org

17 *	* * *	root    cd / && run-parts --report /etc/cron.hourly
25 6	* * *	root	test -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.daily )
CRON_TZ=Europe/Berlin
# the books, every working day
30 22 * * mon-fri backup /srv/bin/backup.sh --day $(date +\%F)
@weekly root mail -s report ann%Dear Ann,%here it is.
@reboot root /srv/bin/warm-up
61 * * * * root never
"#;

async fn a_crontab_becomes_a_file_that_can_be_applied(kind: StoreKind) {
    let stage = Stage::set(kind).await;
    let files = Files::new();
    let crontab = files.write("crontab", CRONTAB);
    let imported = cli(&stage, &["import", "crontab", &crontab, "--system"]).await;
    assert_says(
        &imported,
        1,
        &[
            "# the books, every working day\n  - name: \"backup-sh\"",
            "line 12: @reboot has no counterpart: /srv/bin/warm-up",
            "crontab:12: @reboot has no counterpart",
            "crontab:13: minute: 61 is out of range",
            "1 line could not be converted",
            r#"timezone: "Europe/Berlin""#,
            r#"backup.sh --day $(date +%F)"#,
            r#"metadata: { user: "root", mailto: "ops@example.org" }"#,
        ],
    );
    let file = files.write("imported.yaml", &imported.stdout);
    // A server that does not run commands says so, of each of them, and stores nothing.
    let refused = cli(&stage, &["apply", "-f", &file, "--yes"]).await;
    let why = "this server does not run commands; its operator can allow it with --allow-process-targets";
    assert_says(&refused, 2, &[&format!(r#"schedules[2] ("backup-sh"): /job/target/process: {why}"#)]);
    assert!(schedules(&stage).await.is_empty());

    let allowed = Server::builder(kind).arg("--allow-process-targets").start().await;
    let stage = Stage::on(allowed).await;
    assert_says(&cli(&stage, &["apply", "-f", &file, "--yes"]).await, 0, &["created backup-sh"]);
    let stored = schedules(&stage).await;
    let told: Vec<_> =
        stored.iter().map(|s| (text(s, "name"), text(s, "cron"), text(s, "timezone"))).collect();
    assert_eq!(
        told,
        [
            ("backup-sh", "30 22 * * mon-fri", "Europe/Berlin"),
            ("mail", "@weekly", "Europe/Berlin"),
            ("run-parts", "17 * * * *", "UTC"),
            ("run-parts-2", "25 6 * * *", "UTC"),
        ]
    );
    let toml = cli(&stage, &["import", "crontab", &crontab, "--system", "--format", "toml"]).await;
    let file = files.write("imported.toml", &toml.stdout);
    assert_says(&cli(&stage, &["diff", "-f", &file]).await, 0, &["nothing to change"]);
}

#[test]
fn without_a_server_the_exit_code_of_a_diff_is_3() {
    let files = Files::new();
    let file = files.write("two.yaml", TWO);
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = format!("http://{closed}");
    let run =
        crate::program::run(&mut crate::program::tickwheel(&["diff", "-f", &file, "--server", &server]));
    assert_says(&run, 3, &["cannot reach"]);
}

#[test]
fn the_layout_of_a_crontab_is_guessed_and_told() {
    let import = |input: &str, args: &[&str]| {
        let mut command = crate::program::tickwheel(&[&["import", "crontab", "-"], args].concat());
        crate::program::run_with_input(&mut command, input)
    };
    let system = import("@daily root run\n", &[]);
    assert_says(&system, 0, &["read as a system crontab", r#"user: "root""#, "are taken as UTC"]);
    let user = import("@daily run\n", &["--timezone", "europe/rome"]);
    assert_says(&user, 0, &["read as the crontab of a user", r#"timezone: "Europe/Rome""#]);
    assert!(!user.stderr.contains("UTC"), "{user:?}");
    let forced = import("@daily root run\n", &["--user"]);
    assert_says(&forced, 0, &[r#""root run""#]);
    assert!(!forced.stderr.contains("crontab"), "{forced:?}");
    assert_says(&import("@daily run\n", &["--timezone", "Rome"]), 2, &["--timezone: unknown time zone"]);
}
