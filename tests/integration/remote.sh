#!/usr/bin/env bash
# Binders on other hosts: keys, tcp under CURVE, binders that come and go while pods are being scheduled. A "host" is a
# runtime directory of its own; nothing but the tcp port connects the two.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
for t in curl jq; do
    command -v $t >/dev/null || { skip "binders on other hosts" "no $t"; exit 0; }
done
declare -A pid
audit=$work/audit.log
keys=$work/keys allow=$work/allow
mkdir -p "$keys" "$allow"
cat >"$work/tokens" <<T
t-admin,admin,1,system:masters
t-a,host-a,2,system:masters
t-b,host-b,3,system:masters
t-c,host-c,4,system:masters
T
"$BERTH_BIN/berth-simulator" --kubeconfig-out "$work/admin.yaml" --token-file "$work/tokens" --audit-log-path "$audit" \
    >"$work/simulator.log" 2>&1 &
pid[sim]=$!
wait_for_file "$work/admin.yaml" || { not_ok "berth-simulator starts" "$(cat "$work/simulator.log")"; exit 1; }
for h in a b c; do sed "s/t-admin/t-$h/" "$work/admin.yaml" >"$work/$h.yaml"; done
end_all() {
    kill -TERM "${pid[@]}" 2>/dev/null
    for p in "${pid[@]}"; do wait "$p" 2>/dev/null; done
    pid=()
}
trap 'end_all; finish' EXIT

# ---- keys
expect "keygen makes a pair" 'scheduler.key .*scheduler.pub' "$BERTH_BIN/berth" keygen "$keys/scheduler" "$keys/b" "$keys/c" "$keys/stranger"
expect "the secret one is for its owner only" '^600$' stat -c %a "$keys/scheduler.key"
expect "keygen overwrites nothing" 'it is there already' bash -c "! '$BERTH_BIN/berth' keygen '$keys/b'"

# ---- refusals
refused() { # name pattern command...
    local name=$1 pattern=$2 out
    shift 2
    out=$(timeout 120 "$@" 2>&1)
    if [ $? -eq 1 ] && grep -qE -- "$pattern" <<<"$out"; then ok "$name"; else not_ok "$name" "$out"; fi
}
sched() { "$BERTH_BIN/berth-scheduler" --runtime-dir "$work/x" --metrics-address 0 "$@"; }
export -f sched
mkdir -p "$work/x"
refused "no tcp without keys: scheduler" 'tcp needs a key and a folder' \
    "$BERTH_BIN/berth-scheduler" --runtime-dir "$work/x" --metrics-address 0 --binder-listen tcp://127.0.0.1:0
refused "no tcp without keys: binder" 'tcp needs a key of ours and the public key' \
    "$BERTH_BIN/berth-binder" --runtime-dir "$work/x" --metrics-address 0 --kubeconfig "$work/b.yaml" --scheduler tcp://127.0.0.1:1
chmod 644 "$keys/stranger.key"
refused "a key that others may read" 'others may read or change it \(mode 0644\)' \
    "$BERTH_BIN/berth-binder" --runtime-dir "$work/x" --metrics-address 0 --kubeconfig "$work/b.yaml" --scheduler tcp://127.0.0.1:1 \
    --key-file "$keys/stranger.key" --scheduler-key "$keys/scheduler.pub"
chmod 600 "$keys/stranger.key"

# ---- host a: everything; hosts b and c: a binder
start() { # host process flags...
    local h=$1 what=$2 dir=$work/$1 name
    shift 2
    mkdir -p "$dir"
    name=$h.$what
    case $what in
    watcher) set -- --kubeconfig "$work/$h.yaml" --leader-elect=false --metrics-address 127.0.0.1:0 "$@" ;;
    scheduler) set -- --metrics-address 127.0.0.1:0 "$@" ;;
    binder) set -- --kubeconfig "$work/$h.yaml" --metrics-address 127.0.0.1:0 "$@" ;;
    esac
    "$BERTH_BIN/berth-$what" --runtime-dir "$dir" "$@" >>"$work/$name.log" 2>&1 &
    pid[$name]=$!
}
stop() { kill "-$2" "${pid[$1]}" && wait "${pid[$1]}" 2>/dev/null; unset "pid[$1]"; }
cp "$keys/b.pub" "$allow/"
start a watcher
start a scheduler --binder-listen 'tcp://127.0.0.1:*' --key-file "$keys/scheduler.key" --binder-keys "$allow"
listens() { grep -q 'Binders of other hosts may connect' "$work/a.scheduler.log"; }
eventually "the scheduler listens" 15 listens || exit 1
at=$(sed -n 's/.*Binders of other hosts.*endpoint="\([^"]*\)".*/\1/p' "$work/a.scheduler.log")
remote() { # host key scheduler-key
    start "$1" binder --scheduler "$at" --key-file "$keys/$2.key" --scheduler-key "$keys/$3.pub"
}
port() { sed -n 's/.*metrics_port=\([0-9]*\).*/\1/p' "$work/$1.log" | tail -n 1; }
ready() { curl -fsS "http://127.0.0.1:$(port "$1.binder")/readyz"; }
binds_of() { lines_with "\"username\":\"host-$1\"" grep -F '"subresource":"binding"' "$audit"; }
load() { # prefix pods
    "$BERTH_BIN/berth" load synthetic --kubeconfig "$work/admin.yaml" --prefix "$1" --node-count 40 --pod-count "$2" \
        --timeout $((30 * PATIENCE))s -o json >"$work/load.$1" 2>&1
}
remote b b scheduler
eventually "an allowed binder gets ready" 15 ready b
check "and binds a load alone" load first 200
expect "every pod of it" '^200$' binds_of b

# ---- a stranger, and a binder that was told another scheduler's key
remote c stranger scheduler
stranger_waits() { curl -sS "http://127.0.0.1:$(port c.binder)/readyz" | grep -q 'scheduler failed'; }
eventually "a stranger does not get ready" 15 stranger_waits
stop c.binder TERM
remote c b stranger
eventually "nor does who pins another scheduler" 15 stranger_waits
stop c.binder TERM
check "work goes on" load second 100
expect "nothing was bound by them" '^0$' binds_of c

# ---- in comes c, out goes b, under load and without a restart
remote c c scheduler
eventually "c is not allowed yet" 15 stranger_waits
load third 1500 &
job=$!
cp "$keys/c.pub" "$allow/"
eventually "c comes in without a restart" 20 ready c
rm "$allow/b.pub"
wait $job
expect "the load is complete" '"bound":1500,' cat "$work/load.third"
shut_out() { curl -sS "http://127.0.0.1:$(port b.binder)/readyz" | grep -q 'scheduler failed'; }
eventually "b is shut out" 20 shut_out
was=$(binds_of b)
check "c alone goes on" load fourth 100
expect "b binds no more" "^$was\$" binds_of b
cp "$keys/b.pub" "$allow/"
eventually "b is let in again" 20 ready b

# ---- hosts die
was=$(binds_of c)
load fifth 1500 &
job=$!
more_of_c() { [ "$(binds_of c)" -gt "$was" ]; }
eventually "a third host binds of it" 20 more_of_c
stop c.binder KILL
wait $job
expect "a killed host's work is done by others" '"bound":1500,' cat "$work/load.fifth"
stop a.scheduler KILL
start a scheduler --binder-listen "$at" --key-file "$keys/scheduler.key" --binder-keys "$allow"
check "the scheduler comes back at the same port" load sixth 100
expect "no pod was bound twice" '^0$' bound_twice "$audit"
note_shm
end_all
check "nothing is left in shared memory" no_shm
