"""A server that speaks the worker protocol, in this process, on 127.0.0.1. It keeps jobs in memory and has no clock of
its own beyond leases: what a test wants to happen, the test does."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tickwheel._durations import seconds

NOW = "2026-11-18T04:00:00.000Z"


def job_document(job_type: str, payload: Any, **fields: Any) -> dict[str, Any]:
    return {
        "id": str(uuid.uuid4()),
        "type": job_type,
        "status": "scheduled",
        "queue": "default",
        "priority": "normal",
        "tenant": "default",
        "execute_at": NOW,
        "created_at": NOW,
        "attempt": 0,
        "retries": 0,
        "max_retries": 3,
        "cancel_requested": False,
        "tags": [],
        "metadata": {},
        "target": {"worker": {}},
        "retry": {},
        "timeout": "300s",
        "delivery": "at_least_once",
        "depends_on": [],
        "payload": payload,
        **fields,
    }


class Refusal(Exception):
    def __init__(self, status: int, code: str, detail: str = "") -> None:
        super().__init__(code)
        self.status, self.code, self.detail = status, code, detail or code

    def body(self) -> dict[str, Any]:
        return {"type": "urn:x", "title": self.code, "status": self.status, "detail": self.detail, "code": self.code}


class FakeServer:
    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.features = ["once", "logs", "resync"]
        self.protocol = {"min": 1, "max": 1}
        self.lease, self.poll_wait, self.interval = "5s", "20s", "1s"
        self.sessions: dict[str, dict[str, Any]] = {}
        self.instances: dict[str, str] = {}
        self.queue: list[dict[str, Any]] = []
        self.attempts: dict[str, dict[str, Any]] = {}
        self.reports: list[dict[str, Any]] = []
        self.logs: dict[str, list[dict[str, Any]]] = {}
        self.once: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[str, str, Any]] = []
        self.left: list[tuple[str, str]] = []
        self.key: str | None = None
        self.refuse: dict[str, Refusal] = {}
        self.swallow: dict[str, int] = {}
        """Kinds of calls whose next answers do not arrive."""
        self.hang: dict[str, int] = {}
        """Kinds of calls whose next requests are never answered."""
        self.deaf = False
        self.requeue = False
        self.slow: dict[str, float] = {}
        """Kinds of calls that are answered so many seconds after they had their effect."""
        self.drain = False
        self._polls: dict[str, tuple[int, dict[str, Any]]] = {}
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                raw = self.rfile.read(length)
                fake.answer(self, json.loads(raw) if raw else None)

            do_GET = do_POST = do_PUT = do_DELETE = do

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 100

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass

        self._http = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    # What tests do and look at.

    def submit(self, job_type: str, payload: Any = None, **fields: Any) -> str:
        job = job_document(job_type, payload, **fields)
        with self.changed:
            self.queue.append(job)
            self.changed.notify_all()
        return str(job["id"])

    def wait(self, what: Callable[[], Any], within: float = 10.0) -> Any:
        """Waits until `what()` is true and gives it back."""
        until = time.monotonic() + within
        with self.changed:
            while not (found := what()):
                left = until - time.monotonic()
                assert left > 0, f"nothing came of it; the last reports: {self.reports[-3:]}"
                self.changed.wait(min(left, 0.02))
            return found

    def report_of(self, job_id: str, within: float = 10.0) -> dict[str, Any]:
        def find() -> Any:
            return next((r for r in self.reports if r["job_id"] == job_id), None)

        report: dict[str, Any] = self.wait(find, within)
        return report

    def token_of(self, job_id: str) -> str:
        def find() -> Any:
            return next((t for t, a in self.attempts.items() if a["job"]["id"] == job_id), None)

        token: str = self.wait(find)
        return token

    def cancel(self, job_id: str) -> None:
        with self.changed:
            self.attempts[self.token_of(job_id)]["cancel"] = True
            self.changed.notify_all()

    def take_away(self, job_id: str) -> None:
        with self.changed:
            self.attempts[self.token_of(job_id)]["open"] = False
            self.changed.notify_all()

    def forget_sessions(self) -> None:
        with self.changed:
            for attempt in self.attempts.values():
                attempt["open"] = False
            self.sessions.clear()
            self.changed.notify_all()

    def calls(self, kind: str) -> list[Any]:
        return [body for found, _, body in list(self.requests) if found == kind]

    # The protocol.

    def answer(self, handler: BaseHTTPRequestHandler, body: Any) -> None:
        path = handler.path
        kind = self._kind(handler.command, path)
        with self.changed:
            self.requests.append((kind, path, body))
            self.changed.notify_all()
        status, document = 200, None
        try:
            if self.deaf:
                raise ConnectionError
            if self.key is not None and handler.headers.get("authorization") != f"Bearer {self.key}":
                raise Refusal(401, "unauthorized")
            if self.hang.get(kind, 0) > 0:
                self.hang[kind] -= 1
                time.sleep(10.0)
                raise ConnectionError
            if kind in self.refuse:
                raise self.refuse[kind]
            document = getattr(self, f"_{kind}")(path, body)
            time.sleep(self.slow.get(kind, 0.0))
        except Refusal as refusal:
            status, document = refusal.status, refusal.body()
        except ConnectionError:
            handler.close_connection = True
            return
        if self.swallow.get(kind, 0) > 0:
            self.swallow[kind] -= 1
            handler.close_connection = True
            return
        content = b"" if document is None else json.dumps(document).encode()
        handler.send_response(204 if document is None else status)
        handler.send_header("content-length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    @staticmethod
    def _kind(method: str, path: str) -> str:
        parts = path.partition("?")[0].split("/")[3:]
        if parts == ["server"]:
            return "server"
        if parts == ["workers"]:
            return "register"
        if parts[0] == "workers" and len(parts) == 2:
            return "leave"
        if parts[0] == "workers":
            return parts[2]
        if parts[0] == "attempts":
            return "once_" + (parts[4] if len(parts) > 4 else "begin")
        return "unknown"

    def _unknown(self, path: str, body: Any) -> Any:
        raise Refusal(404, "not_found")

    def _server(self, path: str, body: Any) -> Any:
        return {"version": "0", "worker_protocol": self.protocol, "features": self.features}

    def _register(self, path: str, body: Any) -> Any:
        with self.changed:
            worker_id = self.instances.setdefault(body["instance"], str(uuid.uuid4()))
            self.sessions[worker_id] = {"registration": body, "heard": time.monotonic()}
            self.changed.notify_all()
        limits = {"poll_jobs": 1000, "reports": 1000, "result_bytes": 262144}
        return {
            "worker_id": worker_id,
            "lease": self.lease,
            "heartbeat_interval": self.interval,
            "poll_wait": self.poll_wait,
            "limits": limits,
        }

    def _session(self, path: str) -> dict[str, Any]:
        worker_id = path.partition("?")[0].split("/")[4]
        if worker_id not in self.sessions:
            raise Refusal(404, "unknown_worker")
        return self.sessions[worker_id]

    def _news(self, session: dict[str, Any]) -> dict[str, Any]:
        cancel = [t for t, a in self.attempts.items() if a["open"] and a["session"] is session and a.get("cancel")]
        return {"cancel": cancel, "lost": [], "drain": self.drain}

    def _poll(self, path: str, body: Any) -> Any:
        with self.changed:
            session = self._session(path)
            before = session.get("poll")
            if before is not None and before[0] == body["seq"] and before[1] is not None:
                return before[1]
            session["poll"] = (body["seq"], None)
            mark = session["mark"] = object()
            until = time.monotonic() + min(seconds(body["wait"]), 20.0)
            drained = self.drain
            while True:
                if path.split("/")[4] not in self.sessions:
                    raise Refusal(404, "unknown_worker")
                jobs = self._hand_out(session, body) if session["mark"] is mark else []
                news = self._news(session)
                untold = [token for token in news["cancel"] if not self.attempts[token].get("told")]
                if jobs or untold or self.drain != drained or session["mark"] is not mark:
                    break
                left = until - time.monotonic()
                if left <= 0 or self.deaf:
                    break
                self.changed.wait(min(left, 0.02))
            for token in news["cancel"]:
                self.attempts[token]["told"] = True
            answer: dict[str, Any] = {"jobs": jobs, "seq": body["seq"], **news}
            if session["mark"] is mark:
                session["poll"] = (body["seq"], answer)
            return answer

    def _hand_out(self, session: dict[str, Any], body: Any) -> list[Any]:
        slots = dict(body.get("slots") or {})
        types = session["registration"]["types"]
        jobs: list[Any] = []
        for job in list(self.queue):
            if len(jobs) >= body["max"]:
                break
            name = job["type"]
            if name not in types or slots.get(name, 1) <= 0:
                continue
            if name in slots:
                slots[name] -= 1
            self.queue.remove(job)
            job["attempt"] += 1
            token = uuid.uuid4().hex
            self.attempts[token] = {"job": job, "open": True, "session": session, "number": job["attempt"]}
            jobs.append(
                {
                    "job": job,
                    "attempt": job["attempt"],
                    "token": token,
                    "fencing_token": job["attempt"],
                    "deadline": NOW,
                    "deadline_in": job["timeout"],
                    "traceparent": job.get("traceparent"),
                }
            )
        return jobs

    def _heartbeat(self, path: str, body: Any) -> Any:
        with self.changed:
            session = self._session(path)
            session["heard"] = time.monotonic()
            session.setdefault("beats", []).append(body)
            open_here = [t for t, a in self.attempts.items() if a["open"] and a["session"] is session]
            named = [entry["token"] for entry in body.get("attempts") or []] + (body.get("tokens") or [])
            lost = [token for token in named if not self.attempts.get(token, {}).get("open")]
            for entry in body.get("attempts") or []:
                if "progress" in entry:
                    self.attempts[entry["token"]].setdefault("progress", []).append(entry)
            gone = [t for t, a in self.attempts.items() if not a["open"] and a["session"] is session]
            lost += [token for token in gone if not self.attempts[token].get("reported")]
            news = self._news(session)
            for token in news["cancel"]:
                self.attempts[token]["told"] = True
            resync = "held" in body and body["held"] != len(open_here) and "tokens" not in body
            self.changed.notify_all()
            return {**news, "lost": sorted(set(lost)), "lease": self.lease, "resync": resync}

    def _report(self, path: str, body: Any) -> Any:
        with self.changed:
            self._session(path)
            results: list[dict[str, Any]] = []
            for report in body["reports"]:
                attempt = self.attempts.get(report["token"])
                again = attempt is not None and attempt.get("reported") == report["outcome"]
                if again:
                    results.append({"status": "accepted"})
                elif attempt is None or not attempt["open"]:
                    results.append({"error": Refusal(409, "stale_token").body()})
                else:
                    attempt["open"], attempt["reported"] = False, report["outcome"]
                    if report["outcome"] == "released" and self.requeue:
                        self.queue.append(attempt["job"])
                    self._add_lines(report["token"], report.get("logs"))
                    document = {**report, "job_id": attempt["job"]["id"], "number": attempt["number"]}
                    self.reports.append(document)
                    results.append({"status": "accepted", "job_status": "completed"})
            self.changed.notify_all()
            return {"results": results}

    def _logs(self, path: str, body: Any) -> Any:
        with self.changed:
            self._session(path)
            for entry in body["logs"]:
                self._add_lines(entry["token"], entry)
            self.changed.notify_all()
            return {"results": [{"status": "accepted"} for _ in body["logs"]]}

    def _add_lines(self, token: str, entry: Any) -> None:
        if not entry:
            return
        lines = self.logs.setdefault(self.attempts[token]["job"]["id"], [])
        assert entry["first"] <= len(lines), "a gap in the numbers of the lines"
        lines.extend(entry["lines"][len(lines) - entry["first"] :])

    def _leave(self, path: str, body: Any) -> Any:
        with self.changed:
            session = self._session(path)
            worker_id = path.partition("?")[0].split("/")[4]
            del self.sessions[worker_id]
            self.left.append((worker_id, path.partition("reason=")[2]))
            for attempt in self.attempts.values():
                if attempt["session"] is session and attempt["open"]:
                    attempt["open"] = False
                    self.queue.append(attempt["job"])
            self.changed.notify_all()
            return None

    def _once_begin(self, path: str, body: Any) -> Any:
        token, key = path.split("/")[4], path.split("/")[6]
        with self.changed:
            attempt = self.attempts[token]
            if not attempt["open"]:
                raise Refusal(409, "stale_token")
            name = key if body["scope"] == "tenant" else f"{attempt['job']['id']}:{key}"
            entry = self.once.setdefault(name, {"token": token, "state": "first"})
            attempt.setdefault("once", {})[key] = name
            if entry["state"] == "done":
                return {"state": "done", "result": entry["result"]}
            if entry["token"] == token:
                return {"state": "first"}
            if self.attempts[entry["token"]]["open"]:
                return {"state": "busy", "retry_in": "50ms"}
            entry["token"] = token
            return {"state": "in_doubt"}

    def _once_done(self, path: str, body: Any) -> Any:
        token, key = path.split("/")[4], path.split("/")[6]
        with self.changed:
            if not self.attempts[token]["open"]:
                raise Refusal(409, "stale_token")
            self.once[self.attempts[token]["once"][key]].update(state="done", result=body["result"])
        return None

    def _once_abandon(self, path: str, body: Any) -> Any:
        token, key = path.split("/")[4], path.split("/")[6]
        with self.changed:
            self.once.pop(self.attempts[token]["once"][key], None)
        return None
