/**
 * The session with the server: registers, and registers again when the server does not know the worker any more. All
 * calls of a worker go through here, so that what is known of the server is in one place.
 */

import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { Api, backoffMs, type Call, isTemporary } from "../api.js";
import { milliseconds } from "../duration.js";
import { TickwheelError } from "../errors.js";
import { Problem } from "../problems.js";
import { nodeTransport } from "../transport.js";
import { VERSION } from "../version.js";
import { nowMs, Pause } from "./clock.js";
import type { Settings } from "./options.js";
import { DEFAULT_LIMITS, type Limits, PROTOCOL, type Registered, type ServerInfo } from "./wire.js";

/** The server does not take this worker: its key, its options or its protocol. */
export class WorkerRefused extends TickwheelError {
  override readonly name = "WorkerRefused";
}

/** An open session. */
export interface OpenSession {
  readonly workerId: string;
  readonly leaseMs: number;
  readonly intervalMs: number;
  readonly pollWaitMs: number;
  readonly limits: Limits;
  readonly features: ReadonlySet<string>;
  /** When the registration was sent. */
  readonly sentMs: number;
}

const CONNECT_RETRY_MS_MAX = 2_000;
const REFUSED_RETRY_MS = 30_000;
const AWAY_LOG_MS = 30_000;

/** The session of a worker. */
export class Session {
  /** Calls to the server. */
  readonly api: Api;
  private readonly settings: Settings;
  private readonly types: () => string[];
  private open: OpenSession | undefined;
  private waiters: ((session: OpenSession) => void)[] = [];
  private readonly pause = new Pause();
  private stopped = false;
  private awaySinceMs: number | undefined;
  private awayLoggedMs = 0;

  constructor(settings: Settings, types: () => string[]) {
    this.settings = settings;
    this.types = types;
    this.api = new Api(settings.connection, nodeTransport(settings.connection.ca));
  }

  /** The open session, if there is one. */
  get current(): OpenSession | undefined {
    return this.open;
  }

  /** The open session, as soon as there is one. */
  ready(): Promise<OpenSession> {
    if (this.open) return Promise.resolve(this.open);
    return new Promise((resolve) => this.waiters.push(resolve));
  }

  /**
   * Opens a session. A server that is away is tried for ever. One that refuses the worker is an error at the start, and
   * is asked again every 30 s later on. Answers nothing when the worker was stopped meanwhile.
   */
  async connect(first: boolean): Promise<OpenSession | undefined> {
    const instance = randomUUID();
    for (let failures = 0; !this.stopped; failures += 1) {
      try {
        const session = await this.register(instance);
        this.back();
        this.opened(session);
        return session;
      } catch (error) {
        if (isTemporary(error)) {
          this.away((error as Error).message);
          await this.pause.wait(backoffMs(failures, CONNECT_RETRY_MS_MAX));
          continue;
        }
        const reason = `the server refuses this worker: ${(error as Error).message}`;
        if (first) throw new WorkerRefused(reason, { cause: error });
        this.settings.log.error("refused by the server", { call: "register", error: (error as Error).message });
        await this.refusalEnds();
      }
    }
    return undefined;
  }

  private async register(instance: string): Promise<OpenSession> {
    const { settings } = this;
    const { body: info } = await this.api.once<ServerInfo>("GET", "/api/v1/server", { timeoutMs: 10_000 });
    const { min, max } = info.worker_protocol;
    if (PROTOCOL < min || PROTOCOL > max) {
      throw new WorkerRefused(`protocol_unsupported: it speaks worker protocol ${min} to ${max}, this is ${PROTOCOL}`);
    }
    const sentMs = nowMs();
    const { body } = await this.api.once<Registered>("POST", "/api/v1/workers", {
      timeoutMs: 10_000,
      body: {
        name: settings.name,
        queues: settings.queues,
        types: this.types(),
        capacity: settings.capacity,
        ...(settings.labels && { labels: settings.labels }),
        protocol: PROTOCOL,
        library: `typescript/${VERSION}`,
        instance,
        ...(settings.leaseMs !== undefined && { lease: `${settings.leaseMs}ms` }),
        host: hostname().slice(0, 255) || "unknown",
        pid: process.pid,
      },
    });
    const leaseMs = milliseconds(body.lease);
    return {
      workerId: body.worker_id,
      leaseMs,
      intervalMs: body.heartbeat_interval ? milliseconds(body.heartbeat_interval) : leaseMs / 3,
      pollWaitMs: body.poll_wait ? milliseconds(body.poll_wait) : 20_000,
      limits: { ...DEFAULT_LIMITS, ...body.limits },
      features: new Set(info.features),
      sentMs,
    };
  }

  private opened(session: OpenSession): void {
    this.open = session;
    this.settings.log.info("registered", {
      worker_id: session.workerId,
      server: this.api.server,
      types: this.types().join(","),
      queues: this.settings.queues.join(","),
      capacity: this.settings.capacity,
      lease_ms: session.leaseMs,
    });
    for (const resolve of this.waiters.splice(0)) resolve(session);
  }

  /** The server does not know this session any more. Answers whether that is news. */
  lost(workerId: string): boolean {
    if (this.open?.workerId !== workerId) return false;
    this.open = undefined;
    return true;
  }

  /** Waits until a refused call is worth another try: 30 s, or as soon as the key file has another key. */
  async refusalEnds(): Promise<void> {
    const { key } = this.settings.connection;
    const refused = key.current;
    const end = nowMs() + REFUSED_RETRY_MS;
    while (!this.stopped && nowMs() < end) {
      await this.pause.wait(1_000);
      key.readAgain();
      if (key.current !== refused) return;
    }
  }

  /** A call under the session that is open, as soon as one is. */
  async call<T>(method: string, path: string, call: Call): Promise<T> {
    const session = await this.ready();
    return this.callAs<T>(session, method, path, call);
  }

  /** A call under this session. */
  async callAs<T>(session: OpenSession, method: string, path: string, call: Call): Promise<T> {
    return (await this.api.once<T>(method, `/api/v1/workers/${session.workerId}${path}`, call)).body;
  }

  /** How long calls other than polls may take: short enough that a lost answer does not cost the lease. */
  get callTimeoutMs(): number {
    return Math.min(15_000, Math.max(2_000, (this.open?.leaseMs ?? 15_000) / 2));
  }

  /** Nobody answers. Logged once, then every 30 s. */
  away(reason: string): void {
    if (this.stopped) return;
    this.awaySinceMs ??= nowMs();
    if (nowMs() - this.awayLoggedMs < AWAY_LOG_MS) return;
    this.awayLoggedMs = nowMs();
    this.settings.log.warn("server away", { for_ms: Math.round(nowMs() - this.awaySinceMs), error: reason });
  }

  /** Somebody answered. */
  back(): void {
    if (this.awaySinceMs === undefined) return;
    this.settings.log.info("reconnected", { after_ms: Math.round(nowMs() - this.awaySinceMs) });
    this.awaySinceMs = undefined;
    this.awayLoggedMs = 0;
  }

  /** Gives up connecting. */
  stop(): void {
    this.stopped = true;
    this.pause.end();
  }

  /** Ends the session: what it still holds goes back at once. */
  async leave(timeoutMs: number): Promise<void> {
    const session = this.open;
    this.open = undefined;
    if (!session) return;
    try {
      await this.callAs(session, "DELETE", "", { timeoutMs });
    } catch (error) {
      if (error instanceof Problem && error.code === "unknown_worker") return;
      this.settings.log.warn("could not leave: the server gives back what is left when the lease ends", {
        error: (error as Error).message,
      });
    }
  }
}
