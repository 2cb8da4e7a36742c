"""The heartbeater: a process that sends heartbeats for a worker and does nothing else.

It runs beside the worker (`python -I -S _heartbeater.py`, standard library alone), so that no handler can starve it:
one regular expression that holds the interpreter's lock for seconds would end a thread's heartbeats, and with them
every lease. It takes no jobs and runs no user code.

Lines of JSON arrive on standard input: `session`, `no_session`, `add`, `drop`, `progress`, `state`, `answer`, `bye`.
Lines go back on standard output: `ask` before each heartbeat, `beat` after an accepted one, `failed`, `refused` or
`unknown` after one that was not. Whoever reads `ask` answers it; while nobody does, the worker's own count of its
attempts cannot be trusted and is left out.

Its parent's death is the end of the session: it leaves as `crashed`, so that the jobs run elsewhere at once.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import select
import signal
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]
Send = Callable[[Message], None]

ASK_S_MAX = 0.25
PARENT_CHECK_S = 0.2
REQUEST_S_MIN, REQUEST_S_MAX = 1.0, 5.0
PROGRESS_S_MIN = 1.0
REFUSED_S = 30.0
PROGRESS_LEN_MAX = 1000


class Refused(Exception):
    """The server answered with a status that is no success."""

    def __init__(self, status: int, problem: Any) -> None:
        super().__init__(str(status))
        self.status, self.problem = status, problem


class Wire:
    """One connection to the server, opened anew when it breaks."""

    def __init__(self, session: Message) -> None:
        self._addresses = session["addresses"]
        self._index = session.get("index", 0) % len(self._addresses)
        self.key, self._key_file = session.get("key"), session.get("key_file")
        self._ca_file = session.get("ca_file")
        self._connection: http.client.HTTPConnection | None = None

    def post(self, path: str, body: Message, timeout_s: float) -> Message:
        return self._exchange("POST", path, json.dumps(body).encode(), timeout_s)

    def delete(self, path: str, timeout_s: float) -> Message:
        return self._exchange("DELETE", path, None, timeout_s)

    def reload_key(self) -> bool:
        """Whether the file with the key has another key now."""
        if not self._key_file:
            return False
        try:
            with open(self._key_file, encoding="utf-8") as file:
                key = file.read().strip()
        except (OSError, ValueError):
            return False
        changed = bool(key) and key != self.key
        self.key = key or self.key
        return changed

    def _exchange(self, method: str, path: str, body: bytes | None, timeout_s: float) -> Message:
        reused = self._connection is not None
        try:
            return self._once(method, path, body, timeout_s)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if not reused or isinstance(error, TimeoutError):
                self._index = (self._index + 1) % len(self._addresses)
                raise
        # An old connection may have ended unnoticed. Every call can be repeated.
        try:
            return self._once(method, path, body, timeout_s)
        except (OSError, http.client.HTTPException):
            self.close()
            self._index = (self._index + 1) % len(self._addresses)
            raise

    def _once(self, method: str, path: str, body: bytes | None, timeout_s: float) -> Message:
        address = urllib.parse.urlsplit(str(self._addresses[self._index]))
        if self._connection is None:
            self._connection = self._open(address, timeout_s)
        if self._connection.sock is not None:
            self._connection.sock.settimeout(timeout_s)
        headers = {"content-type": "application/json"} if body is not None else {}
        if self.key:
            headers["authorization"] = "Bearer " + self.key
        self._connection.request(method, address.path.rstrip("/") + path, body, headers)
        response = self._connection.getresponse()
        content = response.read()
        if response.will_close:
            self.close()
        if response.status >= 400:
            raise Refused(response.status, _json(content))
        answer: Message = _json(content)
        return answer

    def _open(self, address: urllib.parse.SplitResult, timeout_s: float) -> http.client.HTTPConnection:
        host = address.hostname or ""
        if address.scheme == "https":
            import ssl

            context = ssl.create_default_context(cafile=self._ca_file)
            return http.client.HTTPSConnection(host, address.port, timeout=timeout_s, context=context)
        return http.client.HTTPConnection(host, address.port, timeout=timeout_s)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _json(content: bytes) -> Any:
    try:
        return json.loads(content) if content else {}
    except ValueError:
        return {}


class Heart:
    """What is to be sent, and when. Two threads use it: one reads what the worker says, the other one beats."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._changed = threading.Condition()
        self._session: Message | None = None
        self._wire: Wire | None = None
        self._tokens: dict[str, None] = {}
        self._progress: dict[str, Any] = {}
        self._state = "active"
        self._stuck = 0
        self._asked = self._answered = 0
        self._resync = self._urgent = False
        self._due: float | None = None
        self._beat_at = 0.0
        self._failures = 0
        self._stopped = False

    # What the worker says.

    def hear(self, message: Message) -> None:
        with self._changed:
            kind = message["kind"]
            if kind == "session":
                self._session, self._wire = message["session"], Wire(message["session"])
                self._resync, self._failures = False, 0
                self._due = time.monotonic()
            elif kind == "no_session":
                self._session, self._due = None, None
            elif kind == "add":
                self._tokens.update(dict.fromkeys(message["tokens"]))
            elif kind == "drop":
                for token in message["tokens"]:
                    self._tokens.pop(token, None)
                    self._progress.pop(token, None)
            elif kind == "progress":
                self._progress.update(message["progress"])
                self._bring_forward(self._beat_at + PROGRESS_S_MIN)
            elif kind == "state":
                self._state, self._stuck = message["state"], message["stuck"]
                self._urgent = True  # also if a heartbeat with the old state is on its way
                self._bring_forward(time.monotonic())
            elif kind == "answer":
                self._answered = message["number"]
            self._changed.notify_all()

    def _bring_forward(self, moment: float) -> None:
        if self._due is not None:
            self._due = min(self._due, max(moment, time.monotonic()))

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    # Beating.

    def beat_for_ever(self, parent_is_stopped: Callable[[], bool]) -> None:
        while True:
            with self._changed:
                while not self._stopped and (self._due is None or self._due > time.monotonic()):
                    self._changed.wait(None if self._due is None else self._due - time.monotonic())
                if self._stopped:
                    return
                session, wire = self._session, self._wire
            if session is None or wire is None:
                continue
            if parent_is_stopped():
                time.sleep(PARENT_CHECK_S)
                continue
            self._beat(session, wire)

    def _ask(self) -> bool:
        """Whether the worker answers: only then its count of attempts is worth something."""
        with self._changed:
            self._asked += 1
            number = self._asked
        self._send({"kind": "ask", "number": number})
        with self._changed:
            return self._changed.wait_for(lambda: self._answered >= number or self._stopped, ASK_S_MAX)

    def _beat(self, session: Message, wire: Wire) -> None:
        answered = self._ask()
        with self._changed:
            if session is not self._session or self._stopped:
                return
            body, progress = self._body(session, answered)
            listed = "tokens" in body
        sent = time.monotonic()
        # After one that was never answered there is time for another, before the lease cannot be proven any more.
        patience_s = min(REQUEST_S_MAX, max(REQUEST_S_MIN, session["lease_s"] / 5))
        try:
            answer = wire.post(session["path"] + "/heartbeat", body, patience_s)
        except Refused as refusal:
            self._refused(session, wire, refusal)
        except (OSError, http.client.HTTPException) as error:
            self._failed(session, f"{type(error).__name__}: {error}")
        else:
            self._accepted(session, sent, answer, progress, listed)

    def _body(self, session: Message, answered: bool) -> tuple[Message, dict[str, Any]]:
        self._urgent = False
        progress = dict(list(self._progress.items())[:PROGRESS_LEN_MAX])
        body = {"attempts": list(progress.values()), "state": self._state, "stuck": self._stuck}
        if answered and session["resync"]:
            body["held"] = len(self._tokens)
            if self._resync:
                body["tokens"] = list(self._tokens)
        return body, progress

    def _accepted(self, session: Message, sent: float, answer: Message, progress: dict[str, Any], listed: bool) -> None:
        with self._changed:
            self._failures = 0
            for token, entry in progress.items():
                if self._progress.get(token) is entry:
                    del self._progress[token]
            asked = bool(answer.get("resync"))
            # Asked again right after a list: it gets the next one with the next heartbeat, not in a tight loop.
            again_at_once = (asked and not listed) or self._urgent
            self._resync = asked
            self._beat_at = sent
            interval = session["interval_s"] * random.uniform(0.9, 1.1)  # noqa: S311 - spreads load
            if session is self._session:
                due = sent + (min(interval, 0.05) if again_at_once else interval)
                self._due = min(due, sent + PROGRESS_S_MIN) if self._progress else due
        self._send({"kind": "beat", "session": session["path"], "sent": sent, "answer": answer})

    def _failed(self, session: Message, why: str) -> None:
        with self._changed:
            self._failures += 1
            pause = {1: 0.25, 2: 0.5}.get(self._failures, 1.0)
            if session is self._session:
                self._due = time.monotonic() + pause
        self._send({"kind": "failed", "session": session["path"], "why": why})

    def _refused(self, session: Message, wire: Wire, refusal: Refused) -> None:
        problem: Any = refusal.problem or {}
        code = problem.get("code") if hasattr(problem, "get") else None
        if refusal.status in (401, 403) or (400 <= refusal.status < 500 and refusal.status not in (404, 408, 429)):
            self._send({"kind": "refused", "session": session["path"], "status": refusal.status, "code": code})
            self._wait_for_key(session, wire)
        elif refusal.status == 404:
            with self._changed:
                if session is self._session:
                    self._due = None
            self._send({"kind": "unknown", "session": session["path"]})
        else:
            self._failed(session, f"the server answered {refusal.status}")

    def _wait_for_key(self, session: Message, wire: Wire) -> None:
        """Tries again when the key file has another key, or after a while."""
        until = time.monotonic() + REFUSED_S
        while time.monotonic() < until and not wire.reload_key():
            with self._changed:
                self._changed.wait(1.0)
                if self._stopped or session is not self._session:
                    return
        with self._changed:
            if session is self._session:
                self._due = time.monotonic()

    def leave_crashed(self) -> None:
        """Ends the session for a worker that died."""
        session, wire = self._session, self._wire
        if session is not None and wire is not None:
            Wire(dict(session, key=wire.key)).delete(session["path"] + "?reason=crashed", REQUEST_S_MAX)


def parent_is_stopped(pid: int) -> bool:
    """Whether the worker was stopped by a signal. Where there is no /proc, it never is."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except (OSError, IndexError):
        return False


def serve(source: int, heart: Heart, parent: int | None) -> bool:
    """Hears the worker until it says goodbye. Whether it did, rather than end without a word."""
    rest = b""
    while True:
        if parent is not None and os.getppid() != parent:
            return False
        ready, _, _ = select.select([source], [], [], PARENT_CHECK_S)
        if not ready:
            continue
        chunk = os.read(source, 65536)
        if not chunk:
            return False
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if message["kind"] == "bye":
                return True
            heart.hear(message)


def sender(target: int) -> Send:
    lock = threading.Lock()

    def send(message: Message) -> None:
        line = json.dumps(message).encode() + b"\n"
        with lock:
            while line:
                line = line[os.write(target, line) :]

    return send


def main() -> None:
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    parent = int(sys.argv[1])
    send = sender(1)
    heart = Heart(send)

    def beat() -> None:
        try:
            heart.beat_for_ever(lambda: parent_is_stopped(parent))
        except OSError:
            pass  # nobody reads any more: the other thread finds out why

    threading.Thread(target=beat, daemon=True).start()
    send({"kind": "ready"})
    if not serve(0, heart, parent):
        try:
            heart.leave_crashed()
        except (OSError, http.client.HTTPException, Refused):
            pass  # the lease ends by itself
    os._exit(0)


if __name__ == "__main__":
    main()
