#!/usr/bin/env bash
# The units as installed: systemd-analyze verify is clean, the sandbox is tight, the layout follows the FHS.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
make -s --no-print-directory BUILD="${BERTH_BIN%/bin}" DESTDIR="$work/root" PREFIX=/usr install >"$work/install.log" 2>&1 ||
    not_ok "make install" "$(tail -n 20 "$work/install.log")"
for f in usr/bin/berth usr/sbin/berth-watcher usr/sbin/berth-scheduler usr/sbin/berth-binder usr/sbin/berth-front usr/sbin/berth-simulator \
    usr/share/berth/example-cluster.yaml lib/systemd/system/berth.target etc/berth/scheduler.yaml usr/lib/tmpfiles.d/berth.conf; do
    check "installs /$f" test -f "$work/root/$f"
done
if ! command -v systemd-analyze >/dev/null; then
    skip "systemd-analyze verify" "no systemd-analyze"
    exit 0
fi
# verify looks programs up by path: point the units at the staged ones
mkdir -p "$work/units"
for u in "$work"/root/lib/systemd/system/berth*; do
    sed "s|/usr/sbin/|$work/root/usr/sbin/|" "$u" >"$work/units/$(basename "$u")"
done
cp "$work/units/berth-binder@.service" "$work/units/berth-binder@1.service"
verify() {
    local out
    out=$(SYSTEMD_UNIT_PATH="$work/units:" systemd-analyze verify --man=no "$work/units/$1" 2>&1 | grep -E "$work/units|berth" || true)
    [ -z "$out" ] || { echo "$out"; return 1; }
}
for u in berth-watcher.service berth-scheduler.service berth-binder@1.service berth-front.service berth.target; do
    check "systemd-analyze verify $u" verify "$u"
done
mkdir "$work/units/berth-scheduler.service.d"
cp systemd/berth-scheduler-extenders.conf "$work/units/berth-scheduler.service.d/extenders.conf"
check "the drop-in for extenders" verify berth-scheduler.service
rm -r "$work/units/berth-scheduler.service.d"
for u in berth-watcher.service berth-scheduler.service berth-binder@1.service berth-front.service; do
    check "exposure of $u is at most 1.5" systemd-analyze security --offline=true --threshold=15 "$work/units/$u"
done
