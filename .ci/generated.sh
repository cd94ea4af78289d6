#!/usr/bin/env bash
# Runs every generator and fails when a file changed: then what is in the tree is
# not what the generators make. It compares the tree with itself, through an
# index of its own, so that changes of yours do not disturb it.
set -euo pipefail
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export GIT_INDEX_FILE=$scratch/index

state() {
  git add --all
  git write-tree
}

before=$(state)
go generate ./...
after=$(state)
if [ "$before" != "$after" ]; then
  echo "generated files are not up to date; run: go generate ./..." >&2
  git diff --stat "$before" "$after" >&2
  exit 1
fi
