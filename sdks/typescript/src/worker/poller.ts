/**
 * Asks the server for jobs: one poll in flight, for as many jobs as there are free slots. When there are none, polls with
 * `max: 0` still bring cancels and drains, and are given up once a slot is free.
 *
 * The next poll, which tells the server that the answer has arrived, is sent before the handlers of that answer start: a
 * handler that blocks or ends the process must not make the server believe that its job was never received.
 *
 * A poll that asked for jobs is never given up, because its answer may be on the way. When it has become wrong (a type
 * has room again, or the worker drains), a second poll with a higher number and `max: 0` lets the server end it.
 */

import { backoffMs, isTemporary } from "../api.js";
import { Problem } from "../problems.js";
import { LoopWatch, nowMs, Pause } from "./clock.js";
import type { Logger } from "./log.js";
import type { OpenSession, Session } from "./session.js";
import type { Polled } from "./wire.js";

const RETRY_MS_MAX = 5_000;
const EMPTY_MS = 50;
const GIVE_UP_MS = 10_000;
const SENT_MS_MAX = 20;

/** What a poll can ask for. */
export interface Demand {
  readonly max: number;
  /** At most so many of these types. */
  readonly slots: Readonly<Record<string, number>>;
}

/** What the poller asks for and tells. */
export interface PollHooks {
  demand(): Demand;
  /**
   * Handles an answer, and answers how to start the handlers of its jobs. `late`: the process did not see it for so long
   * that its jobs may be somebody else's.
   */
  answered(session: OpenSession, answer: Polled, late: boolean): Promise<() => void>;
  unknownWorker(workerId: string): void;
}

interface Poll extends Demand {
  readonly seq: number;
  readonly sentMs: number;
  readonly controller: AbortController;
}

/** The poll loop of a worker. */
export class Poller {
  private readonly session: Session;
  private readonly hooks: PollHooks;
  private readonly log: Logger;
  private readonly pause = new Pause();
  private readonly loop = new LoopWatch();
  private seq = 0;
  private inFlight: Poll | undefined;
  private nudging = false;
  private nudged = false;
  private stopped = false;
  /** Starts the handlers of the last answer. */
  private start: (() => void) | undefined;
  /** When the loop last began a turn. */
  turnedMs = nowMs();

  constructor(session: Session, hooks: PollHooks, log: Logger) {
    this.session = session;
    this.hooks = hooks;
    this.log = log;
  }

  /** Polls until it is stopped. */
  async run(): Promise<void> {
    let repeat: (Demand & { seq: number; workerId: string }) | undefined;
    let failures = 0;
    while (!this.stopped) {
      // Without a session there is no next poll to wait for.
      if (!this.session.current) this.startNow();
      const session = await this.session.ready();
      if (this.stopped) break;
      this.turnedMs = nowMs();
      const again = repeat?.workerId === session.workerId && repeat.seq === this.seq ? repeat : undefined;
      const demand = again ? this.repeated(again) : this.hooks.demand();
      if (!again) this.seq += 1;
      const poll: Poll = { ...demand, seq: this.seq, sentMs: nowMs(), controller: new AbortController() };
      try {
        const answer = await this.send(session, poll);
        repeat = undefined;
        failures = 0;
        this.session.back();
        await this.handle(session, poll, answer);
      } catch (error) {
        if (poll.controller.signal.aborted) {
          // Given up by us: a poll for jobs is repeated, one without is replaced.
          repeat = poll.max > 0 ? { ...poll, workerId: session.workerId } : undefined;
          continue;
        }
        repeat = { ...poll, workerId: session.workerId };
        failures += 1;
        await this.failed(session, error, failures);
      }
    }
    this.startNow();
  }

  private startNow(): void {
    const { start } = this;
    this.start = undefined;
    start?.();
  }

  /** The same question again; but once there is no demand, only for what was answered to it already. */
  private repeated(poll: Demand): Demand {
    return this.hooks.demand().max === 0 ? { max: 0, slots: poll.slots } : poll;
  }

  private async send(session: OpenSession, poll: Poll): Promise<Polled> {
    this.inFlight = poll;
    this.nudged = false;
    const { start } = this;
    this.start = undefined;
    const onSent = once(() => start?.());
    // A connection that takes its time must not hold up jobs.
    const timer = setTimeout(onSent, SENT_MS_MAX);
    try {
      return await this.session.callAs<Polled>(session, "POST", "/poll", {
        body: body(poll, session.pollWaitMs),
        timeoutMs: session.pollWaitMs + GIVE_UP_MS,
        signal: poll.controller.signal,
        onSent,
      });
    } finally {
      clearTimeout(timer);
      this.inFlight = undefined;
      onSent();
    }
  }

  private async handle(session: OpenSession, poll: Poll, answer: Polled): Promise<void> {
    const tookMs = nowMs() - poll.sentMs;
    const nudged = this.nudged;
    // An answer that lay unread for a lease counts as lost: then the server gives its jobs to others.
    const late = tookMs > session.pollWaitMs + session.intervalMs || this.loop.stalledSince(poll.sentMs);
    const start = await this.hooks.answered(session, answer, late);
    this.start = start;
    if (answer.jobs.length === 0 && tookMs < EMPTY_MS && !nudged && !this.stopped) await this.pause.wait(EMPTY_MS);
  }

  private async failed(session: OpenSession, error: unknown, failures: number): Promise<void> {
    const problem = error instanceof Problem ? error : undefined;
    if (problem?.code === "unknown_worker") return this.hooks.unknownWorker(session.workerId);
    if (!problem || isTemporary(error)) {
      this.session.away((error as Error).message);
      return this.pause.wait(Math.max(problem?.retryAfterMs ?? 0, backoffMs(failures, RETRY_MS_MAX)));
    }
    this.log.error("refused by the server", { call: "poll", code: problem.code, error: problem.message });
    return this.session.refusalEnds();
  }

  /** The demand has changed: a slot is free, or the worker drains or takes jobs again. */
  changed(): void {
    const poll = this.inFlight;
    if (!poll) return;
    const demand = this.hooks.demand();
    if (poll.max === 0) {
      if (demand.max > 0) poll.controller.abort();
      return;
    }
    const opened = Object.keys(poll.slots).some((type) => poll.slots[type] === 0 && (demand.slots[type] ?? 0) > 0);
    if (demand.max === 0 || opened) void this.nudge();
  }

  /** Lets the server end the poll that is in flight. Its answer is still read. */
  private async nudge(): Promise<void> {
    const session = this.session.current;
    if (!session || this.nudging) return;
    this.nudging = true;
    this.nudged = true;
    this.seq += 1;
    try {
      const answer = await this.session.callAs<Polled>(session, "POST", "/poll", {
        body: { seq: this.seq, max: 0, wait: "0s" },
        timeoutMs: this.session.callTimeoutMs,
      });
      const start = await this.hooks.answered(session, answer, false);
      start();
    } catch {
      // The poll in flight ends by itself.
    } finally {
      this.nudging = false;
    }
  }

  /**
   * The server counts other jobs than we do. If a poll has been in flight for longer than this, its answer may be lost,
   * so it is asked again. A younger one is more likely on its way.
   */
  resync(olderThanMs: number): void {
    const poll = this.inFlight;
    if (poll && poll.max > 0 && !this.nudged && nowMs() - poll.sentMs > olderThanMs) poll.controller.abort();
  }

  /** Resolves when no poll that asked for jobs is in flight, or after this time. */
  async quiet(withinMs: number): Promise<void> {
    const end = nowMs() + withinMs;
    while ((this.inFlight?.max ?? 0) > 0 && nowMs() < end) await new Promise((resolve) => setTimeout(resolve, 10));
  }

  /** The server is there again: tries at once. */
  wake(): void {
    this.pause.end();
  }

  /** The session has another number: polls are counted from the beginning. */
  reset(): void {
    this.seq = 0;
    this.inFlight?.controller.abort();
    this.pause.end();
  }

  /** Polls no more. */
  stop(): void {
    this.stopped = true;
    this.loop.stop();
    this.inFlight?.controller.abort();
    this.pause.end();
  }
}

function once(call: () => void): () => void {
  let called = false;
  return () => {
    if (called) return;
    called = true;
    call();
  };
}

function body(poll: Poll, waitMs: number): Record<string, unknown> {
  return {
    seq: poll.seq,
    max: poll.max,
    wait: `${waitMs}ms`,
    ...(Object.keys(poll.slots).length > 0 && { slots: poll.slots }),
  };
}
