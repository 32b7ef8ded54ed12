#!/usr/bin/env bash
# Installs the Debian packages that building (and, with "test", checking) Berth needs.
# usage: tools/deps.sh build|test|dev
# Installs only what is missing; needs root or sudo only then.
set -euo pipefail

build="build-essential pkg-config libcurl4-openssl-dev libnghttp2-dev libhttp-parser-dev libssl-dev zlib1g-dev libzmq3-dev libprotobuf-c-dev
 protobuf-c-compiler libyaml-dev libuv1-dev libmicrohttpd-dev libgnutls28-dev libsqlite3-dev libxxhash-dev systemtap-sdt-dev ca-certificates"
test="$build libcunit1-dev libjansson-dev protobuf-compiler prometheus jq openssl nginx-light nghttp2-proxy curl procps iproute2
 python3 clang lld clang-format-14 gdb systemd zsh fish sqlite3 chromium chromium-driver python3-selenium python3-kubernetes wabt tzdata"
dev="$test clang-14 lld-14 clang-tidy-14 libclang-rt-14-dev cppcheck valgrind shellcheck gcovr
 debhelper help2man lintian man-db debootstrap systemd-container abigail-tools"

case "${1:-}" in
build) want=$build ;;
test) want=$test ;;
dev) want=$dev ;;
*) echo "usage: tools/deps.sh build|test|dev" >&2; exit 2 ;;
esac

missing=()
for p in $want; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
done
# kubectl comes from Debian's kubernetes-client unless some kubectl is there already.
if [ "$1" != build ] && ! command -v kubectl >/dev/null; then
    missing+=(kubernetes-client)
fi
# npm fetches axe-core (tools/axe.sh); Debian's conflicts with the one that other packages of nodejs bring.
if [ "$1" != build ] && ! command -v npm >/dev/null; then
    missing+=(npm)
fi
[ ${#missing[@]} -gt 0 ] || exit 0

sudo=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
        echo "tools/deps.sh: missing packages: ${missing[*]}" >&2
        echo "tools/deps.sh: run as root, or: apt-get install --no-install-recommends ${missing[*]}" >&2
        exit 1
    }
    sudo=sudo
fi
# Packages here that start a daemon of their own (prometheus, nginx-light, nghttp2-proxy) are only tools for the tests.
# A service that the machine had before is somebody's, and none of our business.
unwanted=()
if command -v systemctl >/dev/null && [ -d /run/systemd/system ]; then
    for s in prometheus prometheus-node-exporter nginx nghttpx; do
        systemctl cat "$s.service" >/dev/null 2>&1 || unwanted+=("$s.service")
    done
fi
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -q
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
for s in "${unwanted[@]}"; do
    if systemctl cat "$s" >/dev/null 2>&1; then
        $sudo systemctl disable --now "$s" || echo "tools/deps.sh: $s runs now and could not be stopped" >&2
    fi
done
