//! One consumer span for each call of a handler, in the trace of whoever submitted the job. Without the feature `otel`
//! there is none.
//!
//! Attribute names are all here, because the messaging conventions are still in development.

#[cfg(feature = "otel")]
pub(crate) use with_otel::{Trace, attached};
#[cfg(not(feature = "otel"))]
pub(crate) use without::{Trace, attached};

#[cfg(feature = "otel")]
mod with_otel {
    use std::sync::Arc;

    use opentelemetry::trace::{
        FutureExt as _, Link, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags,
        TraceId, TraceState, Tracer as _,
    };
    use opentelemetry::{Context, KeyValue, global};

    use crate::attempt::Attempt;
    use crate::outcome::Outcome;

    /// The span of a call.
    pub(crate) struct Trace(Context);

    impl Trace {
        /// Begins it: a child of the job's trace. A batch has a link for each job instead.
        pub fn begin(attempts: &[Arc<Attempt>]) -> Self {
            let Some(first) = attempts.first() else { return Self(Context::new()) };
            let remote = |attempt: &Arc<Attempt>| attempt.traceparent.as_deref().and_then(parse);
            let name = format!("process {}", first.job_type());
            let tracer = global::tracer("tickwheel");
            let builder = tracer.span_builder(name).with_kind(SpanKind::Consumer);
            let builder = builder.with_attributes(attributes(first, attempts.len()));
            let parent = Context::new();
            let (builder, parent) = match attempts {
                [one] => {
                    let parent =
                        remote(one).map_or(parent.clone(), |span| parent.with_remote_span_context(span));
                    (builder, parent)
                }
                many => {
                    let links = many.iter().filter_map(remote).map(|span| Link::new(span, Vec::new(), 0));
                    (builder.with_links(links.collect()), parent)
                }
            };
            let span = tracer.build_with_context(builder, &parent);
            Self(parent.with_span(span))
        }

        /// Runs the call inside it.
        pub async fn around<F: Future>(&self, call: F) -> F::Output {
            call.with_context(self.0.clone()).await
        }

        /// What became of an attempt.
        pub fn ended(&self, outcome: Option<&Outcome>) {
            if let Some(error) = outcome.and_then(|outcome| outcome.error.as_ref()) {
                self.0.span().set_status(Status::error(error.message.clone()));
            }
        }
    }

    impl Drop for Trace {
        fn drop(&mut self) {
            self.0.span().end();
        }
    }

    /// Work for another thread, in the same span.
    pub(crate) fn attached<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
        let context = Context::current();
        move || {
            let _attached = context.attach();
            work()
        }
    }

    fn attributes(first: &Attempt, jobs: usize) -> Vec<KeyValue> {
        let mut attributes = vec![
            KeyValue::new("messaging.system", "tickwheel"),
            KeyValue::new("messaging.operation.name", "process"),
            KeyValue::new("messaging.operation.type", "process"),
            KeyValue::new("messaging.destination.name", first.job.queue.clone()),
            KeyValue::new("tickwheel.job.type", first.job_type().to_owned()),
        ];
        if jobs == 1 {
            attributes.push(KeyValue::new("messaging.message.id", first.job.id.to_string()));
            attributes.push(KeyValue::new("tickwheel.job.attempt", i64::from(first.number)));
        } else {
            let count = i64::try_from(jobs).unwrap_or(i64::MAX);
            attributes.push(KeyValue::new("messaging.batch.message_count", count));
        }
        attributes
    }

    /// A W3C trace context. Later versions may have more parts.
    fn parse(traceparent: &str) -> Option<SpanContext> {
        let mut parts = traceparent.split('-');
        let _version = parts.next()?;
        let trace_id = TraceId::from_hex(parts.next()?).ok()?;
        let span_id = SpanId::from_hex(parts.next()?).ok()?;
        let flags = TraceFlags::new(u8::from_str_radix(parts.next()?, 16).ok()?);
        let span = SpanContext::new(trace_id, span_id, flags, true, TraceState::default());
        span.is_valid().then_some(span)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_trace_context_is_read_or_ignored() {
            let span = parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
            assert_eq!(span.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
            assert_eq!(span.span_id().to_string(), "00f067aa0ba902b7");
            assert!(span.is_sampled() && span.is_remote());
            for bad in
                ["", "00", "00-0-0-0", "00-00000000000000000000000000000000-0000000000000000-01", "00-x-y-z"]
            {
                assert!(parse(bad).is_none(), "{bad}");
            }
        }
    }
}

#[cfg(not(feature = "otel"))]
mod without {
    use std::sync::Arc;

    use crate::attempt::Attempt;
    use crate::outcome::Outcome;

    pub(crate) struct Trace;

    impl Trace {
        pub fn begin(_attempts: &[Arc<Attempt>]) -> Self {
            Self
        }

        pub async fn around<F: Future>(&self, call: F) -> F::Output {
            call.await
        }

        pub fn ended(&self, _outcome: Option<&Outcome>) {}
    }

    pub(crate) fn attached<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
        work
    }
}
