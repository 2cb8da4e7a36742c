/**
 * The errors that handlers throw, and those that waiting for a job can end with. Refusals by the server are in
 * problems.ts.
 */

import { type Duration, milliseconds } from "./duration.js";

/** Why an attempt was asked to stop. */
export type CancelReason = "requested" | "deadline" | "shutdown" | "lease_lost";

/** What all errors of this library have in common. */
export class TickwheelError extends Error {
  override readonly name: string = "TickwheelError";
}

/** Thrown by a handler: the job fails for good, without another attempt. */
export class NotRetryable extends TickwheelError {
  override readonly name = "NotRetryable";
  /** The failure code. */
  readonly code: string;

  constructor(message: string, options: { code?: string; cause?: unknown } = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.code = options.code ?? "not_retryable";
  }
}

/** Thrown by a handler: the attempt failed, and the next one starts no sooner than after this time. */
export class RetryAfter extends TickwheelError {
  override readonly name = "RetryAfter";
  /** The failure code. */
  readonly code: string;
  /** How long to wait, in milliseconds. */
  readonly delayMs: number;

  constructor(delay: Duration, message = "to be tried again later", options: { code?: string; cause?: unknown } = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.delayMs = milliseconds(delay);
    this.code = options.code ?? "retry_after";
  }
}

/** Thrown by a handler: not yet. The job runs again after this time; nothing failed and no retry is used. */
export class Snooze extends TickwheelError {
  override readonly name = "Snooze";
  /** How long to wait, in milliseconds. */
  readonly delayMs: number;

  constructor(delay: Duration) {
    super("not yet");
    this.delayMs = milliseconds(delay);
  }
}

const CANCEL_TEXT: Readonly<Record<CancelReason, string>> = {
  requested: "somebody cancelled the job",
  deadline: "the attempt has reached its deadline",
  shutdown: "the worker is stopping",
  lease_lost: "the worker can no longer prove that the job is its own",
};

/** The attempt was asked to stop. It is the reason of `ctx.signal`, and what `ctx.sleep` and `ctx.check` throw. */
export class Cancelled extends TickwheelError {
  override readonly name: string = "Cancelled";
  /** Why. */
  readonly reason: CancelReason;

  constructor(reason: CancelReason, message = CANCEL_TEXT[reason]) {
    super(message);
    this.reason = reason;
  }
}

/** The attempt may belong to another worker by now. */
export class LeaseLost extends Cancelled {
  override readonly name = "LeaseLost";

  constructor(message?: string) {
    super("lease_lost", message);
  }
}

/** The job that was waited for has failed. */
export class JobFailed extends TickwheelError {
  override readonly name = "JobFailed";
  /** The failure code of its last attempt. */
  readonly code: string;
  /** Its id. */
  readonly jobId: string;

  constructor(jobId: string, code: string, message: string) {
    super(message);
    this.jobId = jobId;
    this.code = code;
  }
}

/** The job that was waited for was cancelled. */
export class JobCancelled extends TickwheelError {
  override readonly name = "JobCancelled";
  /** Its id. */
  readonly jobId: string;

  constructor(jobId: string) {
    super(`job ${jobId} was cancelled`);
    this.jobId = jobId;
  }
}

/** The job did not end within the time that somebody waited for it. It goes on. */
export class WaitTimeout extends TickwheelError {
  override readonly name = "WaitTimeout";
  /** Its id. */
  readonly jobId: string;

  constructor(jobId: string, waitedMs: number) {
    super(`job ${jobId} has not ended within ${waitedMs} ms`);
    this.jobId = jobId;
  }
}

/** A payload or result that is not of its type, not JSON, or too large. Nothing was sent. */
export class InvalidData extends TickwheelError {
  override readonly name = "InvalidData";
  /** `invalid_payload`, `payload_too_large`, `result_invalid` or `result_too_large`. */
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** No server could be reached, or none answered in time. Whether the call took effect is not known. */
export class ConnectionFailed extends TickwheelError {
  override readonly name = "ConnectionFailed";
}

/** Options or environment variables that cannot be used: all of them, not only the first. */
export class ConfigurationError extends TickwheelError {
  override readonly name = "ConfigurationError";
  /** Every mistake, as a sentence. */
  readonly mistakes: readonly string[];

  constructor(mistakes: readonly string[]) {
    super(mistakes.join("; "));
    this.mistakes = mistakes;
  }
}
