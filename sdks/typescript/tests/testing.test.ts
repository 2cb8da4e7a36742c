/** `tickwheel/testing`. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { InvalidData, JobFailed, jobType, NotRetryable, Snooze, WaitTimeout } from "tickwheel";
import { RecordingClient, run } from "tickwheel/testing";
import { Worker } from "tickwheel/worker";
import { z } from "zod";

const greet = jobType("greet", { payload: z.object({ name: z.string() }), result: z.object({ text: z.string() }) });
const follow = jobType<{ n: number }>("follow");

test("run gives what the server would learn", async () => {
  const worker = new Worker<{ greeting: string }>({ server: "http://test.invalid" });
  worker.handle(greet, async ({ name }, ctx) => {
    ctx.progress(50, "half");
    ctx.log.info("greeting", { name });
    if (name === "wait") throw new Snooze("1m");
    if (name === "bad") throw new NotRetryable("never", { code: "bad_name" });
    await ctx.client.submit(follow, { n: ctx.attempt });
    return { text: `${ctx.state.greeting}, ${await ctx.once("name", () => name)}` };
  });
  const client = new RecordingClient();
  const state = { greeting: "Hello" };
  const done = await run(worker, greet, { name: "you" }, { state, attempt: 2, client });
  assert.deepEqual([done.status, done.result], ["completed", { text: "Hello, you" }]);
  assert.deepEqual(done.progress, [{ percent: 50, message: "half" }]);
  assert.deepEqual(done.logs, [{ level: "info", message: "greeting", fields: { name: "you" } }]);
  assert.deepEqual(
    client.submittedOf(follow).map(({ payload }) => payload),
    [{ n: 2 }],
  );
  const snoozed = await run(worker, greet, { name: "wait" }, { state });
  assert.deepEqual([snoozed.status, snoozed.delayMs, snoozed.error], ["snoozed", 60_000, undefined]);
  const bad = await run(worker, greet, { name: "bad" }, { state });
  assert.deepEqual([bad.status, bad.retryable, bad.error?.code], ["failed", false, "bad_name"]);
  const wrong = await run(worker, greet, { name: 1 as never }, { state });
  assert.deepEqual([wrong.error?.code, wrong.retryable], ["invalid_payload", false]);
});

test("run makes JSON of payload and result, and middleware runs", async () => {
  const seen: unknown[] = [];
  const worker = new Worker({ server: "http://test.invalid" });
  const dates = jobType<{ at: unknown }, unknown>("dates");
  worker.handle(dates, ({ at }) => {
    seen.push(typeof at);
    return { at: new Date(0), nothing: undefined };
  });
  worker.use((_, next) => {
    seen.push("middleware");
    return next();
  });
  const { result } = await run(worker, dates, { at: new Date(0) });
  assert.deepEqual(seen, ["middleware", "string"]);
  assert.deepEqual(result, { at: "1970-01-01T00:00:00.000Z" });
});

test("run can cancel, time out and drain", async () => {
  const worker = new Worker({ server: "http://test.invalid" });
  const sleeper = jobType<null, unknown>("sleeper");
  worker.handle(sleeper, async (_, ctx) => {
    if (!ctx.draining) await ctx.sleep("60s");
    return "draining";
  });
  assert.equal((await run(worker, sleeper, null, { cancel: "requested", cancelAfter: "20ms" })).status, "cancelled");
  assert.equal((await run(worker, sleeper, null, { cancel: "shutdown", cancelAfter: "20ms" })).status, "released");
  assert.equal((await run(worker, sleeper, null, { timeout: "20ms" })).error?.code, "timed_out");
  assert.equal((await run(worker, sleeper, null, { draining: true })).result, "draining");
});

test("a batch handler runs with a batch of one", async () => {
  const worker = new Worker({ server: "http://test.invalid" });
  worker.handleBatch(follow, {}, (payloads, ctx) => {
    assert.equal(ctx.each.length, 1);
    return payloads.map(({ n }) => n + 1);
  });
  assert.equal((await run(worker, follow, { n: 1 })).result, 2);
});

test("a recording client keeps what was submitted and plays what completes", async () => {
  const client = new RecordingClient().completes(greet, { text: "done" }).fails(follow, "nope");
  assert.deepEqual(await (await client.submit(greet, { name: "a" }, { delay: "1m" })).wait(), { text: "done" });
  await assert.rejects((await client.submit(follow, { n: 1 })).wait(), JobFailed);
  await assert.rejects(client.submit(greet, { name: 1 as never }), InvalidData);
  await client.submitMany([greet.new({ name: "b" }), greet.new({ name: "c" })]);
  assert.deepEqual(
    client.submitted.map(({ type }) => type),
    ["greet", "follow", "greet", "greet"],
  );
  assert.equal(client.submitted[0]?.request.delay, "60000ms");
  const silent = new RecordingClient();
  const handle = await silent.submit(greet, { name: "a" });
  assert.equal((await handle.get()).status, "scheduled");
  await assert.rejects(handle.wait("10ms"), WaitTimeout);
  await silent.schedules.put("s", { every: "1h", job: greet.new({ name: "a" }) });
  assert.equal(silent.stored.get("s")?.every, "3600000ms");
});
