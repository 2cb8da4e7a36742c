/** `client.workflows`: stores definitions and runs them. */

import { type Duration, milliseconds, wireDuration } from "./duration.js";
import { TickwheelError } from "./errors.js";
import type { components } from "./generated/api.js";
import { type Camel, camel } from "./json.js";
import { Problem } from "./problems.js";
import type { Caller } from "./schedules.js";
import type { Workflow } from "./workflow.js";

type Wire = components["schemas"];

/** A stored version of a workflow. */
export type WorkflowVersion = Camel<Wire["Workflow"]>;
/** A run of a workflow. */
export type WorkflowRun = Camel<Wire["WorkflowRun"]>;

/** The run did not complete. */
export class RunFailed extends TickwheelError {
  override readonly name = "RunFailed";
  /** How it ended. */
  readonly run: WorkflowRun;

  constructor(run: WorkflowRun) {
    const failed = (run.tasks ?? []).find((task) => task.error)?.error?.message;
    super(`run ${run.id} of ${run.workflow} is ${run.status}${failed ? `: ${failed}` : ""}`);
    this.run = run;
  }
}

const WAIT_STEP_MS = 20_000;

/** `client.workflows`. */
export class Workflows {
  private readonly call: Caller;

  constructor(call: Caller) {
    this.call = call;
  }

  /** Stores the definition. If it differs from the latest version, it becomes the next one. */
  async put(workflow: Workflow): Promise<WorkflowVersion> {
    return camel(await this.call<Wire["Workflow"]>("POST", "/api/v1/workflows", { body: workflow.toJSON() }));
  }

  /** The latest version. */
  async get(name: string): Promise<WorkflowVersion> {
    return camel(await this.call<Wire["Workflow"]>("GET", `/api/v1/workflows/${encodeURIComponent(name)}`));
  }

  /** Removes it. Runs that are active go on. */
  async delete(name: string): Promise<void> {
    await this.call("DELETE", `/api/v1/workflows/${encodeURIComponent(name)}`);
  }

  /** Starts a run. */
  async start(name: string, input: unknown = null, options: { idempotencyKey?: string } = {}): Promise<RunHandle> {
    const body = { input, idempotency_key: options.idempotencyKey ?? crypto.randomUUID() };
    const path = `/api/v1/workflows/${encodeURIComponent(name)}/runs`;
    const run = await this.call<Wire["WorkflowRun"]>("POST", path, { body });
    return new RunHandle(this.call, run.id);
  }

  /** A handle for a run that was started before. */
  run(id: string): RunHandle {
    return new RunHandle(this.call, id);
  }
}

/** A run that was started. */
export class RunHandle {
  /** Its id. */
  readonly id: string;
  private readonly call: Caller;

  constructor(call: Caller, id: string) {
    this.call = call;
    this.id = id;
  }

  /** The run as it is now, with its tasks. */
  async get(): Promise<WorkflowRun> {
    return camel(await this.call<Wire["WorkflowRun"]>("GET", this.path()));
  }

  /** The run once it has completed. Throws `RunFailed` if it ended otherwise, `WaitTimeoutProblem` if it goes on. */
  async wait(timeout: Duration = "5m"): Promise<WorkflowRun> {
    const end = performance.now() + milliseconds(timeout);
    for (;;) {
      const leftMs = Math.max(0, end - performance.now());
      const step = Math.min(leftMs, WAIT_STEP_MS);
      try {
        const call = { timeoutMs: step + 10_000 };
        const run = await this.call<Wire["WorkflowRun"]>("GET", `${this.path()}?wait=${wireDuration(step)}`, call);
        if (run.status === "completed") return camel(run);
        throw new RunFailed(camel(run));
      } catch (error) {
        if (!(error instanceof Problem && error.code === "wait_timeout") || leftMs <= step) throw error;
      }
    }
  }

  /** Asks it to stop. */
  async cancel(): Promise<WorkflowRun> {
    return this.change("cancel", (run) => run.status === "cancelled" || run.cancel_requested);
  }

  /** Runs what failed again. */
  async retry(): Promise<WorkflowRun> {
    return this.change("retry", (run) => run.status === "running");
  }

  private async change(verb: string, done: (run: Wire["WorkflowRun"]) => boolean): Promise<WorkflowRun> {
    const recover = async () => {
      const run = await this.call<Wire["WorkflowRun"]>("GET", this.path());
      return done(run) ? run : undefined;
    };
    return camel(await this.call<Wire["WorkflowRun"]>("POST", `${this.path()}/${verb}`, { body: {}, recover }));
  }

  private path(): string {
    return `/api/v1/workflow-runs/${encodeURIComponent(this.id)}`;
  }
}
