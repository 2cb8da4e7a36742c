//! What is counted and timed about requests, with the names under which Prometheus finds it.

use std::time::Duration;

use hyper::StatusCode;
use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

/// A metric's name, kind and meaning.
pub struct Described {
    /// As in `/metrics`.
    pub name: &'static str,
    /// `counter`, `gauge` or `histogram`.
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

const WAITING: Described = Described {
    name: "tickwheel_http_waiting",
    kind: "gauge",
    help: "Requests that wait for the end of a job or a run.",
};

const CONNECTIONS: Described = Described {
    name: "tickwheel_http_connections",
    kind: "gauge",
    help: "Connections of clients that are open.",
};

/// Every metric of the API.
pub const ALL: [Described; 4] = [REQUESTS, REQUEST_SECONDS, WAITING, CONNECTIONS];

/// Registers the meanings with the recorder.
pub fn describe() {
    describe_counter!(REQUESTS.name, REQUESTS.help);
    describe_histogram!(REQUEST_SECONDS.name, REQUEST_SECONDS.help);
    for gauge in [&WAITING, &CONNECTIONS] {
        describe_gauge!(gauge.name, gauge.help);
        // Shown from the beginning, not from the first one on.
        gauge!(gauge.name).increment(0.0);
    }
}

/// Counts something for as long as it is there.
pub(crate) struct Present(&'static Described);

impl Present {
    fn new(what: &'static Described) -> Self {
        gauge!(what.name).increment(1.0);
        Self(what)
    }

    /// A connection of a client.
    pub fn connection() -> Self {
        Self::new(&CONNECTIONS)
    }

    /// A request that waits for an end.
    pub fn waiting() -> Self {
        Self::new(&WAITING)
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        gauge!(self.0.name).decrement(1.0);
    }
}

pub(crate) fn answered(method: &'static str, route: String, status: StatusCode, took: Duration) {
    let labels = [("method", method.to_owned()), ("route", route)];
    histogram!(REQUEST_SECONDS.name, &labels).record(took);
    let [method, route] = labels;
    counter!(REQUESTS.name, &[method, route, ("status", status.as_u16().to_string())]).increment(1);
}
