"""A server that starts on a store: how long until it calls a job that is due already, and how much memory it takes."""

import contextlib
import json
import re
import socket
import threading
import time
import urllib.request
from pathlib import Path

from . import servers

DUE_IN_S = 1
CALL_S_MAX = 60
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Endpoint:
    """An endpoint that is called once and records when."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(CALL_S_MAX)
        self.port = self.listener.getsockname()[1]
        self.called_at = None
        self.thread = threading.Thread(target=self.answer, daemon=True)
        self.thread.start()

    def answer(self):
        with contextlib.suppress(OSError), self.listener.accept()[0] as connection:
            self.called_at = time.monotonic()
            connection.recv(65536)
            connection.sendall(ANSWER)

    def wait(self):
        self.thread.join()
        self.listener.close()
        if self.called_at is None:
            raise TimeoutError(f"the job that was due was not called within {CALL_S_MAX} s")
        return self.called_at


def restart(on, work):
    """Measures the time to the first start and, after `work(address)`, the memory of the server."""

    def ask():
        with on() as store:
            endpoint = Endpoint()
            leave_a_due_job(store, endpoint.port)
            begun = time.monotonic()
            with servers.tickwheel(store) as server:
                first_start_s = endpoint.wait() - begun
                if first_start_s < 0:
                    raise ValueError("the job was called before the server was started again")
                work(server.address)
                return {"first_start_s": first_start_s, **memory(server.pid)}

    return ask


def leave_a_due_job(store, port):
    """A server accepts a job and is killed before it is due; then the job comes due."""
    job = {"type": "bench", "delay": f"{DUE_IN_S}s", "target": {"http": {"url": f"http://127.0.0.1:{port}/"}}}
    with servers.tickwheel(store) as server:
        submission = urllib.request.Request(f"http://{server.address}/api/v1/jobs", json.dumps(job).encode())
        submission.add_header("content-type", "application/json")
        urllib.request.urlopen(submission, timeout=10).close()
        due_at = time.monotonic() + DUE_IN_S
    time.sleep(max(0, due_at - time.monotonic()))


def memory(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    mib = lambda name: int(re.search(rf"{name}:\s*(\d+) kB", status)[1]) / 1024
    return {"resident_mib": mib("VmRSS"), "peak_mib": mib("VmHWM")}
