/**
 * One attempt in our hands, from its arrival until its report is accepted.
 *
 * ```text
 * waiting ─▶ running ─▶ ended (its report is on the way) ─▶ gone
 *               └─ told lost ─▶ abandoned ─ended─▶ gone: nothing is reported
 * ```
 */

import type { Job } from "../client.js";
import { milliseconds } from "../duration.js";
import { Cancelled, type CancelReason, LeaseLost } from "../errors.js";
import { camel } from "../json.js";
import type { AttemptLog } from "./attempt-log.js";
import { nowMs, TIMER_MS_MAX } from "./clock.js";
import type { AttemptFacts } from "./context.js";
import type { Registration } from "./registry.js";
import type { Assignment } from "./wire.js";

/** What an attempt tells about itself. */
export interface AttemptHooks {
  cancelled(attempt: Attempt, reason: CancelReason): void;
  stuck(attempt: Attempt): void;
}

/** An attempt. */
export class Attempt implements AttemptFacts {
  readonly token: string;
  readonly job: Job;
  readonly attempt: number;
  readonly fencingToken: number;
  readonly traceparent: string | undefined;
  readonly deadlineMs: number;
  /** The session that it was given to. */
  readonly workerId: string;
  readonly handler: Registration;
  readonly log: AttemptLog;
  readonly controller = new AbortController();
  /** When its handler was called. */
  startedMs: number | undefined;
  /** Its handler has ended. */
  ended = false;
  /** The server has given it to somebody else: nothing is reported. */
  lost = false;
  /** It was cancelled and does not end. */
  stuck = false;
  /** Something in its handler failed that nobody awaited. */
  rejection: { readonly error: unknown } | undefined;
  private reason: CancelReason | undefined;
  private readonly hooks: AttemptHooks;
  private deadlineTimer: NodeJS.Timeout | undefined;
  private graceTimer: NodeJS.Timeout | undefined;

  constructor(
    given: Assignment,
    received: { workerId: string; handler: Registration; log: AttemptLog; hooks: AttemptHooks },
  ) {
    this.token = given.token;
    this.job = camel(given.job);
    this.attempt = given.attempt;
    this.fencingToken = given.fencing_token;
    this.traceparent = given.traceparent ?? undefined;
    this.deadlineMs = nowMs() + milliseconds(given.deadline_in);
    this.workerId = received.workerId;
    this.handler = received.handler;
    this.log = received.log;
    this.hooks = received.hooks;
    this.waitForDeadline();
  }

  /** For log lines. */
  get facts(): Record<string, unknown> {
    return { job_id: this.job.id, type: this.job.type, attempt: this.attempt, worker_id: this.workerId };
  }

  /** Why it was asked to stop, if it was. */
  get cancelReason(): CancelReason | undefined {
    return this.reason;
  }

  private waitForDeadline(): void {
    const leftMs = this.deadlineMs - nowMs();
    this.deadlineTimer = setTimeout(
      () => (nowMs() < this.deadlineMs ? this.waitForDeadline() : this.cancel("deadline")),
      Math.min(Math.max(0, Math.ceil(leftMs)), TIMER_MS_MAX),
    );
  }

  /** Asks the handler to stop. The first reason stands. */
  cancel(reason: CancelReason): void {
    if (this.ended || this.reason !== undefined) return;
    this.reason = reason;
    this.hooks.cancelled(this, reason);
    this.controller.abort(reason === "lease_lost" ? new LeaseLost() : new Cancelled(reason));
    this.graceTimer = setTimeout(() => {
      this.stuck = true;
      this.hooks.stuck(this);
      this.graceTimer = setInterval(() => this.hooks.stuck(this), 30_000);
    }, this.handler.cancelGraceMs);
  }

  /** The server says that it is not ours any more. */
  lose(): void {
    this.lost = true;
    this.log.discard();
    this.cancel("lease_lost");
  }

  /** Something in the handler failed that nobody awaits. The handler is asked to end, and then it has failed. */
  reject(error: unknown): void {
    this.rejection ??= { error };
    this.controller.abort(error);
  }

  /** Its handler has ended. */
  end(): void {
    this.ended = true;
    this.stuck = false;
    clearTimeout(this.deadlineTimer);
    clearTimeout(this.graceTimer);
  }
}
