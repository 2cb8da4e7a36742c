//! What is counted and timed about requests, with the names under which Prometheus finds it.

use std::time::Duration;

use hyper::StatusCode;
use metrics::{counter, describe_counter, describe_histogram, histogram};

/// A metric's name, kind and meaning.
pub struct Described {
    /// As in `/metrics`.
    pub name: &'static str,
    /// `counter` or `histogram`.
    pub kind: &'static str,
    /// One sentence.
    pub help: &'static str,
}

const REQUESTS: Described = Described {
    name: "tickwheel_http_requests_total",
    kind: "counter",
    help: "Requests answered, by method, route and status.",
};
const REQUEST_SECONDS: Described = Described {
    name: "tickwheel_http_request_seconds",
    kind: "histogram",
    help: "Time to the answer of a request, by method and route.",
};

/// Every metric of the API.
pub const ALL: [Described; 2] = [REQUESTS, REQUEST_SECONDS];

/// Registers the meanings with the recorder.
pub fn describe() {
    describe_counter!(REQUESTS.name, REQUESTS.help);
    describe_histogram!(REQUEST_SECONDS.name, REQUEST_SECONDS.help);
}

pub(crate) fn answered(method: &'static str, route: String, status: StatusCode, took: Duration) {
    let labels = [("method", method.to_owned()), ("route", route)];
    histogram!(REQUEST_SECONDS.name, &labels).record(took);
    let [method, route] = labels;
    counter!(REQUESTS.name, &[method, route, ("status", status.as_u16().to_string())]).increment(1);
}
