"""The worker of 50 lines works."""

import subprocess
import sys

import pytest

from harness.program import CONFORMANCE, ROOT
from harness.world import World


@pytest.fixture
def world(tmp_path):
    world = World("reference", tmp_path)
    world.start_server()
    yield world
    world.finish(failed=False)


def test_the_minimal_worker_greets(world):
    host, port = world.server.address()
    worker = subprocess.Popen([sys.executable, str(CONFORMANCE / "minimal_worker.py"), f"http://{host}:{port}"])
    try:
        assert world.completed(world.submit("greet", {"name": "Ada"}))["result"] == {"greeting": "Hello, Ada!"}
        failed = world.api.ended(world.submit("greet", {}, retry={"max_retries": 0}))
        assert (failed["status"], failed["error"]["message"]) == ("failed", "KeyError('name')")
    finally:
        worker.kill()
        worker.wait()


def test_it_is_short():
    assert len((CONFORMANCE / "minimal_worker.py").read_text().splitlines()) <= 60


def test_the_guide_shows_it():
    program = (CONFORMANCE / "minimal_worker.py").read_text().split('"""\n\n', 1)[1]
    guide = (ROOT / "docs/guide/workers.md").read_text()
    assert f"```python\n{program}```\n" in guide
