//! A layer for `tracing`: events inside a handler reach the job's log.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};
use tickwheel_protocol::worker::LogLevel;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber, span};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::ctx::Current;
use crate::current;

/// What these say is about the worker, not about the job.
const NOT_OF_THE_JOB: [&str; 7] =
    ["tickwheel_worker", "tickwheel_client", "hyper", "hyper_util", "rustls", "h2", "tokio"];

/// Forwards events from INFO up that happen inside a handler to the job's log, except those of this library and its
/// HTTP client. Spans that begin inside a handler belong to it, also in tasks that it spawns inside them.
///
/// ```
/// use tracing_subscriber::layer::SubscriberExt as _;
/// use tracing_subscriber::util::SubscriberInitExt as _;
///
/// let _ = tracing_subscriber::registry().with(tickwheel_worker::log_layer()).try_init();
/// ```
pub fn log_layer() -> LogLayer {
    LogLayer { level: Level::INFO }
}

/// See [`log_layer`].
#[derive(Clone, Debug)]
pub struct LogLayer {
    level: Level,
}

impl LogLayer {
    /// Forwards events from this level up.
    #[must_use]
    pub fn from_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }
}

struct OfCall(Arc<Current>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LogLayer {
    fn on_new_span(&self, _: &span::Attributes<'_>, id: &span::Id, context: Context<'_, S>) {
        if let (Some(current), Some(span)) = (current::get(), context.span(id)) {
            span.extensions_mut().replace(OfCall(current));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        let root = metadata.target().split("::").next().unwrap_or_default();
        if *metadata.level() > self.level || NOT_OF_THE_JOB.contains(&root) {
            return;
        }
        let of_span = || {
            let scope = context.event_scope(event)?;
            scope.into_iter().find_map(|span| span.extensions().get::<OfCall>().map(|call| call.0.clone()))
        };
        if let Some(current) = current::get().or_else(of_span) {
            let mut said = Said::default();
            event.record(&mut said);
            current.log(level(*metadata.level()), &said.message, said.fields);
        }
    }
}

fn level(level: Level) -> LogLevel {
    match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warn,
        Level::INFO => LogLevel::Info,
        Level::DEBUG | Level::TRACE => LogLevel::Debug,
    }
}

#[derive(Default)]
struct Said {
    message: String,
    fields: Map<String, Value>,
}

impl Said {
    fn note(&mut self, field: &Field, value: impl Into<Value>) {
        self.fields.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.note(field, format!("{value:?}"));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.message);
        } else {
            self.note(field, value);
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.note(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.note(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.note(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.note(field, value);
    }
}
