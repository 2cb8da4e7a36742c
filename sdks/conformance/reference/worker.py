"""The worker side of the protocol: a session, its threads, and the rules of SDKS.md that the cases look at.

Handlers run on the main thread's event loop. Polling, heartbeats, reports and logs have a thread and a connection each.
There is no child process for heartbeats: native code that keeps the interpreter's lock starves them.
"""

import asyncio
import http.server
import json
import logging
import os
import random
import re
import signal
import sys
import threading
import time
import traceback
import uuid

from .wire import Away, Problem, Wire, seconds

log = logging.getLogger("reference")
now = time.monotonic

LOG_BYTES_MAX = 256 * 1024
REPORTS_WAITING_MAX = 10_000
CANCEL_GRACE = 5.0
LEAVE_AFTER = 3.0
CANCELLED_AS = {"requested": "cancelled", "shutdown": "released", "lease_lost": "released"}


class Failure(Exception):
    """How a handler says more than that it failed."""

    def __init__(self, text, code=None, retryable=True, delay=None, snooze=False):
        super().__init__(text)
        self.code, self.retryable, self.delay, self.snooze = code, retryable, delay, snooze


class Settings:
    """From the environment. All mistakes are reported together."""

    def __init__(self, env=os.environ):
        mistakes = []

        def read(name, default, parse):
            text = env.get(f"TICKWHEEL_{name}", default)
            try:
                return parse(text) if text is not None else None
            except ValueError as error:
                mistakes.append(f"TICKWHEEL_{name}: {error}")

        def capacity(text):
            if not 1 <= int(text) <= 100_000:
                raise ValueError("must be from 1 to 100000")
            return int(text)

        def lease(text):
            if not 5 <= seconds(text) <= 600:
                raise ValueError("must be from 5s to 10m")
            return text

        self.servers = read("SERVER", "http://127.0.0.1:7180", lambda text: text.split(","))
        self.name = read("WORKER_NAME", "reference", str)
        self.queues = read("QUEUES", "default", lambda text: text.split(","))
        self.labels = read("LABELS", None, json.loads)
        self.capacity = read("CAPACITY", "10", capacity)
        self.lease = read("LEASE", None, lease)
        self.drain_timeout = read("DRAIN_TIMEOUT", "25s", seconds)
        self.health_port = read("HEALTH_PORT", None, int)
        self.key, self.key_file = env.get("TICKWHEEL_API_KEY"), env.get("TICKWHEEL_API_KEY_FILE")
        if mistakes:
            sys.exit_reason = "; ".join(mistakes)
            log.error("bad options: %s", sys.exit_reason)
            raise SystemExit(2)

    def read_key(self):
        if self.key_file:
            with open(self.key_file, encoding="utf-8") as file:
                return file.read().strip()
        return self.key

    def wire(self):
        return Wire(self.servers, self.read_key)


class Attempt:
    """A job in our hands, from its arrival until its report was accepted or it was lost."""

    def __init__(self, worker, given):
        self.worker, self.token, self.job = worker, given["token"], given["job"]
        self.number, self.fencing_token = given["attempt"], given["fencing_token"]
        self.traceparent = given.get("traceparent")
        self.deadline = now() + seconds(given["deadline_in"])
        self.task, self.reason, self.cancelled_at = None, None, None
        self.news, self.lost, self.stuck, self.ended = None, False, False, False
        self.lines, self.first, self.bytes, self.dropped = [], 0, 0, 0
        self.lock = threading.Lock()

    def progress(self, percent, message):
        self.news = {"token": self.token, "progress": percent, "message": message}

    def log(self, text):
        with self.lock:
            self.lines.append((now(), text))
            self.bytes += len(text)
            while self.bytes > LOG_BYTES_MAX:
                self.bytes -= len(self.lines.pop(0)[1])
                self.first += 1
                self.dropped += 1

    def unsent(self, last=False):
        """The lines nobody has confirmed, at most 64 KiB unless they are the last, and how many they are."""
        with self.lock:
            lines, size = [], 0
            if last and self.dropped:
                self.lines.append((now(), f"{self.dropped} lines were dropped here"))
                self.dropped = 0
            for at, text in self.lines:
                if size > (512 if last else 64) * 1024:
                    break
                lines.append({"age": f"{int((now() - at) * 1000)}ms", "level": "info", "message": text})
                size += len(text)
            return {"first": self.first, "lines": lines} if lines else None

    def confirm(self, sent):
        with self.lock:
            count = max(0, sent["first"] + len(sent["lines"]) - self.first)
            self.bytes -= sum(len(text) for _, text in self.lines[:count])
            del self.lines[:count]
            self.first += count

    async def once(self, key, effect, scope="job", in_doubt="again"):
        path = f"/api/v1/attempts/{self.token}/once/{key}"
        idempotency_key = f"{self.job['id']}:{key}"
        call = self.worker.call_once
        while True:
            answer = await call(path, {"scope": scope})
            if answer["state"] == "done":
                return answer["result"]
            if answer["state"] == "in_doubt" and in_doubt == "fail":
                raise Failure(f"nobody knows whether {key} happened", code="in_doubt", retryable=False)
            if answer["state"] != "busy":
                break
            await asyncio.sleep(seconds(answer.get("retry_in") or "100ms"))
        try:
            result = await effect(idempotency_key)
        except Exception:
            await call(f"{path}/abandon", {"scope": scope})
            raise
        await call(f"{path}/done", {"result": result, "scope": scope})
        return result


class Worker:
    def __init__(self, handlers, batch_handlers=None, checks=None, slots=None, on_lease_lost=None, not_retryable=()):
        self.settings = Settings()
        self.handlers, self.batch_handlers = handlers, batch_handlers or {}
        self.checks, self.slots = checks or {}, slots or {}
        self.on_lease_lost, self.not_retryable = on_lease_lost or {}, not_retryable
        self.held, self.reports, self.batches = {}, [], {}
        self.lock = threading.RLock()
        self.wake_reports, self.wake_heartbeat = threading.Event(), threading.Event()
        self.session, self.seq, self.signals = None, 0, 0
        self.draining_by_hand, self.stopped = False, False
        self.heard_at, self.polled_at, self.resync = now(), now(), False
        self.poll_wire, self.polling_with, self.polling_without = None, None, False
        self.turned_at, self.blocked = now(), False
        self.instance = str(uuid.uuid4())

    @property
    def draining(self):
        return self.signals > 0

    # The session.

    def run(self):
        asyncio.run(self._main())

    async def _main(self):
        self.loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            self.loop.add_signal_handler(number, self._signalled)
        self.health()
        registered = self.loop.run_in_executor(None, self._register_first)
        while not registered.done():
            await asyncio.sleep(0.02)
            if self.draining:
                return
        registered.result()
        for job in (self._poll_for_ever, self._heartbeat_for_ever, self._report_for_ever, self._log_for_ever):
            threading.Thread(target=job, daemon=True).start()
        await self._watch()
        log.info("drained")

    def _signalled(self):
        self.signals += 1
        if self.signals >= 3:
            os._exit(130)
        log.info("draining")
        self.abort_poll()

    def _register_first(self):
        wire = self.settings.wire()
        pause = 0.1
        while True:
            try:
                info = wire.call("GET", "/api/v1/server")
                if not info["worker_protocol"]["min"] <= 1 <= info["worker_protocol"]["max"]:
                    log.error("refused by the server: protocol 1 is not supported, only %s", info["worker_protocol"])
                    os._exit(2)
                return self._register(wire)
            except Problem as problem:
                if problem.status in (401, 403, 422):
                    log.error("refused by the server: %s", problem)
                    os._exit(2)
            except Away:
                pass
            time.sleep(random.uniform(0, pause))
            pause = min(1.0, pause * 2)

    def _register(self, wire):
        settings = self.settings
        body = {"name": settings.name, "queues": settings.queues, "types": [*self.handlers, *self.batch_handlers],
                "capacity": settings.capacity, "protocol": 1, "library": "reference/0.1.0", "instance": self.instance,
                "pid": os.getpid()}
        body |= {"lease": settings.lease} if settings.lease else {}
        body |= {"labels": settings.labels} if settings.labels else {}
        sent = now()
        answer = wire.call("POST", "/api/v1/workers", body)
        self.lease, self.interval = seconds(answer["lease"]), seconds(answer["heartbeat_interval"])
        self.poll_wait = answer["poll_wait"]
        self.heard_at, self.polled_at = sent, now()
        self.session = f"/api/v1/workers/{answer['worker_id']}"
        log.info("registered as %s, lease %s", answer["worker_id"], answer["lease"])

    def _session_gone(self, session):
        """404: nothing we held is ours any more."""
        with self.lock:
            if self.session != session:
                return
            log.error("lease lost: the server does not know this session")
            self._lose(list(self.held))
            self.instance, self.seq = str(uuid.uuid4()), 0
            wire = self.settings.wire()
            while not self.stopped:
                time.sleep(random.uniform(0, 1))
                try:
                    return self._register(wire)
                except (Away, Problem):
                    continue

    def _lose(self, tokens):
        with self.lock:
            for token in tokens:
                attempt = self.held.pop(token, None)
                if attempt:
                    attempt.lost = True
                    log.error("lease lost: %s", attempt.job["id"])
                    self.cancel(attempt, "lease_lost")

    def _obey(self, answer):
        self._lose(answer["lost"])
        for token in answer["cancel"]:
            if token in self.held:
                self.cancel(self.held[token], "requested")
        if answer["drain"] != self.draining_by_hand:
            self.draining_by_hand = answer["drain"]
            self.abort_poll()

    # Polling.

    def free(self):
        with self.lock:
            running = sum(1 for attempt in self.held.values() if not attempt.ended)
            waiting = len(self.reports)
        if waiting >= REPORTS_WAITING_MAX or self.draining_by_hand:
            return 0
        return max(0, self.settings.capacity - running)

    def abort_poll(self):
        """A poll that asks for less than there is room for by now is asked again."""
        if self.poll_wire and (self.polling_with == 0 or self.polling_without or self.draining):
            self.poll_wire.abort()

    def _poll_for_ever(self):
        self.poll_wire, pause, again = self.settings.wire(), 0.1, False
        while not self.draining:
            session, self.polling_with = self.session, self.free()
            self.polled_at = asked_at = now()
            if not again:
                self.seq += 1
            body = {"max": min(self.polling_with, 1000), "seq": self.seq, "wait": self.poll_wait}
            if self.slots:
                with self.lock:
                    busy = [attempt.job["type"] for attempt in self.held.values() if not attempt.ended]
                body["slots"] = {kind: max(0, count - busy.count(kind)) for kind, count in self.slots.items()}
                self.polling_without = 0 in body["slots"].values()
            try:
                answer = self.poll_wire.call("POST", f"{session}/poll", body, timeout=seconds(self.poll_wait) + 10)
                pause, again = 0.1, False
            except Away:
                again = self.polling_with > 0
                if self.polling_with > 0 and not self.polling_without:
                    time.sleep(random.uniform(0, pause))
                    pause = min(5.0, pause * 2)
                else:
                    time.sleep(0.01)
                continue
            except Problem as problem:
                if problem.status == 404:
                    self._session_gone(session)
                else:
                    time.sleep(1.0)
                again = False
                continue
            late = now() - asked_at > seconds(self.poll_wait) + self.interval
            self._arrived(answer, late)
            if not answer["jobs"] and now() - asked_at < 0.05:
                time.sleep(0.05)

    def _arrived(self, answer, late):
        attempts = [Attempt(self, given) for given in answer["jobs"]]
        with self.lock:
            self.held |= {attempt.token: attempt for attempt in attempts}
        self._obey(answer)
        if late:
            self.resync = True
            self._heartbeat_once(self.settings.wire())
        for attempt in attempts:
            if attempt.lost:
                continue
            if self.draining:
                attempt.ended = True
                self.report(attempt, {"outcome": "released"})
            else:
                self.loop.call_soon_threadsafe(self._start, attempt)

    # Handlers.

    def _start(self, attempt):
        kind, payload = attempt.job["type"], attempt.job["payload"]
        wrong = self.checks.get(kind, lambda _: None)(payload)
        if wrong:
            attempt.ended = True
            self.report(attempt, failed(wrong, "invalid_payload", False))
        elif kind in self.batch_handlers:
            self.batches.setdefault(kind, []).append(attempt)
            function, jobs_max, wait_max = self.batch_handlers[kind]
            if len(self.batches[kind]) >= jobs_max:
                self._start_batch(kind)
            elif len(self.batches[kind]) == 1:
                self.loop.call_later(wait_max, self._start_batch, kind)
        else:
            attempt.task = self.loop.create_task(self._run(attempt))

    async def _run(self, attempt):
        started = now()
        try:
            result = await self.handlers[attempt.job["type"]](attempt.job["payload"], attempt)
            report = completed(result)
        except asyncio.CancelledError:
            reason = attempt.reason
            if reason is None:
                report = failed("cancelled by itself", "cancelled_error", True)
            elif reason == "deadline":
                report = failed("the deadline has passed", "timed_out", True)
            else:
                report = {"outcome": CANCELLED_AS[reason]}
        except BaseException as error:
            report = self._failed_by(error)
            if report["outcome"] == "failed":
                log.warning("attempt failed: %r, attempt %d of %s", error, attempt.number, attempt.job["id"])
        self._finish(attempt, report, started)

    def _finish(self, attempt, report, started):
        attempt.ended = True
        if not attempt.lost:
            self.report(attempt, report | {"ran": f"{int((now() - started) * 1000)}ms"})
        self.abort_poll()

    def _failed_by(self, error):
        if isinstance(error, Failure) and error.snooze:
            return {"outcome": "snoozed", "delay": error.delay}
        code = getattr(error, "code", None) if isinstance(error, Failure) else None
        retryable = error.retryable if isinstance(error, Failure) else not isinstance(error, self.not_retryable)
        name = type(error).__name__
        report = failed(str(error), code or snake_case(name), retryable)
        report["error"] |= {"type": name, "stack": "".join(traceback.format_exception(error))[-16384:]}
        return report | ({"delay": error.delay} if getattr(error, "delay", None) else {})

    def _start_batch(self, kind):
        attempts = self.batches.pop(kind, [])
        if attempts:
            self.loop.create_task(self._run_batch(kind, attempts))

    async def _run_batch(self, kind, attempts):
        started = now()
        try:
            answers = await self.batch_handlers[kind][0]([attempt.job["payload"] for attempt in attempts])
            if len(answers) != len(attempts):
                reports = [failed("one entry per job is needed", "batch_result_mismatch", True) for _ in attempts]
            else:
                reports = [self._failed_by(answer) if isinstance(answer, BaseException) else completed(answer)
                           for answer in answers]
        except Exception as error:
            reports = [self._failed_by(error) for _ in attempts]
        for attempt, report in zip(attempts, reports):
            self._finish(attempt, report, started)

    def cancel(self, attempt, reason):
        if attempt.reason is None and not attempt.ended:
            attempt.reason, attempt.cancelled_at = reason, now()
            if attempt.task:
                self.loop.call_soon_threadsafe(attempt.task.cancel)

    async def _watch(self):
        """Deadlines, leases and the way out."""
        drain_ends, leave_at = None, None
        while True:
            await asyncio.sleep(0.05)
            self.turned_at, self.blocked = now(), False
            with self.lock:
                running = [attempt for attempt in self.held.values() if not attempt.ended]
            self._check(running)
            if not self.draining:
                continue
            drain_ends = drain_ends or now() + self.settings.drain_timeout
            if running and (now() > drain_ends or self.signals > 1):
                for attempt in running:
                    self.cancel(attempt, "shutdown")
                leave_at = leave_at or now() + LEAVE_AFTER
            if (not running and not self.reports) or (leave_at and now() > leave_at):
                break
        self.stopped = True
        try:
            self.settings.wire().call("DELETE", f"{self.session}?reason=drained", timeout=2.0)
        except (Away, Problem):
            pass

    def _check(self, running):
        provable_until = self.heard_at + self.lease - max(1.0, self.lease / 10)
        for attempt in running:
            if now() > attempt.deadline:
                self.cancel(attempt, "deadline")
            if now() > provable_until and self.on_lease_lost.get(attempt.job["type"]) != "continue":
                if attempt.reason is None:
                    log.error("lease lost: %s cannot be proven", attempt.job["id"])
                self.cancel(attempt, "lease_lost")
            if attempt.cancelled_at and now() > attempt.cancelled_at + CANCEL_GRACE and not attempt.stuck:
                attempt.stuck = True
                log.warning("slot stuck: %s, %s", attempt.job["type"], attempt.job["id"])

    # Heartbeats, reports, logs, once.

    def _heartbeat_for_ever(self):
        wire, failures = self.settings.wire(), 0
        while not self.stopped:
            pause = self.interval * random.uniform(0.9, 1.0) if not failures else min(1.0, 0.25 * 2 ** (failures - 1))
            end = now() + pause
            while now() < end and not self.resync:
                time.sleep(min(0.1, max(0.0, end - now())))
                self._warn_if_blocked()
                with self.lock:
                    if now() > self.heard_at + 1.0 and any(attempt.news for attempt in self.held.values()):
                        break
            failures = 0 if self._heartbeat_once(wire) else failures + 1

    def _warn_if_blocked(self):
        if now() - self.turned_at > 1.0 and not self.blocked:
            self.blocked = True
            with self.lock:
                running = {attempt.job["type"] for attempt in self.held.values() if attempt.task and not attempt.ended}
            log.warning("main loop blocked for over 1 s, by one of: %s", ", ".join(sorted(running)))

    def _heartbeat_once(self, wire):
        session, sent = self.session, now()
        with self.lock:
            attempts = list(self.held.values())
            news = [attempt.news for attempt in attempts if attempt.news][:1000]
            body = {"attempts": news, "held": len(attempts), "stuck": sum(attempt.stuck for attempt in attempts),
                    "state": "draining" if self.draining else "active"}
            if self.resync:
                body["tokens"] = [attempt.token for attempt in attempts]
        try:
            answer = wire.call("POST", f"{session}/heartbeat", body, timeout=max(1.0, self.interval))
        except Away as away:
            log.warning("server away: %s", away)
            return False
        except Problem as problem:
            if problem.status == 404:
                self._session_gone(session)
                return True
            return False
        self.heard_at, self.resync = sent, answer["resync"]
        for attempt in attempts:
            if attempt.news in news:
                attempt.news = None
        self._obey(answer)
        return True

    def report(self, attempt, report):
        with self.lock:
            logs = attempt.unsent(last=True)
            self.reports.append((attempt, {"token": attempt.token} | report | ({"logs": logs} if logs else {})))
        self.wake_reports.set()

    def _report_for_ever(self):
        wire = self.settings.wire()
        while True:
            self.wake_reports.wait()
            with self.lock:
                batch, size = [], 0
                for attempt, report in self.reports[:1000]:
                    size += len(json.dumps(report))
                    if batch and size > 8 * 1024 * 1024:
                        break
                    batch.append((attempt, report))
                if not batch:
                    self.wake_reports.clear()
                    continue
            try:
                results = wire.call("POST", f"{self.session}/report", {"reports": [report for _, report in batch]})["results"]
            except (Away, Problem):
                time.sleep(random.uniform(0.05, 0.5))
                continue
            self._reported(batch, results)

    def _reported(self, batch, results):
        with self.lock:
            del self.reports[:len(batch)]
            for (attempt, _), result in zip(batch, results):
                if "error" in result:
                    log.warning("report refused: %s for %s", result["error"]["code"], attempt.job["id"])
                    if result["error"]["code"] == "result_too_large":
                        self.report(attempt, failed(result["error"]["detail"], "result_too_large", False))
                        continue
                self.held.pop(attempt.token, None)

    def _log_for_ever(self):
        wire = self.settings.wire()
        while not self.stopped:
            time.sleep(0.25)
            with self.lock:
                attempts = [attempt for attempt in self.held.values() if not attempt.ended]
            unsent = [(attempt, lines) for attempt in attempts if (lines := attempt.unsent())]
            if not unsent:
                continue
            body = {"logs": [{"token": attempt.token} | lines for attempt, lines in unsent]}
            try:
                wire.call("POST", f"{self.session}/logs", body)
            except (Away, Problem):
                continue
            for attempt, lines in unsent:
                attempt.confirm(lines)

    async def call_once(self, path, body):
        while True:
            try:
                return await self.loop.run_in_executor(None, lambda: self.settings.wire().call("POST", path, body))
            except Away:
                await asyncio.sleep(0.1)
            except Problem as problem:
                raise Failure(str(problem), code=problem.code) from problem

    # Health.

    def health(self):
        if not self.settings.health_port:
            return
        worker = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                well = worker.session and now() < worker.heard_at + worker.lease and now() < worker.polled_at + 60
                self.send_response(200 if well else 503)
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", self.settings.health_port), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()


def completed(result):
    try:
        size = len(json.dumps(result, allow_nan=False))
    except (TypeError, ValueError) as error:
        return failed(str(error), "result_invalid", False)
    if size > 262_144 and len(json.dumps(result, ensure_ascii=False).encode("utf-8", "surrogatepass")) > 262_144:
        return failed("the result is larger than 256 KiB", "result_too_large", False)
    return {"outcome": "completed", "result": result}


def failed(text, code, retryable):
    return {"outcome": "failed", "error": {"code": code, "message": text}, "retryable": retryable}


def snake_case(name):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
