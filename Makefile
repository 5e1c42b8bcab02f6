# Entry points for people and for the checks.
.PHONY: all test docs lint deny bench compat trees growth limits races names ci

all:
	cargo build --release

# Every test: unit tests, guest programs and whole commands natively and inside, on both platforms.
test:
	cargo build --release -p lazaret
	cargo build --release -p guest-tests
	LAZARET_BIN=$${CARGO_TARGET_DIR:-$(CURDIR)/target}/release/lazaret cargo test --workspace --no-fail-fast

# Formatting, lints, generated pages.
lint:
	cargo fmt --all -- --check
	cargo clippy --workspace --all-targets -- -D warnings

# Licenses, bans, sources of dependencies.
deny:
	cargo deny check licenses bans sources

# Writes the generated pages of docs/.
docs:
	cargo run -q -p syscall-table --bin gen-docs
	cargo run -q -p lazaret -- exposure --format md >docs/.exposure.md && mv docs/.exposure.md docs/exposure.md

# The speed table against native and the peers that are installed.
bench:
	cargo build --release -p lazaret
	cargo run --release -p bench

# Long suites of other projects, natively and inside: what differs is printed, all results go into compat.json.
# `make compat SUITES=python COMPAT="--platform ptrace --only test_os"` runs a part.
compat:
	cargo build --release -p lazaret
	cargo run --release -p compat-suite -- $(SUITES) --json $${CARGO_TARGET_DIR:-$(CURDIR)/target}/compat.json $(COMPAT)

# Trees of 20,000 and 50,000 files, natively and inside, on both platforms; half an hour.
trees:
	cargo build --release -p lazaret
	LAZARET_LONG=1 LAZARET_BIN=$${CARGO_TARGET_DIR:-$(CURDIR)/target}/release/lazaret \
	  cargo test -p guest-tests --test programs -- trees --test-threads 1

# Servers with their clients for a minute each, on both platforms: no memory, descriptors or threads are left behind.
growth:
	cargo build --release -p lazaret
	LAZARET_LONG=1 LAZARET_BIN=$${CARGO_TARGET_DIR:-$(CURDIR)/target}/release/lazaret \
	  cargo test --release -p guest-tests --test growth -- --nocapture --test-threads 1

# What a sandbox may cost: time to start, memory, processor time at rest. Needs a quiet machine, takes a few minutes.
limits:
	cargo build --release -p lazaret
	LAZARET_BIN=$${CARGO_TARGET_DIR:-$(CURDIR)/target}/release/lazaret \
	  cargo test --release -p guest-tests --test limits -- --ignored --test-threads 1

# The gofer against a host process that swaps directories for symlinks, for a minute (make test: three seconds).
races:
	cargo test --release -p gofer --lib -- --ignored

# A million names that come and go, and memory that stays (make test: thirty thousand).
names:
	cargo build --release -p lazaret
	LAZARET_NAMES=1000000 LAZARET_BIN=$${CARGO_TARGET_DIR:-$(CURDIR)/target}/release/lazaret \
	  cargo test --release -p guest-tests --test layer -- trap/names_come_and_go

ci:
	.ci/run
