# Sourced by check and test: makes a virtual environment with the library and pinned tools, under target/.
# Needs python3 with venv. PYTHON names another interpreter, which gets an environment of its own.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
python=${PYTHON:-python3}
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
venv=$root/target/sdks/python/$version

mkdir -p "$venv"
(
    flock 9 # check and test may run at the same time
    if ! cmp -s "$here/requirements.txt" "$venv/requirements.txt" || ! cmp -s "$here/pyproject.toml" "$venv/pyproject.toml"; then
        rm -f "$venv/requirements.txt"
        "$python" -m venv --clear "$venv"
        exec 9>&-
        "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt"
        "$venv/bin/pip" install --quiet --disable-pip-version-check --no-build-isolation --editable "$here"
        cp "$here/requirements.txt" "$here/pyproject.toml" "$venv/"
    fi
) 9>"$root/target/sdks/python-$version.lock"
