#!/usr/bin/env bash
# Installs what building and testing inferstat needs, on Debian and Ubuntu.
#
#   scripts/setup.sh          what building, running and testing need
#   scripts/setup.sh --ci     also what the project's own checks need
#   scripts/setup.sh --bench  also what the benches compare with
#   scripts/setup.sh --list   prints the packages and installs nothing
#
# Installs only what is missing; when nothing is, changes nothing and asks
# nothing.  Without apt it prints what is missing and fails.
set -euo pipefail

# package | how to see that it is there | what for
#   tool:NAME   a program          lib:NAME   a library known to pkg-config
#   py:NAME     a Python module    file:GLOB  a file
needed="
build-essential        | tool:cc tool:c++ tool:make | compiling
cmake                  | tool:cmake             | configuring, version 3.25 or later
ninja-build            | tool:ninja             | building
pkg-config             | tool:pkg-config        | finding libraries
libzmq3-dev            | lib:libzmq             | messages between the programs
libsodium-dev          | lib:libsodium          | encryption of the collector's TCP sockets
libpcre2-dev           | lib:libpcre2-8         | cutting texts into words, as language models expect
libprotobuf-c-dev      | lib:libprotobuf-c      | their encoding
protobuf-c-compiler    | tool:protoc-c          | C code from proto/
libsqlite3-dev         | lib:sqlite3            | the store
libncurses-dev         | lib:ncursesw           | the dashboard
libopenblas0-pthread   | file:/usr/lib/*/libopenblas.so.0 | matrix products, opened at run time: programs start without it
libcurl4-openssl-dev   | lib:libcurl            | calling webhooks of alerts
libjansson-dev         | lib:jansson            | reading what llama-bench writes
libmicrohttpd-dev      | lib:libmicrohttpd      | the page of metrics that Prometheus reads
liblapacke             | file:/usr/lib/*/liblapacke.so.3 | low-rank compression of small models, opened at run time
libcmocka-dev          | lib:cmocka             | unit tests
tmux                   | tool:tmux              | tests that look at the dashboard
sqlite3                | tool:sqlite3           | tests that recount what the store holds
python3                | tool:python3           | the check scripts and some tests
python3-zmq            | py:zmq                 | the test that speaks the protocol from Python
python3-protobuf       | py:google.protobuf     | the same
protobuf-compiler      | tool:protoc            | the same
"
ci_needed="
clang-14               | tool:clang-14          | the fuzz targets
libclang-rt-14-dev     | file:/usr/lib/llvm-14/lib/clang/*/lib/linux/libclang_rt.fuzzer-$(uname -m).a | libFuzzer
clang-format-14        | tool:clang-format-14   | the format check
clang-tidy-14          | tool:clang-tidy-14     | lint
cppcheck               | tool:cppcheck          | lint
shellcheck             | tool:shellcheck        | lint of the scripts
groff-base             | tool:groff             | the check of the manual pages
iproute2               | tool:ip                | tests between hosts, in network namespaces
e2fsprogs              | tool:chattr            | the test of a store that turns read-only
prometheus             | tool:prometheus tool:promtool | the test of the page of metrics
prometheus-alertmanager | tool:prometheus-alertmanager | the test that sends it alerts
openssl                | tool:openssl           | the test that a webhook's certificate is verified
zsh                    | tool:zsh               | the test of its completion
fish                   | tool:fish              | the same
"
bench_needed="
victoria-metrics       | tool:victoria-metrics  | what ingest is compared with
liblttng-ust-dev       | lib:lttng-ust          | what recording is compared with
lttng-tools            | tool:lttng             | the same
"
cmake_minimum=3.25

say() {
  printf 'setup: %s\n' "$*" >&2
}

# Whether one probe of the table finds what it looks for.
probe() {
  local what=${1#*:} python file
  case $1 in
  tool:*) command -v "$what" >/dev/null ;;
  lib:*) command -v pkg-config >/dev/null && pkg-config --exists "$what" ;;
  py:*)
    python=/usr/bin/python3
    [ -x "$python" ] || python=python3
    "$python" -c "import $what" 2>/dev/null
    ;;
  file:*)
    for file in $what; do
      [ ! -e "$file" ] || return 0
    done
    return 1
    ;;
  esac
}

# Prints the packages of which some probe finds nothing.
list_missing() {
  local package probes _ one
  while IFS='|' read -r package probes _; do
    for one in $probes; do
      if ! probe "$one"; then
        printf '%s ' "${package%% *}"
        break
      fi
    done
  done <<<"$table"
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    env DEBIAN_FRONTEND=noninteractive "$@"
  elif [ -t 0 ]; then
    sudo env DEBIAN_FRONTEND=noninteractive "$@"
  else
    sudo -n env DEBIAN_FRONTEND=noninteractive "$@"
  fi
}

apt_update() {
  as_root apt-get -q -o DPkg::Lock::Timeout=300 update
}

apt_install() {
  as_root apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends "$@" </dev/null
}

# Whether apt knows a version of every package given.
apt_knows() {
  local package
  for package in "$@"; do
    LC_ALL=C apt-cache policy "$package" 2>/dev/null | grep -q 'Candidate: [^(]' || return 1
  done
}

install_with_apt() {
  if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
    say "cannot install packages: not root and no sudo (as root: apt-get install $*)"
    return 1
  fi
  say "installing: $*"
  if ! apt_knows "$@"; then
    apt_update || return 1
    apt_install "$@"
  else
    apt_install "$@" || { apt_update && apt_install "$@"; } # the package lists may be stale
  fi
}

check_cmake() {
  local version
  version=$(cmake --version | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p')
  if [ "$(printf '%s\n' "$cmake_minimum" "$version" | sort -V | head -n 1)" != "$cmake_minimum" ]; then
    say "cmake $version is too old: $cmake_minimum or later is needed (see https://cmake.org/download)"
    return 1
  fi
}

table=$needed
list=no
for argument in "$@"; do
  case $argument in
  --ci) table+=$ci_needed ;;
  --bench) table+=$bench_needed ;;
  --list) list=yes ;;
  --help | -h)
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
    exit 0
    ;;
  *)
    say "unknown option: $argument (see --help)"
    exit 2
    ;;
  esac
done
table=$(sed '/^$/d' <<<"$table")

if [ "$list" = yes ]; then
  printf '%s\n' "$table" | awk -F ' *[|] *' '{ printf "%-22s %s\n", $1, $3 }'
  exit 0
fi

missing=$(list_missing)
if [ -n "$missing" ]; then
  read -ra packages <<<"$missing"
  if ! command -v apt-get >/dev/null; then
    say "missing, by their Debian names: ${packages[*]}"
    say "there is no apt here: install what your system calls these, then run this again"
    exit 1
  fi
  install_with_apt "${packages[@]}" || {
    say "could not install: ${packages[*]} (as root: apt-get update && apt-get install ${packages[*]})"
    exit 1
  }
  missing=$(list_missing)
  if [ -n "$missing" ]; then
    say "still not found after installing: $missing(is another version earlier in PATH or PKG_CONFIG_PATH?)"
    exit 1
  fi
fi
check_cmake
