"""A worker by hand: what a case says to the server itself, without any program."""


class RawWorker:
    def __init__(self, api, name="raw", types=("echo", "once"), lease="5s"):
        self.api = api
        answer = api.post("/api/v1/workers", {"name": name, "types": list(types), "lease": lease, "capacity": 10})
        self.path = f"/api/v1/workers/{answer['worker_id']}"

    def take(self):
        """One job with its token."""
        return self.api.post(f"{self.path}/poll", {"max": 1, "wait": "5s"})["jobs"][0]

    def report(self, token, outcome, **fields):
        reports = [{"token": token, "outcome": outcome} | fields]
        return self.api.post(f"{self.path}/report", {"reports": reports})["results"][0]
