"""The real server, on a store of its own, to be started, killed and started again."""

import os
import pathlib
import signal
import subprocess
import time
import urllib.parse

from .api import Api
from .waiting import eventually

ROOT = pathlib.Path(__file__).resolve().parents[3]
ANNOUNCEMENT = "tickwheel listens on "


def program():
    """`TICKWHEEL_BIN`, or the newest that was built here."""
    given = os.environ.get("TICKWHEEL_BIN")
    if given:
        return given
    built = [path for path in (ROOT / "target/release/tickwheel", ROOT / "target/debug/tickwheel") if path.exists()]
    if not built:
        raise RuntimeError("no server program: set TICKWHEEL_BIN, or cargo build --package tickwheel")
    return str(max(built, key=lambda path: path.stat().st_mtime))


class Server:
    """`store` is None for SQLite in the data directory, else the URL of a database."""

    def __init__(self, directory, store=None, env=None):
        self.directory, self.store, self.env = pathlib.Path(directory), store, env or {}
        self.log_path = self.directory / f"server-{id(self):x}.log"
        self.process = None
        self.host, self.port = "127.0.0.1", 0
        self.api = Api(self.address)

    def address(self):
        return self.host, self.port

    def start(self):
        """Starts it (again) on the same data and waits until it is ready."""
        self.launch()
        self.await_ready()
        return self

    def launch(self):
        command = [program(), "serve", "--listen", "127.0.0.1:0", "--data-dir", str(self.directory / "data")]
        if self.store:
            command += ["--store", self.store]
        env = {key: value for key, value in os.environ.items() if not key.startswith("TICKWHEEL_")} | self.env
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)

    def await_ready(self):
        line = self.process.stdout.readline().decode().strip()
        if not line.startswith(ANNOUNCEMENT):
            raise AssertionError(f"the server did not come up: {line!r}\n{self.log()[-4000:]}")
        url = urllib.parse.urlsplit(line.removeprefix(ANNOUNCEMENT))
        self.host, self.port = url.hostname, url.port
        eventually("the server to be ready", self._is_ready)

    def _is_ready(self):
        try:
            return self.api.call("GET", "/readyz", timeout=5)[0] == 200
        except OSError:
            return False

    def kill(self):
        """SIGKILL. Its address answers no more."""
        self.process.kill()
        self.process.wait(10)
        self.port = 1  # nothing listens there: whoever connects is refused

    def terminate(self, within=30.0):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(within)
        self.port = 1
        return code

    def away(self, seconds):
        """Killed, and back after that long."""
        self.kill()
        time.sleep(seconds)
        self.start()

    def log(self):
        return self.log_path.read_text("utf-8", "replace") if self.log_path.exists() else ""

    def stop(self):
        """Ends it for good, however it is."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait(10)
        if self.process and self.process.stdout:
            self.process.stdout.close()
