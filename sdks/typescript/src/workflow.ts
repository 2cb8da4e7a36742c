/** Definitions of workflows: tasks with job types, and references to the data of other tasks. */

import { type Duration, wireDuration } from "./duration.js";
import type { components } from "./generated/api.js";
import { type JobDefaults, type JobType, wireOptions } from "./job-type.js";
import { type Camel, snake } from "./json.js";

type Wire = components["schemas"];

/** Stands for data that exists only when the run gets there. */
export interface Ref {
  readonly $from: string;
  readonly default?: unknown;
}

/** A payload in which any part may be a reference. */
export type WithRefs<T> = T | Ref | (T extends object ? { [K in keyof T]: WithRefs<T[K]> } : never);

/** The value at a path such as `input.day`, `extract.result.rows` or `item`; `default` if there is none. */
export function ref(path: string, options: { default?: unknown } = {}): Ref {
  return { $from: path, ...options };
}

/** What a task can say beside its job type. */
export interface TaskOptions<Payload> {
  /** The payload; parts of it may be `ref(…)`. */
  payload?: WithRefs<Payload>;
  /** The tasks that it waits for. */
  dependsOn?: readonly string[];
  /** How those tasks must end. Default `all_succeeded`. */
  triggerRule?: Wire["TriggerRule"];
  /** A condition such as `load.result.rows > 0`. If it is false, the task is skipped. */
  when?: string;
  /** Runs the job for each item of the array at this path. */
  forEach?: string;
  /** With `forEach`: how many items run at a time. */
  concurrency?: number;
  /** With `forEach`: more items than this fail the task. */
  maxItems?: number;
  /** What differs from the job type's defaults. */
  options?: JobDefaults;
}

/** What a workflow can say beside its tasks. */
export interface WorkflowOptions {
  /** For people. */
  description?: string;
  /** Whether the first failure stops the rest. Default `fail_fast`. */
  onFailure?: "fail_fast" | "continue";
  /** When a task that waits counts as stalled. */
  stallAfter?: Duration;
  /** When it runs by itself. */
  schedule?: Camel<Wire["WorkflowSchedule"]>;
  /** Who is told about its runs. */
  notify?: Camel<Wire["Notify"]>[];
}

/** A workflow in the making. */
export class Workflow {
  /** Its name. */
  readonly name: string;
  private readonly options: WorkflowOptions;
  private readonly tasks: unknown[] = [];
  private readonly first: unknown[] = [];
  private readonly last: unknown[] = [];

  constructor(name: string, options: WorkflowOptions = {}) {
    this.name = name;
    this.options = options;
  }

  /** Adds a task. */
  task<P>(name: string, type: JobType<P, unknown, never, unknown>, options: TaskOptions<P> = {}): this {
    this.tasks.push(wireTask(name, type, options));
    return this;
  }

  /** Adds a task that runs before all others. */
  before<P>(name: string, type: JobType<P, unknown, never, unknown>, options: TaskOptions<P> = {}): this {
    this.first.push(wireTask(name, type, options));
    return this;
  }

  /** Adds a task that runs when all others have ended, however they ended. */
  after<P>(name: string, type: JobType<P, unknown, never, unknown>, options: TaskOptions<P> = {}): this {
    this.last.push(wireTask(name, type, options));
    return this;
  }

  /** The definition as the server reads it. */
  toJSON(): Record<string, unknown> {
    const { stallAfter, ...options } = this.options;
    return {
      name: this.name,
      ...(snake(options) as object),
      ...(stallAfter !== undefined && { stall_after: wireDuration(stallAfter) }),
      ...(this.first.length > 0 && { before: this.first }),
      tasks: this.tasks,
      ...(this.last.length > 0 && { after: this.last }),
    };
  }
}

function wireTask<P>(name: string, type: JobType<P, unknown, never, unknown>, task: TaskOptions<P>): unknown {
  const { payload, options = {}, ...rest } = task;
  const job = wireOptions({ type, options });
  return { name, ...(snake(rest) as object), job: { ...job, ...(payload !== undefined && { payload }) } };
}
