"""A worker program of a library: started, signalled, killed, and read."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from .waiting import PATIENCE, eventually

CONFORMANCE = pathlib.Path(__file__).resolve().parents[1]
ROOT = CONFORMANCE.parents[1]

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib


def libraries():
    """The table of workers.toml, or of the file CONFORMANCE_WORKERS, with its places filled in."""
    file = os.environ.get("CONFORMANCE_WORKERS") or CONFORMANCE / "workers.toml"
    table = tomllib.loads(pathlib.Path(file).read_text())
    places = {"python": sys.executable, "root": str(ROOT), "conformance": str(CONFORMANCE),
              "version": "{}.{}".format(*sys.version_info), "work": str(ROOT / "target/sdks/conformance")}

    def filled(words):
        return [word.format(**places) for word in words]

    return {
        name: entry | {"command": filled(entry["command"]), "setup": [filled(step) for step in entry.get("setup", [])]}
        for name, entry in table.items()
    }


def without_tickwheel(env):
    return {key: value for key, value in env.items() if not key.startswith(("TICKWHEEL_", "CONFORMANCE_"))}


class Program:
    """One process. Its environment is the library's variables and ours, nothing else of either kind."""

    def __init__(self, command, directory, name, env):
        self.command, self.name = command, name
        self.events_path = pathlib.Path(directory) / f"{name}.events"
        self.log_path = pathlib.Path(directory) / f"{name}.log"
        self.events_path.touch()
        self.env = without_tickwheel(os.environ) | {"CONFORMANCE_EVENTS": str(self.events_path)} | env
        self.process = None
        self._offset, self._events, self._rest = 0, [], b""

    def start(self):
        with open(self.log_path, "ab") as log:
            self.started_at = time.monotonic()
            self.process = subprocess.Popen(
                self.command, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        return self

    @property
    def pid(self):
        return self.process.pid

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        """SIGKILL of the main process alone: what it started is on its own."""
        self.process.kill()
        self.process.wait(10)

    def terminate(self):
        self.signal(signal.SIGTERM)

    def exit_code(self, within):
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end within {within:g} s\n{self.log()[-3000:]}") from None

    def is_running(self):
        return self.process.poll() is None

    def stop(self):
        """Ends it and all it started."""
        if self.process is None:
            return
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(10)

    def log(self):
        return self.log_path.read_text("utf-8", "replace") if self.log_path.exists() else ""

    def log_lines(self, *words):
        """The lines in which all words occur, in any case."""
        return [line for line in self.log().splitlines() if all(word.lower() in line.lower() for word in words)]

    def memory_mib(self):
        """What it and its children have of their own."""
        total = 0
        for pid in [self.pid, *_children(self.pid)]:
            for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("RssAnon:"):
                    total += int(line.split()[1]) / 1024
        return total

    # Events.

    def events(self, event=None, job_id=None, **fields):
        """What was recorded so far and fits."""
        self._read()
        wanted = fields | ({"event": event} if event else {}) | ({"job_id": job_id} if job_id else {})
        return [entry for entry in self._events if all(entry.get(key) == value for key, value in wanted.items())]

    def _read(self):
        with open(self.events_path, "rb") as file:
            file.seek(self._offset)
            data = file.read()
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._events += [json.loads(line) for line in lines if line.strip()]

    def await_event(self, event, job_id=None, within=PATIENCE, **fields):
        found = eventually(f"{self.name} to record {event} {job_id or ''} {fields or ''}",
                           lambda: self.events(event, job_id, **fields) or None, within)
        return found[0]


def _children(pid):
    path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in path.read_text().split()] if path.exists() else []
