"""A client of the server's API that repeats nothing and hides nothing."""

import http.client
import json
import urllib.parse

from .waiting import PATIENCE, eventually

ENDED = {"completed", "failed", "cancelled"}


class Refused(Exception):
    """The server answered with a problem."""

    def __init__(self, status, problem):
        super().__init__(f"{status}: {problem}")
        self.status, self.problem = status, problem
        self.code = problem.get("code") if isinstance(problem, dict) else None


class Api:
    def __init__(self, address):
        self.address = address  # asked each time: a server may come back on another port

    def call(self, method, path, body=None, timeout=70.0, headers=None):
        """The status and the answer."""
        host, port = self.address()
        connection = http.client.HTTPConnection(host, port, timeout=timeout)
        try:
            data = None if body is None and method == "GET" else json.dumps(body if body is not None else {})
            connection.request(method, path, data, {"content-type": "application/json"} | (headers or {}))
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        try:
            return answer.status, json.loads(text) if text else None
        except ValueError:
            return answer.status, text.decode("utf-8", "replace")

    def get(self, path, **kwargs):
        return self._accepted(*self.call("GET", path, **kwargs))

    def post(self, path, body=None, **kwargs):
        return self._accepted(*self.call("POST", path, body, **kwargs))

    def put(self, path, body=None):
        return self._accepted(*self.call("PUT", path, body))

    @staticmethod
    def _accepted(status, answer):
        if status >= 400:
            raise Refused(status, answer)
        return answer

    # Jobs.

    def submit(self, job_type, payload=None, **options):
        return self.post("/api/v1/jobs", {"type": job_type, "payload": payload} | options)["id"]

    def submit_many(self, jobs):
        """The ids of jobs that must all be accepted."""
        ids = []
        for start in range(0, len(jobs), 10_000):
            results = self.post("/api/v1/jobs/batch", {"jobs": jobs[start:start + 10_000]})["results"]
            ids += [result["job"]["id"] for result in results]
        return ids

    def job(self, job_id):
        return self.get(f"/api/v1/jobs/{job_id}")

    def ended(self, job_id, within=PATIENCE):
        """The job, once it has ended."""

        def look():
            status, job = self.call("GET", f"/api/v1/jobs/{job_id}?wait=1s")
            return job if status == 200 and job["status"] in ENDED else None

        return eventually(f"job {job_id} to end", look, within)

    def status_is(self, job_id, status, within=PATIENCE):
        def look():
            job = self.job(job_id)
            return job if job["status"] == status else None

        return eventually(f"job {job_id} to be {status}", look, within)

    def cancel(self, job_id):
        return self.post(f"/api/v1/jobs/{job_id}/cancel")

    def attempts(self, job_id):
        """Its attempts, the first first."""
        items = self.get(f"/api/v1/jobs/{job_id}/attempts?limit=1000")["items"]
        return sorted(items, key=lambda attempt: attempt["number"])

    def outcomes(self, job_id):
        return [attempt["outcome"] for attempt in self.attempts(job_id)]

    def logs(self, job_id, attempt=1):
        """All lines of an attempt's log."""
        lines, cursor = [], None
        while True:
            query = {"limit": 1000} | ({"cursor": cursor} if cursor else {})
            path = f"/api/v1/jobs/{job_id}/attempts/{attempt}/logs?{urllib.parse.urlencode(query)}"
            page = self.get(path)
            lines += page["items"]
            cursor = page.get("next_cursor")
            if not cursor:
                return lines

    def list_all(self, path, **query):
        items, cursor = [], None
        while True:
            full = query | {"limit": 1000} | ({"cursor": cursor} if cursor else {})
            page = self.get(f"{path}?{urllib.parse.urlencode(full)}")
            items += page["items"]
            cursor = page.get("next_cursor")
            if not cursor:
                return items

    def dead_letter(self, job_id):
        """Its dead letter, or None."""
        return next((item for item in self.list_all("/api/v1/dead-letters") if item["job_id"] == job_id), None)

    def workers(self, name=None):
        items = self.get("/api/v1/workers?limit=1000")["items"]
        return [item for item in items if name is None or item["name"] == name]
