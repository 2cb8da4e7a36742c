"""Client and worker library of the Tickwheel job scheduler."""

from ._calls import Page
from ._durations import Duration
from ._health import Stats
from ._version import VERSION as __version__
from .aclient import AsyncClient, AsyncHandle
from .client import Client, Handle
from .context import Context, SyncContext
from .errors import (
    Cancelled,
    ConfigurationError,
    InvalidPayload,
    InvalidResult,
    JobCancelled,
    JobFailed,
    LeaseLost,
    NotRetryable,
    Problem,
    RetryAfter,
    Snooze,
    TickwheelError,
    Unreachable,
    WaitTimeout,
    WorkerRefused,
)
from .jobtype import JobOptions, JobType, NewJob, Retry, Unique
from .worker import Worker
from .workflow import Workflow, ref

__all__ = [
    "AsyncClient",
    "AsyncHandle",
    "Cancelled",
    "Client",
    "ConfigurationError",
    "Context",
    "Duration",
    "Handle",
    "InvalidPayload",
    "InvalidResult",
    "JobCancelled",
    "JobFailed",
    "JobOptions",
    "JobType",
    "LeaseLost",
    "NewJob",
    "NotRetryable",
    "Page",
    "Problem",
    "Retry",
    "RetryAfter",
    "Snooze",
    "Stats",
    "SyncContext",
    "TickwheelError",
    "Unique",
    "Unreachable",
    "WaitTimeout",
    "Worker",
    "WorkerRefused",
    "Workflow",
    "__version__",
    "ref",
]
