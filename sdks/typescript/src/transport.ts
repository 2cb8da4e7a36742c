/**
 * One HTTP exchange, and two ways to make it: web `fetch`, which every runtime has, and Node's own client, which knows
 * certificate authorities and whether a connection was used before. Both refuse answers over 64 MiB.
 */

import { nodeModule } from "./environment.js";
import { ConnectionFailed } from "./errors.js";

/** A request. The body is JSON. */
export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** How long it may take altogether. */
  readonly timeoutMs: number;
  /** Gives it up early. */
  readonly signal?: AbortSignal;
  /** Called when the operating system has the whole request. `fetch` cannot tell. */
  readonly onSent?: () => void;
}

/** An answer, whatever its status. */
export interface HttpAnswer {
  readonly status: number;
  readonly header: (name: string) => string | undefined;
  readonly body: string;
}

/** Makes one exchange. Throws `ConnectionFailed` when there is no answer. */
export type Transport = (request: HttpRequest) => Promise<HttpAnswer>;

const ANSWER_BYTES_MAX = 64 * 1024 * 1024;
const TOO_LARGE = `the answer has more than ${ANSWER_BYTES_MAX} bytes`;

/** Over the web's `fetch`. */
export function fetchTransport(fetch: typeof globalThis.fetch = globalThis.fetch): Transport {
  return (request) =>
    limited(request, async (signal) => {
      const { method, url, headers, body } = request;
      const response = await fetch(url, {
        method,
        headers,
        signal,
        redirect: "error",
        ...(body !== undefined && { body }),
      });
      const header = (name: string) => response.headers.get(name) ?? undefined;
      return { status: response.status, header, body: await readAll(response) };
    });
}

async function readAll(response: Response): Promise<string> {
  if (!response.body) return "";
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  let text = "";
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > ANSWER_BYTES_MAX) {
      await reader.cancel();
      throw new Error(TOO_LARGE);
    }
    text += decoder.decode(value, { stream: true });
  }
}

/** Over Node's HTTP client, on connections of its own. */
export function nodeTransport(ca: string | undefined): Transport {
  const http = nodeModule<typeof import("node:http")>("node:http");
  const https = nodeModule<typeof import("node:https")>("node:https");
  if (!http || !https) throw new ConnectionFailed("this runtime has no HTTP client of Node");
  const plain = new http.Agent({ keepAlive: true });
  const secure = new https.Agent({ keepAlive: true, ...(ca !== undefined && { ca }) });

  const exchange = (request: HttpRequest, signal: AbortSignal, repeatsLeft: number): Promise<HttpAnswer> =>
    new Promise((resolve, reject) => {
      const { method, url, headers, body } = request;
      const length = body === undefined ? {} : { "content-length": String(new TextEncoder().encode(body).length) };
      const options = { method, signal, headers: { ...headers, ...length } };
      const outgoing = url.startsWith("https:")
        ? https.request(url, { ...options, agent: secure })
        : http.request(url, { ...options, agent: plain });
      outgoing.on("error", (error: NodeJS.ErrnoException) => {
        // The server closed an idle connection while we wrote to it. A fresh one is as good.
        const reset = outgoing.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE");
        if (reset && repeatsLeft > 0 && !signal.aborted) resolve(exchange(request, signal, repeatsLeft - 1));
        else reject(error);
      });
      if (request.onSent) outgoing.once("finish", request.onSent);
      outgoing.on("response", (incoming) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        incoming.on("data", (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > ANSWER_BYTES_MAX) incoming.destroy(new Error(TOO_LARGE));
          else chunks.push(chunk);
        });
        incoming.on("error", reject);
        incoming.on("end", () => {
          const header = (name: string) => {
            const value = incoming.headers[name];
            return Array.isArray(value) ? value.join(", ") : value;
          };
          resolve({ status: incoming.statusCode ?? 0, header, body: Buffer.concat(chunks).toString("utf8") });
        });
      });
      outgoing.end(body);
    });
  return (request) => limited(request, (signal) => exchange(request, signal, 8));
}

/** Runs an exchange within its time. Listeners and timers end with it. */
async function limited(
  request: HttpRequest,
  exchange: (signal: AbortSignal) => Promise<HttpAnswer>,
): Promise<HttpAnswer> {
  const controller = new AbortController();
  let timedOut = false;
  const abort = () => controller.abort();
  const timer = setTimeout(() => {
    timedOut = true;
    abort();
  }, request.timeoutMs);
  request.signal?.addEventListener("abort", abort);
  try {
    if (request.signal?.aborted) abort();
    return await exchange(controller.signal);
  } catch (error) {
    const text = timedOut ? `no answer within ${request.timeoutMs} ms` : reason(error);
    throw new ConnectionFailed(`${request.method} ${request.url}: ${text}`, { cause: error });
  } finally {
    clearTimeout(timer);
    request.signal?.removeEventListener("abort", abort);
  }
}

/** `fetch` says only that it failed; why is in the cause. */
function reason(error: unknown): string {
  const cause = (error as { cause?: unknown }).cause;
  const inner = cause instanceof Error && cause.message !== "" ? cause : (error as Error & { code?: string });
  return inner.message || (inner as { code?: string }).code || String(error);
}
