/** Monotonic time, the same in all threads of the process. Wall clocks are never compared. */

/** Milliseconds since some instant. */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** The longest time that a timer of Node can wait. */
export const TIMER_MS_MAX = 2 ** 31 - 1;

/** Waits that can be ended early. */
export class Pause {
  private readonly ends = new Set<() => void>();

  /** Resolves after this time, or when somebody calls `end`. */
  wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.ends.delete(done);
        resolve();
      };
      const timer = setTimeout(done, Math.min(ms, TIMER_MS_MAX));
      this.ends.add(done);
    });
  }

  /** Ends all waits. */
  end(): void {
    for (const done of [...this.ends]) done();
  }
}

const TURN_MS = 250;
const STALLED_MS = 1_000;

/** Knows whether the main loop stood still: blocked by a handler, or frozen with the whole process. */
export class LoopWatch {
  private turnedMs = nowMs();
  private stallEndedMs = 0;
  private readonly timer = setInterval(() => this.turn(), TURN_MS).unref();

  private turn(): void {
    const now = nowMs();
    if (now - this.turnedMs > STALLED_MS) this.stallEndedMs = now;
    this.turnedMs = now;
  }

  /** Whether it stood still for over a second at some time since this instant. */
  stalledSince(instantMs: number): boolean {
    return nowMs() - this.turnedMs > STALLED_MS || this.stallEndedMs >= instantMs;
  }

  /** Watches no more. */
  stop(): void {
    clearInterval(this.timer);
  }
}
