"""pytest fixtures, known to pytest once the library is installed."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from ._server import Server


@pytest.fixture
def tickwheel_server() -> Generator[Server]:
    """A real server of the test's own. Without `TICKWHEEL_BIN` and without `tickwheel` on the PATH, it is skipped."""
    if not Server.is_available():
        pytest.skip("no server program: set TICKWHEEL_BIN")
    with Server() as server:
        yield server
