#!/usr/bin/env bash
# Installs what is missing of the programs that Headroom's private services run from.
#
#   bash .ci/install.sh demo    redis-server and PostgreSQL, for `headroom dev`
#   bash .ci/install.sh test    the same, and what `go test -race` and the tests need: a C compiler, ps, PgBouncer and curl
#
# Silent and fast when nothing is missing. The places looked at are those of
# cmd/headroom/devstack. No service is started: ours run on ports of their own.
set -euo pipefail

purpose=${1:-}
case $purpose in
demo | test) ;;
*)
  echo "usage: bash .ci/install.sh demo|test" >&2
  exit 2
  ;;
esac

say() { echo "install: $*" >&2; }

# holds FILE...: whether each is an executable file.
holds() {
  local file
  for file in "$@"; do
    [ -f "$file" ] && [ -x "$file" ] || return 1
  done
}

has_redis() {
  local dir
  command -v redis-server >/dev/null && return
  for dir in /usr/bin /usr/local/bin /opt/homebrew/opt/redis/bin /usr/local/opt/redis/bin; do
    holds "$dir/redis-server" && return
  done
  return 1
}

has_postgres() {
  local dir found
  if found=$(command -v postgres); then
    dir=${found%/*}
    holds "$dir/postgres" "$dir/initdb" && return
  fi
  for dir in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql@*/bin /usr/local/opt/postgresql@*/bin \
    /opt/homebrew/opt/postgresql/bin /usr/local/opt/postgresql/bin; do
    holds "$dir/postgres" "$dir/initdb" && return
  done
  return 1
}

has_pgbouncer() {
  local dir
  command -v pgbouncer >/dev/null && return
  for dir in /usr/sbin /usr/local/bin /opt/homebrew/opt/pgbouncer/bin /usr/local/opt/pgbouncer/bin; do
    holds "$dir/pgbouncer" && return
  done
  return 1
}

has_compiler() {
  if [ "$(uname)" = Darwin ]; then
    # /usr/bin/cc is there without the tools, and only asks for them.
    xcode-select -p >/dev/null 2>&1
  else
    command -v "${CC:-gcc}" >/dev/null
  fi
}

# missing: a word for each thing that is not here.
missing() {
  has_redis || echo redis
  has_postgres || echo postgres
  if [ "$purpose" = test ]; then
    has_compiler || echo compiler
    command -v ps >/dev/null || echo ps
    has_pgbouncer || echo pgbouncer
    command -v curl >/dev/null || echo curl
  fi
}

# packages apt|brew WORD...: what brings them.
packages() {
  local system=$1 word
  shift
  for word in "$@"; do
    case $system:$word in
    apt:redis) echo redis-server ;;
    apt:postgres) echo postgresql ;;
    apt:compiler) echo gcc libc6-dev ;;
    apt:ps) echo procps ;;
    apt:pgbouncer | brew:pgbouncer) echo pgbouncer ;;
    apt:curl | brew:curl) echo curl ;;
    brew:redis) echo redis ;;
    brew:postgres) echo postgresql@17 ;;
    esac
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    env "$@"
  elif [ -t 0 ]; then
    sudo env "$@"
  else
    sudo -n env "$@"
  fi
}

can_be_root() {
  [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; }
}

apt() {
  as_root DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 "$@" >&2
}

# update_lists waits for another apt: its lock on the lists knows no timeout.
update_lists() {
  local try
  for try in 1 2 3 4 5 6; do
    apt update && return
    [ "$try" = 6 ] || sleep 10
  done
  say "apt-get update did not succeed; trying with the lists as they are"
}

# Debian starts a service when its package arrives, unless this policy forbids it.
policy=/usr/sbin/policy-rc.d
forbid_starts() {
  [ -e "$policy" ] && return
  trap allow_starts EXIT
  # shellcheck disable=SC2016 # the shell of root expands it
  as_root sh -c 'printf "#!/bin/sh\nexit 101\n" >"$1" && chmod 755 "$1"' sh "$policy"
}
allow_starts() { as_root rm -f "$policy"; }

install_with_apt() {
  local words
  # One at a time on this machine; who waited may find everything there.
  exec 9</etc/os-release
  flock -w 900 9
  words=$(missing)
  [ -n "$words" ] || return 0
  # shellcheck disable=SC2046,SC2086 # words to be split
  set -- $(packages apt $words)
  say "installing $* with apt-get"
  forbid_starts
  update_lists
  apt install --no-install-recommends "$@"
}

install_with_brew() {
  # shellcheck disable=SC2046 # words to be split
  set -- $(packages brew "$@")
  [ $# -gt 0 ] || return 0
  say "installing $* with Homebrew"
  HOMEBREW_NO_ENV_HINTS=1 HOMEBREW_NO_INSTALL_CLEANUP=1 brew install --quiet "$@" >&2
}

# give_up WORD...: says what to install, and what to do without.
give_up() {
  if [ "$purpose $*" = "demo redis" ]; then
    say "no redis-server, and no way to install it: the demo uses a stand-in inside its process"
    exit 0
  fi
  say "missing: $*. Install, then run again:"
  # shellcheck disable=SC2046 # words to be split
  {
    echo "  Debian, Ubuntu:  apt-get install --no-install-recommends" $(packages apt "$@")
    echo "  macOS:           brew install" $(packages brew "$@")
    case " $* " in *" compiler "*) echo "                   xcode-select --install" ;; esac
    echo "  elsewhere:       redis-server, and postgres with initdb, on PATH;" \
      "for the tests gcc, ps, pgbouncer and curl"
    [ "$purpose" = test ] || echo "Or, with everything in containers:  docker compose up"
  } >&2
  exit 1
}

words=$(missing)
[ -n "$words" ] || exit 0
# shellcheck disable=SC2086 # words to be split
if [ "$(uname)" = Darwin ]; then
  command -v brew >/dev/null || give_up $words
  install_with_brew $words || say "Homebrew did not succeed"
elif command -v apt-get >/dev/null; then
  can_be_root || give_up $words
  (install_with_apt) || say "apt-get did not succeed"
else
  give_up $words
fi

words=$(missing)
# shellcheck disable=SC2086 # words to be split
[ -z "$words" ] || give_up $words
