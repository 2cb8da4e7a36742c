//! Runs as people and the reconciler see them: whole, by number, and in lists.

use std::sync::Arc;

use tickwheel_core::payload::{Payload, Piece, Reference};
use tickwheel_core::ports::{JobQuery, RunQuery, Store};
use tickwheel_core::settle::Settlement;
use tickwheel_core::workflow::{
    ParentData, ReconcileRequest, RunProgress, RunStatus, RunStep, RunTask, TASK_ERROR_BYTES_MAX,
    TASK_ERRORS_BYTES_MAX, TaskChange, TaskError,
};
use tickwheel_core::{Failure, JobId, JsonText, RunId, State, Timestamp};

use super::super::store::bench::{answered, completes, fails, list_all};
use super::bench::{RunBench, ends, task};
use crate::fixtures::{RunBuilder, at, job, run, run_id};

/// Waiting, running and ended in every way; each exactly as the job itself says.
pub async fn a_run_is_read_with_all_its_tasks_in_order(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let builder =
        run().task([]).task([]).task([]).reconciled([]).task([2]).reconciled([2]).fan_out().task([]);
    let start = bench.start(builder).await;
    let neighbours = [bench.start(run().task([])).await, bench.start(run().task([])).await];
    bench.jobs.submit(job()).await;
    bench.end(task(&start, 1), completes).await;
    bench.end(task(&start, 2), fails).await;
    bench.running(task(&start, 3)).await;
    bench.change(start.run.id, [(task(&start, 4), ends(State::Skipped))]).await;
    bench.change(start.run.id, [(task(&start, 5), TaskChange::Block)]).await;
    bench.change(start.run.id, [(task(&start, 3), TaskChange::Stop)]).await;
    let (read, tasks) = answered(bench.store.read_run(start.run.id).await).expect("it exists");
    assert_eq!(read, bench.run(start.run.id).await);
    let mut expected = Vec::new();
    for job in &start.jobs {
        expected.extend(RunTask::of(&bench.jobs.job(job.id).await));
    }
    assert_eq!(tasks, expected);
    assert_eq!(tasks.len(), 7);
    for neighbour in neighbours {
        assert_eq!(bench.tasks(neighbour.run.id).await.len(), 1);
    }
}

/// The errors are whole until there is too much of them together, then each is cut; the jobs themselves have all of it.
pub async fn a_run_is_read_with_the_beginnings_of_long_errors(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let failed_with = async |messages: &[&str]| {
        let start = bench.start(messages.iter().fold(run(), |run, _| run.task([]))).await;
        for (index, message) in (1..).zip(messages) {
            let error = Some(Failure::new("odd", *message));
            bench.end(task(&start, index), |running| Settlement { error, ..fails(running) }).await;
        }
        bench.tasks(start.run.id).await
    };
    let fits = "ä".repeat(TASK_ERROR_BYTES_MAX / 2);
    let (a_byte_more, the_rest) =
        (format!("{fits}x"), "ö".repeat(TASK_ERRORS_BYTES_MAX as usize / 2 - fits.len() - 1));
    let messages = [fits.as_str(), &a_byte_more, &the_rest, "x"];
    for (task, message) in failed_with(&messages).await.iter().zip(messages) {
        assert_eq!(task.error, Some(TaskError { failure: Failure::new("odd", message), is_cut: false }));
    }
    let messages = [fits.as_str(), &a_byte_more, &the_rest, "xx"];
    let beginnings = [fits.as_str(), &fits, &"ö".repeat(fits.len() / 2), "xx"];
    for ((task, beginning), message) in failed_with(&messages).await.iter().zip(beginnings).zip(messages) {
        let is_cut = beginning != message;
        assert_eq!(task.error, Some(TaskError { failure: Failure::new("odd", beginning), is_cut }));
        assert_eq!(bench.jobs.job(task.job_id).await.error, Some(Failure::new("odd", message)));
    }
}

/// Of each how it stands, with its result and its error; no more than fit, and one more.
pub async fn results_are_read_in_order_until_there_are_too_many_bytes(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([]).task([]).task([])).await;
    let ids = [4, 1, 3, 2].map(|index| task(&start, index));
    bench.end(ids[0], completes).await;
    bench.end(ids[1], fails).await;
    bench.end(ids[3], completes).await;
    let read =
        async |ids: &[JobId], bytes_max| answered(bench.store.read_results(ids.to_vec(), bytes_max).await);
    let nobody = JobId::of_task(run_id(at(0), 1 << 30), 1);
    let all = read(&[&ids[..], &[nobody]].concat(), 1_000).await;
    assert!(!all.is_cut);
    assert_eq!(all.jobs.len(), 4, "who does not exist is left out");
    for id in ids {
        assert_eq!(all.jobs[&id], ParentData::from(bench.jobs.job(id).await));
    }
    let len = all.jobs[&ids[0]].result.as_ref().expect("it completed").as_str().len();
    assert!(!read(&ids, 2 * len).await.is_cut);
    let cut = read(&ids, len - 1).await;
    assert_eq!((cut.is_cut, cut.jobs.len()), (true, 1));
    assert!(cut.jobs.contains_key(&ids[0]), "the first come first");
    let nearly = read(&ids, 2 * len - 1).await;
    assert_eq!((nearly.is_cut, nearly.jobs.len()), (true, 4), "the last one was too much");
}

/// In the input of the run, or the result of a task that has completed; the payload that refers to them stays as it is.
pub async fn values_that_payloads_refer_to_are_found(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let input = JsonText::from_checked(r#"{"list":[1,"zwei"]}"#);
    let start = bench.start(run().with(|run| run.input = input).task([]).task([]).reconciled([])).await;
    bench.end(task(&start, 1), completes).await;
    let to = |task, path: &str| Reference { task, path: path.into() };
    let cases = [
        (to(0, "input.list"), Some(r#"[1,"zwei"]"#)),
        (to(0, "input"), Some(r#"{"list":[1,"zwei"]}"#)),
        (to(0, "input.none"), None),
        (to(1, "first.result.sent"), Some("true")),
        (to(1, "first.result"), Some(r#"{"sent":true}"#)),
        (to(2, "second.result"), None),
        (to(99, "nobody.result"), None),
    ];
    for (reference, expected) in &cases {
        let found = answered(bench.store.referenced_value(start.run.id, reference).await);
        assert_eq!(found.as_deref(), *expected, "{reference:?}");
    }
    assert_eq!(answered(bench.store.referenced_value(run_id(at(0), 1 << 30), &cases[0].0).await), None);

    let pieces = cases.into_iter().map(|(reference, _)| Piece::Reference(reference)).collect();
    let payload = Payload::of_pieces(pieces);
    let release = TaskChange::Release { payload: Some(payload.clone()) };
    bench.change(start.run.id, [(task(&start, 3), release)]).await;
    assert_eq!(bench.jobs.job(task(&start, 3)).await.payload, payload);
}

/// The first and the last number a run can have are its own.
pub async fn the_borders_of_a_run_belong_to_it(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let numbers = [RunId::TASK_INDEX_MAX - 1, RunId::TASK_INDEX_MAX, 1];
    let add = |builder: RunBuilder, number| builder.with(|run| run.progress.next_index = number).task([]);
    let mut starts = Vec::new();
    for _ in 0..3 {
        starts.push(bench.start(numbers.into_iter().fold(run(), add)).await);
    }
    for start in &starts {
        let indices: Vec<u32> =
            bench.tasks(start.run.id).await.iter().map(|task| task.position.index).collect();
        assert_eq!(indices, [numbers[2], numbers[0], numbers[1]]);
        let query = JobQuery { run: Some(start.run.id), ..list_all() };
        let mut ids: Vec<JobId> = start.jobs.iter().map(|job| job.id).collect();
        ids.sort();
        ids.reverse();
        assert_eq!(bench.jobs.list_ids(query).await, ids);
    }
}

pub async fn the_jobs_of_a_run_are_listed(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let start = bench.start(run().task([]).task([]).task([]).task([]).task([])).await;
    bench.start(run().task([])).await;
    bench.jobs.submit(job()).await;
    bench.end(task(&start, 2), completes).await;
    bench.end(task(&start, 4), fails).await;
    let ids = |indices: &[u32]| indices.iter().map(|index| task(&start, *index)).collect::<Vec<_>>();
    let of_run = JobQuery { run: Some(start.run.id), ..list_all() };
    for limit in [1, 2, 100] {
        let query = JobQuery { limit, ..of_run.clone() };
        assert_eq!(bench.jobs.list_ids(query).await, ids(&[5, 4, 3, 2, 1]), "pages of {limit}");
    }
    let failed = JobQuery { states: [State::Failed].into(), ..of_run.clone() };
    assert_eq!(bench.jobs.list_ids(failed).await, ids(&[4]));
    let waiting = JobQuery { states: [State::Scheduled].into(), ..of_run.clone() };
    assert_eq!(bench.jobs.list_ids(waiting).await, ids(&[5, 3, 1]));
    let typed = JobQuery { job_type: Some("etl.task".into()), ..of_run.clone() };
    assert_eq!(bench.jobs.list_ids(typed).await, ids(&[5, 4, 3, 2, 1]));
    let after = JobQuery { after: Some(task(&start, 3)), ..of_run };
    assert_eq!(bench.jobs.list_ids(after).await, ids(&[2, 1]));
}

fn of(tenant: &str, workflow: Option<&str>, status: Option<RunStatus>, limit: usize) -> RunQuery {
    RunQuery { tenant: tenant.into(), workflow: workflow.map(Into::into), status, after: None, limit }
}

pub async fn runs_are_listed_the_latest_first_by_what_they_are(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let mut runs = Vec::new();
    for number in 0..24 {
        let status = RunStatus::ALL[number % 5];
        let workflow = ["etl", "report", "Etl"][number % 3];
        let tenant = if number % 8 == 0 { "zoo" } else { "acme" };
        let builder = run().task([]).with(|run| {
            (run.tenant, run.workflow, run.progress.status) = (tenant.into(), workflow.into(), status);
        });
        runs.push(bench.start(builder).await.run);
    }
    runs.reverse();
    let expected = |tenant: &str, workflow: Option<&str>, status: Option<RunStatus>| -> Vec<RunId> {
        let wanted = runs.iter().filter(|run| {
            &*run.tenant == tenant
                && workflow.is_none_or(|workflow| &*run.workflow == workflow)
                && status.is_none_or(|status| run.progress.status == status)
        });
        wanted.map(|run| run.id).collect()
    };
    for tenant in ["acme", "zoo", "nobody"] {
        for workflow in [None, Some("etl"), Some("none")] {
            for status in [None, Some(RunStatus::Running), Some(RunStatus::Paused)] {
                for limit in [1, 4, 100] {
                    let found = bench.list(of(tenant, workflow, status, limit)).await;
                    assert_eq!(found, expected(tenant, workflow, status), "{tenant} {workflow:?} {status:?}");
                }
            }
        }
    }
}

pub async fn runs_that_may_stall_are_found_when_it_is_time(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let stalls = |at: Option<Timestamp>, status| {
        run().task([]).with(move |run| {
            run.progress = RunProgress { stalls_at: at, status, ..run.progress };
        })
    };
    let later = bench.start(stalls(Some(at(20)), RunStatus::Running)).await.run.id;
    let sooner = bench.start(stalls(Some(at(10)), RunStatus::Running)).await.run.id;
    bench.start(stalls(None, RunStatus::Running)).await;
    bench.start(stalls(Some(at(5)), RunStatus::Failed)).await;
    bench.start(stalls(Some(at(5)), RunStatus::Paused)).await;
    let found = async |now, limit| answered(bench.store.stalling_runs(now, limit).await);
    assert_eq!(found(at(9), 10).await, []);
    assert_eq!(found(at(10), 10).await, [sooner]);
    assert_eq!(found(at(20), 10).await, [sooner, later]);
    assert_eq!(found(at(20), 1).await, [sooner]);
    let progress = RunProgress { stalls_at: Some(at(99)), ..bench.run(sooner).await.progress };
    bench.done(RunStep { progress: Some(progress), ..bench.step(sooner).await }).await;
    assert_eq!(found(at(20), 10).await, [later]);
    assert_eq!(answered(bench.store.get_runs(vec![run_id(at(0), 1 << 31)]).await), []);
}

pub async fn of_many_runs_those_that_have_ended_are_told(store: Arc<dyn Store>) {
    let bench = RunBench::new(store);
    let mut runs = Vec::new();
    for status in RunStatus::ALL {
        runs.push(bench.start(run().task([]).with(|run| run.progress.status = status)).await.run);
    }
    let asked = runs.iter().map(|run| ReconcileRequest::id_of_run(run.id)).collect();
    let mut told = answered(bench.store.ended_among(asked).await);
    told.sort();
    let ended = runs.iter().filter(|run| run.progress.status.is_over());
    assert_eq!(told, ended.map(|run| ReconcileRequest::id_of_run(run.id)).collect::<Vec<_>>());
}
