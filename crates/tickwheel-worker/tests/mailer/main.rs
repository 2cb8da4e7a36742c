//! The example and the guide about it: the handler does what the guide says, and the guide shows the example's code.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../examples/mailer/contract.rs"]
mod contract;
#[path = "../../examples/mailer/handler.rs"]
mod handler;

use contract::{Receipt, SendEmail};
use handler::{Mailer, deliver};
use tickwheel_worker::{ReportedOutcome, testing};

fn email(to: &str) -> SendEmail {
    SendEmail { to: to.into(), subject: "Hi".into() }
}

fn mailer() -> Mailer {
    Mailer { from: "news@example.com".into() }
}

#[tokio::test]
async fn an_email_is_sent() {
    let ran = testing::run(deliver, email("a@example.com"), mailer()).attempt(2).await;
    assert_eq!(ran.outcome.status, ReportedOutcome::Completed);
    assert!(ran.outcome.result_as::<Receipt>().unwrap().message_id.ends_with("@example.com>"));
    assert_eq!(ran.progress, Some(10.0));
}

#[tokio::test]
async fn a_bad_address_is_not_retried() {
    let ran = testing::run(deliver, email("nobody"), mailer()).await;
    assert_eq!((ran.outcome.status, ran.outcome.retryable), (ReportedOutcome::Failed, false));
    assert_eq!(ran.outcome.error.unwrap().code.as_deref(), Some("bad_address"));
}

/// Every block of Rust in the guide is part of a file that is compiled.
#[test]
fn the_guide_shows_the_code_of_the_example() {
    let files = [
        include_str!("../../examples/mailer/contract.rs"),
        include_str!("../../examples/mailer/handler.rs"),
        include_str!("../../examples/mailer/submit.rs"),
        include_str!("../../examples/mailer/main.rs"),
        include_str!("main.rs"),
    ];
    let guide = include_str!("../../../../docs/guide/workers-rust.md");
    let blocks: Vec<&str> =
        guide.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 5, "the guide shows the example");
    for block in blocks {
        assert!(files.iter().any(|file| file.contains(block)), "not in the example:\n{block}");
    }
}
