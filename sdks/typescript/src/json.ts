/**
 * Names in TypeScript are camelCase, on the wire they are snake_case. Data that belongs to users (payloads, results,
 * metadata …) is never touched.
 */

/** Fields whose content is the user's own. */
type Opaque = "payload" | "result" | "metadata" | "input" | "output" | "headers" | "labels" | "fields" | "requires";

const OPAQUE: ReadonlySet<string> = new Set<Opaque>([
  "payload",
  "result",
  "metadata",
  "input",
  "output",
  "headers",
  "labels",
  "fields",
  "requires",
]);

type CamelName<S> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<CamelName<Tail>>}` : S;

/** A type of the wire with its names in camelCase. */
export type Camel<T> = T extends readonly (infer Item)[]
  ? Camel<Item>[]
  : T extends object
    ? { [K in keyof T as CamelName<K>]: K extends Opaque ? T[K] : Camel<T[K]> }
    : T;

function rename(value: unknown, name: (key: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => rename(item, name));
  if (typeof value !== "object" || value === null || value instanceof Date) return value;
  const entries = Object.entries(value).filter(([, content]) => content !== undefined);
  return Object.fromEntries(
    entries.map(([key, content]) => [name(key), OPAQUE.has(key) ? content : rename(content, name)]),
  );
}

/** An answer of the server with its names in camelCase. */
export function camel<T>(value: T): Camel<T> {
  return rename(value, (key) => key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())) as Camel<T>;
}

/** What somebody wrote in camelCase, for the wire. Fields that are `undefined` are left out. */
export function snake(value: unknown): unknown {
  return rename(value, (key) => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
}
