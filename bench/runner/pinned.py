"""Draining with and without another session that holds a snapshot open, so that PostgreSQL can remove no dead row."""

import contextlib
import subprocess

from . import ours, servers

SETUP_JOBS = 500


def with_and_without(drain, churn, jobs):
    """Measures `drain(url, jobs)`, a rate, after the same churn with and without a snapshot."""

    def ask():
        without = after_churn(drain, contextlib.nullcontext, churn, jobs)
        pinned = after_churn(drain, snapshot, churn, jobs)
        return {"per_s": pinned, "unpinned_per_s": without, "kept": pinned / without}

    return ask


def after_churn(drain, held, churn, jobs):
    with servers.postgres() as url:
        drain(url, SETUP_JOBS)
        with held(url):
            drain(url, churn)
            # As autovacuum would within a minute; of what the snapshot may still see it can remove nothing.
            servers.psql(url, "VACUUM ANALYZE")
            servers.psql(url, "CHECKPOINT")
            return drain(url, jobs)


def ours_drain(url, jobs):
    with servers.directory() as home:
        return ours.engine(servers.Store("postgres", url, home), "--only", "drain", "--jobs", jobs)["drain_per_s"]


def peer_drain(peer):
    return lambda url, jobs: peer.run(url, "drain", jobs)["drain_per_s"]


@contextlib.contextmanager
def snapshot(url):
    command = ["psql", "--quiet", "--no-psqlrc", "--tuples-only", "--no-align", url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as session:
        session.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT 'held';\n")
        session.stdin.flush()
        if session.stdout.readline().strip() != "held":
            raise ValueError("no snapshot could be taken")
        try:
            yield
        finally:
            session.kill()
