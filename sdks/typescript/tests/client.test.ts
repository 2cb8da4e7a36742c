/** The client on a `fetch` of the test's own. */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  Client,
  ConfigurationError,
  ConnectionFailed,
  JobCancelled,
  JobFailed,
  jobType,
  NotFound,
  ValidationFailed,
  WaitTimeout,
} from "tickwheel";
import { z } from "zod";

interface Request {
  method: string;
  path: string;
  body: Record<string, unknown>;
  headers: Headers;
}

type Reply = { status: number; body?: unknown; headers?: Record<string, string> } | Error;

function client(reply: (request: Request, index: number) => Reply, options = {}) {
  const requests: Request[] = [];
  const fetch = async (url: unknown, init: RequestInit = {}) => {
    const { pathname, search } = new URL(String(url));
    const body = typeof init.body === "string" ? (JSON.parse(init.body) as Record<string, unknown>) : {};
    const request = { method: init.method ?? "GET", path: pathname + search, body, headers: new Headers(init.headers) };
    requests.push(request);
    const answer = reply(request, requests.length - 1);
    if (answer instanceof Error) throw answer;
    const { status, body: content, headers = {} } = answer;
    return new Response(content === undefined ? null : JSON.stringify(content), { status, headers });
  };
  const made = new Client({ server: "http://test.invalid", fetch: fetch as typeof globalThis.fetch, ...options });
  return { client: made, requests };
}

const problem = (status: number, code: string, headers?: Record<string, string>) => ({
  status,
  body: { code, status, detail: code, title: code, type: "" },
  ...(headers && { headers }),
});
const mail = jobType("mail", { payload: z.object({ to: z.string() }), result: z.object({ id: z.string() }) });

test("a submission that gets no answer is repeated with the same key and body", async () => {
  const { client: made, requests } = client((_, index) => {
    if (index === 0) return new TypeError("fetch failed");
    if (index === 1) return problem(503, "overloaded", { "retry-after": "0" });
    return { status: 201, body: { id: "job-1" } };
  });
  const handle = await made.submit(mail, { to: "a" });
  assert.equal(handle.id, "job-1");
  assert.equal(requests.length, 3);
  assert.ok(String(requests[0]?.body.idempotency_key).length >= 32);
  assert.deepEqual(requests[0]?.body, requests[1]?.body);
  assert.deepEqual(requests[1]?.body, requests[2]?.body);
});

test("two submissions have two keys, and a caller's own key stays", async () => {
  const { client: made, requests } = client(() => ({ status: 201, body: { id: "job" } }));
  await made.submit(mail, { to: "a" });
  await made.submit(mail, { to: "a" });
  await made.submit(mail, { to: "a" }, { idempotencyKey: "order-7" });
  const [one, two, three] = requests.map(({ body }) => body.idempotency_key);
  assert.notEqual(one, two);
  assert.equal(three, "order-7");
});

test("a refusal is an error of its class, and is not repeated", async () => {
  const errors = [{ pointer: "/retry/jitter", code: "out_of_range", detail: "must be from 0 to 1" }];
  const { client: made, requests } = client(() => ({
    status: 422,
    body: { code: "validation_failed", status: 422, detail: "1 field is wrong", errors },
  }));
  await assert.rejects(made.submit(mail, { to: "a" }), (error: ValidationFailed) => {
    assert.ok(error instanceof ValidationFailed);
    assert.deepEqual([error.code, error.detail, error.errors], ["validation_failed", "1 field is wrong", errors]);
    assert.match(error.message, /jitter/);
    return true;
  });
  assert.equal(requests.length, 1);
});

test("a client gives up after its timeout", async () => {
  const { client: made } = client(() => new TypeError("fetch failed"), { timeout: "300ms" });
  const began = performance.now();
  await assert.rejects(made.get("x"), ConnectionFailed);
  assert.ok(performance.now() - began < 2_000);
});

test("a cancel whose answer was lost finds its own effect", async () => {
  const { client: made } = client((request, index) => {
    if (index === 0) return new TypeError("fetch failed");
    if (request.method === "POST") return problem(409, "illegal_state");
    return { status: 200, body: { id: "1", status: "cancelled", cancel_requested: false } };
  });
  assert.equal((await made.cancel("1")).status, "cancelled");
  const { client: other } = client(() => problem(409, "illegal_state"));
  await assert.rejects(other.cancel("1"), { code: "illegal_state" });
});

test("wait gives the result, or an error that says how the job ended", async () => {
  const ended = (body: object) => client(() => ({ status: 200, body: { id: "1", ...body } })).client.handle("1", mail);
  assert.deepEqual(await ended({ status: "completed", result: { id: "m" } }).wait(), { id: "m" });
  await assert.rejects(ended({ status: "failed", error: { code: "c", message: "m" } }).wait(), (error: JobFailed) => {
    assert.ok(error instanceof JobFailed);
    assert.deepEqual([error.code, error.message, error.name], ["c", "m", "JobFailed"]);
    return true;
  });
  await assert.rejects(ended({ status: "cancelled" }).wait(), JobCancelled);
  await assert.rejects(ended({ status: "completed", result: { id: 1 } }).wait(), { code: "result_invalid" });
  const { client: slow, requests } = client((_, index) =>
    index === 0 ? problem(408, "wait_timeout") : { status: 200, body: { status: "completed", result: { id: "m" } } },
  );
  assert.deepEqual(await slow.handle("1", mail).wait("30s"), { id: "m" });
  assert.ok(requests[0]?.path.endsWith("?wait=20000ms"), "proxies cut what waits for longer");
});

test("wait ends when its time is over", async () => {
  const { client: slow } = client(() => problem(408, "wait_timeout"));
  await assert.rejects(slow.handle("1").wait("100ms"), WaitTimeout);
});

test("many jobs go in requests of at most 10,000, and each has its own result", async () => {
  const { client: made, requests } = client(({ body }) => ({
    status: 200,
    body: {
      results: (body.jobs as { payload: { to: string } }[]).map(({ payload }) =>
        payload.to === "bad" ? { error: problem(422, "validation_failed").body } : { job: { id: payload.to } },
      ),
    },
  }));
  const jobs = Array.from({ length: 25_000 }, (_, n) => mail.new({ to: n === 12_345 ? "bad" : String(n) }));
  jobs[20_000] = mail.new({ to: 5 as never });
  const results = await made.submitMany(jobs);
  assert.deepEqual(
    requests.map(({ body }) => (body.jobs as unknown[]).length),
    [10_000, 10_000, 4_999],
  );
  assert.equal(results.length, 25_000);
  assert.equal(results[24_999]?.handle?.id, "24999");
  assert.ok(results[12_345]?.error instanceof ValidationFailed);
  assert.equal((results[20_000]?.error as { code?: string } | undefined)?.code, "invalid_payload");
  assert.equal(results.filter(({ handle }) => handle).length, 24_998);
});

test("many large jobs go in requests of at most 15 MiB", async () => {
  const sizes: number[] = [];
  const { client: made } = client(({ body }) => {
    sizes.push(JSON.stringify(body).length);
    return { status: 200, body: { results: (body.jobs as unknown[]).map((_, n) => ({ job: { id: String(n) } })) } };
  });
  const big = jobType<string>("big");
  await made.submitMany(Array.from({ length: 100 }, () => big.new("x".repeat(200 * 1024))));
  assert.ok(sizes.length === 2 && Math.max(...sizes) <= 15 * 1024 * 1024, `${sizes}`);
});

test("answers have names in camelCase, and the key, the tenant and JSON go along", async () => {
  const { client: made, requests } = client(
    () => ({ status: 200, body: { id: "1", max_retries: 3, payload: { a_b: 1 } } }),
    {
      apiKey: "tw_secret",
      tenant: "acme",
    },
  );
  const job = await made.get("1");
  assert.deepEqual([job.maxRetries, job.payload], [3, { a_b: 1 }]);
  await made.cancel("1");
  assert.equal(requests[1]?.headers.get("authorization"), "Bearer tw_secret");
  assert.equal(requests[1]?.headers.get("tickwheel-tenant"), "acme");
  assert.equal(requests[1]?.headers.get("content-type"), "application/json");
});

test("a key that is refused is read again from its file, once", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "tickwheel-key-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const apiKeyFile = join(directory, "key");
  writeFileSync(apiKeyFile, "old");
  const { client: made, requests } = client(
    ({ headers }) =>
      headers.get("authorization") === "Bearer new" ? { status: 200, body: {} } : problem(401, "unauthorized"),
    { apiKeyFile },
  );
  await assert.rejects(made.get("1"), { status: 401 });
  assert.equal(requests.length, 1);
  writeFileSync(apiKeyFile, "new\n");
  await Promise.all([made.get("1"), made.get("2")]);
  assert.equal(requests.length, 5);
});

test("schedules are put under their name", async () => {
  const { client: made, requests } = client(() => ({
    status: 200,
    body: { id: "s", next_fire_at: "2026-01-01T00:00:00Z" },
  }));
  const job = mail.new({ to: "all" }, { queue: "mail" });
  const schedule = await made.schedules.put("daily digest", {
    cron: "0 7 * * *",
    timezone: "Europe/Berlin",
    dayLogic: "or",
    job,
  });
  assert.equal(schedule.nextFireAt, "2026-01-01T00:00:00Z");
  assert.deepEqual([requests[0]?.method, requests[0]?.path], ["PUT", "/api/v1/schedules/daily%20digest"]);
  const { job: sent, ...rest } = requests[0]?.body ?? {};
  assert.deepEqual(rest, { name: "daily digest", cron: "0 7 * * *", timezone: "Europe/Berlin", day_logic: "or" });
  assert.deepEqual(sent, { type: "mail", queue: "mail", payload: { to: "all" } });
});

test("mistakes in options are reported together", () => {
  assert.throws(
    () => new Client({ server: ["ftp://x", "nonsense"], apiKey: "a", apiKeyFile: "/nowhere" }),
    (error: ConfigurationError) => {
      assert.ok(error instanceof ConfigurationError);
      assert.equal(error.mistakes.length, 4, error.message);
      return true;
    },
  );
});

test("a job that does not exist is NotFound", async () => {
  await assert.rejects(client(() => problem(404, "not_found")).client.get("1"), NotFound);
});
