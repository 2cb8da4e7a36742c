//! Jobs as a client reads them: with what a task of a workflow is called, which only its run knows.

use std::collections::HashMap;

use axum::Json;
use tickwheel_core::workflow::Run;
use tickwheel_core::{Job, RunId};
use tickwheel_protocol as wire;

use crate::convert;
use crate::error::ApiResult;
use crate::state::ApiState;

/// A job as a client reads it.
pub async fn answer(state: &ApiState, job: &Job) -> ApiResult<Json<wire::Job>> {
    let mut answers = answers(state, std::slice::from_ref(job)).await?;
    Ok(Json(answers.pop().expect("one job has one answer")))
}

/// Jobs as a client reads them, in their order.
pub async fn answers(state: &ApiState, jobs: &[Job]) -> ApiResult<Vec<wire::Job>> {
    let mut answers = jobs.iter().map(convert::job).collect::<ApiResult<Vec<_>>>()?;
    let runs = runs_of(state, jobs).await?;
    for (job, answer) in jobs.iter().zip(&mut answers) {
        let Some(place) = &job.spec.place else { continue };
        let Some(run) = runs.get(&place.run) else { continue };
        let definition = state.definitions.of_run(&*state.store, run).await?;
        answer.task = Some(definition.graph.path_of(place));
    }
    Ok(answers)
}

/// The runs that the jobs are tasks of.
async fn runs_of(state: &ApiState, jobs: &[Job]) -> ApiResult<HashMap<RunId, Run>> {
    let mut ids: Vec<RunId> = jobs.iter().filter_map(|job| Some(job.spec.place.as_ref()?.run)).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let runs = state.store.get_runs(ids).await?;
    Ok(runs.into_iter().map(|run| (run.id, run)).collect())
}
