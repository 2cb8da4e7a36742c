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

/** Renames of which there are few: each is worked out once. */
const NAMES_MAX = 1_000;

function remembered(name: (key: string) => string): (key: string) => string {
  const known = new Map<string, string>();
  return (key) => {
    let renamed = known.get(key);
    if (renamed === undefined) {
      renamed = name(key);
      if (known.size < NAMES_MAX) known.set(key, renamed);
    }
    return renamed;
  };
}

// A worker does this for every job, so without the arrays that Object.entries would make.
function rename(value: unknown, name: (key: string) => string): unknown {
  if (typeof value !== "object" || value === null || value instanceof Date) return value;
  if (Array.isArray(value)) return value.map((item) => rename(item, name));
  const source = value as Record<string, unknown>;
  const renamed: Record<string, unknown> = {};
  for (const key of Object.keys(source)) {
    const content = source[key];
    if (content === undefined) continue;
    const to = name(key);
    const item = OPAQUE.has(key) ? content : rename(content, name);
    // Assigning to this one would change the object's prototype.
    if (to === "__proto__") Object.defineProperty(renamed, to, { value: item, enumerable: true, writable: true });
    else renamed[to] = item;
  }
  return renamed;
}

const toCamel = remembered((key) => key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()));
const toSnake = remembered((key) => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));

/** An answer of the server with its names in camelCase. */
export function camel<T>(value: T): Camel<T> {
  return rename(value, toCamel) as Camel<T>;
}

/** What somebody wrote in camelCase, for the wire. Fields that are `undefined` are left out. */
export function snake(value: unknown): unknown {
  return rename(value, toSnake);
}
