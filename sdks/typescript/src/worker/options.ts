/** Options of a worker and the environment behind them. All mistakes are collected. */

import { hostname } from "node:os";
import type { ClientOptions } from "../client.js";
import { type Duration, milliseconds } from "../duration.js";
import { type Connection, type ConnectionOptions, readConnection, variable } from "../environment.js";
import type { OpenTelemetry } from "../telemetry.js";
import { type Logger, type LogLevel, stderrLogger } from "./log.js";

/** A label of a worker: jobs can require it. */
export type Label = boolean | number | string;

/** How a worker is made. Everything has a default. */
export interface WorkerOptions<S> extends ConnectionOptions {
  /** A name for people. Default `TICKWHEEL_WORKER_NAME`, else the name of the host. */
  name?: string;
  /** The queues that it serves. Default `TICKWHEEL_QUEUES` (with commas), else `default`. */
  queues?: readonly string[];
  /** What it offers to jobs with `requires`. Default `TICKWHEEL_LABELS`: JSON, or `gpu=true,zone=eu-1`. */
  labels?: Readonly<Record<string, Label>>;
  /** How many jobs it runs at a time. Default `TICKWHEEL_CAPACITY`, else 10. */
  capacity?: number;
  /** How long its jobs stay its own when it falls silent, 5 s to 10 min. Default `TICKWHEEL_LEASE`, else the server's. */
  lease?: Duration;
  /** How long running jobs may go on after SIGTERM. Default `TICKWHEEL_DRAIN_TIMEOUT`, else 25 s. */
  drainTimeout?: Duration;
  /** A port for `/healthz` and `/readyz`. Default `TICKWHEEL_HEALTH_PORT`, else none. */
  healthPort?: number;
  /** The address that the health port listens on. Default: all. */
  healthHost?: string;
  /** Opens what handlers share: `ctx.state`. Called once, before the first job. */
  state?: () => S | Promise<S>;
  /** Closes it, after the last job. */
  dispose?: (state: S) => unknown;
  /** Drains on SIGTERM and SIGINT, and ends the process when the server refuses the worker. Default true. */
  handleSignals?: boolean;
  /** Takes the worker's log lines. Default: standard error. */
  logger?: Logger;
  /** From which level on lines go to standard error. Default `info`. */
  logLevel?: LogLevel;
  /** The program's `@opentelemetry/api`. Found by itself unless the program is bundled. */
  telemetry?: OpenTelemetry;
  /** What differs for `ctx.client`. */
  client?: ClientOptions;
}

/** The same, complete and checked. */
export interface Settings {
  readonly connection: Connection;
  readonly name: string;
  readonly queues: readonly string[];
  readonly labels: Readonly<Record<string, Label>> | undefined;
  readonly capacity: number;
  readonly leaseMs: number | undefined;
  readonly drainTimeoutMs: number;
  readonly healthPort: number | undefined;
  readonly healthHost: string | undefined;
  readonly handleSignals: boolean;
  readonly log: Logger;
}

const CAPACITY_MAX = 100_000;

/** Reads options and environment. Each mistake names the option, or the variable that it comes from. */
export function readSettings<S>(options: WorkerOptions<S>, mistakes: string[]): Settings {
  /** An option, else its variable, read by `parse`. */
  const read = <T>(option: string, name: string, given: unknown, parse: (value: never) => T): T | undefined => {
    const source = given === undefined ? `TICKWHEEL_${name}` : option;
    const value = given === undefined ? variable(source) : given;
    if (value === undefined) return undefined;
    try {
      return parse(value as never);
    } catch (error) {
      mistakes.push(`${source}: ${(error as Error).message}`);
      return undefined;
    }
  };
  const connection = readConnection(options, mistakes);
  return {
    connection,
    name: read("name", "WORKER_NAME", options.name, text) ?? hostname(),
    queues: read("queues", "QUEUES", options.queues, names) ?? ["default"],
    labels: read("labels", "LABELS", options.labels, readLabels),
    capacity: read("capacity", "CAPACITY", options.capacity, (value) => whole(value, 1, CAPACITY_MAX)) ?? 10,
    leaseMs: read("lease", "LEASE", options.lease, lease),
    drainTimeoutMs: read("drainTimeout", "DRAIN_TIMEOUT", options.drainTimeout, milliseconds) ?? 25_000,
    healthPort: read("healthPort", "HEALTH_PORT", options.healthPort, (value) => whole(value, 0, 65_535)),
    healthHost: options.healthHost,
    handleSignals: options.handleSignals ?? true,
    log: options.logger ?? stderrLogger(options.logLevel ?? "info"),
  };
}

function text(value: string): string {
  if (value.trim() === "") throw new RangeError("must not be empty");
  return value;
}

function names(value: string | readonly string[]): string[] {
  const list = (typeof value === "string" ? value.split(",") : [...value]).map((name) => name.trim());
  if (list.length === 0 || list.includes("")) throw new RangeError("must be names, separated by commas");
  return list;
}

function whole(value: string | number, least: number, most: number): number {
  const number = typeof value === "number" ? value : /^[0-9]+$/.test(value) ? Number(value) : Number.NaN;
  if (Number.isInteger(number) && number >= least && number <= most) return number;
  throw new RangeError(`must be a whole number from ${least} to ${most}, not ${value}`);
}

function lease(value: Duration): number {
  const ms = milliseconds(value);
  if (ms < 5_000 || ms > 600_000) throw new RangeError("must be from 5s to 10m");
  return ms;
}

function readLabels(value: string | Readonly<Record<string, Label>>): Record<string, Label> {
  if (typeof value !== "string") return { ...value };
  if (value.trimStart().startsWith("{")) {
    const labels = JSON.parse(value) as Record<string, unknown>;
    for (const [name, label] of Object.entries(labels)) {
      if (!["boolean", "number", "string"].includes(typeof label)) {
        throw new RangeError(`"${name}" must be a flag, a number or a text`);
      }
    }
    return labels as Record<string, Label>;
  }
  const pairs = names(value).map((pair) => {
    const [, name, label] = /^([^=]+)=(.+)$/.exec(pair) ?? [];
    if (name === undefined || label === undefined) throw new RangeError(`"${pair}" is not name=value`);
    return [name.trim(), plainLabel(label.trim())] as const;
  });
  return Object.fromEntries(pairs);
}

function plainLabel(label: string): Label {
  if (label === "true" || label === "false") return label === "true";
  return /^-?[0-9]+(\.[0-9]+)?$/.test(label) ? Number(label) : label;
}
