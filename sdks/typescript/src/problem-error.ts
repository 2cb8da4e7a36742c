/** Finds the class of a problem document. */

import type { components } from "./generated/api.js";
import * as problems from "./problems.js";

const CLASSES: Readonly<Record<string, typeof problems.Problem>> = {
  invalid_json: problems.InvalidJson,
  json_too_deep: problems.JsonTooDeep,
  duplicate_field: problems.DuplicateField,
  unknown_field: problems.UnknownField,
  missing_field: problems.MissingField,
  wrong_type: problems.WrongType,
  invalid_id: problems.InvalidId,
  invalid_cursor: problems.InvalidCursor,
  unknown_parameter: problems.UnknownParameter,
  invalid_parameter: problems.InvalidParameter,
  idempotency_key_mismatch: problems.IdempotencyKeyMismatch,
  host_not_allowed: problems.HostNotAllowed,
  cross_site: problems.CrossSite,
  not_found: problems.NotFound,
  unknown_worker: problems.UnknownWorker,
  method_not_allowed: problems.MethodNotAllowed,
  wait_timeout: problems.WaitTimeoutProblem,
  request_timeout: problems.RequestTimeout,
  idempotency_conflict: problems.IdempotencyConflict,
  illegal_state: problems.IllegalState,
  name_taken: problems.NameTaken,
  backfill_running: problems.BackfillRunning,
  too_many_paused: problems.TooManyPaused,
  stale_token: problems.StaleToken,
  body_too_large: problems.BodyTooLarge,
  payload_too_large: problems.PayloadTooLarge,
  unsupported_media_type: problems.UnsupportedMediaType,
  validation_failed: problems.ValidationFailed,
  unknown_parent: problems.UnknownParent,
  cycle: problems.Cycle,
  unknown_task: problems.UnknownTask,
  duplicate_task: problems.DuplicateTask,
  protocol_unsupported: problems.ProtocolUnsupported,
  lease_out_of_range: problems.LeaseOutOfRange,
  internal: problems.Internal,
  store_unavailable: problems.StoreUnavailable,
  outcome_unknown: problems.OutcomeUnknown,
  overloaded: problems.Overloaded,
  shutting_down: problems.ShuttingDown,
  not_ready: problems.NotReady,
};

/** The codes that have a class of their own. */
export const PROBLEM_CODES: readonly string[] = Object.keys(CLASSES);

/** The error for a problem document; a plain `Problem` when the code is new. */
export function problemError(document: unknown, status: number, retryAfterMs?: number): problems.Problem {
  const problem = (typeof document === "object" && document !== null ? document : {}) as Partial<
    components["schemas"]["Problem"]
  >;
  const code = typeof problem.code === "string" ? problem.code : `http_${status}`;
  const detail = typeof problem.detail === "string" ? problem.detail : `the server answered ${status}`;
  const errors = Array.isArray(problem.errors) ? problem.errors : [];
  const Class = Object.hasOwn(CLASSES, code) ? (CLASSES[code] as typeof problems.Problem) : problems.Problem;
  return new Class({ code, detail, status: problem.status ?? status, errors }, retryAfterMs);
}
