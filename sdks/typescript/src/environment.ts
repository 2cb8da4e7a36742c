/**
 * The environment variables that clients and workers share. Arguments win over them. Works without Node: then there are
 * no variables and no files.
 */

import { ConfigurationError } from "./errors.js";

/** The address of a server that runs with its defaults. */
export const DEFAULT_SERVER = "http://127.0.0.1:7180";

interface Runtime {
  env?: Record<string, string | undefined>;
  getBuiltinModule?: (name: string) => unknown;
}

const runtime = (globalThis as { process?: Runtime }).process;

/** The variable, unless it is not set or empty. */
export function variable(name: string): string | undefined {
  return runtime?.env?.[name] || undefined;
}

/** A module of Node, or `undefined` in another runtime. Not an import, so that bundlers for browsers do not see it. */
export function nodeModule<T>(name: string): T | undefined {
  return runtime?.getBuiltinModule?.(name) as T | undefined;
}

/** Where the server is and how it is reached. */
export interface ConnectionOptions {
  /** One or more addresses. Default `TICKWHEEL_SERVER`, else `http://127.0.0.1:7180`. */
  server?: string | readonly string[];
  /** The API key. Default `TICKWHEEL_API_KEY`. */
  apiKey?: string;
  /** A file with the API key, read again when the server refuses the key. Default `TICKWHEEL_API_KEY_FILE`. */
  apiKeyFile?: string;
  /** A file with certificate authorities in PEM form (Node only). Default `TICKWHEEL_CA_FILE`. */
  caFile?: string;
}

/** The same, complete and checked. */
export interface Connection {
  readonly servers: readonly string[];
  readonly key: ApiKey;
  readonly ca: string | undefined;
}

/** Reads the options and the environment. Every mistake is added to `mistakes`. */
export function readConnection(options: ConnectionOptions, mistakes: string[]): Connection {
  const from = (option: keyof ConnectionOptions, name: string) => (options[option] === undefined ? name : option);
  const given = options.server ?? variable("TICKWHEEL_SERVER") ?? DEFAULT_SERVER;
  const list = (typeof given === "string" ? given.split(",") : [...given]).map((server) => server.trim());
  const servers = list.filter((server) => server !== "").map((server) => server.replace(/\/+$/, ""));
  const source = from("server", "TICKWHEEL_SERVER");
  for (const server of servers) {
    if (!/^https?:\/\/[^/]+/.test(server)) mistakes.push(`${source}: "${server}" is not an http or https address`);
  }
  if (servers.length === 0) mistakes.push(`${source}: no address`);
  const own = options.apiKey !== undefined || options.apiKeyFile !== undefined;
  const value = options.apiKey ?? (own ? undefined : variable("TICKWHEEL_API_KEY"));
  const file = options.apiKeyFile ?? (own ? undefined : variable("TICKWHEEL_API_KEY_FILE"));
  if (value !== undefined && file !== undefined) {
    mistakes.push(`${own ? "apiKey" : "TICKWHEEL_API_KEY"}: either a key or a file with a key, not both`);
  }
  const caFile = options.caFile ?? variable("TICKWHEEL_CA_FILE");
  const key = new ApiKey(value, file);
  const ca = readOptional(from("caFile", "TICKWHEEL_CA_FILE"), caFile, mistakes);
  readOptional(from("apiKeyFile", "TICKWHEEL_API_KEY_FILE"), file, mistakes);
  return { servers, key, ca };
}

function readOptional(what: string, path: string | undefined, mistakes: string[]): string | undefined {
  if (path === undefined) return undefined;
  try {
    return readText(path);
  } catch (error) {
    mistakes.push(`${what}: ${(error as Error).message}`);
    return undefined;
  }
}

function readText(path: string): string {
  const fs = nodeModule<typeof import("node:fs")>("node:fs");
  if (!fs) throw new ConfigurationError([`${path}: this runtime cannot read files`]);
  return fs.readFileSync(path, "utf8");
}

/** A key that may change while the program runs, when it comes from a file. */
export class ApiKey {
  /** The file that it comes from. */
  readonly file: string | undefined;
  private value: string | undefined;

  constructor(value: string | undefined, file: string | undefined) {
    this.value = value;
    this.file = file;
    this.readAgain();
  }

  /** The key as it was read last. */
  get current(): string | undefined {
    return this.value;
  }

  /** Reads the file again. Answers whether the key is another one now. A file that cannot be read changes nothing. */
  readAgain(): boolean {
    if (this.file === undefined) return false;
    try {
      const value = readText(this.file).trim();
      const changed = value !== this.value;
      this.value = value;
      return changed;
    } catch {
      return false;
    }
  }
}
