/** `tickwheel/worker`: takes jobs and runs their handlers. Needs Node. */

export { BatchContext, Context, currentJob, type OnceOptions } from "./context.js";
export type { WorkerStats } from "./health.js";
export type { Logger, LogLevel } from "./log.js";
export type { Label, WorkerOptions } from "./options.js";
export type { ErrorClass, FailureError } from "./outcome.js";
export type { BatchEntry, BatchHandler, BatchOptions, Handler, HandlerOptions, Middleware } from "./registry.js";
export { WorkerRefused } from "./session.js";
export { Worker } from "./worker.js";
