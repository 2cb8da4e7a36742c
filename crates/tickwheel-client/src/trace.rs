//! The trace of the caller. Without the feature `otel` there is none.

/// The W3C trace context of the span that is current here.
#[cfg(feature = "otel")]
pub(crate) fn current_traceparent() -> Option<String> {
    use opentelemetry::trace::TraceContextExt as _;

    let context = opentelemetry::Context::current();
    let span = context.span().span_context().clone();
    let (trace_id, span_id, flags) = (span.trace_id(), span.span_id(), span.trace_flags().to_u8());
    span.is_valid().then(|| format!("00-{trace_id}-{span_id}-{flags:02x}"))
}

#[cfg(not(feature = "otel"))]
pub(crate) fn current_traceparent() -> Option<String> {
    None
}
