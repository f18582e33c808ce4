#!/bin/sh
# Builds the release, fetches chrome-devtools-mcp where Node is there, and measures. The table goes to stdout.
# Options are passed on to the benchmark: `sh scripts/bench.sh --rounds 30 --calls 400`.
set -eu

cd "$(dirname "$0")/.."
PATH="$PATH:${CARGO_HOME:-${HOME:-}/.cargo}/bin"
target=${CARGO_TARGET_DIR:-target}
peer=tests/bench-peer

say() {
    printf '%s\n' "$1" >&2
}

# By itself, as users build it, so that the benchmark's needs change nothing in it.
cargo build --release --locked -p pagebridge >&2
cargo build --release --locked -p pagebridge-bench >&2

if command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1; then
    if (cd "$peer" && npm ci --ignore-scripts >&2); then
        set -- --peer "$peer/node_modules/chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js" "$@"
    else
        say "chrome-devtools-mcp could not be installed: measuring without it."
    fi
else
    say "node and npm are not there: measuring without chrome-devtools-mcp."
fi

why=
case ${PAGEBRIDGE_NO_SANDBOX:-0} in
    0 | false | no | off) ;;
    *) why="PAGEBRIDGE_NO_SANDBOX is set" ;;
esac
if [ "$(id -u)" = 0 ]; then why="Running as root"; fi
if [ -n "$why" ]; then
    say "$why: every browser is started with --no-sandbox."
    set -- --no-sandbox "$@"
fi

browser=$(sh scripts/ensure-chromium.sh --print)
exec "$target/release/pagebridge-bench" --browser "$browser" "$@"
