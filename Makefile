# An index. Every target is a short script in hack/ that also runs alone.
.DEFAULT_GOAL := help
.PHONY: help setup demo test lint unit scorecard e2e verify bench bench-policy image generate clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what the other targets need (they call it by themselves)
	@hack/setup

demo: ## Real API server, emulated cloud, real controller: see things created once, survive kill -9, deleted, kept
	@hack/demo

test: ## Everything CI runs: lint, unit tests, scorecard with 10,000 histories, end-to-end suites
	@hack/test

lint: ## Format, clippy, licences and banned crates, docs
	@hack/lint

unit: ## Unit and in-process tests
	@hack/unit

scorecard: ## Simulated crash histories of every controller, one table; HISTORIES=n, default 10000
	@hack/scorecard --histories $(or $(HISTORIES),10000)

e2e: ## Real binaries on a real API server with the emulated cloud; SUITE=name picks one
	@hack/e2e $(SUITE)

verify: ## Every promise, run in full, written to docs/verification.md (hours; resumes where it stopped)
	@hack/verify

bench: ## Memory, binary size, event-to-pass latency of a release build
	@hack/bench

bench-policy: ## policy-pruner with many policies, beside the peer: requests, memory, time
	@hack/bench-policy

image: ## A FROM scratch image of one controller; CONTROLLER=name, default sample-controller
	@hack/image $(or $(CONTROLLER),sample-controller)

generate: ## CRDs under deploy/crds from the Rust types
	@hack/generate

clean: ## Build output of this checkout; the shared cache stays, its path is printed
	@hack/clean
