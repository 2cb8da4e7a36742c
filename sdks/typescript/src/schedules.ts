/** Schedules: jobs that are made again and again. */

import type { Call } from "./api.js";
import { type Duration, wireDuration } from "./duration.js";
import type { components } from "./generated/api.js";
import { type NewJob, wireJob } from "./job-type.js";
import { type Camel, camel, snake } from "./json.js";

type Wire = components["schemas"];

/** A schedule as the server knows it. */
export type Schedule = Camel<Wire["Schedule"]>;

/** When a schedule fires, and what it makes. Either `cron` or `every` is required. */
export type ScheduleOptions = Omit<Camel<Wire["SubmitSchedule"]>, "name" | "job" | "every" | "jitter"> & {
  /** The job that each firing makes: `type.new(payload)`. */
  job: NewJob;
  /** An interval instead of a cron expression. */
  every?: Duration;
  /** Its jobs start up to this long after their time. */
  jitter?: Duration;
};

/** How the parts of the client call the server: repeated while it is away. */
export type Caller = <T>(
  method: string,
  path: string,
  call?: Call & { recover?: () => Promise<T | undefined> },
) => Promise<T>;

/** `client.schedules`. */
export class Schedules {
  private readonly call: Caller;

  constructor(call: Caller) {
    this.call = call;
  }

  /** Creates the schedule of this name, or replaces it. */
  async put(name: string, options: ScheduleOptions): Promise<Schedule> {
    const { job, every, jitter, ...rest } = options;
    const body = {
      ...(snake(rest) as object),
      ...(every !== undefined && { every: wireDuration(every) }),
      ...(jitter !== undefined && { jitter: wireDuration(jitter) }),
      name,
      job: await wireJob(job),
    };
    return camel(await this.call<Wire["Schedule"]>("PUT", path(name), { body }));
  }

  /** The schedule of this name or id. */
  async get(name: string): Promise<Schedule> {
    return camel(await this.call<Wire["Schedule"]>("GET", path(name)));
  }

  /** Removes it. Jobs that it made stay. */
  async delete(name: string): Promise<void> {
    await this.call("DELETE", path(name));
  }

  /** Lets it not fire until it is resumed. */
  async pause(name: string): Promise<Schedule> {
    return this.setPaused(name, "pause", true);
  }

  /** Lets it fire again. */
  async resume(name: string): Promise<Schedule> {
    return this.setPaused(name, "resume", false);
  }

  private async setPaused(name: string, verb: string, paused: boolean): Promise<Schedule> {
    const recover = async () => {
      const schedule = await this.call<Wire["Schedule"]>("GET", path(name));
      return schedule.paused === paused ? schedule : undefined;
    };
    return camel(await this.call<Wire["Schedule"]>("POST", `${path(name)}/${verb}`, { body: {}, recover }));
  }

  /** Fires it now. Answers the id of the job. */
  async trigger(name: string, options: { payload?: unknown; idempotencyKey?: string } = {}): Promise<string> {
    const body = { ...(snake(options) as object), idempotency_key: options.idempotencyKey ?? crypto.randomUUID() };
    return (await this.call<Wire["Job"]>("POST", `${path(name)}/trigger`, { body })).id;
  }
}

function path(name: string): string {
  return `/api/v1/schedules/${encodeURIComponent(name)}`;
}
