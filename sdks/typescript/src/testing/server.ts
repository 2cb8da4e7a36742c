/** The real program, on data of its own, for tests from end to end. */

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client, type ClientOptions } from "../client.js";

/** How the server is started. */
export interface ServerOptions {
  /** The program. Default `TICKWHEEL_BIN`, else `tickwheel` in the path. */
  bin?: string;
  /** Further arguments of `serve`. */
  args?: readonly string[];
  /** Further environment variables. */
  env?: Readonly<Record<string, string>>;
  /** The address it listens on. Default `127.0.0.1:0`: any free port. */
  listen?: string;
}

const ANNOUNCEMENT = "tickwheel listens on ";
const READY_MS = 30_000;
const LOG_LINES_MAX = 2_000;

/** A Tickwheel server of a test's own. */
export class Server implements AsyncDisposable {
  /** Its address. */
  readonly url: string;
  private readonly child: ChildProcess;
  private readonly directory: string;
  private readonly lines: string[];

  private constructor(url: string, child: ChildProcess, directory: string, lines: string[]) {
    this.url = url;
    this.child = child;
    this.directory = directory;
    this.lines = lines;
  }

  /** Starts one and waits until it is ready. */
  static async start(options: ServerOptions = {}): Promise<Server> {
    const directory = await mkdtemp(join(tmpdir(), "tickwheel-test-"));
    const program = options.bin ?? (process.env.TICKWHEEL_BIN || "tickwheel");
    const args = ["serve", "--listen", options.listen ?? "127.0.0.1:0", "--data-dir", join(directory, "data")];
    const env = { ...process.env, ...options.env };
    const child = spawn(program, [...args, ...(options.args ?? [])], { env, stdio: ["ignore", "pipe", "pipe"] });
    const lines: string[] = [];
    try {
      const url = await announced(child, lines);
      await ready(url);
      return new Server(url, child, directory, lines);
    } catch (error) {
      child.kill("SIGKILL");
      await rm(directory, { recursive: true, force: true });
      throw new Error(`${program} did not start: ${(error as Error).message}\n${lines.slice(-20).join("\n")}`);
    }
  }

  /** A client of it. */
  client(options: ClientOptions = {}): Client {
    return new Client({ server: this.url, ...options });
  }

  /** The last lines of its log. */
  get log(): string {
    return this.lines.join("\n");
  }

  /** Its process id. */
  get pid(): number | undefined {
    return this.child.pid;
  }

  /** Stops it and removes its data. */
  async stop(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      const ended = new Promise((resolve) => this.child.once("exit", resolve));
      this.child.kill("SIGKILL");
      await ended;
    }
    await rm(this.directory, { recursive: true, force: true });
  }

  /** `await using server = await Server.start()`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

function announced(child: ChildProcess, lines: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("it did not say where it listens")), READY_MS);
    const keep = (line: string) => {
      lines.push(line);
      if (lines.length > LOG_LINES_MAX) lines.shift();
    };
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`it ended with code ${code}`)));
    if (child.stderr) createInterface(child.stderr).on("line", keep);
    if (!child.stdout) return;
    createInterface(child.stdout).on("line", (line) => {
      keep(line);
      if (!line.startsWith(ANNOUNCEMENT)) return;
      clearTimeout(timer);
      resolve(line.slice(ANNOUNCEMENT.length).trim());
    });
  });
}

async function ready(url: string): Promise<void> {
  const end = performance.now() + READY_MS;
  while (performance.now() < end) {
    const answer = await fetch(`${url}/readyz`).catch(() => undefined);
    await answer?.body?.cancel();
    if (answer?.status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error("it did not become ready");
}
