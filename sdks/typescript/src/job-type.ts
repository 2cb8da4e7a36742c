/**
 * The contract of a kind of job: its name, the types of payload and result, and how it is submitted unless somebody
 * says otherwise. Both sides import it; a submitter never imports a handler.
 */

import { type Duration, wireDuration } from "./duration.js";
import { InvalidData } from "./errors.js";
import type { components } from "./generated/api.js";
import { type Camel, snake } from "./json.js";
import { type SchemaInput, type SchemaOutput, type StandardSchema, validate } from "./schema.js";

type Wire = components["schemas"];

/** How often and when a failed job is tried again, in full. */
export type Retry = Camel<Wire["Retry"]>;

/** Answers an earlier job instead of submitting the same one again. */
export interface Unique {
  /** What makes two jobs the same. Default: type and payload. */
  by?: readonly ("type" | "payload" | "queue")[];
  /** For how long. */
  within?: Duration;
  /** Which of the two stays. Default: the existing one. */
  onDuplicate?: "return_existing" | "replace";
}

/** What a job type can say for all its jobs. */
export interface JobDefaults {
  /** The queue. Default `default`. */
  queue?: string;
  /** How urgent it is. Default `normal`. */
  priority?: "critical" | "high" | "normal" | "low";
  /** How many retries follow the first attempt. Short for `retry: { maxRetries }`. */
  maxRetries?: number;
  /** How often and when it is tried again. */
  retry?: Retry;
  /** How long an attempt may take. Default 5 minutes. */
  timeout?: Duration;
  /** Whether it executes at least once (default) or at most once. */
  delivery?: "at_least_once" | "at_most_once";
  /** Labels for finding it. */
  tags?: readonly string[];
  /** Any facts about it. */
  metadata?: Readonly<Record<string, unknown>>;
  /** What a worker must have among its labels. */
  requires?: Readonly<Record<string, string>>;
  /** Answers an earlier job instead of submitting the same one again. */
  unique?: Unique;
  /** Jobs with the same key share a limit. */
  concurrencyKey?: string;
  /** How many of them may run at a time. */
  concurrencyLimit?: number;
  /** What happens to a job over that limit. */
  onLimit?: "wait" | "drop" | "replace_waiting" | "replace_running";
  /** The URL that receives the outcome. */
  callbackUrl?: string;
  /** Who submits it. */
  createdBy?: string;
}

/** What a single submission can say beside. */
export interface SubmitOptions extends JobDefaults {
  /** How long to wait before the job starts. */
  delay?: Duration;
  /** When it starts, instead of `delay`. */
  executeAt?: Date | string;
  /** Ids of the jobs that must complete first. */
  dependsOn?: readonly string[];
  /** Makes it safe to submit again. Without one, the library makes one for each call. */
  idempotencyKey?: string;
}

/** A job that is ready to be submitted: of `submitMany`, of a schedule. */
export interface NewJob<ResultOut = unknown> {
  /** What it is. */
  readonly type: JobType<never, unknown, never, ResultOut>;
  /** Its payload. */
  readonly payload: unknown;
  /** What is special about it. */
  readonly options: SubmitOptions;
}

/** The payload of a job may be at most this long as JSON. */
export const PAYLOAD_BYTES_MAX = 256 * 1024;

/**
 * A kind of job. `PayloadIn` is what a submitter writes and `PayloadOut` what the handler gets; they differ when the
 * schema transforms. The same goes for the result.
 */
export class JobType<PayloadIn, PayloadOut = PayloadIn, ResultIn = unknown, ResultOut = ResultIn> {
  /** The name that the server knows. */
  readonly name: string;
  /** How its jobs are submitted unless somebody says otherwise. */
  readonly defaults: JobDefaults;
  /** The schema of the payload, if there is one. */
  readonly payload: StandardSchema<unknown, PayloadOut> | undefined;
  /** The schema of the result, if there is one. */
  readonly result: StandardSchema<unknown, ResultOut> | undefined;
  declare private readonly typesOnly: (payload: PayloadIn, result: ResultIn) => void;

  constructor(
    name: string,
    defaults: JobDefaults,
    schemas: { payload?: StandardSchema<unknown, PayloadOut>; result?: StandardSchema<unknown, ResultOut> },
  ) {
    this.name = name;
    this.defaults = defaults;
    this.payload = schemas.payload;
    this.result = schemas.result;
  }

  /** A job of this type for `submitMany`, a schedule or a workflow. */
  new(payload: PayloadIn, options: SubmitOptions = {}): NewJob<ResultOut> {
    return { type: this, payload, options };
  }
}

/** What `jobType` takes beside the name when there are schemas. */
export interface SchemaOptions<P extends StandardSchema, R extends StandardSchema | undefined> extends JobDefaults {
  /** The schema of the payload. */
  payload: P;
  /** The schema of the result. */
  result?: R;
}

type Or<S, SchemaType> = S extends StandardSchema ? SchemaType : unknown;

/** A kind of job whose payload, and perhaps result, have a schema of any Standard Schema library. */
export function jobType<P extends StandardSchema, R extends StandardSchema | undefined = undefined>(
  name: string,
  options: SchemaOptions<P, R>,
): JobType<SchemaInput<P>, SchemaOutput<P>, Or<R, SchemaInput<R>>, Or<R, SchemaOutput<R>>>;
/** A kind of job whose types are known to the compiler alone. */
export function jobType<Payload = unknown, Result = unknown>(
  name: string,
  options?: JobDefaults,
): JobType<Payload, Payload, Result, Result>;
export function jobType(
  name: string,
  options: JobDefaults & { payload?: StandardSchema; result?: StandardSchema } = {},
): JobType<unknown> {
  const { payload, result, ...defaults } = options;
  return new JobType(name, defaults, { ...(payload && { payload }), ...(result && { result }) });
}

/** The job as the server reads it. Throws `InvalidData` when the payload is not of its type, not JSON or too large. */
export async function wireJob(job: NewJob): Promise<Record<string, unknown>> {
  const checked = await validate(job.type.payload, job.payload);
  if ("problem" in checked) throw new InvalidData("invalid_payload", `payload of ${job.type.name}: ${checked.problem}`);
  const text = jsonText(job.payload, "invalid_payload", `payload of ${job.type.name}`);
  const bytes = new TextEncoder().encode(text).length;
  if (bytes > PAYLOAD_BYTES_MAX) {
    const limit = `${bytes} bytes, of at most ${PAYLOAD_BYTES_MAX}`;
    throw new InvalidData("payload_too_large", `payload of ${job.type.name} has ${limit}`);
  }
  return { ...wireOptions(job), payload: JSON.parse(text) };
}

/** Everything but the payload. */
export function wireOptions(job: Pick<NewJob, "type" | "options">): Record<string, unknown> {
  const { maxRetries, retry, delay, timeout, executeAt, unique, ...rest } = { ...job.type.defaults, ...job.options };
  const policy = { ...(maxRetries !== undefined && { maxRetries }), ...retry };
  return snake({
    type: job.type.name,
    ...rest,
    ...(Object.keys(policy).length > 0 && { retry: policy }),
    ...(delay !== undefined && { delay: wireDuration(delay) }),
    ...(timeout !== undefined && { timeout: wireDuration(timeout) }),
    ...(executeAt !== undefined && { executeAt: executeAt instanceof Date ? executeAt.toISOString() : executeAt }),
    ...(unique && {
      unique: { ...unique, ...(unique.within !== undefined && { within: wireDuration(unique.within) }) },
    }),
  }) as Record<string, unknown>;
}

/** The value as JSON; `undefined` is `null`. Throws `InvalidData` with this code for what JSON cannot say. */
export function jsonText(value: unknown, code: string, what: string): string {
  if (value === undefined) return "null";
  try {
    const text = JSON.stringify(value) as string | undefined;
    if (text !== undefined) return text;
  } catch (error) {
    throw new InvalidData(code, `${what} cannot be written as JSON: ${(error as Error).message}`);
  }
  throw new InvalidData(code, `${what} cannot be written as JSON: it is a ${typeof value}`);
}
