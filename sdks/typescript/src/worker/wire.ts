/** What the worker's calls send and are answered: "Workers" in docs/reference/openapi.json. */

import type { components } from "../generated/api.js";

/** The version of the worker protocol that this library speaks. */
export const PROTOCOL = 1;

/** `GET /api/v1/server`. */
export interface ServerInfo {
  version: string;
  worker_protocol: { min: number; max: number };
  features: string[];
}

/** `POST /api/v1/workers`. */
export interface Registered {
  worker_id: string;
  lease: string;
  heartbeat_interval?: string;
  poll_wait?: string;
  limits?: Partial<Limits>;
}

/** The bounds of a worker's requests. */
export interface Limits {
  poll_jobs: number;
  reports: number;
  report_bytes: number;
  result_bytes: number;
  log_line_bytes: number;
  log_bytes: number;
}

/** Bounds for a server that does not say. */
export const DEFAULT_LIMITS: Limits = {
  poll_jobs: 1_000,
  reports: 1_000,
  report_bytes: 16 * 1024 * 1024,
  result_bytes: 256 * 1024,
  log_line_bytes: 16 * 1024,
  log_bytes: 1024 * 1024,
};

/** A job that the worker is to run. */
export interface Assignment {
  job: components["schemas"]["Job"];
  attempt: number;
  token: string;
  fencing_token: number;
  deadline: string;
  deadline_in: string;
  traceparent?: string | null;
}

/** `POST …/poll`. */
export interface Polled {
  jobs: Assignment[];
  seq?: number;
  cancel?: string[];
  lost?: string[];
  drain?: boolean;
}

/** `POST …/report`, and `POST …/logs`. */
export interface Results {
  results: (
    | { status: "accepted"; job_status?: string }
    | { error: { code: string; detail: string; status: number } }
  )[];
}

/** A line of an attempt's log. */
export interface WireLine {
  age: string;
  level: string;
  message: string;
  fields?: Readonly<Record<string, unknown>>;
}

/** Lines of a log, numbered from `first` on. */
export interface WireLines {
  first: number;
  lines: WireLine[];
}

/** `POST /attempts/{token}/once/{key}`. */
export interface OnceAnswer {
  state: "first" | "done" | "busy" | "in_doubt";
  result?: unknown;
  retry_in?: string | null;
}
