// A worker whose handler does nothing, as somebody would write it with the TypeScript library: `node worker.ts CAPACITY`.
//
// It runs jobs of type `bench` and notes when each of them started. When it is asked to stop, it prints those times as
// JSON.

import { jobType } from "tickwheel";
import { Worker } from "tickwheel/worker";

interface NoOp {
  to: string;
  template: string;
  language: string;
  number: number;
  n: number;
}

const noop = jobType<NoOp, null>("bench");
const starts: [number, number][] = [];
const worker = new Worker({ capacity: Number(process.argv[2]) });

worker.handle(noop, async (job) => {
  starts.push([job.n, performance.timeOrigin + performance.now()]);
  return null;
});

await worker.run();
console.log(JSON.stringify({ starts }));
