"""A whole worker for Tickwheel in about 50 lines, on nothing but Python's standard library.

It registers, polls, runs one job at a time, sends heartbeats meanwhile, and reports. It does not repeat lost answers,
drain or keep logs: the libraries do. Try it:

    python minimal_worker.py http://127.0.0.1:7180 &
    tickwheel jobs submit greet --payload '{"name": "Ada"}'
"""

import json
import sys
import threading
import time
import urllib.error
import urllib.request

server = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:7180"


def call(path, body):
    request = urllib.request.Request(server + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=40) as answer:
        return json.load(answer)


def greet(payload):
    return {"greeting": f"Hello, {payload['name']}!"}


handlers = {"greet": greet}


def heartbeats(session, every):
    while True:
        time.sleep(every)
        call(f"{session}/heartbeat", {"attempts": []})


def run(job):
    try:
        return {"outcome": "completed", "result": handlers[job["type"]](job["payload"])}
    except Exception as error:
        return {"outcome": "failed", "error": {"code": "error", "message": repr(error)}}


registered = call("/api/v1/workers", {"name": "minimal", "types": list(handlers), "lease": "30s"})
session = f"/api/v1/workers/{registered['worker_id']}"
threading.Thread(target=heartbeats, args=(session, 10), daemon=True).start()
while True:
    for given in call(f"{session}/poll", {"max": 1, "wait": "20s"})["jobs"]:
        call(f"{session}/report", {"reports": [{"token": given["token"]} | run(given["job"])]})
