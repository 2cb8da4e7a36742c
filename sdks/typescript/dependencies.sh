# Sourced by check and test: installs what package-lock.json says, unless it is there already.
[[ node_modules/.package-lock.json -nt package-lock.json ]] || npm ci --silent
