#!/bin/sh
# Configures (once) and builds into a folder: build.sh [folder [cmake option ...]]
set -eu
cd "$(dirname "$0")/.."
folder=${1:-${O3_BUILD:-build}}
[ $# = 0 ] || shift
command -v cmake >/dev/null && command -v ninja >/dev/null || {
  echo "build: cmake or ninja is missing; 'make setup' installs what is needed (Debian 12)" >&2
  exit 1
}
if [ ! -e "$folder/build.ninja" ] || [ $# -gt 0 ]; then cmake -G Ninja -S . -B "$folder" "$@"; fi
exec ninja -C "$folder" -j "$(nproc)"
