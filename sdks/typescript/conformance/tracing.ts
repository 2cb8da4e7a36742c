/** With `CONFORMANCE_OTEL=1`, every ended span is recorded as an event. */

import { record } from "./events.js";

interface EndedSpan {
  name: string;
  spanContext(): { traceId: string; spanId: string };
  parentSpanContext?: { spanId: string };
  links: { context: { traceId: string; spanId: string } }[];
}

export async function installTracing(): Promise<void> {
  if (process.env.CONFORMANCE_OTEL !== "1") return;
  const { NodeTracerProvider } = await import("@opentelemetry/sdk-trace-node");
  const processor = {
    onStart: () => undefined,
    onEnd: (span: unknown) => ended(span as EndedSpan),
    forceFlush: async () => undefined,
    shutdown: async () => undefined,
  };
  new NodeTracerProvider({ spanProcessors: [processor] }).register();
}

function ended(span: EndedSpan): void {
  const { traceId, spanId } = span.spanContext();
  record("span", {
    name: span.name,
    trace_id: traceId,
    span_id: spanId,
    parent_span_id: span.parentSpanContext?.spanId ?? null,
    links: span.links.map(({ context }) => ({ trace_id: context.traceId, span_id: context.spanId })),
  });
}
