/** `PROGRAM submit ACTION`: submits something and prints one line of JSON. */

import { text } from "node:stream/consumers";
import { context, propagation, ROOT_CONTEXT } from "@opentelemetry/api";
import { Client, jobType, ref, type TickwheelError, Workflow } from "tickwheel";
import * as jobs from "./jobs.js";
import { installTracing } from "./tracing.js";

interface Parameters {
  type: string;
  payload: unknown;
  queue: string;
  count: number;
  bad: number[];
  name: string;
}

const client = new Client();

const actions: Record<string, (parameters: Parameters) => Promise<unknown>> = {
  async one({ type, payload, queue }) {
    return { id: (await client.submit(jobType<unknown>(type), payload, { queue })).id };
  },

  async many({ count, bad, queue }) {
    const wrong = new Set(bad);
    const all = Array.from({ length: count }, (_, n) =>
      jobs.echo.new({ n }, { queue: wrong.has(n) ? "bad\u0001queue" : queue }),
    );
    const results = await client.submitMany(all);
    const ids = results.flatMap(({ handle }) => (handle ? [handle.id] : []));
    const errors = results.flatMap(({ error }, index) =>
      error ? [{ index, code: (error as { code?: string }).code }] : [],
    );
    return { submitted: ids.length, distinct: new Set(ids).size, errors };
  },

  async unique({ queue }) {
    const submit = () => client.submit(jobs.echo, { same: true }, { queue, delay: "1h", unique: { within: "5m" } });
    return { ids: [(await submit()).id, (await submit()).id] };
  },

  async wait({ queue }) {
    const result = await (await client.submit(jobs.echo, { hello: "world" }, { queue })).wait("30s");
    const rejected = await client.submit(jobs.reject, { how: "not_retryable", code: "nope" }, { queue });
    const failed = await errorOf(rejected.wait("30s"));
    const later = await client.submit(jobs.echo, null, { queue, delay: "1h" });
    const timeout = await errorOf(later.wait("200ms"));
    return { result, failed: failed.name, code: (failed as { code?: string }).code, timeout: timeout.name };
  },

  async schedule({ name, queue }) {
    const put = () =>
      client.schedules.put(name, {
        cron: "0 7 * * mon-fri",
        timezone: "Europe/Berlin",
        job: jobs.echo.new(null, { queue }),
      });
    return { ids: [(await put()).id, (await put()).id] };
  },

  async workflow({ name, queue }) {
    const workflow = new Workflow(name)
      .task("first", jobs.echo, { payload: { rows: ref("input.rows") }, options: { queue } })
      .task("second", jobs.echo, {
        payload: { got: ref("first.result.rows") },
        dependsOn: ["first"],
        options: { queue },
      });
    await client.workflows.put(workflow);
    return { run_id: (await client.workflows.start(name, { rows: 42 })).id };
  },
};

async function errorOf(promise: Promise<unknown>): Promise<TickwheelError> {
  try {
    await promise;
  } catch (error) {
    return error as TickwheelError;
  }
  throw new Error("it did not fail");
}

export async function submit(name: string): Promise<void> {
  try {
    const action = actions[name];
    if (!action) throw new Error(`there is no action "${name}"`);
    const parameters = JSON.parse(await text(process.stdin)) as Parameters;
    const traceparent = process.env.CONFORMANCE_TRACEPARENT;
    if (traceparent) {
      process.env.CONFORMANCE_OTEL = "1";
      await installTracing();
    }
    const current = traceparent ? propagation.extract(ROOT_CONTEXT, { traceparent }) : ROOT_CONTEXT;
    const answer = await context.with(current, () => action(parameters));
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  } catch (error) {
    process.stderr.write(`${(error as Error).stack}\n`);
    process.exitCode = 1;
  }
}
