//! What people do to a run.

use super::*;

fn chain() -> Stage {
    Stage::new(spec(vec![task("a", &[]), task("b", &["a"]), task("c", &["b"])]))
}

fn wish(stage: &Stage, wish: Wish) -> Result<Vec<String>, HandRefused> {
    let step = fulfil(&stage.around(), &stage.tasks, &wish)?;
    Ok(step.map(|step| stage.described(&step.changes)).unwrap_or_default())
}

#[test]
fn cancelling_ends_everything_at_once_and_once_only() {
    let mut stage = chain();
    stage.put("a", State::Running);
    assert_eq!(
        wish(&stage, Wish::Cancel),
        Ok(vec!["a: stopped".into(), "b: cancelled".into(), "c: cancelled".into()])
    );
    stage.run.progress.cancel_requested = true;
    assert_eq!(wish(&stage, Wish::Cancel), Ok(vec![]));
    stage.run.progress.status = RunStatus::Completed;
    assert_eq!(wish(&stage, Wish::Cancel), Err(HandRefused::Over(RunStatus::Completed)));
}

#[test]
fn a_retry_revives_what_ended_badly_and_nothing_else() {
    let mut stage = chain();
    stage.put_all(&[("a", State::Completed), ("b", State::Failed), ("c", State::Blocked)]);
    stage.run.progress.status = RunStatus::Failed;
    let step = fulfil(&stage.around(), &stage.tasks, &Wish::Retry).expect("fine").expect("a step");
    assert_eq!(stage.described(&step.changes), ["b: revived"]);
    assert_eq!(step.progress.map(|progress| progress.status), Some(RunStatus::Running));
    assert_eq!(step.looks, [Look::place_of(stage.run.id)]);
    stage.put("b", State::Completed);
    assert_eq!(wish(&stage, Wish::Retry), Err(HandRefused::NothingToRetry));
}

#[test]
fn a_failed_task_can_be_passed_over_or_declared_done_but_a_running_one_not() {
    let mut stage = chain();
    stage.put_all(&[("a", State::Completed), ("b", State::Failed), ("c", State::Blocked)]);
    assert_eq!(wish(&stage, Wish::Skip("b".into())), Ok(vec!["b: revived".into(), "b: skipped".into()]));
    let done = Wish::Complete("b".into(), Some(JsonText::from_checked("7")));
    assert_eq!(wish(&stage, done), Ok(vec!["b: revived".into(), "b: completed".into()]));
    stage.put("b", State::Running);
    let refused = wish(&stage, Wish::Skip("b".into())).expect_err("it runs");
    assert_eq!(refused.to_string(), "task b is running and cannot be skipped");
    assert_eq!(wish(&stage, Wish::Skip("z".into())), Err(HandRefused::UnknownTask("z".into())));
}

#[test]
fn a_task_skipped_by_hand_counts_as_done_and_one_skipped_by_itself_does_not() {
    let mut stage = chain();
    stage.put_all(&[("a", State::Completed), ("b", State::Skipped)]);
    stage.tasks[1].error = Some(Failure::new("condition_false", ""));
    assert_eq!(stage.changes(), ["c: skipped"]);
    stage.tasks[1].error = Some(Failure::new("skipped_by_hand", ""));
    assert_eq!(stage.ready(), ["c"]);
}

#[test]
fn a_skipped_task_that_is_run_again_takes_those_along_that_failed_without_it() {
    let mut stage = chain();
    stage.put_all(&[("a", State::Skipped), ("b", State::Failed), ("c", State::Blocked)]);
    let retry = || Wish::RetryTask("a".into());
    assert_eq!(wish(&stage, retry()), Ok(vec!["a: revived".into(), "b: restarted".into()]));
    stage.put_all(&[("b", State::Completed), ("c", State::Failed)]);
    assert_eq!(wish(&stage, retry()), Ok(vec!["a: revived".into(), "c: restarted".into()]));
    stage.put_all(&[("a", State::Failed), ("c", State::Blocked)]);
    assert_eq!(wish(&stage, retry()), Ok(vec!["a: revived".into()]));
}
