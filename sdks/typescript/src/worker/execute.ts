/**
 * Runs handlers: payloads are checked, middleware runs around, results and errors become outcomes. Nothing here knows of
 * servers, so a test runs exactly what a worker runs.
 */

import { Cancelled } from "../errors.js";
import { validate } from "../schema.js";
import { inSpan, type OpenTelemetry } from "../telemetry.js";
import { type BatchContext, type Context, running } from "./context.js";
import type { Logger } from "./log.js";
import { completed, failed, isDecision, type Outcome, stopped, thrown } from "./outcome.js";
import type { BatchEntry, Middleware, Registration } from "./registry.js";

/** What all attempts of a worker share. */
export interface Surroundings {
  readonly middleware: readonly Middleware<unknown>[];
  readonly resultBytesMax: number;
  readonly telemetry: OpenTelemetry | undefined;
  readonly log: Logger;
}

/** Runs the handler of one job. Never throws. */
export async function execute(handler: Registration, ctx: Context, around: Surroundings): Promise<Outcome> {
  const payload = await checkedPayload(handler, ctx);
  if ("status" in payload) return payload;
  const call = () => (handler.single as NonNullable<Registration["single"]>)(payload.value, ctx);
  return spanned(handler, [ctx], around, async () => {
    const end = await chain(ctx, around, call);
    if ("error" in end) return outcomeOfError(end.error, ctx, handler);
    return outcomeOfResult(end.value, handler, around);
  });
}

/** Runs the handler of a batch. One outcome per context, in order. Never throws. */
export async function executeBatch(
  handler: Registration,
  each: readonly Context[],
  batch: (valid: readonly Context[]) => BatchContext,
  around: Surroundings,
): Promise<Outcome[]> {
  const payloads = await Promise.all(each.map((ctx) => checkedPayload(handler, ctx)));
  const valid = each.filter((_, index) => !("status" in (payloads[index] as object)));
  const values = payloads.flatMap((payload) => ("status" in payload ? [] : [payload.value]));
  const outcomes = valid.length > 0 ? await executeValid(handler, valid, values, batch(valid), around) : [];
  let next = 0;
  return payloads.map((payload) => ("status" in payload ? payload : (outcomes[next++] as Outcome)));
}

async function executeValid(
  handler: Registration,
  each: readonly Context[],
  values: unknown[],
  ctx: BatchContext,
  around: Surroundings,
): Promise<Outcome[]> {
  let outcomes: Outcome[] = [];
  await spanned(handler, each, around, async () => {
    const call = () => (handler.batch as NonNullable<Registration["batch"]>)(values, ctx);
    const end = await chain(ctx, around, call);
    if ("error" in end) outcomes = each.map((one) => outcomeOfError(end.error, one, handler));
    else outcomes = await outcomesOfEntries(end.value, each, handler, around);
    return outcomes.find((outcome) => outcome.status === "failed") ?? { status: "completed", resultText: "null" };
  });
  return outcomes;
}

async function outcomesOfEntries(
  entries: unknown,
  each: readonly Context[],
  handler: Registration,
  around: Surroundings,
): Promise<Outcome[]> {
  if (!Array.isArray(entries) || entries.length !== each.length) {
    const got = Array.isArray(entries) ? `${entries.length} entries` : typeof entries;
    const text = `the batch handler answered ${got} for ${each.length} jobs`;
    return each.map(() => failed("batch_result_mismatch", text, true));
  }
  return Promise.all(
    each.map((ctx, index) => {
      const end = settled(entries[index] as BatchEntry<unknown>);
      return "error" in end ? outcomeOfError(end.error, ctx, handler) : outcomeOfResult(end.value, handler, around);
    }),
  );
}

type End = { value: unknown } | { error: unknown };

function settled(entry: BatchEntry<unknown>): End {
  if (entry instanceof Error) return { error: entry };
  if (typeof entry === "object" && entry !== null && "status" in entry) {
    if (entry.status === "fulfilled" && "value" in entry) return { value: entry.value };
    if (entry.status === "rejected" && "reason" in entry) return { error: entry.reason };
  }
  return { value: entry };
}

async function checkedPayload(handler: Registration, ctx: Context): Promise<{ value: unknown } | Outcome> {
  try {
    const checked = await validate(handler.type.payload, ctx.job.payload);
    if ("problem" in checked) return failed("invalid_payload", checked.problem, false);
    return checked;
  } catch (error) {
    return failed("invalid_payload", `the schema failed: ${String(error)}`, false);
  }
}

async function outcomeOfResult(value: unknown, handler: Registration, around: Surroundings): Promise<Outcome> {
  try {
    const checked = await validate(handler.type.result, value);
    if ("problem" in checked) return failed("result_invalid", checked.problem, false);
    return completed(value, around.resultBytesMax);
  } catch (error) {
    return failed("result_invalid", `the result could not be checked: ${String(error)}`, false);
  }
}

/**
 * A handler that throws after it was cancelled has stopped, however the libraries that it uses wrap the reason, unless
 * it says what is to become of the job. A `Cancelled` that the worker did not cause is a failure like any other.
 */
function outcomeOfError(error: unknown, ctx: Context, handler: Registration): Outcome {
  const reason = ctx.signal.reason instanceof Cancelled ? ctx.signal.reason.reason : undefined;
  if (reason !== undefined && !isDecision(error)) return stopped(reason);
  return thrown(error, handler.notRetryable);
}

/** Runs middleware and handler. Once the handler has returned, an error of a middleware is only logged. */
async function chain(ctx: Context, around: Surroundings, handler: () => unknown): Promise<End> {
  let end: End | undefined;
  const innermost = async (): Promise<unknown> => {
    try {
      const value = await handler();
      end = { value };
      return value;
    } catch (error) {
      end = { error };
      throw error;
    }
  };
  const next = (index: number): Promise<unknown> => {
    const middleware = around.middleware[index];
    return middleware ? (async () => middleware(ctx, () => next(index + 1)))() : innermost();
  };
  return running.run(ctx, async (): Promise<End> => {
    try {
      const value = await next(0);
      return end ?? { value };
    } catch (error) {
      if (!end || "error" in end) return { error };
      const facts = { job_id: ctx.job.id, type: ctx.job.type, attempt: ctx.attempt, error: String(error) };
      around.log.error("middleware failed after the handler had returned", facts);
      return end;
    }
  });
}

function spanned(
  handler: Registration,
  each: readonly Context[],
  around: Surroundings,
  body: () => Promise<Outcome>,
): Promise<Outcome> {
  const first = each[0] as Context;
  const facts = {
    type: handler.type.name,
    jobId: first.job.id,
    attempt: first.attempt,
    queue: first.job.queue,
  };
  const traceparents = each.map((ctx) => ctx.traceparent);
  return inSpan(around.telemetry, facts, traceparents, body, (outcome) =>
    outcome.status === "failed" ? new Error(outcome.error.message) : undefined,
  );
}
