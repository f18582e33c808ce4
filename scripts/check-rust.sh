#!/bin/sh
# Silent when Rust is new enough; otherwise one line on stderr that says what to do, and exit status 1.
set -u

need_minor=85
PATH="$PATH:${CARGO_HOME:-${HOME:-}/.cargo}/bin"

stop() {
    printf '%s\n' "pagebridge needs Rust 1.$need_minor or newer: $1. $2" >&2
    exit 1
}

command -v cargo >/dev/null 2>&1 || stop "cargo was not found" "Install Rust from https://rustup.rs and try again"

# "cargo 1.95.0 (f2d3ce0bd 2026-03-21)"
version=$(cargo --version 2>/dev/null | sed -n 's/^cargo \([0-9][0-9]*\.[0-9][0-9]*\).*/\1/p')
[ -n "$version" ] || stop "\`cargo --version\` names no version" "Install Rust from https://rustup.rs and try again"

major=${version%%.*}
minor=${version#*.}
if [ "$major" -lt 1 ] || { [ "$major" -eq 1 ] && [ "$minor" -lt "$need_minor" ]; }; then
    stop "this is $version" "Run \`rustup update\`, or install Rust from https://rustup.rs"
fi
