//! With `CONFORMANCE_OTEL=1`, every span that ends is an event.

use std::time::Duration;

use opentelemetry::trace::SpanId;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, Span, SpanData, SpanProcessor};
use serde_json::json;

use crate::events::record_alone;

#[derive(Debug)]
struct Recorder;

impl SpanProcessor for Recorder {
    fn on_start(&self, _span: &mut Span, _context: &opentelemetry::Context) {}

    fn on_end(&self, span: SpanData) {
        let parent = (span.parent_span_id != SpanId::INVALID).then(|| span.parent_span_id.to_string());
        let link = |link: &opentelemetry::trace::Link| {
            let (trace_id, span_id) = (link.span_context.trace_id(), link.span_context.span_id());
            json!({"trace_id": trace_id.to_string(), "span_id": span_id.to_string()})
        };
        let links: Vec<_> = span.links.iter().map(link).collect();
        record_alone(
            "span",
            json!({
                "name": span.name, "trace_id": span.span_context.trace_id().to_string(),
                "span_id": span.span_context.span_id().to_string(), "parent_span_id": parent, "links": links,
            }),
        );
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Installs the SDK, if it is asked for.
pub fn install() {
    if std::env::var("CONFORMANCE_OTEL").is_ok_and(|asked| asked == "1") {
        opentelemetry::global::set_tracer_provider(
            SdkTracerProvider::builder().with_span_processor(Recorder).build(),
        );
    }
}
