#!/usr/bin/env bash
# Plugins that write, and plugins that end the scheduler in each callback in turn: nothing is lost or done twice.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
command -v kubectl >/dev/null || { skip "plugins in a running scheduler" "no kubectl"; exit 0; }
export BERTH_PLUGIN_CONFIG=$work/plugins.d BERTH_CRASHES_DIR=$work/at
plugins=$(dirname "$BERTH_BIN")/tests/plugins
k() { kubectl --cache-dir "$work/cache" "$@"; }
config() { # the profile's plugins
    printf 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- plugins: %s\n' "$1" >"$work/config.yaml"
}
node() { # name
    printf -- '---\napiVersion: v1\nkind: Node\nmetadata: {name: %s}\nstatus: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}\n' "$1"
}
pod() { # name cpu
    printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: c, image: i, resources: {requests: {cpu: "%s"}}}]}\n' "$@"
}
of() { k get pod "$1" -o "jsonpath=$2"; }
is_bound() { [ -n "$(of "$1" '{.spec.nodeName}')" ]; }
up() { # what callbacks do the first time, flags
    export BERTH_CRASHES=$1
    shift
    rm -rf "$work/at" && mkdir "$work/at"
    start_up --binders 1 --no-example --config "$work/config.yaml" --plugin-dir "$plugins" "$@"
}
down() {
    kill -TERM "$up_pid"
    wait "$up_pid"
    up_pid=
}
scheduled() { k get events -o json | jq -r '.items[] | select(.reason == "Scheduled") | "\(.count // .series.count // 1) \(.involvedObject.name)"' | sort; }
once_each() { [ "$(scheduled | xargs)" = "$1" ]; }
crashed() { grep "ended in a plugin.s code\" plugin=\"$1\" at=\"$2\"" "$run/scheduler.log"; }

# ---- killed after what PreBind wants written is written, and before the pod is bound
config '{multiPoint: {enabled: [{name: Writes}]}, bind: {enabled: [{name: Writes}, {name: DefaultBinder}]}}'
up kill --plugin-writes pods || exit 1
{ node a; node b; pod first 100m; } | k create -f - >/dev/null
eventually "bound, although the scheduler was killed before" 40 is_bound first
check "it was killed between PreBind and Bind" test -e "$work/at/killed"
check "of which the log tells" crashed Writes Bind
same() { [ "$(of first '{.metadata.annotations.example\.com/node}')" = "$(of first '{.spec.nodeName}')" ]; }
check "what was to be written says the node that it was bound to" same
eventually "bound once" 20 once_each "1 first"
told() { k get events -o json | jq -r '.items[] | select(.reason == "BoundAsWritten") | .type, .involvedObject.name, .message' | xargs; }
is_told() { [ "$(told)" = "Normal first $(of first '{.spec.nodeName}')" ]; }
eventually "PostBind's event is about the pod, and there once" 20 is_told
pod second 100m | k create -f - >/dev/null
eventually "the next one is not held up" 20 is_bound second
measured() { curl -fsS "http://127.0.0.1:$(metrics_port scheduler)/metrics" | grep -x 'berth_plugin_Writes_bound_total 2'; }
eventually "and counts what it was told of" 20 measured
down

# ---- nobody allowed the patch
up none || exit 1
{ node a; pod refused 100m; } | k create -f - >/dev/null
refused() { of refused '{.status.conditions[?(@.type=="PodScheduled")].message}' | grep -F 'running PreBind plugin "Writes": plugins may not write pods: --plugin-writes'; }
eventually "without --plugin-writes it is refused, and says so" 20 refused
check "and the pod is not bound" test -z "$(of refused '{.spec.nodeName}')"
down

# ---- each callback in turn
all() { # plugins at all points
    local name list=
    for name in "$@"; do list+="{name: $name}, "; done
    config "{multiPoint: {enabled: [$list]}, bind: {enabled: [{name: AtBind}, {name: DefaultBinder}]}, queueSort: {enabled: [{name: AtQueueSort}], disabled: [{name: '*'}]}}"
}
ends() { # what
    { node a; node b; pod big 99; pod p 100m; pod q 100m; pod r 100m; } | k create -f - >/dev/null
    for p in p q r; do eventually "$1: $p is bound" 40 is_bound $p; done
    { pod s 100m; pod t 100m; } | k create -f - >/dev/null
    for p in s t; do eventually "$1: $p is bound" 40 is_bound $p; done
    shift
    for at in "$@"; do
        eventually "the log names plugin and callback: ${at#*=}" 20 crashed "${at%=*}" "${at#*=}"
    done
    eventually "each is bound once" 20 once_each "1 p 1 q 1 r 1 s 1 t"
}
signals() { # plugin=callback...; few at a time: each end makes the pause before the next start longer
    all AtBind "${@%=*}"
    up segv || exit 1
    ends "a signal in each callback" AtQueueSort=QueueSort AtBind=Bind "$@"
    check "none is put aside: each ended it once" test "$("$BERTH_BIN/berth" plugins --runtime-dir "$run" | grep -cE '^At.* Active +1 ')" = $(($# + 2))
    down
}
signals AtPreEnqueue=PreEnqueue AtPreFilter=PreFilter AtFilter=Filter AtPostFilter=PostFilter
signals AtPreScore=PreScore AtScore=Score AtNormalize=NormalizeScore AtReserve=Reserve
signals AtPermit=Permit AtPreBind=PreBind AtPostBind=PostBind AtIdle=idle
all AtIdle AtPreBind AtBind AtPostBind
export BERTH_PLUGIN_TIMEOUT=1s
up sleep || exit 1
ends "callbacks that do not return" AtQueueSort=QueueSort AtIdle=idle AtPreBind=PreBind AtBind=Bind AtPostBind=PostBind
down
unset BERTH_PLUGIN_TIMEOUT

# ---- those that are called when something happens: epoch; hint; AddPod and RemovePod, of preemption; Unreserve
labelled() { # name cpu labels member of its spec
    printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, labels: {%s}}\nspec: {%scontainers: [{name: c, image: i, resources: {requests: {cpu: "%s"}}}]}\n' "$1" "$3" "${4-}" "$2"
}
config '{multiPoint: {enabled: [{name: Apart}]}, bind: {enabled: [{name: Apart}, {name: DefaultBinder}], disabled: [{name: "*"}]}}'
up segv || exit 1 # twice: three signals of one plugin would put it aside
{ node a; labelled of-epoch 100m 'at: epoch, do: once'; labelled of-unreserve 100m 'at: Unreserve, do: once'; } | k create -f - >/dev/null
for p in of-epoch of-unreserve; do eventually "$p is bound" 60 is_bound $p; done
for at in epoch Unreserve; do eventually "the log names plugin and callback: $at" 20 crashed Apart "$at"; done
down
up segv || exit 1
{
    node a
    labelled small 3 'app: x'
    printf -- '---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 10\n'
} | k create -f - >/dev/null
eventually "one is there" 40 is_bound small
labelled of-hint 100m 'at: hint, do: once, least: "5"' | k create -f - >/dev/null
rejected() { of of-hint '{.status.conditions[?(@.type=="PodScheduled")].message}' | grep -F 'too low a rank'; }
eventually "one waits for a node of a higher rank" 40 rejected
k label node a rank=9 >/dev/null
eventually "and goes there when there is one" 60 is_bound of-hint
labelled of-change 3 'at: AddPod, do: once' 'priorityClassName: high, ' | k create -f - >/dev/null
eventually "one that preempts is bound" 60 is_bound of-change
for at in hint 'AddPod or RemovePod'; do eventually "the log names plugin and callback: $at" 20 crashed Apart "$at"; done
