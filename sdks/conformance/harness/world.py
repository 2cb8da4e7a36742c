"""All that one case needs: a server, worker programs behind proxies, and the end of all of them."""

import json
import pathlib
import socket
import subprocess

from .database import Database
from .program import Program, libraries
from .proxy import Proxy
from .server import Server
from .waiting import PATIENCE, eventually

LEASE_S = 5.0


class World:
    def __init__(self, library, directory, store="sqlite"):
        self.library, self.store = library, store
        self.command = libraries()[library]["command"]
        self.directory = pathlib.Path(directory)
        self.programs, self.proxies, self.servers = [], [], []
        self.database = Database() if store == "postgres" else None
        self.server = None

    # What a case makes.

    def start_server(self, wait=True, **env):
        """The first one is `self.server`; another one on PostgreSQL is a second node on the same data."""
        url = self.database.url if self.database else None
        return self.add_server(url, wait, **env)

    def add_server(self, url, wait=True, **env):
        directory = self.directory / f"node-{len(self.servers)}"
        directory.mkdir()
        server = Server(directory, url, env)
        self.servers.append(server)
        self.server = self.server or server
        if wait:
            server.start()
        return server

    @property
    def api(self):
        return self.server.api

    def proxy(self, server=None):
        proxy = Proxy((server or self.server).address)
        self.proxies.append(proxy)
        return proxy

    def prepare_worker(self, name="worker", lease="5s", capacity=10, proxy=None, conformance=None, env=None, **settings):
        """A program behind a proxy of its own, not started. `settings`: further TICKWHEEL_… variables."""
        proxy = proxy or self.proxy()
        variables = {"server": proxy.url, "worker_name": name, "lease": lease, "capacity": capacity} | settings
        environment = {f"TICKWHEEL_{key.upper()}": str(value) for key, value in variables.items() if value is not None}
        environment |= {f"CONFORMANCE_{key.upper()}": str(value) for key, value in (conformance or {}).items()}
        program = Program(self.command, self.directory, name, environment | (env or {}))
        program.proxy = proxy
        self.programs.append(program)
        return program

    def worker(self, name="worker", within=PATIENCE, **settings):
        """A program that has registered and is polling."""
        program = self.prepare_worker(name, **settings).start()
        return self.await_polling(program, within)

    def await_polling(self, program, within=PATIENCE):
        def look():
            assert program.is_running(), f"{program.name} ended\n{program.log()[-3000:]}"
            return program.proxy.count("poll") > 0

        eventually(f"{program.name} to poll", look, within)
        return program

    def submit(self, job_type, payload=None, **options):
        return self.api.submit(job_type, payload, **options)

    def submit_by_program(self, action, parameters, proxy=None, conformance=None, within=60.0):
        """The answer of `PROGRAM submit ACTION`."""
        program = self.prepare_worker(f"submit-{len(self.programs)}", proxy=proxy, conformance=conformance)
        done = subprocess.run([*program.command, "submit", action], env=program.env, input=json.dumps(parameters),
                              capture_output=True, text=True, timeout=within)
        program.log_path.write_text(done.stderr)
        assert done.returncode == 0, f"submit {action} ended with {done.returncode}: {done.stderr[-3000:]}"
        return json.loads(done.stdout.splitlines()[-1])

    # What a case asks.

    def events(self, event=None, job_id=None, **fields):
        """Of all programs."""
        return [entry for program in self.programs for entry in program.events(event, job_id, **fields)]

    def await_events(self, count, event, job_ids=None, within=PATIENCE, programs=None):
        """`count` events of these jobs, by any of the programs."""
        wanted = set(job_ids) if job_ids is not None else None

        def look():
            found = [entry for program in programs or self.programs for entry in program.events(event)
                     if wanted is None or entry.get("job_id") in wanted]
            return found if len(found) >= count else None

        return eventually(f"{count} × {event}", look, within)

    def await_completed(self, job_ids, within=PATIENCE):
        return [self.completed(job_id, within) for job_id in job_ids]

    def completed(self, job_id, within=PATIENCE):
        job = self.api.ended(job_id, within)
        assert job["status"] == "completed", job
        return job

    def finish(self, failed):
        """Ends everything. Shows the logs if the case failed."""
        for program in self.programs:
            program.stop()
        for server in self.servers:
            server.stop()
        for proxy in self.proxies:
            proxy.close()
        if self.database:
            self.database.drop()
        if failed:
            for program in self.programs:
                print(f"--- {program.name}\n{program.log()[-6000:]}")
            for server in self.servers:
                print(f"--- server\n{server.log()[-4000:]}")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
