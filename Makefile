# The commands for contributors. `make` alone lists them.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Tests wait more than they compute: for servers, leases and moments. So more of them run at a time than there are cores.
export RUST_TEST_THREADS ?= 6

# How often `make chaos` kills and restarts the server, on each store.
ROUNDS ?= 500

.PHONY: help setup run build check test fuzz libraries sdks chaos bench clean

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what the build, the checks and the tests need (Debian; quick if nothing is missing)
	@scripts/setup.sh

run: ## Start a server with demo jobs on the embedded store in ./tickwheel-data
	@scripts/setup.sh run
	cargo run --package tickwheel -- serve --demo --data-dir ./tickwheel-data

build: ## Build the release binary: target/release/tickwheel
	@scripts/setup.sh run
	cargo build --release --package tickwheel

check: ## Formatting, lints, types, house rules, generated models, licences and banned crates
	@scripts/setup.sh check
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo clippy --workspace --all-targets --features tickwheel-worker/otel -- -D warnings
	scripts/tidy.sh
	target/tools/bin/cargo-deny --log-level error check --hide-inclusion-graph bans licenses sources
	sdks/python/check
	sdks/typescript/check

test: setup check ## Everything that must pass before a change lands, on private servers
	scripts/with-servers.sh cargo test --workspace
	scripts/fuzz-api/run.sh

fuzz: setup ## Hold the real server to its OpenAPI document, with a fixed seed
	scripts/fuzz-api/run.sh

libraries: setup ## Test the worker libraries (Rust, Python, TypeScript) against the real server
	cargo build --package tickwheel
	sdks/test

sdks: setup ## Build the packages of the worker libraries into target/sdks/dist, and try them out
	cargo build --package tickwheel
	rm -rf target/sdks/dist && mkdir -p target/sdks/dist
	python3 -m venv target/sdks/build
	target/sdks/build/bin/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir target/sdks/dist sdks/python
	cd sdks/typescript && npm ci --silent && npm run --silent build && npm pack --silent --pack-destination ../../target/sdks/dist
	sdks/check-packages target/sdks/dist

chaos: setup ## Kill and restart the real server ROUNDS times under load, on both stores
	TICKWHEEL_CHAOS_ROUNDS=$(ROUNDS) scripts/with-servers.sh \
		cargo test --package tickwheel --test it -- chaos --nocapture --test-threads=1

bench: build ## Measure and compare with floors and peers; ONLY=B2,B4 for some figures (see bench/README.md)
	bench/run $(if $(ONLY),--only $(ONLY))

clean: ## Remove build products and the demo's data
	cargo clean
	rm -rf ./tickwheel-data
