"""Workflows: named graphs of tasks, built step by step and stored with `client.workflows.put`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._codec import to_json
from ._durations import Duration, to_wire
from .jobtype import JobType, TaskOptions, options_to_wire

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

_UNSET: Any = object()
_NOT_OF_TASKS = ("delay", "execute_at", "depends_on", "idempotency_key", "unique")


def ref(path: str, default: Any = _UNSET) -> dict[str, Any]:
    """Data of the run, put into a payload when the task starts: `ref("extract.result.rows")`, `ref("input.day")`."""
    return {"$from": path} if default is _UNSET else {"$from": path, "default": to_json(default)}


class Workflow:
    """A named graph of tasks."""

    def __init__(
        self,
        name: str,
        *,
        description: str | None = None,
        on_failure: str | None = None,
        stall_after: Duration | None = None,
        schedule: Mapping[str, Any] | None = None,
        notify: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        self.name = name
        self._options: dict[str, Any] = {
            "description": description,
            "on_failure": on_failure,
            "stall_after": None if stall_after is None else to_wire(stall_after),
            "schedule": None if schedule is None else to_json(schedule),
            "notify": None if notify is None else to_json(list(notify)),
        }
        self._tasks: dict[str, list[dict[str, Any]]] = {"before": [], "tasks": [], "after": []}

    def task(
        self,
        name: str,
        job: JobType[Any, Any] | None = None,
        *,
        payload: Any = None,
        depends_on: Sequence[str] = (),
        when: str | None = None,
        trigger_rule: str | None = None,
        for_each: str | None = None,
        concurrency: int | None = None,
        max_items: int | None = None,
        hook: str | None = None,
        **options: Unpack[TaskOptions],
    ) -> Self:
        """Adds a task. A payload may contain `ref(…)`, so it is not checked against the job type. `hook` is `before`
        or `after` for a task that runs first or last."""
        if hook not in (None, "before", "after"):
            raise ValueError(f'hook is "before" or "after", not {hook!r}')
        wire = {**(job.defaults if job else {}), **options_to_wire(options)}
        for of_jobs_alone in _NOT_OF_TASKS:
            wire.pop(of_jobs_alone, None)
        if job is not None:
            wire["type"] = job.name
        if payload is not None:
            wire["payload"] = to_json(payload)
        task: dict[str, Any] = {"name": name, "job": wire, "depends_on": list(depends_on)}
        optional = {
            "when": when,
            "trigger_rule": trigger_rule,
            "for_each": for_each,
            "concurrency": concurrency,
            "max_items": max_items,
        }
        task.update({field: value for field, value in optional.items() if value is not None})
        self._tasks[hook or "tasks"].append(task)
        return self

    def to_wire(self) -> dict[str, Any]:
        """The definition as the server reads it."""
        wire: dict[str, Any] = {"name": self.name}
        wire.update({name: value for name, value in self._options.items() if value is not None})
        wire.update({place: tasks for place, tasks in self._tasks.items() if tasks or place == "tasks"})
        return wire
