/** The contracts of the conformance handlers. */

import { jobType } from "tickwheel";
import { z } from "zod";

const whole = z.int().min(0);

export const echo = jobType("echo", { payload: z.unknown(), result: z.unknown() });
export const sleep = jobType("sleep", { payload: z.object({ for_ms: whole }) });
export const block = jobType("block", { payload: z.object({ for_ms: whole, how: z.string() }) });
export const fail = jobType("fail", { payload: z.object({ times: whole, how: z.string().default("error") }) });
export const reject = jobType("reject", {
  payload: z.object({ how: z.string(), code: z.string().default("rejected") }),
});
export const retryAfter = jobType("retry_after", { payload: z.object({ delay_ms: whole, times: whole }) });
export const snooze = jobType("snooze", { payload: z.object({ delay_ms: whole, times: whole }) });
export const progress = jobType("progress", { payload: z.object({ steps: whole, every_ms: whole }) });
export const log = jobType("log", { payload: z.object({ lines: whole, bytes: whole, every_ms: whole }) });
export const once = jobType("once", {
  payload: z.object({
    key: z.string(),
    calls: whole.default(1),
    scope: z.enum(["job", "tenant"]).default("job"),
    in_doubt: z.enum(["again", "fail"]).default("again"),
    hold_ms: whole.default(0),
    die: z.boolean().default(false),
    fail_times: whole.default(0),
  }),
});
export const exit = jobType("exit", { payload: z.object({ code: whole }) });
export const stubborn = jobType("stubborn", { payload: z.object({ for_ms: whole }) });
export const batchEcho = jobType("batch_echo", {
  payload: z.object({ n: whole, how: z.string().default("ok"), times: whole.default(1) }),
});
