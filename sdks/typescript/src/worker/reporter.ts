/**
 * Reports how attempts ended. One request is in flight; while it travels, the next batch gathers. Each report is repeated
 * until it is accepted or its token is stale, also under a new session. None is dropped.
 */

import { backoffMs, isTemporary } from "../api.js";
import { Problem } from "../problems.js";
import type { Attempt } from "./attempt.js";
import { nowMs, Pause } from "./clock.js";
import type { Logger } from "./log.js";
import { failed, type Outcome } from "./outcome.js";
import type { Limits, Results } from "./wire.js";

const BATCH_BYTES_MAX = 8 * 1024 * 1024;
const WAITING_MAX = 10_000;
const WAITING_BYTES_MAX = 64 * 1024 * 1024;
const RETRY_MS_MAX = 5_000;
const REFUSED_RETRY_MS = 30_000;

/** How reports reach the server. */
export interface ReportHooks {
  /** Sends them under the current session, as soon as there is one. */
  send(bodyText: string): Promise<Results>;
  /** A report was accepted, or nobody wants it any more. */
  gone(attempt: Attempt): void;
  /** The server could not be reached, or could again. */
  away(reason: string): void;
  back(): void;
}

interface Report {
  readonly attempt: Attempt;
  readonly status: Outcome["status"];
  readonly text: string;
  readonly bytes: number;
  /** Whether it replaces one that the server refused. */
  readonly replaced: boolean;
}

/** The reports of a worker. */
export class Reporter {
  private readonly hooks: ReportHooks;
  private readonly log: Logger;
  private readonly limits: () => Limits;
  private waiting: Report[] = [];
  private readonly done = new Set<Report>();
  private bytes = 0;
  private sending = false;
  private readonly pause = new Pause();
  private readonly idlers: (() => void)[] = [];
  private stopped = false;

  constructor(hooks: ReportHooks, limits: () => Limits, log: Logger) {
    this.hooks = hooks;
    this.limits = limits;
    this.log = log;
  }

  /** How many reports wait for the server. */
  get count(): number {
    return this.waiting.length;
  }

  /** Whether so many wait that no more jobs may be taken. */
  get isFull(): boolean {
    return this.waiting.length >= WAITING_MAX || this.bytes >= WAITING_BYTES_MAX;
  }

  /** Reports how an attempt ended. */
  add(attempt: Attempt, outcome: Outcome): void {
    this.push(attempt, outcome, false);
    void this.work();
  }

  private push(attempt: Attempt, outcome: Outcome, replaced: boolean): void {
    const text = reportText(attempt, outcome, !replaced);
    const bytes = Buffer.byteLength(text);
    this.waiting.push({ attempt, status: outcome.status, text, bytes, replaced });
    this.bytes += bytes;
  }

  /** Resolves when no report waits any more. */
  idle(): Promise<void> {
    if (this.waiting.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.idlers.push(resolve));
  }

  /** Tries again at once. */
  wake(): void {
    this.pause.end();
  }

  /** Sends nothing more. */
  stop(): void {
    this.stopped = true;
    this.pause.end();
  }

  private async work(): Promise<void> {
    if (this.sending) return;
    this.sending = true;
    // Whoever ends in the same turn shares the first request.
    await new Promise((resolve) => setImmediate(resolve));
    let failures = 0;
    let alone = false;
    while (this.waiting.length > 0 && !this.stopped) {
      const batch = alone ? this.waiting.slice(0, 1) : this.batch();
      try {
        const answer = await this.hooks.send(`{"reports":[${batch.map((report) => report.text).join(",")}]}`);
        this.hooks.back();
        failures = 0;
        alone = false;
        if (this.answered(batch, answer) === 0) await this.pause.wait(backoffMs(3, RETRY_MS_MAX));
      } catch (error) {
        failures += 1;
        const wait = this.afterFailure(error, batch, failures);
        if (wait === "alone") alone = true;
        else await this.pause.wait(wait);
      }
    }
    this.sending = false;
    for (const done of this.idlers.splice(0)) done();
  }

  /** As many as fit into a request. */
  private batch(): Report[] {
    const { reports, report_bytes } = this.limits();
    const bytesMax = Math.min(BATCH_BYTES_MAX, report_bytes - 1_024);
    const batch: Report[] = [];
    let bytes = 0;
    for (const report of this.waiting) {
      bytes += report.bytes + 1;
      if (batch.length >= Math.min(reports, 1_000) || (batch.length > 0 && bytes > bytesMax)) break;
      batch.push(report);
    }
    return batch;
  }

  /** How long to wait before the next try; `alone` when one report of several may be to blame. */
  private afterFailure(error: unknown, batch: readonly Report[], failures: number): number | "alone" {
    const problem = error instanceof Problem ? error : undefined;
    if (!problem || isTemporary(error)) {
      this.hooks.away(String((error as Error).message));
      return Math.max(problem?.retryAfterMs ?? 0, backoffMs(failures, RETRY_MS_MAX));
    }
    if (problem.code === "unknown_worker") return 0;
    if (problem.status === 401 || problem.status === 403) {
      this.log.error("refused by the server", { call: "report", code: problem.code, error: problem.message });
      return REFUSED_RETRY_MS;
    }
    if (batch.length > 1) return "alone";
    this.refused(batch[0] as Report, problem);
    this.sweep();
    return 0;
  }

  /** Handles the answers and says how many reports are done with. */
  private answered(batch: readonly Report[], answer: Results): number {
    for (const [index, report] of batch.entries()) {
      const result = answer.results[index];
      if (!result) continue;
      if (!("error" in result)) {
        this.remove(report);
      } else if (result.error.code === "stale_token" || result.error.code === "not_found") {
        this.log.warn("stale report: the attempt is not ours any more", report.attempt.facts);
        this.remove(report);
      } else if (!isTemporary(new Problem(result.error))) {
        this.refused(report, new Problem(result.error));
      }
    }
    return this.sweep();
  }

  /** The server will never take this one. What it can take is that the attempt failed; if not even that, nothing. */
  private refused(report: Report, problem: Problem): void {
    const facts = { ...report.attempt.facts, code: problem.code, error: problem.message };
    this.log.error("refused by the server", { call: "report", ...facts });
    const { attempt, status, replaced } = report;
    if (!replaced) {
      const code = problem.code === "payload_too_large" ? "result_too_large" : problem.code;
      const failure = failed(code, `the server refused the report: ${problem.message}`, false);
      // Nobody cancelled the job, says the server: then it can only go back.
      this.push(attempt, status === "cancelled" ? { status: "released" } : failure, true);
    }
    this.remove(report, replaced);
  }

  private remove(report: Report, gone = true): void {
    this.done.add(report);
    this.bytes -= report.bytes;
    if (gone) this.hooks.gone(report.attempt);
  }

  /** Takes out what is done with, and says how many that were. */
  private sweep(): number {
    const count = this.done.size;
    this.waiting = this.waiting.filter((report) => !this.done.has(report));
    this.done.clear();
    return count;
  }
}

/** A report as the server reads it. What is left of the log goes along. */
export function reportText(attempt: Attempt, outcome: Outcome, withLogs: boolean): string {
  const ran = attempt.startedMs === undefined ? undefined : `${Math.round(nowMs() - attempt.startedMs)}ms`;
  const logs = withLogs ? attempt.log.take(true) : undefined;
  const report: Record<string, unknown> = {
    token: attempt.token,
    outcome: outcome.status,
    ...(ran && { ran }),
    ...(logs && { logs }),
    ...(outcome.status === "failed" && { error: outcome.error, retryable: outcome.retryable }),
    ...("delayMs" in outcome && outcome.delayMs !== undefined && { delay: `${Math.round(outcome.delayMs)}ms` }),
  };
  const text = JSON.stringify(report);
  return outcome.status === "completed" ? `${text.slice(0, -1)},"result":${outcome.resultText}}` : text;
}
