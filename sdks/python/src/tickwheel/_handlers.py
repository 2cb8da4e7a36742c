"""What a worker knows of its handlers: the function, how it runs, and its options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from .jobtype import JobType

Kind = Literal["async", "thread", "isolated", "batch"]
OnLeaseLost = Literal["cancel", "continue"]


@dataclass(frozen=True)
class Handler:
    """One handler of a worker."""

    job_type: JobType[Any, Any]
    function: Callable[..., Any]
    kind: Kind
    wants_context: bool
    capacity: int | None
    not_retryable: tuple[type[BaseException], ...]
    cancel_grace_s: float
    on_lease_lost: OnLeaseLost
    jobs_max: int = 1
    wait_max_s: float = 0.0

    @property
    def name(self) -> str:
        """The name people know it by."""
        return str(getattr(self.function, "__qualname__", self.function))

    def call(self, payload: Any, context: Any) -> Any:
        """Calls the function, with the context if it takes one."""
        return self.function(payload, context) if self.wants_context else self.function(payload)


def takes_context(function: Callable[..., Any]) -> bool:
    """Whether the function takes a second argument. Raises TypeError for one that cannot be a handler."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = list(inspect.signature(function).parameters.values())
    positional = [parameter for parameter in parameters if parameter.kind in kinds]
    star = any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters)
    required = [parameter for parameter in positional[2:] if parameter.default is inspect.Parameter.empty]
    keyword = [
        parameter
        for parameter in parameters
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and parameter.default is inspect.Parameter.empty
    ]
    if (not positional and not star) or required or keyword:
        raise TypeError(f"{function!r} cannot be a handler: it takes the payload and, if it wants, the context")
    return len(positional) > 1 or star


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it makes a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004
