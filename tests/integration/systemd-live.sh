#!/usr/bin/env bash
# The package on a host of its own: a Debian that systemd boots in a container, with a network that nobody else is on, and
# the built-in API server there with TLS and RBAC. Units that are killed, stopped, reloaded, added, upgraded and purged
# while pods come all the time. `make systemd-live`, by root only, on a machine that lets systemd boot in a
# container. BERTH_DEB: the package (default: the newest in build/deb, which `make deb` makes).
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
give_up() { skip "live systemd" "$1"; exit 0; }
[ "$(id -u)" = 0 ] || give_up "only root can boot a container"
for t in debootstrap systemd-nspawn nsenter kubectl python3 jq dpkg-deb; do
    command -v $t >/dev/null || give_up "no $t"
done
build=${BERTH_BIN%/bin}
deb=${BERTH_DEB:-$(find "$build/deb" -maxdepth 1 -name 'berth_*.deb' 2>/dev/null | sort | tail -n 1)}
[ -s "$deb" ] || give_up "no package: make deb"

# ---- a root: made once for what the package needs, kept in the build folder
packages=$(dpkg-deb -f "$deb" Depends | sed 's/([^)]*)//g; s/|[^,]*//g; s/,/ /g')
packages=systemd-sysv,dbus,$(xargs -n 1 <<<"$packages" | sort -u | paste -sd,)
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
tar=$build/systemd-live/$suite-$(md5sum <<<"$packages" | cut -c1-12).tar
if [ ! -s "$tar" ]; then
    mkdir -p "${tar%/*}"
    debootstrap --variant=minbase --include="$packages" "$suite" "$work/new" >"$work/debootstrap.log" 2>&1 ||
        give_up "debootstrap: $(tail -n 1 "$work/debootstrap.log")"
    rm -rf "$work/new/var/cache/apt/archives/"*.deb "$work/new/var/lib/apt/lists/"*
    tar -cf "$tar.new" --numeric-owner --one-file-system -C "$work/new" . && mv "$tar.new" "$tar"
    rm -rf --one-file-system "$work/new"
fi
root=$work/root
mkdir "$root" && tar -xf "$tar" --numeric-owner -C "$root"

# ---- what filters refuse is told by the kernel, of all programs on this machine
python3 "$here/lib/seccomp_log.py" >"$work/seccomp" 2>&1 &
also_stop=$!
wait_for_file "$work/seccomp"

# ---- boot
systemd-nspawn --quiet --register=no --keep-unit --boot --private-network --machine=berth-live \
    --setenv=SYSTEMD_LOG_SECCOMP=1 --directory="$root" </dev/null >"$work/boot.log" 2>&1 &
nspawn=$!
also_stop="$nspawn $also_stop"
leader=
inside() { nsenter -t "$leader" -a -r -w -- env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@" </dev/null; }
booted() {
    leader=$(ps -o pid= --ppid $nspawn | head -n 1 | tr -d ' ')
    [ -n "$leader" ] && inside systemctl is-system-running 2>/dev/null | grep -qE '^(running|degraded)$'
}
end=$((SECONDS + 60 * PATIENCE))
until booted; do
    if ! kill -0 $nspawn 2>/dev/null || [ "$SECONDS" -gt "$end" ]; then
        kill -KILL $nspawn 2>/dev/null # and all in it: one that does not boot may not hear that it shall stop
        give_up "systemd does not boot in a container here: $(tail -n 1 "$work/boot.log")"
    fi
    sleep 0.2
done
ok "$(inside systemctl --version | head -n 1) boots"
at_home() { nsenter -t "$leader" -n -- "$@" </dev/null; } # our own program at its network
admin=$root/etc/kubernetes/admin.conf
k() { at_home kubectl --kubeconfig "$admin" --cache-dir "$work/cache" "$@"; }
units="berth-watcher berth-scheduler berth-binder@1 berth-binder@2 berth-front"
prop() { inside systemctl show -P "$2" "$1"; }
all() { # property value units...: each has it
    local u
    for u in "${@:3}"; do [ "$(prop "$u" "$1")" = "$2" ] || { inside systemctl status --no-pager -n 20 "$u"; return 1; }; done
}
said() { inside journalctl -q -o cat -u "$1" --grep "$2"; } # unit pattern

# ---- installing starts nothing
cp "$deb" "$root/root/berth.deb"
check "the package installs" inside dpkg -i /root/berth.deb
check "which starts nothing" all ActiveState inactive $units berth.target
expect "makes the runtime directory" '^root:berth 1770$' inside stat -c '%U:%G %a' /run/berth

# ---- the API server, and a kubeconfig for each user
cp "$root/usr/sbin/berth-simulator" "$root/opt/api-server" # it is not Berth's host's business, and outlives the package
mkdir -p "$root/etc/kubernetes"
cat >"$root/etc/kubernetes/tokens" <<T
t-admin,admin,1,"system:masters"
t-watcher,berth:watcher,2
t-binder,berth:binder,3
t-front,berth:front,4
T
inside systemd-run -q --unit api-server /opt/api-server --tls --port 6443 --token-file /etc/kubernetes/tokens \
    --kubeconfig-out /etc/kubernetes/admin.conf --audit-log-path /var/log/audit.log
wait_for_file "$admin" || { not_ok "the API server starts" "$(inside journalctl -u api-server)"; exit 1; }
check "RBAC" k apply -f "$here/../../config/rbac.yaml"
for u in watcher binder front; do
    sed "s/t-admin/t-$u/" "$admin" >"$root/etc/berth/$u.kubeconfig"
    chmod 600 "$root/etc/berth/$u.kubeconfig"
done

# ---- load: pods that never end, in batches that have to be decided to the last one
batches=0
more_pods() { # batch [nodes]
    at_home "$BERTH_BIN/berth" load synthetic --kubeconfig "$admin" --node-count "${2:-1}" --pod-count 200 --prefix "batch-$1" \
        --timeout 15m -o json >"$work/load-$1" 2>"$work/load-$1.err"
    echo $? >"$work/load-$1.rc"
}
whole() { # batch: each of its pods was bound
    [ "$(cat "$work/load-$1.rc")" = 0 ] && [ "$(jq .bound "$work/load-$1")" = 200 ] || { cat "$work/load-$1" "$work/load-$1.err"; return 1; }
}
loads=0
load_begins() {
    local enough=$work/enough.$((++loads))
    (
        n=$batches
        until [ -e "$enough" ] || [ ! -d "$work" ]; do
            n=$((n + 1))
            more_pods $n
            echo $n >"$work/batches"
        done
    ) &
    loader=$!
    eventually "pods come" 30 bound_of $((batches + 1)) 1
}
load_ends() { # what is checked: not by check itself, whose shell cannot wait for the load
    local first=$((batches + 1)) # the whole loop, not only its last one
    : >"$work/enough.$loads"
    wait "$loader"
    batches=$(cat "$work/batches")
    check "$1" decided_from "$first"
}
decided_from() { # batch
    local b
    for b in $(seq "$1" "$batches"); do whole "$b" || return 1; done
    no_line_with '^$' k get pods -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}'
}
bound_of() { # batch least
    local n
    n=$(k get pods -l "app=batch-$1" -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | grep -c .)
    [ "$n" -ge "$2" ] || { echo "$n are bound"; return 1; }
}

# ---- start
check "systemctl enable --now berth.target" inside systemctl enable --now berth.target
eventually "everybody is active" 30 all ActiveState active $units berth.target
more_pods 0 400
check "200 pods are bound" whole 0
front() { at_home curl -fsSk -H "Authorization: Bearer t-admin" "https://127.0.0.1:10259$1"; }
metric_is() { front /metrics | grep -F "$1" | awk -v want="$2" '!/^#/ { n += $NF } END { exit n != want }'; }
eventually "the HTTPS port answers for all" 20 metric_is 'berth_scheduler_ledger{what="binders"}' 2
exposure() { # unit most
    local said
    said=$(inside systemd-analyze security --no-pager "$1" | sed -n 's/.*Overall exposure level for [^ ]*: \([0-9.]*\) .*/\1/p')
    awk -v is="$said" -v most="$2" 'BEGIN { exit !(is != "" && is + 0 <= most + 0) }' || { echo "it is \"$said\""; return 1; }
}
for u in $units; do
    most=1.3
    [ $u != berth-scheduler ] || most=0.5
    check "exposure of $u, live, is at most $most" exposure $u.service $most
done

# ---- killed
declare -A was
remember() { local u; for u in "$@"; do was[$u]=$(prop "$u" MainPID); done; }
anew() { # unit: another process than the one remembered
    local pid
    pid=$(prop "$1" MainPID)
    [ "$(prop "$1" ActiveState)" = active ] && [ "$pid" != 0 ] && [ "$pid" != "${was[$1]}" ] ||
        { inside systemctl status --no-pager -n 20 "$1"; return 1; }
}
load_begins
remember $units
for u in $units; do
    check "$u is killed" inside systemctl kill --kill-whom=main -s KILL $u
    eventually "and comes back" 20 anew $u
done
load_ends "nothing was lost by that"

# ---- stopped: the watchdog, which systemd itself keeps
load_begins
remember $units
for u in $units; do inside systemctl kill --kill-whom=main -s STOP $u; done
for u in $units; do
    eventually "the watchdog ends $u, which was stopped" 30 said $u 'Watchdog timeout'
    eventually "and it comes back" 20 anew $u
done
load_ends "nothing was lost by that either"

# ---- reload
remember berth-scheduler
printf 'profiles: [{schedulerName: default-scheduler}, {schedulerName: second}]\n' >>"$root/etc/berth/scheduler.yaml"
check "systemctl reload" inside systemctl reload berth-scheduler
eventually "takes the changed configuration" 20 said berth-scheduler 'starts again with a changed configuration'
cat >"$work/second.yaml" <<Y
apiVersion: v1
kind: Pod
metadata: {name: second, labels: {app: batch-second}}
spec: {schedulerName: second, containers: [{name: c, image: pause}]}
Y
k create -f "$work/second.yaml" >/dev/null
eventually "its second scheduler binds" 20 bound_of second 1
check "in the same process" all MainPID "${was[berth-scheduler]}" berth-scheduler
cp "$root/etc/berth/scheduler.yaml" "$work/scheduler.yaml"
echo 'parallelism: many' >>"$root/etc/berth/scheduler.yaml"
check "systemctl reload, of nonsense" inside systemctl reload berth-scheduler
eventually "is refused, and said why" 20 said berth-scheduler 'stays as it is.*parallelism'
cp "$work/scheduler.yaml" "$root/etc/berth/scheduler.yaml"

# ---- more binders
load_begins
check "systemctl start berth-binder@{3..5}" inside systemctl start berth-binder@{3,4,5}
eventually "the scheduler has five binders" 20 metric_is 'berth_scheduler_ledger{what="binders"}' 5
check "systemctl stop of them" inside systemctl stop berth-binder@{3,4,5}
eventually "it has two again" 20 metric_is 'berth_scheduler_ledger{what="binders"}' 2
load_ends "nothing was lost by their going"

# ---- stop
lease() { k -n kube-system get lease kube-scheduler -o "jsonpath={.spec.$1}"; }
holder() { lease holderIdentity; }
expect "the lease has a holder" . holder
# What a binder that was killed, or that a former scheduler had, may write ends with its grant: until then nobody gives the lease back.
renewed_since() { [ "$(date -d "$(lease renewTime)" +%s)" -ge "$1" ]; }
grants_end() { eventually "grants of what was killed or replaced are over" 20 renewed_since $(($(date +%s) + 13 * SCALE)); }
grants_end
load_begins
check "systemctl stop berth.target" inside systemctl stop berth.target
eventually "stops everybody" 20 all ActiveState inactive $units
expect "and gives the lease back" '^$' holder
check "systemctl start" inside systemctl start berth.target
load_ends "goes on where it was"

# ---- a new version, while it works
dpkg-deb -R "$deb" "$work/newer"
sed -i 's/^Version: .*/&+newer/' "$work/newer/DEBIAN/control"
echo '# newer' >>"$work/newer/lib/systemd/system/berth-scheduler.service"
dpkg-deb -b --root-owner-group "$work/newer" "$root/root/newer.deb" >/dev/null
load_begins
remember $units
check "upgrade" inside dpkg -i /root/newer.deb
for u in $units; do eventually "$u runs anew" 20 anew $u; done
expect "by the new unit" '^no$' prop berth-scheduler NeedDaemonReload
load_ends "nothing was lost by the upgrade"
inside systemctl stop berth.target
check "upgrade of what is stopped" inside dpkg -i /root/berth.deb
eventually "starts nothing" 20 all ActiveState inactive $units
inside systemctl start berth.target

# ---- journal
entries() { inside journalctl -q -o json --output-fields=MESSAGE,PRIORITY,SYSLOG_IDENTIFIER,_UID,_SYSTEMD_UNIT,_EXE "_SYSTEMD_UNIT=$1.service" >"$work/journal" && grep -q '"_EXE":"/usr/sbin/berth-' "$work/journal"; }
for u in $units; do
    check "$u writes to the journal" entries $u
    name=${u%@*} user=${u%@*}
    uid=$(inside id -u $user)
    wrong() { jq -r "select((._EXE // \"\") | startswith(\"/usr/sbin/\")) | select($1) | .MESSAGE" "$work/journal" | head -n 3; }
    for w in ".SYSLOG_IDENTIFIER != \"$name\"" "._UID != \"$uid\"" '(.PRIORITY | tonumber) < 3' '.MESSAGE | test("^<[0-9]>")'; do
        expect "nothing of it has $w" '^$' wrong "$w"
    done
done
priority_of() { entries "$1" && jq -r "select(.MESSAGE | tostring | test(\"$2\")) | .PRIORITY" "$work/journal" | sort -u | paste -sd' '; }
expect "a refused reload is an error" '^3$' priority_of berth-scheduler 'stays as it is'
expect "the lease is news" '^6$' priority_of berth-watcher 'Successfully acquired lease'

# ---- purge, while it works
grants_end
load_begins
check "purge" inside dpkg --purge berth
left() { inside sh -c 'ps -eo args | grep "^/usr/sbin/berth-"; ls -d /lib/systemd/system/berth* /usr/sbin/berth* /run/berth/* /var/lib/berth /dev/shm/berth-* /etc/systemd/system/*.wants/berth* /etc/default/berth /etc/berth/scheduler.yaml 2>/dev/null; true'; }
expect "leaves nothing that runs, and no file" '^$' left
expect "and gives the lease back, too" '^$' holder
check "install again" inside dpkg -i /root/berth.deb
check "and start" inside systemctl enable --now berth.target
load_ends "nothing was lost by the purge"
expect "no pod was bound twice in all of this" '^0$' bound_twice "$root/var/log/audit.log"
failed_units() { inside systemctl list-units --failed --no-legend --plain 'berth*'; }
expect "no unit has failed" '^$' failed_units

# ---- filters: nothing was refused to anybody of ours, and it would have been seen
sandboxed() { # command...: in the sandbox of our units
    inside systemd-run -q --wait -p SystemCallFilter=@system-service -p 'SystemCallFilter=~@privileged @resources' -p RestrictNamespaces=yes "$@"
}
seen() { grep -qE "^[0-9]+ $1\$" "$work/seccomp" || { sort "$work/seccomp" | uniq -c; return 1; }; }
if ! grep -q '^listening$' "$work/seccomp"; then
    skip "system calls that filters refuse" "the kernel does not tell: $(tail -n 1 "$work/seccomp")"
    exit 0
fi
sandboxed chroot / true
eventually "a system call that ends the process is seen" 5 seen '/usr/sbin/chroot chroot killed'
sandboxed unshare --user true
eventually "and one that only fails" 5 seen '/usr/bin/unshare unshare failed'
for p in watcher scheduler binder; do
    check "and berth-$p's sched_setscheduler, which does nothing" seen "/usr/sbin/berth-$p sched_setscheduler failed"
done
# clone3: RestrictNamespaces= cannot look at its flags, says that there is no such call, and the C library takes clone.
ours=$(for p in watcher scheduler binder front; do inside id -u berth-$p; done | paste -sd'|')
refused() {
    grep -E "^(lost|($ours) )" "$work/seccomp" | grep -vE ' (sched_setscheduler|clone3) failed$' | sort | uniq -c
}
expect "no other system call of ours was refused" '^$' refused
