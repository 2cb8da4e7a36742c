/** What a worker does with jobs: outcomes, slots, batches, middleware, cancel. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Cancelled, jobType, NotRetryable, RetryAfter, Snooze } from "tickwheel";
import { currentJob } from "tickwheel/worker";
import { z } from "zod";
import { eventually } from "./fake-server.js";
import { rig } from "./harness.js";

const echo = jobType<unknown, unknown>("echo");
const typed = jobType("typed", { payload: z.object({ n: z.int() }), result: z.object({ twice: z.int() }) });
const any = (name: string) => jobType<unknown, unknown>(name);
const later = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

class BadAddress extends Error {}

test("a result goes back as it is, whatever JSON it is", async (t) => {
  const { fake } = await rig(t, (worker) => worker.handle(echo, (payload) => payload));
  const deep = JSON.parse(`${"[".repeat(60)}1${"]".repeat(60)}`);
  for (const payload of [
    null,
    "\u0000\u{1F600}𐍈",
    2 ** 53,
    -(2 ** 53),
    deep,
    { __proto__x: 1, some_key: { inner_key: 1 } },
  ]) {
    const report = await fake.report(fake.submit("echo", payload));
    assert.equal(report.outcome, "completed");
    assert.deepEqual(report.result, payload);
    assert.match(String(report.ran), /^[0-9]+ms$/);
  }
});

test("each error leads to its outcome", async (t) => {
  const errors: Record<string, () => unknown> = {
    plain: () => new TypeError("oops"),
    listed: () => new BadAddress("nobody"),
    never: () => new NotRetryable("never", { code: "bad_input" }),
    later: () => new RetryAfter("30s", "busy"),
    snooze: () => new Snooze("10m"),
    text: () => "just text",
    foreign: () => new Cancelled("requested"),
  };
  const { fake } = await rig(t, (worker) => {
    for (const [name, make] of Object.entries(errors)) {
      const fail = () => {
        throw make();
      };
      worker.handle(any(name), fail, { notRetryable: [BadAddress] });
    }
  });
  const report = async (name: string) => fake.report(fake.submit(name));
  const error = async (name: string) => (await report(name)).error as Record<string, string>;

  const plain = await report("plain");
  assert.deepEqual([plain.outcome, plain.retryable], ["failed", true]);
  const { code, message, type, stack } = plain.error as Record<string, string>;
  assert.deepEqual([code, message, type], ["type_error", "oops", "TypeError"]);
  assert.match(String(stack), /worker\.test/);

  const listed = await report("listed");
  assert.deepEqual([listed.retryable, (listed.error as { code: string }).code], [false, "bad_address"]);
  const never = await report("never");
  assert.deepEqual([never.retryable, (never.error as { code: string }).code], [false, "bad_input"]);
  const busy = await report("later");
  assert.deepEqual([busy.outcome, busy.retryable, busy.delay], ["failed", true, "30000ms"]);
  const snooze = await report("snooze");
  assert.deepEqual([snooze.outcome, snooze.delay, snooze.error], ["snoozed", "600000ms", undefined]);
  assert.equal((await error("text")).message, "just text");
  assert.equal((await report("foreign")).outcome, "failed", "a Cancelled that the worker did not cause is a failure");
  assert.equal((await error("foreign")).code, "cancelled");
});

test("a payload that is not of its type does not reach the handler", async (t) => {
  let calls = 0;
  const { fake } = await rig(t, (worker) =>
    worker.handle(typed, ({ n }) => {
      calls += 1;
      return { twice: 2 * n };
    }),
  );
  const bad = await fake.report(fake.submit("typed", { n: "one" }));
  assert.deepEqual([bad.outcome, bad.retryable], ["failed", false]);
  const error = bad.error as { code: string; message: string };
  assert.equal(error.code, "invalid_payload");
  assert.match(error.message, /^n: /);
  assert.equal(calls, 0);
  assert.deepEqual((await fake.report(fake.submit("typed", { n: 21 }))).result, { twice: 42 });
});

test("a result that cannot be a result fails the job for good", async (t) => {
  const results: Record<string, () => unknown> = {
    bigint: () => 1n,
    func: () => () => 1,
    large: () => "x".repeat(256 * 1024 - 1),
    fits: () => "x".repeat(256 * 1024 - 2),
  };
  const { fake } = await rig(t, (worker) => {
    for (const [name, make] of Object.entries(results)) worker.handle(any(name), make);
    worker.handle(typed, () => ({ twice: "no" }) as never);
  });
  const code = async (name: string, payload?: unknown) => {
    const report = await fake.report(fake.submit(name, payload));
    assert.equal(report.retryable, report.outcome === "failed" ? false : undefined);
    return (report.error as { code: string } | undefined)?.code;
  };
  assert.equal(await code("bigint"), "result_invalid");
  assert.equal(await code("func"), "result_invalid");
  assert.equal(await code("typed", { n: 1 }), "result_invalid");
  assert.equal(await code("large"), "result_too_large");
  assert.equal(await code("fits"), undefined);
});

test("no more jobs at a time than there are slots, in all and of a type", async (t) => {
  const now = { all: 0, few: 0 };
  const most = { all: 0, few: 0 };
  const busy = (name: "few" | "many") => async () => {
    now.all += 1;
    most.all = Math.max(most.all, now.all);
    if (name === "few") most.few = Math.max(most.few, ++now.few);
    await later(20);
    now.all -= 1;
    if (name === "few") now.few -= 1;
  };
  const { fake } = await rig(
    t,
    (worker) => {
      worker.handle(any("few"), busy("few"), { capacity: 2 });
      worker.handle(any("many"), busy("many"));
    },
    { capacity: 5 },
  );
  for (let job = 0; job < 30; job += 1) fake.submit(job % 2 ? "few" : "many");
  await eventually("30 reports", () => fake.reports.length === 30 || undefined);
  assert.deepEqual(most, { all: 5, few: 2 });
});

test("when full, polls ask for nothing, and a free slot ends them at once", async (t) => {
  let release = () => {};
  const { fake } = await rig(
    t,
    (worker) => worker.handle(echo, () => new Promise<void>((resolve) => (release = resolve))),
    { capacity: 1, fake: (server) => (server.pollWait = "20s") },
  );
  fake.submit("echo");
  await eventually("a poll for nothing", () => fake.calls("/poll").find(({ body }) => body.max === 0));
  const second = fake.submit("echo");
  const began = performance.now();
  release();
  await eventually("the second job", () => !fake.waiting.includes(second) || undefined);
  assert.ok(performance.now() - began < 3_000);
  release();
});

test("batches gather, and each job of a batch has its own outcome", async (t) => {
  const sizes: number[] = [];
  const batch = jobType<{ n: number }, number>("batch");
  const { fake } = await rig(
    t,
    (worker) =>
      worker.handleBatch(batch, { jobsMax: 4, waitMax: "30ms" }, (payloads, ctx) => {
        sizes.push(payloads.length);
        assert.equal(ctx.each.length, payloads.length);
        return Promise.allSettled(
          payloads.map(async ({ n }) => (n === 7 ? Promise.reject(new BadAddress("7")) : n * 10)),
        );
      }),
    { capacity: 20 },
  );
  const jobs = Array.from({ length: 10 }, (_, n) => fake.submit("batch", { n }));
  const reports = await Promise.all(jobs.map((job) => fake.report(job)));
  assert.deepEqual(
    reports.map((report) => report.result ?? (report.error as { code: string }).code),
    [0, 10, 20, 30, 40, 50, 60, "bad_address", 80, 90],
  );
  assert.ok(Math.max(...sizes) <= 4 && sizes.length >= 3, `${sizes}`);
});

test("a batch that throws fails all its jobs, and so does an answer of the wrong length", async (t) => {
  const batch = jobType<string, unknown>("batch");
  const { fake } = await rig(t, (worker) =>
    worker.handleBatch(batch, { waitMax: "30ms" }, (payloads) => {
      if (payloads.includes("throw")) throw new BadAddress("all");
      return payloads.slice(1);
    }),
  );
  const codes = async (...payloads: string[]) => {
    const jobs = payloads.map((payload) => fake.submit("batch", payload));
    const reports = await Promise.all(jobs.map((job) => fake.report(job)));
    return reports.map((report) => [(report.error as { code: string }).code, report.retryable]);
  };
  assert.deepEqual(await codes("throw", "b"), [
    ["bad_address", true],
    ["bad_address", true],
  ]);
  const mismatch = ["batch_result_mismatch", true];
  assert.deepEqual(await codes("a", "b"), [mismatch, mismatch]);
});

test("middleware runs around handlers, the first one outermost, and cannot spoil a result", async (t) => {
  const order: string[] = [];
  const { fake, line } = await rig(t, (worker) => {
    worker.use(async (ctx, next) => {
      order.push(`outer ${ctx.job.type}`);
      await next();
      order.push("outer end");
      if (ctx.job.payload === "spoil") throw new Error("too late");
    });
    worker.use(async (_, next) => {
      order.push("inner");
      return next();
    });
    worker.handle(echo, (payload) => {
      order.push("handler");
      if (payload === "fail") throw new BadAddress("x");
      return payload;
    });
  });
  assert.equal((await fake.report(fake.submit("echo", "fine"))).result, "fine");
  assert.deepEqual(order, ["outer echo", "inner", "handler", "outer end"]);
  assert.equal((await fake.report(fake.submit("echo", "spoil"))).outcome, "completed");
  assert.equal((await line("middleware failed")).level, "error");
  assert.equal((await fake.report(fake.submit("echo", "fail"))).outcome, "failed");
});

test("a cancelled handler stops, and its report says so", async (t) => {
  let cleaned = false;
  const { fake } = await rig(t, (worker) => {
    worker.handle(any("sleeper"), async (_, ctx) => {
      try {
        await ctx.sleep("60s");
      } catch (error) {
        cleaned = ctx.cancelReason === "requested" && ctx.signal.aborted;
        throw new Error("wrapped by a library", { cause: error });
      }
    });
    worker.handle(any("quick"), async (_, ctx) => {
      await ctx.sleep("60s").catch(() => undefined);
      return "a result counts";
    });
  });
  const job = fake.submit("sleeper");
  const quick = fake.submit("quick");
  await eventually("both to start", () => fake.waiting.length === 0 || undefined);
  fake.cancel = [fake.token(job), fake.token(quick)];
  fake.wake();
  assert.equal((await fake.report(job)).outcome, "cancelled");
  assert.ok(cleaned);
  const report = await fake.report(quick);
  assert.deepEqual([report.outcome, report.result], ["completed", "a result counts"]);
});

test("at its deadline an attempt is cancelled and reported as timed out", async (t) => {
  const { fake } = await rig(t, (worker) => worker.handle(any("sleeper"), (_, ctx) => ctx.sleep("60s")));
  const began = performance.now();
  const report = await fake.report(fake.submit("sleeper", null, "0.3s"));
  assert.deepEqual([report.outcome, (report.error as { code: string }).code], ["failed", "timed_out"]);
  assert.equal(report.retryable, true);
  const ms = performance.now() - began;
  assert.ok(ms >= 295 && ms < 3_000, `${ms}`);
});

test("a handler that ignores its cancel keeps its slot, is shown as stuck, and nothing is reported", async (t) => {
  let release = () => {};
  const { fake, worker, line } = await rig(
    t,
    (worker) => {
      const stubborn = () => new Promise<void>((resolve) => (release = resolve));
      worker.handle(any("stubborn"), stubborn, { cancelGrace: "100ms" });
      worker.handle(echo, (payload) => payload);
    },
    { capacity: 2, fake: (server) => (server.heartbeatInterval = "100ms") },
  );
  const job = fake.submit("stubborn");
  await eventually("the start", () => worker.stats().running === 1 || undefined);
  fake.cancel = [fake.token(job)];
  await line("slot stuck");
  assert.deepEqual([worker.stats().stuck, worker.stats().running], [1, 1]);
  await eventually("stuck in a heartbeat", () => fake.calls("/heartbeat").find(({ body }) => body.stuck === 1));
  assert.equal((await fake.report(fake.submit("echo", 1))).outcome, "completed", "others go on");
  assert.ok(!fake.reports.some((report) => report.token === fake.token(job)));
  release();
  assert.equal((await fake.report(job)).outcome, "completed", "a result that exists anyway is offered");
});

test("currentJob finds the context anywhere below a handler, and nowhere else", async (t) => {
  const deep = async () => {
    await later(1);
    return currentJob()?.job.id;
  };
  const { fake } = await rig(t, (worker) => worker.handle(echo, deep));
  const jobs = [fake.submit("echo"), fake.submit("echo")];
  for (const job of jobs) assert.equal((await fake.report(job)).result, job.id);
  assert.equal(currentJob(), undefined);
});

test("the context says what is known of the attempt", async (t) => {
  const { fake } = await rig<{ db: string }>(
    t,
    (worker) =>
      worker.handle(echo, (_, ctx) => ({
        attempt: ctx.attempt,
        fencing: ctx.fencingToken,
        key: ctx.idempotencyKey,
        state: ctx.state.db,
        left: ctx.timeLeft > 58_000 && ctx.timeLeft <= 60_000,
        draining: ctx.draining,
        maxRetries: ctx.job.maxRetries,
        metadata: ctx.job.metadata,
      })),
    { state: async () => ({ db: "open" }) },
  );
  const job = fake.submit("echo");
  assert.deepEqual((await fake.report(job)).result, {
    attempt: 1,
    fencing: 1,
    key: job.id,
    state: "open",
    left: true,
    draining: false,
    maxRetries: 3,
    metadata: { some_key: 1 },
  });
});

test("once runs an effect once, with a stable key, and gives it back if it throws", async (t) => {
  const keys: string[] = [];
  const { fake } = await rig(t, (worker) =>
    worker.handle(echo, async (payload, ctx) => {
      const effect = (key: string) => {
        keys.push(key);
        if (payload === "throw") throw new BadAddress("x");
        return { sent: key };
      };
      return [await ctx.once("mail", effect), await ctx.once("mail", effect)];
    }),
  );
  const job = fake.submit("echo");
  const sent = { sent: `${job.id}:mail` };
  assert.deepEqual((await fake.report(job)).result, [sent, sent]);
  assert.deepEqual(keys, [`${job.id}:mail`]);
  fake.once.clear();
  assert.equal((await fake.report(fake.submit("echo", "throw"))).outcome, "failed");
  assert.equal(fake.calls("/abandon").length, 1);
});

test("logs and progress reach the server while the job runs, numbered and with their age", async (t) => {
  let release = () => {};
  const { fake } = await rig(
    t,
    (worker) =>
      worker.handle(echo, async (_, ctx) => {
        ctx.progress(10, "first");
        ctx.progress(40, "second");
        ctx.log.info("one", { n: 1 });
        ctx.log.warn("two");
        await new Promise<void>((resolve) => (release = resolve));
        ctx.log.error("three");
      }),
    { fake: (server) => (server.heartbeatInterval = "10s") },
  );
  const job = fake.submit("echo");
  const logs = await eventually("logs", () => fake.logs[0]);
  const lines = logs.lines as { message: string; level: string; age: string; fields?: unknown }[];
  assert.equal(logs.first, 0);
  assert.deepEqual(
    lines.map(({ message, level }) => `${level} ${message}`),
    ["info one", "warn two"],
  );
  assert.deepEqual(lines[0]?.fields, { n: 1 });
  assert.match(String(lines[0]?.age), /^[0-9]+ms$/);
  const latest = { token: fake.token(job), progress: 40, message: "second" };
  await eventually(
    "the latest progress",
    () =>
      fake.calls("/heartbeat").some(({ body }) => JSON.stringify(body.attempts) === JSON.stringify([latest])) ||
      undefined,
  );
  release();
  const report = await fake.report(job);
  const rest = report.logs as { first: number; lines: { message: string }[] };
  assert.deepEqual([rest.first, rest.lines.map(({ message }) => message)], [2, ["three"]]);
});
