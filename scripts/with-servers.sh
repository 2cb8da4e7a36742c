#!/usr/bin/env bash
# Runs a command with a private PostgreSQL:
#
#     scripts/with-servers.sh cargo test --workspace
#
# The server lives in a temporary directory and listens on a free port of 127.0.0.1. The command finds its URL in
# TICKWHEEL_TEST_POSTGRES. The server is removed when the command ends, however it ends. The exit code is the command's.
# Any number may run at once. fsync stays on, because the tests cover durability.
set -euo pipefail

readonly PORT_MIN=15000 PORT_MAX=32000 # below the ports the kernel hands to clients
readonly START_TRIES_MAX=20

fail() {
    printf 'with-servers: %s\n' "$*" >&2
    exit 1
}

[[ $# -gt 0 ]] || fail "usage: scripts/with-servers.sh COMMAND [ARGUMENT…]"

# The newest installed version, or the one on the PATH.
postgres_bin_dir() {
    local newest
    newest=$(compgen -G '/usr/lib/postgresql/*/bin' | sort -V | tail -n 1 || true)
    if [[ -n $newest ]]; then
        echo "$newest"
    elif command -v initdb >/dev/null; then
        dirname "$(readlink -f "$(command -v initdb)")"
    else
        fail "no PostgreSQL server found: run scripts/setup.sh"
    fi
}

# PostgreSQL refuses to run as root; then it runs as its own user.
as_server_user() {
    if [[ $EUID -eq 0 ]]; then
        (cd "$home" && exec runuser -u postgres -- "$@")
    else
        (cd "$home" && exec "$@")
    fi
}

port_is_free() {
    ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

create_server() {
    if [[ $EUID -eq 0 ]]; then
        id -u postgres >/dev/null 2>&1 || fail "running as root, and there is no user postgres: run scripts/setup.sh"
        chown postgres: "$home"
    fi
    as_server_user "$bin/initdb" --no-sync --auth=trust --username=postgres --encoding=UTF8 --locale=C \
        --pgdata="$home/data" >"$home/initdb.log" 2>&1 || {
        cat "$home/initdb.log" >&2
        fail "initdb failed"
    }
    as_server_user tee -a "$home/data/postgresql.conf" >/dev/null <<CONF
listen_addresses = '127.0.0.1'
unix_socket_directories = '$home'
max_connections = 300
CONF
}

# Another process may take the port before the server listens, so a failed start is tried again on the next port.
start_server() {
    local try
    for ((try = 0; try < START_TRIES_MAX; try++)); do
        port=$((PORT_MIN + (RANDOM * 32768 + RANDOM) % (PORT_MAX - PORT_MIN)))
        port_is_free "$port" || continue
        as_server_user "$bin/pg_ctl" start --silent --wait --timeout=60 --pgdata="$home/data" \
            --log="$home/server.log" --options="-p $port" >/dev/null 2>&1 && return
    done
    tail -n 40 "$home/server.log" >&2 || true
    fail "PostgreSQL did not start"
}

remove_server() {
    if [[ -e $home/data/postmaster.pid ]]; then
        as_server_user "$bin/pg_ctl" stop --silent --mode=immediate --pgdata="$home/data" >/dev/null 2>&1 || true
    fi
    rm -rf "$home"
}

bin=$(postgres_bin_dir)
home=$(mktemp -d "${TMPDIR:-/tmp}/tickwheel-servers.XXXXXX")
trap remove_server EXIT

create_server
start_server
export TICKWHEEL_TEST_POSTGRES="postgres://postgres@127.0.0.1:$port/postgres"

status=0
"$@" || status=$?
exit "$status"
