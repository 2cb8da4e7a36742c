//! What a target gets: the job's own headers first, then ours, which win; the payload as the body.
//!
//! Headers that steer the connection or the framing are the client's business: what a job says about them is left out.

use http::header::{CONTENT_TYPE, HOST, HeaderName, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request};
use tickwheel_core::Target;
use tickwheel_core::job::HttpTarget;
use tickwheel_core::payload::Document;
use tickwheel_core::ports::AttemptContext;

use super::HttpExecutorOptions;
use super::job_headers::job_headers;
use crate::error::Error;
use crate::outbound::{Outgoing, parse_target};
use crate::wire_time::time;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Hop-by-hop headers, and those that say where the request goes and how long it is.
const NOT_FOR_JOBS: [HeaderName; 11] = [
    HOST,
    http::header::CONTENT_LENGTH,
    http::header::CONNECTION,
    http::header::TRANSFER_ENCODING,
    http::header::TE,
    http::header::TRAILER,
    http::header::UPGRADE,
    http::header::PROXY_AUTHENTICATE,
    http::header::PROXY_AUTHORIZATION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// The one request of an attempt.
pub(super) fn build(
    attempt: &AttemptContext,
    options: &HttpExecutorOptions,
) -> Result<Request<Outgoing>, Error> {
    let Target::Http(target) = &attempt.job.spec.target else {
        return Err(Error::InvalidTarget("the job has no HTTP target".into()));
    };
    let uri = parse_target(&target.url)?;
    let method = method_of(target)?;
    let body = body_for(&method, attempt);
    let mut headers = headers_of(target)?;
    headers.entry(USER_AGENT).or_insert_with(|| options.user_agent.clone());
    if !body.is_empty() {
        headers.entry(CONTENT_TYPE).or_insert(JSON);
    }
    insert_ours(&mut headers, attempt)?;
    if let Some(secret) = &options.signing {
        secret
            .sign(attempt.job.id.to_string(), options.clock.now(), body.pieces())
            .insert_into(&mut headers)?;
    }
    let mut request = Request::new(body);
    *request.uri_mut() = uri;
    *request.method_mut() = method;
    *request.headers_mut() = headers;
    Ok(request)
}

fn method_of(target: &HttpTarget) -> Result<Method, Error> {
    match Method::from_bytes(target.method.as_bytes()) {
        // CONNECT would turn the target into a proxy.
        Ok(method) if method != Method::CONNECT => Ok(method),
        _ => Err(Error::InvalidTarget(format!("the method {:?} cannot be used", target.method))),
    }
}

fn body_for(method: &Method, attempt: &AttemptContext) -> Outgoing {
    match (method, &attempt.payload) {
        (&Method::GET | &Method::HEAD | &Method::TRACE, _) => Outgoing::empty(),
        (_, Document::Whole(text)) => Outgoing::of_text(text.as_str()),
        (_, Document::Pieces(pieces)) => Outgoing::of_shared(pieces),
    }
}

fn headers_of(target: &HttpTarget) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    for (name, value) in &target.headers {
        let invalid = || Error::InvalidTarget(format!("the header {name:?} cannot be sent"));
        let parsed_name = HeaderName::try_from(name).map_err(|_| invalid())?;
        let parsed_value = HeaderValue::try_from(value).map_err(|_| invalid())?;
        if !NOT_FOR_JOBS.contains(&parsed_name) {
            headers.try_append(parsed_name, parsed_value).map_err(|_| invalid())?;
        }
    }
    Ok(headers)
}

fn insert_ours(headers: &mut HeaderMap, attempt: &AttemptContext) -> Result<(), Error> {
    let job = &attempt.job;
    let id = job.id.to_string();
    for (name, value) in [
        ("idempotency-key", id.clone()),
        ("tickwheel-job-id", id),
        ("tickwheel-attempt", job.attempt.to_string()),
        ("tickwheel-fencing-token", job.attempt.to_string()),
        ("tickwheel-token", attempt.token.clone()),
        ("tickwheel-scheduled-for", time(job.execute_at).to_string()),
        ("tickwheel-deadline", time(attempt.deadline).to_string()),
    ] {
        let value = HeaderValue::try_from(value)
            .map_err(|_| Error::InvalidTarget(format!("the header {name} cannot be sent")))?;
        headers.insert(name, value);
    }
    // What cannot be sent of these is no reason not to do the work.
    for (name, value) in job_headers(job) {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
    Ok(())
}
