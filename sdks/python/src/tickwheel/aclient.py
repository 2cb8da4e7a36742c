"""The client for `async` code: the same calls as `Client`, awaited."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from . import _calls  # pyright: ignore[reportPrivateUsage]
from ._calls import Call, Page
from ._durations import Duration
from ._http import AsyncTransport
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


class AsyncClient:
    """Submits jobs and looks after them. It belongs to the event loop in which it is first used."""

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
        self._transport = AsyncTransport(target)
        self.schedules = AsyncSchedules(self)
        self.workflows = AsyncWorkflows(self)

    async def submit(self, job_type: JobType[P, R], payload: P, **options: Unpack[JobOptions]) -> AsyncHandle[R]:
        """Submits a job. Once this returns, the job is stored."""
        return await self.submit_new(job_type.new(payload, **options))

    async def submit_new(self, job: NewJob[Any, R]) -> AsyncHandle[R]:
        """Submits a job that was made with `JobType.new`."""
        return AsyncHandle(self, job.type, await self.send_call(_calls.submit(job)))

    async def submit_many(self, jobs: Sequence[NewJob[Any, R]]) -> list[AsyncHandle[R] | TickwheelError]:
        """Submits many jobs, in as few requests as the bounds allow. One entry per job: a handle, or why not."""
        results: list[AsyncHandle[R] | TickwheelError] = []
        for call in _calls.submit_batches(jobs):
            of_batch = jobs[len(results) :]
            try:
                answers: list[Job | TickwheelError] = [*await self.send_call(call)]
            except (Problem, Unreachable) as error:
                if not results:
                    raise
                results.extend([error] * len(of_batch))  # those before are stored, which the caller must learn
                break
            results.extend(
                AsyncHandle(self, job.type, answer) if isinstance(answer, Job) else answer
                for job, answer in zip(of_batch, answers, strict=False)
            )
        return results

    async def handle(self, job_type: JobType[Any, R], job_id: str) -> AsyncHandle[R]:
        """A handle of a job that was submitted before."""
        return AsyncHandle(self, job_type, await self.get(job_id))

    async def get(self, job_id: str) -> Job:
        """The job as it is now."""
        return await self.send_call(_calls.get_job(job_id))

    async def list(self, **filters: Any) -> Page[Job]:
        """Jobs, newest first: `status`, `type`, `queue`, `tag`, `priority`, `limit`, `cursor` and others."""
        return await self.send_call(_calls.list_jobs(filters))

    async def cancel(self, job_id: str) -> Job:
        """Cancels a job; one that runs is asked to stop."""
        return await self.send_call(_calls.act_on_job(job_id, "cancel"))

    async def retry(self, job_id: str) -> Job:
        """Runs a failed or cancelled job again."""
        return await self.send_call(_calls.act_on_job(job_id, "retry"))

    async def run_now(self, job_id: str) -> Job:
        """Lets a waiting job start now."""
        return await self.send_call(_calls.act_on_job(job_id, "run"))

    async def pause(self, job_id: str) -> Job:
        """Pauses a job that has not started."""
        return await self.send_call(_calls.act_on_job(job_id, "pause"))

    async def resume(self, job_id: str) -> Job:
        """Resumes a paused job."""
        return await self.send_call(_calls.act_on_job(job_id, "resume"))

    async def why(self, job_id: str) -> Why:
        """Why the job is not running."""
        return await self.send_call(_calls.why(job_id))

    async def attempts(self, job_id: str) -> Sequence[Attempt]:
        """The attempts of a job."""
        return await self.send_call(_calls.attempts(job_id))

    async def logs(self, job_id: str, attempt: int = 1) -> Sequence[LogLine]:
        """The log of an attempt, up to 1,000 lines, also while it runs."""
        return await self.send_call(_calls.logs(job_id, attempt))

    async def close(self) -> None:
        """Closes the connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()

    async def send_call(self, call: Call[T]) -> T:
        """Sends one of the library's own requests, and repeats it while that is safe and may help."""
        tries = 0
        while True:
            tries += 1
            try:
                return call.read((await self._transport.exchange(call.request)).body)
            except (Problem, Unreachable) as error:
                pause_s = _calls.pause_before_repeat(call.request, error, tries)
                if pause_s is None:
                    raise
                await asyncio.sleep(pause_s)

    async def wait_for(self, job_id: str, timeout: Duration | None = None) -> Job:
        """The job, once it has ended in whatever way. Raises `WaitTimeout`."""
        ends_at = time.monotonic() + _calls.duration_or_forever(timeout)
        while True:
            left_s = max(0.0, ends_at - time.monotonic())
            try:
                job = await self.send_call(_calls.get_job(job_id, min(left_s, _calls.WAIT_S_MAX)))
            except WaitTimedOut:
                job = None
            if job is not None and job.status in _calls.ENDED:
                return job
            if time.monotonic() >= ends_at:
                raise WaitTimeout(f"job {job_id} did not end within {timeout}")


class AsyncHandle(Generic[R]):
    """A submitted job. `job` is what the server last said about it."""

    def __init__(self, client: AsyncClient, job_type: JobType[Any, R], job: Job) -> None:
        self._client, self._type = client, job_type
        self.job = job

    @property
    def id(self) -> str:
        """The id of the job."""
        return self.job.id

    async def wait(self, timeout: Duration | None = None) -> R:
        """The result, once the job has ended. Raises `JobFailed`, `JobCancelled` or `WaitTimeout`."""
        self.job = await self._client.wait_for(self.id, timeout)
        return _calls.result_of(self._type, self.job)

    async def refresh(self) -> Job:
        """The job as it is now."""
        self.job = await self._client.get(self.id)
        return self.job

    async def cancel(self) -> Job:
        """Cancels the job; if it runs, it is asked to stop."""
        self.job = await self._client.cancel(self.id)
        return self.job

    async def retry(self) -> Job:
        """Runs the job again after it failed or was cancelled."""
        self.job = await self._client.retry(self.id)
        return self.job

    def __repr__(self) -> str:
        return f"AsyncHandle({self._type.name!r}, {self.id!r}, {self.job.status!r})"


class AsyncSchedules:
    """Recurring work: `client.schedules`."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def put(
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
        return await self._client.send_call(_calls.put_schedule(name, job, options))

    async def get(self, name: str) -> Schedule:
        """The schedule as it is now."""
        return await self._client.send_call(_calls.get_schedule(name))

    async def list(self, **filters: Any) -> Page[Schedule]:
        """Schedules: `limit`, `cursor`."""
        return await self._client.send_call(_calls.list_schedules(filters))

    async def delete(self, name: str) -> bool:
        """Deletes the schedule. False: there was none."""
        try:
            await self._client.send_call(_calls.delete_schedule(name))
        except NotFound:
            return False
        return True

    async def pause(self, name: str) -> Schedule:
        """Lets it not fire until it is resumed."""
        return await self._client.send_call(_calls.act_on_schedule(name, "pause"))

    async def resume(self, name: str) -> Schedule:
        """Lets it fire again."""
        return await self._client.send_call(_calls.act_on_schedule(name, "resume"))

    async def trigger(self, name: str) -> Job:
        """Makes its job now."""
        return await self._client.send_call(_calls.trigger_schedule(name))

    async def next(self, name: str, count: int = 10) -> Sequence[NextFire]:
        """Its next firings."""
        return await self._client.send_call(_calls.next_fires(name, count))


class AsyncWorkflows:
    """Graphs of tasks: `client.workflows`."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def put(self, workflow: Workflow) -> StoredWorkflow:
        """Stores a workflow: a new version if the name exists and the definition differs."""
        return await self._client.send_call(_calls.put_workflow(workflow.to_wire()))

    async def get(self, name: str) -> StoredWorkflow:
        """The newest version."""
        return await self._client.send_call(_calls.get_workflow(name))

    async def delete(self, name: str) -> bool:
        """Deletes the workflow. False: there was none."""
        try:
            await self._client.send_call(_calls.delete_workflow(name))
        except NotFound:
            return False
        return True

    async def run(self, name: str, input: Any = None, *, idempotency_key: str | None = None) -> WorkflowRun:
        """Starts a run."""
        call = _calls.run_workflow(name, input, idempotency_key)
        return await self._client.send_call(call)

    async def get_run(self, run_id: str) -> WorkflowRun:
        """The run as it is now, with its tasks."""
        return await self._client.send_call(_calls.get_run(run_id))

    async def wait(self, run_id: str, timeout: Duration | None = None) -> WorkflowRun:
        """The run, once it has ended in whatever way. Raises `WaitTimeout`."""
        ends_at = time.monotonic() + _calls.duration_or_forever(timeout)
        while True:
            left_s = max(0.0, ends_at - time.monotonic())
            try:
                call = _calls.get_run(run_id, min(left_s, _calls.WAIT_S_MAX))
                run = await self._client.send_call(call)
            except WaitTimedOut:
                run = None
            if run is not None and run.status in _calls.ENDED:
                return run
            if time.monotonic() >= ends_at:
                raise WaitTimeout(f"run {run_id} did not end within {timeout}")

    async def cancel(self, run_id: str) -> WorkflowRun:
        """Cancels a run."""
        return await self._client.send_call(_calls.act_on_run(run_id, "cancel"))

    async def retry(self, run_id: str) -> WorkflowRun:
        """Lets a failed run go on from where it failed."""
        return await self._client.send_call(_calls.act_on_run(run_id, "retry"))
