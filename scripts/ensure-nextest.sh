#!/bin/sh
# Installs cargo-nextest when it is missing. A failure is told and does no harm: `make test` then uses `cargo test`.
set -u

if cargo nextest --version >/dev/null 2>&1; then exit 0; fi
printf '%s\n' "cargo-nextest is missing: installing it with \`cargo install --locked cargo-nextest\`." >&2
cargo install --locked cargo-nextest >&2 ||
    printf '%s\n' "cargo-nextest could not be installed: the tests run with \`cargo test\`." >&2
exit 0
