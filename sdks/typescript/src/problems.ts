/**
 * What the server refuses: one class per problem code. docs/reference/errors.md says what each code means and whether
 * the call may be tried again.
 */

import { TickwheelError } from "./errors.js";
import type { components } from "./generated/api.js";

type Wire = components["schemas"];

/** One bad field of a request. */
export type FieldError = Wire["FieldError"];

/** The server refused a call. */
export class Problem extends TickwheelError {
  override readonly name: string;
  /** The stable code. */
  readonly code: string;
  /** What happened in this case. */
  readonly detail: string;
  /** The HTTP status. */
  readonly status: number;
  /** Every bad field. */
  readonly errors: readonly FieldError[];
  /** After how many milliseconds the server asks to try again, if it does. */
  readonly retryAfterMs: number | undefined;

  constructor(problem: { code: string; detail: string; status: number; errors?: FieldError[] }, retryAfterMs?: number) {
    const fields = (problem.errors ?? []).map((field) => `${field.pointer}: ${field.detail}`);
    super([problem.detail, ...fields].join("; "));
    this.name = problem.code.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
    this.code = problem.code;
    this.detail = problem.detail;
    this.status = problem.status;
    this.errors = problem.errors ?? [];
    this.retryAfterMs = retryAfterMs;
  }
}

/** `invalid_json` */
export class InvalidJson extends Problem {}
/** `json_too_deep` */
export class JsonTooDeep extends Problem {}
/** `duplicate_field` */
export class DuplicateField extends Problem {}
/** `unknown_field` */
export class UnknownField extends Problem {}
/** `missing_field` */
export class MissingField extends Problem {}
/** `wrong_type` */
export class WrongType extends Problem {}
/** `invalid_id` */
export class InvalidId extends Problem {}
/** `invalid_cursor` */
export class InvalidCursor extends Problem {}
/** `unknown_parameter` */
export class UnknownParameter extends Problem {}
/** `invalid_parameter` */
export class InvalidParameter extends Problem {}
/** `idempotency_key_mismatch` */
export class IdempotencyKeyMismatch extends Problem {}
/** `host_not_allowed` */
export class HostNotAllowed extends Problem {}
/** `cross_site` */
export class CrossSite extends Problem {}
/** `not_found` */
export class NotFound extends Problem {}
/** `unknown_worker` */
export class UnknownWorker extends Problem {}
/** `method_not_allowed` */
export class MethodNotAllowed extends Problem {}
/** `wait_timeout` */
export class WaitTimeoutProblem extends Problem {}
/** `request_timeout` */
export class RequestTimeout extends Problem {}
/** `idempotency_conflict` */
export class IdempotencyConflict extends Problem {}
/** `illegal_state` */
export class IllegalState extends Problem {}
/** `name_taken` */
export class NameTaken extends Problem {}
/** `backfill_running` */
export class BackfillRunning extends Problem {}
/** `too_many_paused` */
export class TooManyPaused extends Problem {}
/** `stale_token` */
export class StaleToken extends Problem {}
/** `body_too_large` */
export class BodyTooLarge extends Problem {}
/** `payload_too_large` */
export class PayloadTooLarge extends Problem {}
/** `unsupported_media_type` */
export class UnsupportedMediaType extends Problem {}
/** `validation_failed` */
export class ValidationFailed extends Problem {}
/** `unknown_parent` */
export class UnknownParent extends Problem {}
/** `cycle` */
export class Cycle extends Problem {}
/** `unknown_task` */
export class UnknownTask extends Problem {}
/** `duplicate_task` */
export class DuplicateTask extends Problem {}
/** `protocol_unsupported` */
export class ProtocolUnsupported extends Problem {}
/** `lease_out_of_range` */
export class LeaseOutOfRange extends Problem {}
/** `internal` */
export class Internal extends Problem {}
/** `store_unavailable` */
export class StoreUnavailable extends Problem {}
/** `outcome_unknown` */
export class OutcomeUnknown extends Problem {}
/** `overloaded` */
export class Overloaded extends Problem {}
/** `shutting_down` */
export class ShuttingDown extends Problem {}
/** `not_ready` */
export class NotReady extends Problem {}
