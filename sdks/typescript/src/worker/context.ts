/** What a handler knows of its attempt, and what it can do. */

import { AsyncLocalStorage } from "node:async_hooks";
import type { Client, Job } from "../client.js";
import { type Duration, milliseconds } from "../duration.js";
import { Cancelled, type CancelReason } from "../errors.js";
import { nowMs, TIMER_MS_MAX } from "./clock.js";
import type { Logger, LogLevel } from "./log.js";
import { cut } from "./outcome.js";

/** How `ctx.once` remembers. */
export interface OnceOptions {
  /** Whether the key belongs to the job (default) or is shared by all jobs of the tenant. */
  scope?: "job" | "tenant";
  /** For how long the result is remembered. Default 7 days. */
  ttl?: Duration;
  /** What happens if nobody knows whether the effect happened: again (default), or the job fails for good. */
  inDoubt?: "again" | "fail";
}

/** What an attempt needs of its surroundings: of a worker, or of a test. */
export interface AttemptHost {
  progress(percent: number, message: string | undefined): void;
  log(level: LogLevel, message: string, fields: Readonly<Record<string, unknown>> | undefined): void;
  /** Resolves when the server has said that the attempt is ours. */
  prove(): Promise<void>;
  once(key: string, effect: (key: string) => unknown, options: OnceOptions): Promise<unknown>;
  draining(): boolean;
}

/** What is known of an attempt when it begins. */
export interface AttemptFacts {
  readonly job: Job;
  readonly attempt: number;
  readonly fencingToken: number;
  readonly deadlineMs: number;
  readonly traceparent: string | undefined;
}

/** The second argument of a handler. */
export class Context<S = unknown> {
  /** The job. */
  readonly job: Job;
  /** The number of this attempt, beginning with 1. */
  readonly attempt: number;
  /** Grows with every attempt of the job, so that others can tell an old attempt from a new one. */
  readonly fencingToken: number;
  /** The same for every attempt of the job: its id. */
  readonly idempotencyKey: string;
  /** The trace that the job belongs to (W3C trace context). */
  readonly traceparent: string | undefined;
  /** What the worker's `state` option returned. */
  readonly state: S;
  /** A client of the same server. */
  readonly client: Client;
  /** Aborts when the attempt is cancelled; the reason is a `Cancelled`. */
  readonly signal: AbortSignal;
  /** Writes to the job's log. */
  readonly log: Logger;
  private readonly host: AttemptHost;
  private readonly deadlineMs: number;
  private readonly ends = new Set<() => void>();

  constructor(facts: AttemptFacts, host: AttemptHost, surroundings: { state: S; client: Client; signal: AbortSignal }) {
    this.job = facts.job;
    this.attempt = facts.attempt;
    this.fencingToken = facts.fencingToken;
    this.idempotencyKey = facts.job.id;
    this.traceparent = facts.traceparent;
    this.deadlineMs = facts.deadlineMs;
    this.state = surroundings.state;
    this.client = surroundings.client;
    this.signal = surroundings.signal;
    this.host = host;
    const write = (level: LogLevel) => (message: string, fields?: Readonly<Record<string, unknown>>) =>
      host.log(level, String(message), fields);
    this.log = { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
  }

  /** Milliseconds to the deadline, on the monotonic clock. */
  get timeLeft(): number {
    return Math.max(0, this.deadlineMs - nowMs());
  }

  /** Why the attempt was asked to stop, if it was. */
  get cancelReason(): CancelReason | undefined {
    return this.signal.reason instanceof Cancelled ? this.signal.reason.reason : undefined;
  }

  /** Whether the worker is stopping. The attempt may finish. */
  get draining(): boolean {
    return this.host.draining();
  }

  /** Says how far the work has come, 0 to 100. Returns at once; the latest one is sent within a second. */
  progress(percent: number, message?: string): void {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the server refuses them
    const text = message === undefined ? undefined : cut(message.replace(/[\u0000-\u001f\u007f]/g, " "), 255);
    const value = Number.isFinite(percent) ? Math.min(100, Math.max(0, percent)) : 0;
    this.host.progress(value, text || undefined);
  }

  /** Throws the `Cancelled` of an attempt that was asked to stop. */
  check(): void {
    this.signal.throwIfAborted();
  }

  /**
   * Asks the server whether the attempt is still ours: to be called before what cannot be undone. Throws `Cancelled` or
   * `LeaseLost`. Nobody has to call it to keep a job.
   */
  async heartbeat(): Promise<void> {
    this.check();
    await this.untilCancelled(this.host.prove());
    this.check();
  }

  /** Waits. Throws the `Cancelled` of an attempt that is asked to stop meanwhile. */
  async sleep(duration: Duration): Promise<void> {
    this.check();
    let timer: NodeJS.Timeout | undefined;
    const clear = () => clearTimeout(timer);
    this.ends.add(clear);
    const waited = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, Math.min(milliseconds(duration), TIMER_MS_MAX));
    });
    try {
      await this.untilCancelled(waited);
    } finally {
      clear();
      this.ends.delete(clear);
    }
  }

  /**
   * Runs an effect that must not happen twice. The first caller runs it, with a stable idempotency key; later callers,
   * also in later attempts, get the result (up to 64 KiB as JSON) that was remembered.
   */
  async once<T>(
    key: string,
    effect: (idempotencyKey: string) => T | Promise<T>,
    options: OnceOptions = {},
  ): Promise<T> {
    this.check();
    return (await this.host.once(key, effect, options)) as T;
  }

  /** Ends the timers and listeners of the attempt. Called by the worker. */
  end(): void {
    for (const end of [...this.ends]) end();
    this.ends.clear();
  }

  private untilCancelled<T>(promise: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const stop = () => {
        this.signal.removeEventListener("abort", abort);
        this.ends.delete(stop);
      };
      const abort = () => {
        stop();
        reject(this.signal.reason);
      };
      this.signal.addEventListener("abort", abort);
      this.ends.add(stop);
      promise.then(resolve, reject).finally(stop);
    });
  }
}

/** The context of a batch: that of its first job, and those of all jobs. Its signal aborts when all are cancelled. */
export class BatchContext<S = unknown> extends Context<S> {
  /** One context per job, in the order of the payloads. */
  readonly each: readonly Context<S>[];

  constructor(
    facts: AttemptFacts,
    host: AttemptHost,
    surroundings: { state: S; client: Client; signal: AbortSignal },
    each: readonly Context<S>[],
  ) {
    super(facts, host, surroundings);
    this.each = each;
  }
}

/** Finds the context of the handler that is running, anywhere below it. */
export const running = new AsyncLocalStorage<Context<unknown>>();

/** The context of the handler that called this, however deep; `undefined` outside of handlers. */
export function currentJob<S = unknown>(): Context<S> | undefined {
  return running.getStore() as Context<S> | undefined;
}
