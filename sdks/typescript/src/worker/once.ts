/** `ctx.once`: an effect that must not happen twice, remembered by the server. */

import { type Api, backoffMs, isTemporary } from "../api.js";
import { milliseconds, wireDuration } from "../duration.js";
import { LeaseLost, NotRetryable } from "../errors.js";
import { jsonText } from "../job-type.js";
import { Problem } from "../problems.js";
import type { OnceOptions } from "./context.js";
import type { OnceAnswer } from "./wire.js";

const RESULT_BYTES_MAX = 64 * 1024;
const RETRY_MS_MAX = 5_000;
const BUSY_MS = 200;

/** The attempt on whose behalf somebody calls `once`. */
export interface OnceCaller {
  readonly api: Api;
  readonly token: string;
  readonly jobId: string;
  readonly timeoutMs: number;
  /** Waits; throws when the attempt is cancelled. */
  sleep(ms: number): Promise<void>;
}

/**
 * Runs the effect unless the server remembers that it happened. If it throws, it did not happen, and the next caller is
 * first. Whoever dies in between leaves the key in doubt.
 */
export async function once(
  caller: OnceCaller,
  key: string,
  effect: (idempotencyKey: string) => unknown,
  options: OnceOptions,
): Promise<unknown> {
  const scope = options.scope ?? "job";
  const path = `/api/v1/attempts/${encodeURIComponent(caller.token)}/once/${encodeURIComponent(key)}`;
  const asked = { scope, ...(options.ttl !== undefined && { ttl: wireDuration(options.ttl) }) };
  const answer = await ask(caller, path, asked);
  if (answer.state === "done") return answer.result;
  if (answer.state === "in_doubt" && options.inDoubt === "fail") {
    throw new NotRetryable(`nobody knows whether "${key}" happened`, { code: "in_doubt" });
  }
  let result: unknown;
  try {
    result = await effect(idempotencyKey(caller.jobId, key, scope));
  } catch (error) {
    await call(caller, `${path}/abandon`, { scope });
    throw error;
  }
  const text = resultText(key, result);
  await call(caller, `${path}/done`, { scope, result: JSON.parse(text) });
  return result;
}

/** The same for every attempt; with tenant scope, the same for every job. */
export function idempotencyKey(jobId: string, key: string, scope: "job" | "tenant"): string {
  return scope === "tenant" ? key : `${jobId}:${key}`;
}

/** The effect has happened, so an attempt that cannot say what came of it must not be repeated. */
export function resultText(key: string, result: unknown): string {
  const text = jsonText(result, "once_result_invalid", `the result of "${key}"`);
  const bytes = Buffer.byteLength(text);
  if (bytes <= RESULT_BYTES_MAX) return text;
  const limit = `${bytes} bytes, of at most ${RESULT_BYTES_MAX}`;
  throw new NotRetryable(`the result of "${key}" has ${limit}`, { code: "once_result_too_large" });
}

async function ask(caller: OnceCaller, path: string, body: unknown): Promise<OnceAnswer> {
  for (;;) {
    const answer = await call<OnceAnswer>(caller, path, body);
    if (answer.state !== "busy") return answer;
    await caller.sleep(answer.retry_in ? milliseconds(answer.retry_in) : BUSY_MS);
  }
}

/** Repeated until the server answers or the attempt is cancelled. */
async function call<T>(caller: OnceCaller, path: string, body: unknown): Promise<T> {
  for (let failures = 0; ; failures += 1) {
    try {
      return (await caller.api.once<T>("POST", path, { body, timeoutMs: caller.timeoutMs })).body;
    } catch (error) {
      if (error instanceof Problem && error.code === "stale_token") throw new LeaseLost();
      if (!isTemporary(error)) throw error;
      await caller.sleep(backoffMs(failures, RETRY_MS_MAX));
    }
  }
}
