/** Where the worker says what it does. Never payloads, keys or whole tokens. */

/** How much a line matters. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** Takes log lines: `console`-like, with facts beside the text. */
export interface Logger {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void;
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

const RANK: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };

/** One line per event on standard error: time, level, text, `name=value` …. */
export function stderrLogger(least: LogLevel): Logger {
  const write =
    (level: LogLevel) =>
    (message: string, fields: Readonly<Record<string, unknown>> = {}) => {
      if (RANK[level] < RANK[least]) return;
      const facts = Object.entries(fields).filter(([, value]) => value !== undefined);
      const text = facts.map(([name, value]) => ` ${name}=${written(value)}`).join("");
      process.stderr.write(`${new Date().toISOString()} ${level.toUpperCase()} tickwheel: ${message}${text}\n`);
    };
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}

function written(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  return /^[\w.:/,@+-]+$/.test(text) ? text : JSON.stringify(text);
}
