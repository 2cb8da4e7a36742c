/**
 * A server in memory that speaks the worker protocol well enough to try out the library's state machines, with knobs for
 * what a real server does not do on request. What the real server does is tested in server.test.ts.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

interface Body {
  [name: string]: unknown;
}

/** A job that waits or was handed out. */
export interface FakeJob {
  id: string;
  type: string;
  payload: unknown;
  attempt: number;
  timeout: string;
}

/** A request that arrived. */
export interface Seen {
  method: string;
  path: string;
  body: Body;
  key: string | undefined;
}

export interface Report extends Body {
  token: string;
  outcome: string;
}

/** What a knob does to a request: nothing, answer this, cut the connection, or carry it out and swallow the answer. */
export type Fault = undefined | { status: number; body: Body; headers?: Record<string, string> } | "cut" | "swallow";

export class FakeServer {
  readonly seen: Seen[] = [];
  readonly reports: Report[] = [];
  readonly logs: Body[] = [];
  readonly waiting: FakeJob[] = [];
  readonly once = new Map<string, unknown>();
  cancel: string[] = [];
  lost: string[] = [];
  drain = false;
  /** The server counts other attempts than the worker, until a test says otherwise. */
  resync = false;
  features = ["once", "logs", "resync"];
  lease = "5s";
  heartbeatInterval: string | undefined;
  pollWait = "2s";
  protocol = { min: 1, max: 1 };
  /** Looks at every request first. */
  fault: (request: Seen) => Fault = () => undefined;
  /** What the server thinks of a report. */
  judge: (report: Report) => Body = () => ({ status: "accepted", job_status: "completed" });
  session = 0;
  private readonly answers = new Map<number, Body>();
  private readonly waiters = new Set<() => void>();
  private readonly server: Server;
  private jobs = 0;
  url = "";

  constructor() {
    this.server = createServer((request, response) => void this.handle(request, response));
  }

  static async start(): Promise<FakeServer> {
    const fake = new FakeServer();
    await fake.listen(0);
    return fake;
  }

  async listen(port: number): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(port, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  /** Adds a job and lets waiting polls see it. */
  submit(type: string, payload: unknown = null, timeout = "60s"): FakeJob {
    this.jobs += 1;
    const job = {
      id: `0193${String(this.jobs).padStart(4, "0")}-0000-7000-8000-000000000000`,
      type,
      payload,
      attempt: 1,
      timeout,
    };
    this.waiting.push(job);
    this.wake();
    return job;
  }

  wake(): void {
    for (const wake of [...this.waiters]) wake();
  }

  calls(suffix: string): Seen[] {
    return this.seen.filter((request) => request.path.endsWith(suffix));
  }

  token(job: FakeJob): string {
    return `tok-${job.id}-${job.attempt}`;
  }

  /** The report on a job, as soon as there is one. */
  async report(job: FakeJob): Promise<Report> {
    return eventually(`a report on ${job.type}`, () => this.reports.find((report) => report.token === this.token(job)));
  }

  private async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = "";
    for await (const chunk of request) text += chunk;
    const seen: Seen = {
      method: request.method ?? "",
      path: request.url ?? "",
      body: text === "" ? {} : (JSON.parse(text) as Body),
      key: request.headers.authorization?.slice("Bearer ".length),
    };
    this.seen.push(seen);
    const fault = this.fault(seen);
    if (fault === "cut") return void request.socket.destroy();
    const answer = typeof fault === "object" ? fault : await this.answer(seen, response);
    if (fault === "swallow" || response.destroyed) return;
    response.writeHead(answer.status, {
      "content-type": "application/json",
      ...(answer as { headers?: object }).headers,
    });
    response.end(answer.status === 204 ? "" : JSON.stringify(answer.body));
  }

  private async answer(seen: Seen, response: ServerResponse): Promise<{ status: number; body: Body }> {
    const ok = (body: Body, status = 200) => ({ status, body });
    const [, , version, noun, id, verb, key, last] = seen.path.split(/[/?]/);
    if (version !== "v1") return problem(404, "not_found");
    if (noun === "server") return ok({ version: "0.1.0", worker_protocol: this.protocol, features: this.features });
    if (noun === "attempts") return this.onceCall(key as string, last);
    if (noun !== "workers") return problem(404, "not_found");
    if (!id) return ok(this.register(), 201);
    if (id !== `w${this.session}`) return problem(404, "unknown_worker");
    if (seen.method === "DELETE") return ok({}, 204);
    if (verb === "poll") return ok(await this.poll(seen.body, response));
    if (verb === "heartbeat") return ok(this.heartbeat());
    if (verb === "logs") {
      this.logs.push(...(seen.body.logs as Body[]));
      return ok({ results: (seen.body.logs as Body[]).map(() => ({ status: "accepted" })) });
    }
    if (verb === "report")
      return ok({ results: (seen.body.reports as Report[]).map((report) => this.reported(report)) });
    return problem(404, "not_found");
  }

  private register(): Body {
    this.session += 1;
    this.answers.clear();
    return {
      worker_id: `w${this.session}`,
      lease: this.lease,
      ...(this.heartbeatInterval && { heartbeat_interval: this.heartbeatInterval }),
      poll_wait: this.pollWait,
      limits: { poll_jobs: 1000, reports: 1000, result_bytes: 262_144 },
    };
  }

  private heartbeat(): Body {
    const { cancel, lost, drain, resync } = this;
    this.cancel = [];
    this.lost = [];
    return { lease: this.lease, cancel, lost, drain, resync };
  }

  private async poll(body: Body, response: ServerResponse): Promise<Body> {
    const seq = body.seq as number;
    const known = this.answers.get(seq);
    if (known) return known;
    this.answers.clear();
    this.wake();
    const waitMs = Number.parseFloat(body.wait as string) * ((body.wait as string).endsWith("ms") ? 1 : 1000);
    const end = performance.now() + waitMs;
    let superseded = false;
    for (;;) {
      const jobs = superseded ? [] : this.take(body.max as number, (body.slots ?? {}) as Record<string, number>);
      const left = end - performance.now();
      if (jobs.length > 0 || this.cancel.length > 0 || this.lost.length > 0 || left <= 0 || superseded) {
        const { cancel, lost, drain } = this;
        this.cancel = [];
        this.lost = [];
        const answer = { seq, jobs: jobs.map((job) => this.assignment(job)), cancel, lost, drain };
        if (!superseded) this.answers.set(seq, answer);
        return answer;
      }
      if (response.destroyed) return {};
      const session = this.session;
      const polls = this.calls("/poll").length;
      await new Promise<void>((resolve) => {
        const wake = () => {
          clearTimeout(timer);
          this.waiters.delete(wake);
          resolve();
        };
        const timer = setTimeout(wake, Math.min(left, 50));
        this.waiters.add(wake);
      });
      const later = this.calls("/poll").slice(polls);
      superseded = session !== this.session || later.some((call) => (call.body.seq as number) > seq);
    }
  }

  private take(max: number, slots: Record<string, number>): FakeJob[] {
    const left = { ...slots };
    const taken = this.waiting.filter((job) => {
      if (max <= 0 || left[job.type] === 0) return false;
      max -= 1;
      if (left[job.type] !== undefined) left[job.type] = (left[job.type] as number) - 1;
      return true;
    });
    for (const job of taken) this.waiting.splice(this.waiting.indexOf(job), 1);
    return taken;
  }

  private assignment(job: FakeJob): Body {
    return {
      job: {
        id: job.id,
        type: job.type,
        payload: job.payload,
        queue: "default",
        max_retries: 3,
        metadata: { some_key: 1 },
      },
      attempt: job.attempt,
      token: this.token(job),
      fencing_token: job.attempt,
      deadline: "2026-01-01T00:00:00Z",
      deadline_in: job.timeout,
      traceparent: null,
    };
  }

  private reported(report: Report): Body {
    const verdict = this.judge(report);
    if (verdict.status === "accepted") this.reports.push(report);
    return verdict;
  }

  private onceCall(key: string, last: string | undefined): { status: number; body: Body } {
    const body = this.seen.at(-1)?.body ?? {};
    if (last === "done") {
      this.once.set(key, body.result);
      return { status: 204, body: {} };
    }
    if (last === "abandon") return { status: 204, body: {} };
    return {
      status: 200,
      body: this.once.has(key) ? { state: "done", result: this.once.get(key) } : { state: "first" },
    };
  }
}

export function problem(status: number, code: string, headers?: Record<string, string>) {
  return {
    status,
    body: { type: "", title: code, status, detail: `it is ${code}`, code },
    ...(headers && { headers }),
  };
}

/** Waits until `look` finds something. */
export async function eventually<T>(
  what: string,
  look: () => T | undefined | Promise<T | undefined>,
  withinMs = 10_000,
) {
  const end = performance.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found as Exclude<T, undefined | false>;
    if (performance.now() > end) throw new Error(`no ${what} within ${withinMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
