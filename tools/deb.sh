#!/usr/bin/env bash
# Builds the Debian packages from the files that git knows (as they are now) and asks lintian.
# usage: tools/deb.sh OUT
set -euo pipefail
out=$1
rm -rf "$out"
mkdir -p "$out/berth"
git ls-files -z | tar --null --files-from=- --ignore-failed-read -cf - | tar -xf - -C "$out/berth"
(cd "$out/berth" && dpkg-buildpackage --build=binary --unsigned-changes >../build.log 2>&1) || {
    tail -40 "$out/build.log" >&2
    echo "tools/deb.sh: the build failed; the whole log is $out/build.log" >&2
    exit 1
}
rm -rf "$out/berth"
lintian --fail-on error,warning --tag-display-limit 0 "$out"/*.changes
ls -l "$out"/*.deb
