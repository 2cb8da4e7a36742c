//! Previews of cron expressions. Nothing is stored.

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

/// Preview when a cron expression fires
///
/// Nothing is stored. A valid expression that never fires is not an error: `never` is `true`.
#[utoipa::path(post, operation_id = "preview_cron", path = "/api/v1/cron/preview", tag = "cron", request_body = PreviewCron,
    responses((status = 200, description = "What the expression means and when it fires", body = CronPreview)))]
async fn preview(
    State(state): State<ApiState>,
    StrictJson(request): StrictJson<PreviewCron>,
) -> ApiResult<Json<CronPreview>> {
    request.validate(&state.limits)?;
    let now = state.now();
    calculated(move || Ok(Json(convert::preview_cron(&request, now)?))).await
}
