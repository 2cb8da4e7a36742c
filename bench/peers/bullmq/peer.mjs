// BullMQ on Redis: one worker, a hundred jobs at once; completed jobs are kept, as ours are.

import { FlowProducer, Queue, Worker } from "bullmq";

import { main, SERVER } from "../shared/measure.mjs";

const NAME = "noop";
const { hostname: host, port } = new URL(SERVER);
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const queue = new Queue(NAME, { connection });
let flows;
let worker;

await main({
  async open() {
    await queue.waitUntilReady();
  },
  async submit(jobs) {
    const now = Date.now();
    await queue.addBulk(
      jobs.map(({ payload, dueAt }) => ({ name: NAME, data: payload, opts: dueAt ? { delay: Math.max(0, dueAt - now) } : {} })),
    );
  },
  async flow(jobs) {
    flows ??= new FlowProducer({ connection });
    const children = jobs.map(({ payload }) => ({ name: NAME, queueName: NAME, data: payload }));
    const parent = children.pop();
    await flows.add({ ...parent, children });
  },
  async work(onStart) {
    worker = new Worker(NAME, async (job) => void onStart(job.data), { connection, concurrency: 100, autorun: false });
    await worker.waitUntilReady();
    return () => void worker.run();
  },
  async unfinished() {
    const counts = await queue.getJobCounts("wait", "active", "delayed", "prioritized", "waiting-children");
    return Object.values(counts).reduce((sum, count) => sum + count, 0);
  },
  async close() {
    await worker?.close(true);
    await flows?.close();
    await queue.close();
  },
});
