/** `/healthz` and `/readyz`, for whoever watches the process. */

import { createServer, type Server } from "node:http";

/** The numbers of a worker at one moment. */
export interface WorkerStats {
  /** What the worker is doing. */
  readonly phase: "connecting" | "active" | "draining" | "cancelling" | "stopped";
  /** Its session, if one is open. */
  readonly workerId: string | undefined;
  /** How many jobs it runs at a time. */
  readonly capacity: number;
  /** How many slots are taken. */
  readonly running: number;
  /** How many of them by handlers that were cancelled and do not end. */
  readonly stuck: number;
  /** How many attempts it has whose report was not accepted yet. */
  readonly held: number;
  /** How many reports wait for the server. */
  readonly reportsWaiting: number;
  /** Milliseconds since the last heartbeat that was accepted. */
  readonly sinceHeartbeatMs: number | undefined;
  /** Milliseconds since the poll loop last turned. */
  readonly sincePollMs: number | undefined;
  /** Whether heartbeats are accepted and the poll loop turns. */
  readonly healthy: boolean;
  /** Whether it is healthy, registered and takes jobs. */
  readonly ready: boolean;
}

/** Listens until it is closed. */
export async function serveHealth(port: number, host: string | undefined, stats: () => WorkerStats): Promise<Server> {
  const server = createServer((request, response) => {
    const now = stats();
    const well = request.url === "/healthz" ? now.healthy : request.url === "/readyz" ? now.ready : undefined;
    response.setHeader("content-type", "application/json");
    response.statusCode = well === undefined ? 404 : well ? 200 : 503;
    response.end(well === undefined ? "{}" : JSON.stringify(now));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  server.unref();
  return server;
}
