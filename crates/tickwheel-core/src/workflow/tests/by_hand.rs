//! What people do to a run.

use super::*;

fn chain() -> Stage {
    Stage::new(spec(vec![task("a", &[]), task("b", &["a"]), task("c", &["b"])]))
}

fn command(stage: &Stage, command: RunCommand) -> Result<Vec<String>, CommandRejected> {
    let step = apply_command(&stage.context(), &stage.tasks, &command)?;
    Ok(step.map(|step| stage.described(&step.changes)).unwrap_or_default())
}

#[test]
fn cancelling_ends_everything_at_once_and_once_only() {
    let mut stage = chain();
    stage.put("a", State::Running);
    assert_eq!(
        command(&stage, RunCommand::Cancel),
        Ok(vec!["a: stopped".into(), "b: cancelled".into(), "c: cancelled".into()])
    );
    stage.run.progress.cancel_requested = true;
    assert_eq!(command(&stage, RunCommand::Cancel), Ok(vec![]));
    stage.run.progress.status = RunStatus::Completed;
    assert_eq!(command(&stage, RunCommand::Cancel), Err(CommandRejected::Over(RunStatus::Completed)));
}

#[test]
fn a_retry_retries_what_ended_badly_and_nothing_else() {
    let mut stage = chain();
    stage.put_all(&[("a", State::Completed), ("b", State::Failed), ("c", State::Blocked)]);
    stage.run.progress.status = RunStatus::Failed;
    let step =
        apply_command(&stage.context(), &stage.tasks, &RunCommand::Retry).expect("fine").expect("a step");
    assert_eq!(stage.described(&step.changes), ["b: retried"]);
    assert_eq!(step.progress.map(|progress| progress.status), Some(RunStatus::Running));
    assert_eq!(step.reconcile_requests, [ReconcileRequest::id_of_run(stage.run.id)]);
    stage.put("b", State::Completed);
    assert_eq!(command(&stage, RunCommand::Retry), Err(CommandRejected::NothingToRetry));
}

#[test]
fn a_failed_task_can_be_passed_over_or_declared_done_but_a_running_one_not() {
    let mut stage = chain();
    stage.put_all(&[("a", State::Completed), ("b", State::Failed), ("c", State::Blocked)]);
    assert_eq!(
        command(&stage, RunCommand::Skip("b".into())),
        Ok(vec!["b: retried".into(), "b: skipped".into()])
    );
    let done = RunCommand::Complete("b".into(), Some(JsonText::from_checked("7")));
    assert_eq!(command(&stage, done), Ok(vec!["b: retried".into(), "b: completed".into()]));
    stage.put("b", State::Running);
    let refused = command(&stage, RunCommand::Skip("b".into())).expect_err("it runs");
    assert_eq!(refused.to_string(), "task b is running and cannot be skipped");
    assert_eq!(command(&stage, RunCommand::Skip("z".into())), Err(CommandRejected::UnknownTask("z".into())));
}

#[test]
fn a_task_skipped_by_hand_counts_as_done_and_one_skipped_by_itself_does_not() {
    let mut stage = chain();
    stage.put_all(&[("a", State::Completed), ("b", State::Skipped)]);
    stage.tasks[1].error = Some(TaskError::of("condition_false", "", 0));
    assert_eq!(stage.changes(), ["c: skipped"]);
    stage.tasks[1].error = Some(TaskError::of("skipped_by_hand", "", 0));
    assert_eq!(stage.ready(), ["c"]);
}

#[test]
fn a_skipped_task_that_is_run_again_takes_those_along_that_failed_without_it() {
    let mut stage = chain();
    stage.put_all(&[("a", State::Skipped), ("b", State::Failed), ("c", State::Blocked)]);
    let retry = || RunCommand::RetryTask("a".into());
    assert_eq!(command(&stage, retry()), Ok(vec!["a: retried".into(), "b: restarted".into()]));
    stage.put_all(&[("b", State::Completed), ("c", State::Failed)]);
    assert_eq!(command(&stage, retry()), Ok(vec!["a: retried".into(), "c: restarted".into()]));
    stage.put_all(&[("a", State::Failed), ("c", State::Blocked)]);
    assert_eq!(command(&stage, retry()), Ok(vec!["a: retried".into()]));
}

fn progress_after(stage: &Stage, command: &RunCommand) -> Result<Option<RunProgress>, CommandRejected> {
    Ok(apply_command(&stage.context(), &stage.tasks, command)?.and_then(|step| step.progress))
}

#[test]
fn a_run_is_paused_and_resumed_once_and_only_while_it_is_not_over() {
    let mut stage = chain();
    let paused = progress_after(&stage, &RunCommand::Pause).expect("it runs").expect("a step");
    assert_eq!((paused.status, paused.paused_at), (RunStatus::Paused, Some(NOW)));
    assert_eq!(progress_after(&stage, &RunCommand::Resume), Ok(None), "it is not paused");
    let running = std::mem::replace(&mut stage.run.progress, paused);
    assert_eq!(progress_after(&stage, &RunCommand::Pause), Ok(None), "it is paused already");
    assert_eq!(progress_after(&stage, &RunCommand::Resume), Ok(Some(running)));
    for over in [RunStatus::Completed, RunStatus::Failed, RunStatus::Cancelled] {
        stage.run.progress.status = over;
        for command in [RunCommand::Pause, RunCommand::Resume] {
            assert_eq!(progress_after(&stage, &command), Err(CommandRejected::Over(over)));
        }
    }
    stage.run.progress = RunProgress { cancel_requested: true, ..running };
    assert_eq!(progress_after(&stage, &RunCommand::Pause), Err(CommandRejected::Ending));
    assert_eq!(room_to_pause(PAUSED_RUNS_MAX - 1), Ok(()));
    assert_eq!(room_to_pause(PAUSED_RUNS_MAX), Err(CommandRejected::TooManyPaused));
}

#[test]
fn only_the_step_that_pauses_a_run_says_so() {
    let mut stage = chain();
    let step =
        apply_command(&stage.context(), &stage.tasks, &RunCommand::Pause).expect("fine").expect("a step");
    assert!(step.pauses());
    stage.run.progress = step.progress.expect("it changes");
    stage.run.progress.paused_at = Some(NOW - std::time::Duration::from_secs(1));
    stage.put_all(&[("a", State::Failed)]);
    let step =
        apply_command(&stage.context(), &stage.tasks, &RunCommand::Retry).expect("fine").expect("a step");
    assert_eq!(step.progress.map(|progress| progress.status), Some(RunStatus::Paused));
    assert!(!step.pauses());
}

#[test]
fn what_is_done_to_a_paused_run_leaves_it_paused_unless_it_is_to_end() {
    let mut stage = chain();
    stage.run.progress = progress_after(&stage, &RunCommand::Pause).expect("it runs").expect("a step");
    stage.put_all(&[("a", State::Failed), ("b", State::Blocked)]);
    for command in [RunCommand::Retry, RunCommand::RetryTask("a".into()), RunCommand::Skip("a".into())] {
        let after = progress_after(&stage, &command).expect("fine").expect("progress");
        assert_eq!(after.status, RunStatus::Paused, "{command:?}");
    }
    let ending = progress_after(&stage, &RunCommand::Cancel).expect("fine").expect("progress");
    assert!(ending.cancel_requested && ending.paused_at.is_none() && ending.status != RunStatus::Paused);
}

#[test]
fn a_paused_run_goes_on_being_decided_about_and_may_end() {
    let mut stage = chain();
    stage.run.progress = progress_after(&stage, &RunCommand::Pause).expect("it runs").expect("a step");
    stage.put_all(&[("a", State::Failed)]);
    assert_eq!(stage.changes(), ["b: blocked", "c: blocked"]);
    stage.put_all(&[("a", State::Completed), ("b", State::Completed), ("c", State::Completed)]);
    let found = stage.review();
    let step = step_of_review(&stage.context(), &stage.tasks, &found, &ParentResults::default());
    let after = step.progress.expect("it is over");
    assert_eq!((after.status, after.paused_at), (RunStatus::Completed, None));
}
