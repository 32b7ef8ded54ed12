#!/usr/bin/env bash
# Packs what is built for `kubectl krew install`, so that `kubectl berth` is there for users without root: an archive, and
# the manifest for an index with its digest.
# usage: tools/krew.sh BUILD OUT URI      (URI: the folder that the archive will be downloaded from)
set -euo pipefail
build=$1 out=$2 uri=${3%/}
version=$("$build/bin/berth" version | cut -d' ' -f2)
case $(uname -m) in
x86_64) arch=amd64 ;;
aarch64) arch=arm64 ;;
*) arch=$(uname -m) ;;
esac
name=berth-$version-linux-$arch.tar.gz
rm -rf "$out"
mkdir -p "$out/pack/bin"
cp "$build"/bin/berth "$build"/bin/berth-{bench,binder,front,metrics,plugin-host,scheduler,simulator,watcher} "$out/pack/bin/"
cp -r "$build/share" LICENSE "$out/pack/"
strip "$out"/pack/bin/*
tar -C "$out/pack" --sort=name --owner=0 --group=0 --mtime=@0 -c . | gzip -n >"$out/$name"
rm -rf "$out/pack"
cat >"$out/berth.yaml" <<Y
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: berth
spec:
  version: v$version
  homepage: $uri
  shortDescription: Explains and simulates scheduling decisions
  description: |
    Why is a pod pending, where would it go, what would change that: the
    decisions of kube-scheduler, node by node and plugin by plugin; what-if,
    capacity and drain previews, and a built-in API server to try things out.
  caveats: |
    Needs the libraries libzmq5, libprotobuf-c1, libcurl4, libyaml-0-2,
    libmicrohttpd12, libsqlite3-0 and libuv1 of the system.
    Begin with: kubectl berth help
  platforms:
  - selector:
      matchLabels: {os: linux, arch: $arch}
    uri: $uri/$name
    sha256: $(sha256sum "$out/$name" | cut -d' ' -f1)
    bin: bin/berth
Y
echo "$out/berth.yaml"
