//! What a poll finds, what is given back, and what a worker hears of.

use std::time::Duration;

use tickwheel_core::payload::Document;
use tickwheel_core::worker::WorkerProfile;
use tickwheel_core::{JobSpec, JsonText, Target};
use tickwheel_testkit::fixtures::{at, job_numbered, session_id};

use super::*;
use crate::loops::planner;

const LEASE: Duration = Duration::from_secs(15);
const PLENTY: usize = 1 << 20;

fn session(number: u64) -> WorkerSession {
    let profile = WorkerProfile {
        name: "w".into(),
        queues: vec!["default".into()],
        types: vec!["t".into()],
        executors: Vec::new(),
        labels: tickwheel_core::matching::Labels::new(),
        capacity: 10,
        lease_ms: u64::try_from(LEASE.as_millis()).unwrap(),
        library: None,
        host: None,
        pid: None,
    };
    WorkerSession {
        id: session_id(number),
        profile: Arc::new(profile),
        opened_at: at(0),
        expires_at: at(15_000),
        draining: false,
    }
}

fn context(number: u64, payload: &str) -> AttemptContext {
    let mut job = job_numbered(number).build();
    job.spec = Arc::new(JobSpec::new(Target::Worker));
    job.attempt = 1;
    AttemptContext {
        job: Box::new(job),
        payload: Document::Whole(JsonText::from_checked(payload)),
        token: "token".into(),
        deadline: at(300_000),
    }
}

fn refs(contexts: &[AttemptContext]) -> Vec<AttemptRef> {
    contexts.iter().map(|context| attempt_of(&context.job)).collect()
}

struct Bench {
    board: WorkerBoard,
    id: SessionId,
    _inbox: tokio::sync::mpsc::Receiver<planner::Message>,
}

async fn bench() -> Bench {
    let (_, planner, inbox) = planner::channel([].into());
    let board = WorkerBoard::new(planner);
    board.open(session(1), Vec::new()).await;
    Bench { board, id: session_id(1), _inbox: inbox }
}

impl Bench {
    fn poll(&self, seq: Option<u64>) -> u64 {
        let demand = Demand { jobs_max: 5, ..Demand::default() };
        match self.board.begin_poll(self.id, seq, demand, at(0)) {
            Some(PollStart::Waits { number, .. }) => number,
            _ => panic!("it waits"),
        }
    }

    fn deliver(&self, jobs: Vec<AttemptContext>) -> usize {
        self.board.deliver(self.id, jobs, PLENTY).len()
    }
}

#[tokio::test]
async fn a_poll_that_waits_is_answered_with_what_is_delivered() {
    let bench = bench().await;
    let number = bench.poll(Some(1));
    assert!(matches!(bench.board.look(bench.id, number), Found::Nothing));
    assert_eq!(bench.deliver(vec![context(1, "1"), context(2, "2")]), 0);
    assert!(matches!(bench.board.look(bench.id, number), Found::Jobs(jobs) if jobs.len() == 2));
    assert_eq!(bench.board.count_held(bench.id), 2);
    assert!(bench.board.has(context(1, "1").job.id));
}

#[tokio::test]
async fn what_nobody_waits_for_comes_back() {
    let bench = bench().await;
    assert_eq!(bench.deliver(vec![context(1, "1")]), 1);
    let number = bench.poll(Some(1));
    assert!(bench.board.end_poll(bench.id, number));
    assert!(!bench.board.end_poll(bench.id, number), "it has ended already");
    assert_eq!(bench.deliver(vec![context(1, "1")]), 1);
    assert_eq!(bench.board.count_held(bench.id), 0);
}

#[tokio::test]
async fn the_same_poll_again_is_answered_with_the_same_jobs() {
    let bench = bench().await;
    bench.poll(Some(1));
    bench.deliver(vec![context(1, "1"), context(2, "2")]);
    let again = |seq| bench.board.begin_poll(bench.id, Some(seq), Demand::default(), at(0));
    assert!(matches!(again(1), Some(PollStart::Again(jobs)) if jobs.len() == 2));
    // One of them was settled meanwhile: it is not the worker's own any more.
    bench.board.settled(refs(&[context(1, "1")]).into_iter());
    assert!(matches!(again(1), Some(PollStart::Again(jobs)) if jobs.len() == 1));
    assert!(matches!(again(2), Some(PollStart::Waits { .. })), "a higher number says that it arrived");
    assert!(matches!(again(1), Some(PollStart::Waits { .. })), "and then it is not kept any longer");
}

#[tokio::test]
async fn a_poll_without_room_is_given_nothing() {
    let bench = bench().await;
    bench.poll(None);
    let full = Demand::default();
    assert!(matches!(bench.board.begin_poll(bench.id, None, full, at(0)), Some(PollStart::Waits { .. })));
    assert_eq!(bench.deliver(vec![context(1, "1")]), 1, "it was claimed for the poll before");
    let one = Demand { jobs_max: 1, ..Demand::default() };
    bench.board.begin_poll(bench.id, None, one, at(0));
    assert_eq!(bench.deliver(vec![context(1, "1"), context(2, "2")]), 1);
}

#[tokio::test]
async fn a_second_poll_ends_the_first() {
    let bench = bench().await;
    let first = bench.poll(None);
    let second = bench.poll(None);
    assert!(matches!(bench.board.look(bench.id, first), Found::Replaced));
    assert!(matches!(bench.board.look(bench.id, second), Found::Nothing));
    assert!(!bench.board.end_poll(bench.id, first), "it has nothing to withdraw");
}

#[tokio::test]
async fn what_does_not_fit_comes_back_and_less_is_asked_for_next_time() {
    let bench = bench().await;
    bench.poll(None);
    let large = "1".repeat(100);
    let jobs = (1..=5).map(|number| context(number, &large)).collect();
    assert_eq!(bench.board.deliver(bench.id, jobs, 250).len(), 3);
    let demand = Demand { jobs_max: 5, ..Demand::default() };
    let next = bench.board.begin_poll(bench.id, None, demand, at(0));
    assert!(matches!(next, Some(PollStart::Waits { demand, .. }) if demand.jobs_max == 2));
    // One that is too large alone is given all the same.
    assert_eq!(bench.board.deliver(bench.id, vec![context(9, &large)], 10).len(), 0);
}

#[tokio::test]
async fn a_cancel_reaches_the_poll_once_and_the_heartbeat_always() {
    let bench = bench().await;
    bench.poll(None);
    bench.deliver(vec![context(1, "1")]);
    let number = bench.poll(None);
    bench.board.stop(context(1, "1").job.id);
    assert!(matches!(bench.board.look(bench.id, number), Found::News));
    assert_eq!(bench.board.take_news(bench.id).cancel, refs(&[context(1, "1")]));
    let next = bench.poll(None);
    assert!(matches!(bench.board.look(bench.id, next), Found::Nothing), "it was told");
    assert_eq!(bench.board.take_news(bench.id).cancel.len(), 1, "whoever asks hears it again");
}

#[tokio::test]
async fn a_worker_hears_of_what_was_taken_from_it_but_not_of_what_it_reported() {
    let bench = bench().await;
    bench.poll(None);
    bench.deliver(vec![context(1, "1"), context(2, "2")]);
    let [taken, reported] = refs(&[context(1, "1"), context(2, "2")])[..] else { panic!("two") };
    bench.board.reported(reported);
    bench.board.settled([taken, reported].into_iter());
    assert_eq!(bench.board.take_news(bench.id).lost, [taken]);
    assert_eq!(bench.board.count_held(bench.id), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_never_arrives_is_given_up_when_its_worker_is_heard_of_a_lease_later() {
    let bench = bench().await;
    bench.poll(Some(1));
    bench.deliver(vec![context(1, "1")]);
    tokio::time::advance(LEASE - Duration::from_millis(1)).await;
    bench.board.heard(&session(1), at(0));
    assert!(bench.board.take_never_arrived().is_empty());
    tokio::time::advance(Duration::from_millis(1)).await;
    bench.board.heard(&session(1), at(0));
    assert_eq!(bench.board.take_never_arrived(), refs(&[context(1, "1")]));
    assert!(bench.board.take_never_arrived().is_empty(), "it is said once");
}

/// Otherwise it would depend on who looks first whether a job that kills its worker counts as lost.
#[tokio::test(start_paused = true)]
async fn the_unread_answer_of_a_silent_worker_is_left_to_the_end_of_its_session() {
    let bench = bench().await;
    bench.poll(Some(1));
    bench.deliver(vec![context(1, "1")]);
    tokio::time::advance(LEASE / 3).await;
    bench.board.heard(&session(1), at(0));
    tokio::time::advance(2 * LEASE).await;
    assert!(bench.board.take_never_arrived().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_given_again_has_another_lease_to_arrive() {
    let bench = bench().await;
    bench.poll(Some(1));
    bench.deliver(vec![context(1, "1")]);
    tokio::time::advance(LEASE).await;
    bench.board.begin_poll(bench.id, Some(1), Demand::default(), at(0));
    bench.board.heard(&session(1), at(0));
    assert!(bench.board.take_never_arrived().is_empty());
    tokio::time::advance(LEASE).await;
    bench.board.heard(&session(1), at(0));
    assert_eq!(bench.board.take_never_arrived().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_whose_jobs_are_mentioned_has_arrived() {
    let bench = bench().await;
    bench.poll(Some(1));
    bench.deliver(vec![context(1, "1")]);
    bench.board.mentioned(bench.id, refs(&[context(1, "1")]).iter());
    tokio::time::advance(2 * LEASE).await;
    bench.board.heard(&session(1), at(0));
    assert!(bench.board.take_never_arrived().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_was_just_handed_out_is_not_missing_yet() {
    let bench = bench().await;
    bench.poll(None);
    bench.deliver(vec![context(1, "1")]);
    let attempts = refs(&[context(1, "1")]);
    assert!(bench.board.handed_out_long_ago(bench.id, &attempts).is_empty());
    tokio::time::advance(LEASE / 3).await;
    assert_eq!(bench.board.handed_out_long_ago(bench.id, &attempts), attempts);
}

#[tokio::test]
async fn a_draining_worker_is_told_and_asks_for_nothing() {
    let bench = bench().await;
    let number = bench.poll(None);
    bench.board.set_draining(bench.id, true).await;
    assert!(matches!(bench.board.look(bench.id, number), Found::News));
    assert!(bench.board.take_news(bench.id).drain);
    let demand = Demand { jobs_max: 5, ..Demand::default() };
    let next = bench.board.begin_poll(bench.id, None, demand, at(0));
    assert!(matches!(next, Some(PollStart::Waits { demand, .. }) if demand.jobs_max == 0));
}

#[tokio::test]
async fn a_session_that_ends_takes_its_poll_and_its_attempts_with_it() {
    let bench = bench().await;
    bench.poll(None);
    bench.deliver(vec![context(1, "1")]);
    let number = bench.poll(None);
    bench.board.close(bench.id).await;
    assert!(matches!(bench.board.look(bench.id, number), Found::Gone));
    assert!(!bench.board.has(context(1, "1").job.id) && !bench.board.knows(bench.id));
}
