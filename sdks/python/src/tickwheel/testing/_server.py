"""A real server for a test: the program that `TICKWHEEL_BIN` names, on a data directory of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING

import httpx2

from ..aclient import AsyncClient
from ..client import Client

if TYPE_CHECKING:
    from typing_extensions import Self

ANNOUNCEMENT = "tickwheel listens on "
START_S_MAX = 30.0
STOP_S_MAX = 10.0


class Server:
    """A server of your own. `with Server() as server: client = server.client()`."""

    def __init__(
        self, *, binary: str | None = None, arguments: Sequence[str] = (), environment: Mapping[str, str] | None = None
    ) -> None:
        program = binary or os.environ.get("TICKWHEEL_BIN") or shutil.which("tickwheel")
        if not program:
            raise FileNotFoundError("no server program: set TICKWHEEL_BIN, or put tickwheel on the PATH")
        self._program, self._arguments = program, list(arguments)
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[str] | None = None
        self._home: Path | None = None
        self._log: IO[str] | None = None
        self.url = ""
        """Its address, once it has started."""

    @staticmethod
    def is_available() -> bool:
        """Whether there is a program to start."""
        return bool(os.environ.get("TICKWHEEL_BIN") or shutil.which("tickwheel"))

    def start(self) -> Self:
        """Starts it and waits until it is ready."""
        self._home = Path(tempfile.mkdtemp(prefix="tickwheel-test-"))
        self._log = open(self._home / "log", "w+", encoding="utf-8")  # noqa: SIM115 - closed in stop()
        command = [self._program, "serve", "--listen", "127.0.0.1:0", "--data-dir", str(self._home / "data")]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TICKWHEEL_")}
        self._process = subprocess.Popen(  # noqa: S603 - the program that the test was given
            [*command, *self._arguments],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**environment, **self._environment},
        )
        assert self._process.stdout is not None  # noqa: S101 - it is piped
        line = self._process.stdout.readline().strip()
        if not line.startswith(ANNOUNCEMENT):
            raise RuntimeError(f"the server did not come up; it said {line!r}\n{self.log()}")
        self.url = line.removeprefix(ANNOUNCEMENT)
        self._wait_until_ready()
        return self

    def _wait_until_ready(self) -> None:
        until = time.monotonic() + START_S_MAX
        while time.monotonic() < until:
            try:
                if httpx2.get(f"{self.url}/readyz", trust_env=False).status_code == 200:
                    return
            except httpx2.TransportError:
                pass
            time.sleep(0.02)
        raise RuntimeError(f"the server was not ready within {START_S_MAX:g} s\n{self.log()}")

    def log(self) -> str:
        """What it logged."""
        return (self._home / "log").read_text(encoding="utf-8") if self._home else ""

    def client(self) -> Client:
        """A client of this server."""
        return Client(self.url)

    def async_client(self) -> AsyncClient:
        """The same for `async` code."""
        return AsyncClient(self.url)

    def stop(self) -> None:
        """Stops it and removes its data."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(STOP_S_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        if self._log is not None:
            self._log.close()
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()
