/**
 * Traces, if the program has OpenTelemetry: the submitter's `traceparent` goes along with a job, and each attempt is one
 * span. Attribute names are all here, because the messaging conventions are still in development.
 */

/** The part of `@opentelemetry/api` that is used here. */
export interface OpenTelemetry {
  readonly context: {
    active(): unknown;
    with<T>(context: never, callback: () => T): T;
  };
  readonly propagation: {
    inject(context: never, carrier: Record<string, string>): void;
    extract(context: never, carrier: Record<string, string>): unknown;
  };
  readonly trace: {
    getTracer(name: string): unknown;
    setSpan(context: never, span: never): unknown;
    getSpanContext(context: never): unknown;
  };
  readonly ROOT_CONTEXT: unknown;
  readonly SpanKind: { readonly CONSUMER: number };
  readonly SpanStatusCode: { readonly ERROR: number };
}

/** What a span is called and what it carries. */
export interface AttemptFacts {
  readonly type: string;
  readonly jobId: string;
  readonly attempt: number;
  readonly queue: string;
}

const attributes = (facts: AttemptFacts, batch: number) => ({
  "messaging.system": "tickwheel",
  "messaging.operation.name": "process",
  "messaging.operation.type": "process",
  "messaging.destination.name": facts.queue,
  "tickwheel.job.type": facts.type,
  ...(batch === 1
    ? { "messaging.message.id": facts.jobId, "tickwheel.job.attempt": facts.attempt }
    : { "messaging.batch.message_count": batch }),
});

interface Tracer {
  startSpan(name: string, options: object, context: unknown): Span;
}

interface Span {
  setStatus(status: { code: number; message?: string }): unknown;
  recordException(error: Error): void;
  end(): void;
}

let loading: Promise<OpenTelemetry | undefined> | undefined;

/** The program's `@opentelemetry/api`, if it has one. Bundled programs pass it as an option instead. */
export function loadTelemetry(): Promise<OpenTelemetry | undefined> {
  // Not a literal: a bundler must not insist on an optional package.
  const name = "@opentelemetry/api";
  loading ??= import(name).then(
    (api: OpenTelemetry) => api,
    () => undefined,
  );
  return loading;
}

/** What the attempt that runs here was given, when the caller is inside a handler. Set by the worker. */
export const ambient: { traceparent: () => string | undefined } = { traceparent: () => undefined };

/** The `traceparent` of the caller: of the current span, else of the job that is being handled. */
export function currentTraceparent(telemetry: OpenTelemetry | undefined): string | undefined {
  const carrier: Record<string, string> = {};
  telemetry?.propagation.inject(telemetry.context.active() as never, carrier);
  return carrier.traceparent ?? ambient.traceparent();
}

/** Runs `body` inside a consumer span, child of the job's `traceparent`; a batch has a link for each job instead. */
export async function inSpan<T>(
  telemetry: OpenTelemetry | undefined,
  facts: AttemptFacts,
  traceparents: readonly (string | undefined)[],
  body: () => Promise<T>,
  failure: (value: T) => Error | undefined,
): Promise<T> {
  if (!telemetry) return body();
  const root = telemetry.ROOT_CONTEXT as never;
  const parents = traceparents.map((traceparent) =>
    traceparent === undefined ? root : (telemetry.propagation.extract(root, { traceparent }) as never),
  );
  const single = parents.length === 1;
  const links = single ? [] : parents.map((parent) => telemetry.trace.getSpanContext(parent)).filter(Boolean);
  const tracer = telemetry.trace.getTracer("tickwheel") as Tracer;
  const parent = (single ? parents[0] : root) as never;
  const span = tracer.startSpan(
    `process ${facts.type}`,
    {
      kind: telemetry.SpanKind.CONSUMER,
      attributes: attributes(facts, parents.length),
      links: links.map((context) => ({ context })),
    },
    parent,
  );
  try {
    const value = await telemetry.context.with(telemetry.trace.setSpan(parent, span as never) as never, body);
    const error = failure(value);
    if (error) {
      span.recordException(error);
      span.setStatus({ code: telemetry.SpanStatusCode.ERROR, message: error.message });
    }
    return value;
  } finally {
    span.end();
  }
}
