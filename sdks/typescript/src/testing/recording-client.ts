/** A client that keeps what was submitted instead of sending it. Everything else of a client works on top of that. */

import { Client } from "../client.js";
import type { JobType } from "../job-type.js";

/** A job that somebody submitted. */
export interface SubmittedJob<P = unknown> {
  /** The id that the submitter was given. */
  readonly id: string;
  /** The name of its type. */
  readonly type: string;
  /** Its payload, as JSON. */
  readonly payload: P;
  /** The whole request, in the words of the REST API. */
  readonly request: Readonly<Record<string, unknown>>;
}

interface Wire {
  [name: string]: unknown;
}

/** Submits to memory. */
export class RecordingClient extends Client {
  private readonly memory: Memory;

  constructor() {
    const memory = new Memory();
    super({ server: "http://recording.invalid", fetch: memory.fetch, apiKey: "recording" });
    this.memory = memory;
  }

  /** All jobs that were submitted, in order. */
  get submitted(): readonly SubmittedJob[] {
    return this.memory.jobs;
  }

  /** Those of one type. */
  submittedOf<P>(type: JobType<P, unknown, never, unknown>): SubmittedJob<P>[] {
    return this.memory.jobs.filter((job) => job.type === type.name) as SubmittedJob<P>[];
  }

  /** Lets jobs of this type complete with this result, so that somebody can wait for them. */
  completes<R>(type: JobType<never, unknown, R, unknown>, result: R): this {
    this.memory.results.set(type.name, { status: "completed", result });
    return this;
  }

  /** Lets jobs of this type fail, so that somebody can wait for them. */
  fails(type: { readonly name: string }, code: string, message = code): this {
    this.memory.results.set(type.name, { status: "failed", error: { code, message } });
    return this;
  }

  /** The schedules and workflows that were stored, by name. */
  get stored(): ReadonlyMap<string, Readonly<Record<string, unknown>>> {
    return this.memory.stored;
  }
}

/** The REST API, as far as a submitter needs it. */
class Memory {
  readonly jobs: SubmittedJob[] = [];
  readonly results = new Map<string, Wire>();
  readonly stored = new Map<string, Wire>();

  readonly fetch = async (url: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const { pathname, searchParams } = new URL(String(url));
    const body = typeof init.body === "string" ? (JSON.parse(init.body) as Wire) : {};
    const [noun, id, verb] = pathname.replace("/api/v1/", "").split("/");
    const waits = searchParams.has("wait");
    const { status, answer } =
      noun === "jobs" && id !== undefined && id !== "batch"
        ? this.job(id, verb, waits)
        : this.answer(init.method ?? "GET", noun ?? "", id, body);
    return new Response(JSON.stringify(answer), { status, headers: { "content-type": "application/json" } });
  };

  private answer(method: string, noun: string, id: string | undefined, body: Wire) {
    if (noun === "jobs" && method === "POST" && id === undefined) return ok(this.store(body));
    if (noun === "jobs" && id === "batch") {
      return ok({ results: (body.jobs as Wire[]).map((job) => ({ job: this.store(job) })) });
    }
    if (method === "PUT" || (method === "POST" && id === undefined)) {
      this.stored.set(String(id ?? body.name), body);
      return ok({ ...body, name: id ?? body.name, id: crypto.randomUUID(), version: 1, definition: body });
    }
    return missing(405, "method_not_allowed", "a RecordingClient does not know this call");
  }

  private store(request: Wire): Wire {
    const key = request.idempotency_key;
    const known = this.jobs.find((job) => job.request.idempotency_key === key);
    if (known) return this.state(known);
    const job = { id: crypto.randomUUID(), type: String(request.type), payload: request.payload, request };
    this.jobs.push(job);
    return this.state(job);
  }

  private state(job: SubmittedJob): Wire {
    return { ...job.request, id: job.id, status: "scheduled", attempt: 0, ...this.results.get(job.type) };
  }

  private job(id: string, verb: string | undefined, waits: boolean) {
    const job = this.jobs.find((one) => one.id === id);
    if (!job) return missing(404, "not_found", `no job ${id} was submitted`);
    const state = this.state(job);
    if (verb === "cancel") return ok({ ...state, status: "cancelled" });
    if (waits && state.status === "scheduled")
      return missing(408, "wait_timeout", "nobody runs this job: say what completes");
    return ok(state);
  }
}

function ok(answer: Wire) {
  return { status: 200, answer };
}

function missing(status: number, code: string, detail: string) {
  return { status, answer: { type: `urn:tickwheel:problem:${code}`, title: code, status, code, detail } };
}
