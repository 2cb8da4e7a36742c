"""HTTP with JSON on a connection that is kept, the way the protocol wants it: nothing is repeated here."""

import http.client
import json
import random
import re
import socket
import urllib.parse

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(text):
    """`"250ms"`, `"30s"`, `"1m30s"` or a number of seconds."""
    if isinstance(text, (int, float)):
        return float(text)
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is not a duration")
    return sum(float(number) * UNITS[unit] for number, unit in parts)


class Away(Exception):
    """No answer: it may have happened or not."""


class Problem(Exception):
    def __init__(self, status, problem):
        self.status = status
        self.code = problem.get("code") if isinstance(problem, dict) else None
        self.detail = problem.get("detail") if isinstance(problem, dict) else str(problem)
        super().__init__(f"{status} {self.code}: {self.detail}")


class Wire:
    """One connection to one of the servers; after a failure, to the next of them.

    `abort` may be called from another thread and makes a waiting call end with Away.
    """

    def __init__(self, servers, read_key):
        self.servers, self.at, self.read_key = servers, random.randrange(len(servers)), read_key
        self.connection, self.traceparent = None, None

    def call(self, method, path, body=None, timeout=10.0):
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        key = self.read_key()
        if key:
            headers["authorization"] = f"Bearer {key}"
        if self.traceparent:
            headers["traceparent"] = self.traceparent
        try:
            if self.connection is None:
                parts = urllib.parse.urlsplit(self.servers[self.at % len(self.servers)])
                self.connection = http.client.HTTPConnection(parts.hostname, parts.port or 80)
                self.connection.timeout = timeout
                self.connection.connect()
                self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connection.sock.settimeout(timeout)
            self.connection.request(method, path, data, headers)
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException, AttributeError) as error:
            self.close()
            self.at += 1
            raise Away(str(error)) from error
        if answer.will_close:
            self.close()
        parsed = json.loads(text) if text else None
        if answer.status >= 400:
            raise Problem(answer.status, parsed)
        return parsed

    def abort(self):
        connection = self.connection
        if connection is not None and connection.sock is not None:
            try:
                connection.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None
