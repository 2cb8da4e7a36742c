/** What needs no server: durations, names, contracts, errors, logs. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { InvalidData, jobType, NotFound, NotRetryable, Problem, ref, Workflow } from "tickwheel";
import { z } from "zod";
import { backoffMs } from "#internal/api.js";
import { milliseconds, wireDuration } from "#internal/duration.js";
import { wireJob } from "#internal/job-type.js";
import { camel, snake } from "#internal/json.js";
import { PROBLEM_CODES, problemError } from "#internal/problem-error.js";
import { VERSION } from "#internal/version.js";
import { AttemptLog, LogBudget } from "#internal/worker/attempt-log.js";
import { completed, cut, snakeCase, thrown } from "#internal/worker/outcome.js";
import { DEFAULT_LIMITS } from "#internal/worker/wire.js";

const packageFile = new URL("../../package.json", import.meta.url);

test("durations are read and written", () => {
  const read = ["250ms", "1.5s", "299.9s", "5m", "4h", "7d", 12].map((text) => Math.round(milliseconds(text)));
  assert.deepEqual(read, [250, 1_500, 299_900, 300_000, 14_400_000, 604_800_000, 12]);
  for (const bad of ["", "5", "5 s", "-1s", "1w", Number.NaN, -1, Number.POSITIVE_INFINITY]) {
    assert.throws(() => milliseconds(bad), RangeError, String(bad));
  }
  assert.equal(wireDuration("1.5s"), "1500ms");
});

test("names change between camelCase and snake_case, and data of users does not", () => {
  const wire = { max_retries: 1, payload: { some_key: 1 }, tasks: [{ depends_on: [] }], metadata: { a_b: 1 } };
  const own = { maxRetries: 1, payload: { some_key: 1 }, tasks: [{ dependsOn: [] }], metadata: { a_b: 1 } };
  assert.deepEqual(camel(wire), own);
  assert.deepEqual(snake({ ...own, executeAt: undefined }), wire);
});

test("a job is what its type says, unless the submission says otherwise", async () => {
  const type = jobType("mail", { payload: z.object({ to: z.email() }), queue: "mail", maxRetries: 5, timeout: "30s" });
  const job = type.new(
    { to: "a@example.com" },
    { delay: "1m", queue: "other", unique: { within: "5m" }, tags: ["vip"] },
  );
  assert.deepEqual(await wireJob(job), {
    type: "mail",
    queue: "other",
    retry: { max_retries: 5 },
    timeout: "30000ms",
    delay: "60000ms",
    unique: { within: "300000ms" },
    tags: ["vip"],
    payload: { to: "a@example.com" },
  });
  const at = new Date("2026-12-01T15:00:00Z");
  assert.equal((await wireJob(type.new({ to: "a@example.com" }, { executeAt: at }))).execute_at, at.toISOString());
});

test("payloads are checked before anything is sent", async () => {
  const type = jobType("mail", { payload: z.object({ to: z.email() }) });
  const refused = (payload: unknown, code: string, text: RegExp) =>
    assert.rejects(wireJob(type.new(payload as never)), (error: InvalidData) => {
      assert.ok(error instanceof InvalidData);
      assert.deepEqual([error.code, text.test(error.message)], [code, true], error.message);
      return true;
    });
  await refused({ to: "nobody" }, "invalid_payload", /to: /);
  const plain = jobType<unknown>("plain");
  await assert.rejects(wireJob(plain.new(1n)), { code: "invalid_payload" });
  await assert.rejects(wireJob(plain.new("x".repeat(256 * 1024 - 1))), { code: "payload_too_large" });
  await wireJob(plain.new("x".repeat(256 * 1024 - 2)));
  await wireJob(plain.new("é".repeat(128 * 1024 - 1)));
  await assert.rejects(wireJob(plain.new("é".repeat(128 * 1024))), { code: "payload_too_large" });
});

test("a schema that transforms: submitters write one type, handlers get another", async () => {
  const type = jobType("at", { payload: z.object({ at: z.iso.datetime().transform((text) => new Date(text)) }) });
  const sent = await wireJob(type.new({ at: "2026-12-01T15:00:00Z" }));
  assert.deepEqual(sent.payload, { at: "2026-12-01T15:00:00Z" });
});

test("a workflow refers to data of other tasks", () => {
  const extract = jobType<{ day: string }, { rows: number }>("extract", { timeout: "1m" });
  const load = jobType<{ rows: number }>("load");
  const workflow = new Workflow("etl", { onFailure: "continue", stallAfter: "10m" })
    .task("extract", extract, { payload: { day: ref("input.day", { default: "today" }) } })
    .task("load", load, { payload: { rows: ref("extract.result.rows") }, dependsOn: ["extract"], when: "input.load" })
    .after("clean", load, { payload: { rows: 0 }, triggerRule: "all_done" });
  assert.deepEqual(JSON.parse(JSON.stringify(workflow)), {
    name: "etl",
    on_failure: "continue",
    stall_after: "600000ms",
    tasks: [
      {
        name: "extract",
        job: { type: "extract", timeout: "60000ms", payload: { day: { $from: "input.day", default: "today" } } },
      },
      {
        name: "load",
        depends_on: ["extract"],
        when: "input.load",
        job: { type: "load", payload: { rows: { $from: "extract.result.rows" } } },
      },
    ],
    after: [{ name: "clean", trigger_rule: "all_done", job: { type: "load", payload: { rows: 0 } } }],
  });
});

test("each documented problem code has a class", () => {
  const page = readFileSync(new URL("../../../../docs/reference/errors.md", import.meta.url), "utf8");
  const table = page.slice(page.indexOf("## Problem codes"), page.indexOf("**May I try again?**"));
  const codes = [...table.matchAll(/^\| [0-9]{3} \| `([a-z_]+)` \|/gm)].map((match) => match[1] as string);
  assert.ok(codes.length > 30);
  assert.deepEqual(
    codes.filter((code) => !PROBLEM_CODES.includes(code)),
    [],
  );
  const error = problemError({ code: "not_found", detail: "no such job", status: 404 }, 404);
  assert.ok(error instanceof NotFound && error instanceof Problem);
  assert.deepEqual([error.name, error.code, error.message], ["NotFound", "not_found", "no such job"]);
  const fresh = problemError({ code: "brand_new", detail: "?", status: 418 }, 418, 2_000);
  assert.deepEqual([fresh.name, fresh.constructor, fresh.retryAfterMs], ["BrandNew", Problem, 2_000]);
  assert.equal(problemError("<html>", 502).code, "http_502");
});

test("error classes become codes", () => {
  assert.deepEqual(["BadAddress", "HTTPError", "Error", "E2BIGError"].map(snakeCase), [
    "bad_address",
    "http_error",
    "error",
    "e2_big_error",
  ]);
  class Odd extends Error {
    code = "ECONNREFUSED";
  }
  const outcome = thrown(new Odd("x"));
  assert.equal(outcome.status === "failed" && outcome.error.code, "odd", "a code of another library is not ours");
  const given = thrown(new NotRetryable("x", { code: "too\u0001odd code" }));
  assert.equal(given.status === "failed" && given.error.code, "too_odd_code");
});

test("long texts are cut at 16 KiB, between characters", () => {
  assert.equal(Buffer.byteLength(cut("x".repeat(20_000))), 16_384);
  const cutText = cut("€".repeat(10_000));
  assert.ok(Buffer.byteLength(cutText) <= 16_384 && !cutText.includes("\uFFFD"));
  const circular: unknown[] = [];
  circular.push(circular);
  assert.equal(completed(circular, 10).status, "failed");
});

test("the back-off doubles up to its cap, with full jitter", () => {
  const most = [0, 1, 2, 5, 6, 50].map((failures) => backoffMs(failures, 5_000, () => 1));
  assert.deepEqual(most, [100, 200, 400, 3_200, 5_000, 5_000]);
  assert.equal(
    backoffMs(3, 5_000, () => 0),
    0,
  );
});

function attemptLog(limits = {}) {
  const budget = new LogBudget();
  return { budget, log: new AttemptLog(budget, { ...DEFAULT_LIMITS, ...limits }) };
}

test("log lines keep their numbers when they are sent again", () => {
  const { log, budget } = attemptLog();
  for (const message of ["a", "b"]) log.add("info", message, undefined);
  const first = log.take();
  log.add("info", "c", undefined);
  const again = log.take();
  assert.deepEqual([first?.first, first?.lines.length, again?.first, again?.lines.length], [0, 2, 0, 3]);
  assert.ok(first && again);
  log.confirm(first);
  assert.deepEqual([log.take()?.first, log.take()?.lines.map(({ message }) => message)], [2, ["c"]]);
  log.confirm(again);
  assert.equal(log.take(), undefined);
  assert.equal(budget.used, 0);
});

test("10,000 lines of 1 KiB: the oldest go, and one line says how many", () => {
  const { log, budget } = attemptLog();
  for (let line = 1; line <= 10_000; line += 1) log.add("info", `line ${line} `.padEnd(1_024, "x"), undefined);
  assert.ok(budget.used <= 256 * 1024 + 2_048);
  const sent = log.take(true);
  assert.ok(sent);
  const notices = sent.lines.filter(({ message }) => message.includes("dropped"));
  assert.equal(notices.length, 1);
  assert.equal(Number.parseInt(notices[0]?.message ?? "", 10) + sent.lines.length - 1, 10_000);
  assert.match(sent.lines.at(-1)?.message ?? "", /^line 10000 /);
  log.discard();
  assert.equal(budget.used, 0);
});

test("what is over the server's limit for an attempt is counted in one last line", () => {
  const { log } = attemptLog({ log_bytes: 20_000 });
  let lines = 0;
  for (let round = 0; round < 50; round += 1) {
    for (let line = 0; line < 10; line += 1) log.add("info", "x".repeat(100), undefined);
    const sent = log.take(round === 49);
    if (!sent) continue;
    lines += sent.lines.length;
    log.confirm(sent);
    if (round === 49) {
      const [notice, ...others] = sent.lines.filter(({ message }) => message.includes("dropped"));
      assert.equal(others.length, 0);
      assert.equal(Number.parseInt(notice?.message ?? "", 10) + lines - 1, 500);
    }
  }
});

test("all logs of a worker together are bounded", () => {
  const budget = new LogBudget();
  const logs = Array.from({ length: 100 }, () => new AttemptLog(budget, DEFAULT_LIMITS));
  for (const log of logs) for (let line = 0; line < 250; line += 1) log.add("info", "x".repeat(1_024), undefined);
  assert.ok(budget.used <= 16 * 1024 * 1024 + 2_048, `${budget.used}`);
});

test("fields that JSON cannot hold do not spoil a line", () => {
  const { log } = attemptLog();
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  log.add("info", "odd", circular);
  log.add("info", "error", { error: new TypeError("oops"), big: 1n });
  const lines = log.take()?.lines;
  assert.match(String(lines?.[0]?.fields?.dropped), /JSON/);
  assert.deepEqual(lines?.[1]?.fields, { error: "TypeError: oops", big: "1" });
});

test("the version is that of the package", () => {
  assert.equal(VERSION, (JSON.parse(readFileSync(packageFile, "utf8")) as { version: string }).version);
});
