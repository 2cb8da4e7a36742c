// What every peer in JavaScript is asked, so that all are asked alike:
//
//     node peer.mjs submit JOBS | drain JOBS | lag RATE SECONDS | idle JOBS | flow JOBS ROUNDS
//
// A peer has five verbs: `open()` makes its tables, `submit(jobs)` stores jobs (each with a `payload` and, if it is
// not for now, a `dueAt` in milliseconds), `work(onStart)` starts its workers, which call `onStart(payload)` for every
// job and do nothing else, `unfinished()` counts what is not durably completed, `close()` ends it. One whose jobs can
// wait for others has `flow(jobs)` too, which stores jobs the last of which waits for all others. A drain is timed
// from the moment the workers are up: on PostgreSQL a lock on the peer's `table` holds them back, elsewhere `work`
// resolves to a function that lets them begin. One JSON object on standard output says what was seen; percentiles are
// for whoever reads it.

import { execFileSync, spawn } from "node:child_process";
import { createInterface } from "node:readline";

const BATCH_LEN = 500;
const SUBMITS_IN_FLIGHT = 4; // as many as ours gets
const HEAD_START_MS = 2_000;
const PAUSE_MS = 20;
const POLL_MS = 2;
const FIRST_NUMBER = 10_000_000; // as many digits for every job

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const now = () => performance.timeOrigin + performance.now();

/** A hundred bytes of JSON, and in them which job it is. */
function payload(number) {
  return { to: "somebody@example.org", template: "welcome", language: "en", number: 1234567890, n: FIRST_NUMBER + number };
}

async function submitAll(peer, count, { dueAt, inFlight = 1 } = {}) {
  let next = 0;
  const submitRest = async () => {
    while (next < count) {
      const first = next;
      const length = Math.min(BATCH_LEN, count - first);
      next += length;
      const jobs = Array.from({ length }, (_, place) => ({ payload: payload(first + place), dueAt: dueAt?.(first + place) }));
      await peer.submit(jobs);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, submitRest));
}

/** Starts the workers and lets them begin. */
async function start(peer, onStart) {
  const begin = await peer.work(onStart);
  begin?.();
}

/** Starts the workers, lets them begin when all are up, and answers when that was. */
async function startHeld(peer, onStart) {
  const lock = peer.table && (await hold(peer.table));
  const begin = await peer.work(onStart);
  await lock?.asked();
  const begun = now();
  lock?.release();
  begin?.();
  return begun;
}

/** A lock on a table that the workers run into: see `hold`. */
async function hold(table) {
  const child = spawn(process.env.BENCH_HOLD, [table], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const said = async (word) => {
    const { value } = await lines.next();
    if (value !== word) throw new Error(`the lock said ${value} and not ${word}`);
  };
  await said("held");
  return { asked: () => said("asked"), release: () => child.stdin.end("\n") };
}

async function until(condition) {
  while (!(await condition())) await sleep(POLL_MS);
}

/**
 * What autovacuum has long done to a table in steady use and not yet to one that was filled a second ago. Without it, the planner
 * takes a full table for an empty one, and a peer that leaves the choice of its plans to the planner shows a third of its speed.
 */
function vacuum() {
  if (SERVER.startsWith("postgres")) execFileSync("psql", ["--quiet", "--no-psqlrc", SERVER, "--command", "VACUUM ANALYZE"]);
}

async function submit(peer, jobs) {
  const begun = now();
  await submitAll(peer, jobs, { inFlight: SUBMITS_IN_FLIGHT });
  return { jobs, submit_per_s: (jobs * 1_000) / (now() - begun) };
}

async function drain(peer, jobs) {
  await submitAll(peer, jobs);
  vacuum();
  let started = 0;
  const begun = await startHeld(peer, () => started++);
  await until(() => started >= jobs);
  await until(async () => (await peer.unfinished()) === 0);
  return { jobs, drain_per_s: (jobs * 1_000) / (now() - begun) };
}

async function lag(peer, rate, seconds) {
  const count = rate * seconds;
  const samples_ms = [];
  let first = 0;
  const dueAt = (number) => Math.trunc(first + (number * 1_000) / rate);
  await start(peer, (job) => samples_ms.push(now() - dueAt(job.n - FIRST_NUMBER)));
  first = Math.trunc(now()) + HEAD_START_MS;
  await submitAll(peer, count, { dueAt });
  await until(() => samples_ms.length >= count);
  return { samples_ms };
}

async function idle(peer, jobs) {
  const samples_ms = [];
  let startedAt = 0;
  await start(peer, () => (startedAt = now()));
  for (let number = 0; number < jobs; number++) {
    await sleep(PAUSE_MS);
    startedAt = 0;
    const submittedAt = now();
    await peer.submit([{ payload: payload(number) }]);
    await until(() => startedAt > 0);
    samples_ms.push(startedAt - submittedAt);
  }
  return { samples_ms };
}

/** Graphs one after the other, each from the call that stores it until its last job is completed. The first one only warms up. */
async function flow(peer, jobs, rounds) {
  let started = 0;
  let took_ms = 0;
  await start(peer, () => started++);
  for (let round = 0; round <= rounds; round++) {
    const waiting = Array.from({ length: jobs }, (_, number) => ({ payload: payload(number) }));
    started = 0;
    const begun = now();
    await peer.flow(waiting);
    await until(() => started >= jobs);
    await until(async () => (await peer.unfinished()) === 0);
    if (round > 0) took_ms += now() - begun;
  }
  return { jobs, rounds, flow_per_s: (jobs * rounds * 1_000) / took_ms };
}

const MEASURES = { submit, drain, lag, idle, flow };

/** Measures what the command line asks for, prints it, and ends the process: some peers leave timers behind. */
export async function main(peer) {
  const [measure, ...numbers] = process.argv.slice(2);
  if (!Object.hasOwn(MEASURES, measure)) throw new Error("usage: peer.mjs submit JOBS | drain JOBS | lag RATE SECONDS | idle JOBS | flow JOBS ROUNDS");
  await peer.open();
  const seen = await MEASURES[measure](peer, ...numbers.map(Number));
  await peer.close();
  process.stdout.write(JSON.stringify(seen) + "\n", () => process.exit(0));
}

/** The server this run may use, empty. */
export const SERVER = process.env.BENCH_SERVER;
