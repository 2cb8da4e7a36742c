"""Celery on Redis: a prefork worker for every core, no result backend, many messages fetched ahead.

A delayed task is held in the worker's memory until its time. A task is acknowledged (gone from Redis) when it starts unless
`acks_late` is set; it is set, because ours is not gone either before it has ended.
"""

import logging
import os
import sys
import threading
import time
from datetime import datetime, timezone
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "shared"))

import redis
from celery import Celery
from measure import SERVER, main

logging.disable(logging.CRITICAL)

READY_S_MAX = 30

app = Celery("noop", broker=SERVER)
app.conf.update(
    task_ignore_result=True,
    task_acks_late=True,
    worker_prefetch_multiplier=500,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    worker_enable_remote_control=False,
    task_serializer="json",
)


class Peer:
    table = None
    starts = None

    def open(self):
        self.redis = redis.Redis.from_url(SERVER)

    def submit(self, jobs):
        with app.producer_pool.acquire() as producer:
            for payload, due in jobs:
                eta = due and datetime.fromtimestamp(due, timezone.utc)
                noop.apply_async((payload,), eta=eta, producer=producer)

    def work(self, starts):
        Peer.starts = starts
        up = threading.Event()
        up_at = []

        def on_ready(_):
            up_at.append(time.monotonic())
            up.set()

        worker = app.WorkController(
            pool_cls="prefork", concurrency=os.cpu_count(), without_mingle=True, without_gossip=True, ready_callback=on_ready
        )
        threading.Thread(target=worker.start, daemon=True).start()
        if not up.wait(READY_S_MAX):
            raise TimeoutError("the worker did not come up")
        return up_at[0]

    def unfinished(self):
        return self.redis.llen("celery") + self.redis.hlen("unacked")

    def close(self):
        pass


@app.task(name="noop")
def noop(payload):
    Peer.starts.note(payload)


main(Peer())
