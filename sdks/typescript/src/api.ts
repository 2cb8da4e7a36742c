/**
 * Calls to the server: addresses in turn, the API key, problem documents as errors, and repeating what may be repeated.
 */

import type { Connection } from "./environment.js";
import { ConnectionFailed } from "./errors.js";
import { problemError } from "./problem-error.js";
import { Problem } from "./problems.js";
import type { Transport } from "./transport.js";

/** A call to the server. */
export interface Call {
  /** JSON, as a value or as text that is ready. */
  readonly body?: unknown;
  readonly bodyText?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Called when the operating system has the whole request. */
  readonly onSent?: () => void;
}

/** An answer with a status below 400. */
export interface Answer<T> {
  readonly status: number;
  readonly body: T;
}

const CALL_TIMEOUT_MS = 30_000;
const BACKOFF_FIRST_MS = 100;

/** A random time up to a limit that doubles with every failure: 100 ms, 200 ms … */
export function backoffMs(failures: number, capMs: number, random: () => number = Math.random): number {
  return random() * Math.min(capMs, BACKOFF_FIRST_MS * 2 ** Math.min(failures, 20));
}

/** Whether the same call can succeed later: nobody answered, or somebody who says so. */
export function isTemporary(error: unknown): boolean {
  if (error instanceof ConnectionFailed) return true;
  if (!(error instanceof Problem)) return false;
  if (error.code === "wait_timeout") return false;
  return [408, 425, 429, 500, 502, 503, 504].includes(error.status);
}

/** The server, at one of its addresses. */
export class Api {
  /** Where the server is and how it is reached. */
  readonly connection: Connection;
  private readonly transport: Transport;
  private current: number;

  constructor(connection: Connection, transport: Transport) {
    this.connection = connection;
    this.transport = transport;
    this.current = Math.floor(Math.random() * connection.servers.length);
  }

  /** The address that calls go to at the moment. */
  get server(): string {
    return this.connection.servers[this.current % this.connection.servers.length] as string;
  }

  /** One call, made once. Throws a `Problem` when the server refuses it, `ConnectionFailed` when nobody answers. */
  async once<T>(method: string, path: string, call: Call = {}): Promise<Answer<T>> {
    const used = this.current;
    const { key } = this.connection;
    const usedKey = key.current;
    try {
      return await this.exchange<T>(method, path, call);
    } catch (error) {
      if (isTemporary(error) && !call.signal?.aborted && used === this.current) this.current += 1;
      if ((error as Partial<Problem>).status !== 401) throw error;
      // The key may have been rotated, and somebody else may have noticed before us.
      key.readAgain();
      if (key.current === usedKey) throw error;
      return this.exchange<T>(method, path, call);
    }
  }

  private async exchange<T>(method: string, path: string, call: Call): Promise<Answer<T>> {
    const body = call.bodyText ?? (call.body === undefined ? undefined : JSON.stringify(call.body));
    const key = this.connection.key.current;
    // A POST needs its content type even without a body.
    const typed = body !== undefined || method === "POST";
    const answer = await this.transport({
      method,
      url: this.server + path,
      headers: {
        accept: "application/json",
        ...(typed && { "content-type": "application/json" }),
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
        ...call.headers,
      },
      timeoutMs: call.timeoutMs ?? CALL_TIMEOUT_MS,
      ...(body !== undefined && { body }),
      ...(call.signal && { signal: call.signal }),
      ...(call.onSent && { onSent: call.onSent }),
    });
    const document = parse(answer.body);
    if (answer.status < 400) {
      if (document === BROKEN) throw new ConnectionFailed(`${method} ${path}: the answer is not JSON`);
      return { status: answer.status, body: document as T };
    }
    throw problemError(document, answer.status, retryAfterMs(answer.header("retry-after")));
  }

  /**
   * A call that may be repeated, until `withinMs` have passed. A repeated change of state can find its own effect and be
   * refused with `illegal_state`; `recover` then looks whether that is so.
   */
  async repeat<T>(
    method: string,
    path: string,
    call: Call & { withinMs: number; recover?: () => Promise<T | undefined> },
  ): Promise<Answer<T>> {
    const end = performance.now() + call.withinMs;
    for (let failures = 0; ; failures += 1) {
      try {
        return await this.once<T>(method, path, call);
      } catch (error) {
        if (failures > 0 && call.recover && (error as Partial<Problem>).code === "illegal_state") {
          const found = await call.recover();
          if (found !== undefined) return { status: 200, body: found };
        }
        const asked = error instanceof Problem ? error.retryAfterMs : undefined;
        const delayMs = Math.max(asked ?? 0, backoffMs(failures, 5_000));
        if (!isTemporary(error) || call.signal?.aborted || performance.now() + delayMs >= end) throw error;
        await new Promise((resolve) => setTimeout(resolve, delayMs));
      }
    }
  }
}

const BROKEN = Symbol("not JSON");

function parse(text: string): unknown {
  if (text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return BROKEN;
  }
}

function retryAfterMs(header: string | undefined): number | undefined {
  const seconds = Number(header ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds, 300) * 1_000 : undefined;
}
