"""One HTTP exchange with the server: addresses, key, timeouts, bounds, and answers turned into values or errors.

What is repeated, and how often, is decided elsewhere: by the client's `_send` and by the loops of a worker.
"""

from __future__ import annotations

import contextvars
import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

from ._settings import Connection
from .errors import TickwheelError, Unreachable, problem_from

ANSWER_BYTES_MAX = 64 * 1024 * 1024
API = "/api/v1"
CONNECT_S_MAX = 5.0


@dataclass(frozen=True)
class Request:
    """A request to send, before anybody knows to which address."""

    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=lambda: dict[str, str]())
    timeout_s: float = 30.0
    repeatable: bool = True
    """Whether sending it twice has the effect of sending it once."""


@dataclass(frozen=True)
class Answer:
    """An answer with a status of success, or 404 to 5xx as an error."""

    status: int
    body: Any


class NoAnswer(Unreachable):
    """The exchange broke off. `reused_connection`: the connection was an old one, which may just have ended."""

    def __init__(self, message: str, *, sent: bool, reused_connection: bool) -> None:
        super().__init__(message)
        self.sent, self.reused_connection = sent, reused_connection


class AnswerTooLarge(TickwheelError):
    """The answer is larger than anything the server should send."""


def _headers(connection: Connection, request: Request) -> dict[str, str]:
    headers = dict(request.headers)
    if request.body is not None or request.method == "POST":
        headers["content-type"] = "application/json"
    if connection.key.value is not None:
        headers["authorization"] = f"Bearer {connection.key.value}"
    return headers


_ours: contextvars.ContextVar[bool] = contextvars.ContextVar("tickwheel_exchange", default=False)


class _Quiet(logging.Filter):
    """Keeps the HTTP client from logging our requests: their addresses contain tokens."""

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002 - the signature is logging's
        return not _ours.get()


for _name in ("httpx2", "httpcore2.connection", "httpcore2.http11"):
    logging.getLogger(_name).addFilter(_Quiet())


class _Trace:
    """Learns whether a request opened a connection and whether its body went out."""

    def __init__(self) -> None:
        self.connected = self.sent = False

    def __call__(self, event: str, _: Any) -> None:
        if event == "connection.connect_tcp.started":
            self.connected = True
        elif event.endswith("send_request_headers.started"):
            self.sent = True

    async def later(self, event: str, info: Any) -> None:
        self(event, info)

    def no_answer(self, error: Exception) -> NoAnswer:
        text = str(error) or type(error).__name__
        broken = isinstance(error, (httpx2.NetworkError, httpx2.RemoteProtocolError))
        return NoAnswer(text, sent=self.sent, reused_connection=self.sent and not self.connected and broken)


def _timeout(request: Request) -> httpx2.Timeout:
    return httpx2.Timeout(request.timeout_s, connect=min(CONNECT_S_MAX, request.timeout_s))


def _answer(status: int, headers: httpx2.Headers, content: bytes) -> Answer:
    try:
        body = json.loads(content) if content else None
    except ValueError:
        body = None
    if status < 400:
        return Answer(status, body)
    raise problem_from(status, body, _retry_after(headers.get("retry-after")))


def _retry_after(text: str | None) -> float | None:
    try:
        return max(0.0, min(float(text), 3600.0)) if text else None
    except ValueError:
        return None


class AsyncTransport:
    """Exchanges on the event loop it was made in."""

    def __init__(self, connection: Connection, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        self.connection = connection
        # Proxies and other settings of the environment are not looked at: the heartbeater could not follow them.
        self._http = httpx2.AsyncClient(
            verify=connection.verify() if transport is None else True, trust_env=False, transport=transport
        )

    async def exchange(self, request: Request) -> Answer:
        """Sends a request. Raises a `Problem`, `NoAnswer`, or `AnswerTooLarge`."""
        quiet = _ours.set(True)
        address = self.connection.addresses.current
        trace = _Trace()
        try:
            sent = self._http.build_request(
                request.method,
                address + request.path,
                content=request.body,
                headers=_headers(self.connection, request),
                timeout=_timeout(request),
                extensions={"trace": trace.later},
            )
            response = await self._http.send(sent, stream=True)
            try:
                content = bytearray()
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > ANSWER_BYTES_MAX:
                        raise AnswerTooLarge(f"the answer to {request.path} is over {ANSWER_BYTES_MAX} bytes")
            finally:
                await response.aclose()
        except httpx2.TransportError as error:
            self.connection.addresses.advance(address)
            raise trace.no_answer(error) from error
        finally:
            _ours.reset(quiet)
        return _answer(response.status_code, response.headers, bytes(content))

    async def close(self) -> None:
        await self._http.aclose()


class SyncTransport:
    """Exchanges that block. A process that was forked gets connections of its own."""

    def __init__(self, connection: Connection, transport: httpx2.BaseTransport | None = None) -> None:
        self.connection = connection
        self._transport = transport
        self._pid = -1
        self._client: httpx2.Client | None = None

    def _http(self) -> httpx2.Client:
        if self._client is None or self._pid != os.getpid():
            # The parent's connections are left alone: closing them here would end them there.
            verify = self.connection.verify() if self._transport is None else True
            self._client = httpx2.Client(verify=verify, trust_env=False, transport=self._transport)
            self._pid = os.getpid()
        return self._client

    def exchange(self, request: Request) -> Answer:
        """Sends a request. Raises a `Problem`, `NoAnswer`, or `AnswerTooLarge`."""
        quiet = _ours.set(True)
        address = self.connection.addresses.current
        trace = _Trace()
        try:
            sent = self._http().build_request(
                request.method,
                address + request.path,
                content=request.body,
                headers=_headers(self.connection, request),
                timeout=_timeout(request),
                extensions={"trace": trace},
            )
            response = self._http().send(sent, stream=True)
            try:
                content = bytearray()
                for chunk in response.iter_bytes():
                    content += chunk
                    if len(content) > ANSWER_BYTES_MAX:
                        raise AnswerTooLarge(f"the answer to {request.path} is over {ANSWER_BYTES_MAX} bytes")
            finally:
                response.close()
        except httpx2.TransportError as error:
            self.connection.addresses.advance(address)
            raise trace.no_answer(error) from error
        finally:
            _ours.reset(quiet)
        return _answer(response.status_code, response.headers, bytes(content))

    def close(self) -> None:
        if self._client is not None and self._pid == os.getpid():
            self._client.close()
            self._client = None
