/** The session with the server: lost answers, lost leases, drains, keys, bounds. */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Cancelled, jobType, LeaseLost } from "tickwheel";
import { Worker } from "tickwheel/worker";
import { eventually, FakeServer, problem } from "./fake-server.js";
import { keepLines, rig } from "./harness.js";

const echo = jobType<unknown, unknown>("echo");
const any = (name: string) => jobType<unknown, unknown>(name);
const short = (fake: FakeServer) => {
  fake.lease = "4s";
  fake.heartbeatInterval = "300ms";
};

test("registration says who we are, and the first heartbeat how much we hold", async (t) => {
  const { fake } = await rig(t, (worker) => worker.handle(echo, (_, ctx) => ctx.sleep("60s")), {
    queues: ["mail"],
    labels: { gpu: true },
    capacity: 3,
    lease: "30s",
    fake: short,
  });
  fake.submit("echo");
  const { body } = await eventually("the registration", () => fake.calls("/workers")[0]);
  const { instance, host, pid, library, ...rest } = body;
  assert.deepEqual(rest, {
    name: "test",
    queues: ["mail"],
    types: ["echo"],
    capacity: 3,
    labels: { gpu: true },
    protocol: 1,
    lease: "30000ms",
  });
  assert.match(String(instance), /^[0-9a-f-]{36}$/);
  assert.match(String(library), /^typescript\//);
  assert.ok(host && pid === process.pid);
  await eventually("a heartbeat", () => fake.calls("/heartbeat").find((call) => call.body.held === 1));
  assert.deepEqual(Object.keys(fake.calls("/heartbeat")[0]?.body ?? {}).sort(), ["attempts", "held", "state", "stuck"]);
});

test("a poll whose answer was lost is repeated with its number, and its job runs once", async (t) => {
  let calls = 0;
  let cut = true;
  const { fake } = await rig(t, (worker) => worker.handle(echo, () => (calls += 1)), {
    fake: (fake) => (fake.pollWait = "300ms"),
  });
  fake.fault = ({ path }) => {
    if (!path.endsWith("/poll") || !cut || fake.waiting.length === 0) return undefined;
    cut = false;
    return "swallow";
  };
  const job = fake.submit("echo");
  await eventually("the job to be handed out", () => !fake.waiting.includes(job) || undefined);
  // The answer is on its way for ever; the server counts more than we hold and says so.
  const lost = fake.calls("/poll").at(-1)?.body.seq;
  fake.resync = true;
  assert.equal((await fake.report(job)).outcome, "completed");
  assert.equal(calls, 1);
  const polls = fake.calls("/poll").map(({ body }) => body.seq);
  assert.ok(polls.filter((seq) => seq === lost).length === 2, `${polls}`);
});

test("after a cut connection the poll has the same number; after an answer the next one", async (t) => {
  let cuts = 2;
  const { fake } = await rig(t, (worker) => worker.handle(echo, () => 1));
  await eventually("a poll", () => fake.calls("/poll")[0]);
  fake.fault = ({ path }) => (path.endsWith("/poll") && cuts-- > 0 ? "cut" : undefined);
  await fake.report(fake.submit("echo")); // answers the poll that was waiting before the connection was cut
  await fake.report(fake.submit("echo"));
  const polls = fake.calls("/poll").map(({ body }) => body.seq as number);
  const repeated = polls.filter((seq, index) => polls.indexOf(seq) !== index);
  assert.ok(repeated.length === 2 && new Set(repeated).size === 1, `${polls}`);
  assert.deepEqual(
    [...polls].sort((a, b) => a - b),
    polls,
    "numbers only grow",
  );
});

test("reports are repeated until they are accepted, one request at a time, and the handler is not", async (t) => {
  let calls = 0;
  let failures = 3;
  const { fake } = await rig(t, (worker) => worker.handle(echo, () => (calls += 1)), { capacity: 50 });
  fake.fault = ({ path }) => {
    if (!path.endsWith("/report") || failures-- <= 0) return undefined;
    return failures % 2 ? "cut" : problem(503, "store_unavailable", { "retry-after": "0" });
  };
  const jobs = Array.from({ length: 20 }, () => fake.submit("echo"));
  for (const job of jobs) await fake.report(job);
  assert.equal(calls, 20);
  assert.ok(fake.calls("/report").length < 12, "they share requests");
  assert.equal(new Set(fake.reports.map(({ token }) => token)).size, 20);
});

test("a stale report is a log line; one that the server cannot take becomes a failure", async (t) => {
  const { fake, line, worker } = await rig(t, (worker) => worker.handle(echo, (payload) => payload));
  fake.judge = (report) => {
    if (report.result === "stale") return { error: { code: "stale_token", detail: "gone", status: 409 } };
    if (report.result === "bad") return { error: { code: "payload_too_large", detail: "no", status: 413 } };
    return { status: "accepted" };
  };
  fake.submit("echo", "stale");
  assert.equal((await line("stale report")).level, "warn");
  const report = await fake.report(fake.submit("echo", "bad"));
  assert.deepEqual([report.outcome, (report.error as { code: string }).code], ["failed", "result_too_large"]);
  await eventually("nothing held", () => worker.stats().held === 0 || undefined);
});

test("one report that spoils its request does not hold up the others", async (t) => {
  const { fake } = await rig(t, (worker) => worker.handle(echo, (payload) => payload), { capacity: 10 });
  fake.fault = ({ path, body }) => {
    const reports = path.endsWith("/report") ? (body.reports as { result?: unknown }[]) : [];
    return reports.some(({ result }) => result === "bad") ? problem(400, "wrong_type") : undefined;
  };
  const jobs = ["good", "bad", "fine"].map((payload) => fake.submit("echo", payload));
  const reports = await Promise.all(jobs.map((job) => fake.report(job)));
  assert.deepEqual(
    reports.map(({ outcome }) => outcome),
    ["completed", "failed", "completed"],
  );
});

test("when the lease cannot be proven, handlers are cancelled, and what ends anyway is offered", async (t) => {
  const reasons: unknown[] = [];
  const { fake, worker, line } = await rig(
    t,
    (worker) => {
      worker.handle(any("cancels"), async (_, ctx) => {
        await ctx.sleep("60s").catch((error: unknown) => {
          reasons.push(error);
          throw error;
        });
      });
      worker.handle(any("goes-on"), (_, ctx) => ctx.sleep("6s").then(() => "done"), { onLeaseLost: "continue" });
    },
    { fake: short },
  );
  const cancels = fake.submit("cancels");
  const goesOn = fake.submit("goes-on");
  await eventually("both to start", () => worker.stats().running === 2 || undefined);
  assert.ok(worker.stats().healthy);
  const cutAt = performance.now();
  fake.fault = () => "cut";
  await line("lease lost");
  const ms = performance.now() - cutAt;
  assert.ok(ms > 2_000 && ms < 4_000, `before the lease of 4 s ends: ${ms}`);
  assert.ok(reasons[0] instanceof LeaseLost && reasons[0] instanceof Cancelled);
  await eventually("bad health", () => !worker.stats().healthy || undefined);
  await line("server away");
  fake.fault = () => undefined;
  assert.equal((await fake.report(cancels)).outcome, "released");
  assert.equal((await fake.report(goesOn)).outcome, "completed");
  await line("reconnected");
  assert.ok(worker.stats().healthy);
});

test("an unknown worker cancels everything, reports nothing of it, and registers anew", async (t) => {
  const { fake, worker, line } = await rig(
    t,
    (worker) => {
      worker.handle(any("sleeper"), (_, ctx) => ctx.sleep("60s"));
      worker.handle(echo, (payload) => payload);
    },
    { fake: short },
  );
  const first = fake.submit("sleeper");
  await eventually("the start", () => worker.stats().running === 1 || undefined);
  fake.session += 1;
  await line("lease lost");
  await eventually("the second registration", () => fake.calls("/workers").length === 2 || undefined, 2_000);
  await eventually("the handler to end", () => worker.stats().running === 0 || undefined);
  assert.equal((await fake.report(fake.submit("echo", 1))).outcome, "completed");
  assert.ok(!fake.reports.some(({ token }) => token === fake.token(first)));
  const [one, two] = fake.calls("/workers").map(({ body }) => body.instance);
  assert.notEqual(one, two);
});

test("told lost, an attempt is cancelled and nothing is reported", async (t) => {
  const { fake, worker } = await rig(t, (worker) => worker.handle(echo, (_, ctx) => ctx.sleep("60s")), { fake: short });
  const job = fake.submit("echo");
  await eventually("the start", () => worker.stats().running === 1 || undefined);
  fake.lost = [fake.token(job)];
  await eventually("the end", () => worker.stats().running === 0 || undefined);
  assert.equal(worker.stats().held, 0);
  assert.equal(fake.reports.length, 0);
});

test("ctx.heartbeat asks the server with all tokens, and throws what it says", async (t) => {
  const outcomes: string[] = [];
  const { fake } = await rig(t, (worker) =>
    worker.handle(echo, async (payload, ctx) => {
      if (payload === "lost") fake.lost = [`tok-${ctx.job.id}-1`];
      if (payload === "cancelled") fake.cancel = [`tok-${ctx.job.id}-1`];
      await ctx.heartbeat().then(
        () => outcomes.push("mine"),
        (error: Error) => {
          outcomes.push(error.name);
          throw error;
        },
      );
    }),
  );
  const mine = fake.submit("echo", "mine");
  assert.equal((await fake.report(mine)).outcome, "completed");
  const proofs = fake.calls("/heartbeat").filter(({ body }) => body.tokens);
  assert.deepEqual(proofs.at(-1)?.body.tokens, [fake.token(mine)]);
  assert.equal((await fake.report(fake.submit("echo", "cancelled"))).outcome, "cancelled");
  fake.submit("echo", "lost");
  await eventually("three outcomes", () => outcomes.length === 3 || undefined);
  assert.deepEqual(outcomes, ["mine", "Cancelled", "LeaseLost"]);
});

test("a resync is answered with all tokens", async (t) => {
  const { fake, worker } = await rig(t, (worker) => worker.handle(echo, (_, ctx) => ctx.sleep("60s")), { fake: short });
  const jobs = [fake.submit("echo"), fake.submit("echo")];
  await eventually("the start", () => worker.stats().running === 2 || undefined);
  fake.resync = true;
  const proof = await eventually("tokens", () => fake.calls("/heartbeat").find(({ body }) => body.tokens));
  assert.deepEqual(
    proof.body.tokens,
    jobs.map((job) => fake.token(job)),
  );
  assert.equal(proof.body.held, 2);
});

test("asked to drain, the worker takes nothing until it may again", async (t) => {
  const { fake, worker, line } = await rig(t, (worker) => worker.handle(echo, (payload) => payload), { fake: short });
  await eventually("readiness", () => worker.stats().ready || undefined);
  fake.drain = true;
  await line("draining: the server asks");
  assert.equal(worker.stats().ready, false);
  await eventually("a poll for nothing", () => fake.calls("/poll").at(-1)?.body.max === 0 || undefined);
  const job = fake.submit("echo", 1);
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.ok(fake.waiting.includes(job));
  fake.drain = false;
  assert.equal((await fake.report(job)).outcome, "completed");
});

test("jobs that arrive while the worker stops go back", async (t) => {
  let calls = 0;
  const { fake, worker } = await rig(t, (worker) => worker.handle(echo, () => (calls += 1)));
  await eventually("a waiting poll", () => fake.calls("/poll").length > 0 || undefined);
  // The job is handed out to the waiting poll in the same moment in which the worker is stopped.
  const job = fake.submit("echo");
  const stopped = worker.stop();
  await stopped;
  assert.equal(calls, 0);
  assert.equal(fake.reports.find(({ token }) => token === fake.token(job))?.outcome, "released");
});

test("a key that is revoked is read again from its file, and no attempt is lost", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "tickwheel-key-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const apiKeyFile = join(directory, "key");
  writeFileSync(apiKeyFile, "old\n");
  let valid = "old";
  const { fake, worker, lines } = await rig(t, (worker) => worker.handle(echo, (_, ctx) => ctx.sleep("1500ms")), {
    apiKeyFile,
    fake: (fake) => {
      short(fake);
      fake.fault = ({ key }) => (key === valid ? undefined : problem(401, "unauthorized"));
    },
  });
  const job = fake.submit("echo");
  await eventually("the start", () => worker.stats().running === 1 || undefined);
  writeFileSync(apiKeyFile, "new\n");
  valid = "new";
  assert.equal((await fake.report(job)).outcome, "completed");
  assert.ok(!lines.some(({ message }) => message.startsWith("lease lost")));
});

test("several servers are tried in turn", async (t) => {
  const fake = await FakeServer.start();
  t.after(() => fake.stop());
  const { logger } = keepLines();
  const free = await freePort();
  const server = [`http://127.0.0.1:${free}`, fake.url];
  const worker = new Worker({ server, handleSignals: false, logger });
  worker.handle(echo, (payload) => payload);
  const running = worker.run();
  assert.equal((await fake.report(fake.submit("echo", 1))).outcome, "completed");
  await worker.stop();
  await running;
});

test("a server that comes later is found", async (t) => {
  const port = await freePort();
  const { logger } = keepLines();
  const worker = new Worker({ server: `http://127.0.0.1:${port}`, handleSignals: false, logger });
  worker.handle(echo, (payload) => payload);
  const running = worker.run();
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.deepEqual([worker.stats().phase, worker.stats().ready], ["connecting", false]);
  const fake = new FakeServer();
  await fake.listen(port);
  t.after(() => fake.stop());
  assert.equal((await fake.report(fake.submit("echo", 1))).outcome, "completed");
  await worker.stop();
  await running;
});

test("stopped before it has found a server, a worker just ends", async () => {
  const { logger } = keepLines();
  const worker = new Worker({ server: `http://127.0.0.1:${await freePort()}`, handleSignals: false, logger });
  worker.handle(echo, (payload) => payload);
  const running = worker.run();
  await worker.stop();
  await running;
});

test("state is opened before the first job and disposed after the last", async (t) => {
  const order: string[] = [];
  const { fake, worker } = await rig<string>(t, (worker) => worker.handle(echo, () => order.push("job")), {
    state: async () => {
      order.push("open");
      return "state";
    },
    dispose: (state) => order.push(`dispose ${state}`),
  });
  await fake.report(fake.submit("echo"));
  await worker.stop();
  assert.deepEqual(order, ["open", "job", "dispose state"]);
});

test("a server without once, logs and resync is good enough", async (t) => {
  const { fake, lines } = await rig(
    t,
    (worker) =>
      worker.handle(echo, async (_, ctx) => {
        ctx.log.info("kept at home");
        return ctx.once("key", (key) => key);
      }),
    { fake: (fake) => (fake.features = []) },
  );
  const job = fake.submit("echo");
  const report = await fake.report(job);
  assert.deepEqual([report.result, report.logs], [`${job.id}:key`, undefined]);
  assert.equal(fake.calls("/logs").length + fake.calls("/key").length, 0);
  assert.ok(lines.some(({ message }) => message === "kept at home"));
});

test("the health port says what stats say", async (t) => {
  const healthPort = await freePort();
  const { fake, worker } = await rig(t, (worker) => worker.handle(echo, () => 1), { healthPort, fake: short });
  const status = async (path: string) => (await fetch(`http://127.0.0.1:${healthPort}${path}`)).status;
  await eventually("readiness", () => worker.stats().ready || undefined);
  assert.deepEqual([await status("/healthz"), await status("/readyz"), await status("/other")], [200, 200, 404]);
  fake.fault = () => "cut";
  await eventually("503", async () => (await status("/healthz")) === 503 || undefined);
  fake.fault = () => undefined;
  await eventually("200", async () => (await status("/healthz")) === 200 || undefined);
  fake.drain = true;
  await eventually("not ready", async () => (await status("/readyz")) === 503 || undefined);
  assert.equal(await status("/healthz"), 200);
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
