"""What the server answers with, as frozen dataclasses.

Made by scripts/models.py from docs/reference/openapi.json; do not edit. A field that the server leaves out is None.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

__all__ = [
    "Attempt", "DayLogic", "Delivery", "DstFold", "DstGap", "Fire", "FireOutcome", "Job", "JobError",
    "LogLevel", "LogLine", "NextFire", "OnExcluded", "Overlap", "Priority", "RunItems", "RunStatus",
    "RunTask", "Schedule", "Status", "TriggerRule", "Why", "Workflow", "WorkflowRun",
]


Delivery = Literal["at_least_once", "at_most_once"]
"""How often a job may execute."""


Priority = Literal["critical", "high", "normal", "low"]
"""How urgent a job is."""


Status = Literal[
    "pending", "scheduled", "dispatched", "running", "completed", "failed", "cancelled", "paused", "blocked",
    "skipped",
]
"""The state of a job."""


@dataclass(frozen=True)
class JobError:
    """Why an attempt failed."""

    # A stable code in snake_case, such as `http_status`, `connect_failed` or `timed_out`.
    code: str
    # What happened, as a sentence.
    message: str
    # Whether the message was cut.
    truncated: bool | None = None


@dataclass(frozen=True)
class Job:
    """A job: its request and its progress."""

    # The number of its latest attempt.
    attempt: int
    # Whether somebody asked the running attempt to stop.
    cancel_requested: bool
    # When it was submitted.
    created_at: datetime
    # Whether the job executes at least once or at most once.
    delivery: Delivery
    # Ids of the jobs that must complete first.
    depends_on: list[str]
    # When the request asked it to start.
    execute_at: datetime
    # UUIDv7.
    id: str
    # How many retries it may use.
    max_retries: int
    # Any facts about the job, as the submitter wrote them.
    metadata: dict[str, Any]
    # How urgent it is.
    priority: Priority
    # The queue it waits in.
    queue: str
    # How many of its retries are used.
    retries: int
    # How often and when it is tried again after a failure.
    retry: dict[str, Any]
    # Its state.
    status: Status
    # Labels for finding the job.
    tags: list[str]
    # What executes the job.
    target: dict[str, Any]
    # The tenant that owns it.
    tenant: str
    # How long an attempt may take.
    timeout: str
    # The kind of work: the name of the handler.
    type: str
    # The URL that receives the outcome.
    callback_url: str | None = None
    # When it ended.
    completed_at: datetime | None = None
    # The key of a concurrency limit.
    concurrency_key: str | None = None
    # Who submitted it, if the request said so.
    created_by: str | None = None
    # When the running attempt must have ended.
    deadline: datetime | None = None
    # Why the latest failed attempt failed.
    error: JobError | None = None
    # When its next attempt may start: `execute_at`, or the time of the retry.
    next_run_at: datetime | None = None
    # The data for the target.
    payload: Any = None
    # How much of the work is done, in percent, as the running attempt says.
    progress: float | None = None
    # When the running attempt said so.
    progress_at: datetime | None = None
    # What the running attempt is doing, in its own words.
    progress_message: str | None = None
    # What a worker must offer in its labels.
    requires: dict[str, Any] | None = None
    # What the target answered.
    result: Any = None
    # The schedule that made it.
    schedule_id: str | None = None
    # When its latest attempt started.
    started_at: datetime | None = None
    # Its task in that run: a name, or a path inside a fan-out, such as `load[3].check`.
    task: str | None = None
    # The workflow run it belongs to.
    workflow_run_id: str | None = None


@dataclass(frozen=True)
class Attempt:
    """One attempt to execute a job."""

    # The number of the attempt, beginning with 1.
    number: int
    # When it started.
    started_at: datetime
    # When it ended.
    ended_at: datetime | None = None
    # Why it failed.
    error: JobError | None = None
    # `completed`, `failed`, `timed_out`, `lost`, `cancelled`, `released` or `snoozed`.
    outcome: str | None = None


LogLevel = Literal["debug", "info", "warn", "error"]
"""How much a line of a log matters."""


@dataclass(frozen=True)
class LogLine:
    """One line of an attempt's log."""

    # The attempt that wrote it.
    attempt: int
    # How much it matters.
    level: LogLevel
    # The text.
    message: str
    # Its number in the log of the attempt, beginning with 0.
    number: int
    # When the line was written.
    time: datetime
    # Only while the log is followed: how to go on after this line.
    cursor: str | None = None
    # Facts beside the text.
    fields: dict[str, Any] | None = None
    # Whether something of it was cut off, because it was longer than a line may be.
    truncated: bool | None = None


@dataclass(frozen=True)
class Why:
    """Why a job is not running, or the fact that it is, or how it ended."""

    # A stable code for the reason.
    code: str
    # The job.
    job_id: str
    # The reason, as a sentence.
    sentence: str
    # Its state.
    status: Status
    # When it will start, if the server can tell.
    expected_start: datetime | None = None
    # Since when this has been so.
    since: datetime | None = None
    # What it waits for, if it waits.
    waits_for: str | None = None


DayLogic = Literal["or", "and"]
"""How day-of-month and day-of-week combine when both are restricted."""


DstFold = Literal["once", "last", "both"]
"""What happens to a fixed local time that occurs twice."""


DstGap = Literal["run_after", "skip", "shift"]
"""What happens to a fixed local time that the clock skips."""


FireOutcome = Literal["fired", "skipped", "missed", "coalesced", "triggered", "backfilled"]
"""The outcome of a firing."""


@dataclass(frozen=True)
class Fire:
    """A record of the ledger: one firing, or a span of firings with the same outcome."""

    # How many firings this record covers.
    count: int
    # For a span: the last time.
    last_nominal_time: datetime
    # When it should fire.
    nominal_time: datetime
    # The outcome.
    outcome: FireOutcome
    # Why: `on_time`, `caught_up`, `paused`, `excluded_day`, `overlap`, `replaced`, `missed_policy`, `outside_window`,
    # `over_cap`, `by_request` or, while it waits for an earlier job to end, `queued`.
    reason: str
    # When the record was written.
    recorded_at: datetime
    # The job that it made, or that stands for it.
    job_id: str | None = None


OnExcluded = Literal["skip", "next_day"]
"""What happens to a firing on an excluded day."""


Overlap = Literal["allow", "skip", "queue", "replace"]
"""What happens to a firing while a job of an earlier firing has not ended."""


@dataclass(frozen=True)
class Schedule:
    """A schedule: its settings and its progress."""

    # When it was created.
    created_at: datetime
    # How the two day fields combine.
    day_logic: DayLogic
    # When it fires, in words.
    description: str
    # What happens to times that occur twice.
    dst_fold: DstFold
    # What happens to times that the clock skips.
    dst_gap: DstGap
    # Days on which it does not fire.
    exclude: list[str]
    # UUIDv7.
    id: str
    # Its jobs start up to this long after their time.
    jitter: str
    # The job that each firing makes.
    job: dict[str, Any]
    # Its latest firings, up to ten, latest first.
    last_fires: list[Fire]
    # How the server makes up for missed firings.
    missed: dict[str, Any]
    # The name, which is unique.
    name: str
    # Whether it will never fire again: the date does not exist, the end is past, or every weekday is excluded.
    never: bool
    # What happens to firings on those days.
    on_excluded: OnExcluded
    # What happens to a firing while an earlier job has not ended.
    overlap: Overlap
    # Whether it is paused.
    paused: bool
    # The tenant that owns it.
    tenant: str
    # The time zone, as the time-zone database spells it.
    timezone: str
    # When it was last changed, paused or resumed.
    updated_at: datetime
    # The time from which `every` counts.
    anchor: datetime | None = None
    # The backfill that is running, or else the last one.
    backfill: dict[str, Any] | None = None
    # The expression.
    cron: str | None = None
    # The schedule does not fire after this time.
    end_at: datetime | None = None
    # The interval.
    every: str | None = None
    # When it fires next.
    next_fire_at: datetime | None = None
    # Why it is paused, in the words of whoever paused it.
    pause_note: str | None = None
    # With `overlap: queue`, the time of the oldest firing that waits for an earlier job to end.
    queued_since: datetime | None = None
    # The schedule does not fire before this time.
    start_at: datetime | None = None


@dataclass(frozen=True)
class NextFire:
    """A firing in the future."""

    # The same time with the offset of the schedule's zone.
    local_time: str
    # The time in UTC.
    nominal_time: datetime


@dataclass(frozen=True)
class Workflow:
    """A version of a workflow."""

    # When this version was stored.
    created_at: datetime
    # The definition.
    definition: dict[str, Any]
    # The name, which is unique.
    name: str
    # How many tasks it has, including those inside fan-outs.
    tasks_total: int
    # The tenant that owns it.
    tenant: str
    # The version, beginning with 1.
    version: int
    # What the workflow is for.
    description: str | None = None


RunStatus = Literal["running", "completed", "failed", "cancelled", "paused"]
"""The state of a run."""


TriggerRule = Literal["all_succeeded", "all_done", "any_failed"]
"""When a task may start, depending on how the tasks it depends on ended."""


@dataclass(frozen=True)
class RunItems:
    """The items of a fan-out by state."""

    # How many were cancelled.
    cancelled: int
    # How many completed.
    completed: int
    # How many failed, or cannot go on because a task inside them failed.
    failed: int
    # How many have been released to run so far.
    released: int
    # How many are running.
    running: int
    # How many were skipped.
    skipped: int
    # How many items there are.
    total: int
    # How many have not started.
    waiting: int


@dataclass(frozen=True)
class RunTask:
    """A task of a run, or one item of a fan-out."""

    # The number of its latest attempt.
    attempt: int
    # The names of the tasks it depends on.
    depends_on: list[str]
    # Its name, or its path inside a fan-out, such as `load[3]` or `load[3].check`.
    name: str
    # Its state.
    status: Status
    # When it may start, depending on how those tasks ended.
    trigger_rule: TriggerRule
    # The kind of work: the name of the handler.
    type: str
    # When it ended.
    completed_at: datetime | None = None
    # When its next attempt may start, or when the last one could.
    due_at: datetime | None = None
    # Why it failed or was skipped.
    error: JobError | None = None
    # The index of its element, beginning with 0.
    item: int | None = None
    # The counts of its items.
    items: RunItems | None = None
    # The job that executes it.
    job_id: str | None = None
    # When its latest attempt started.
    started_at: datetime | None = None
    # What it waits for, as a sentence.
    why_waiting: str | None = None


@dataclass(frozen=True)
class WorkflowRun:
    """A run of a workflow."""

    # Whether somebody asked the run to stop.
    cancel_requested: bool
    # When it was started.
    created_at: datetime
    # UUIDv7.
    id: str
    # The input of the run.
    input: Any
    # How many of its tasks have waited too long.
    stalled: int
    # Its state.
    status: RunStatus
    # How many of its tasks have not ended.
    tasks_open: int
    # How many tasks it has so far, including the items of fan-outs.
    tasks_total: int
    # The tenant that owns it.
    tenant: str
    # The version of its workflow.
    version: int
    # The name of its workflow.
    workflow: str
    # When it ended.
    ended_at: datetime | None = None
    # The job that started the run and waits for it, if there is one.
    job_id: str | None = None
    # When it was paused.
    paused_at: datetime | None = None
    # Its tasks in the order of the definition: `before` first, `after` last.
    tasks: list[RunTask] = field(default_factory=lambda: list[RunTask]())
