/** `tickwheel`: contracts and the client. Needs nothing but web `fetch`. */

export { Client, type ClientOptions, type Job, JobHandle, type SubmitResult } from "./client.js";
export type { Duration } from "./duration.js";
export type { ConnectionOptions } from "./environment.js";
export * from "./errors.js";
export {
  type JobDefaults,
  JobType,
  jobType,
  type NewJob,
  type Retry,
  type SchemaOptions,
  type SubmitOptions,
  type Unique,
} from "./job-type.js";
export * from "./problems.js";
export { type Schedule, type ScheduleOptions, Schedules } from "./schedules.js";
export type { SchemaInput, SchemaIssue, SchemaOutput, SchemaResult, StandardSchema } from "./schema.js";
export type { OpenTelemetry } from "./telemetry.js";
export { type Ref, ref, type TaskOptions, type WithRefs, Workflow, type WorkflowOptions } from "./workflow.js";
export { RunFailed, RunHandle, type WorkflowRun, Workflows, type WorkflowVersion } from "./workflows.js";
