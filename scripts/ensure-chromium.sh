#!/bin/sh
# Makes sure that a Chromium is there. Silent when it is. When it is missing, root gets it from the system's packages;
# anybody else is told the command. It never asks for a password. Exit status: 0 it is there, 1 it is not.
# `--print` writes the path of the browser to stdout.
set -u

print=${1:-}

say() {
    printf '%s\n' "$1" >&2
}

stop() {
    say "$1"
    exit 1
}

# A candidate counts when it can tell its version: some distributions ship a stub that only names another package.
works() {
    "$1" --version >/dev/null 2>&1
}

# Sets `browser` to the first one that works.
find_browser() {
    for name in chromium chromium-browser google-chrome google-chrome-stable chrome microsoft-edge microsoft-edge-stable; do
        browser=$(command -v "$name" 2>/dev/null) && works "$browser" && return 0
    done
    home=${HOME:-/nonexistent}
    cache=${PLAYWRIGHT_BROWSERS_PATH:-0}
    if [ "$cache" = 0 ]; then cache=$home/.cache/ms-playwright; fi
    for browser in \
        "$cache"/chromium-*/chrome-linux*/chrome \
        "$home"/Library/Caches/ms-playwright/chromium-*/chrome-mac*/*.app/Contents/MacOS/* \
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" \
        "/Applications/Chromium.app/Contents/MacOS/Chromium" \
        "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge"; do
        if [ -x "$browser" ] && works "$browser"; then return 0; fi
    done
    return 1
}

# The browser is there: the end, and all that is said.
done_with() {
    if [ "$print" = --print ]; then printf '%s\n' "$1"; fi
    exit 0
}

if [ -n "${PAGEBRIDGE_EXECUTABLE_PATH:-}" ]; then
    if [ -x "$PAGEBRIDGE_EXECUTABLE_PATH" ]; then done_with "$PAGEBRIDGE_EXECUTABLE_PATH"; fi
    stop "PAGEBRIDGE_EXECUTABLE_PATH is $PAGEBRIDGE_EXECUTABLE_PATH, which is no program that can be run."
fi
if find_browser; then done_with "$browser"; fi

if [ "$(uname -s)" = Darwin ]; then
    stop "Chromium is missing. Install it with: brew install --cask chromium"
fi

# Of the first package manager that is there: how it refreshes its lists, and how it installs.
refresh=
if command -v apt-get >/dev/null 2>&1; then
    manager=apt-get
    refresh="apt-get update"
    install="apt-get install -y --no-install-recommends chromium"
elif command -v dnf >/dev/null 2>&1; then
    manager=dnf
    install="dnf install -y chromium"
elif command -v apk >/dev/null 2>&1; then
    manager=apk
    install="apk add --no-cache chromium"
else
    stop "Chromium is missing, and no package manager that this script knows is there (apt-get, dnf, apk). Install Chromium or Chrome, or set PAGEBRIDGE_EXECUTABLE_PATH."
fi

if [ "$(id -u)" != 0 ]; then
    say "Chromium is missing. Install it with:"
    stop "  ${refresh:+sudo $refresh && }sudo $install"
fi

say "Chromium is missing: installing it with $manager."
# Lists that cannot be refreshed may still do; the installation decides. Nothing may wait for an answer.
if [ -n "$refresh" ]; then
    $refresh </dev/null >&2 || say "$refresh failed; trying with the package lists that are there."
fi
DEBIAN_FRONTEND=noninteractive
export DEBIAN_FRONTEND
$install </dev/null >&2 || stop "Chromium could not be installed: \`$install\` failed. Install Chromium or Chrome, or set PAGEBRIDGE_EXECUTABLE_PATH."
find_browser || stop "\`$install\` brought no Chromium that runs. Install Chromium or Chrome, or set PAGEBRIDGE_EXECUTABLE_PATH."
done_with "$browser"
