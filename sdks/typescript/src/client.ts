/**
 * The client: submits jobs, waits for them, and manages schedules and workflows. It needs nothing but web `fetch`.
 *
 * Every call can be repeated: a submission carries an idempotency key of its own, and the rest has the same effect twice.
 */

import { Api, type Call } from "./api.js";
import { type Duration, milliseconds, wireDuration } from "./duration.js";
import { type ConnectionOptions, readConnection } from "./environment.js";
import { ConfigurationError, InvalidData, JobCancelled, JobFailed, TickwheelError, WaitTimeout } from "./errors.js";
import type { components } from "./generated/api.js";
import { JobType, type NewJob, type SubmitOptions, wireJob } from "./job-type.js";
import { type Camel, camel } from "./json.js";
import { problemError } from "./problem-error.js";
import { Problem } from "./problems.js";
import { Schedules } from "./schedules.js";
import { validate } from "./schema.js";
import { currentTraceparent, loadTelemetry, type OpenTelemetry } from "./telemetry.js";
import { fetchTransport, nodeTransport, type Transport } from "./transport.js";
import { Workflows } from "./workflows.js";

type Wire = components["schemas"];

/** A job as the server knows it. */
export type Job = Camel<Wire["Job"]>;

/** How a client is made. Everything has a default. */
export interface ClientOptions extends ConnectionOptions {
  /** For how long a call is repeated while the server is away. Default 30 s. */
  timeout?: Duration;
  /** The tenant, for an admin key. */
  tenant?: string;
  /** Another `fetch`. */
  fetch?: typeof globalThis.fetch;
  /** The program's `@opentelemetry/api`. Found by itself unless the program is bundled. */
  telemetry?: OpenTelemetry;
}

/** What became of one job of `submitMany`. */
export type SubmitResult<R> =
  | { readonly handle: JobHandle<R>; readonly error?: undefined }
  | { readonly handle?: undefined; readonly error: TickwheelError };

const BATCH_JOBS_MAX = 10_000;
const BATCH_BYTES_MAX = 15 * 1024 * 1024;
const WAIT_STEP_MS = 20_000;
const UNTYPED = new JobType<never, unknown, never, unknown>("", {}, {});

/** Talks to a Tickwheel server. */
export class Client {
  /** Creates, changes and reads schedules. */
  readonly schedules: Schedules;
  /** Stores workflows and runs them. */
  readonly workflows: Workflows;
  private readonly api: Api;
  private readonly withinMs: number;
  private readonly tenant: string | undefined;
  private readonly telemetry: () => Promise<OpenTelemetry | undefined>;

  constructor(options: ClientOptions = {}) {
    const mistakes: string[] = [];
    const connection = readConnection(options, mistakes);
    if (mistakes.length > 0) throw new ConfigurationError(mistakes);
    this.api = new Api(connection, transportOf(options, connection.ca));
    this.withinMs = milliseconds(options.timeout ?? "30s");
    this.tenant = options.tenant;
    const telemetry = options.telemetry;
    this.telemetry = telemetry ? () => Promise.resolve(telemetry) : loadTelemetry;
    this.schedules = new Schedules((method, path, call) => this.call(method, path, call));
    this.workflows = new Workflows((method, path, call) => this.call(method, path, call));
  }

  /** Submits a job. When the promise resolves, the job is on disk. */
  async submit<P, R>(
    type: JobType<P, unknown, never, R>,
    payload: P,
    options: SubmitOptions = {},
  ): Promise<JobHandle<R>> {
    const job = await wireJob({ type: type, payload, options });
    const body = { idempotency_key: newKey(), ...job };
    const stored = await this.call<Wire["Job"]>("POST", "/api/v1/jobs", { body });
    return new JobHandle(this, type, stored.id);
  }

  /** Submits many jobs in as few requests as possible. Each has a result of its own, in order. */
  async submitMany<R>(jobs: readonly NewJob<R>[]): Promise<SubmitResult<R>[]> {
    const results: SubmitResult<R>[] = new Array(jobs.length);
    let chunk: { index: number; text: string }[] = [];
    let bytes = 0;
    const send = async () => {
      if (chunk.length > 0) await this.submitChunk(jobs, chunk, results);
      chunk = [];
      bytes = 0;
    };
    for (const [index, job] of jobs.entries()) {
      const text = await wireText(job);
      if (text instanceof InvalidData) {
        results[index] = { error: text };
        continue;
      }
      const length = new TextEncoder().encode(text).length + 1;
      if (chunk.length >= BATCH_JOBS_MAX || bytes + length > BATCH_BYTES_MAX) await send();
      chunk.push({ index, text });
      bytes += length;
    }
    await send();
    return results;
  }

  private async submitChunk<R>(
    jobs: readonly NewJob<R>[],
    chunk: readonly { index: number; text: string }[],
    results: SubmitResult<R>[],
  ): Promise<void> {
    const bodyText = `{"jobs":[${chunk.map((item) => item.text).join(",")}]}`;
    let items: Wire["BatchItem"][];
    try {
      items = (await this.call<Wire["BatchResult"]>("POST", "/api/v1/jobs/batch", { bodyText })).results;
    } catch (error) {
      if (!(error instanceof TickwheelError)) throw error;
      for (const { index } of chunk) results[index] = { error };
      return;
    }
    for (const [position, { index }] of chunk.entries()) {
      const item = items[position];
      const job = jobs[index] as NewJob<R>;
      if (item && "job" in item) results[index] = { handle: new JobHandle(this, job.type, item.job.id) };
      else results[index] = { error: problemError(item?.error, item?.error.status ?? 500) };
    }
  }

  /** A handle for a job that was submitted before; with its type, `wait` knows the type of the result. */
  handle<R = unknown>(id: string, type?: JobType<never, unknown, never, R>): JobHandle<R> {
    return new JobHandle(this, (type ?? UNTYPED) as NewJob<R>["type"], id);
  }

  /** The job with this id. */
  async get(id: string): Promise<Job> {
    return camel(await this.call<Wire["Job"]>("GET", `/api/v1/jobs/${encodeURIComponent(id)}`));
  }

  /** Cancels a job; a running one is asked to stop. */
  async cancel(id: string): Promise<Job> {
    return this.change(id, "cancel", (job) => job.status === "cancelled" || job.cancel_requested);
  }

  /** Runs a failed or cancelled job again, with all its retries. */
  async retry(id: string): Promise<Job> {
    return this.change(id, "retry", (job) => job.status !== "failed" && job.status !== "cancelled");
  }

  private async change(id: string, verb: string, done: (job: Wire["Job"]) => boolean): Promise<Job> {
    const path = `/api/v1/jobs/${encodeURIComponent(id)}`;
    const recover = async () => {
      const job = await this.call<Wire["Job"]>("GET", path);
      return done(job) ? job : undefined;
    };
    return camel(await this.call<Wire["Job"]>("POST", `${path}/${verb}`, { body: {}, recover }));
  }

  /** The job once it has ended, or `undefined` after `withinMs`. */
  async ended(id: string, withinMs: number): Promise<Job | undefined> {
    const end = performance.now() + withinMs;
    for (;;) {
      const leftMs = Math.max(0, end - performance.now());
      const step = Math.min(leftMs, WAIT_STEP_MS);
      try {
        const path = `/api/v1/jobs/${encodeURIComponent(id)}?wait=${wireDuration(step)}`;
        const call = { timeoutMs: step + 10_000 };
        return camel(await this.call<Wire["Job"]>("GET", path, call));
      } catch (error) {
        if (!(error instanceof Problem && error.code === "wait_timeout")) throw error;
        if (leftMs <= step) return undefined;
        // Somebody between us and the server does not wait.
        if (end - performance.now() > leftMs - WAIT_STEP_MS / 2)
          await new Promise((resolve) => setTimeout(resolve, 500));
      }
    }
  }

  private async call<T>(
    method: string,
    path: string,
    call: Call & { recover?: () => Promise<T | undefined> } = {},
  ): Promise<T> {
    const traceparent = method === "GET" ? undefined : currentTraceparent(await this.telemetry());
    const headers = {
      ...(this.tenant !== undefined && { "tickwheel-tenant": this.tenant }),
      ...(traceparent !== undefined && { traceparent }),
    };
    return (await this.api.repeat<T>(method, path, { ...call, headers, withinMs: this.withinMs })).body;
  }
}

/** A job that was submitted. */
export class JobHandle<R = unknown> {
  /** Its id. */
  readonly id: string;
  private readonly client: Client;
  private readonly type: NewJob<R>["type"];

  constructor(client: Client, type: NewJob<R>["type"], id: string) {
    this.client = client;
    this.type = type;
    this.id = id;
  }

  /**
   * Its result, as soon as it has completed. Throws `JobFailed`, `JobCancelled`, or `WaitTimeout` if it has not ended
   * within this time (default 5 minutes).
   */
  async wait(timeout: Duration = "5m"): Promise<R> {
    const withinMs = milliseconds(timeout);
    const job = await this.client.ended(this.id, withinMs);
    if (!job) throw new WaitTimeout(this.id, withinMs);
    if (job.status === "cancelled") throw new JobCancelled(this.id);
    if (job.status !== "completed") {
      throw new JobFailed(this.id, job.error?.code ?? job.status, job.error?.message ?? `job ${this.id} ${job.status}`);
    }
    const checked = await validate(this.type.result, job.result);
    if ("problem" in checked) {
      throw new InvalidData("result_invalid", `result of ${this.type.name} ${this.id}: ${checked.problem}`);
    }
    return checked.value;
  }

  /** The job as it is now. */
  get(): Promise<Job> {
    return this.client.get(this.id);
  }

  /** Cancels it; a running one is asked to stop. */
  cancel(): Promise<Job> {
    return this.client.cancel(this.id);
  }

  /** Runs it again, with all its retries. */
  retry(): Promise<Job> {
    return this.client.retry(this.id);
  }
}

function transportOf(options: ClientOptions, ca: string | undefined): Transport {
  if (ca !== undefined && !options.fetch) return nodeTransport(ca);
  return fetchTransport(options.fetch);
}

async function wireText(job: NewJob): Promise<string | InvalidData> {
  try {
    return JSON.stringify({ idempotency_key: newKey(), ...(await wireJob(job)) });
  } catch (error) {
    if (error instanceof InvalidData) return error;
    throw error;
  }
}

/** A key for one call. Browsers have `randomUUID` only on secure pages. */
export function newKey(): string {
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
