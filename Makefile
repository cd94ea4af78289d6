# Everything a developer runs. `make` alone lists it.
# `make check` and `make test` together are exactly what CI runs (.ci/run).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The linter is pinned in a module of its own, so that go.mod names only what
# Headroom is made of.
TOOLS := .ci/tools
LINT := go tool -modfile=$(TOOLS)/go.mod golangci-lint
BIN := .ci/bin/headroom

# Flags of one `headroom dev` run, such as ARGS=--once.
ARGS ?=
# How long each fuzz target runs, and how long each benchmark.
FUZZTIME ?= 30s
BENCHTIME ?= 1s
# Packages to test or measure.
PKG ?= ./...

.PHONY: help demo test check fmt format vet lint house generated tidy fuzz bench build up down

help: ## List these targets.
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' Makefile

demo: ## See it decide: private services, demo traffic. ARGS=--once ends after the summary.
	@bash .ci/install.sh demo
	@$(MAKE) build
	@exec $(BIN) dev $(ARGS)

test: ## Every test, with the race detector and real services. A skipped test fails it.
	@bash .ci/install.sh test
	@go -C $(TOOLS) build -o ../bin/alltests ./alltests
	@.ci/bin/alltests -race -count=1 -shuffle=on -vet=off -timeout=9m $(PKG)

check: fmt vet lint house generated tidy ## All that needs no services: format, vet, lint, arrows, lengths, drift, modules.
	@echo "check: all good"

fmt:
	@echo "check: format (make format mends it)"
	@$(LINT) fmt --diff

vet:
	@echo "check: vet"
	@go vet ./...
	@go -C $(TOOLS) vet ./alltests

lint: ## The linters of .golangci.yml.
	@echo "check: lint (the first run builds the linter, which takes some minutes)"
	@$(LINT) run

# The shape of the repository: arrows, lengths, top level, compose file, README.
house:
	@echo "check: house"
	@go test -count=1 ./cmd/headroom/house
	@go -C $(TOOLS) test -count=1 ./alltests

generated:
	@echo "check: generated files"
	@bash .ci/generated.sh

# Both modules name exactly what is used.
tidy:
	@echo "check: modules"
	@go mod tidy -diff
	@go -C $(TOOLS) mod tidy -diff

format: ## Format all Go files.
	@$(LINT) fmt

fuzz: ## Each fuzz target for FUZZTIME.
	@bash .ci/install.sh test
	@bash .ci/fuzz.sh $(FUZZTIME)

bench: ## All benchmarks, BENCHTIME each.
	@bash .ci/install.sh test
	@go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) $(PKG)

build: ## The binary, into .ci/bin.
	@CGO_ENABLED=0 go build -trimpath -o $(BIN) ./cmd/headroom

up: ## The production-like stack of docker-compose.yml.
	@docker compose up --build --detach --wait

down: ## Stop that stack; its data stays in its volumes.
	@docker compose down
