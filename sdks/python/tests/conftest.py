from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from fake_server import FakeServer

from tickwheel import Worker


class Running:
    """A worker that runs in a thread of the test, as a program of its own would run it."""

    def __init__(self, worker: Worker[Any]) -> None:
        self.worker = worker
        self.error: BaseException | None = None
        self.all_ended: bool | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        loop = asyncio.new_event_loop()
        try:
            self.all_ended = loop.run_until_complete(self.worker.serve())
        except BaseException as error:
            self.error = error

    def __enter__(self) -> Running:
        self.thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.worker.stop()
        self.worker.stop()
        self.thread.join(10.0)
        assert not self.thread.is_alive(), "the worker did not stop"


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    server = FakeServer()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of whoever runs the tests are not those of the tests."""
    import os

    for name in list(os.environ):
        if name.startswith("TICKWHEEL_") and name != "TICKWHEEL_BIN":
            monkeypatch.delenv(name)
