#!/bin/sh
# The tests against other implementations of MCP: installs what they need in tests/peers, builds pagebridge, runs them.
# Where CARGO_TARGET_DIR is set, the build is there. Exit status 0 when all passed.
set -eu

need_node=20

stop() {
    printf '%s\n' "$1" >&2
    exit 1
}

cd "$(dirname "$0")/.."
root=$(pwd)

command -v node >/dev/null 2>&1 || stop "node was not found. Install Node.js $need_node or newer and try again."
command -v npm >/dev/null 2>&1 || stop "npm was not found. Install it (it comes with Node.js) and try again."
# "v20.20.2"
version=$(node --version)
major=${version#v}
major=${major%%.*}
[ "$major" -ge "$need_node" ] 2>/dev/null || stop "Node.js $need_node or newer is needed: this is $version."

# npm writes this file last, so it tells that an installation is whole, and how old it is.
installed=tests/peers/node_modules/.package-lock.json
if [ ! -f "$installed" ] || [ -n "$(find tests/peers/package.json tests/peers/package-lock.json -newer "$installed")" ]; then
    (cd tests/peers && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2) ||
        stop "The SDKs could not be installed: \`npm ci\` failed in tests/peers."
fi

cargo build --quiet -p pagebridge
target=${CARGO_TARGET_DIR:-target}
case $target in
    /*) ;;
    *) target=$root/$target ;;
esac
PAGEBRIDGE_BIN=$target/debug/pagebridge
export PAGEBRIDGE_BIN

# Browsers and bridges are children of the tests and end with them.
cd tests/peers
exec node --test --test-reporter=spec ./*.test.mjs
