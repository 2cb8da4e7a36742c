//! What surrounds every request: it is counted, it comes from no web page, it has no parameter that nobody heeds, it
//! ends in time, and a panic becomes an answer.

use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::Method;
use tickwheel_core::catch_panic::catch_panic_async;
use tickwheel_protocol::Code;

use crate::browsers::refuse_web_pages;
use crate::error::ApiError;
use crate::metrics;
use crate::params::refuse_unknown;
use crate::state::ApiState;

/// Longer than any body may take to arrive, plus a stalled store's reasonable stall.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs the rest of the stack within the bounds.
pub async fn guard(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    let method = method_label(request.method());
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or_else(|| "unmatched".into(), |p| p.as_str().to_owned());
    let waits = request.uri().query().is_some_and(|query| query.contains("wait="));
    let patience = ANSWER_TIMEOUT + if waits { state.limits.wait_max() } else { Duration::ZERO };

    let started = Instant::now();
    let allowed = refuse_web_pages(&request, &state.hosts).and_then(|()| refuse_unknown(&request, &route));
    let response = match allowed {
        Ok(()) => answer(request, next, patience, (method, &route)).await,
        Err(refused) => refused.into_response(),
    };
    metrics::answered(method, route, response.status(), started.elapsed());
    response
}

async fn answer(request: Request, next: Next, patience: Duration, (method, route): (&str, &str)) -> Response {
    match tokio::time::timeout(patience, catch_panic_async(next.run(request))).await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => {
            tracing::error!(method, route, "a request handler panicked");
            ApiError::new(Code::Internal, "the server has a fault").into_response()
        }
        Err(_) => {
            tracing::warn!(method, route, "a request was not answered in time");
            let detail = "the request took too long; it may or may not have been carried out";
            ApiError::new(Code::OutcomeUnknown, detail).into_response()
        }
    }
}

/// One of a few words: a client must not be able to invent labels.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
