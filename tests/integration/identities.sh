#!/usr/bin/env bash
# A user per process: watcher, scheduler, binder and front work together through one group, none reads another's
# credentials or takes another's place, and who has no business at a socket is turned away. By root only, who can be all
# of them; the users need no names.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
for t in curl kubectl python3 setpriv; do
    command -v $t >/dev/null || { skip "a user per process" "no $t"; exit 0; }
done
[ "$(id -u)" = 0 ] || { skip "a user per process" "only root can be several users"; exit 0; }
group=61230
declare -A uid=([watcher]=61231 [scheduler]=61232 [binder]=61233 [front]=61234 [operator]=61235 [stranger]=61236)
become() { umask 0007 && exec setpriv --reuid="${uid[$1]}" --regid=$group --clear-groups -- "${@:2}"; } # in the background: $! is the command
as() { (become "$@"); } # who command...
chmod 711 "$work"
as watcher test -x "$BERTH_BIN/berth" || { skip "a user per process" "other users do not reach $BERTH_BIN"; exit 0; }
run=$work/run
install -d -m 1770 -o 0 -g $group "$run" # as systemd/berth.tmpfiles has it
cat >"$work/tokens" <<T
t-admin,admin,1,"system:masters"
t-watcher,berth:watcher,2
t-binder,berth:binder,3
t-front,berth:front,4
T
"$BERTH_BIN/berth-simulator" --tls --kubeconfig-out "$work/admin.yaml" --token-file "$work/tokens" >"$work/simulator.log" 2>&1 &
also_stop=$!
wait_for_file "$work/admin.yaml" || { not_ok "berth-simulator starts" "$(cat "$work/simulator.log")"; exit 1; }
kubectl --kubeconfig "$work/admin.yaml" --cache-dir "$work/cache" apply -f "$here/../../config/rbac.yaml" >/dev/null
for u in watcher binder front; do
    sed "s/t-admin/t-$u/" "$work/admin.yaml" >"$work/$u.yaml"
    chown "${uid[$u]}" "$work/$u.yaml"
    chmod 600 "$work/$u.yaml"
done
users=watcher=${uid[watcher]},scheduler=${uid[scheduler]},binder=${uid[binder]},front=${uid[front]},operator=${uid[operator]}
port=$((18000 + $$ % 6000)) # below the ports that the kernel hands out
declare -A pid
start() { # name user program flags...
    become "$2" "$BERTH_BIN/berth-$3" --runtime-dir "$run" "${@:4}" >>"$work/$1.log" 2>&1 &
    pid[$1]=$!
    also_stop="$! $also_stop"
}
start_named() {
    case $1 in
    watcher) start watcher watcher watcher --kubeconfig "$work/watcher.yaml" --kube-api-qps 500 --kube-api-burst 500 --users "$users" --metrics-address 127.0.0.1:0 ;;
    scheduler) start scheduler scheduler scheduler --users "$users" --metrics-address 0 ;;
    binder-*) start "$1" binder binder --kubeconfig "$work/binder.yaml" --kube-api-qps 500 --kube-api-burst 500 --users "$users" --instance "${1#*-}" --metrics-address 127.0.0.1:0 ;;
    front) start front front front --secure-port $port --authentication-kubeconfig "$work/front.yaml" --authorization-kubeconfig "$work/front.yaml" ;;
    esac
}
everybody="watcher scheduler binder-1 binder-2 front"
for p in $everybody; do start_named "$p"; done
export KUBECONFIG=$work/admin.yaml
k() { kubectl --cache-dir "$work/cache" "$@"; }
pods() { # run n
    for i in $(seq "$2"); do
        printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s-%s, labels: {run: %s}}\nspec: {containers: [{name: c, image: pause}]}\n' "$1" "$i" "$1"
    done
}
bound() { [ "$(k get pods -l "run=$1" -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}' | grep -c .)" = "$2" ] || { tail -n 4 "$work"/*.log; return 1; }; }
cat >"$work/node.yaml" <<Y
apiVersion: v1
kind: Node
metadata: {name: big}
status: {allocatable: {cpu: "64", memory: 64Gi, pods: "500"}, capacity: {cpu: "64", memory: 64Gi, pods: "500"}, conditions: [{type: Ready, status: "True"}]}
Y
pods first 20 >>"$work/node.yaml"
check "a node and pods" k apply -f "$work/node.yaml"
eventually "the pods are bound" 30 bound first 20

metrics() { curl -fsSk -H "Authorization: Bearer t-admin" "https://127.0.0.1:$port/metrics"; }
metric_is() { metrics | grep -F "$1" | awk -v want="$2" '!/^#/ { n += $NF } END { exit !(n >= want) }'; } # the sum of all processes
eventually "the front reads everybody's metrics" 20 metric_is 'berth_scheduler_ledger{what="binders"}' 2
configz() { curl -fsSk -H "Authorization: Bearer t-admin" "https://127.0.0.1:$port/configz" | grep -q 'default-scheduler'; }
eventually "and the scheduler's configuration" 20 configz

# ---- who owns what
owner() { [ "$(stat -c '%u:%g %a' "$run/$2")" = "${uid[$1]}:$group $3" ] || { stat -c '%n %u:%g %a' "$run/$2"; return 1; }; }
for f in watcher:watcher.sock:660 watcher:watcher.http:660 watcher:watcher/lease:600 watcher:api.limit:660 binder:events.limit:660 scheduler:scheduler.sock:660 \
    scheduler:control.sock:660 scheduler:scheduler.http:660 scheduler:scheduler/scheduler.inflight:600 scheduler:scheduler:711 watcher:watcher:711; do
    IFS=: read -r who name mode <<<"$f"
    # both the watcher and the binders have the requests' limit; the first of them made it
    if [ "$name" = api.limit ] && [ "$(stat -c %u "$run/$name")" = "${uid[binder]}" ]; then who=binder; fi
    check "$name is $who's, mode $mode" owner $who "$name" "$mode"
done
cannot() {
    local out
    if out=$("$@" 2>&1); then echo "it could: $*: $out"; return 1; fi
}
peer() { python3 "$here/lib/peer.py" "${uid[$1]}" $group "${@:2}"; } # who what path
for f in scheduler:watcher.sock binder:scheduler.sock binder:control.sock front:scheduler.sock watcher:scheduler.http; do
    expect "${f%:*} cannot replace ${f#*:}" '^not replaced$' peer "${f%:*}" replace "$run/${f#*:}"
done
for f in scheduler:watcher scheduler:binder scheduler:front binder:watcher front:binder watcher:front; do
    check "${f%:*} cannot read the ${f#*:}'s kubeconfig" cannot as "${f%:*}" cat "$work/${f#*:}.yaml"
done
segment() { for s in "/proc/${pid[watcher]}/map_files/"*; do readlink "$s"; done | grep -m 1 '^/dev/shm/berth-'; }
writes() { as "$1" dd if=/dev/null of="$(segment)" conv=notrunc; }
check "the watcher can open its snapshot to write" writes watcher
check "the scheduler cannot" cannot writes scheduler

# ---- who may speak
knock() { peer "$1" knock "$run/$2.sock"; }
# who may is shown by what works: pods are bound, the front knows metrics and configuration, and
expect "an operator's berth queue" 'No pods wait' as operator "$BERTH_BIN/berth" queue --runtime-dir "$run"
for f in stranger:watcher binder:watcher stranger:scheduler front:scheduler watcher:scheduler operator:scheduler stranger:control binder:control watcher:control; do
    expect "${f%:*} is turned away at ${f#*:}.sock" '^turned away$' knock "${f%:*}" "${f#*:}"
done
said() { grep -qE "Not talking to a stranger.* socket=\"$run/$2.sock\" uid=${uid[$3]} pid=[0-9]+ times=" "$work/$1.log"; }
check "the watcher says who came" said watcher watcher stranger
check "and so does the scheduler" said scheduler scheduler stranger
check "of both its sockets" said scheduler control stranger
check "and counts them at the feed" metric_is berth_watcher_feed_strangers_total 2
check "for binders" metric_is 'berth_scheduler_ledger{what="strangers"}' 4
check "and for questions" metric_is 'berth_scheduler_control{what="strangers"}' 3
refused_queue() { ! as stranger "$BERTH_BIN/berth" queue --runtime-dir "$run" 2>&1; }
expect "a stranger's berth queue" 'did not answer within 5 s \(its log says if this user may not ask: --users\)' refused_queue
expect "outside the group there is no way in" 'not reached' \
    bash -c "! python3 '$here/lib/peer.py' 61299 61299 knock '$run/control.sock' 2>&1"
expect "a name that nobody has is said" 'binder=nobody-of-that-name\\": there is no such user' \
    bash -c "! '$BERTH_BIN/berth-scheduler' --runtime-dir '$work' --users binder=nobody-of-that-name 2>&1"

# ---- a process that is killed comes back; its name is taken meanwhile
for p in $everybody; do kill -9 "${pid[$p]}"; done
for p in $everybody; do wait "${pid[$p]}" 2>/dev/null; done
for p in $everybody; do start_named "$p"; done
pods second 10 >"$work/more.yaml"
check "more pods" k apply -f "$work/more.yaml"
eventually "are bound when everybody has come back" 60 bound second 10
kill -9 "${pid[scheduler]}"
wait "${pid[scheduler]}" 2>/dev/null
rm -f "$run/scheduler.sock" # as if it had never been there
python3 "$here/lib/peer.py" "${uid[front]}" $group squat "$run/scheduler.sock" >"$work/squatter" 2>&1 &
squatter=$!
also_stop="$squatter $also_stop"
wait_for_file "$work/squatter"
refused() { grep -qE "Not talking to a stranger.* socket=\"$run/scheduler.sock\" uid=${uid[front]} " "$work/binder-1.log"; }
eventually "binders do not talk to another's socket of that name" 20 refused
kill "$squatter"
rm -f "$run/scheduler.sock"
start_named scheduler
pods third 5 >"$work/more.yaml"
check "pods again" k apply -f "$work/more.yaml"
eventually "are bound by the scheduler itself" 60 bound third 5

# ---- what another user does to the names of a runtime directory
alive() { local p; for p in $everybody; do kill -0 "${pid[$p]}" || { echo "$p has ended"; tail -n 5 "$work/$p.log"; return 1; }; done; }
tamper() { python3 "$here/lib/tamper.py" "${uid[$1]}" $group "$run" "${@:2}"; } # who name...
# The limits are the group's, and made for that. Nothing else of another user's can be changed.
only_limits() { local out; out=$(tamper "$1") && ! grep . <<<"$out" | grep -vE '^(truncated|overwrote|linked) (api|events)\.limit$'; }
for u in watcher scheduler binder front operator; do
    check "$u changes nothing of another user's but the limits" only_limits "$u"
done
check "which end no process" alive
pods fourth 5 >"$work/more.yaml"
check "pods while all was tampered with" k apply -f "$work/more.yaml"
eventually "are bound" 60 bound fourth 5

# Free names, while their owners are down: those of an earlier version in the directory of all, and all of those in the
# services' own. What can be made there is in the first alone, and nothing of it counts.
names="lease scheduler.inflight plugin.mark plugin.crashes plugins.json snapshot node-metrics decisions.db"
for f in lease snapshot guests; do names+=" watcher/$f"; done
for f in scheduler.inflight scheduler.inflight.new plugin.mark plugin.crashes decisions.db; do names+=" scheduler/$f"; done
for p in scheduler watcher; do
    kill "${pid[$p]}"
    wait "${pid[$p]}" 2>/dev/null
done
made=$(for u in front binder operator; do
    # shellcheck disable=SC2086 # they are several
    tamper $u $names
done | grep '^made')
check "free names can be made in the directory of all" grep -qx 'made scheduler.inflight' <<<"$made"
none_made_in() { ! grep "made $1/" <<<"$made"; }
check "and none in the watcher's" none_made_in watcher
check "nor in the scheduler's" none_made_in scheduler
for p in watcher scheduler; do start_named $p; done
pods fifth 5 >"$work/more.yaml"
check "pods" k apply -f "$work/more.yaml"
eventually "are bound among forged names" 60 bound fifth 5
check "no process has ended" alive
not_waiting() { ! grep -E 'damaged|is not believed' "$work/scheduler.log" "$work/watcher.log"; }
check "and none believed or waited for them" not_waiting

# A directory that another user made first
other=$work/other
install -d -m 1770 -o 0 -g $group "$other"
as front mkdir -m 755 "$other/scheduler" "$other/watcher"
refused_as() { # who flags...
    local who=$1 out
    shift
    ! out=$(as "$who" timeout 60 "$BERTH_BIN/berth-$who" --runtime-dir "$other" "$@" 2>&1) || return 1
    grep -F "$other/$who\\\" belongs to user ${uid[front]}, and it must belong to user ${uid[$who]}: remove it" <<<"$out" || { echo "$out"; return 1; }
}
check "is refused by the scheduler, with owner found and needed" refused_as scheduler --users "$users" --metrics-address 0
check "and by the watcher" refused_as watcher --kubeconfig "$work/watcher.yaml" --users "$users" --metrics-address 0

# A snapshot of another user: whole, with a lease, of the same cluster
forged=$work/forged
install -d -m 1770 -o 0 -g $group "$forged"
cp "$work/admin.yaml" "$work/forger.yaml"
chown "${uid[front]}" "$work/forger.yaml"
become front "$BERTH_BIN/berth-watcher" --runtime-dir "$forged" --kubeconfig "$work/forger.yaml" --leader-elect=false --metrics-address 0 \
    --users "scheduler=${uid[scheduler]}" >"$work/forger.log" 2>&1 &
also_stop="$! $also_stop"
eventually "another user announces a snapshot" 20 test -L "$forged/watcher/snapshot"
become scheduler "$BERTH_BIN/berth-scheduler" --runtime-dir "$forged" --users "$users" --metrics-address 0 -v 2 >"$work/deceived.log" 2>&1 &
also_stop="$! $also_stop"
not_believed() { grep -F "user ${uid[front]} announced it, and is not berth-watcher's user" "$work/deceived.log"; }
eventually "and the scheduler does not believe it" 20 not_believed
attached() { ! grep 'Snapshot attached' "$work/deceived.log"; }
check "nor attach it" attached
