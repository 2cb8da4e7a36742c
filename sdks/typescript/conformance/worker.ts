/**
 * The worker program of the conformance scenario: sdks/conformance/README.md says what it has to do. It uses the library
 * the way a user would.
 */

import { appendFileSync } from "node:fs";
import { NotRetryable, RetryAfter, Snooze } from "tickwheel";
import { type Context, Worker } from "tickwheel/worker";
import { record, recordFor } from "./events.js";
import * as jobs from "./jobs.js";
import { installTracing } from "./tracing.js";

class ConformanceError extends Error {}
class ListedError extends Error {}

const EVENTS = process.env.CONFORMANCE_EVENTS;
if (EVENTS !== undefined) appendFileSync(EVENTS, "");

/** Waits; when it is cancelled meanwhile, records that and ends as a cancelled handler does. */
async function sleep(ctx: Context, ms: number): Promise<void> {
  try {
    await ctx.sleep(ms);
  } catch (error) {
    recordFor(ctx, "cancelled", { reason: ctx.cancelReason });
    throw error;
  }
}

/** An error of the handler's own. */
function raise(ctx: Context, error: Error): never {
  recordFor(ctx, "error", { error: error.constructor.name });
  throw error;
}

function start(ctx: Context): void {
  recordFor(ctx, "start", { traceparent: ctx.traceparent ?? null });
}

function end<R>(ctx: Context, result: R): R {
  recordFor(ctx, "end", {});
  return result;
}

async function fail(ctx: Context, how: string): Promise<unknown> {
  const text = `asked to fail, attempt ${ctx.attempt}`;
  if (how === "panic") {
    recordFor(ctx, "error", { error: "string" });
    throw text;
  }
  if (how === "rejection") {
    recordFor(ctx, "error", { error: "ConformanceError" });
    void Promise.reject(new ConformanceError(text));
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    return null;
  }
  if (how === "not_json") return 1n;
  return raise(ctx, new ConformanceError(text));
}

function block(ms: number, how: string): void {
  if (how === "sleep") {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    return;
  }
  const until = performance.now() + ms;
  while (performance.now() < until) Math.sqrt(until);
}

function makeWorker(): Worker {
  const worker = new Worker({ logLevel: process.env.CONFORMANCE_LOG === "debug" ? "debug" : "info" });

  worker.handle(jobs.echo, (payload, ctx) => {
    start(ctx);
    const keys = typeof payload === "object" && payload !== null ? Object.keys(payload) : [];
    const bytes = keys.length === 1 ? (payload as { make_bytes?: unknown }).make_bytes : undefined;
    return end(ctx, typeof bytes === "number" ? "x".repeat(bytes - 2) : payload);
  });

  const capacity = process.env.CONFORMANCE_SLEEP_CAPACITY;
  worker.handle(
    jobs.sleep,
    async ({ for_ms }, ctx) => {
      start(ctx);
      await sleep(ctx, for_ms);
      return end(ctx, { slept_ms: for_ms });
    },
    {
      ...(capacity && { capacity: Number(capacity) }),
      onLeaseLost: process.env.CONFORMANCE_ON_LEASE_LOST === "continue" ? "continue" : "cancel",
    },
  );

  worker.handle(jobs.block, async ({ for_ms, how }, ctx) => {
    start(ctx);
    await new Promise((resolve) => setTimeout(resolve, 100));
    block(for_ms, how);
    return end(ctx, { blocked_ms: for_ms });
  });

  worker.handle(jobs.fail, async ({ times, how }, ctx) => {
    start(ctx);
    if (ctx.attempt <= times) return fail(ctx, how);
    return end(ctx, { attempt: ctx.attempt });
  });

  worker.handle(
    jobs.reject,
    ({ how, code }, ctx) => {
      start(ctx);
      return raise(ctx, how === "listed" ? new ListedError("listed") : new NotRetryable("rejected", { code }));
    },
    { notRetryable: [ListedError] },
  );

  worker.handle(jobs.retryAfter, ({ delay_ms, times }, ctx) => {
    start(ctx);
    if (ctx.attempt <= times) raise(ctx, new RetryAfter(delay_ms, "later"));
    return end(ctx, { attempt: ctx.attempt });
  });

  worker.handle(jobs.snooze, ({ delay_ms, times }, ctx) => {
    start(ctx);
    if (ctx.attempt <= times) raise(ctx, new Snooze(delay_ms));
    return end(ctx, { attempt: ctx.attempt });
  });

  worker.handle(jobs.progress, async ({ steps, every_ms }, ctx) => {
    start(ctx);
    for (let step = 1; step <= steps; step += 1) {
      ctx.progress((100 * step) / steps, `step ${step}`);
      await sleep(ctx, every_ms);
    }
    return end(ctx, { steps });
  });

  worker.handle(jobs.log, async ({ lines, bytes, every_ms }, ctx) => {
    start(ctx);
    for (let line = 1; line <= lines; line += 1) {
      ctx.log.info(`line ${line} `.padEnd(bytes, "x"));
      if (every_ms > 0) await sleep(ctx, every_ms);
    }
    return end(ctx, { lines });
  });

  worker.handle(jobs.once, async (payload, ctx) => {
    start(ctx);
    const effect = async (key: string) => {
      recordFor(ctx, "effect", { idempotency_key: key });
      if (payload.die && ctx.attempt === 1) process.exit(9);
      if (payload.hold_ms > 0) await sleep(ctx, payload.hold_ms);
      return { effect: key };
    };
    const results: unknown[] = [];
    for (let call = 0; call < payload.calls; call += 1) {
      results.push(await ctx.once(payload.key, effect, { scope: payload.scope, inDoubt: payload.in_doubt }));
    }
    if (ctx.attempt <= payload.fail_times) await fail(ctx, "error");
    return end(ctx, results);
  });

  worker.handle(jobs.exit, ({ code }, ctx) => {
    start(ctx);
    process.exit(code);
  });

  worker.handle(jobs.stubborn, async ({ for_ms }, ctx) => {
    start(ctx);
    await new Promise((resolve) => setTimeout(resolve, for_ms));
    return end(ctx, { slept_ms: for_ms });
  });

  const seen = new Map<number, number>();
  worker.handleBatch(jobs.batchEcho, { jobsMax: 100, waitMax: "50ms" }, (payloads) => {
    record("batch", { type: "batch_echo", ns: payloads.map(({ n }) => n) });
    let short = false;
    let raises = false;
    const entries = payloads.map(({ n, how, times }) => {
      const count = (seen.get(n) ?? 0) + 1;
      seen.set(n, count);
      if (count > times) return n;
      short ||= how === "short";
      raises ||= how === "raise";
      return how === "fail" ? new ConformanceError(`entry ${n}`) : n;
    });
    if (raises) throw new ConformanceError("the whole batch");
    return short ? entries.slice(0, -1) : entries;
  });
  return worker;
}

if (process.argv[2] === "submit") {
  const { submit } = await import("./submit.js");
  await submit(process.argv[3] ?? "");
} else {
  await installTracing();
  await makeWorker().run();
}
