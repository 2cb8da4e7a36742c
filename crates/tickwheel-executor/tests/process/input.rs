//! What a command sees: its input, its environment, its directory, its user.

use tickwheel_core::JsonText;
use tickwheel_core::job::{ProcessTarget, Stdin};
use tickwheel_core::payload::Document;
use tickwheel_core::ports::{AttemptContext, Executor as _};
use tickwheel_core::settle::Outcome;
use tickwheel_executor::executor::{Account, ProcessExecutor, ProcessExecutorOptions};

use crate::fixture::{JOB_ID, attempt, command, executor, options, printed, shell};

async fn read_by(script: &str, stdin: Stdin, payload: Document) -> String {
    let target = ProcessTarget { stdin, ..shell(script) };
    let attempt = AttemptContext { payload, ..attempt(target) };
    match executor().run(&attempt).await {
        Outcome::Completed { result: Some(result) } => serde_json::from_str(result.as_str()).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn json(text: &str) -> Document {
    Document::Whole(JsonText::from_checked(text))
}

#[tokio::test]
async fn the_payload_is_its_input() {
    let bytes = |text: &str| read_by("printf '<%s>' \"$(cat)\"", Stdin::Payload, json(text));
    assert_eq!(bytes(r#"{"a": [1, "é"]}"#).await, r#"<{"a": [1, "é"]}>"#);
    assert_eq!(bytes("null").await, "<>");
    let pieces = Document::Pieces(vec!["{\"a\":".into(), "[1]".into(), "}".into()]);
    assert_eq!(read_by("printf '<%s>' \"$(cat)\"", Stdin::Payload, pieces).await, "<{\"a\":[1]}>");
}

#[tokio::test]
async fn a_text_is_read_as_it_is() {
    let script = "printf '<%s>' \"$(cat)\"";
    assert_eq!(read_by(script, Stdin::Text, json(r#""one\ntwo \"x\"""#)).await, "<one\ntwo \"x\">");
    assert_eq!(read_by(script, Stdin::Text, json("[1]")).await, "<[1]>");
    assert_eq!(read_by(script, Stdin::None, json("[1]")).await, "<>");
}

#[tokio::test]
async fn input_that_nobody_reads_keeps_nobody_waiting() {
    let large = format!("\"{}\"", "x".repeat(8 << 20));
    let done = AttemptContext { payload: json(&large), ..attempt(shell("exit 0")) };
    assert_eq!(executor().run(&done).await, Outcome::Completed { result: None });
    assert_eq!(
        read_by("printf '<%s>' $(wc -c)", Stdin::Payload, json(&large)).await,
        format!("<{}>", large.len())
    );
}

#[tokio::test]
async fn it_is_told_about_the_attempt_and_gets_little_else() {
    let env = vec![("A".to_owned(), "x y\nz".to_owned()), ("HOME".to_owned(), "/elsewhere".to_owned())];
    let printed = printed(ProcessTarget { env, ..shell("env | sort; printf '<%s>' \"$A\"") }).await;
    for line in [
        format!("TICKWHEEL_JOB_ID={JOB_ID}"),
        format!("TICKWHEEL_IDEMPOTENCY_KEY={JOB_ID}"),
        "TICKWHEEL_ATTEMPT=3".into(),
        "TICKWHEEL_FENCING_TOKEN=3".into(),
        "TICKWHEEL_TOKEN=opaque-token".into(),
        "TICKWHEEL_DEADLINE=2026-12-01T15:00:30.000Z".into(),
        "TICKWHEEL_SCHEDULED_FOR=2026-12-01T15:00:00.000Z".into(),
        "TICKWHEEL_JOB_TYPE=back up".into(),
        "TICKWHEEL_TRACEPARENT=00-01990000000070008000000000000001-8000000000000002-01".into(),
        "HOME=/elsewhere".into(),
    ] {
        assert!(printed.lines().any(|printed| printed == line), "{line} is missing in\n{printed}");
    }
    assert!(printed.ends_with("<x y\nz>"), "{printed}");
    assert!(!printed.contains("CARGO"), "that is the server's own:\n{printed}");
}

#[tokio::test]
async fn it_runs_where_the_job_says_or_at_home() {
    let there = ProcessTarget { cwd: Some("/usr".into()), ..command(&["pwd"]) };
    assert_eq!(printed(there).await, "/usr");
    let home = std::env::var("HOME").unwrap();
    assert_eq!(printed(shell("pwd; echo \"$HOME\"")).await, format!("{home}\n{home}"));
}

#[tokio::test]
async fn it_is_called_what_the_job_calls_it_and_leads_a_group_of_its_own() {
    let target = shell("tr '\\0' ' ' < /proc/$$/cmdline; echo; cut -d' ' -f1,5 /proc/$$/stat");
    let printed = printed(target).await;
    let (called, numbers) = printed.split_once('\n').unwrap();
    assert!(called.starts_with("/bin/sh -c tr"), "{called}");
    let (pid, group) = numbers.split_once(' ').unwrap();
    assert_eq!(pid, group);
}

#[tokio::test]
async fn no_file_of_the_server_is_open_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("the-servers-own").display().to_string();
    let _open = std::fs::File::create(&name).unwrap();
    let printed = printed(shell("ls -l /proc/$$/fd | sed 's/.* -> /open: /'")).await;
    assert!(printed.contains("open: pipe:") && !printed.contains("the-servers-own"), "{printed}");
    assert!(!printed.contains("socket:"), "the link to the supervisor is none of its business:\n{printed}");
}

/// Only root may become somebody else. Elsewhere the account is one's own, and nothing changes.
#[tokio::test]
async fn it_runs_as_the_user_that_the_operator_names() {
    let account = if Account::own_is_root() { Account::find("nobody").unwrap() } else { Account::own() };
    let executor =
        ProcessExecutor::new(ProcessExecutorOptions { account: Some(account.clone()), ..options() });
    let payload = json(r#""from the payload""#);
    let script = "id -u; id -G; echo \"$HOME\"; cat /dev/stdin; echo";
    let target = ProcessTarget { stdin: Stdin::Text, ..shell(script) };
    let outcome = executor.run(&AttemptContext { payload, ..attempt(target) }).await;
    let Outcome::Completed { result: Some(result) } = outcome else { panic!("{outcome:?}") };
    let printed: String = serde_json::from_str(result.as_str()).unwrap();
    let lines: Vec<&str> = printed.lines().collect();
    if Account::own_is_root() {
        assert_eq!((lines[0], lines[1]), ("65534", "65534"), "{printed}");
        let denied = executor.run(&attempt(shell("cat /etc/shadow"))).await;
        assert!(matches!(denied, Outcome::Failed { .. }), "{denied:?}");
    }
    assert_eq!(lines[3], "from the payload");
}
