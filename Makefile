# Entry points for people and for the checks.
.PHONY: docs

# Writes the generated pages of docs/.
docs:
	cargo run -q -p syscall-table --bin gen-docs
