//! Jobs: submitting, reading, changing.

mod answer;
mod callbacks;
mod change;
mod logs;
mod read;
mod submit;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use change::change;
pub use submit::{agreed_key, conflict, created_answer};

use crate::state::ApiState;

pub fn routes() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(submit::submit, read::list))
        .routes(routes!(submit::submit_batch))
        .routes(routes!(read::get, change::patch, change::delete))
        .routes(routes!(change::cancel))
        .routes(routes!(change::pause))
        .routes(routes!(change::resume))
        .routes(routes!(change::run))
        .routes(routes!(change::retry))
        .routes(routes!(read::attempts))
        .routes(routes!(logs::of_attempt))
        .routes(routes!(logs::of_job))
        .routes(routes!(callbacks::list, callbacks::resend))
        .routes(routes!(read::why))
}
