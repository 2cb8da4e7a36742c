/** The handlers and middleware of a worker. */

import type { Duration } from "../duration.js";
import { milliseconds } from "../duration.js";
import type { JobType } from "../job-type.js";
import type { BatchContext, Context } from "./context.js";
import type { ErrorClass } from "./outcome.js";

/** What a handler can be registered with. */
export interface HandlerOptions {
  /** How many of these jobs run at a time. Default: the worker's capacity. */
  capacity?: number;
  /** Classes of errors after which the job is not tried again. */
  notRetryable?: readonly ErrorClass[];
  /** How long a cancelled handler may take to end before its slot counts as stuck. Default 5 s. */
  cancelGrace?: Duration;
  /** What happens when the lease can no longer be proven: `cancel` (default) or `continue`. */
  onLeaseLost?: "cancel" | "continue";
}

/** What a batch handler can be registered with. */
export interface BatchOptions extends HandlerOptions {
  /** How many jobs a batch has at most. Default 100. */
  jobsMax?: number;
  /** How long the first job of a batch waits for others. Default 50 ms. */
  waitMax?: Duration;
}

/** A plain function: payload first, context second. */
export type Handler<P, R, S> = (payload: P, ctx: Context<S>) => R | Promise<R>;

/** An entry of a batch handler's answer: a result, an error, or what `Promise.allSettled` makes. */
export type BatchEntry<R> = R | Error | PromiseSettledResult<R>;

/** Handles several jobs in one call. Answers one entry per job, in order; throwing fails all of them. */
export type BatchHandler<P, R, S> = (
  payloads: P[],
  ctx: BatchContext<S>,
) => readonly BatchEntry<R>[] | Promise<readonly BatchEntry<R>[]>;

/**
 * Runs around every attempt; the first registered is the outermost. The handler's result stands, whatever a middleware
 * returns. One that does not call `next` returns the result itself.
 */
export type Middleware<S> = (ctx: Context<S>, next: () => Promise<unknown>) => unknown;

/** A handler with everything that was said about it. */
export interface Registration {
  readonly type: JobType<never, unknown, never, unknown>;
  readonly single: Handler<unknown, unknown, unknown> | undefined;
  readonly batch: BatchHandler<unknown, unknown, unknown> | undefined;
  readonly capacity: number | undefined;
  readonly notRetryable: readonly ErrorClass[];
  readonly cancelGraceMs: number;
  readonly onLeaseLost: "cancel" | "continue";
  readonly jobsMax: number;
  readonly waitMaxMs: number;
}

const CANCEL_GRACE = "5s";

/** The handlers and middleware of a worker. Mistakes are kept until the worker starts, so that all are seen at once. */
export class Registry {
  /** By type. */
  readonly handlers = new Map<string, Registration>();
  /** The outermost first. */
  readonly middleware: Middleware<unknown>[] = [];
  /** What was wrong with registrations, as sentences. */
  readonly mistakes: string[] = [];

  /** Adds a handler. */
  add(
    type: JobType<never, unknown, never, unknown>,
    handler: Pick<Registration, "single" | "batch">,
    options: BatchOptions,
  ): void {
    const what = `handler of "${type.name}"`;
    if (this.handlers.has(type.name)) this.mistakes.push(`${what}: there is one already`);
    this.handlers.set(type.name, {
      type,
      ...handler,
      capacity: this.whole(`${what}: capacity`, options.capacity),
      notRetryable: options.notRetryable ?? [],
      cancelGraceMs: this.duration(`${what}: cancelGrace`, options.cancelGrace, CANCEL_GRACE),
      onLeaseLost: options.onLeaseLost ?? "cancel",
      jobsMax: this.whole(`${what}: jobsMax`, options.jobsMax) ?? 100,
      waitMaxMs: this.duration(`${what}: waitMax`, options.waitMax, "50ms"),
    });
  }

  private whole(what: string, value: number | undefined): number | undefined {
    if (value === undefined || (Number.isInteger(value) && value >= 1)) return value;
    this.mistakes.push(`${what}: must be a whole number from 1 on, not ${value}`);
    return undefined;
  }

  private duration(what: string, value: Duration | undefined, otherwise: Duration): number {
    try {
      return milliseconds(value ?? otherwise);
    } catch (error) {
      this.mistakes.push(`${what}: ${(error as Error).message}`);
      return milliseconds(otherwise);
    }
  }
}
