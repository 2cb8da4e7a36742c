// graphile-worker: jobs are fetched 500 at a time into a local queue and completed in batches; the poll that finds delayed jobs
// comes every ten milliseconds (the default is every two seconds).

import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";

import { main, SERVER } from "../shared/measure.mjs";

const preset = {
  worker: {
    concurrentJobs: 24,
    pollInterval: 10,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  },
};
const logger = new Logger(() => () => {});
const pool = new pg.Pool({ connectionString: SERVER, max: 1 });
let utils;
let runner;

await main({
  table: "graphile_worker._private_jobs",
  async open() {
    utils = await makeWorkerUtils({ connectionString: SERVER, logger });
    await utils.migrate();
  },
  async submit(jobs) {
    await utils.addJobs(
      jobs.map(({ payload, dueAt }) => ({ identifier: "noop", payload, runAt: dueAt && new Date(dueAt) })),
    );
  },
  async work(onStart) {
    const taskList = { noop: (payload) => void onStart(payload) };
    runner = await run({ connectionString: SERVER, logger, preset, taskList, noHandleSignals: true });
  },
  async unfinished() {
    const { rows } = await pool.query("SELECT count(*)::int AS count FROM graphile_worker._private_jobs");
    return rows[0].count;
  },
  async close() {
    await runner?.stop();
  },
});
