#!/usr/bin/env bash
# Runs each fuzz target of the module for a while: fuzz.sh [TIME], 30s unless
# told. What it finds is kept in the package's testdata/fuzz; commit it, and
# `make test` repeats it for ever.
set -euo pipefail
cd "$(dirname "$0")/.."

time=${1:-30s}
found=0
while IFS=: read -r file target; do
  found=$((found + 1))
  package=./$(dirname "$file")
  echo "fuzz: $target in $package for $time"
  go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package" </dev/null
done < <(git ls-files --cached --others --exclude-standard '*_test.go' |
  xargs -r grep -oH '^func Fuzz[A-Za-z0-9_]*' | sed 's/:func /:/')
if [ "$found" -eq 0 ]; then
  echo "fuzz: no fuzz target found" >&2
  exit 1
fi
echo "fuzz: $found targets, nothing found"
