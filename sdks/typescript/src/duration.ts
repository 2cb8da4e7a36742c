/**
 * Durations as people write them and as the server answers them.
 *
 * Inside the library every duration is a number of milliseconds on the monotonic clock.
 */

/** `"250ms"`, `"30s"`, `"5m"`, `"4h"`, `"7d"`, or a number of milliseconds. */
export type Duration = string | number;

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The milliseconds of a duration. Throws a `RangeError` for anything else. */
export function milliseconds(duration: Duration): number {
  if (typeof duration === "number") {
    if (Number.isFinite(duration) && duration >= 0) return duration;
    throw new RangeError(`${duration} is not a duration: a number of milliseconds is finite and not negative`);
  }
  const parts = /^([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)$/.exec(duration);
  const unit = UNIT_MS[parts?.[2] ?? ""];
  if (!parts || unit === undefined) {
    throw new RangeError(`"${duration}" is not a duration such as "250ms", "30s", "5m", "4h" or "7d"`);
  }
  return Number(parts[1]) * unit;
}

/** A duration as the server reads it: whole milliseconds. */
export function wireDuration(duration: Duration): string {
  return `${Math.round(milliseconds(duration))}ms`;
}
