/** The worker as people write it: handlers are registered, then it runs until it is stopped. */

import { Client } from "../client.js";
import { ConfigurationError } from "../errors.js";
import type { JobType } from "../job-type.js";
import { ambient, loadTelemetry } from "../telemetry.js";
import { running } from "./context.js";
import { serveHealth, type WorkerStats } from "./health.js";
import { readSettings, type Settings, type WorkerOptions } from "./options.js";
import {
  type BatchHandler,
  type BatchOptions,
  type Handler,
  type HandlerOptions,
  type Middleware,
  Registry,
} from "./registry.js";
import { Runtime } from "./runtime.js";
import { WorkerRefused } from "./session.js";

const registries = new WeakMap<Worker<never>, Registry>();

/** The handlers of a worker, for `tickwheel/testing`. */
export function registryOf(worker: Worker<never>): Registry {
  return registries.get(worker) as Registry;
}

/** Takes jobs from a Tickwheel server and runs their handlers. */
export class Worker<S = undefined> {
  private readonly options: WorkerOptions<S>;
  private readonly registry = new Registry();
  private readonly settings: Settings;
  private readonly mistakes: string[] = [];
  private runtime: Runtime | undefined;
  private stopsBeforeStart = 0;
  private ended: Promise<void> | undefined;

  constructor(options: WorkerOptions<S> = {}) {
    this.options = options;
    this.settings = readSettings(options, this.mistakes);
    registries.set(this as unknown as Worker<never>, this.registry);
  }

  /** Registers the handler of a job type. */
  handle<P, RI, RO>(type: JobType<never, P, RI, RO>, handler: Handler<P, RI, S>, options: HandlerOptions = {}): this {
    const single = handler as Handler<unknown, unknown, unknown>;
    this.registry.add(type, { single, batch: undefined }, options);
    return this;
  }

  /** Registers a handler that gets several jobs at once. */
  handleBatch<P, RI, RO>(
    type: JobType<never, P, RI, RO>,
    options: BatchOptions,
    handler: BatchHandler<P, RI, S>,
  ): this {
    const batch = handler as BatchHandler<unknown, unknown, unknown>;
    this.registry.add(type, { single: undefined, batch }, options);
    return this;
  }

  /** Registers a middleware around every attempt. The first is the outermost. */
  use(middleware: Middleware<S>): this {
    this.registry.middleware.push(middleware as Middleware<unknown>);
    return this;
  }

  /**
   * Works until it is stopped and drained. By default it drains on SIGTERM and SIGINT, and ends the process with code 2
   * when its options are bad or the server refuses it. With `handleSignals: false` it throws instead.
   */
  run(): Promise<void> {
    if (this.ended) throw new Error("a worker runs only once");
    this.ended = this.settings.handleSignals ? this.runAsProgram() : this.work();
    return this.ended;
  }

  private async runAsProgram(): Promise<void> {
    const unlisten = onSignals(() => this.requestStop());
    try {
      await this.work();
    } catch (error) {
      if (!(error instanceof ConfigurationError || error instanceof WorkerRefused)) throw error;
      this.settings.log.error(error.message);
      process.exit(2);
    } finally {
      unlisten();
    }
    // Handlers that do not end would keep the process alive; their jobs are elsewhere by now.
    if ((this.runtime?.running ?? 0) > 0) process.exit(0);
  }

  private async work(): Promise<void> {
    const mistakes = [...this.mistakes, ...this.registry.mistakes];
    if (this.registry.handlers.size === 0) mistakes.push("there is no handler");
    if (mistakes.length > 0) throw new ConfigurationError(mistakes);
    const telemetry = this.options.telemetry ?? (await loadTelemetry());
    const client = this.client();
    const state = (await this.options.state?.()) as S;
    const runtime = new Runtime(this.settings, this.registry, { state, client, telemetry });
    this.runtime = runtime;
    for (let stop = 0; stop < this.stopsBeforeStart; stop += 1) runtime.stop();
    const { healthPort, healthHost } = this.settings;
    const unlisten = onRejections(runtime);
    try {
      const health =
        healthPort === undefined ? undefined : await serveHealth(healthPort, healthHost, () => this.stats());
      try {
        await runtime.run();
      } finally {
        health?.close();
        health?.closeAllConnections();
      }
    } finally {
      unlisten();
      await this.options.dispose?.(state);
    }
  }

  private client(): Client {
    const { connection } = this.settings;
    const key = connection.key;
    return new Client({
      server: connection.servers,
      ...(key.file !== undefined ? { apiKeyFile: key.file } : key.current !== undefined && { apiKey: key.current }),
      ...(this.options.caFile !== undefined && { caFile: this.options.caFile }),
      ...(this.options.telemetry && { telemetry: this.options.telemetry }),
      ...this.options.client,
    });
  }

  private requestStop(): void {
    if (this.runtime) this.runtime.stop();
    else this.stopsBeforeStart += 1;
  }

  /** Lets running jobs finish, then ends `run`. Called again, it cancels them. Resolves when `run` has ended. */
  async stop(): Promise<void> {
    this.requestStop();
    await this.ended;
  }

  /** The numbers of this moment: the same as at the health port. */
  stats(): WorkerStats {
    return (
      this.runtime?.stats() ?? {
        phase: "connecting",
        workerId: undefined,
        capacity: this.settings.capacity,
        running: 0,
        stuck: 0,
        held: 0,
        reportsWaiting: 0,
        sinceHeartbeatMs: undefined,
        sincePollMs: undefined,
        healthy: true,
        ready: false,
      }
    );
  }
}

/** The first signal drains, the second cancels, the third ends the process. */
function onSignals(stop: () => void): () => void {
  let count = 0;
  const listener = () => {
    count += 1;
    if (count > 2) process.exit(130);
    stop();
  };
  // Windows has no SIGTERM: Ctrl-Break drains.
  const signals: NodeJS.Signals[] = process.platform === "win32" ? ["SIGINT", "SIGBREAK"] : ["SIGTERM", "SIGINT"];
  for (const signal of signals) process.on(signal, listener);
  return () => {
    for (const signal of signals) process.off(signal, listener);
  };
}

/**
 * A promise that is rejected inside a handler, and that nobody awaits, fails the attempt and not the process. All others
 * end the process, as they do without a worker.
 */
function onRejections(runtime: Runtime): () => void {
  const listener = (error: unknown) => {
    const ctx = running.getStore();
    if (ctx && runtime.rejected(ctx, error)) return;
    if (process.listenerCount("unhandledRejection") === 1) throw error;
  };
  process.on("unhandledRejection", listener);
  return () => process.off("unhandledRejection", listener);
}

ambient.traceparent = () => running.getStore()?.traceparent;

// The heartbeater asks this when the main loop is blocked: whose handler is it?
Object.defineProperty(globalThis, Symbol.for("tickwheel.running"), {
  configurable: true,
  value: () => {
    const ctx = running.getStore();
    return ctx && `${ctx.job.type} (job ${ctx.job.id}, attempt ${ctx.attempt})`;
  },
});
