"""Reading a run of very many tasks over HTTP. Its first tasks wait in a paused queue, so that it does not change."""

import json
import time
import urllib.request

from . import servers
from .asking import spread

LAYERS, PARENTS = 10, 10
READS = 20
ANSWER_S_MAX = 60


def read_run(on, tasks):
    """Measures the time from the request to the last byte of the answer."""

    def ask():
        with on() as store, servers.tickwheel(store) as server:
            call(server, "/queues/default/pause", {})
            call(server, "/workflows", {"name": "large", "tasks": layered(tasks)})
            run = json.loads(call(server, "/workflows/large/runs", {}))
            samples_ms = []
            for _ in range(READS):
                begun = time.monotonic()
                answer = call(server, f"/workflow-runs/{run['id']}")
                samples_ms.append(1000 * (time.monotonic() - begun))
            if len(json.loads(answer)["tasks"]) != tasks:
                raise ValueError("the answer does not have all tasks")
            return {"read_ms": spread(samples_ms)["p50"], "answer_bytes": len(answer)}

    return ask


def layered(tasks):
    """As `tickwheel bench` makes it: each task depends on ten adjacent tasks of the layer before."""
    width = tasks // LAYERS
    job = {"type": "bench", "target": {"http": {"url": "http://127.0.0.1:9/"}}}
    parents = lambda number: [f"t{(number // width - 1) * width + (number + step) % width}" for step in range(PARENTS)]
    return [
        {"name": f"t{number}", "job": job, "depends_on": parents(number) if number >= width else []}
        for number in range(tasks)
    ]


def call(server, path, document=None):
    body = None if document is None else json.dumps(document).encode()
    request = urllib.request.Request(f"http://{server.address}/api/v1{path}", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=ANSWER_S_MAX) as answer:
        return answer.read()
