/** A worker as a process of its own. */

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { eventually, FakeServer, problem } from "./fake-server.js";

const PROGRAM = fileURLToPath(new URL("./programs/worker.js", import.meta.url));

interface Program {
  fake: FakeServer;
  child: ChildProcess;
  output(): string;
  exit: Promise<number | null>;
  said(text: string | RegExp): Promise<unknown>;
}

async function start(
  t: TestContext,
  env: Record<string, string> = {},
  prepare?: (fake: FakeServer) => void,
): Promise<Program> {
  const fake = await FakeServer.start();
  prepare?.(fake);
  let text = "";
  const child = spawn(process.execPath, [PROGRAM], { env: { ...process.env, TICKWHEEL_SERVER: fake.url, ...env } });
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk) => (text += String(chunk)));
  const exit = new Promise<number | null>((resolve) => child.once("close", resolve));
  t.after(async () => {
    child.kill("SIGKILL");
    await exit;
    await fake.stop();
  });
  const said = (what: string | RegExp) =>
    eventually(
      `"${what}"`,
      () => (typeof what === "string" ? text.includes(what) : what.test(text)) || undefined,
    ).catch((error: Error) => Promise.reject(new Error(`${error.message}, but:\n${text}`)));
  return { fake, child, output: () => text, exit, said };
}

test("SIGTERM lets running jobs finish, starts none, and ends with 0", async (t) => {
  const { fake, child, exit, said, output } = await start(t, { TICKWHEEL_CAPACITY: "2" });
  const jobs = [fake.submit("sleep", 600), fake.submit("sleep", 600), fake.submit("sleep", 600)];
  await eventually("two to start", () => fake.waiting.length === 1 || undefined);
  child.kill("SIGTERM");
  await said("draining");
  assert.equal(await exit, 0);
  assert.equal(fake.waiting.length, 1);
  for (const job of jobs.slice(0, 2)) assert.equal((await fake.report(job)).outcome, "completed");
  assert.ok(fake.seen.some(({ method, path }) => method === "DELETE" && path.endsWith("/workers/w1")));
  assert.ok(fake.calls("/heartbeat").some(({ body }) => body.state === "draining"));
  assert.match(output(), /run has returned/);
});

test("a second signal cancels what runs, which goes back", async (t) => {
  const { fake, child, exit, said } = await start(t);
  const job = fake.submit("sleep", 60_000);
  await said("attempt started");
  child.kill("SIGTERM");
  await said("draining");
  const began = performance.now();
  child.kill("SIGINT");
  assert.equal(await exit, 0);
  assert.ok(performance.now() - began < 2_500, "it does not wait for what has ended");
  assert.equal((await fake.report(job)).outcome, "released");
});

test("after the drain timeout jobs are cancelled, and a handler that does not end does not keep the process", async (t) => {
  const { fake, child, exit, said } = await start(t, { TICKWHEEL_DRAIN_TIMEOUT: "200ms" });
  const job = fake.submit("sleep", 60_000);
  fake.submit("stubborn", 60_000);
  await said(/type=stubborn/);
  const began = performance.now();
  child.kill("SIGTERM");
  assert.equal(await exit, 0);
  const ms = performance.now() - began;
  assert.ok(ms > 3_000 && ms < 6_000, `${ms}`);
  assert.equal((await fake.report(job)).outcome, "released");
  assert.equal(fake.reports.length, 1, "nothing is reported for the one that does not end");
});

test("a third signal ends the process with 130", async (t) => {
  const { fake, child, exit, said } = await start(t);
  fake.submit("stubborn", 60_000);
  await said("attempt started");
  child.kill("SIGTERM");
  await said("draining");
  child.kill("SIGTERM");
  await said("cancelling");
  child.kill("SIGTERM");
  assert.equal(await exit, 130);
});

test("bad options end the process with 2, and one line names them all", async (t) => {
  const env = {
    TICKWHEEL_CAPACITY: "many",
    TICKWHEEL_LEASE: "1s",
    TICKWHEEL_SERVER: "ftp://x",
    TICKWHEEL_LABELS: "gpu",
  };
  const { exit, output } = await start(t, env);
  assert.equal(await exit, 2);
  const lines = output().trim().split("\n");
  assert.equal(lines.length, 1);
  for (const name of Object.keys(env)) assert.ok(lines[0]?.includes(name), name);
});

test("a server that refuses the worker at the start ends the process with 2", async (t) => {
  for (const [status, code] of [
    [401, "unauthorized"],
    [422, "lease_out_of_range"],
  ] as const) {
    const { exit, output } = await start(t, {}, (fake) => {
      fake.fault = ({ path }) => (path.endsWith("/workers") ? problem(status, code) : undefined);
    });
    assert.equal(await exit, 2);
    assert.match(output(), new RegExp(`refuses this worker.*${code}`));
  }
  const { exit, output } = await start(t, {}, (fake) => {
    fake.protocol = { min: 2, max: 3 };
  });
  assert.equal(await exit, 2);
  assert.match(output(), /protocol_unsupported/);
});

test("while the main loop is blocked, heartbeats go on and a warning names the handler", async (t) => {
  const { fake, said, output } = await start(t, {}, (fake) => {
    fake.lease = "4s";
    fake.heartbeatInterval = "250ms";
  });
  const job = fake.submit("block", 6_000);
  await said("attempt started");
  const before = fake.calls("/heartbeat").length;
  const report = await fake.report(job);
  const beats = fake.calls("/heartbeat").slice(before);
  assert.ok(beats.length >= 8, `${beats.length} heartbeats in 6 s`);
  assert.ok(
    beats.some(({ body }) => !("held" in body)),
    "held is left out while the main side does not answer",
  );
  assert.equal(report.outcome, "completed", "the lease was kept");
  await said(/WARN tickwheel: main loop blocked.*handler="block \(job 0193[^)]*attempt 1\)".*blockTheLoop/);
  assert.ok(!output().includes("lease lost"));
});

test("jobs of an answer that lay unread while the main loop was blocked are checked before they start", async (t) => {
  const { fake, said } = await start(t);
  const block = fake.submit("block", 3_000);
  await said("attempt started");
  await eventually("the poll after it", () => fake.calls("/poll").length >= 2 || undefined);
  const [lost, kept] = [fake.submit("echo", 1), fake.submit("echo", 2)];
  await eventually("them to be handed out", () => fake.waiting.length === 0 || undefined);
  fake.fault = ({ path, body }) => {
    // Only the heartbeat with all tokens says so, as the server would.
    if (path.endsWith("/heartbeat") && (body.tokens as string[] | undefined)?.includes(fake.token(lost))) {
      fake.lost = [fake.token(lost)];
    }
    return undefined;
  };
  assert.equal((await fake.report(block)).outcome, "completed");
  assert.equal((await fake.report(kept)).outcome, "completed");
  assert.ok(!fake.reports.some(({ token }) => token === fake.token(lost)));
});

test("a worker that has nothing to do is not called blocked", async (t) => {
  const { fake, output } = await start(t, {}, (fake) => {
    fake.heartbeatInterval = "5s";
  });
  await eventually("a poll", () => fake.calls("/poll")[0]);
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  assert.doesNotMatch(output(), /blocked/);
});

test("a rejection that nobody awaits fails its own attempt, and the worker goes on", async (t) => {
  const { fake } = await start(t);
  const report = await fake.report(fake.submit("floating"));
  assert.deepEqual([report.outcome, (report.error as { code: string }).code], ["failed", "floating"]);
  assert.equal((await fake.report(fake.submit("echo", 1))).outcome, "completed");
});

test("a process that was frozen for longer than its lease cancels its handlers", async (t) => {
  const { fake, child, said } = await start(t, {}, (fake) => {
    fake.lease = "4s";
    fake.heartbeatInterval = "300ms";
  });
  fake.submit("sleep", 60_000);
  await said("attempt started");
  child.kill("SIGSTOP");
  await new Promise((resolve) => setTimeout(resolve, 4_500));
  fake.session += 1; // the server has given up on the session
  child.kill("SIGCONT");
  await said("lease lost");
  await eventually("a new session", () => fake.calls("/workers").length === 2 || undefined, 3_000);
  assert.equal((await fake.report(fake.submit("echo", 1))).outcome, "completed");
});
