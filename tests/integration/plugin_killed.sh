#!/usr/bin/env bash
# The process of a plugin with `mode: process` is killed, in callbacks and between them, more often than a plugin may
# crash: it is started again, no pod stays unbound, and pods that waited for it at Permit are decided again. The plugin
# stops in a counted callback, so the kill is there whatever the machine's speed is.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
command -v kubectl >/dev/null || { skip "plugins whose process is killed" "no kubectl"; exit 0; }
export BERTH_PLUGIN_CONFIG=$work/plugins.d
export BERTH_PLUGIN_TIMEOUT=600s # it is killed before
build=$(realpath "$(dirname "$BERTH_BIN")")
k() { kubectl --cache-dir "$work/cache" "$@"; }
begin() { # plugin its-points
    mkdir -p "$work/plugins.d"
    printf 'name: %s\nfile: %s\nmode: process\n' "$1" "$build/tests/plugins/apart.so" >"$work/plugins.d/one.yaml"
    printf 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\npodMaxBackoffSeconds: 1\nprofiles:\n- plugins: %s\n' "$2" >"$work/config.yaml"
    start_up --binders 1 --no-example --config "$work/config.yaml" || exit 1
    for i in 1 2 3; do
        printf -- '---\napiVersion: v1\nkind: Node\nmetadata: {name: n%s, labels: {rank: "1"}}\nstatus: {allocatable: {cpu: "40", memory: 16Gi, pods: "110"}}\n' "$i"
    done | k create -f - >/dev/null
    scheduler=$(pid_of berth-scheduler)
}
end() {
    check "the scheduler went on" test "$(pid_of berth-scheduler)" = "$scheduler"
    kill -TERM "$up_pid"
    wait "$up_pid"
    up_pid=
}
create() { # name labels
    printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s, labels: {%s}}\nspec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}\n' "$1" "$2" |
        k create -f - >/dev/null
}
on_a_node() { [ -n "$(k get pod "$1" -o 'jsonpath={.spec.nodeName}')" ]; }
starts() { curl -fsS "http://127.0.0.1:$(metrics_port scheduler)/metrics" | sed -n "s/^berth_scheduler_plugin_process_starts_total{plugin=\"$1\"} //p"; }
stops() { grep -c 'plugin="Apart" text="stops"' "$run/scheduler.log"; }
process() { pgrep -P "$(pid_of berth-scheduler)" -x berth-plugin-ho; }

# ---- in a callback
begin Apart '{multiPoint: {enabled: [{name: Apart}]}, bind: {enabled: [{name: Apart}, {name: DefaultBinder}], disabled: [{name: "*"}]}}'
create first 'app: a'
eventually "the plugin decides" 20 on_a_node first
# Whenever it stops again, it is killed again: PreEnqueue is called again at once.
is_on_a_node() { # pod signal
    local n
    n=$(stops)
    if [ "$n" -gt "$(cat "$work/killed")" ]; then
        echo "$n" >"$work/killed"
        k label pod "$1" do- >/dev/null # from now on the pod's callbacks return
        kill "-$2" "$(process)"
    fi
    [ "$n" -gt "$(cat "$work/before")" ] && on_a_node "$1"
}
echo 0 >"$work/killed"
signals=(KILL TERM INT HUP QUIT)
n=0
for at in PreEnqueue PreFilter Filter PreScore Score NormalizeScore Reserve Permit PreBind Bind; do
    cp "$work/killed" "$work/before"
    create "at-${at,,}" "at: $at, do: stop"
    eventually "killed in $at: the pod is bound" 60 is_on_a_node "at-${at,,}" "${signals[n++ % 5]}"
done
check "it was killed ten times, at least" test "$(stops)" -ge 10
expect "each time it was started again" '^1[1-9]$' starts Apart
expect "which is no crash" '^Apart +0 +Active +0 ' "$BERTH_BIN/berth" plugins --runtime-dir "$run"
create after 'app: a'
eventually "and pods are scheduled" 20 on_a_node after
end

# ---- while pods wait for it
places() { "$BERTH_BIN/berth" queue --all --no-headers --runtime-dir "$run"; }
wait_there() { [ "$(places | grep -cE '^default +(w1|w2) .*[Ww]aiting')" = 2 ]; }
begin ApartWaits '{permit: {enabled: [{name: ApartWaits}]}}'
create w1 'size: "3"'
create w2 'size: "3"'
eventually "two pods wait for a third one" 20 wait_there
for signal in KILL KILL KILL KILL TERM; do
    before=$(starts ApartWaits)
    kill "-$signal" "$(process)"
    is_next() { [ "$(starts ApartWaits)" -gt "$before" ] && wait_there; }
    eventually "its end by $signal is noticed without a callback, and they wait for the next process" 60 is_next
done
expect "their events say why they were tried again" 'its process was ended by another process or the kernel: (Killed|Terminated) while the pod waited' k get events -o json
create w3 'size: "3"'
for p in w1 w2 w3; do eventually "the third one lets all go: $p" 20 on_a_node $p; done
expect "and the plugin works" '^ApartWaits +0 +Active +0 ' "$BERTH_BIN/berth" plugins --runtime-dir "$run"
end
