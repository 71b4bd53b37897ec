#!/bin/sh
# Makes a Debian 12 machine ready: installs the missing packages of packages.txt (as root, or with sudo) and
# a Python environment for the tests in $O3_BUILD/venv. Quiet and quick when nothing is missing.
#   setup.sh            packages and Python environment
#   setup.sh packages   packages only
set -eu
cd "$(dirname "$0")/.."
build=${O3_BUILD:-build}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else
    echo "setup: '$*' needs root, and there is no sudo: run scripts/setup.sh as root once" >&2
    return 1
  fi
}

missing_packages() {
  sed 's/#.*//' scripts/packages.txt | while read -r package; do
    [ -n "$package" ] || continue
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
  done
  # A python3 in front of Debian's may bring venv along; Debian's own has it in a package apart.
  python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
}

# Shows the output of a command only when it fails.
quietly() {
  log=$(mktemp)
  if "$@" >"$log" 2>&1; then rm -f "$log"; return 0; fi
  echo "setup: '$*' failed:" >&2
  cat "$log" >&2
  rm -f "$log"
  return 1
}

install_packages() {
  command -v dpkg-query >/dev/null || {
    echo "setup: no dpkg here: install by hand what scripts/packages.txt names" >&2
    return 1
  }
  missing=$(missing_packages | tr '\n' ' ')
  [ -n "$missing" ] || return 0
  echo "setup: installing $missing"
  quietly as_root apt-get update
  # shellcheck disable=SC2086
  quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
}

# Rebuilt when the requirements or the Python change.
make_venv() {
  venv=$build/venv
  stamp=$({ cat test/requirements.txt; python3 --version; } | sha256sum | cut -c1-16)
  [ ! -e "$venv/.ready-$stamp" ] || return 0
  echo "setup: Python packages for the tests, in $venv"
  rm -rf "$venv"
  mkdir -p "$build"
  quietly python3 -m venv "$venv"
  quietly "$venv/bin/python" -m pip install --disable-pip-version-check -q -r test/requirements.txt
  touch "$venv/.ready-$stamp"
}

install_packages
[ "${1:-}" = packages ] || make_venv
