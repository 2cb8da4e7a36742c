/**
 * The heartbeater: sends heartbeats on a connection of its own, where no handler can starve it, and nothing else. It
 * takes no jobs and runs no code of users.
 *
 * It runs in a worker thread. Its source travels as a string (see scripts/generate.mjs), so this file imports nothing of
 * this package. What it knows of the attempts, it asks the main side for just before each heartbeat; while the main side
 * does not answer, a heartbeat says nothing about them.
 */

import { readFileSync, writeSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import inspector from "node:inspector";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";

/** What the heartbeater is started with. */
export interface HeartbeaterOptions {
  readonly servers: readonly string[];
  readonly key: string | undefined;
  readonly keyFile: string | undefined;
  readonly ca: string | undefined;
  /** Microseconds on the monotonic clock: until when the lease is provable, and when it was last renewed. */
  readonly shared: SharedArrayBuffer;
  /** Whether it has a thread of its own, from which it can watch the main one. */
  readonly watch: boolean;
}

/** What the main side says. */
export type ToHeartbeater =
  | { kind: "session"; workerId: string; leaseMs: number; intervalMs: number }
  | { kind: "pong"; ping: number; held: number; stuck: number; draining: boolean }
  | { kind: "progress"; news: readonly [token: string, percent: number, message: string | undefined][] }
  | { kind: "prove"; id: number; tokens: readonly string[] }
  | { kind: "pause" }
  | { kind: "stop" };

/** What the heartbeater says. */
export type FromHeartbeater =
  | { kind: "ready" }
  | { kind: "ping"; ping: number }
  | {
      kind: "accepted";
      workerId: string;
      cancel: string[];
      lost: string[];
      drain: boolean;
      resync: boolean;
      proved: number | undefined;
    }
  | { kind: "unknown_worker"; workerId: string }
  | { kind: "failed"; workerId: string; reason: string; refused: boolean }
  | { kind: "blocked"; ms: number; running: string | undefined; stack: string | undefined };

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

const PONG_WAIT_MS = 100;
const WATCH_MS = 500;
const BLOCKED_MS = 1_000;
const BLOCKED_LONG_MS = 10_000;
const NEWS_MAX = 1_000;
const REFUSED_RETRY_MS = 30_000;
const RETRY_MS: readonly number[] = [250, 500];
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Milliseconds of a duration such as `15s` or `299.9s`. */
function durationMs(text: unknown, otherwise: number): number {
  const parts = /^([0-9.]+)(ms|s|m|h|d)$/.exec(String(text));
  const unit = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }[parts?.[2] ?? ""];
  return parts && unit ? Number(parts[1]) * unit : otherwise;
}

/** Sends heartbeats until it is told to stop. */
export class Heartbeats {
  private readonly options: HeartbeaterOptions;
  private readonly port: MessagePort;
  private readonly plain = new http.Agent({ keepAlive: true, maxSockets: 1 });
  private readonly secure: https.Agent;
  private readonly shared: BigInt64Array;
  private session: { workerId: string; leaseMs: number; intervalMs: number } | undefined;
  private key: string | undefined;
  private server = 0;
  private readonly news = new Map<string, readonly [string, number, string | undefined]>();
  private proof: { id: number; tokens: readonly string[] } | undefined;
  private timer: NodeJS.Timeout | undefined;
  private dueMs = 0;
  private beating = false;
  private beatAgain = false;
  private sentMs = 0;
  private failures = 0;
  private refusedMs = 0;
  private pings = 0;
  private pong: { ping: number; held: number; stuck: number; draining: boolean } | undefined;
  private onPong: (() => void) | undefined;
  private watch: NodeJS.Timeout | undefined;

  constructor(port: MessagePort, options: HeartbeaterOptions) {
    this.port = port;
    this.options = options;
    this.key = options.key;
    this.secure = new https.Agent({
      keepAlive: true,
      maxSockets: 1,
      ...(options.ca !== undefined && { ca: options.ca }),
    });
    this.shared = new BigInt64Array(options.shared);
    port.on("message", (message: ToHeartbeater) => this.told(message));
    this.say({ kind: "ready" });
    if (options.watch) this.watchMain();
  }

  private say(message: FromHeartbeater): void {
    this.port.postMessage(message);
  }

  private told(message: ToHeartbeater): void {
    switch (message.kind) {
      case "session":
        this.session = message;
        this.failures = 0;
        this.proof = undefined;
        this.news.clear();
        this.schedule(this.spread(message.intervalMs));
        break;
      case "pong":
        this.pong = message;
        this.onPong?.();
        break;
      case "progress":
        for (const item of message.news) this.news.set(item[0], item);
        if (this.failures === 0) this.bringForward(this.sentMs + 1_000);
        break;
      case "prove":
        this.proof = message;
        if (this.failures === 0) this.bringForward(0);
        break;
      case "pause":
        this.session = undefined;
        clearTimeout(this.timer);
        break;
      case "stop":
        this.session = undefined;
        clearTimeout(this.timer);
        clearInterval(this.watch);
        this.plain.destroy();
        this.secure.destroy();
        this.port.close();
        break;
    }
  }

  private spread(intervalMs: number): number {
    return intervalMs * (0.9 + 0.2 * Math.random());
  }

  private schedule(delayMs: number): void {
    clearTimeout(this.timer);
    this.dueMs = nowMs() + delayMs;
    this.timer = setTimeout(() => void this.beat(), delayMs);
  }

  /** Lets the next heartbeat be no later than this instant. */
  private bringForward(instantMs: number): void {
    if (!this.session) return;
    if (this.beating) this.beatAgain = true;
    else if (instantMs < this.dueMs) this.schedule(Math.max(0, instantMs - nowMs()));
  }

  private async beat(): Promise<void> {
    const session = this.session;
    if (!session || this.beating) return;
    this.beating = true;
    this.beatAgain = false;
    try {
      await this.beatOnce(session);
    } finally {
      this.beating = false;
      if (this.session) this.scheduleNext(this.session.intervalMs);
    }
  }

  private scheduleNext(intervalMs: number): void {
    if (this.failures > 0) return this.schedule(RETRY_MS[this.failures - 1] ?? 1_000);
    if (this.proof) return this.schedule(0);
    if (this.news.size > 0 || this.beatAgain) return this.schedule(Math.max(0, this.sentMs + 1_000 - nowMs()));
    return this.schedule(this.spread(intervalMs));
  }

  private async beatOnce(session: { workerId: string; leaseMs: number; intervalMs: number }): Promise<void> {
    if (!this.keyIsWorthATry()) return;
    const known = await this.askMain();
    const news = [...this.news.values()].slice(0, NEWS_MAX);
    const proof = this.proof;
    const body = {
      attempts: news.map(([token, progress, message]) => ({ token, progress, ...(message && { message }) })),
      state: (known ?? this.pong)?.draining ? "draining" : "active",
      stuck: (known ?? this.pong)?.stuck ?? 0,
      ...(known && !proof && { held: known.held }),
      ...(proof && { held: proof.tokens.length, tokens: proof.tokens }),
    };
    this.sentMs = nowMs();
    let answer: Answer;
    try {
      const timeoutMs = Math.max(500, session.leaseMs / 4);
      answer = await this.post(`/api/v1/workers/${session.workerId}/heartbeat`, JSON.stringify(body), timeoutMs);
    } catch (error) {
      this.server += 1;
      return this.failed(session.workerId, (error as Error).message);
    }
    if (this.session?.workerId !== session.workerId) return;
    if (answer.status >= 400) return this.refused(session.workerId, answer);
    this.failures = 0;
    this.refusedMs = 0;
    for (const item of news) if (this.news.get(item[0]) === item) this.news.delete(item[0]);
    if (this.proof === proof) this.proof = undefined;
    this.renew(session, durationMs(answer.body.lease, session.leaseMs));
    this.say({
      kind: "accepted",
      workerId: session.workerId,
      cancel: (answer.body.cancel as string[]) ?? [],
      lost: (answer.body.lost as string[]) ?? [],
      drain: answer.body.drain === true,
      resync: answer.body.resync === true,
      proved: proof?.id,
    });
  }

  /** The lease counts from before the heartbeat was sent: a slow answer must not lengthen our trust in it. */
  private renew(session: { leaseMs: number }, leaseMs: number): void {
    session.leaseMs = leaseMs;
    const until = this.sentMs + leaseMs - Math.max(1_000, leaseMs / 10);
    Atomics.store(this.shared, 0, BigInt(Math.round(until * 1_000)));
    Atomics.store(this.shared, 1, BigInt(Math.round(this.sentMs * 1_000)));
  }

  private refused(workerId: string, answer: Answer): void {
    if (answer.status === 404 && answer.body.code === "unknown_worker") {
      this.session = undefined;
      return this.say({ kind: "unknown_worker", workerId });
    }
    if (answer.status === 401 || answer.status === 403) {
      this.refusedMs = nowMs();
      if (this.readKey()) this.refusedMs = 0;
      this.failures = Math.max(1, this.failures);
      return this.say({ kind: "failed", workerId, reason: String(answer.body.detail ?? answer.status), refused: true });
    }
    this.server += 1;
    return this.failed(workerId, String(answer.body.detail ?? `the server answered ${answer.status}`));
  }

  private failed(workerId: string, reason: string): void {
    this.failures += 1;
    this.say({ kind: "failed", workerId, reason, refused: false });
  }

  /** A key that was refused is tried again after 30 s, or as soon as its file has another one. */
  private keyIsWorthATry(): boolean {
    if (this.refusedMs === 0 || nowMs() - this.refusedMs >= REFUSED_RETRY_MS) return true;
    if (!this.readKey()) return false;
    this.refusedMs = 0;
    return true;
  }

  private readKey(): boolean {
    if (this.options.keyFile === undefined) return false;
    try {
      const key = readFileSync(this.options.keyFile, "utf8").trim();
      const changed = key !== this.key;
      this.key = key;
      return changed;
    } catch {
      return false;
    }
  }

  /** What the main side holds right now; nothing if it does not answer. */
  private askMain(): Promise<{ held: number; stuck: number; draining: boolean } | undefined> {
    const ping = this.ping();
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.onPong = undefined;
        resolve(this.pong && this.pong.ping >= ping ? this.pong : undefined);
      };
      const timer = setTimeout(done, PONG_WAIT_MS);
      this.onPong = () => {
        if (this.pong && this.pong.ping >= ping) done();
      };
    });
  }

  private ping(): number {
    this.pings += 1;
    this.say({ kind: "ping", ping: this.pings });
    return this.pings;
  }

  private post(path: string, body: string, timeoutMs: number): Promise<Answer> {
    const server = this.options.servers[this.server % this.options.servers.length] as string;
    const headers = {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
      ...(this.key !== undefined && { authorization: `Bearer ${this.key}` }),
    };
    return new Promise((resolve, reject) => {
      const secure = server.startsWith("https:");
      const agent = secure ? this.secure : this.plain;
      const request = (secure ? https : http).request(server + path, { method: "POST", agent, headers });
      const timer = setTimeout(() => request.destroy(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
      const fail = (error: NodeJS.ErrnoException) => {
        clearTimeout(timer);
        reject(new Error(error.message || error.code));
      };
      request.on("error", fail);
      request.on("response", (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => {
          text += chunk;
          if (text.length > ANSWER_BYTES_MAX) request.destroy(new Error("the answer is too large"));
        });
        response.on("error", fail);
        response.on("end", () => {
          clearTimeout(timer);
          resolve({ status: response.statusCode ?? 0, body: parse(text) });
        });
      });
      request.end(body);
    });
  }

  /** Says when the main loop has not turned for over a second, and what it is busy with. */
  private watchMain(): void {
    let asked = { ping: this.ping(), atMs: nowMs() };
    let turnMs = nowMs();
    let told = 0;
    this.watch = setInterval(() => {
      const frozen = nowMs() - turnMs > 2 * WATCH_MS;
      turnMs = nowMs();
      const answered = (this.pong?.ping ?? 0) >= asked.ping;
      // A process that was stopped as a whole is not blocked.
      if (answered || frozen) {
        asked = { ping: this.ping(), atMs: nowMs() };
        told = 0;
        return;
      }
      const ms = nowMs() - asked.atMs;
      if (told === 0 && ms > BLOCKED_MS) {
        told = 1;
        whatIsRunning((running, stack) => this.say({ kind: "blocked", ms, running, stack }));
      } else if (told === 1 && ms > BLOCKED_LONG_MS) {
        told = 2;
        // The main side may never log again, so this goes to standard error from here.
        writeSync(2, `tickwheel WARN main loop blocked for ${Math.round(ms)} ms\n`);
      }
    }, WATCH_MS);
  }
}

function parse(text: string): Record<string, unknown> {
  try {
    return (JSON.parse(text) as Record<string, unknown>) ?? {};
  } catch {
    return {};
  }
}

function frameText(frame: inspector.Debugger.CallFrame): string {
  return `    at ${frame.functionName || "<anonymous>"} (${frame.url}:${frame.location.lineNumber + 1})`;
}

/** Stops the main thread for a moment and looks at what it executes. Says nothing more if somebody else debugs it. */
function whatIsRunning(found: (running: string | undefined, stack: string | undefined) => void): void {
  if (inspector.url() !== undefined) return found(undefined, undefined);
  try {
    const session = new inspector.Session();
    session.connectToMainThread();
    session.on("Debugger.paused", ({ params }) => {
      const done = (running: string | undefined, stack: string | undefined) => {
        session.post("Debugger.resume", () => session.post("Debugger.disable", () => session.disconnect()));
        found(running, stack);
      };
      const expression = 'JSON.stringify([globalThis[Symbol.for("tickwheel.running")]?.(), new Error().stack])';
      // A frame inside Node itself may refuse; one of those that called it does not.
      const ask = (index: number): void => {
        const callFrameId = params.callFrames[index]?.callFrameId;
        if (callFrameId === undefined) return done(undefined, params.callFrames.map(frameText).join("\n"));
        session.post("Debugger.evaluateOnCallFrame", { callFrameId, expression }, (error, answer) => {
          const value = (answer as { result?: { value?: string } } | undefined)?.result?.value;
          if (error || value === undefined) return ask(index + 1);
          const [running, stack] = JSON.parse(value) as [string | null, string | undefined];
          return done(running ?? undefined, stack?.split("\n").slice(2, 12).join("\n"));
        });
      };
      ask(0);
    });
    session.post("Debugger.enable", () => session.post("Debugger.pause"));
  } catch {
    found(undefined, undefined);
  }
}

/** The beginning of the thread. */
export function startInThread(): void {
  if (parentPort) new Heartbeats(parentPort, workerData as HeartbeaterOptions);
}
