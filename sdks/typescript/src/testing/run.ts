/** Runs one handler without a server: JSON both ways, middleware and error rules are those of a worker. */

import type { Client, Job } from "../client.js";
import { type Duration, milliseconds } from "../duration.js";
import { Cancelled, type CancelReason, InvalidData, LeaseLost } from "../errors.js";
import { type JobType, jsonText, PAYLOAD_BYTES_MAX } from "../job-type.js";
import { nowMs } from "../worker/clock.js";
import { type AttemptHost, BatchContext, Context, type OnceOptions } from "../worker/context.js";
import { execute, executeBatch, type Surroundings } from "../worker/execute.js";
import type { LogLevel } from "../worker/log.js";
import { idempotencyKey, resultText } from "../worker/once.js";
import type { Outcome as Ended, FailureError } from "../worker/outcome.js";
import type { Registration } from "../worker/registry.js";
import { DEFAULT_LIMITS } from "../worker/wire.js";
import { registryOf, type Worker } from "../worker/worker.js";
import { RecordingClient } from "./recording-client.js";

/** What a test can say about the attempt. */
export interface RunOptions<S> {
  /** `ctx.state`. */
  state?: S;
  /** The number of the attempt. Default 1. */
  attempt?: number;
  /** `ctx.client`. Default: a `RecordingClient`. */
  client?: Client;
  /** How much time the attempt has. Default: the job type's timeout, else 5 minutes. */
  timeout?: Duration;
  /** Cancels the attempt after `cancelAfter` (default: at once). */
  cancel?: CancelReason;
  /** When `cancel` happens. */
  cancelAfter?: Duration;
  /** `ctx.draining`. */
  draining?: boolean;
  /** What differs in `ctx.job`. */
  job?: Partial<Job>;
  /** What `ctx.once` remembers, by key; kept up to date. */
  once?: Map<string, unknown>;
}

/** How the attempt ended, as the server would learn it. */
export interface Outcome<R> {
  /** The outcome that a worker would report. */
  readonly status: "completed" | "failed" | "snoozed" | "cancelled" | "released";
  /** The result of a completed one, after it was JSON. */
  readonly result: R | undefined;
  /** Why it failed. */
  readonly error: FailureError | undefined;
  /** Whether a retry could help. */
  readonly retryable: boolean | undefined;
  /** How long to wait before the next attempt, in milliseconds, if the handler said so. */
  readonly delayMs: number | undefined;
  /** The lines of `ctx.log`. */
  readonly logs: readonly { level: LogLevel; message: string; fields: Readonly<Record<string, unknown>> | undefined }[];
  /** The calls of `ctx.progress`. */
  readonly progress: readonly { percent: number; message: string | undefined }[];
}

/** Runs the worker's handler of a job type. */
export async function run<P, RI, RO, S>(
  worker: Worker<S>,
  type: JobType<P, unknown, RI, RO>,
  payload: P,
  options: RunOptions<S> = {},
): Promise<Outcome<RO>> {
  const registry = registryOf(worker as unknown as Worker<never>);
  const handler = registry.handlers.get(type.name);
  if (!handler) throw new Error(`the worker has no handler for "${type.name}"`);
  const text = jsonText(payload, "invalid_payload", "the payload");
  if (Buffer.byteLength(text) > PAYLOAD_BYTES_MAX)
    throw new InvalidData("payload_too_large", "the payload is too large");
  const bench = new Bench(handler, JSON.parse(text), options as RunOptions<unknown>);
  const around: Surroundings = {
    middleware: registry.middleware,
    resultBytesMax: DEFAULT_LIMITS.result_bytes,
    telemetry: undefined,
    log: { debug() {}, info() {}, warn() {}, error: (message) => bench.log("error", message, undefined) },
  };
  const [ended] = handler.batch
    ? await executeBatch(handler, [bench.context], (valid) => bench.batch(valid), around)
    : [await execute(handler, bench.context, around)];
  bench.end();
  return outcome<RO>(ended as Ended, bench);
}

/** An attempt without a server. */
class Bench implements AttemptHost {
  readonly logs: { level: LogLevel; message: string; fields: Readonly<Record<string, unknown>> | undefined }[] = [];
  readonly news: { percent: number; message: string | undefined }[] = [];
  readonly context: Context;
  private readonly options: RunOptions<unknown>;
  private readonly facts: ConstructorParameters<typeof Context>[0];
  private readonly controller = new AbortController();
  private readonly surroundings: { state: unknown; client: Client; signal: AbortSignal };
  private readonly timers: NodeJS.Timeout[] = [];
  private readonly remembered: Map<string, unknown>;

  constructor(handler: Registration, payload: unknown, options: RunOptions<unknown>) {
    this.options = options;
    this.remembered = options.once ?? new Map();
    const attempt = options.attempt ?? 1;
    const timeoutMs = milliseconds(options.timeout ?? handler.type.defaults.timeout ?? "5m");
    const job = { ...blankJob(handler, attempt), ...options.job, payload };
    this.facts = { job, attempt, fencingToken: attempt, deadlineMs: nowMs() + timeoutMs, traceparent: undefined };
    const client = options.client ?? new RecordingClient();
    this.surroundings = { state: options.state, client, signal: this.controller.signal };
    this.context = new Context(this.facts, this, this.surroundings);
    this.cancelAfter(timeoutMs, "deadline");
    if (options.cancel) this.cancelAfter(milliseconds(options.cancelAfter ?? 0), options.cancel);
  }

  private cancelAfter(ms: number, reason: CancelReason): void {
    const cancel = () => this.controller.abort(reason === "lease_lost" ? new LeaseLost() : new Cancelled(reason));
    if (ms === 0) cancel();
    else this.timers.push(setTimeout(cancel, ms));
  }

  batch(each: readonly Context[]): BatchContext {
    return new BatchContext(this.facts, this, this.surroundings, each);
  }

  end(): void {
    this.context.end();
    for (const timer of this.timers) clearTimeout(timer);
  }

  progress(percent: number, message: string | undefined): void {
    this.news.push({ percent, message });
  }

  log(level: LogLevel, message: string, fields: Readonly<Record<string, unknown>> | undefined): void {
    this.logs.push({ level, message, fields });
  }

  async prove(): Promise<void> {}

  async once(key: string, effect: (key: string) => unknown, options: OnceOptions): Promise<unknown> {
    if (this.remembered.has(key)) return this.remembered.get(key);
    const result = await effect(idempotencyKey(this.facts.job.id, key, options.scope ?? "job"));
    this.remembered.set(key, JSON.parse(resultText(key, result)));
    return result;
  }

  draining(): boolean {
    return this.options.draining ?? false;
  }
}

function blankJob(handler: Registration, attempt: number): Job {
  const { defaults, name } = handler.type;
  const now = new Date().toISOString();
  return {
    id: "01930000-0000-7000-8000-000000000000",
    type: name,
    status: "running",
    queue: defaults.queue ?? "default",
    priority: defaults.priority ?? "normal",
    tenant: "default",
    executeAt: now,
    createdAt: now,
    attempt,
    retries: attempt - 1,
    maxRetries: defaults.maxRetries ?? defaults.retry?.maxRetries ?? 3,
    cancelRequested: false,
    tags: [...(defaults.tags ?? [])],
    metadata: { ...defaults.metadata },
    target: { worker: {} },
    retry: {},
    timeout: "300s",
    delivery: defaults.delivery ?? "at_least_once",
    dependsOn: [],
  } as unknown as Job;
}

function outcome<R>(ended: Ended, bench: Bench): Outcome<R> {
  return {
    status: ended.status,
    result: ended.status === "completed" ? (JSON.parse(ended.resultText) as R) : undefined,
    error: ended.status === "failed" ? ended.error : undefined,
    retryable: ended.status === "failed" ? ended.retryable : undefined,
    delayMs: "delayMs" in ended ? ended.delayMs : undefined,
    logs: bench.logs,
    progress: bench.news,
  };
}
