#!/usr/bin/env bash
# Plugins in a process of their own: the same decisions as in the scheduler's; what crashes, hangs or ends there costs that pod's attempt.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
export BERTH_PLUGIN_CONFIG=$work/plugins.d
build=$(realpath "$(dirname "$BERTH_BIN")")
config() { # the profile's plugins, pluginConfig
    printf 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- plugins: %s\n  pluginConfig: [%s]\n' "$1" "${2-}"
}
mode() { # mode, then name=file
    local m=$1
    shift
    rm -rf "$work/plugins.d" && mkdir "$work/plugins.d"
    for p in "$@"; do printf 'name: %s\nfile: %s\nmode: %s\n' "${p%=*}" "${p#*=}" "$m" >"$work/plugins.d/${p%=*}.yaml"; done
}
node() { # name labels
    printf -- '---\napiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {%s}}\nstatus: {allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}\n' "$@"
}
pod() { # name labels priority cpu
    printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, labels: {%s}}\nspec: {priority: %s, containers: [{name: c, image: i, resources: {requests: {cpu: %s}}}]}\n' "$@"
}
for i in {1..30}; do node "n$i" "rank: \"$((i * 7 % 10))\""; done >"$work/nodes.yaml"
for i in {1..150}; do pod "p$i" "app: a$((i % 5)), least: \"$((i % 9))\"" $((i % 3)) $(((i * 37 % 15 + 1) * 100))m; done >"$work/pods.yaml"
s() { "$BERTH_BIN/berth" simulate --tie-break first -f "$work/nodes.yaml" -o wide "$@"; }
any() { "$@" || true; }
apart=Apart=$build/tests/plugins/apart.so
every='{multiPoint: {enabled: [{name: Apart, weight: 3}]}, bind: {enabled: [{name: Apart}, {name: DefaultBinder}], disabled: [{name: "*"}]}}'

# ---- the same decisions
config "$every" >"$work/apart.yaml"
decide() { any s -f "$work/pods.yaml" --config "$work/apart.yaml" "$@"; }
mode inProcess "$apart"
decide >"$work/here" 2>&1
expect "some are placed, some are not" '^[0-9]+ placed, [1-9][0-9]* unschedulable' cat "$work/here"
mode process "$apart"
decide >"$work/there" 2>&1
check "a plugin at every point decides the same in both modes" cmp "$work/here" "$work/there"
decide --verify >"$work/verified" 2>&1
check "both paths agree" cmp "$work/here" "$work/verified"
both() { # what plugins pluginConfig name=file...
    local what=$1
    config "$2" "$3" >"$work/both.yaml"
    shift 3
    mode inProcess "$@"
    any s -f "$work/pods.yaml" --config "$work/both.yaml" --explain >"$work/here" 2>&1
    mode process "$@"
    any s -f "$work/pods.yaml" --config "$work/both.yaml" --explain >"$work/there" 2>&1
    expect "$what decides" ' placed, ' cat "$work/here"
    check "the same in both modes, with the same numbers" cmp "$work/here" "$work/there"
}
both NodeMetadata '{score: {enabled: [{name: NodeMetadata, weight: 10}]}}' \
    '{name: NodeMetadata, args: {metadataKey: rank, metadataSource: Label, metadataType: Number, scoringStrategy: Highest}}' NodeMetadata="$build/plugins/nodemetadata.so"
both NodeResourcesAllocatable '{score: {enabled: [{name: NodeResourcesAllocatable, weight: 10}]}}' '' NodeResourcesAllocatable="$build/plugins/noderesourcesallocatable.so"
both NodeNumberRows '{score: {enabled: [{name: NodeNumberRows, weight: 10}]}}' '' NodeNumberRows="$build/plugins/nodenumber.so"
both LabelGang '{multiPoint: {enabled: [{name: LabelGang}]}}' '{name: LabelGang, args: {groupLabel: app, sizeLabel: least}}' LabelGang="$build/plugins/labelgang.so"
both ApartOthers '{multiPoint: {enabled: [{name: ApartOthers}]}}' '' ApartOthers="$build/tests/plugins/apart.so"
expect "which keeps account of all nodes" 'ApartOthers +UnschedulableAndUnresolvable +more than its share' cat "$work/there"
check "by the rows that changed" test "$(lines_with 'others than it was told' cat "$work/there")" = 0
s -f "$work/pods.yaml" --config "$work/both.yaml" --explain --verify >"$work/verified" 2>&1
check "both paths agree on it" cmp "$work/there" "$work/verified"
{ pod one 'app: a' 0 100m; pod crashes 'at: Filter, do: segv' 0 100m; for i in {1..40}; do pod "more$i" 'app: a' 0 100m; done; } >"$work/anew.yaml"
s -f "$work/anew.yaml" --config "$work/both.yaml" >"$work/anew" 2>&1
expect "a process that ended" 'default +crashes +Error .*its process crashed: Segmentation fault, at Filter$' cat "$work/anew"
expect "counts anew" '^41 placed' cat "$work/anew"
for i in 1 2 3; do
    printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: leaves%s, uid: leaves%s, deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 30}\nspec: {nodeName: n%s, containers: [{name: c, image: i}]}\n' "$i" "$i" "$((i / 3 + 1))"
done >>"$work/pods.yaml"
both PodState '{score: {enabled: [{name: PodState, weight: 10}]}}' '' PodState="$build/plugins/podstate.so"
expect "pods that are being deleted make a node better" 'n1 +[0-9]+ +PodState +2 +100 +10 +1000$' cat "$work/there"
mkdir "$work/as-was" && cp "$work/nodes.yaml" "$work/pods.yaml" "$work/as-was"
for i in {1..30}; do # two zones of two cores, of which the agents know nobody; on n1 is a pod of others
    printf -- '---\napiVersion: topology.node.k8s.io/v1alpha2\nkind: NodeResourceTopology\nmetadata: {name: n%s}\nattributes: [{name: topologyManagerPolicy, value: single-numa-node}, {name: nodeTopologyPodsFingerprint, value: pfp0v001ef46db3751d8e999}]\nzones: %s\n' "$i" \
        '[{name: node-0, type: Node, resources: [{name: cpu, available: "2"}, {name: memory, available: 8Gi}]}, {name: node-1, type: Node, resources: [{name: cpu, available: "2"}, {name: memory, available: 8Gi}]}]'
done >>"$work/nodes.yaml"
printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: foreign}\nspec: {nodeName: n1, schedulerName: other, containers: [{name: c, image: i}]}\n' >>"$work/nodes.yaml"
for i in {1..80}; do
    printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: q%s}\nspec: {containers: [{name: c, image: i, resources: {requests: &r {cpu: %sm, memory: 1Gi}, limits: *r}}]}\n' "$i" $(((i % 3 + 1) * 500))
done >"$work/pods.yaml"
both NodeResourceTopologyMatch '{multiPoint: {enabled: [{name: NodeResourceTopologyMatch}]}}' '{name: NodeResourceTopologyMatch, args: {cacheResyncPeriodSeconds: 5}}' \
    NodeResourceTopologyMatch="$build/plugins/noderesourcetopologymatch.so"
expect "some fit beside what is reserved, some do not" '^[1-9][0-9]* placed, [1-9][0-9]* unschedulable' cat "$work/there"
expect "a node with a pod of others is not taken" 'invalid node topology data' cat "$work/there"
mv "$work/as-was"/* "$work"

# ---- arguments
mode process NodeMetadata="$build/plugins/nodemetadata.so"
config '{score: {enabled: [{name: NodeMetadata}]}}' '{name: NodeMetadata, args: {metadataSource: Label, metadataType: Number, scoringStrategy: Best}}' >"$work/bad.yaml"
bad() { "$BERTH_BIN/berth" config check "$work/bad.yaml"; }
check "wrong arguments fail" status 1 bad
expect "each with its path" 'bad.yaml:[0-9]+: profiles\[0\].pluginConfig\[0\].args.metadataKey: Invalid value: "": metadataKey cannot be empty' any bad
expect "and value" 'args.scoringStrategy: Invalid value: "Best": scoringStrategy must be one of' any bad

# ---- what cannot be
mode process AtQueueSort="$build/tests/plugins/crashes.so"
config '{queueSort: {enabled: [{name: AtQueueSort}], disabled: [{name: "*"}]}}' >"$work/sort.yaml"
expect "one that sorts the queue is refused by name" 'plugin "AtQueueSort" sorts the queue \(less\), which .mode: process. cannot' \
    any s -f "$work/pods.yaml" --config "$work/sort.yaml"
mode other "$apart"
expect "a mode that is none" 'Apart.yaml line 1: field mode: inProcess or process is needed' any s -f "$work/pods.yaml" --config "$work/apart.yaml"
mode process "$apart"
expect "no program to run it" 'apart.so: its process could not be started: .*nowhere: No such file' \
    any env BERTH_PLUGIN_HOST="$work/nowhere" "$BERTH_BIN/berth" simulate -f "$work/nodes.yaml" -f "$work/pods.yaml" --config "$work/apart.yaml"
check "which is for the scheduler only" status 2 "$BERTH_BIN/berth-plugin-host"

# ---- answers that may not be: the same errors as in the scheduler's process, and the next pod is placed
for i in {1..70}; do node "m$i" "rank: \"$((i * 7 % 10))\""; done >"$work/many.yaml"
{
    for what in code text long score rows undeclared thread; do
        pod "$what" "do: $what" 0 100m
        pod "after-$what" "app: a" 0 100m
    done
} >"$work/wrong.yaml"
config '{multiPoint: {enabled: [{name: ApartRows}]}}' >"$work/wrong-config.yaml"
wrong() { mode "$1" ApartRows="$build/tests/plugins/apart.so"; any "$BERTH_BIN/berth" simulate --tie-break first -o wide -f "$work/many.yaml" -f "$work/wrong.yaml" --config "$work/wrong-config.yaml"; }
wrong inProcess >"$work/here" 2>/dev/null
wrong process >"$work/there" 2>/dev/null
check "wrong answers are the same errors in both modes" cmp "$work/here" "$work/there"
for w in 'code=Error .*it returned the status code 17, which there is not' 'text=Error .*it gave a reason that is not printable UTF-8' 'long=Error .*it gave a reason of more than 1024 bytes' \
    'score=Error .*returns an invalid score 101' 'rows=Error .*it changed the rows that it was given' 'undeclared=Error .*it used now without BERTH_READS_TIME' 'thread=Unschedulable .*no thread is'; do
    expect "${w%%=*}" "default +${w%%=*} +${w#*=}" cat "$work/there"
    expect "and the pod after it" "default +after-${w%%=*} +Scheduled +m" cat "$work/there"
done

# ---- scores that it was asked for before its turn, which never comes: the plugin before it fails
for i in {1..5}; do pod "fails$i" "do: score, n: \"$i\"" 0 100m; pod "goes$i" "n: \"$i\"" 0 100m; done >"$work/early.yaml"
config '{multiPoint: {enabled: [{name: ApartRows}, {name: NodeNumberApart, weight: 3}]}}' >"$work/early-config.yaml"
early() {
    mode "$1" NodeNumberApart="$build/plugins/nodenumber.so"
    printf 'name: ApartRows\nfile: %s\n' "$build/tests/plugins/apart.so" >"$work/plugins.d/ApartRows.yaml"
    any "$BERTH_BIN/berth" simulate --tie-break first -o wide -f "$work/many.yaml" -f "$work/early.yaml" --config "$work/early-config.yaml"
}
early inProcess >"$work/here" 2>&1
early process >"$work/there" 2>&1
expect "some fail before it, others do not" '^5 placed, 0 unschedulable, 5 failed' cat "$work/there"
check "what it said to nobody is nobody else's" cmp "$work/here" "$work/there"

# ---- what happens there
mode process "$apart"
{
    pod good1 'app: a' 0 100m
    pod crashes 'at: Filter, do: segv' 0 100m
    pod good2 'app: a' 0 100m
    pod ends 'at: Score, do: exit' 0 100m
    pod good3 'app: a' 0 100m
    pod looks 'at: PreFilter, do: look' 0 100m
} >"$work/strange.yaml"
s -f "$work/strange.yaml" --config "$work/apart.yaml" >"$work/strange" 2>&1
for p in good1 good2 good3; do expect "others are placed: $p" "default +$p +Scheduled +n" cat "$work/strange"; done
expect "a signal" 'its process crashed: Segmentation fault, at Filter$' cat "$work/strange"
expect "an end" 'its process ended with status 3, at Score$' cat "$work/strange"
expect "which the log tells" "A plugin's process is ended, and starts again\" plugin=\"Apart\" at=\"Score\" why=\"ended with status 3\"" cat "$work/strange"
expect "the sandbox: EPERM for everything but threads" 'open 1 socket 1 exec 1 fork 1 kill 1 code 1 down 1 shared 1 limits 1 own 0 kept 9 entry 1 thread 0 environment 0 ends 5' cat "$work/strange"
{ pod a 'at: Filter, do: memory' 0 100m; pod b 'app: a' 0 100m; } >"$work/memory.yaml"
s -f "$work/memory.yaml" --config "$work/apart.yaml" >"$work/memory" 2>&1
expect "its memory ends" 'its process crashed: Segmentation fault, at Filter' cat "$work/memory"
expect "and the next pod is placed" 'default +b +Scheduled' cat "$work/memory"
{ pod a 'at: Filter, do: intern' 0 100m; pod b 'app: a' 0 100m; } >"$work/intern.yaml"
s -f "$work/intern.yaml" --config "$work/apart.yaml" >"$work/intern" 2>&1
expect "so do the symbols that it adds" 'its process interned texts of more than 4 MiB and was ended, at Filter' cat "$work/intern"
expect "and the next pod is placed" 'default +b +Scheduled' cat "$work/intern"
for i in 1 2 3; do pod "bad$i" 'at: PreScore, do: segv' 0 100m; done >"$work/thrice.yaml"
pod after 'app: a' 0 100m >>"$work/thrice.yaml"
s -f "$work/thrice.yaml" --config "$work/apart.yaml" >"$work/thrice" 2>&1
expect "three times put it aside" 'default +after +Error .*running .* plugin "Apart": it is put aside: it ended its process three times within ten minutes' cat "$work/thrice"
printf 'onCrash: skip\n' >>"$work/plugins.d/Apart.yaml"
s -f "$work/thrice.yaml" --config "$work/apart.yaml" >"$work/thrice" 2>&1
expect "or it is done without" 'default +after +Scheduled' cat "$work/thrice"

# In each callback in turn: the pod's error says where, and others are placed; where nobody waits for an answer, it goes on.
mode process "$apart"
ended_at() { lines_with "A plugin's process is ended, and starts again\" plugin=\"Apart\" at=\"$1\" why=\"crashed: Segmentation fault\"" cat "$2"; }
for at in epoch idle PreFilter Filter PostFilter PreScore Score NormalizeScore Reserve Permit Unreserve; do
    { pod before 'app: a' 0 100m; pod crashes "at: $at, do: segv" 0 "$([ $at = PostFilter ] && echo 100 || echo 100m)"; pod after 'app: a' 0 100m; } >"$work/each.yaml"
    s -f "$work/each.yaml" --config "$work/apart.yaml" >"$work/each" 2>&1
    check "a signal at $at: the log says where" test "$(ended_at $at "$work/each")" -ge 1
    for p in before after; do expect "and others are placed: $p" "default +$p +Scheduled +n" cat "$work/each"; done
    expect "and the pod is not lost" 'default +crashes +(Error|Scheduled|Unschedulable) ' cat "$work/each"
done
pod crashes 'at: PreEnqueue, do: segv' 0 100m >"$work/each.yaml"
s -f "$work/each.yaml" --config "$work/apart.yaml" >"$work/each" 2>&1
check "at PreEnqueue it is asked again until it is put aside" test "$(ended_at PreEnqueue "$work/each")" = 3
expect "and holds the pod back" 'default +crashes +Gated .*it is put aside: it ended its process three times within ten minutes' cat "$work/each"
{ node only 'rank: "5"'; pod there 'app: a' 0 3 | sed 's/spec: {/spec: {nodeName: only, /'; pod evicts 'at: AddPod, do: segv' 100 3; pod after 'app: a' 0 100m; } >"$work/each.yaml"
any "$BERTH_BIN/berth" simulate -f "$work/each.yaml" --config "$work/apart.yaml" >"$work/each" 2>&1
check "a signal where a pod is taken off a node" test "$(ended_at 'AddPod or RemovePod' "$work/each")" -ge 1
expect "and the next one is placed" 'default +after +Scheduled +only' cat "$work/each"

rm "$work/plugins.d"/*
mode process "$apart"
for i in 1 2 3; do
    { pod liar "at: Filter, do: lie$i" 0 100m; pod after 'app: a' 0 100m; } >"$work/lies.yaml"
    s -f "$work/lies.yaml" --config "$work/apart.yaml" >"$work/lies" 2>&1
    expect "an answer that makes no sense: $i" 'its process answered what makes no sense, at Filter$' cat "$work/lies"
    expect "and the next pod is placed" 'default +after +Scheduled' cat "$work/lies"
done

# ---- one that makes room, and is asked back what its rules say
cp "$work/nodes.yaml" "$work/some.yaml"
{
    printf -- '---\napiVersion: v1\nkind: Node\nmetadata: {name: one}\nstatus: {allocatable: {cpu: "5", memory: 16Gi, pods: "110"}}\n'
    for i in 0 1; do pod "low$i" 'app: a' "$i" 2 | sed 's/spec: {/spec: {nodeName: one, /'; done
} >"$work/nodes.yaml"
config '{postFilter: {enabled: [{name: Evicts}], disabled: [{name: "*"}]}}' >"$work/evicts.yaml"
evicts() { # mode at do
    { pod asks "at: $2, do: $3" 100 2; pod small 'app: a' 0 1m; } >"$work/asks.yaml"
    { cat "$work/asks.yaml"; pod good 'app: a' 90 2; } >"$work/good.yaml"
    mode "$1" Evicts="$build/tests/plugins/evicts.so"
    for of in asks good; do any env BERTH_PLUGIN_TIMEOUT=2s "$BERTH_BIN/berth" simulate --tie-break first -f "$work/nodes.yaml" -f "$work/$of.yaml" --config "$work/evicts.yaml" -o wide; done
}
for as in 'none nothing' 'check code' 'check long' 'evicts nest'; do
    # shellcheck disable=SC2086
    { evicts inProcess $as >"$work/here" 2>&1; evicts process $as >"$work/there" 2>&1; }
    expect "makes room: ${as#* } at ${as% *}" '^default +low0 +one +default/(asks|good)$' cat "$work/there"
    check "the same in both modes" cmp "$work/here" "$work/there"
done
for as in 'begin segv=crashed: Segmentation fault' 'evicts exit=ended with status 3' 'moved segv=crashed: Segmentation fault' 'check hang=did not answer in time and was ended' \
    'evicts reply=answered what makes no sense' 'moved upcall=answered what makes no sense' 'check text=answered what makes no sense'; do
    # shellcheck disable=SC2046
    evicts process $(cut -d= -f1 <<<"$as") >"$work/there" 2>&1
    expect "in the middle of it: ${as%%=*}" "A plugin's process is ended, and starts again\" plugin=\"Evicts\" at=\"PostFilter\" why=\"${as#*=}\"" cat "$work/there"
    expect "is told the pod" "default +asks +Unschedulable .*its process ${as#*=}, at PostFilter" cat "$work/there"
    expect "and nobody has to go for it" '^1 placed, 1 unschedulable, 0 preempted' cat "$work/there"
    expect "but for the next one, of another process" '^default +low0 +one +default/good$' cat "$work/there"
done
mv "$work/some.yaml" "$work/nodes.yaml"

# ---- states that are kept for a template, of a process that is gone
{
    printf -- '---\napiVersion: v1\nkind: Node\nmetadata: {name: high, labels: {rank: "9"}}\nstatus: {allocatable: {cpu: "1", memory: 16Gi, pods: "110"}}\n'
    node low 'rank: "0"'
    for i in 1 2 3; do pod "first$i" 'least: "8"' 0 250m; done
    for i in 1 2 3; do pod "again$i" 'least: "1"' 0 10m; done
    pod crashes 'at: Filter, do: segv' 0 100m
    for i in 1 2 3; do pod "filler$i" 'least: "0"' 0 100m | sed 's/spec: {/spec: {nodeSelector: {rank: "0"}, /'; done
    pod second 'least: "8"' 0 250m
    pod again4 'least: "1"' 0 10m
} >"$work/states.yaml"
mode process ApartKept="$build/tests/plugins/apart.so"
config '{multiPoint: {enabled: [{name: ApartKept}]}}' >"$work/kept.yaml"
any "$BERTH_BIN/berth" simulate --tie-break first -f "$work/states.yaml" --config "$work/kept.yaml" -o wide >"$work/kept" 2>&1
expect "PreFilter's is no other pod's in the next process" 'default +second +Unschedulable .*too low a rank' cat "$work/kept"
expect "PreScore's is made anew" 'default +again4 +Scheduled +high' cat "$work/kept"
expect "without another end" '^1$' lines_with "A plugin's process is ended" cat "$work/kept"

# ---- a running scheduler
command -v kubectl >/dev/null || { skip "plugins' processes of a running scheduler" "no kubectl"; exit 0; }
k() { kubectl --cache-dir "$work/cache" "$@"; }
{ printf 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: default-scheduler\n  plugins: %s\n- schedulerName: plain\n' "$every"; } >"$work/up.yaml"
export BERTH_PLUGIN_TIMEOUT=1s
mode process "$apart"
start_up --binders 1 --no-example --config "$work/up.yaml" || exit 1
k create -f "$work/nodes.yaml" >/dev/null
on_a_node() { [ -n "$(k get pod "$1" -o 'jsonpath={.spec.nodeName}')" ]; }
says() { k get pod "$1" -o 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}' | grep -F "$2"; }
create() { pod "$1" "$2" 0 100m | k create -f - >/dev/null; }
children() { for p in $(cat "/proc/$up_pid/task"/*/children); do cat "/proc/$p/comm" 2>/dev/null; done; }
expect "berth up runs the scheduler" '^berth-scheduler$' children
check "and the process in which it looked at the configuration no more" test "$(children | grep -c berth-plugin-ho)" = 0
create first 'app: a'
eventually "its plugin decides there, too" 20 on_a_node first
told() { k get events -o json | jq -r '.items[] | select(.reason == "SeenApart") | .involvedObject.name' | xargs; }
seen() { [ "$(told)" = first ]; }
eventually "events reach the cluster" 20 seen
expect "its log lines the log" 'A plugin says" plugin="Apart" text="one more is bound"' cat "$run/scheduler.log"
scrape() { curl -fsS "http://127.0.0.1:$(metrics_port scheduler)/metrics"; }
expect "its metrics the scheduler's" '^berth_plugin_Apart_decided_total 1$' scrape
expect "calls are counted" '^berth_scheduler_plugin_process_calls_total\{plugin="Apart"\} [1-9][0-9]*$' scrape
plugins() { "$BERTH_BIN/berth" plugins --runtime-dir "$run" "$@"; }
process() { plugins -o json | jq -r '.plugins[] | select(.name == "Apart").process.'"$1"; }
is_shown() { plugins | grep -E "^Apart +0 +Active +0 .* pid $(process pid), [1-9][0-9]* KiB, [1-9][0-9]* calls "; }
eventually "berth plugins shows its process" 20 is_shown
of=$(process pid)
check "which is berth-plugin-host" grep -qx berth-plugin-ho "/proc/$of/comm"
is_the_same() { # else what it said last
    local now
    now=$(pid_of berth-scheduler)
    [ "$now" = "$scheduler" ] || { echo "it was $scheduler, it is $now"; tail -n 15 "$run/scheduler.log"; return 1; }
}
scheduler=$(pid_of berth-scheduler)
kill -KILL "$of"
create second 'app: a'
eventually "killed, it is started again, and the pod is tried again" 40 on_a_node second
check "the scheduler went on" is_the_same
expect "which is counted" '^berth_scheduler_plugin_process_starts_total\{plugin="Apart"\} 2$' scrape
create hangs 'at: Score, do: hang'
eventually "a callback that does not return" 30 grep -F 'at="Score" why="did not answer in time' "$run/scheduler.log"
aside='it is put aside: it ended its process three times within ten minutes'
eventually "which is tried again, and is the third end: put aside" 40 says hangs "$aside"
check "while the scheduler goes on" is_the_same
pod other '' 0 100m | sed 's/spec: {/spec: {schedulerName: plain, /' | k create -f - >/dev/null
eventually "pods of other profiles are scheduled" 20 on_a_node other
expect "berth plugins says it" '^Apart +0 +PutAside +3 ' plugins
expect "and readiness" '^\[-\]plugins failed' curl -s "http://127.0.0.1:$(metrics_port scheduler)/readyz?verbose"
expect "and a metric" '^berth_scheduler_plugin_state\{plugin="Apart",state="PutAside"\} 1$' scrape
event() { k get events -o json | jq -r '.items[] | select(.reason == "PluginPutAside") | .message' | grep -F "Plugin \"Apart\": $aside"; }
eventually "and an event" 20 event
# Else the next scheduler tries it again, and counts an end before it is seen.
k delete pod hangs --grace-period=0 --force >/dev/null 2>&1
rm -f "$run/scheduler/plugin.crashes"
kill -KILL "$scheduler"
create anew 'app: a'
eventually "another scheduler begins anew" 20 is_shown

# ---- a signal in each callback that only a running scheduler calls: where the plugin is done without after three of them, even that pod is bound
# By its parent: what is shown is a file, and may still be what the scheduler before wrote last.
is_new() {
    local now
    now=$(pid_of berth-scheduler)
    [ -n "$now" ] && [ "$now" != "$scheduler" ] && grep -x "PPid:.$now" "/proc/$(process pid)/status" &&
        plugins | grep -E '^Apart +0 +Active +0 .* pid [1-9]'
}
anew() { # with nothing counted
    rm -f "$run/scheduler/plugin.crashes"
    scheduler=$(pid_of berth-scheduler)
    kill -KILL "$scheduler"
    eventually "$1: a scheduler that counts none" 20 is_new
    scheduler=$(pid_of berth-scheduler)
}
printf 'onCrash: skip\n' >>"$work/plugins.d/Apart.yaml"
for at in PreBind Bind PostBind hint; do
    anew "$at"
    name=of-${at,,}
    create "$name" "at: $at, do: segv$([ $at = hint ] && echo ', least: "99"')"
    if [ $at = hint ]; then
        eventually "it waits for a node of a higher rank" 20 says "$name" 'too low a rank'
        node high 'rank: "99"' | k create -f - >/dev/null
    fi
    eventually "$at: the pod is bound" 40 on_a_node "$name"
    eventually "the log says where" 20 grep -F "is ended, and starts again\" plugin=\"Apart\" at=\"$at\" why=\"crashed: Segmentation fault\"" "$run/scheduler.log"
    create "after-${at,,}" 'app: a'
    eventually "and the next one" 40 on_a_node "after-${at,,}"
    check "the scheduler went on" is_the_same
done
anew "at last"
of=$(process pid)
kill -TERM "$up_pid"
wait "$up_pid"
up_pid=
ends() { ! kill -0 "$of" 2>/dev/null; }
eventually "a plugin's process ends with the scheduler" 20 ends
