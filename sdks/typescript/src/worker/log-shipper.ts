/** Sends the logs of running attempts, every 500 ms or 64 KiB. What is left when an attempt ends goes with its report. */

import type { Attempt } from "./attempt.js";
import type { Results, WireLines } from "./wire.js";

const EVERY_MS = 500;
const EARLY_BYTES = 64 * 1024;
const REQUEST_BYTES_MAX = 4 * 1024 * 1024;

/** How lines reach the server. */
export interface LogHooks {
  attempts(): Attempt[];
  send(body: unknown): Promise<Results>;
}

/** The logs of a worker. */
export class LogShipper {
  private readonly hooks: LogHooks;
  private timer: NodeJS.Timeout | undefined;
  private sending = false;
  private unsentBytes = 0;

  constructor(hooks: LogHooks) {
    this.hooks = hooks;
  }

  /** A line was added. */
  added(bytes: number): void {
    this.unsentBytes += bytes;
    if (this.unsentBytes > EARLY_BYTES) this.soon(0);
    else this.soon(EVERY_MS);
  }

  private soon(delayMs: number): void {
    if (this.timer && delayMs > 0) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.ship(), delayMs);
  }

  private async ship(): Promise<void> {
    this.timer = undefined;
    if (this.sending) return;
    this.sending = true;
    this.unsentBytes = 0;
    const batch: { attempt: Attempt; lines: WireLines }[] = [];
    let bytes = 0;
    let more = false;
    for (const attempt of this.hooks.attempts()) {
      more = bytes > REQUEST_BYTES_MAX;
      if (more) break;
      const lines = attempt.log.take();
      if (!lines) continue;
      bytes += lines.lines.reduce((sum, line) => sum + line.message.length, 0);
      batch.push({ attempt, lines });
    }
    if (batch.length > 0) more = !(await this.send(batch)) || more;
    this.sending = false;
    if (more || this.unsentBytes > 0) this.soon(EVERY_MS);
  }

  private async send(batch: readonly { attempt: Attempt; lines: WireLines }[]): Promise<boolean> {
    try {
      const logs = batch.map(({ attempt, lines }) => ({ token: attempt.token, ...lines }));
      const { results } = await this.hooks.send({ logs });
      for (const [index, { attempt, lines }] of batch.entries()) {
        const result = results[index];
        if (result && "error" in result) attempt.log.discard();
        else attempt.log.confirm(lines);
      }
      return true;
    } catch {
      // The same lines have the same numbers, so they are sent again.
      return false;
    }
  }

  /** Sends nothing more. */
  stop(): void {
    clearTimeout(this.timer);
    this.sending = true;
  }
}
