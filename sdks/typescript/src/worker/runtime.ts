/**
 * A worker at work: wires session, heartbeater, poller, attempts, reports and logs, and brings them down in two stages.
 *
 * ```text
 * connecting ─registered─▶ active ──stop──▶ draining ─idle or drainTimeout─▶ cancelling ─idle or 3 s─▶ leaving ─▶ stopped
 *      ▲                      │ unknown_worker: all attempts lost
 *      └──────────────────────┘
 * ```
 */

import type { Client } from "../client.js";
import type { OpenTelemetry } from "../telemetry.js";
import type { Attempt } from "./attempt.js";
import { Attempts } from "./attempts.js";
import { nowMs, Pause } from "./clock.js";
import { type AttemptHost, BatchContext, Context } from "./context.js";
import type { WorkerStats } from "./health.js";
import { Heartbeater } from "./heartbeater.js";
import { LogShipper } from "./log-shipper.js";
import { idempotencyKey, once } from "./once.js";
import type { Settings } from "./options.js";
import { Poller } from "./poller.js";
import type { Registry } from "./registry.js";
import { Reporter } from "./reporter.js";
import { type OpenSession, Session } from "./session.js";
import { DEFAULT_LIMITS, type Polled, type Results } from "./wire.js";

const CANCELLING_MS = 3_000;
const LEAVE_MS = 1_500;
/** How long an answer with jobs may still be on its way when the worker stops. */
const QUIET_MS = 1_000;

/** What handlers get beside their attempt. */
export interface Shared {
  readonly state: unknown;
  readonly client: Client;
  readonly telemetry: OpenTelemetry | undefined;
}

/** A worker at work. */
export class Runtime {
  private readonly settings: Settings;
  private readonly session: Session;
  private readonly heartbeater: Heartbeater;
  private readonly poller: Poller;
  private readonly attempts: Attempts;
  private readonly reporter: Reporter;
  private readonly logs: LogShipper;
  private phase: WorkerStats["phase"] = "connecting";
  /** The server asked to take nothing new. */
  private drainAsked = false;
  private readonly stage = new Pause();
  private stops = 0;
  private leaseTimer: NodeJS.Timeout | undefined;
  private saidOnceIsMissing = false;

  constructor(settings: Settings, registry: Registry, shared: Shared) {
    this.settings = settings;
    const { log } = settings;
    this.session = new Session(settings, () => [...registry.handlers.keys()]);
    this.heartbeater = new Heartbeater(
      settings.connection,
      {
        snapshot: () => ({ held: this.held().length, stuck: this.attempts.stuck, draining: this.draining }),
        tokens: () => this.held(),
        accepted: (answer) => this.heartbeatAccepted(answer),
        unknownWorker: (workerId) => this.sessionLost(workerId),
        failed: (reason, refused) =>
          refused
            ? log.error("refused by the server", { call: "heartbeat", error: reason })
            : this.session.away(reason),
      },
      log,
    );
    this.poller = new Poller(
      this.session,
      {
        demand: () => this.attempts.demand(this.takesJobs ? this.limits.poll_jobs : 0),
        answered: (session, answer, late) => this.polled(session, answer, late),
        unknownWorker: (workerId) => this.sessionLost(workerId),
      },
      log,
    );
    this.attempts = new Attempts(
      registry,
      settings.capacity,
      {
        context: (attempt, signal) => new Context(attempt, this.host(attempt, signal), { ...shared, signal }),
        batchContext: (first, signal, each) =>
          new BatchContext(first, this.host(first, signal), { ...shared, signal }, each),
        surroundings: () => ({
          middleware: registry.middleware,
          resultBytesMax: this.limits.result_bytes,
          telemetry: shared.telemetry,
          log,
        }),
        report: (attempt, outcome) => this.reporter.add(attempt, outcome),
        freed: () => this.poller.changed(),
      },
      log,
    );
    this.reporter = new Reporter(
      {
        send: (bodyText) => this.sendReports(bodyText),
        gone: (attempt) => {
          this.attempts.gone(attempt);
          this.poller.changed();
        },
        away: (reason) => this.session.away(reason),
        back: () => this.session.back(),
      },
      () => this.limits,
      log,
    );
    this.logs = new LogShipper({
      attempts: () => this.attempts.withLogs,
      send: (body) => this.session.call<Results>("POST", "/logs", { body, timeoutMs: this.session.callTimeoutMs }),
    });
  }

  private get limits() {
    return this.session.current?.limits ?? DEFAULT_LIMITS;
  }

  /** Whether the worker is on its way out. */
  private get draining(): boolean {
    return this.stops > 0;
  }

  private get takesJobs(): boolean {
    return !this.draining && !this.drainAsked && !this.reporter.isFull;
  }

  private held(): string[] {
    return this.attempts.tokens(this.session.current?.workerId);
  }

  /** Works until somebody stops it. Throws `WorkerRefused` when the server does not take the worker. */
  async run(): Promise<void> {
    const session = await this.session.connect(true);
    if (session) {
      await this.heartbeater.start();
      this.begin(session);
      void this.poller.run();
      while (!this.draining) await this.stage.wait(60_000);
      await this.drain();
    }
    await this.leave();
  }

  private begin(session: OpenSession): void {
    if (this.phase === "connecting") this.phase = this.draining ? "draining" : "active";
    this.heartbeater.begin(session);
    this.watchLease();
  }

  /** The first call lets running jobs finish; the second cancels them. */
  stop(): void {
    this.stops += 1;
    if (this.stops === 1 && this.phase === "active") {
      this.phase = "draining";
      this.settings.log.info("draining", { running: this.attempts.running });
      this.poller.changed();
      this.heartbeater.beat();
    }
    if (this.phase === "connecting") this.session.stop();
    this.stage.end();
  }

  private async drain(): Promise<void> {
    const end = nowMs() + this.settings.drainTimeoutMs;
    let done = false;
    const finished = this.idle().then(() => {
      done = true;
      this.stage.end();
    });
    while (!done && this.stops < 2 && nowMs() < end) await this.stage.wait(end - nowMs());
    if (!done) {
      this.phase = "cancelling";
      this.settings.log.info("cancelling what is left", { running: this.attempts.running });
      this.attempts.cancelAll("shutdown");
      const pause = new Pause();
      await Promise.race([finished, pause.wait(CANCELLING_MS)]);
      pause.end();
    }
  }

  /** Resolves when no job can arrive any more, no handler runs and no report waits. */
  private async idle(): Promise<void> {
    await this.poller.quiet(QUIET_MS);
    while (this.attempts.running > 0 || this.reporter.count > 0) {
      await Promise.all([this.attempts.idle(), this.reporter.idle()]);
    }
  }

  private async leave(): Promise<void> {
    clearTimeout(this.leaseTimer);
    this.poller.stop();
    this.reporter.stop();
    this.logs.stop();
    const left = { running: this.attempts.running, reports: this.reporter.count };
    await this.session.leave(LEAVE_MS);
    this.session.stop();
    await this.heartbeater.stop();
    this.phase = "stopped";
    if (left.reports > 0) this.settings.log.error("reports could not be delivered", { reports: left.reports });
    this.settings.log.info("drained", { running: left.running });
  }

  /** How many handlers have not ended. */
  get running(): number {
    return this.attempts.running;
  }

  private async polled(session: OpenSession, answer: Polled, late: boolean): Promise<() => void> {
    const attempts = this.attempts.receive(session, answer.jobs);
    this.obey(answer);
    // The process was blocked or frozen: what the server gave us may be somebody else's by now.
    const unsure = attempts.length > 0 && (late || !this.heartbeater.isProvable);
    if (unsure) await this.heartbeater.prove().catch(() => undefined);
    return () => (this.draining ? this.attempts.release(attempts) : this.attempts.start(attempts));
  }

  private obey(answer: { cancel?: string[]; lost?: string[]; drain?: boolean }): void {
    this.attempts.lose(answer.lost ?? []);
    this.attempts.cancel(answer.cancel ?? []);
    const drain = answer.drain === true;
    if (drain === this.drainAsked) return;
    this.drainAsked = drain;
    this.settings.log.info(drain ? "draining: the server asks for it" : "taking jobs again");
    this.poller.changed();
  }

  private heartbeatAccepted(answer: { cancel: string[]; lost: string[]; drain: boolean; resync: boolean }): void {
    this.session.back();
    this.poller.wake();
    this.reporter.wake();
    this.obey(answer);
    if (answer.resync) this.poller.resync(this.session.current?.intervalMs ?? 0);
  }

  /** The server does not know us any more: nothing that runs is ours. Registers again after 0 to 1 s. */
  private sessionLost(workerId: string): void {
    if (!this.session.lost(workerId)) return;
    this.settings.log.error("lease lost: the server has ended the session", { worker_id: workerId });
    clearTimeout(this.leaseTimer);
    this.heartbeater.pause();
    this.attempts.loseAll();
    this.poller.reset();
    setTimeout(() => void this.reconnect(), Math.random() * 1_000);
  }

  private async reconnect(): Promise<void> {
    if (this.phase === "stopped") return;
    const session = await this.session.connect(false);
    if (session) this.begin(session);
  }

  /** Cancels handlers once it can no longer be proven that their jobs are ours. */
  private watchLease(): void {
    clearTimeout(this.leaseTimer);
    const leftMs = this.heartbeater.provableUntilMs - nowMs();
    if (leftMs <= 0) {
      this.heartbeater.failProofs();
      this.attempts.cancelAll("lease_lost");
    }
    this.leaseTimer = setTimeout(() => this.watchLease(), leftMs > 0 ? Math.ceil(leftMs) : 250);
  }

  private async sendReports(bodyText: string): Promise<Results> {
    const session = await this.session.ready();
    try {
      const timeoutMs = this.session.callTimeoutMs;
      return await this.session.callAs<Results>(session, "POST", "/report", { bodyText, timeoutMs });
    } catch (error) {
      if ((error as { code?: string }).code === "unknown_worker") this.sessionLost(session.workerId);
      throw error;
    }
  }

  private host(attempt: Attempt, signal: AbortSignal): AttemptHost {
    return {
      progress: (percent, message) => this.heartbeater.progress(attempt.token, percent, message),
      log: (level, message, fields) => {
        if (!this.session.current?.features.has("logs"))
          return this.settings.log[level](message, { ...attempt.facts, ...fields });
        attempt.log.add(level, message, fields);
        this.logs.added(message.length);
      },
      prove: () => this.heartbeater.prove(),
      once: (key, effect, options) => this.once(attempt, signal, key, effect, options),
      draining: () => this.draining || this.drainAsked,
    };
  }

  private async once(
    attempt: Attempt,
    signal: AbortSignal,
    key: string,
    effect: (key: string) => unknown,
    options: Parameters<typeof once>[3],
  ): Promise<unknown> {
    const session = await this.session.ready();
    if (!session.features.has("once")) {
      if (!this.saidOnceIsMissing) this.settings.log.warn("this server does not remember effects: once is only a key");
      this.saidOnceIsMissing = true;
      return effect(idempotencyKey(attempt.job.id, key, options.scope ?? "job"));
    }
    const sleep = async (ms: number) => {
      signal.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, ms));
      signal.throwIfAborted();
    };
    const { api, callTimeoutMs: timeoutMs } = this.session;
    return once({ api, token: attempt.token, jobId: attempt.job.id, timeoutMs, sleep }, key, effect, options);
  }

  /** A promise was rejected in a handler and nobody awaited it. Answers whether it was one of ours. */
  rejected(ctx: Context, error: unknown): boolean {
    return this.attempts.rejected(ctx, error);
  }

  /** The numbers of this moment. */
  stats(): WorkerStats {
    const session = this.session.current;
    const since = (instantMs: number) => Math.max(0, Math.round(nowMs() - instantMs));
    const sinceHeartbeatMs = session && since(this.heartbeater.renewedMs);
    const sincePollMs = session && since(this.poller.turnedMs);
    const started = this.phase !== "connecting" && this.phase !== "stopped";
    const beats = sinceHeartbeatMs !== undefined && sinceHeartbeatMs < (session?.leaseMs ?? 0);
    const turns = sincePollMs !== undefined && sincePollMs < 2 * (session?.pollWaitMs ?? 0);
    const healthy = this.phase === "connecting" || (started && beats && turns);
    return {
      phase: this.phase,
      workerId: session?.workerId,
      capacity: this.settings.capacity,
      running: this.attempts.running,
      stuck: this.attempts.stuck,
      held: this.held().length,
      reportsWaiting: this.reporter.count,
      sinceHeartbeatMs,
      sincePollMs,
      healthy,
      ready: healthy && session !== undefined && this.phase === "active" && !this.drainAsked,
    };
  }
}
