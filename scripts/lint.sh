#!/bin/sh
# Formatting, clippy and, where cargo-deny is installed, licences and sources.
set -eu

say() {
    printf '%s\n' "$1" >&2
}

# A minimal toolchain comes without these; rustup adds them.
component() {
    if cargo "$1" --version >/dev/null 2>&1; then return 0; fi
    say "$2 is missing: adding it with \`rustup component add $2\`."
    rustup component add "$2" >&2
}

component fmt rustfmt
component clippy clippy

cargo fmt --all --check
cargo clippy --workspace --all-targets -- -D warnings
if cargo deny --version >/dev/null 2>&1; then
    cargo deny check licenses bans sources
else
    say "cargo-deny is not installed: the check of licences and sources was skipped."
fi
