/** Against the real program, when `TICKWHEEL_BIN` names it. */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import {
  type Client,
  JobCancelled,
  JobFailed,
  jobType,
  NotRetryable,
  RetryAfter,
  ref,
  Snooze,
  WaitTimeout,
  Workflow,
} from "tickwheel";
import { Server } from "tickwheel/testing";
import { Worker } from "tickwheel/worker";
import { z } from "zod";
import { eventually } from "./fake-server.js";
import { keepLines, type Line } from "./harness.js";

const skip = process.env.TICKWHEEL_BIN ? false : "TICKWHEEL_BIN is not set";

const echo = jobType<unknown, unknown>("echo");
const twice = jobType("twice", { payload: z.object({ n: z.int() }), result: z.object({ twice: z.int() }) });
const flaky = jobType<{ times: number; how: string }, number>("flaky", {
  retry: { maxRetries: 3, initialDelay: "50ms", jitter: 0 },
});
const sleeper = jobType<number, string>("sleeper");
const counted = jobType<number, number>("counted");
const index = jobType<number, number>("index");

let server: Server;
let client: Client;
let worker: Worker;
let running: Promise<void>;
let lines: Line[];
const starts = new Map<string, number>();

before(async () => {
  if (skip) return;
  server = await Server.start();
  client = server.client();
  const kept = keepLines();
  lines = kept.lines;
  worker = new Worker({ server: server.url, handleSignals: false, capacity: 20, lease: "5s", logger: kept.logger });
  worker.handle(echo, (payload) => payload);
  worker.handle(twice, ({ n }) => ({ twice: 2 * n }));
  worker.handle(flaky, ({ times, how }, ctx) => {
    if (ctx.attempt > times) return ctx.attempt;
    if (how === "never") throw new NotRetryable("never", { code: "no_way" });
    if (how === "later") throw new RetryAfter("500ms", "busy");
    if (how === "snooze") throw new Snooze("200ms");
    throw new TypeError("oops");
  });
  worker.handle(sleeper, async (ms, ctx) => {
    starts.set(ctx.job.id, (starts.get(ctx.job.id) ?? 0) + 1);
    ctx.progress(30, "sleeping");
    await ctx.heartbeat();
    await ctx.sleep(ms);
    return "slept";
  });
  worker.handle(counted, (n, ctx) => {
    starts.set(ctx.job.id, (starts.get(ctx.job.id) ?? 0) + 1);
    return n;
  });
  worker.handleBatch(index, { jobsMax: 10, waitMax: "50ms" }, (numbers) => numbers.map((n) => n + 1));
  running = worker.run();
  await eventually("readiness", () => worker.stats().ready || undefined);
});

after(async () => {
  if (skip) return;
  await worker.stop();
  await running;
  await server.stop();
});

test("a job runs and its result comes back, typed", { skip }, async () => {
  const handle = await client.submit(twice, { n: 21 });
  assert.deepEqual(await handle.wait("10s"), { twice: 42 });
  const payload = { text: "\u0000 \u{1F600} 𐍈", big: 2 ** 53, none: null, some_key: [{ a: 1 }] };
  assert.deepEqual(await (await client.submit(echo, payload)).wait("10s"), payload);
});

test("256 KiB of payload and result go through", { skip }, async () => {
  const text = "x".repeat(256 * 1024 - 2);
  assert.equal(await (await client.submit(echo, text)).wait("10s"), text);
});

test("failures are retried, and end as they should", { skip }, async () => {
  const run = async (times: number, how: string) => client.submit(flaky, { times, how });
  const retried = await run(2, "error");
  assert.equal(await retried.wait("10s"), 3);
  assert.equal((await retried.get()).retries, 2);
  const never = await run(1, "never");
  await assert.rejects(never.wait("10s"), (error: JobFailed) => error instanceof JobFailed && error.code === "no_way");
  assert.equal((await never.get()).attempt, 1);
  const later = await run(1, "later");
  assert.equal(await later.wait("10s"), 2);
  assert.equal((await later.get()).retries, 1);
  const snoozed = await run(3, "snooze");
  assert.equal(await snoozed.wait("10s"), 4);
  assert.equal((await snoozed.get()).retries, 0);
});

test("a payload of the wrong type fails for good and names the field", { skip }, async () => {
  const handle = await client.submit(jobType<unknown>("twice"), { n: "one" });
  await assert.rejects(handle.wait("10s"), (error: JobFailed) => {
    assert.deepEqual([error.code, /^n: /.test(error.message)], ["invalid_payload", true]);
    return true;
  });
});

test("a running job is cancelled, and its end is reported at once", { skip }, async () => {
  const handle = await client.submit(sleeper, 60_000);
  await eventually("the start", () => starts.get(handle.id));
  const began = performance.now();
  await handle.cancel();
  await assert.rejects(handle.wait("10s"), JobCancelled);
  assert.ok(performance.now() - began < 2_000);
  assert.equal(starts.get(handle.id), 1);
});

test("an attempt ends at its timeout", { skip }, async () => {
  const handle = await client.submit(sleeper, 60_000, { timeout: "1s", maxRetries: 0 });
  await assert.rejects(handle.wait("10s"), (error: JobFailed) => error.code === "timed_out");
});

test("a job that waits longer than anybody waits for it goes on", { skip }, async () => {
  const handle = await client.submit(echo, 1, { delay: "1h" });
  await assert.rejects(handle.wait("100ms"), WaitTimeout);
  assert.equal((await handle.cancel()).status, "cancelled");
  assert.equal((await handle.retry()).status, "scheduled");
});

test("a job longer than two leases stays ours", { skip }, async () => {
  const handle = await client.submit(sleeper, 11_000);
  assert.equal(await handle.wait("20s"), "slept");
  assert.equal(starts.get(handle.id), 1);
  assert.ok(!lines.some(({ message }) => message.startsWith("lease lost")));
});

test("batches and many submissions", { skip }, async () => {
  const results = await client.submitMany(Array.from({ length: 25 }, (_, n) => index.new(n)));
  const values = await Promise.all(results.map(({ handle }) => handle?.wait("10s")));
  assert.deepEqual(
    values,
    Array.from({ length: 25 }, (_, n) => n + 1),
  );
});

test("1,000 small jobs are each run once", { skip }, async () => {
  const before = performance.now();
  const results = await client.submitMany(Array.from({ length: 1_000 }, (_, n) => counted.new(n)));
  const ids = results.flatMap(({ handle }) => handle?.id ?? []);
  await Promise.all(results.map(({ handle }) => handle?.wait("30s")));
  assert.deepEqual(
    ids.filter((id) => starts.get(id) !== 1),
    [],
  );
  assert.equal(ids.length, 1_000);
  assert.ok(performance.now() - before < 20_000);
});

test("a workflow passes results on", { skip }, async () => {
  const name = `flow-${randomUUID()}`;
  const workflow = new Workflow(name)
    .task("first", twice, { payload: { n: ref("input.n") } })
    .task("second", twice, { payload: { n: ref("first.result.twice") }, dependsOn: ["first"] });
  assert.equal((await client.workflows.put(workflow)).version, 1);
  const run = await (await client.workflows.start(name, { n: 5 })).wait("20s");
  const second = run.tasks?.find((task) => task.name === "second");
  assert.deepEqual((await client.get(second?.jobId ?? "")).result, { twice: 20 });
});

test("a schedule is triggered, paused, resumed and removed", { skip }, async () => {
  const name = `schedule-${randomUUID()}`;
  const put = () =>
    client.schedules.put(name, { cron: "0 7 * * mon-fri", timezone: "Europe/Berlin", job: echo.new("tick") });
  assert.equal((await put()).id, (await put()).id);
  const id = await client.schedules.trigger(name);
  assert.equal(await client.handle(id).wait("10s"), "tick");
  assert.equal((await client.schedules.pause(name)).paused, true);
  assert.equal((await client.schedules.resume(name)).paused, false);
  await client.schedules.delete(name);
  await assert.rejects(client.schedules.get(name), { code: "not_found" });
});

test("a stopped worker gives back what runs, and another one runs it", { skip }, async () => {
  const other = jobType<null, string>("handed-over", { queue: "handover" });
  const make = (name: string, handler: (n: null, ctx: { sleep(ms: number): Promise<void> }) => Promise<string>) => {
    const made = new Worker({
      server: server.url,
      name,
      queues: ["handover"],
      handleSignals: false,
      logger: keepLines().logger,
    });
    made.handle(other, handler);
    return { made, done: made.run() };
  };
  let started = false;
  const first = make("first", async (_, ctx) => {
    started = true;
    await ctx.sleep(60_000);
    return "first";
  });
  const handle = await client.submit(other, null);
  await eventually("the start", () => started || undefined);
  const second = make("second", async () => "second");
  await eventually("readiness", () => second.made.stats().ready || undefined);
  void first.made.stop();
  await first.made.stop();
  assert.equal(await handle.wait("10s"), "second");
  assert.equal((await handle.get()).retries, 0);
  await second.made.stop();
  await Promise.all([first.done, second.done]);
});
