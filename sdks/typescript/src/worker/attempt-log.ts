/**
 * The log of one attempt until the server has it. Lines are numbered in the order in which they are sent, so that
 * sending them again adds nothing. What is over the bounds goes, oldest first, and one line says how many.
 */

import { nowMs } from "./clock.js";
import type { LogLevel } from "./log.js";
import { cut } from "./outcome.js";
import type { Limits, WireLine, WireLines } from "./wire.js";

const ATTEMPT_BYTES_MAX = 256 * 1024;
const WORKER_BYTES_MAX = 16 * 1024 * 1024;
/** What a line costs beside its text. */
const LINE_BYTES = 64;

/** The bytes of all logs of a worker. */
export class LogBudget {
  /** Bytes that wait for the server. */
  used = 0;

  /** Whether there is no room for more. */
  get exceeded(): boolean {
    return this.used > WORKER_BYTES_MAX;
  }
}

interface Line {
  readonly atMs: number;
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>> | undefined;
  readonly bytes: number;
}

/** The lines of an attempt that the server has not confirmed yet. */
export class AttemptLog {
  private readonly lines: Line[] = [];
  private readonly budget: LogBudget;
  private readonly limits: Limits;
  private bytes = 0;
  private sentBytes = 0;
  /** Bytes that wait to be sent for the first time. */
  unsentBytes = 0;
  /** The number of the first line in `lines`. */
  private first = 0;
  /** How many of `lines` have a number already and cannot go any more. */
  private numbered = 0;
  private dropped = 0;
  private closed = false;
  /** How many lines the attempt has lost altogether. */
  droppedTotal = 0;

  constructor(budget: LogBudget, limits: Limits) {
    this.budget = budget;
    this.limits = limits;
  }

  /** Whether there is nothing to send. */
  get isEmpty(): boolean {
    return this.lines.length === 0 && this.dropped === 0;
  }

  /** Adds a line. */
  add(level: LogLevel, message: string, fields: Readonly<Record<string, unknown>> | undefined): void {
    if (this.closed) return;
    this.push(level, message, fields);
    while ((this.bytes > ATTEMPT_BYTES_MAX || this.budget.exceeded) && this.lines.length > this.numbered) this.drop();
  }

  private push(level: LogLevel, message: string, fields: Readonly<Record<string, unknown>> | undefined): void {
    const text = cut(message, this.limits.log_line_bytes);
    const facts = fields && plain(fields, this.limits.log_line_bytes);
    const bytes = Buffer.byteLength(text) + (facts ? Buffer.byteLength(JSON.stringify(facts)) : 0) + LINE_BYTES;
    this.lines.push({ atMs: nowMs(), level, message: text, fields: facts, bytes });
    this.unsentBytes += bytes;
    this.count(bytes);
  }

  private count(bytes: number): void {
    this.bytes += bytes;
    this.budget.used += bytes;
  }

  private drop(): void {
    const [line] = this.lines.splice(this.numbered, 1);
    if (!line) return;
    this.unsentBytes -= line.bytes;
    this.count(-line.bytes);
    this.dropped += 1;
    this.droppedTotal += 1;
  }

  /**
   * Everything that the server has not confirmed. `last`: the attempt has ended, and lines beyond the server's limit
   * are counted in one last line.
   */
  take(last = false): WireLines | undefined {
    const room = this.limits.log_bytes - 2 * LINE_BYTES;
    while (this.lines.length > this.numbered && this.sentBytes + this.unsentBytes > room) this.drop();
    const full = this.sentBytes + 1_024 > room;
    if (this.dropped > 0 && (last || !full)) {
      const notice = `${this.dropped} lines were dropped here`;
      this.dropped = 0;
      this.lines.splice(this.numbered, 0, {
        atMs: this.lines[this.numbered]?.atMs ?? nowMs(),
        level: "warn",
        message: notice,
        fields: undefined,
        bytes: LINE_BYTES,
      });
      this.unsentBytes += LINE_BYTES;
      this.count(LINE_BYTES);
    }
    this.sentBytes += this.unsentBytes;
    this.unsentBytes = 0;
    this.numbered = this.lines.length;
    if (last) this.closed = true;
    return this.lines.length > 0 ? { first: this.first, lines: this.lines.map(wireLine) } : undefined;
  }

  /** The server has these lines. */
  confirm(sent: WireLines): void {
    const count = Math.min(Math.max(0, sent.first + sent.lines.length - this.first), this.numbered);
    for (const line of this.lines.splice(0, count)) this.count(-line.bytes);
    this.first += count;
    this.numbered -= count;
  }

  /** Nobody wants these lines any more. */
  discard(): void {
    this.count(-this.bytes);
    this.lines.length = 0;
    this.unsentBytes = 0;
    this.numbered = 0;
    this.dropped = 0;
    this.closed = true;
  }
}

function wireLine(line: Line): WireLine {
  return {
    age: `${Math.max(0, Math.round(nowMs() - line.atMs))}ms`,
    level: line.level,
    message: line.message,
    ...(line.fields && { fields: line.fields }),
  };
}

/** Fields as JSON can hold them: an error is its text, and what cannot be written is said to be so. */
function plain(fields: Readonly<Record<string, unknown>>, bytesMax: number): Record<string, unknown> {
  try {
    const text = JSON.stringify(fields, (_, value: unknown) => {
      if (value instanceof Error) return `${value.name}: ${value.message}`;
      return typeof value === "bigint" ? String(value) : value;
    });
    if (Buffer.byteLength(text) <= bytesMax) return JSON.parse(text) as Record<string, unknown>;
    return { dropped: `the fields have more than ${bytesMax} bytes` };
  } catch (error) {
    return { dropped: `the fields cannot be written as JSON: ${(error as Error).message}` };
  }
}
