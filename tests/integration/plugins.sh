#!/usr/bin/env bash
# Plugins out of shared objects: those of plugins/ in `berth simulate`, `berth config check` and a running scheduler, and what
# becomes of one that does not behave.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
export BERTH_PLUGIN_CONFIG=$work/plugins.d
build=$(dirname "$BERTH_BIN")
s() { "$BERTH_BIN/berth" simulate --tie-break first "$@"; }
config() { # plugins and pluginConfig of the profile
    printf 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- %s\n' "$1"
}
node() { # name labels
    printf -- '---\napiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {%s}}\nstatus: {allocatable: {cpu: "%s", memory: %s, pods: "110"}}\n' "$@"
}
pod() { # name labels
    printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, labels: {%s}}\nspec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}\n' "$@"
}
{ node a 'rank: "10"' 4 8Gi; node b 'rank: "20"' 8 16Gi; node c '' 16 16Gi; } >"$work/nodes.yaml"
for i in 1 2 3 4 5 6; do pod "p$i" ""; done >"$work/pods.yaml"

# ---- what stands in config/plugins
for f in "$here"/../../config/plugins/*.yaml; do
    ! grep -q '^kind: KubeSchedulerConfiguration$' "$f" || check "${f##*/} is valid" env BERTH_PLUGIN_DIR="$build/plugins" "$BERTH_BIN/berth" config check "$f"
done

# ---- NodeMetadata and NodeResourcesAllocatable: the originals' numbers
config 'plugins: {score: {enabled: [{name: NodeMetadata, weight: 10}, {name: NodeResourcesAllocatable}]}}
  pluginConfig:
  - {name: NodeMetadata, args: {metadataKey: rank, metadataSource: Label, metadataType: Number, scoringStrategy: Highest}}' >"$work/meta.yaml"
meta() { s --plugin-dir "$build/plugins" -f "$work/nodes.yaml" -f "$work/pods.yaml" --config "$work/meta.yaml" "$@"; }
meta --explain -o wide >"$work/explained" 2>&1
expect "a label's number: the best" ' b +[0-9]+ +NodeMetadata +20 +100 +10 +1000$' cat "$work/explained"
expect "the worst" ' a +[0-9]+ +NodeMetadata +10 +1 +10 +10$' cat "$work/explained"
expect "none" ' c +[0-9]+ +NodeMetadata +-9223372036854775808 +0 +10 +0$' cat "$work/explained"
expect "least allocatable: the smallest" ' a +[0-9]+ +NodeResourcesAllocatable +-12191 +100 ' cat "$work/explained"
expect "one between" ' b +[0-9]+ +NodeResourcesAllocatable +-24383 +39 ' cat "$work/explained"
expect "the largest" ' c +[0-9]+ +NodeResourcesAllocatable +-32383 +0 ' cat "$work/explained"
check "all pods are where the label says" test "$(meta | grep -cE 'Scheduled +b( |$)')" = 6
check "both paths agree" status 0 meta --verify
config 'plugins: {score: {enabled: [{name: NodeMetadata, weight: 100}]}}
  pluginConfig:
  - {name: NodeMetadata, args: {metadataKey: since, metadataSource: Label, metadataType: Timestamp, scoringStrategy: Newest, timestampFormat: "2006-01-02"}}' >"$work/time.yaml"
{ node old 'since: "2024-02-29"' 4 8Gi; node new 'since: "2026-03-01"' 4 8Gi; node odd 'since: "2026-02-30"' 4 8Gi; } >"$work/dated.yaml"
expect "a label's time" 'default +x +Scheduled +new( |$)' s --plugin-dir "$build/plugins" -f "$work/dated.yaml" -f <(pod x '') --config "$work/time.yaml"

# ---- LoadAware: a file that its thread reads
config 'plugins: {filter: {enabled: [{name: LoadAware}]}}
  pluginConfig:
  - {name: LoadAware, args: {file: '"$work"'/load, threshold: 80, onStale: Reject}}' >"$work/load.yaml"
loads() { s --plugin-dir "$build/plugins" -f "$work/nodes.yaml" -f <(pod x '') --config "$work/load.yaml" --explain 2>&1 || true; }
printf 'a 93.5\nb 80\n' >"$work/load"
expect "only the node that is known not to be busy" 'x +Scheduled +b$' loads
expect "of others it says why" 'node\(s\) were too busy +a$' loads
touch -d '2 minutes ago' "$work/load"
expect "a stale file says nothing" '3 node\(s\) had no recent load' loads
expect "which the log tells" 'load: it is older than maxAgeSeconds' loads
printf 'a 1\nb much\n' >"$work/load"
expect "nor does one that is wrong" 'load: a line is not `node load`' loads
sed -i 's/Reject/Accept/' "$work/load.yaml"
expect "every node passes where that is wanted" 'x +Scheduled ' loads
sed 's/file: [^,]*, threshold: 80, onStale: Accept/threshold: -1, onStale: no, maxAgeSeconds: 0/' "$work/load.yaml" >"$work/loadbad.yaml"
for path in file threshold onStale maxAgeSeconds; do
    expect "its arguments are looked at: $path" "args.$path: .* is needed" \
        env BERTH_PLUGIN_DIR="$build/plugins" bash -c '"$1" config check "$2" || true' - "$BERTH_BIN/berth" "$work/loadbad.yaml"
done

# ---- what is not there, and what is wrong with arguments
any() { "$@" || true; }
expect "without the folder the name is unknown, as upstream says it" 'ScorePlugin "NodeMetadata" does not exist' \
    any s --plugin-dir "$work/none" -f "$work/nodes.yaml" -f "$work/pods.yaml" --config "$work/meta.yaml"
sed 's/metadataKey: rank, //; s/Highest/Best/' "$work/meta.yaml" >"$work/bad.yaml"
bad() { BERTH_PLUGIN_DIR=$build/plugins "$BERTH_BIN/berth" config check "$work/bad.yaml"; }
check "wrong arguments fail" status 1 bad
expect "each with its path" 'bad.yaml:6: profiles\[0\].pluginConfig\[0\].args.metadataKey: Invalid value: "": metadataKey cannot be empty' any bad
expect "and value" 'args.scoringStrategy: Invalid value: "Best": scoringStrategy must be one of' any bad
check "right ones do not" env BERTH_PLUGIN_DIR="$build/plugins" "$BERTH_BIN/berth" config check "$work/meta.yaml"

sed '/pluginConfig/,$d' "$work/meta.yaml" >"$work/none.yaml"
none() { s --plugin-dir "$build/plugins" -f "$work/nodes.yaml" -f "$work/pods.yaml" --config "$work/none.yaml"; }
expect "none at all are looked at when the plugin is made" \
    'initializing plugin "NodeMetadata": \[args.metadataKey: Invalid value: "": metadataKey cannot be empty, ' any none

# ---- begun and checked
cd "$work" || exit 1
check "a plugin is begun" "$BERTH_BIN/berth" plugin new PreferRank
make -C PreferRank check >made 2>&1
check "built and checked" test $? = 0
expect "by both paths" 'decided +64 pods on 16 nodes, both paths agree: 60 placed, 4 unschedulable, 0 gated, 0 failed' cat made
expect "and with its own cluster" 'default +web +Scheduled +b$' cat made
sed -i 's/n > 0 ? n : 0/n > 0 ? 0 : 0/' PreferRank/PreferRank.c
check "which finds a plugin that has become another one" status 2 make -C PreferRank check
sed -i 's/n > 0 ? 0 : 0/n > 0 ? n : 0/' PreferRank/PreferRank.c
make -C PreferRank deb >/dev/null 2>&1
expect "packed" ' root/root .* ./usr/lib/berth/plugins/PreferRank.so$' dpkg-deb -c PreferRank/berth-plugin-preferrank_0.1.0_*.deb
if command -v rustc >/dev/null; then
    check "one in Rust is begun" "$BERTH_BIN/berth" plugin new Rusty --lang rust
    expect "built and checked as well" 'default +web +Scheduled +b$' make -C Rusty check
    check "without a warning" test "$(touch Rusty/Rusty.rs && make -C Rusty 2>&1 | grep -c warning)" = 0
    expect "what it says of itself" 'plugin +Rusty: score \(score_rows\)' "$BERTH_BIN/berth" plugin check --args Rusty/args.yaml Rusty/Rusty.so
else
    skip "a plugin in Rust" "no rustc"
fi
mkdir -p bare/bin
cp "$BERTH_BIN/berth" bare/bin/
expect "without the header it says where that is" 'bare/include/berth/plugin.h: No such file.*berth-dev' any bare/bin/berth plugin new Bare
check "and begins nothing" test ! -e Bare
of_prefix() { (unset BERTH_PLUGIN_DIR BERTH_PLUGIN_CONFIG && bare/bin/berth simulate -f "$work/nodes.yaml" -f "$work/pods.yaml" --config "$work/meta.yaml" "$@"); }
expect "below another prefix there are no plugins" 'ScorePlugin "NodeMetadata" does not exist' any of_prefix
mkdir -p bare/lib/berth/plugins
install -m 644 "$build/plugins/nodemetadata.so" "$build/plugins/noderesourcesallocatable.so" bare/lib/berth/plugins
check "until they are installed there" test "$(any of_prefix | grep -cE 'Scheduled +b( |$)')" = 6
expect "but a folder that is given holds alone" 'ScorePlugin "NodeMetadata" does not exist' any of_prefix --plugin-dir "$work/none"
expect "what it says of itself" 'plugin +PreferRank: score \(score_rows\)' \
    "$BERTH_BIN/berth" plugin check --args PreferRank/args.yaml PreferRank/PreferRank.so
expect "wrong arguments" 'args.label: the key of a label is needed' any "$BERTH_BIN/berth" plugin check PreferRank/PreferRank.so
check "no plugin" status 1 "$BERTH_BIN/berth" plugin check "$work/nodes.yaml"
check "once only" status 1 "$BERTH_BIN/berth" plugin new PreferRank
check "no name" status 2 "$BERTH_BIN/berth" plugin new a/b
check "no such language" status 2 "$BERTH_BIN/berth" plugin new Cobol --lang cobol
BERTH_STRANGE=lie "$BERTH_BIN/berth" plugin check "$build/tests/plugins/strange.so" >"$work/lies" 2>&1
expect "one that leaks" 'it does not free what it allocates: [0-9]{4,} bytes more after each 64 pods' \
    any env BERTH_STRANGE=leak "$BERTH_BIN/berth" plugin check "$build/tests/plugins/strange.so"
"$BERTH_BIN/berth" plugin check --args PreferRank/args.yaml PreferRank/PreferRank.so >checked
expect "one that does not" '^memory +is freed$' cat checked
expect "what a call takes" '^a call +Score [0-9]+ ns \([0-9]+ at most\)' cat checked
expect "one that lies" 'plugin "Strange" ended the process: Aborted' cat "$work/lies"

# ---- in a process of its own as well
apart() { "$BERTH_BIN/berth" plugin check --mode process "$@" 2>&1; }
expect "the same is decided there" '^apart +decides the same in a process of its own$' apart --args PreferRank/args.yaml PreferRank/PreferRank.so
expect "what differs is told" 'plugin check: in a process of its own it decides otherwise: "pod-00 on no node: .*not annotated.*" here is "pod-00 on node-[0-9]+" there$' \
    any env BERTH_STRANGE=note "$BERTH_BIN/berth" plugin check --mode process "$build/tests/plugins/strange.so"
BERTH_STRANGE=note status 1 apart "$build/tests/plugins/strange.so" >differs
check "and fails" test $? = 0
sed 's/^    struct instance \*in = calloc.*/&\n    if (access("\/", F_OK) < 0) __builtin_trap();/' PreferRank/PreferRank.c >PreferRank/Crash.c
expect "so is a crash there" 'plugin check: in a process of its own: .*its process crashed: Illegal instruction' \
    any bash -c 'cc -std=gnu11 -I"$1/include" -include unistd.h -fPIC -shared -fvisibility=hidden -o PreferRank/Crash.so PreferRank/Crash.c && chmod go-w PreferRank/Crash.so && "$2/berth" plugin check --mode process --args PreferRank/args.yaml PreferRank/Crash.so 2>&1' - "$build" "$BERTH_BIN"
expect "and what cannot be there" 'sorts the queue \(less\), which .mode: process. cannot' any apart "$build/tests/plugins/crashes.so"

# ---- measured: all forms keep the fast path
"$BERTH_BIN/berth" bench plugins --plugin-dir "$build/plugins" --nodes 100 --pipeline >"$work/measured" 2>&1
check "each form of a plugin" test "$(grep -cE '^ +100  (built in|native).* [0-9.]+ +[0-9]+ +100.0% ' "$work/measured")" = 5
expect "and an extender, which is asked for each pod" 'HTTP extender +[0-9.]+ +[0-9.]+ +[0-9]+ +0.0% ' cat "$work/measured"
guests=0
if [ -e "$build/plugins/wasm/nodenumber.wasm" ]; then # where there is a compiler for it
    guests=2
    if command -v cc >/dev/null; then
        guests=3
        expect "and that one, compiled" 'guest, compiled +[0-9.]+ +[0-9.]+ +[0-9]+ +100.0% ' cat "$work/measured"
    fi
    expect "a guest, which is asked for each pod" 'guest, interpreted +[0-9.]+ +[0-9.]+ +[0-9]+ +0.0% ' cat "$work/measured"
    expect "and one whose answers are kept" 'guest, nodeLocal +[0-9.]+ +[0-9.]+ +[0-9]+ +100.0% ' cat "$work/measured"
fi
check "those that the scheduler has, in the real processes" test "$(grep -cE '% +[1-9][0-9]*$' "$work/measured")" = $((5 + guests))
check "sizes that are none" status 2 "$BERTH_BIN/berth" bench plugins --nodes -1
expect "a checkout's own plugins are found" '^ +100  native, per node ' \
    env -u BERTH_PLUGIN_DIR "$BERTH_BIN/berth" bench plugins --nodes 100
check "config check takes --plugin-dir" status 0 env -u BERTH_PLUGIN_DIR "$BERTH_BIN/berth" config check --plugin-dir "$build/plugins" "$work/meta.yaml"
expect "a name that is unknown: where it was looked for" "\"NodeMetadata\" does not exist \(looked in $work/none; --plugin-dir DIR: elsewhere\)" \
    any env -u BERTH_PLUGIN_DIR "$BERTH_BIN/berth" config check --plugin-dir "$work/none" "$work/meta.yaml"
expect "no plugin to measure" 'berth bench plugins: .*"NodeNumber" does not exist' any "$BERTH_BIN/berth" bench plugins --plugin-dir "$work/none"

# ---- digests
mkdir "$work/plugins.d"
pin() { printf 'name: NodeMetadata\nfile: %s\nsha256: "%s"\n' "$build/plugins/nodemetadata.so" "$1" >"$work/plugins.d/meta.yaml"; }
only() { s --plugin-dir "$work/none" --plugin-policy pinned -f "$work/nodes.yaml" -f <(pod x '') --config "$work/meta.yaml" "$@"; }
sed -i 's/, {name: NodeResourcesAllocatable}//' "$work/meta.yaml"
pin "$(sha256sum "$build/plugins/nodemetadata.so" | cut -d' ' -f1)"
check "a file that is pinned, wherever it is" status 0 only
pin "$(printf x | sha256sum | cut -d' ' -f1)"
expect "another digest" "nodemetadata.so has the SHA-256 [0-9a-f]{64}, its configuration demands [0-9a-f]{64}" any only
rm "$work/plugins.d/meta.yaml"

# ---- signatures
signed() { "$BERTH_BIN/berth" simulate --plugin-dir "$work/signed" --plugin-policy signed -f "$work/nodes.yaml" -f <(pod x '') --config "$work/meta.yaml"; }
mkdir "$work/signed"
cp "$build/plugins/nodemetadata.so" "$work/signed/"
expect "a file without one" 'nodemetadata.so: the policy "signed" demands a signature: .*nodemetadata.so.minisig: No such file' any signed
if command -v minisign >/dev/null; then
    minisign -G -W -p "$work/us.pub" -s "$work/us.key" >/dev/null
    minisign -S -s "$work/us.key" -m "$work/signed/nodemetadata.so" >/dev/null
    expect "one by an unknown key" 'is signed with the key [0-9A-F]{16}: that of one of the 0 files' any signed
    cp "$work/us.pub" "$work/plugins.d/"
    check "one by a known key" status 0 signed
    printf x >>"$work/signed/nodemetadata.so"
    expect "a file that was changed since" 'nodemetadata.so is not what was signed with the key' any signed
else
    skip "signatures of minisign" "no minisign"
fi
rm -r "$work/plugins.d"

# ---- one that does not behave
config 'plugins: {filter: {enabled: [{name: Strange}]}}' >"$work/strange.yaml"
strange() { # what, flags
    local what=$1
    shift
    BERTH_STRANGE=$what s --plugin-dir "$build/tests/plugins" -f "$work/nodes.yaml" -f "$work/pods.yaml" --config "$work/strange.yaml" "$@"
}
refused() { # what, text
    expect "refused: $1" "strange.so:? $2" any strange "$1"
    check "and nothing is decided: $1" status 1 strange "$1"
}
check "it can behave" status 0 strange well --verify
refused crash 'crashed while it was loaded: Aborted'
refused exit 'ended its process while it was loaded'
refused refuse 'refuses to work here: its berth_plugin_entry_v1 returned 3'
refused past 'its struct berth_plugin has 24 bytes, at least [0-9]+ are needed'
refused nameless 'has a plugin "Other", its note names "Strange" only: they must agree'
refused none 'its berth_plugin_entry_v1 tells 0 plugins, 1 to 16 are needed'
expect "what it did not declare is an error with its name" \
    'running "Strange" filter plugin: it used requested without BERTH_READS_SUMS in its reads' any strange peek
expect "a lie is found" 'verify: .* differs from the reference path' any strange lie --verify
check "and ends the process" status 134 strange lie --verify

# ---- a running scheduler
command -v kubectl >/dev/null || { skip "a running scheduler" "no kubectl"; exit 0; }
k() { kubectl --cache-dir "$work/cache" "$@"; }
config 'plugins: {score: {enabled: [{name: NodeMetadata, weight: 100}]}, multiPoint: {enabled: [{name: LabelGang}]}}
  pluginConfig:
  - {name: NodeMetadata, args: {metadataKey: rank, metadataSource: Label, metadataType: Number, scoringStrategy: Highest}}
  - {name: LabelGang, args: {groupLabel: gang, sizeLabel: size}}
- schedulerName: loaded
  plugins: {filter: {enabled: [{name: LoadAware}]}}
  pluginConfig:
  - {name: LoadAware, args: {file: '"$work"'/now, threshold: 80, onStale: Reject, everySeconds: 1}}
- schedulerName: noted
  plugins: {score: {enabled: [{name: NodeMetadata, weight: 100}]}}
  pluginConfig:
  - {name: NodeMetadata, args: {metadataKey: example.com/since, metadataSource: Annotation, metadataType: Timestamp, scoringStrategy: Newest}}' >"$work/up.yaml"
sed -i 's/^- plugins: {score/- schedulerName: default-scheduler\n  plugins: {score/' "$work/up.yaml"
printf 'a 93.5\nb 80.5\n' >"$work/now"
mkdir "$work/plugins"
cp "$build"/plugins/*.so "$work/plugins/"
start_up --binders 1 --no-example --config "$work/up.yaml" --plugin-dir "$work/plugins" || exit 1
k create -f "$work/nodes.yaml" >/dev/null
pod ranked '' | k create -f - >/dev/null
on() { [ "$(k get pod "$1" -o 'jsonpath={.spec.nodeName}')" = "$2" ]; }
eventually "the plugin decides there, too" 20 on ranked b
{ pod g1 'gang: x, size: "3"'; pod g2 'gang: x, size: "3"'; } | k create -f - >/dev/null
pod last '' | k create -f - >/dev/null
eventually "pods behind those that wait are bound" 20 on last b
check "two of three wait at Permit" test -z "$(k get pods g1 g2 -o 'jsonpath={.items[*].spec.nodeName}')"
pod g3 'gang: x, size: "3"' | k create -f - >/dev/null
for p in g1 g2 g3; do eventually "all of them are bound: $p" 20 on $p b; done
pod g4 'gang: x, size: "3"' | k create -f - >/dev/null
eventually "one more goes on at once" 20 on g4 b
complete() { k get events -o json | jq -r '.items[] | select(.reason == "GangComplete") | .type, .involvedObject.name, .message' | xargs; }
gone_on() { [ "$(complete)" = "Normal g3 All pods of x have a node: 2 waited for this one" ]; }
eventually "which an event tells, once" 20 gone_on
pod idle '' | sed 's/spec: {/spec: {schedulerName: loaded, /' | k create -f - >/dev/null
busy() { k get pod idle -o 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}' | grep -F '2 node(s) were too busy'; }
eventually "every node is busy" 20 busy
printf 'a 93.5\nb 80\n' >"$work/now.new"
mv "$work/now.new" "$work/now"
eventually "until the file says otherwise: the plugin wakes the pod" 20 on idle b
noted() { # node: a new pod goes there
    local p=noted-$EPOCHREALTIME
    pod "${p/./-}" '' | sed 's/spec: {/spec: {schedulerName: noted, /' | k create -f - && k wait --for=condition=PodScheduled "pod/${p/./-}" --timeout=20s && on "${p/./-}" "$1"
}
k annotate node a example.com/since=2026-11-27T12:00:00Z >/dev/null
eventually "an annotation's time decides" 20 noted a
k annotate node c example.com/since=2026-11-27T12:00:01Z >/dev/null
eventually "until another node has a newer one" 20 noted c
expect "berth plugins" '^LabelGang +1.0.0 +Active +0 +yes +permit +.*labelgang.so$' "$BERTH_BIN/berth" plugins --runtime-dir "$run"
check "as JSON" test "$("$BERTH_BIN/berth" plugins --runtime-dir "$run" -o json | jq -r '.plugins[].name' | sort | xargs)" = "LabelGang LoadAware NodeMetadata"

# ---- another file, and a reload
digest() { "$BERTH_BIN/berth" plugins --runtime-dir "$run" -o json | jq -r '.plugins[] | select(.name == "LabelGang").sha256'; }
is_loaded() { [ "$(digest)" = "$(sha256sum "$work/plugins/labelgang.so" | cut -d' ' -f1)" ]; }
reload() { kill -HUP "$(pid_of berth-scheduler)"; }
log() { cat "$run/scheduler.log"; }
check "the list has the file's digest" is_loaded
printf x >"$work/plugins/new"
mv "$work/plugins/new" "$work/plugins/labelgang.so"
reload
said() { log | grep -q 'the configuration stays as it is.*labelgang.so is not a shared object'; }
eventually "a file that would be refused changes nothing" 20 said
{ cat "$build/plugins/labelgang.so"; printf x; } >"$work/plugins/new"
mv "$work/plugins/new" "$work/plugins/labelgang.so"
reload
eventually "another one is loaded" 20 is_loaded
pod again '' | k create -f - >/dev/null
eventually "and the scheduler goes on" 20 on again b
kill -TERM "$up_pid"
wait "$up_pid"

# ---- one that ends the scheduler, by a signal and by not returning
config 'schedulerName: default-scheduler
  plugins: {filter: {enabled: [{name: Strange}]}}
- schedulerName: plain' >"$work/ends.yaml"
export BERTH_STRANGE=end BERTH_STRANGE_FILE=$work/ended BERTH_PLUGIN_TIMEOUT=300ms
start_up --binders 1 --no-example --config "$work/ends.yaml" --plugin-dir "$build/tests/plugins" || exit 1
k create -f "$work/nodes.yaml" >/dev/null
pod bad '' | k create -f - >/dev/null
says() { k get pod "$1" -o 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}' | grep -F "$2"; }
eventually "after three times it is put aside, and its pods say so" 30 says bad \
    'running "Strange" filter plugin: it is put aside: it ended the scheduler three times within ten minutes'
expect "berth plugins says it" '^Strange +0 +PutAside +3 +yes +filter +' "$BERTH_BIN/berth" plugins --runtime-dir "$run"
expect "the log names plugin and callback, of the signal" 'ended in a plugin.s code" plugin="Strange" at="Filter"' cat "$run/scheduler.log"
expect "and of what did not return" 'callback does not return.* plugin="Strange" at="Filter"' cat "$run/scheduler.log"
pod other '' | sed 's/spec: {/spec: {schedulerName: plain, /' | k create -f - >/dev/null
bound() { [ -n "$(k get pod "$1" -o 'jsonpath={.spec.nodeName}')" ]; }
eventually "pods of other profiles are scheduled" 20 bound other
ready() { curl -s "http://127.0.0.1:$(metrics_port scheduler)/readyz?verbose"; }
expect "and readiness" '^\[-\]plugins failed' ready
expect "and a metric" '^berth_scheduler_plugin_state\{plugin="Strange",state="PutAside"\} 1$' \
    curl -s "http://127.0.0.1:$(metrics_port scheduler)/metrics"
event() { k get events -o json | jq -r '.items[] | select(.reason == "PluginPutAside") | .type, .involvedObject.kind, .involvedObject.name, .message' | xargs; }
told() { event | grep -q "^Warning Node $(uname -n) Plugin Strange: it is put aside: .* Pods of profiles that use it are not scheduled"; }
eventually "and an event about the node" 20 told
kill -TERM "$up_pid"
wait "$up_pid"

# ---- WebAssembly guests: one that decides, twice with other args; one that refuses at Permit; one that traps
guest() { printf '{name: %s, args: {guestURL: "file://%s", guestConfig: "%s", hookTimeout: 1m}}' "$@"; }
number=$(realpath "$build")/plugins/wasm/nodenumber.wasm
wish=$(realpath "$build")/tests/guests/wish.wasm
if [ ! -e "$number" ]; then
    skip "WebAssembly guests" "they are not built: clang and wasm-ld are needed"
    exit
fi
config "schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: NodeNumber, weight: 10}, {name: Strict}]}}
  pluginConfig: [$(guest NodeNumber "$number" ''), $(guest Strict "$number" strict)]
- schedulerName: refuses
  plugins: {multiPoint: {enabled: [{name: Refuses}]}}
  pluginConfig: [$(guest Refuses "$wish" 'filter=node permit=2')]
- schedulerName: traps
  plugins: {multiPoint: {enabled: [{name: Traps}]}}
  pluginConfig: [$(guest Traps "$wish" 'filter=panic')]
- schedulerName: reverse
  plugins: {multiPoint: {enabled: [{name: Reverse, weight: 100}]}}
  pluginConfig: [$(guest Reverse "$number" reverse)]" >"$work/guests.yaml"
{ node n1 '' 4 8Gi; node n2 '' 4 8Gi; } >"$work/numbered.yaml"
by() { pod "$2" '' | sed "s/spec: {/spec: {schedulerName: $1, /"; }
{ for i in 1 2 3; do pod "p$i" ''; done; by traps t1; by reverse r2; } >"$work/numbers.yaml"
s --config "$work/guests.yaml" -f "$work/numbered.yaml" -f "$work/numbers.yaml" >"$work/guested" 2>&1
expect "a guest chooses" 'default +p2 +Scheduled +n2$' cat "$work/guested"
expect "and filters" '2 node\(s\) had another number than the pod' cat "$work/guested"
expect "the same with other args" 'default +r2 +Scheduled +n1$' cat "$work/guested"
expect "a trap is the pod's error, with guest, hook and trace" \
    'running "Traps" filter plugin: wasm: filter error: panic!.wasm error: unreachable.wasm stack trace:' cat "$work/guested"
start_up --binders 1 --no-example --config "$work/guests.yaml" || exit 1
k create -f "$work/numbered.yaml" >/dev/null
{ by traps t1; by refuses f1; pod p3 ''; pod p2 ''; } | k create -f - >/dev/null
eventually "in the running scheduler, too" 30 on p2 n2
eventually "one that refuses at Permit" 30 says f1 permit
eventually "one that traps" 30 says t1 'wasm: filter error: panic!'
eventually "one that filters" 30 says p3 'node(s) had another number than the pod'
pod p1 '' | k create -f - >/dev/null
eventually "and other profiles go on" 30 on p1 n1
expect "metrics count the trap" 'berth_wasm_traps_total\{plugin="Traps",hook="filter"\} [1-9]' \
    curl -fsS "http://127.0.0.1:$(metrics_port scheduler)/metrics"
expect "the time that hooks took" 'berth_wasm_seconds_total\{plugin="Traps",hook="filter"\} [0-9.e-]*[1-9]' \
    curl -fsS "http://127.0.0.1:$(metrics_port scheduler)/metrics"
expect "and whether it is compiled" 'berth_wasm_compiled\{plugin="Traps"\} 0' \
    curl -fsS "http://127.0.0.1:$(metrics_port scheduler)/metrics"
