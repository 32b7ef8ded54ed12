#!/usr/bin/env bash
# Fetches axe-core, which tests/browser/test_access.py runs in the page, once a build directory.
# usage: tools/axe.sh FILE      (FILE: where axe.min.js is put)
# Without the package registry there is no FILE, and the test is skipped with that reason.
set -euo pipefail

version=4.14.1
sum=29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c
file=${1:?usage: tools/axe.sh FILE}
is_there() { echo "$sum  $1" | sha256sum --check --status; }

if [ -f "$file" ] && is_there "$file"; then exit 0; fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
if ! (cd "$dir" && npm pack --silent --prefer-offline "axe-core@$version" >/dev/null && tar xzf axe-core-*.tgz package/axe.min.js); then
    echo "tools/axe.sh: npm could not fetch axe-core $version; the page's accessibility is not checked" >&2
    exit 0
fi
is_there "$dir/package/axe.min.js" || { echo "tools/axe.sh: axe-core $version: axe.min.js has not the sha256 $sum" >&2; exit 1; }
mkdir -p "$(dirname "$file")"
mv "$dir/package/axe.min.js" "$file"
