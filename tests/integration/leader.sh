#!/usr/bin/env bash
# Two hosts, each with watcher, scheduler and binder in a runtime directory of its own, one lease, one API server
# whose audit log says who wrote what: stand-by, take-over after a stop, a kill, a release; and not one write from
# a leader that was stopped for longer than its lease and then continued.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
for t in curl jq; do
    command -v $t >/dev/null || { skip "leadership" "no $t"; exit 0; }
done
LEASE=$((3 * SCALE))s RENEW=$((2 * SCALE))s RETRY=$((400 * SCALE))ms
audit=$work/audit.log
declare -A pid

cat >"$work/tokens" <<T
t-admin,admin,1,system:masters
t-a,host-a,2,system:masters
t-b,host-b,3,system:masters
T
# every request takes a while, so that there is always work on its way when a process is stopped
"$BERTH_BIN/berth-simulator" --kubeconfig-out "$work/admin.yaml" --token-file "$work/tokens" --audit-log-path "$audit" \
    --faults delay-ms=20 >"$work/simulator.log" 2>&1 &
pid[sim]=$!
wait_for_file "$work/admin.yaml" || { not_ok "berth-simulator starts" "$(cat "$work/simulator.log")"; exit 1; }
server=$(awk '$1 == "server:" {print $2}' "$work/admin.yaml")
for h in a b; do sed "s/t-admin/t-$h/" "$work/admin.yaml" >"$work/$h.yaml"; done
get() { curl -fsS -H 'Authorization: Bearer t-admin' "$server$1"; }
LEASES=/apis/coordination.k8s.io/v1/namespaces/kube-system/leases

start() { # host process
    local h=$1 what=$2 dir=$work/$1 bin
    mkdir -p "$dir"
    bin=$BERTH_BIN/berth-$what
    case $what in
    watcher) set -- --kubeconfig "$work/$h.yaml" --leader-elect-lease-duration "$LEASE" \
        --leader-elect-renew-deadline "$RENEW" --leader-elect-retry-period "$RETRY" --metrics-address 127.0.0.1:0 ;;
    scheduler) set -- --metrics-address 127.0.0.1:0 ;;
    binder) set -- --kubeconfig "$work/$h.yaml" --instance 1 --metrics-address 127.0.0.1:0 ;;
    esac
    "$bin" --runtime-dir "$dir" "$@" >>"$work/$h.$what.log" 2>&1 &
    pid[$h.$what]=$!
}
start_host() { for p in watcher scheduler binder; do start "$1" $p; done; }
end_all() {
    local p
    kill -CONT "${pid[@]}" 2>/dev/null
    kill -TERM "${pid[@]}" 2>/dev/null
    for p in "${pid[@]}"; do wait "$p" 2>/dev/null; done
}
trap 'end_all; finish' EXIT

holder() { get "$LEASES/kube-scheduler" | jq -r '.spec.holderIdentity'; }
leader() { # a, b or nothing
    local id h
    id=$(holder) && [ -n "$id" ] || return 0
    for h in a b; do grep -qF "identity=\"$id\"" "$work/$h.watcher.log" && echo $h; done
    return 0
}
leads() { [ "$(leader)" = "$1" ]; }
other() { [ "$1" = a ] && echo b || echo a; }
port() { sed -n 's/.*metrics_port=\([0-9]*\).*/\1/p' "$work/$1.log" | tail -n 1; }
metric() { curl -fsS "http://127.0.0.1:$(port "$1")/metrics" | awk -v m="$2" '$1 == m {print $2; f = 1} END {if (!f) print 0}'; }
binds_of() { lines_with "\"username\":\"host-$1\"" grep -F '"subresource":"binding"' "$audit"; }
more_binds() { [ "$(binds_of "$1")" -gt "$2" ]; }
load() { # prefix pods
    "$BERTH_BIN/berth" load synthetic --kubeconfig "$work/admin.yaml" --prefix "$1" --node-count 40 --pod-count "$2" \
        --timeout $((30 * PATIENCE))s -o json >"$work/load.$1" 2>&1
}

# ---- one leads, one stands by
start_host a
eventually "the first host takes the lease" 15 leads a
start_host b
standby() { grep -q '"Standing by"' "$work/b.watcher.log"; }
eventually "the second one stands by" 15 standby
for p in watcher scheduler binder; do
    eventually "stand-by $p is ready" 15 curl -fsS "http://127.0.0.1:$(port b.$p)/readyz"
done
expect "its leaderElection check is fine" '\[\+\]leaderElection ok' curl -fsS "http://127.0.0.1:$(port b.watcher)/readyz?verbose"
check "a load is scheduled" load first 100
note_shm
expect "every bind is the leader's" '^0$' binds_of b
expect "master status of the leader" '^1$' metric a.watcher 'leader_election_master_status{name="kube-scheduler"}'
expect "master status of the other" '^0$' metric b.watcher 'leader_election_master_status{name="kube-scheduler"}'
expect "the Lease reads as client-go's" '^true$' jq -e '.spec | (.holderIdentity | test("^.+_[0-9a-f-]{36}$")) and
    .leaseTransitions == 0 and (.renewTime | test("T[0-9:]{8}[.][0-9]{6}Z$")) and .acquireTime <= .renewTime' <(get "$LEASES/kube-scheduler")
became() {
    get '/api/v1/namespaces/kube-system/events' | jq -e --arg m "$(holder) became leader" '[.items[] |
        select(.message == $m and .reason == "LeaderElection" and .involvedObject.kind == "Lease" and
            .source.component == "default-scheduler")] | length == 1'
}
check "a LeaderElection event" became

# ---- the leader is stopped for longer than its lease, as a whole and each process alone
stopped() { # round processes...
    local round=$1 l o before p job held
    shift
    l=$(leader) o=$(other "$l")
    before=$(binds_of "$l")
    load "$round" 500 &
    job=$!
    eventually "$round: the leader binds" 10 more_binds "$l" $((before + 20))
    case " $* " in *" binder "*) # it holds work that it has not looked at
        kill -STOP "${pid[$l.binder]}"
        held=$(metric "$l.scheduler" 'berth_scheduler_ledger{what="out"}')
        more_out() { [ "$(metric "$l.scheduler" 'berth_scheduler_ledger{what="out"}')" -gt "$held" ]; }
        eventually "$round: and its binder is given more" 5 more_out ;;
    esac
    for p in "$@"; do kill -STOP "${pid[$l.$p]}"; done
    eventually "$round: the other host takes over" 20 leads "$o"
    wait $job
    expect "$round: every pod is bound all the same" '"bound":500,' cat "$work/load.$round"
    before=$(binds_of "$l")
    for p in "$@"; do kill -CONT "${pid[$l.$p]}"; done
    load "after-$round" 100
    expect "$round: also afterwards" '"bound":100,' cat "$work/load.after-$round"
    expect "$round: not one bind from who was stopped" "^$before\$" binds_of "$l"
    case " $* " in *" binder "*)
        refused() { [ "$(metric "$l.binder" 'berth_binder_items_total{kind="bind",outcome="stale"}')" -gt 0 ]; }
        eventually "$round: although its binder had work" 5 refused ;;
    esac
}
stopped whole-host watcher scheduler binder
stopped only-binder binder
stopped only-scheduler scheduler
stopped only-watcher watcher

# ---- the watcher dies and comes back: the lease never leaves the host
l=$(leader) o=$(other "$l")
term=$(metric "$l.watcher" berth_watcher_lease_term)
kill -9 "${pid[$l.watcher]}"
wait "${pid[$l.watcher]}" 2>/dev/null
start "$l" watcher
check "a load while the watcher restarts" load restart 100
expect "the host still leads" "^$l\$" leader
same_term() { [ "$(metric "$l.watcher" berth_watcher_lease_term)" = "$term" ]; }
eventually "in the same term" 5 same_term

# ---- the lease is deleted: whoever leads makes it again
curl -fsS -X DELETE -H 'Authorization: Bearer t-admin' "$server$LEASES/kube-scheduler" >/dev/null
again() { [ -n "$(leader)" ]; }
eventually "a deleted lease comes back" 15 again
check "and work goes on" load deleted 50

# ---- extreme values: as many transitions as an API server takes, no times. All that follows goes on from there.
spec() {
    curl -fsS -X PATCH -H 'Authorization: Bearer t-admin' -H 'Content-Type: application/merge-patch+json' \
        -d "{\"spec\":$1}" "$server$LEASES/kube-scheduler" >/dev/null
}
check "the lease gets the greatest leaseTransitions" spec '{"holderIdentity":"","leaseTransitions":2147483647}'
eventually "a host leads all the same" 15 again
expect "the number stays" '^2147483647$' jq .spec.leaseTransitions <(get "$LEASES/kube-scheduler")
check "the lease loses its times" spec '{"acquireTime":null,"renewTime":null,"leaseDurationSeconds":null}'
renewed() { get "$LEASES/kube-scheduler" | jq -e '.spec | .acquireTime and .renewTime and .leaseDurationSeconds == '"${LEASE%s}"; }
eventually "and is renewed" 15 renewed
check "and work goes on" load extreme 50

# ---- graceful stop, in the order of the units: released at once. The scheduler reads the binder's last words when it
# is gone.
l=$(leader) o=$(other "$l")
kill -STOP "${pid[$l.scheduler]}"
for p in binder scheduler watcher; do
    kill -TERM "${pid[$l.$p]}"
    [ $p = scheduler ] && kill -CONT "${pid[$l.$p]}"
    wait "${pid[$l.$p]}"
    expect "$p of the leader ends with status 0" '^0$' echo $?
done
expect "the lease was released" 'Released the lease' tail -n 3 "$work/$l.watcher.log"
eventually "the other host takes over" 15 leads "$o"
check "and schedules" load stopped 50

# ---- kill -9 of the whole leader: its lease runs out
start_host "$l"
backup() { grep -q '"Standing by"' "$work/$l.watcher.log" && curl -fsS "http://127.0.0.1:$(port "$l.scheduler")/readyz"; }
eventually "the first host is back, standing by" 15 backup
l=$(leader) o=$(other "$l")
kill -9 "${pid[$l.watcher]}" "${pid[$l.scheduler]}" "${pid[$l.binder]}"
eventually "the stand-by host takes over" 20 leads "$o"
check "and schedules too" load killed 50
start_host "$l" # its next start finds what the kill left behind
eventually "the killed host is back" 15 backup

# ---- over the whole history
expect "no pod was bound twice" '^0$' bound_twice "$audit"
get /api/v1/pods >"$work/pods.json"
expect "no pod without a node" '^0$' jq '[.items[] | select(.spec.nodeName == null)] | length' "$work/pods.json"
expect "no node holds more than it has" '^true$' jq '[.items[] | .spec.nodeName] | group_by(.) | map(length) | max <= 110' "$work/pods.json"

# ---- options
bad() { # pattern flags...
    local pattern=$1
    shift
    expect "refused: $*" "$pattern" bash -c "! $BERTH_BIN/berth-watcher --runtime-dir $work/x --kubeconfig $work/a.yaml $* 2>&1"
}
bad "couldn't create leader elector: leaseDuration must be greater than renewDeadline" --leader-elect-lease-duration=5s
bad "couldn't create leader elector: renewDeadline must be greater than retryPeriod" --leader-elect-retry-period=9s
bad "couldn't create resource lock: endpoints lock is removed, migrate to leases" --leader-elect-resource-lock=endpoints
printf 'leaderElection: {leaseDuration: 15}\n' >"$work/bad.yaml"
bad 'leaderElection.leaseDuration: a duration such as' --config "$work/bad.yaml"
end_all
check "nothing is left in /dev/shm" no_shm
[ "$failed" -eq 0 ] || grep -HE '^[WE]|leader\.c|lease\.c|daemon\.c' "$work"/[ab].*.log | sed "s|^$work/|#   |" | sort -k2 | tail -n 120
