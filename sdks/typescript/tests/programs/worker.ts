/** A worker program for tests that need a process: signals, exit codes, a blocked main loop. */

import { jobType } from "tickwheel";
import { Worker } from "tickwheel/worker";

class Floating extends Error {}

const worker = new Worker({ name: "program", logLevel: "debug" });
worker.handle(jobType<unknown, unknown>("echo"), (payload) => payload);
worker.handle(jobType<number, unknown>("sleep"), (ms, ctx) => ctx.sleep(ms));
worker.handle(jobType<number, unknown>("stubborn"), (ms) => new Promise((resolve) => setTimeout(resolve, ms)));
worker.handle(jobType<number, unknown>("block"), async function blockTheLoop(ms) {
  await null;
  const until = performance.now() + ms;
  while (performance.now() < until) Math.sqrt(until);
  return "blocked";
});
worker.handle(jobType<unknown, unknown>("floating"), async (_, ctx) => {
  void Promise.reject(new Floating("nobody awaits this"));
  await ctx.sleep("10s").catch(() => undefined);
  return "not a result";
});
await worker.run();
console.log("run has returned");
