//! Each kind of change reaches exactly those who should hear of it.

pub mod listening;

use tickwheel_core::job::WorkflowTarget;
use tickwheel_core::machine::Event;
use tickwheel_core::ports::{Controls, DueJob, DueSchedule};
use tickwheel_core::{Job, Partition, Target};
use tickwheel_testkit::fixtures::{at, job_numbered, run_numbered, schedule_id, schedule_numbered};

use self::listening::{Heard, listening, shown};
use super::*;
use crate::loops::schedule_runner::Message;

/// A job that is run here.
fn job(number: u64) -> Job {
    job_numbered(number).build()
}

/// A job that nobody runs here.
fn foreign_job(number: u64) -> Job {
    let target = Target::Workflow(WorkflowTarget { name: "etl".into() });
    job_numbered(number).target(target).build()
}

fn ended(number: u64) -> Job {
    job_numbered(number).state(State::Cancelled).with(|job| job.schedule_id = Some(schedule_id(7))).build()
}

fn learned(jobs: &[&Job]) -> Vec<String> {
    shown([Event::Learned(jobs.iter().map(|job| DueJob::from(*job)).collect())])
}

/// What is heard while clients wait for the end of `jobs`.
async fn heard(jobs: &[JobId], announce: impl AsyncFnOnce(Announcer)) -> Heard {
    let (announcer, mut listening) = listening();
    listening.wait_for(jobs.iter().copied());
    announce(announcer).await;
    listening.heard()
}

#[tokio::test]
async fn the_planner_hears_of_new_jobs_that_are_run_here() {
    let (ours, foreign) = (job(1), foreign_job(2));
    let all = [Scheduled::from(&foreign), Scheduled::from(&ours)];
    let after = heard(&[ours.id], async |announcer| announcer.jobs_scheduled(all).await).await;
    assert_eq!(after, Heard { planner: learned(&[&ours]), ..Heard::default() });
    let none = [Scheduled::from(&foreign)];
    assert_eq!(heard(&[], async |announcer| announcer.jobs_scheduled(none).await).await, Heard::default());
}

#[tokio::test]
async fn a_job_that_waits_after_a_change_is_learned_and_any_other_is_forgotten() {
    let waiting = job(1);
    let after = heard(&[waiting.id], async |announcer| announcer.job_changed(&waiting).await).await;
    assert_eq!(after, Heard { planner: learned(&[&waiting]), ..Heard::default() });
    let pending = job_numbered(1).state(State::Pending).build();
    let after = heard(&[pending.id], async |announcer| announcer.job_changed(&pending).await).await;
    assert_eq!(after, Heard { planner: shown([Event::Forgotten(pending.id)]), ..Heard::default() });
}

#[tokio::test]
async fn a_job_that_a_change_ended_is_heard_of_by_its_schedule_its_clients_and_the_callbacks() {
    let (over, other) = (ended(1), job(2));
    let after = heard(&[over.id, other.id], async |announcer| announcer.job_changed(&over).await).await;
    let expected = Heard {
        planner: shown([Event::Forgotten(over.id)]),
        schedule_timer: vec![Message::JobEnded(schedule_id(7))],
        clients: vec![over.id],
        callbacks: true,
        reconciler: false,
    };
    assert_eq!(after, expected);
}

#[tokio::test]
async fn the_reconciler_hears_of_a_task_that_was_changed() {
    let task = run_numbered(1).task([]).build().jobs.remove(0);
    let after = heard(&[task.id], async |announcer| announcer.job_changed(&task).await).await;
    assert_eq!(after, Heard { planner: learned(&[&task]), reconciler: true, ..Heard::default() });
}

#[tokio::test]
async fn everybody_may_have_to_hear_of_ends_of_attempts() {
    let (retried, foreign, over) = (job(1), foreign_job(2), ended(3));
    let settled = JobsSettled {
        of_workers: Vec::new(),
        scheduled: vec![Scheduled::from(&retried), Scheduled::from(&foreign)],
        ended: std::iter::once(EndedJob::from(&over)),
        callbacks_written: true,
        reconcile_requested: true,
    };
    let clients = [retried.id, foreign.id, over.id];
    let after = heard(&clients, async |announcer| announcer.jobs_settled(settled).await).await;
    let expected = Heard {
        planner: learned(&[&retried]),
        schedule_timer: vec![Message::JobEnded(schedule_id(7))],
        clients: vec![over.id],
        callbacks: true,
        reconciler: true,
    };
    assert_eq!(after, expected);
}

#[tokio::test]
async fn ends_of_attempts_wake_only_those_who_have_something_to_do() {
    let over = job(1);
    let settled = JobsSettled {
        of_workers: Vec::new(),
        scheduled: Vec::new(),
        ended: std::iter::once(EndedJob::from(&over)),
        callbacks_written: false,
        reconcile_requested: false,
    };
    let after = heard(&[over.id], async |announcer| announcer.jobs_settled(settled).await).await;
    assert_eq!(after, Heard { clients: vec![over.id], ..Heard::default() });
}

#[tokio::test]
async fn clients_hear_of_what_another_process_ended() {
    let clients = [job(1).id, job(2).id];
    let after = heard(&clients, async |announcer| announcer.jobs_ended_elsewhere([clients[1]])).await;
    assert_eq!(after, Heard { clients: vec![clients[1]], ..Heard::default() });
}

#[tokio::test]
async fn the_planner_and_the_reconciler_hear_of_a_new_run() {
    let start = run_numbered(1).task([]).task([1]).build();
    for callbacks in [false, true] {
        let waiting = start.jobs.iter().filter_map(scheduled);
        let after = heard(&[], async |announcer| announcer.run_started(waiting, callbacks).await).await;
        let planner = learned(&[&start.jobs[0]]);
        assert_eq!(after, Heard { planner, callbacks, reconciler: true, ..Heard::default() });
    }
}

fn quiet_advance(run_id: RunId) -> RunAdvance<'static> {
    RunAdvance {
        run_id,
        pause_changed: None,
        is_over: false,
        scheduled: Vec::new(),
        ended: &[],
        callbacks_written: false,
    }
}

#[tokio::test]
async fn the_reconciler_hears_of_every_step_of_a_run() {
    let run = run_numbered(1).build().run;
    let client = ReconcileRequest::id_of_run(run.id);
    let advance = quiet_advance(run.id);
    let after = heard(&[client], async |announcer| announcer.run_advanced(advance).await).await;
    assert_eq!(after, Heard { reconciler: true, ..Heard::default() });
}

#[tokio::test]
async fn the_planner_and_the_clients_hear_what_a_step_did_to_a_run_and_its_tasks() {
    let start = run_numbered(1).task([]).task([]).build();
    let (run, released, skipped) = (start.run.id, &start.jobs[0], start.jobs[1].id);
    let advance = RunAdvance {
        pause_changed: Some(true),
        is_over: true,
        scheduled: vec![released.into()],
        ended: &[skipped],
        callbacks_written: true,
        ..quiet_advance(run)
    };
    let clients = [released.id, skipped, ReconcileRequest::id_of_run(run)];
    let after = heard(&clients, async |announcer| announcer.run_advanced(advance).await).await;
    let due = vec![DueJob::from(released)];
    let events = [Event::RunPauseChanged(run, true), Event::Learned(due), Event::Forgotten(skipped)];
    let expected = Heard {
        planner: shown(events),
        clients: vec![skipped, ReconcileRequest::id_of_run(run)],
        callbacks: true,
        reconciler: true,
        ..Heard::default()
    };
    assert_eq!(after, expected);
}

#[tokio::test]
async fn the_schedule_timer_hears_of_schedules() {
    let fires = schedule_numbered(7, "* * * * *").wake_at(Some(at(60_000))).build();
    let never = schedule_numbered(8, "* * * * *").wake_at(None).build();
    let after = heard(&[], async |announcer| {
        announcer.schedule_changed(&fires).await;
        announcer.schedule_changed(&never).await;
        announcer.schedule_deleted(schedule_id(9)).await;
    });
    let due = DueSchedule {
        id: fires.id,
        partition: fires.partition,
        wake_at: at(60_000),
        priority: fires.spec.job.priority,
    };
    let schedule_timer =
        vec![Message::Learned(due), Message::Forgotten(never.id), Message::Forgotten(schedule_id(9))];
    assert_eq!(after.await, Heard { schedule_timer, ..Heard::default() });
}

#[tokio::test]
async fn the_callback_loop_hears_of_a_callback() {
    let after = heard(&[], async |announcer| announcer.callback_written()).await;
    assert_eq!(after, Heard { callbacks: true, ..Heard::default() });
}

#[tokio::test]
async fn the_planner_hears_what_forbids_starts_and_of_a_new_session() {
    let controls = Controls { halted: true, ..Controls::default() };
    let read = controls.clone();
    let after = heard(&[], async |announcer| {
        announcer.halt_changed(true).await;
        announcer.queue_pause_changed("mail", true).await;
        announcer.controls_read(read).await;
        announcer.session_replaced().await;
    });
    let events = [
        Event::HaltChanged(true),
        Event::QueuePauseChanged("mail".into(), true),
        Event::ControlsRead(controls),
        Event::StartedOver,
    ];
    assert_eq!(after.await, Heard { planner: shown(events), ..Heard::default() });
}

#[tokio::test]
async fn the_planner_and_the_schedule_timer_hear_which_partitions_are_ours() {
    let ours = PartitionSet::ALL.without(Partition(7));
    let after = heard(&[], async |announcer| announcer.ownership_changed(ours).await).await;
    let expected = Heard {
        planner: shown([Event::OwnershipChanged(ours)]),
        schedule_timer: vec![Message::OwnershipChanged(ours)],
        ..Heard::default()
    };
    assert_eq!(after, expected);
}

#[tokio::test]
async fn no_client_waits_for_a_server_that_stops() {
    let clients = [job(1).id, job(2).id];
    let after = heard(&clients, async |announcer| announcer.server_stopping()).await;
    assert_eq!(after, Heard { clients: clients.to_vec(), ..Heard::default() });
}
