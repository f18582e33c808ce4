# What people and continuous integration run. `make help` lists the targets.

.DEFAULT_GOAL := help
.PHONY: help run test test-peers bench lint rust chromium
# The steps of a target say one thing after the other.
.NOTPARALLEL:

# A fresh rustup is not on the PATH of the shell that installed it.
export PATH := $(PATH):$(or $(CARGO_HOME),$(HOME)/.cargo)/bin

target := $(or $(CARGO_TARGET_DIR),target)
as_root := $(filter 0,$(shell id -u))
# More options for the demo: `make run ARGS=--headed`
ARGS ?=

# `error` tells the problem in a single line; a failing recipe would add lines of its own.
rust_problem = $(shell sh scripts/check-rust.sh 2>&1)
need_rust = $(if $(rust_problem),$(error $(rust_problem)))

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

run: rust chromium ## install what is missing, build, and show the demo (ARGS=--headed shows the window)
	@cargo build --release -p pagebridge
	@$(if $(as_root),echo "Running as root: Chromium gets --no-sandbox." >&2;) \
	$(if $(findstring --connect,$(ARGS)),,PAGEBRIDGE_EXECUTABLE_PATH="$$(sh scripts/ensure-chromium.sh --print)") \
	$(target)/release/pagebridge demo $(if $(as_root),--no-sandbox) $(ARGS)

test: export PAGEBRIDGE_NO_SANDBOX := $(if $(as_root),1,$(PAGEBRIDGE_NO_SANDBOX))
test: rust chromium ## install what is missing, then lint and run every test
	@sh scripts/ensure-nextest.sh
	@$(if $(as_root),echo "Running as root: the tests start Chromium without its sandbox (PAGEBRIDGE_NO_SANDBOX=1)." >&2,:)
	@sh scripts/lint.sh
	@if command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1; then \
		bash scripts/test-peers.sh; \
	else \
		echo "node and npm are not there: the tests against other MCP implementations were skipped." >&2; \
	fi
	@if cargo nextest --version >/dev/null 2>&1; then \
		cargo nextest run --workspace $(if $(CI),--profile ci); \
	else \
		cargo test --workspace --no-fail-fast -- --test-threads=1; \
	fi

test-peers: export PAGEBRIDGE_NO_SANDBOX := $(if $(as_root),1,$(PAGEBRIDGE_NO_SANDBOX))
test-peers: rust chromium ## the tests that need Node: other MCP implementations against pagebridge
	@bash scripts/test-peers.sh

bench: export PAGEBRIDGE_NO_SANDBOX := $(if $(as_root),1,$(PAGEBRIDGE_NO_SANDBOX))
bench: rust chromium ## measure
	@bash scripts/bench.sh

lint: rust ## formatting, clippy, licences
	@sh scripts/lint.sh

rust:
	@$(need_rust):

chromium:
	@sh scripts/ensure-chromium.sh
