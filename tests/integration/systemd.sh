#!/usr/bin/env bash
# The units as installed: systemd-analyze verify is clean, the sandbox is tight, the layout follows the FHS.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
# By the path that built it: make would know the headers of what it makes under another name only, and relink beside other tests.
make -s --no-print-directory BUILD="$(realpath --relative-to=. "${BERTH_BIN%/bin}")" DESTDIR="$work/root" PREFIX=/usr install >"$work/install.log" 2>&1 ||
    not_ok "make install" "$(tail -n 20 "$work/install.log")"
for f in usr/bin/berth usr/sbin/berth-watcher usr/sbin/berth-scheduler usr/sbin/berth-binder usr/sbin/berth-front usr/sbin/berth-metrics usr/sbin/berth-simulator \
    usr/share/berth/example-cluster.yaml lib/systemd/system/berth.target etc/berth/scheduler.yaml usr/lib/tmpfiles.d/berth.conf usr/libexec/berth/restart-pause usr/libexec/berth/berth-plugin-host; do
    check "installs /$f" test -f "$work/root/$f"
done
# ---- pauses before a start: sleep is told, not slept
mkdir "$work/bin"
printf '#!/bin/sh\necho "$1" >>%s/slept\n' "$work" >"$work/bin/sleep"
chmod 755 "$work/bin/sleep"
pause() { PATH="$work/bin:$PATH" "$work/root/usr/libexec/berth/restart-pause" "$work/start"; }
slept() { paste -sd' ' "$work/slept"; }
for _ in 1 2 3 4 5 6 7 8 9 10; do pause; done
expect "a process that dies again and again starts ever later" '^0\.1 0\.2 0\.4 0\.8 1\.6 3\.2 6\.4 10\.0 10\.0$' slept
SERVICE_RESULT=watchdog pause
check "its end alone changes nothing" test -s "$work/start"
touch -d '-61 seconds' "$work/start"
: >"$work/slept"
pause && pause
expect "one that had run for a minute starts at once" '^0\.1$' slept
for what in '' garbage 99999999999999999999; do
    echo "$what" >"$work/start"
    : >"$work/slept"
    pause
    expect "a file that says \"$what\" is half a second" '^0\.5$' slept
done
SERVICE_RESULT=success pause
check "who was stopped begins anew" test ! -e "$work/start"
: >"$work/slept"
expect "where nothing can be written it starts all the same" '^ *$' bash -c "PATH='$work/bin:$PATH' '$work/root/usr/libexec/berth/restart-pause' /nonexistent/start 2>/dev/null; cat '$work/slept'"

# ---- users
if command -v systemd-sysusers >/dev/null; then
    mkdir "$work/users" && mkdir "$work/users/etc"
    check "systemd-sysusers" systemd-sysusers --root="$work/users" "$work/root/usr/lib/sysusers.d/berth.conf"
    users() { join -t: -1 4 -2 3 -o 1.1,2.1 <(sort -t: -k4,4 "$work/users/etc/passwd") <(sort -t: -k3,3 "$work/users/etc/group") | sort | paste -sd' '; }
    expect "a user each, of one group" '^berth-binder:berth berth-front:berth berth-metrics:berth berth-scheduler:berth berth-watcher:berth$' users
fi
unit() { sed -n "s/^$2=//p" "$work/root/lib/systemd/system/$1.service"; }
for u in watcher scheduler binder@ front; do
    expect "berth-$u runs as a user of its own" "^berth-${u%@}\$" unit "berth-$u" User
    expect "berth-$u is never given up" '^0$' unit "berth-$u" StartLimitIntervalSec
    expect "berth-$u may start threads of libzmq" '^~sched_setscheduler:0$' unit "berth-$u" SystemCallFilter
done
for f in /etc/kubernetes/scheduler.conf /etc/kubernetes/pki /etc/berth/binder.kubeconfig /run/credentials /run/secrets; do
    expect "the scheduler's unit has no $f" "(^| )-$f( |\$)" unit berth-scheduler InaccessiblePaths
done
for u in watcher binder@ front; do
    expect "berth-$u may have a kubeconfig of its own" "^kubeconfig:/etc/berth/${u%@}.kubeconfig\$" unit "berth-$u" LoadCredential
done

if ! command -v systemd-analyze >/dev/null; then
    skip "systemd-analyze verify" "no systemd-analyze"
    exit 0
fi
# verify looks programs up by path: point the units at the staged ones
mkdir -p "$work/units"
for u in "$work"/root/lib/systemd/system/berth*; do
    sed "s|/usr/sbin/|$work/root/usr/sbin/|; s|/usr/libexec/|$work/root/usr/libexec/|" "$u" >"$work/units/$(basename "$u")"
done
cp "$work/units/berth-binder@.service" "$work/units/berth-binder@1.service"
verify() {
    local out
    out=$(SYSTEMD_UNIT_PATH="$work/units:" systemd-analyze verify --man=no "$work/units/$1" 2>&1 | grep -E "$work/units|berth" || true)
    [ -z "$out" ] || { echo "$out"; return 1; }
}
for u in berth-watcher.service berth-scheduler.service berth-binder@1.service berth-front.service berth-metrics.service berth.target; do
    check "systemd-analyze verify $u" verify "$u"
done
mkdir "$work/units/berth-scheduler.service.d"
for d in extenders binders; do
    cp "systemd/berth-scheduler-$d.conf" "$work/units/berth-scheduler.service.d/$d.conf"
    check "the drop-in for $d" verify berth-scheduler.service
    rm "$work/units/berth-scheduler.service.d/$d.conf"
done
rmdir "$work/units/berth-scheduler.service.d"
exposure() { # unit most
    local said
    said=$(systemd-analyze security --offline=true "$work/units/$1" | sed -n 's/.*Overall exposure level for [^ ]*: \([0-9.]*\) .*/\1/p')
    awk -v is="$said" -v most="$2" 'BEGIN { exit !(is != "" && is + 0 <= most + 0) }' || { echo "it is \"$said\""; return 1; }
}
check "exposure of berth-scheduler.service is at most 0.5" exposure berth-scheduler.service 0.5
for u in berth-watcher.service berth-binder@1.service berth-front.service berth-metrics.service; do
    check "exposure of $u is at most 1.3" exposure "$u" 1.3
done
