#!/usr/bin/env bash
# Checks the house rules that neither rustfmt nor clippy know. Prints every breach as `file:line: rule`, then fails.
#
# One rule has an exception: a test may sleep with a `// sleep: why` on the line or the line above. If another rule is
# wrong, change it here.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly FILE_LINES_MAX=600

breaches=0
report() { # reads `file:line` or `file:line:text` lines
    local rule=$1 place
    while IFS= read -r place; do
        printf '%s: %s\n' "$(cut -d: -f1-2 <<<"$place")" "$rule"
        breaches=$((breaches + 1))
    done
}

mapfile -t tracked < <(git ls-files --cached --others --exclude-standard | while read -r f; do [[ -f $f ]] && echo "$f"; done)
files() { # the tracked files whose path matches
    printf '%s\n' "${tracked[@]}" | grep -E "$1" || true
}
mapfile -t sources < <(files '^crates/[^/]+/src/.*\.rs$')
mapfile -t rust_files < <(files '^crates/.*\.rs$')

# Prints `file:line:text` of the program lines (or, with side=test, the test lines) in the given files. Tests are
# `#[cfg(test)]` items, files named tests.rs, and files below a directory tests/. Comment lines are left out.
code_lines() {
    local side=$1
    shift
    awk -v side="$side" '
        FNR == 1 { whole = FILENAME ~ /\/tests(\/|\.rs$)/; inside = 0; pending = 0 }
        pending && !/^[[:space:]]*#\[/ { pending = 0; if (/\{[[:space:]]*$/) { inside = 1; match($0, /^ */); depth = RLENGTH } else { next } }
        /^[[:space:]]*#\[cfg\(test\)\]/ { pending = 1 }
        {
            test = whole || inside || pending
            if (!/^[[:space:]]*\/\// && (side == "test") == test) print FILENAME ":" FNR ":" $0
            if (inside && /^ *\}[[:space:]]*$/) { match($0, /^ */); if (RLENGTH == depth) inside = 0 }
        }' "$@"
}

no_unwrap_in_the_program() {
    report 'unwrap() outside tests: handle it, or expect("why it cannot fail")' \
        < <(code_lines program "${sources[@]}" | grep -F '.unwrap()')
}

nothing_half_done() {
    report 'unfinished work: finish it or leave it out' \
        < <(code_lines program "${rust_files[@]}" | grep -E '\b(todo|unimplemented|dbg)!')
    report 'unfinished work: finish it or leave it out' \
        < <(code_lines test "${rust_files[@]}" | grep -E '\b(todo|unimplemented|dbg)!|#\[ignore')
    report 'unfinished work: finish it or say it in the tracker' \
        < <(files '\.(rs|md|sh|sql|toml)$' | grep -v '^scripts/tidy.sh$' | xargs grep -HnwE 'FIXME|XXX')
}

files_of_a_readable_size() {
    report "more than $FILE_LINES_MAX lines beside its tests: split it" < <(
        code_lines program "${sources[@]}" | cut -d: -f1 | uniq -c |
            awk -v max=$FILE_LINES_MAX '$1 > max { print $2 ":1" }'
    )
    report "more than $FILE_LINES_MAX lines: split it" < <(
        files '^crates/[^/]+/tests/.*\.rs$' | xargs -r awk -v max=$FILE_LINES_MAX 'FNR == max + 1 { print FILENAME ":1" }'
    )
}

no_sleeping_in_tests() {
    local file line text
    report 'a test that sleeps: step, wait for an event, or poll with a deadline (else `// sleep: why`)' < <(
        code_lines test "${rust_files[@]}" | grep -E '\b(thread|time)::sleep\(' |
            while IFS=: read -r file line text; do
                grep -q '// sleep: ' <<<"$text" && continue
                [[ $line -gt 1 ]] && sed -n "$((line - 1))p" "$file" | grep -q '// sleep: ' && continue
                echo "$file:$line"
            done
    )
}

every_module_says_what_it_is_for() {
    report 'no //! at the top: say what the module is for, what it keeps true, what is not here' \
        < <(awk 'FNR == 1 && !/^\/\/!/ { print FILENAME ":1" }' "${rust_files[@]}")
}

# Dependencies point inward; only the binary may use everything. Development dependencies are free.
crates_know_only_what_is_inward() {
    local crate allowed manifest
    while read -r crate allowed; do
        manifest=crates/$crate/Cargo.toml
        report "$crate may use of ours only: ${allowed:-nothing}" < <(
            awk -v allowed=" $allowed " '
                /^\[/ { ours = /^\[(dependencies|build-dependencies)/ }
                ours && match($0, /^tickwheel-[a-z]+/) {
                    if (!index(allowed, " " substr($0, 1, RLENGTH) " ")) print FILENAME ":" FNR
                }' "$manifest"
        )
    done <<'TABLE'
tickwheel-core
tickwheel-protocol
tickwheel-store tickwheel-core
tickwheel-engine tickwheel-core
tickwheel-executor tickwheel-core tickwheel-protocol
tickwheel-api tickwheel-core tickwheel-protocol
tickwheel-testkit tickwheel-core tickwheel-protocol
tickwheel-client tickwheel-protocol
tickwheel-worker tickwheel-client tickwheel-protocol
TABLE
}

the_core_has_no_clock() {
    report 'the core takes time as an argument' \
        < <(code_lines program "${sources[@]}" | grep '^crates/tickwheel-core/' | grep -E '(SystemTime|Instant)::now|tokio::')
}

# Statements take the numbers of the core's enums from codes.rs, or as parameters.
no_number_of_an_enum_in_a_statement() {
    report 'an enum has a name: take its number from codes.rs' \
        < <(code_lines program "${sources[@]}" | grep '^crates/tickwheel-store/' |
            grep -E '\b(state|status|release|outcome|reason|target)( NOT)? ?(=|<>|IN) ?\(?[0-9]')
}

# A job's state is private to the core. There it changes in one file, by events; a store sets the one that it has read.
a_job_changes_its_state_by_events() {
    report 'a state changes by an event: Job::undergo' \
        < <(code_lines program "${sources[@]}" | grep '^crates/tickwheel-core/' |
            grep -v '^crates/tickwheel-core/src/job/lifecycle.rs:' | grep -E '\.state = |\bJob \{[^}]*\bstate\b')
    report 'only what reads a stored job sets its state: let something happen to the job, or use JobInTest' \
        < <(grep -HnF 'in_stored_state(' "${rust_files[@]}" |
            grep -vE '^crates/tickwheel-(core/src/job/lifecycle|store/src/columns|testkit/src/fixtures/jobs_in_tests)\.rs:')
}

# How a moment is written is said in the protocol. The calendar of schedules is no wire, and Retry-After has a format of
# its own.
wire_formats_are_in_the_protocol() {
    report 'a format of the wire: tickwheel-protocol says how it looks' \
        < <(code_lines program "${sources[@]}" | grep -E '^crates/tickwheel-(core|engine|store|executor)/' |
            grep -vE '^crates/tickwheel-(core/src/schedule|executor/src/executor/http/retry_after)' |
            grep -E 'rfc3339|strftime|jiff::Timestamp')
}

no_path_of_one_machine() {
    report 'a path that exists on one machine only' \
        < <(files '' | grep -v '^Cargo.lock$' | xargs -d '\n' grep -HnIE '(^|[^a-zA-Z0-9_.}/-])/(work|root)/')
}

no_unwrap_in_the_program
nothing_half_done
files_of_a_readable_size
no_sleeping_in_tests
every_module_says_what_it_is_for
crates_know_only_what_is_inward
the_core_has_no_clock
no_number_of_an_enum_in_a_statement
a_job_changes_its_state_by_events
wire_formats_are_in_the_protocol
no_path_of_one_machine

if [[ $breaches -gt 0 ]]; then
    printf '\ntidy: %d breaches of the house rules\n' "$breaches" >&2
    exit 1
fi
echo "tidy: ${#rust_files[@]} Rust files follow the house rules"
