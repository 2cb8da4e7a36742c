"""Options, the world of a case, and the bookkeeping of what may fail for now."""

import contextlib
import fcntl
import fnmatch
import subprocess
import sys

import pytest

from harness import clock, database
from harness.program import CONFORMANCE, ROOT, libraries, tomllib
from harness.world import World

WORK = ROOT / "target/sdks/conformance"


def pytest_addoption(parser):
    parser.addoption("--library", action="append", default=[], help="a name of workers.toml; may be repeated")
    parser.addoption("--chaos", action="store_true", help="also the part of case 28 that takes ten minutes")
    parser.addoption("--no-setup", action="store_true", help="the worker programs are built already")


def chosen(config):
    return config.getoption("--library") or ["reference"]


def pytest_configure(config):
    is_controller = not hasattr(config, "workerinput")
    if not is_controller or config.getoption("--no-setup") or config.option.collectonly:
        return
    clock.build()
    for name in chosen(config):
        for step in libraries()[name]["setup"]:
            done = subprocess.run(step, cwd=ROOT)
            if done.returncode != 0:
                pytest.exit(f"{name}: {' '.join(step)} failed", returncode=1)


def pytest_generate_tests(metafunc):
    if "library" in metafunc.fixturenames:
        metafunc.parametrize("library", chosen(metafunc.config), scope="session")
    if "store" in metafunc.fixturenames:
        marks = {mark.name for mark in metafunc.definition.iter_markers()}
        stores = ["postgres"] if database.is_available() and marks & {"stores", "only_postgres"} else []
        metafunc.parametrize("store", stores if "only_postgres" in marks else ["sqlite", *stores], scope="session")


def pytest_collection_modifyitems(config, items):
    apart = {"only_postgres"} if not database.is_available() else set()
    apart |= {"chaos"} if not config.getoption("--chaos") else set()
    items[:] = [item for item in items
                if not any(item.get_closest_marker(name) for name in apart) and is_for_its_library(item)]
    items.sort(key=lambda item: -next((mark.args[0] for mark in item.iter_markers("seconds")), 5))
    entries = tomllib.loads((CONFORMANCE / "not-yet.toml").read_text()).get("not_yet", [])
    for item in items:
        parameters = getattr(item, "callspec", None).params if hasattr(item, "callspec") else {}
        for entry in entries:
            wanted = (entry["case"], entry["library"], entry.get("store", "*"))
            actual = (item.name, parameters.get("library", ""), parameters.get("store", ""))
            if all(fnmatch.fnmatch(value, pattern) for value, pattern in zip(actual, wanted)):
                item.add_marker(pytest.mark.xfail(reason=entry["reason"], strict=True))


def is_for_its_library(item):
    only = item.get_closest_marker("only_libraries")
    return only is None or item.callspec.params["library"] in only.args


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    setattr(item, f"report_{call.when}", outcome.get_result())


@contextlib.contextmanager
def alone(item):
    """Holds the lock of the heavy cases, if this is one of them."""
    if item.get_closest_marker("heavy") is None:
        yield
        return
    WORK.mkdir(parents=True, exist_ok=True)
    with open(WORK / "heavy.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture
def bare_world(request, library, store, tmp_path):
    """Nothing is started yet."""
    with alone(request.node):
        world = World(library, tmp_path, store)
        try:
            yield world
        finally:
            report = getattr(request.node, "report_call", None)
            world.finish(failed=report is None or report.failed)


@pytest.fixture
def world(bare_world):
    """With a server."""
    bare_world.start_server()
    return bare_world


def pytest_unconfigure(config):
    if hasattr(config, "workerinput"):
        return
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or config.option.collectonly:
        return
    count = {name: len(reporter.stats.get(name, [])) for name in ("passed", "failed", "error", "xfailed")}
    for report in reporter.stats.get("xfailed", []):
        print(f"not yet: {report.nodeid.split('::')[-1]}: {report.wasxfail}")
    print(f"{count['passed']} passed, {count['failed'] + count['error']} failed")
    sys.stdout.flush()
