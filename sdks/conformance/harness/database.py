"""A database of its own for one case, on the server that scripts/with-servers.sh started."""

import os
import pathlib
import shutil
import subprocess
import urllib.parse
import uuid

VARIABLE = "TICKWHEEL_TEST_POSTGRES"


def is_available():
    return bool(os.environ.get(VARIABLE))


class Database:
    """Created at once. `url` may be changed to lead through a proxy."""

    def __init__(self):
        self.name = f"conformance_{uuid.uuid4().hex}"
        self.admin_url = os.environ[VARIABLE]
        parts = urllib.parse.urlsplit(self.admin_url)
        self.address = (parts.hostname, parts.port or 5432)
        self.url = parts._replace(path=f"/{self.name}").geturl()
        self._sql(f'CREATE DATABASE "{self.name}"')

    def url_through(self, port):
        parts = urllib.parse.urlsplit(self.url)
        user = f"{parts.username}@" if parts.username else ""
        return parts._replace(netloc=f"{user}127.0.0.1:{port}").geturl()

    def drop(self):
        self._sql(f'DROP DATABASE IF EXISTS "{self.name}" WITH (FORCE)')

    def _sql(self, sql):
        subprocess.run([_psql(), self.admin_url, "-qc", sql], check=True, capture_output=True, timeout=60)


def _psql():
    newest = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/psql"))
    return str(newest[-1]) if newest else shutil.which("psql")
