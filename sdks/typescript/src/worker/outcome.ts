/** How an attempt ended, and which error leads to which end. */

import { type CancelReason, InvalidData, NotRetryable, RetryAfter, Snooze } from "../errors.js";
import { jsonText } from "../job-type.js";

/** An error as the server stores it. */
export interface FailureError {
  /** A stable code: the given one, else the error's class in snake_case. */
  readonly code: string;
  /** What happened. */
  readonly message: string;
  /** The error's class. */
  readonly type?: string;
  /** Where it happened. */
  readonly stack?: string;
}

/** How an attempt ended. */
export type Outcome =
  | { readonly status: "completed"; readonly resultText: string }
  | {
      readonly status: "failed";
      readonly error: FailureError;
      readonly retryable: boolean;
      readonly delayMs?: number;
    }
  | { readonly status: "snoozed"; readonly delayMs: number }
  | { readonly status: "cancelled" }
  | { readonly status: "released" };

/** A class of errors, as in `notRetryable`. */
// biome-ignore lint/suspicious/noExplicitAny: any class will do
export type ErrorClass = abstract new (...args: any[]) => unknown;

const TEXT_BYTES_MAX = 16 * 1024;
const CODE_CHARS_MAX = 255;

/** A completed attempt, or a failed one if JSON cannot hold the result or it is too large. */
export function completed(result: unknown, resultBytesMax: number): Outcome {
  try {
    const resultText = jsonText(result, "result_invalid", "the result");
    const bytes = Buffer.byteLength(resultText);
    if (bytes <= resultBytesMax) return { status: "completed", resultText };
    return failed("result_too_large", `the result has ${bytes} bytes, of at most ${resultBytesMax}`, false);
  } catch (error) {
    if (error instanceof InvalidData) return failed(error.code, error.message, false);
    throw error;
  }
}

/** A failure that is not an exception. */
export function failed(code: string, message: string, retryable: boolean): Outcome {
  return { status: "failed", error: { code, message: cut(message) }, retryable };
}

/** What a thrown value means. */
export function thrown(error: unknown, notRetryable: readonly ErrorClass[] = []): Outcome {
  if (error instanceof Snooze) return { status: "snoozed", delayMs: error.delayMs };
  const retryable = !(error instanceof NotRetryable) && !notRetryable.some((type) => error instanceof type);
  return {
    status: "failed",
    error: described(error),
    retryable,
    ...(error instanceof RetryAfter && { delayMs: error.delayMs }),
  };
}

/** How an attempt that stopped because it was cancelled is reported. */
export function stopped(reason: CancelReason): Outcome {
  if (reason === "requested") return { status: "cancelled" };
  if (reason === "deadline") return failed("timed_out", "the attempt has reached its deadline", true);
  return { status: "released" };
}

/** Whether an error says more than that the handler stopped. */
export function isDecision(error: unknown): boolean {
  return error instanceof NotRetryable || error instanceof RetryAfter || error instanceof Snooze;
}

function described(error: unknown): FailureError {
  if (!(error instanceof Error)) {
    return { code: "thrown_value", message: cut(text(error)), type: error === null ? "null" : typeof error };
  }
  const type = (error.constructor?.name || error.name || "Error").slice(0, CODE_CHARS_MAX);
  const given = (error as { code?: unknown }).code;
  const own = (error instanceof NotRetryable || error instanceof RetryAfter) && typeof given === "string";
  const code = (own && printable(given)) || snakeCase(type) || "error";
  const stack = typeof error.stack === "string" ? cut(error.stack) : undefined;
  return { code, message: cut(error.message || type), type, ...(stack && { stack }) };
}

/** `BadAddress` is `bad_address`, `HTTPError` is `http_error`. */
export function snakeCase(name: string): string {
  const words = name.replace(/([a-z0-9])([A-Z])/g, "$1_$2").replace(/([A-Z])([A-Z][a-z])/g, "$1_$2");
  return printable(words.toLowerCase());
}

function printable(code: string): string {
  return code.replace(/[^\w.:-]/g, "_").slice(0, CODE_CHARS_MAX);
}

function text(value: unknown): string {
  try {
    return typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  } catch {
    return String(value);
  }
}

/** At most 16 KiB of a text. */
export function cut(value: string, bytesMax = TEXT_BYTES_MAX): string {
  if (value.length * 3 <= bytesMax) return value;
  const bytes = Buffer.from(value);
  if (bytes.length <= bytesMax) return value;
  // A character that was cut in half becomes a replacement character.
  return bytes
    .subarray(0, bytesMax)
    .toString("utf8")
    .replace(/\uFFFD+$/, "");
}
