// pg-boss: two workers fetch and complete 500 jobs at a time and go on at once while batches are full; a notification wakes them
// for new jobs, and delayed ones are found by the shortest poll it allows.

import pg from "pg";
import { PgBoss } from "pg-boss";

import { main, SERVER } from "../shared/measure.mjs";

const QUEUE = "noop";
const POLL_S = 0.5;
const boss = new PgBoss({ connectionString: SERVER, useListenNotify: true, supervise: false, schedule: false });
const pool = new pg.Pool({ connectionString: SERVER, max: 1 });

await main({
  table: "pgboss.job",
  async open() {
    await boss.start();
    await boss.createQueue(QUEUE, { notify: true });
  },
  async submit(jobs) {
    await boss.insert(
      QUEUE,
      jobs.map(({ payload, dueAt }) => ({ data: payload, startAfter: dueAt && new Date(dueAt) })),
    );
  },
  async work(onStart) {
    const options = {
      batchSize: 500,
      localConcurrency: 2,
      burstWhenBatchFull: true,
      pollingIntervalSeconds: POLL_S,
      notifyPollingIntervalSeconds: POLL_S,
    };
    await boss.work(QUEUE, options, async (jobs) => jobs.forEach((job) => onStart(job.data)));
  },
  async unfinished() {
    const { rows } = await pool.query("SELECT count(*)::int AS count FROM pgboss.job WHERE name = $1 AND state < 'completed'", [
      QUEUE,
    ]);
    return rows[0].count;
  },
  async close() {
    await boss.stop({ graceful: false });
  },
});
