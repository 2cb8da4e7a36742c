//! Cron expressions, explained. Nothing is stored.

use axum::Json;
use axum::extract::State;
use tickwheel_protocol::validate::Validate;
use tickwheel_protocol::{CronPreview, PreviewCron};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::calculation::calculated;
use crate::convert;
use crate::error::ApiResult;
use crate::extract::StrictJson;
use crate::state::ApiState;

pub fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new().routes(routes!(preview))
}

/// When an expression fires, in words and in times
///
/// Nothing is stored. An expression that can be read but never fires is no error: `never` says so.
#[utoipa::path(post, operation_id = "preview_cron", path = "/api/v1/cron/preview", tag = "cron", request_body = PreviewCron,
    responses((status = 200, description = "What it means", body = CronPreview)))]
async fn preview(
    State(state): State<ApiState>,
    StrictJson(request): StrictJson<PreviewCron>,
) -> ApiResult<Json<CronPreview>> {
    request.validate(&state.limits)?;
    let now = state.now();
    calculated(move || Ok(Json(convert::preview_cron(&request, now)?))).await
}
