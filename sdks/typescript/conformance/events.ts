/** Events for the cases: one line of JSON each, written with one write. */

import { openSync, writeSync } from "node:fs";
import type { Context } from "tickwheel/worker";

const path = process.env.CONFORMANCE_EVENTS;
const file = path === undefined ? undefined : openSync(path, "a");

export function record(event: string, fields: Record<string, unknown>): void {
  if (file === undefined) return;
  const clocks = { pid: process.pid, wall_ms: Date.now(), mono_ms: performance.now() };
  writeSync(file, `${JSON.stringify({ event, ...fields, ...clocks })}\n`);
}

export function recordFor(ctx: Context, event: string, fields: Record<string, unknown>): void {
  const { job, attempt, fencingToken } = ctx;
  record(event, { type: job.type, job_id: job.id, attempt, fencing_token: fencingToken, ...fields });
}
