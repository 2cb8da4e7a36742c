/**
 * The attempts of a worker: which slots are taken, which handlers run, which batches gather. Knows nothing of HTTP.
 */

import { Cancelled, type CancelReason } from "../errors.js";
import { Attempt, type AttemptHooks } from "./attempt.js";
import { AttemptLog, LogBudget } from "./attempt-log.js";
import { nowMs } from "./clock.js";
import type { BatchContext, Context } from "./context.js";
import { execute, executeBatch, type Surroundings } from "./execute.js";
import type { Logger } from "./log.js";
import { failed, type Outcome, thrown } from "./outcome.js";
import type { Demand } from "./poller.js";
import type { Registration, Registry } from "./registry.js";
import type { OpenSession } from "./session.js";
import type { Assignment } from "./wire.js";

/** What becomes of attempts. */
export interface AttemptsHooks {
  /** The context of one attempt, or of a batch when there are several. */
  context(attempt: Attempt, signal: AbortSignal): Context;
  batchContext(first: Attempt, signal: AbortSignal, each: readonly Context[]): BatchContext;
  surroundings(): Surroundings;
  report(attempt: Attempt, outcome: Outcome): void;
  /** A slot is free. */
  freed(): void;
}

interface Gathering {
  readonly attempts: Attempt[];
  readonly timer: NodeJS.Timeout;
}

/** The attempts of a worker. */
export class Attempts {
  /** Everything whose report was not accepted yet. */
  private readonly held = new Map<string, Attempt>();
  /** Those whose handlers have not ended, also if they were told lost: each takes a slot. */
  private readonly active = new Set<Attempt>();
  private readonly byContext = new WeakMap<Context, readonly Attempt[]>();
  private readonly gathering = new Map<string, Gathering>();
  private readonly budget = new LogBudget();
  private readonly registry: Registry;
  private readonly capacity: number;
  private readonly hooks: AttemptsHooks;
  private readonly log: Logger;
  private idlers: (() => void)[] = [];

  constructor(registry: Registry, capacity: number, hooks: AttemptsHooks, log: Logger) {
    this.registry = registry;
    this.capacity = capacity;
    this.hooks = hooks;
    this.log = log;
  }

  /** How many slots are taken. */
  get running(): number {
    return this.active.size;
  }

  /** How many slots are taken by handlers that were cancelled and do not end. */
  get stuck(): number {
    return [...this.active].filter((attempt) => attempt.stuck).length;
  }

  /** The tokens of a session whose reports were not accepted yet. */
  tokens(workerId: string | undefined): string[] {
    return [...this.held.values()].filter((attempt) => attempt.workerId === workerId).map((attempt) => attempt.token);
  }

  /** With unsent lines in their logs. */
  get withLogs(): Attempt[] {
    return [...this.active].filter((attempt) => !attempt.log.isEmpty);
  }

  /** What there is room for. */
  demand(jobsMax: number): Demand {
    const slots: Record<string, number> = {};
    for (const { type, capacity } of this.registry.handlers.values()) {
      if (capacity === undefined) continue;
      const taken = [...this.active].filter((attempt) => attempt.job.type === type.name).length;
      slots[type.name] = Math.max(0, capacity - taken);
    }
    return { max: Math.max(0, Math.min(jobsMax, this.capacity - this.active.size)), slots };
  }

  /** Takes what a poll brought. What is known already came a second time and is left out. */
  receive(session: OpenSession, jobs: readonly Assignment[]): Attempt[] {
    const hooks: AttemptHooks = {
      cancelled: (attempt, reason) => this.cancelled(attempt, reason),
      stuck: (attempt) => this.log.warn("slot stuck: the handler was cancelled and does not end", attempt.facts),
    };
    const attempts = jobs
      .filter((job) => !this.held.has(job.token))
      .map((job) => {
        const handler = this.registry.handlers.get(job.job.type) ?? unknownType(job.job.type);
        const log = new AttemptLog(this.budget, session.limits);
        return new Attempt(job, { workerId: session.workerId, handler, log, hooks });
      });
    for (const attempt of attempts) {
      this.held.set(attempt.token, attempt);
      this.active.add(attempt);
    }
    return attempts;
  }

  private cancelled(attempt: Attempt, reason: CancelReason): void {
    const lost = reason === "lease_lost";
    if (lost) this.log.error("lease lost: the handler is cancelled", attempt.facts);
    else this.log.debug("attempt cancelled", { ...attempt.facts, reason });
  }

  /** Runs the handlers. */
  start(attempts: readonly Attempt[]): void {
    for (const attempt of attempts) {
      if (attempt.lost) this.finish(attempt, { status: "released" });
      else if (attempt.handler.batch) this.gather(attempt);
      else void this.run(attempt);
    }
  }

  /** Gives back what arrived while the worker drains. */
  release(attempts: readonly Attempt[]): void {
    for (const attempt of attempts) this.finish(attempt, { status: "released" });
  }

  private async run(attempt: Attempt): Promise<void> {
    attempt.startedMs = nowMs();
    this.log.debug("attempt started", attempt.facts);
    const ctx = this.hooks.context(attempt, attempt.controller.signal);
    this.byContext.set(ctx, [attempt]);
    const outcome = attempt.handler.single
      ? await execute(attempt.handler, ctx, this.hooks.surroundings())
      : failed("no_handler", `this worker has no handler for "${attempt.job.type}"`, true);
    ctx.end();
    this.finish(attempt, outcome);
  }

  private gather(attempt: Attempt): void {
    const { handler } = attempt;
    const name = handler.type.name;
    let gathering = this.gathering.get(name);
    if (!gathering) {
      gathering = { attempts: [], timer: setTimeout(() => this.runBatch(handler), handler.waitMaxMs) };
      this.gathering.set(name, gathering);
    }
    gathering.attempts.push(attempt);
    if (gathering.attempts.length >= handler.jobsMax) void this.runBatch(handler);
  }

  private async runBatch(handler: Registration): Promise<void> {
    const gathered = this.gathering.get(handler.type.name);
    if (!gathered) return;
    this.gathering.delete(handler.type.name);
    clearTimeout(gathered.timer);
    const attempts = gathered.attempts.filter((attempt) => !attempt.lost);
    for (const attempt of gathered.attempts) if (attempt.lost) this.finish(attempt, { status: "released" });
    if (attempts.length === 0) return;
    const controller = new AbortController();
    const contexts = attempts.map((attempt) => this.hooks.context(attempt, attempt.controller.signal));
    const unwatch = watchAll(attempts, controller);
    const batch = (valid: readonly Context[]) => {
      const members = attempts.filter((_, index) => valid.includes(contexts[index] as Context));
      const ctx = this.hooks.batchContext(members[0] as Attempt, controller.signal, valid);
      this.byContext.set(ctx, members);
      return ctx;
    };
    for (const attempt of attempts) {
      attempt.startedMs = nowMs();
      this.log.debug("attempt started", attempt.facts);
    }
    const outcomes = await executeBatch(handler, contexts, batch, this.hooks.surroundings());
    unwatch();
    for (const [index, attempt] of attempts.entries()) {
      contexts[index]?.end();
      this.finish(attempt, outcomes[index] as Outcome);
    }
  }

  private finish(attempt: Attempt, outcome: Outcome): void {
    const end = attempt.rejection ? thrown(attempt.rejection.error, attempt.handler.notRetryable) : outcome;
    attempt.end();
    this.log.debug("attempt ended", { ...attempt.facts, outcome: end.status });
    if (end.status === "failed" && !attempt.lost) {
      this.log.warn("attempt failed", { ...attempt.facts, code: end.error.code, error: end.error.message });
    }
    if (attempt.log.droppedTotal > 0) {
      this.log.warn("lines of the job's log dropped", { ...attempt.facts, lines: attempt.log.droppedTotal });
    }
    this.active.delete(attempt);
    if (!attempt.lost) this.hooks.report(attempt, end);
    this.hooks.freed();
    this.settle();
  }

  /** The report of an attempt was accepted, or nobody wants it. */
  gone(attempt: Attempt): void {
    attempt.log.discard();
    if (this.held.get(attempt.token) === attempt) this.held.delete(attempt.token);
    this.settle();
  }

  private settle(): void {
    if (this.active.size > 0) return;
    for (const done of this.idlers.splice(0)) done();
  }

  /** Resolves when no handler runs any more. */
  idle(): Promise<void> {
    if (this.active.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.idlers.push(resolve));
  }

  /** Somebody cancelled these jobs. */
  cancel(tokens: readonly string[]): void {
    for (const token of tokens) this.held.get(token)?.cancel("requested");
  }

  /** Cancels everything that runs. */
  cancelAll(reason: CancelReason): void {
    for (const attempt of [...this.active]) {
      if (reason !== "lease_lost" || attempt.handler.onLeaseLost === "cancel") attempt.cancel(reason);
    }
  }

  /** The server gave these to somebody else. A report that exists already is still offered. */
  lose(tokens: readonly string[]): void {
    for (const token of tokens) {
      const attempt = this.held.get(token);
      if (!attempt || attempt.ended) continue;
      this.held.delete(token);
      attempt.lose();
    }
  }

  /** The server does not know the session any more: everything that runs is lost. */
  loseAll(): void {
    this.lose([...this.held.keys()]);
  }

  /** A promise was rejected inside a handler and nobody awaited it. Answers whether it was one of ours. */
  rejected(ctx: Context, error: unknown): boolean {
    const attempts = this.byContext.get(ctx);
    if (!attempts) return false;
    for (const attempt of attempts) {
      if (attempt.ended)
        this.log.warn("rejected after the handler had returned", { ...attempt.facts, error: String(error) });
      else attempt.reject(error);
    }
    return true;
  }
}

/** Aborts `controller` when all attempts are cancelled, with the first reason. Answers how to stop watching. */
function watchAll(attempts: readonly Attempt[], controller: AbortController): () => void {
  const check = () => {
    const reasons = attempts.map(({ controller: { signal } }) =>
      signal.aborted ? (signal.reason as unknown) : undefined,
    );
    if (reasons.every((reason) => reason !== undefined)) controller.abort(reasons[0] ?? new Cancelled("shutdown"));
  };
  for (const attempt of attempts) attempt.controller.signal.addEventListener("abort", check);
  check();
  return () => {
    for (const attempt of attempts) attempt.controller.signal.removeEventListener("abort", check);
  };
}

function unknownType(name: string): Registration {
  return {
    type: { name } as Registration["type"],
    single: undefined,
    batch: undefined,
    capacity: undefined,
    notRetryable: [],
    cancelGraceMs: 5_000,
    onLeaseLost: "cancel",
    jobsMax: 1,
    waitMaxMs: 0,
  };
}
