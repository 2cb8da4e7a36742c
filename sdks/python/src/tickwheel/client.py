"""The client that blocks. `AsyncClient` in `aclient.py` is the same, awaited."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from . import _calls  # pyright: ignore[reportPrivateUsage]
from ._calls import Call, Page
from ._durations import Duration
from ._http import SyncTransport
from ._settings import Mistakes, connection
from .errors import (
    NotFound,
    Problem,
    TickwheelError,
    Unreachable,
    WaitTimedOut,
    WaitTimeout,
)
from .jobtype import JobOptions, JobType, NewJob
from .models import Attempt, Job, LogLine, NextFire, Schedule, Why, WorkflowRun
from .models import Workflow as StoredWorkflow
from .workflow import Workflow

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")


class Client:
    """Submits jobs and looks after them. Threads may share it, and a forked process gets connections of its own."""

    def __init__(
        self,
        server: str | Sequence[str] | None = None,
        *,
        api_key: str | None = None,
        ca_file: str | None = None,
    ) -> None:
        mistakes = Mistakes()
        target = connection(server, api_key, ca_file, mistakes)
        mistakes.report()
        self._transport = SyncTransport(target)
        self.schedules = Schedules(self)
        self.workflows = Workflows(self)

    def submit(self, job_type: JobType[P, R], payload: P, **options: Unpack[JobOptions]) -> Handle[R]:
        """Submits a job. Once this returns, the job is stored."""
        return self.submit_new(job_type.new(payload, **options))

    def submit_new(self, job: NewJob[Any, R]) -> Handle[R]:
        """Submits a job that was made with `JobType.new`."""
        return Handle(self, job.type, self.send_call(_calls.submit(job)))

    def submit_many(self, jobs: Sequence[NewJob[Any, R]]) -> list[Handle[R] | TickwheelError]:
        """Submits many jobs, in as few requests as the bounds allow. One entry per job: a handle, or why not."""
        results: list[Handle[R] | TickwheelError] = []
        for call in _calls.submit_batches(jobs):
            of_batch = jobs[len(results) :]
            try:
                answers: list[Job | TickwheelError] = [*self.send_call(call)]
            except (Problem, Unreachable) as error:
                if not results:
                    raise
                results.extend([error] * len(of_batch))  # those before are stored, which the caller must learn
                break
            results.extend(
                Handle(self, job.type, answer) if isinstance(answer, Job) else answer
                for job, answer in zip(of_batch, answers, strict=False)
            )
        return results

    def handle(self, job_type: JobType[Any, R], job_id: str) -> Handle[R]:
        """A handle of a job that was submitted before."""
        return Handle(self, job_type, self.get(job_id))

    def get(self, job_id: str) -> Job:
        """The job as it is now."""
        return self.send_call(_calls.get_job(job_id))

    def list(self, **filters: Any) -> Page[Job]:
        """Jobs, newest first: `status`, `type`, `queue`, `tag`, `priority`, `limit`, `cursor` and others."""
        return self.send_call(_calls.list_jobs(filters))

    def cancel(self, job_id: str) -> Job:
        """Cancels a job; one that runs is asked to stop."""
        return self.send_call(_calls.act_on_job(job_id, "cancel"))

    def retry(self, job_id: str) -> Job:
        """Runs a failed or cancelled job again."""
        return self.send_call(_calls.act_on_job(job_id, "retry"))

    def run_now(self, job_id: str) -> Job:
        """Lets a waiting job start now."""
        return self.send_call(_calls.act_on_job(job_id, "run"))

    def pause(self, job_id: str) -> Job:
        """Pauses a job that has not started."""
        return self.send_call(_calls.act_on_job(job_id, "pause"))

    def resume(self, job_id: str) -> Job:
        """Resumes a paused job."""
        return self.send_call(_calls.act_on_job(job_id, "resume"))

    def why(self, job_id: str) -> Why:
        """Why the job is not running."""
        return self.send_call(_calls.why(job_id))

    def attempts(self, job_id: str) -> Sequence[Attempt]:
        """The attempts of a job."""
        return self.send_call(_calls.attempts(job_id))

    def logs(self, job_id: str, attempt: int = 1) -> Sequence[LogLine]:
        """The log of an attempt, up to 1,000 lines, also while it runs."""
        return self.send_call(_calls.logs(job_id, attempt))

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def send_call(self, call: Call[T]) -> T:
        """Sends one of the library's own requests, and repeats it while that is safe and may help."""
        tries = 0
        while True:
            tries += 1
            try:
                return call.read(self._transport.exchange(call.request).body)
            except (Problem, Unreachable) as error:
                pause_s = _calls.pause_before_repeat(call.request, error, tries)
                if pause_s is None:
                    raise
                time.sleep(pause_s)

    def wait_for(self, job_id: str, timeout: Duration | None = None) -> Job:
        """The job, once it has ended in whatever way. Raises `WaitTimeout`."""
        ends_at = time.monotonic() + _calls.duration_or_forever(timeout)
        while True:
            left_s = max(0.0, ends_at - time.monotonic())
            try:
                job = self.send_call(_calls.get_job(job_id, min(left_s, _calls.WAIT_S_MAX)))
            except WaitTimedOut:
                job = None
            if job is not None and job.status in _calls.ENDED:
                return job
            if time.monotonic() >= ends_at:
                raise WaitTimeout(f"job {job_id} did not end within {timeout}")


class Handle(Generic[R]):
    """A submitted job. `job` is what the server last said about it."""

    def __init__(self, client: Client, job_type: JobType[Any, R], job: Job) -> None:
        self._client, self._type = client, job_type
        self.job = job

    @property
    def id(self) -> str:
        """The id of the job."""
        return self.job.id

    def wait(self, timeout: Duration | None = None) -> R:
        """The result, once the job has ended. Raises `JobFailed`, `JobCancelled` or `WaitTimeout`."""
        self.job = self._client.wait_for(self.id, timeout)
        return _calls.result_of(self._type, self.job)

    def refresh(self) -> Job:
        """The job as it is now."""
        self.job = self._client.get(self.id)
        return self.job

    def cancel(self) -> Job:
        """Cancels the job; if it runs, it is asked to stop."""
        self.job = self._client.cancel(self.id)
        return self.job

    def retry(self) -> Job:
        """Runs the job again after it failed or was cancelled."""
        self.job = self._client.retry(self.id)
        return self.job

    def __repr__(self) -> str:
        return f"Handle({self._type.name!r}, {self.id!r}, {self.job.status!r})"


class Schedules:
    """Recurring work: `client.schedules`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def put(
        self,
        name: str,
        *,
        job: NewJob[Any, Any],
        cron: str | None = None,
        every: Duration | None = None,
        timezone: str | None = None,
        missed: Mapping[str, Any] | None = None,
        overlap: str | None = None,
        dst_gap: str | None = None,
        dst_fold: str | None = None,
        day_logic: str | None = None,
        start_at: datetime | str | None = None,
        end_at: datetime | str | None = None,
        anchor: datetime | str | None = None,
        jitter: Duration | None = None,
        exclude: Sequence[str] | None = None,
        on_excluded: str | None = None,
        paused: bool | None = None,
    ) -> Schedule:
        """Creates the schedule of this name, or changes it to be like this."""
        options = {
            "cron": cron,
            "every": every,
            "timezone": timezone,
            "missed": missed,
            "overlap": overlap,
            "dst_gap": dst_gap,
            "dst_fold": dst_fold,
            "day_logic": day_logic,
            "start_at": start_at,
            "end_at": end_at,
            "anchor": anchor,
            "jitter": jitter,
            "exclude": exclude,
            "on_excluded": on_excluded,
            "paused": paused,
        }
        return self._client.send_call(_calls.put_schedule(name, job, options))

    def get(self, name: str) -> Schedule:
        """The schedule as it is now."""
        return self._client.send_call(_calls.get_schedule(name))

    def list(self, **filters: Any) -> Page[Schedule]:
        """Schedules: `limit`, `cursor`."""
        return self._client.send_call(_calls.list_schedules(filters))

    def delete(self, name: str) -> bool:
        """Deletes the schedule. False: there was none."""
        try:
            self._client.send_call(_calls.delete_schedule(name))
        except NotFound:
            return False
        return True

    def pause(self, name: str) -> Schedule:
        """Lets it not fire until it is resumed."""
        return self._client.send_call(_calls.act_on_schedule(name, "pause"))

    def resume(self, name: str) -> Schedule:
        """Lets it fire again."""
        return self._client.send_call(_calls.act_on_schedule(name, "resume"))

    def trigger(self, name: str) -> Job:
        """Makes its job now."""
        return self._client.send_call(_calls.trigger_schedule(name))

    def next(self, name: str, count: int = 10) -> Sequence[NextFire]:
        """Its next firings."""
        return self._client.send_call(_calls.next_fires(name, count))


class Workflows:
    """Graphs of tasks: `client.workflows`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def put(self, workflow: Workflow) -> StoredWorkflow:
        """Stores a workflow: a new version if the name exists and the definition differs."""
        return self._client.send_call(_calls.put_workflow(workflow.to_wire()))

    def get(self, name: str) -> StoredWorkflow:
        """The newest version."""
        return self._client.send_call(_calls.get_workflow(name))

    def delete(self, name: str) -> bool:
        """Deletes the workflow. False: there was none."""
        try:
            self._client.send_call(_calls.delete_workflow(name))
        except NotFound:
            return False
        return True

    def run(self, name: str, input: Any = None, *, idempotency_key: str | None = None) -> WorkflowRun:
        """Starts a run."""
        call = _calls.run_workflow(name, input, idempotency_key)
        return self._client.send_call(call)

    def get_run(self, run_id: str) -> WorkflowRun:
        """The run as it is now, with its tasks."""
        return self._client.send_call(_calls.get_run(run_id))

    def wait(self, run_id: str, timeout: Duration | None = None) -> WorkflowRun:
        """The run, once it has ended in whatever way. Raises `WaitTimeout`."""
        ends_at = time.monotonic() + _calls.duration_or_forever(timeout)
        while True:
            left_s = max(0.0, ends_at - time.monotonic())
            try:
                call = _calls.get_run(run_id, min(left_s, _calls.WAIT_S_MAX))
                run = self._client.send_call(call)
            except WaitTimedOut:
                run = None
            if run is not None and run.status in _calls.ENDED:
                return run
            if time.monotonic() >= ends_at:
                raise WaitTimeout(f"run {run_id} did not end within {timeout}")

    def cancel(self, run_id: str) -> WorkflowRun:
        """Cancels a run."""
        return self._client.send_call(_calls.act_on_run(run_id, "cancel"))

    def retry(self, run_id: str) -> WorkflowRun:
        """Lets a failed run go on from where it failed."""
        return self._client.send_call(_calls.act_on_run(run_id, "retry"))
