#!/usr/bin/env bash
# Holds the server to its OpenAPI document, both ways. The server must reject what the document forbids, and accept what
# it allows unless a rule that no schema can express says otherwise (rules.py). The document must describe every answer,
# and nothing may break.
#
# Uses a private, halted server on an embedded store; the URLs of its jobs lead nowhere, and the
# only command it runs is `true`. The same seed makes the same
# requests. Arguments go to schemathesis, such as `--include-operation-id submit_job`.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly VERSION=4.32.5
readonly VENV=target/fuzz-api/venv
readonly CONFIG=scripts/fuzz-api/schemathesis.toml

fail() {
    printf 'fuzz-api: %s\n' "$*" >&2
    exit 1
}

install_schemathesis() {
    [[ "$("$VENV/bin/schemathesis" --version 2>/dev/null)" == *" $VERSION" ]] && return
    python3 -m venv "$VENV" || fail "python3 cannot make a virtual environment: run scripts/setup.sh"
    "$VENV/bin/pip" install --quiet --disable-pip-version-check "schemathesis==$VERSION" ||
        fail "schemathesis $VERSION could not be installed"
}

# The same build as the tests use, so that nothing is compiled twice.
build_server() {
    cargo test --workspace --no-run --quiet
    [[ -x target/debug/tickwheel ]] || fail "the tests did not build the program"
}

home=$(mktemp -d)
server=
stop() {
    [[ -z $server ]] || kill "$server" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$home"
}
trap stop EXIT

start_server() {
    # Read below, perhaps before the server's shell has made it.
    touch "$home/out"
    TICKWHEEL_LIMITS_WAIT_SECONDS_MAX=1 TICKWHEEL_PROCESS_COMMANDS=true \
        target/debug/tickwheel serve --listen 127.0.0.1:0 --data-dir "$home/data" \
        --allow-private-targets --allow-process-targets >"$home/out" 2>"$home/log" &
    server=$!
    for _ in $(seq 300); do
        url=$(sed -n 's/^tickwheel listens on //p' "$home/out")
        [[ -n $url ]] && curl --silent --fail --output /dev/null "$url/readyz" && return
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    cat "$home/log" >&2
    fail "the server did not come up"
}

install_schemathesis
build_server
start_server
curl --silent --fail --output /dev/null --request POST --header 'content-type: application/json' "$url/api/v1/admin/halt"
"$VENV/bin/schemathesis" --config-file "$CONFIG" run "$url/openapi.json" "$@" || {
    tail -n 40 "$home/log" >&2
    fail "the server and its document do not agree"
}
kill -0 "$server" 2>/dev/null || fail "the server did not survive"
# Requests that are all refused would prove little. The counts tell, not the lists: what was stored may be deleted
# again. A workflow that is only checked (200) was accepted too; how many of them are stored is luck.
counts=$(curl --silent --fail "$url/metrics") || fail "the server does not show its metrics"
for kind in jobs schedules workflows calendars; do
    posted="method=\"POST\",route=\"/api/v1/$kind\",status=\"20[01]\""
    put="method=\"PUT\",route=\"/api/v1/$kind/\{name\}\",status=\"20[01]\""
    grep --extended-regexp --quiet "^tickwheel_http_requests_total\{($posted|$put)\}" <<<"$counts" ||
        fail "all that the fuzzer asked of the $kind was refused"
done
