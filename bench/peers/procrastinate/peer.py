"""procrastinate: one worker with many jobs at once; a notification wakes it for new jobs, a short poll finds delayed ones
(the default is every five seconds)."""

import asyncio
import logging
import sys
import threading
from datetime import datetime, timezone
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "shared"))

import procrastinate
from measure import SERVER, main

logging.disable(logging.CRITICAL)

POLL_S = 0.01
CONCURRENCY = 24

app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=SERVER, min_size=4, max_size=CONCURRENCY))


class Peer:
    table = "procrastinate_jobs"
    starts = None

    def open(self):
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self._wait(self._open())

    async def _open(self):
        await app.open_async()
        await app.schema_manager.apply_schema_async()

    def submit(self, jobs):
        self._wait(self._submit(jobs))

    async def _submit(self, jobs):
        """A batch has one time for all, so delayed jobs go one by one."""
        if all(due is None for _, due in jobs):
            await noop.batch_defer_async(*({"payload": payload} for payload, _ in jobs))
            return
        for payload, due in jobs:
            at = datetime.fromtimestamp(due, timezone.utc)
            await noop.configure(schedule_at=at).defer_async(payload=payload)

    def work(self, starts):
        Peer.starts = starts
        worker = app.run_worker_async(
            concurrency=CONCURRENCY, fetch_job_polling_interval=POLL_S, install_signal_handlers=False
        )
        asyncio.run_coroutine_threadsafe(worker, self.loop)

    def unfinished(self):
        query = "SELECT count(*) AS count FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
        return self._wait(app.connector.execute_query_one_async(query))["count"]

    def close(self):
        pass

    def _wait(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()


@app.task(name="noop")
async def noop(payload):
    Peer.starts.note(payload)


main(Peer())
