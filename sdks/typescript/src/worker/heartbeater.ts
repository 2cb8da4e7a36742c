/**
 * The main side of the heartbeater: starts its thread, answers what it asks, and knows until when the lease is provable.
 *
 * That instant is in memory shared with the thread. After the main loop was blocked, timers fire before messages are
 * read; the shared value is right even then.
 */

import { MessageChannel, Worker as Thread } from "node:worker_threads";
import type { Connection } from "../environment.js";
import { LeaseLost } from "../errors.js";
import { HEARTBEATER_SOURCE } from "../generated/heartbeater-source.js";
import { nowMs } from "./clock.js";
import { type FromHeartbeater, type HeartbeaterOptions, Heartbeats, type ToHeartbeater } from "./heartbeat-thread.js";
import type { Logger } from "./log.js";

type Accepted = Extract<FromHeartbeater, { kind: "accepted" }>;

/** What the heartbeater asks for and tells. */
export interface HeartbeatHooks {
  snapshot(): { held: number; stuck: number; draining: boolean };
  tokens(): string[];
  accepted(answer: Accepted): void;
  unknownWorker(workerId: string): void;
  failed(reason: string, refused: boolean): void;
}

/** A session as the heartbeater needs it. */
export interface HeartbeatSession {
  readonly workerId: string;
  readonly leaseMs: number;
  readonly intervalMs: number;
  /** When the registration was sent. */
  readonly sentMs: number;
}

interface Port {
  postMessage(message: ToHeartbeater): void;
}

const START_MS_MAX = 5_000;
const RESTART_MS_MAX = 30_000;
const PROGRESS_MS = 100;

/** Keeps the session alive. */
export class Heartbeater {
  private readonly connection: Connection;
  private readonly hooks: HeartbeatHooks;
  private readonly log: Logger;
  private readonly memory = new SharedArrayBuffer(16);
  private readonly shared = new BigInt64Array(this.memory);
  private port: Port | undefined;
  private thread: Thread | undefined;
  private session: HeartbeatSession | undefined;
  private restarts = 0;
  private restartTimer: NodeJS.Timeout | undefined;
  private stopped = false;
  private news = new Map<string, [string, number, string | undefined]>();
  private newsTimer: NodeJS.Timeout | undefined;
  private proofs: { id: number; resolve: () => void; reject: (error: unknown) => void }[] = [];
  private proofId = 0;
  private asking = false;

  constructor(connection: Connection, hooks: HeartbeatHooks, log: Logger) {
    this.connection = connection;
    this.hooks = hooks;
    this.log = log;
  }

  /** Until when the server cannot have given our jobs to others. */
  get provableUntilMs(): number {
    return Number(Atomics.load(this.shared, 0)) / 1_000;
  }

  /** When the last heartbeat that was accepted was sent. */
  get renewedMs(): number {
    return Number(Atomics.load(this.shared, 1)) / 1_000;
  }

  /** Starts the thread. Resolves when it is ready, or when it cannot be and the main loop has taken its place. */
  async start(): Promise<void> {
    try {
      await this.startThread();
    } catch (error) {
      this.startHere(error as Error);
    }
  }

  private options(watch: boolean): HeartbeaterOptions {
    const { servers, key, ca } = this.connection;
    return { servers, key: key.current, keyFile: key.file, ca, shared: this.memory, watch };
  }

  private startThread(): Promise<void> {
    return new Promise((resolve, reject) => {
      // No flags of the program: loaders and preloaded modules are user code.
      const thread = new Thread(HEARTBEATER_SOURCE, {
        eval: true,
        execArgv: [],
        workerData: this.options(true),
        name: "tickwheel-heartbeater",
      });
      const timer = setTimeout(() => reject(new Error("it was not ready in time")), START_MS_MAX);
      thread.unref();
      thread.once("error", reject);
      thread.on("error", (error: Error) => this.log.error("heartbeater failed", { error: error.message }));
      thread.once("exit", () => {
        clearTimeout(timer);
        reject(new Error("it ended"));
        if (this.thread === thread) this.gone();
      });
      thread.on("message", (message: FromHeartbeater) => {
        if (message.kind === "ready") {
          clearTimeout(timer);
          this.thread = thread;
          this.adopt(thread);
          resolve();
        } else {
          this.told(message);
        }
      });
    });
  }

  /** Without a thread, a handler that blocks the main loop can cost the lease. */
  private startHere(error: Error): void {
    this.log.warn("heartbeats run on the main loop, because their thread cannot start", { error: error.message });
    const { port1, port2 } = new MessageChannel();
    port1.on("message", (message: FromHeartbeater) => this.told(message));
    new Heartbeats(port2, this.options(false));
    port1.unref();
    port2.unref();
    this.adopt(port1);
  }

  private adopt(port: Port): void {
    this.port = port;
    const session = this.session;
    if (session) this.say({ kind: "session", ...session });
    if (this.proofs.length > 0) this.askProof();
  }

  private gone(): void {
    this.thread = undefined;
    this.port = undefined;
    if (this.stopped) return;
    const delayMs = Math.min(RESTART_MS_MAX, 1_000 * 2 ** this.restarts);
    this.restarts += 1;
    this.log.error("heartbeater gone, it is started again", { in_ms: delayMs });
    this.restartTimer = setTimeout(() => this.startThread().catch(() => this.gone()), delayMs);
  }

  private say(message: ToHeartbeater): void {
    this.port?.postMessage(message);
  }

  private told(message: FromHeartbeater): void {
    if (this.stopped) return;
    switch (message.kind) {
      case "ping":
        this.say({ kind: "pong", ping: message.ping, ...this.hooks.snapshot() });
        break;
      case "accepted":
        if (message.workerId !== this.session?.workerId) break;
        this.restarts = 0;
        this.hooks.accepted(message);
        if (message.resync) this.askProof();
        this.settleProofs(message.proved);
        break;
      case "unknown_worker":
        if (message.workerId === this.session?.workerId) this.hooks.unknownWorker(message.workerId);
        break;
      case "failed":
        if (message.workerId === this.session?.workerId) this.hooks.failed(message.reason, message.refused);
        break;
      case "blocked":
        this.log.warn("main loop blocked", {
          ms: Math.round(message.ms),
          handler: message.running ?? "unknown",
          stack: message.stack,
        });
        break;
      case "ready":
        break;
    }
  }

  /** Sends heartbeats for this session from now on. */
  begin(session: HeartbeatSession): void {
    this.session = session;
    const margin = Math.max(1_000, session.leaseMs / 10);
    Atomics.store(this.shared, 0, BigInt(Math.round((session.sentMs + session.leaseMs - margin) * 1_000)));
    Atomics.store(this.shared, 1, BigInt(Math.round(session.sentMs * 1_000)));
    this.say({ kind: "session", ...session });
  }

  /** Sends none until the next session. */
  pause(): void {
    this.session = undefined;
    this.failProofs();
    this.say({ kind: "pause" });
  }

  /** News of an attempt. The first goes at once, then at most every 100 ms; the thread waits for its moment. */
  progress(token: string, percent: number, message: string | undefined): void {
    this.news.set(token, [token, percent, message]);
    if (this.newsTimer) return;
    const flush = () => {
      this.newsTimer = undefined;
      if (this.news.size === 0) return;
      this.say({ kind: "progress", news: [...this.news.values()] });
      this.news.clear();
      this.newsTimer = setTimeout(flush, PROGRESS_MS);
    };
    flush();
  }

  /** Resolves when a heartbeat with all our tokens, sent from now on, was accepted. Rejects when the lease is lost. */
  prove(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.proofs.push({ id: this.proofId + 1, resolve, reject });
      this.askProof();
    });
  }

  /** Sends a heartbeat soon, to say that something changed. */
  beat(): void {
    this.askProof();
  }

  private askProof(): void {
    if (this.asking || this.stopped) return;
    this.asking = true;
    // Those who ask in the same turn share a heartbeat.
    setImmediate(() => {
      this.asking = false;
      this.proofId += 1;
      this.say({ kind: "prove", id: this.proofId, tokens: this.hooks.tokens() });
    });
  }

  private settleProofs(proved: number | undefined): void {
    if (proved === undefined) return;
    for (const proof of this.proofs.filter((one) => one.id <= proved)) proof.resolve();
    this.proofs = this.proofs.filter((one) => one.id > proved);
  }

  /** The lease is not provable any more: whoever waits for a proof gets none. */
  failProofs(): void {
    for (const proof of this.proofs.splice(0)) proof.reject(new LeaseLost());
  }

  /** Whether the lease is provable at this moment. */
  get isProvable(): boolean {
    return nowMs() < this.provableUntilMs;
  }

  /** Ends the thread. */
  async stop(): Promise<void> {
    this.stopped = true;
    this.failProofs();
    clearTimeout(this.newsTimer);
    clearTimeout(this.restartTimer);
    this.say({ kind: "stop" });
    await this.thread?.terminate();
  }
}
