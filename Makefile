# Entry points for people and for the checks.
.PHONY: all test docs lint deny bench compat ci

all:
	cargo build --release

# Every test: unit tests, guest programs and whole commands natively and inside, on both platforms.
test:
	cargo build --release -p lazaret
	cargo build --release -p guest-tests
	LAZARET_BIN=$${CARGO_TARGET_DIR:-$(CURDIR)/target}/release/lazaret cargo test --workspace

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

# Long suites of other projects, natively and inside.
compat:
	cargo build --release -p lazaret
	cargo run --release -p compat-suite

ci:
	.ci/run
