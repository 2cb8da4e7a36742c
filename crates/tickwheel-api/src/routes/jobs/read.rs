//! Reading jobs: one, many, their history, and why one is not running.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tickwheel_core::job::DEFAULT_TENANT;
use tickwheel_core::matching::Route;
use tickwheel_core::ports::{JobQuery, Page, Projection};
use tickwheel_core::settle::DeadReason;
use tickwheel_core::why::{Circumstances, Parent, WaitingTask, WorkersSeen, explain};
use tickwheel_core::{AttemptRecord, Job, JobId, RunId, ScheduleId, State as JobState, Timestamp};
use tickwheel_protocol::{self as wire, Attempt, Code, List, Span, Time, Why};
use utoipa::IntoParams;

use super::answer::{answer, task_names};
use crate::convert;
use crate::error::{ApiError, ApiResult};
use crate::extract::Id;
use crate::lists::{Gathering, PageSize};
use crate::memory::Turn;
use crate::params::{
    PageParams, Params, attempt_cursor, job_cursor, page_limit, page_size, parse_attempt_cursor,
    parse_job_cursor, repeated, words,
};
use crate::payloads::resolve_payloads;
use crate::runs;
use crate::state::ApiState;
use crate::streamed::Streamed;
use crate::waiting::Patience;

/// How many parents are read at once: they come with their payloads, which are dropped.
const PARENTS_READ_MAX: usize = 50;
/// Workers are read so many at a time.
const WORKERS_READ_MAX: usize = 1_000;

/// Which jobs to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListParams {
    /// Only jobs in this state. Several states may be given, separated by commas.
    #[serde(default, deserialize_with = "words")]
    #[param(value_type = Option<Vec<wire::Status>>, style = Form, explode = false)]
    status: Vec<wire::Status>,
    /// Only jobs of this type.
    #[serde(rename = "type")]
    job_type: Option<String>,
    /// Only jobs of this queue.
    queue: Option<String>,
    /// Only jobs with this tag. If the parameter occurs several times, jobs must have all the tags.
    #[serde(default, deserialize_with = "repeated")]
    #[param(value_type = Option<Vec<String>>)]
    tag: BTreeSet<String>,
    /// Only jobs of this priority.
    priority: Option<wire::Priority>,
    /// Only jobs of this schedule, given by id or name.
    schedule_id: Option<String>,
    /// Only tasks of this workflow run.
    workflow_run_id: Option<String>,
    /// Only jobs created at this time or later.
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<Time>,
    /// Only jobs created before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    to: Option<Time>,
    /// How many items per page, 1 to 1000. Default 50.
    limit: Option<usize>,
    /// The `next_cursor` of the previous page.
    cursor: Option<String>,
    /// Fields to add, which may be large: `payload`, `result`, or both, separated by a comma.
    #[param(example = "payload,result")]
    include: Option<String>,
}

/// List jobs, newest first
///
/// The jobs come without `payload` and `result`, unless `include` asks for them.
#[utoipa::path(get, operation_id = "list_jobs", path = "/api/v1/jobs", tag = "jobs", params(ListParams),
    responses((status = 200, description = "The jobs", body = List<wire::Job>)))]
pub async fn list(
    State(state): State<ApiState>,
    Params(params): Params<ListParams>,
    turn: Turn,
) -> ApiResult<Response> {
    let schedule_id = match &params.schedule_id {
        None => None,
        Some(key) => match schedule_id(&state, key).await? {
            None => return Ok(Json(List::<wire::Job>::complete(Vec::new())).into_response()),
            found => found,
        },
    };
    let projection = projection(&state, params.include.as_deref())?;
    let query = JobQuery {
        states: params.status.into_iter().map(convert::state).collect(),
        job_type: params.job_type,
        queue: params.queue,
        tags: params.tag,
        priority: params.priority.map(convert::priority),
        tenant: None,
        schedule_id,
        run: params.workflow_run_id.as_deref().map(run_id).transpose()?,
        created_from: params.from.map(convert::timestamp),
        created_before: params.to.map(convert::timestamp),
        after: params.cursor.as_deref().map(parse_job_cursor).transpose()?,
        limit: page_limit(params.limit)?,
        projection,
    };
    let mut page = state.store.list_jobs(query).await?;
    let fitting =
        resolve_payloads(&*state.store, page.items.iter_mut().collect(), projection.bytes_max).await?;
    if fitting < page.items.len() {
        page.items.truncate(fitting);
        page.next = page.items.last().map(|job| job.id);
    }
    let names = task_names(&state, &page.items).await?;
    let items = page.items.into_iter().zip(names).map(move |(job, task)| listed(&job, task, projection));
    Ok(Streamed::page(items, page.next.map(job_cursor).as_deref(), turn).into_response())
}

/// A job in a list, with its large fields only if the request asks for them.
fn listed(job: &Job, task: Option<String>, projection: Projection) -> ApiResult<wire::Job> {
    let mut item = wire::Job { task, ..convert::job(job)? };
    item.payload = item.payload.filter(|_| projection.payload);
    item.result = item.result.filter(|_| projection.result);
    Ok(item)
}

/// Which fields the jobs of a list have.
fn projection(state: &ApiState, include: Option<&str>) -> ApiResult<Projection> {
    let mut projection = Projection { payload: false, result: false, bytes_max: state.limits.page_bytes_max };
    for word in include.into_iter().flat_map(|words| words.split(',')).map(str::trim) {
        let is_wanted = match word {
            "payload" => &mut projection.payload,
            "result" => &mut projection.result,
            _ => {
                let detail = format!("include: {word:?} is neither `payload` nor `result`");
                return Err(ApiError::new(Code::InvalidParameter, detail));
            }
        };
        if std::mem::replace(is_wanted, true) {
            return Err(ApiError::new(Code::InvalidParameter, format!("include: `{word}` occurs twice")));
        }
    }
    Ok(projection)
}

fn run_id(text: &str) -> ApiResult<RunId> {
    text.parse().map_err(|_| ApiError::new(Code::InvalidParameter, "workflow_run_id: must be a UUID"))
}

/// The schedule with that id or name. A deleted one is still known by its id, because its jobs stay.
async fn schedule_id(state: &ApiState, id_or_name: &str) -> ApiResult<Option<ScheduleId>> {
    if let Ok(id) = id_or_name.parse() {
        return Ok(Some(id));
    }
    let found = state.store.find_schedule(DEFAULT_TENANT, id_or_name).await?;
    Ok(found.map(|schedule| schedule.id))
}

/// How to read a job.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct GetParams {
    /// Wait until the job has ended, for up to this long (5 minutes at most). After that the answer is 408.
    #[param(value_type = Option<String>, example = "30s")]
    wait: Option<Span>,
}

/// Get a job
#[utoipa::path(get, operation_id = "get_job", path = "/api/v1/jobs/{id}", tag = "jobs", params(("id" = String, Path), GetParams),
    responses((status = 200, description = "The job", body = wire::Job)))]
pub async fn get(
    State(state): State<ApiState>,
    Id(id): Id,
    Params(params): Params<GetParams>,
) -> ApiResult<Response> {
    let job = match params.wait {
        None => find(&state, id).await?,
        Some(wait) => wait_for_end(&state, id, wait).await?,
    };
    state.memory.document(&answer(&state, &job).await?)
}

async fn wait_for_end(state: &ApiState, id: JobId, wait: Span) -> ApiResult<Job> {
    let patience = Patience::of(state, id, "job", wait)?;
    loop {
        let end = patience.listen();
        let job = find(state, id).await?;
        if job.state().is_terminal() {
            return Ok(job);
        }
        patience.wait(end, job.state().as_str()).await?;
    }
}

/// List the attempts of a job, oldest first
#[utoipa::path(get, operation_id = "list_attempts", path = "/api/v1/jobs/{id}/attempts", tag = "jobs",
    params(("id" = String, Path), PageParams),
    responses((status = 200, description = "The attempts", body = List<Attempt>)))]
pub async fn attempts(
    State(state): State<ApiState>,
    Id(id): Id,
    Params(params): Params<PageParams>,
    turn: Turn,
) -> ApiResult<Response> {
    let size = page_size(&state, params.limit)?;
    let after = params.cursor.as_deref().map(parse_attempt_cursor).transpose()?;
    let mut records = state.store.attempts(id).await?.ok_or_else(|| ApiError::not_found("job"))?;
    records.retain(|record| after.is_none_or(|after| record.number > after));
    let mut page = Gathering::new(PageSize { step: size.items_max, ..size }, after);
    let message_len = |record: &AttemptRecord| record.error.as_ref().map_or(0, |error| error.message.len());
    let next = records.get(size.items_max - 1).filter(|_| records.len() > size.items_max);
    let next = next.map(|last| last.number);
    records.truncate(size.items_max);
    page.add(Page { items: records, next }, message_len, |record| record.number);
    let page = page.finish();
    let items = page.items.into_iter().map(|record| Ok(convert::attempt(&record)));
    Ok(Streamed::page(items, page.next.map(attempt_cursor).as_deref(), turn).into_response())
}

/// Explain why a job is not running
#[utoipa::path(get, operation_id = "explain_job", path = "/api/v1/jobs/{id}/why", tag = "jobs", params(("id" = String, Path)),
    responses((status = 200, description = "The reason", body = Why)))]
pub async fn why(State(state): State<ApiState>, Id(id): Id) -> ApiResult<Json<Why>> {
    let job = find(&state, id).await?;
    let context = circumstances(&state, &job).await?;
    let why = explain(&job, &context, state.now());
    Ok(Json(convert::why(&job, why)))
}

/// The store knows what applies everywhere, the scheduler knows how busy this node is.
async fn circumstances(state: &ApiState, job: &Job) -> ApiResult<Circumstances> {
    let queues = state.store.list_queues().await?;
    let here = state.scheduler.snapshot().await;
    Ok(Circumstances {
        halted: state.store.halted().await?,
        queue_paused: queues.iter().any(|queue| queue.paused && *queue.name == *job.queue),
        run_paused: run_paused(state, job).await?,
        no_processes: !state.permissions.processes_allowed,
        slots_free: here.slots_free,
        waiting_in_queue: here
            .queues
            .iter()
            .find(|queue| *queue.name == *job.queue)
            .map_or(0, |queue| queue.waiting),
        workers: workers_seen(state, job).await?,
        parents: parents(state, job).await?,
        task: waiting_task(state, job).await?,
        given_up: given_up(state, job).await?,
    })
}

/// Who could run a job that waits for a worker.
async fn workers_seen(state: &ApiState, job: &Job) -> ApiResult<WorkersSeen> {
    let mut seen = WorkersSeen::default();
    let Some(route) = Route::of(job).filter(|_| job.state() == JobState::Scheduled) else { return Ok(seen) };
    let mut after = None;
    loop {
        let sessions = state.store.list_workers(after, WORKERS_READ_MAX).await?;
        let Some(last) = sessions.last().map(|session| session.id) else { return Ok(seen) };
        let counts = state.store.count_held(sessions.iter().map(|session| session.id).collect()).await?;
        sessions.iter().zip(counts).for_each(|(session, running)| seen.count(session, running, &route));
        after = Some(last);
    }
}

/// Since when the run is paused, for a task that could otherwise start.
async fn run_paused(state: &ApiState, job: &Job) -> ApiResult<Option<Timestamp>> {
    let Some(position) = job.spec.position.as_ref().filter(|_| job.state() == JobState::Scheduled) else {
        return Ok(None);
    };
    let run = state.store.get_runs(vec![position.run]).await?.pop();
    Ok(run.and_then(|run| run.progress.paused_at))
}

/// Why a failed job was given up.
async fn given_up(state: &ApiState, job: &Job) -> ApiResult<Option<DeadReason>> {
    if job.state() != JobState::Failed {
        return Ok(None);
    }
    Ok(state.store.get_dead_letter(job.id).await?.map(|letter| letter.reason))
}

/// The jobs that this one waits for, oldest first. Not read for a job that waits for none, nor for a task.
async fn parents(state: &ApiState, job: &Job) -> ApiResult<Vec<Parent>> {
    if !waits_for_others(job) || job.spec.position.is_some() {
        return Ok(Vec::new());
    }
    let mut ids = job.spec.depends_on.clone();
    ids.sort_unstable();
    ids.dedup();
    let mut parents = Vec::with_capacity(ids.len());
    for some in ids.chunks(PARENTS_READ_MAX) {
        let jobs = state.store.get_jobs(some.to_vec()).await?;
        parents.extend(jobs.iter().map(Parent::from));
    }
    parents.sort_unstable_by_key(|parent| parent.id);
    Ok(parents)
}

/// What a task waits for in its run.
async fn waiting_task(state: &ApiState, job: &Job) -> ApiResult<Option<WaitingTask>> {
    let Some(position) = job.spec.position.as_ref().filter(|_| waits_for_others(job)) else {
        return Ok(None);
    };
    let Some((view, _room)) = runs::read(state, position.run).await? else { return Ok(None) };
    Ok(view.of_job(job.id).map(|task| view.waiting(task, job.created_at)))
}

const fn waits_for_others(job: &Job) -> bool {
    matches!(job.state(), JobState::Pending | JobState::Blocked)
}

pub(super) async fn find(state: &ApiState, id: JobId) -> ApiResult<Job> {
    state.store.get_job(id).await?.ok_or_else(|| ApiError::not_found("job"))
}
