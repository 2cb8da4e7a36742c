/** A worker on a fake server, with its log lines kept. */

import type { TestContext } from "node:test";
import { type Logger, Worker, type WorkerOptions } from "tickwheel/worker";
import { eventually, FakeServer } from "./fake-server.js";

export interface Line {
  level: string;
  message: string;
  fields: Readonly<Record<string, unknown>>;
}

export function keepLines(): { logger: Logger; lines: Line[] } {
  const lines: Line[] = [];
  const keep =
    (level: string) =>
    (message: string, fields: Readonly<Record<string, unknown>> = {}) => {
      lines.push({ level, message, fields });
      if (process.env.SHOW_LOG) process.stderr.write(`${level} ${message} ${JSON.stringify(fields)}\n`);
    };
  return { logger: { debug: keep("debug"), info: keep("info"), warn: keep("warn"), error: keep("error") }, lines };
}

export interface Rig<S> {
  fake: FakeServer;
  worker: Worker<S>;
  lines: Line[];
  running: Promise<void>;
  line(start: string): Promise<Line>;
}

/** Starts a worker and stops it after the test, whatever happens. */
export async function rig<S = undefined>(
  t: TestContext,
  register: (worker: Worker<S>, fake: FakeServer) => void,
  options: WorkerOptions<S> & { fake?: (fake: FakeServer) => void } = {},
): Promise<Rig<S>> {
  const fake = await FakeServer.start();
  const { fake: prepare, ...rest } = options;
  prepare?.(fake);
  const { logger, lines } = keepLines();
  const worker = new Worker<S>({ server: fake.url, handleSignals: false, logger, name: "test", ...rest });
  register(worker, fake);
  const running = worker.run();
  running.catch(() => undefined);
  t.after(async () => {
    fake.fault = () => undefined;
    void worker.stop().catch(() => undefined);
    void worker.stop().catch(() => undefined);
    await running.catch(() => undefined);
    await fake.stop();
  });
  const line = (start: string) =>
    eventually(`log line "${start}"`, () => lines.find(({ message }) => message.startsWith(start)));
  return { fake, worker, lines, running, line };
}
