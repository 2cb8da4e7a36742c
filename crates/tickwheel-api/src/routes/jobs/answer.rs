//! Jobs as a client reads them, with the names of tasks, which only their runs know.

use std::collections::HashMap;

use tickwheel_core::progress::Percent;
use tickwheel_core::workflow::Run;
use tickwheel_core::{Job, RunId, State};
use tickwheel_protocol as wire;

use crate::convert;
use crate::error::ApiResult;
use crate::payloads::resolve_payloads;
use crate::state::ApiState;

/// A job as a client reads it.
pub async fn answer(state: &ApiState, job: &Job) -> ApiResult<wire::Job> {
    let task = task_names(state, std::slice::from_ref(job)).await?.pop().flatten();
    let mut job = job.clone();
    resolve_payloads(&*state.store, vec![&mut job], usize::MAX).await?;
    let mut answer = wire::Job { task, ..convert::job(&job)? };
    if job.state() == State::Running
        && let Some(progress) = state.store.get_progress(job.id).await?
    {
        answer.progress = progress.percent.map(Percent::as_number);
        answer.progress_message = progress.message;
        answer.progress_at = Some(wire::Time::from_millis(progress.at.as_millis()));
    }
    Ok(answer)
}

/// The names of the tasks among these jobs, in order. A job that is not a task has no name.
pub async fn task_names(state: &ApiState, jobs: &[Job]) -> ApiResult<Vec<Option<String>>> {
    let runs = runs_of(state, jobs).await?;
    let mut names = Vec::with_capacity(jobs.len());
    for job in jobs {
        let run = job.spec.position.as_ref().and_then(|position| Some((position, runs.get(&position.run)?)));
        names.push(match run {
            None => None,
            Some((position, run)) => {
                let definition = state.workflows.definition_of(run).await?;
                Some(definition.graph.path_of(position))
            }
        });
    }
    Ok(names)
}

/// The runs to which the jobs belong.
async fn runs_of(state: &ApiState, jobs: &[Job]) -> ApiResult<HashMap<RunId, Run>> {
    let mut ids: Vec<RunId> = jobs.iter().filter_map(|job| Some(job.spec.position.as_ref()?.run)).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let runs = state.store.get_runs(ids).await?;
    Ok(runs.into_iter().map(|run| (run.id, run)).collect())
}
