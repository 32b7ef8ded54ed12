#!/usr/bin/env bash
# What programs say, and end with, when they cannot do what they are asked: wrong flags, files that are missing, empty or of
# another kind, servers that are not there, or refuse. A table, one command a line.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
export HOME=$work BERTH_RUNTIME_DIR=$work/nobody BERTH_PLUGIN_CONFIG=$work/nothing BERTH_PLUGIN_DIR=$work/nothing
unset KUBECONFIG STATE_DIRECTORY
PATH=$BERTH_BIN:$PATH
# shellcheck disable=SC2034  # the tables' commands name them, as those below
build=$(dirname "$BERTH_BIN")

# ---- what the commands are given
mkdir "$work/dir" "$work/nobody"
: >"$work/empty"
echo 'a: [' >"$work/broken"
echo 'kind: Recipe' >"$work/recipe"
printf 'apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: "4", memory: 8Gi, pods: "9"}}\n' >"$work/node"
printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: p1}\nspec: {containers: [{name: c, image: i}]}\n' >"$work/pod"
printf 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{plugins: {score: {enabled: [{name: Nobody}]}}}]\n' >"$work/unknown.yaml"
printf 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: many\n' >"$work/wrong.yaml"
printf 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n' >"$work/good.yaml"
printf 'apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u}]\ncurrent-context: c\n' >"$work/gone.conf"
printf 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{pluginConfig: [{name: NodeAffinity, args: {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: In, values: []}, {key: d, operator: In}]}]}}}}]}]\n' >"$work/empty-values.yaml"
echo 'no gzip, no record' >"$work/text"
printf 'a,b\n1,2\n' >"$work/lines"
gzip -c "$work/text" >"$work/text.gz"
head -c 20 "$work/text.gz" >"$work/cut.gz"
printf 'token-of-admin\nsomebody,somebody,1,"people"\n' >"$work/tokens"
# A server that answers, one that answers strangers with 401, and one of whose users may list nothing.
berth-simulator --port 0 --kubeconfig-out "$work/sim.conf" >"$work/sim.log" 2>&1 &
also_stop=$!
berth-simulator --port 0 --token-file "$work/tokens" --kubeconfig-out "$work/admin.conf" >"$work/guarded.log" 2>&1 &
also_stop+=" $!"
wait_for_file "$work/sim.conf" && wait_for_file "$work/admin.conf"
server() { awk '/server:/ {print $2}' "$1"; }
# shellcheck disable=SC2034
sim=$(server "$work/sim.conf") guarded=$(server "$work/admin.conf") gone=http://127.0.0.1:1
sed 's/token-of-admin/somebody/' "$work/admin.conf" >"$work/somebody.conf"
sed 's/token-of-admin/nobody/' "$work/admin.conf" >"$work/nobody.conf"

# try FILE: "STATUS | COMMAND | ERE", a line each; $work, $sim and so on are the shell's
try() {
    local want command pattern out rc
    while IFS='|' read -r want command pattern; do
        [ -n "${want//[[:space:]]/}" ] && [[ $want != \#* ]] || continue
        want=${want// /} command=${command#"${command%%[![:space:]]*}"} command=${command%"${command##*[![:space:]]}"}
        out=$(eval "$command" 2>&1 </dev/null)
        rc=$?
        if [ "$rc" -eq "$want" ] && grep -qE -- "${pattern# }" <<<"$out"; then ok "$command"; else not_ok "$command" "status $rc, wanted $want and: ${pattern# }
got: $out"; fi
    done
}
try <<'TABLE'
# ---- wrong usage: the message names the flag and what it takes
2 | berth queue --output nothing | ^berth queue: invalid value "nothing" for --output
2 | berth queue -n | ^berth queue: 
2 | berth get | ^berth get: say what to get: nodes or pods$
2 | berth get nodes n1 -l a=b | name cannot be provided when a selector is specified
2 | berth get nodes -o csv | invalid value "csv" for --output: table, wide, json, yaml or name
2 | berth get nodes -l 'a in (' | ^berth get: unable to parse requirement
2 | berth get pod/a node/b | one type at a time
2 | berth get pod/a b | "b": expected TYPE/NAME, as in "pod/a"
2 | berth get pod/ | "pod/": expected TYPE/NAME
2 | berth explain | ^berth explain: 
2 | berth up --binders x | invalid argument "x" for "--binders" flag: expected a whole number$
2 | berth run --binders x | expected a whole number$
2 | berth run --kube-api-burst x | strconv.ParseInt: parsing "x": invalid syntax$
2 | berth version now | ^berth version: unexpected argument: now$
2 | berth version --nope | ^berth version: unknown flag: --nope$
2 | berth --version now | ^berth version: unexpected argument: now$
2 | berth simul | unknown command "simul", did you mean "simulate"\?
2 | berth get pods --name x | unknown flag: --name, did you mean --namespace\?
2 | berth decisions lsit | unknown verb "lsit", did you mean list\?
2 | berth load sinthetic | unknown source "sinthetic", did you mean synthetic\?
2 | berth explain deploymet x | unknown type "deploymet", did you mean deployment\?
2 | berth explain pod/a/b/c | names no pod: pod/NAME, NAME or NAMESPACE/NAME
2 | berth explain svc x | unknown type "svc": pod, podgroup, node, deployment
2 | berth explain node/x --node y | are about a pod, not about a node
2 | berth decisions nothing | unknown verb "nothing": list, show or annotations, or pod/NAME
2 | berth decisions list more | unexpected argument "more"
2 | berth decisions --limit 0 | limit 0: want 1 to
2 | berth compare --output no | invalid value "no" for --output
2 | berth simulate | ^berth simulate: no file given: -f FILE$
2 | berth simulate -f $work/node --pod p1 | invalid value "p1" for --pod: NAMESPACE/NAME
2 | berth simulate -f $work/node --max -1 | invalid value -1 for --max: a number from 0 on
2 | berth simulate -f $work/node -f $work/pod --count --explain | not with --explain
2 | berth rebalance now | unexpected argument "now"
2 | berth rebalance --apply -f $work/node | --apply is for a running cluster: not with --filename
2 | berth rebalance --rate 0 | invalid value 0 for --rate: 1 to 1000 evictions a second
2 | berth rebalance --patience 86401 | invalid value 86401 for --patience: 0 to 86400 seconds
2 | berth rebalance --max-moves -1 | invalid value -1 for --max-moves: a number from 0 \(no limit\) on
2 | berth scenario run | FILE is missing
2 | berth scenario run a b | one FILE at a time
2 | berth scenario check | FILE is missing
2 | berth scenario report | RESULT is missing
2 | berth scenario report a b | one RESULT at a time
2 | berth config check | say which file to check, or - for standard input
2 | berth config show --defaults --config $work/good.yaml | --config, --defaults and --runtime-dir exclude each other
2 | berth plugin check | one FILE is needed
2 | berth plugin check a b | one FILE is needed
2 | berth plugin new | one NAME is needed
2 | berth plugin new a-b | invalid NAME "a-b": 1 to 63 letters and digits
2 | berth plugins -o yaml | invalid value "yaml" for --output
2 | berth import --to $sim | --from is required: the cluster to read
2 | berth import --from $sim | one of --to, --manifests and --dry-run is required
2 | berth import --from $sim --dry-run --kinds secrets | unknown kind "secrets" for --kinds
2 | berth import --from $sim --dry-run --selector 'a in (' | ^berth import: 
2 | berth import --from $sim --dry-run --node-selector '=' | ^berth import: 
2 | berth sync --from $sim | --from and --to are required
2 | berth record --from $sim | --output is required: the file to write
2 | berth record -o $work/r | one of --from, --openb and --kwok is required
2 | berth record -o $work/r --openb | --openb needs --nodes FILE and --pods FILE
2 | berth record -o $work/r --from $sim --nodes $work/node | --nodes and --pods are files of --openb
2 | berth record -o $work/r --openb --nodes a --pods b --start -1s | --start and --end must not be negative
2 | berth replay | say which file to play
2 | berth replay --paused | --paused, --clear and --follow need a file
2 | berth replay --pause --resume | --pause and --resume contradict each other
2 | berth replay --step -1 | invalid value -1 for --step: 1 to
2 | berth replay a b | unexpected argument "b"
2 | berth replay $work/text --pause | ^berth replay: 
2 | berth load | say what to load: openb or synthetic
2 | berth load nothing | unknown source "nothing": openb or synthetic
2 | berth load openb | openb needs --nodes FILE, --pods FILE or both
2 | berth load synthetic --node-count -1 | counts must not be negative, --parallel at least 1
2 | berth conformance | no file or folder given
2 | berth wasm check | say which file to check, or - for standard input
2 | berth wasm run $work/text | say which file, and which of its functions
2 | berth wasm run --limit -1s $work/text f | --limit: expected 0s or more
2 | berth wasmc | say which guest to compile
2 | berth wasmc --print a b | --print takes one guest
2 | berth wasmc --cpu 0 a | invalid value for --cpu: 1 to 86400
2 | berth keygen | PATH is missing
2 | berth run --binders 0 | invalid value 0 for --binders: 1 to
2 | berth up now | unexpected argument "now"
2 | berth up --binders 0 | invalid value 0 for --binders: 1 to
2 | berth up --port 65536 | invalid value 65536 for --port: 0 to 65535
2 | berth up --front-port -2 | invalid value -2 for --front-port: 0 to 65535
2 | berth up --observe | --observe needs --kubeconfig FILE: the cluster to observe
2 | berth up --observe --kubeconfig $work/gone.conf --binders 2 | --observe decides and keeps nothing: --binders does not go with it
2 | berth up --kubeconfig $work/gone.conf --port 80 | --port is of the built-in API server, --kubeconfig names another
2 | berth up --kubeconfig $work/gone.conf --data $work/d | --data is of the built-in API server, --kubeconfig names another
2 | berth up --kubeconfig $work/gone.conf --runtime-config api/all=true | --runtime-config is of the built-in API server
2 | berth up --node-metrics moon | invalid value "moon" for --node-metrics: kubernetes, prometheus=URL or load-watcher=URL
2 | berth up --feature-gates Nothing=true | Nothing
2 | berth-simulator now | unexpected argument "now"
2 | berth-simulator --port 65536 | port 65536: want 0 to 65535
2 | berth-simulator --tls-cert-file $work/text | --tls-cert-file and --tls-private-key-file go together
2 | berth-simulator --data-sync no | data-sync "no": want batch or full
2 | berth-simulator --annotate-decisions no | annotate-decisions "no": want off or full
2 | berth-simulator --annotate-decisions full | --annotate-decisions needs --decisions FILE or --runtime-dir
2 | berth-simulator --annotate-nodes -1 | annotate-nodes -1: want 0 to 1000000
2 | berth-simulator --observe $work/gone.conf --data $work/d | --observe keeps nothing: not with --data, --history-file
2 | berth-simulator --data $work/d --history-file $work/h | --data and --history-file exclude each other
2 | berth-simulator --logging-format xml | logging-format "xml": want text or json
2 | berth-simulator --feature-gates Nothing=true | Nothing
# ---- files that are missing, unreadable as what they should be, or cannot be written
1 | berth simulate -f $work/none | none: No such file or directory
1 | berth simulate -f $work/dir/none | No such file or directory
1 | berth simulate -f $work/broken | broken
1 | berth simulate -f $work/recipe | recipe
1 | berth simulate -f $work/node --pod default/p1 | no pending pod default/p1 in the files
1 | berth simulate -f $work/node --config $work/none | open .*none: no such file or directory
1 | berth simulate -f $work/node --config $work/unknown.yaml | Nobody
0 | berth simulate -f $work/node -f $work/pod -o json | "scheduled": 1,
0 | berth simulate -f $work/node -f $work/pod -o yaml | ^  scheduled: 1$
0 | berth simulate -f $work/node -f $work/pod -o wide | default +p1 +Scheduled +n1
0 | berth simulate -f $work/node -f $work/pod --count -o json | "kind": 
1 | berth simulate -f $work/node -f $work/pod >/dev/full | could not write: No space left on device
1 | berth rebalance -f $work/none | No such file or directory
1 | berth rebalance -f $work/node --for p1 | no pod that waits
1 | berth scenario run $work/none | could not read ".*none": No such file or directory
1 | berth scenario run $work/dir | could not read ".*dir"
1 | berth scenario run $work/broken | broken
1 | berth scenario check $work/recipe | recipe
1 | berth scenario report $work/none | could not read ".*none": No such file or directory
1 | berth scenario report $work/text | line 1, column 1: unexpected character
1 | berth config check $work/none | open .*none: no such file or directory
1 | berth config check $work/dir | is a directory
1 | berth config check $work/broken | broken
1 | berth config check $work/recipe | Recipe
1 | berth config check $work/wrong.yaml | parallelism
1 | berth config check $work/wrong.yaml -o json | "valid": false|parallelism
1 | berth config check $work/unknown.yaml | Nobody
1 | berth config show --config $work/none | open .*none: no such file or directory
1 | berth config show --config $work/wrong.yaml | parallelism
0 | berth config show --config $work/good.yaml -o json | "kind": "KubeSchedulerConfiguration"
0 | berth config show --defaults -o yaml | kind: KubeSchedulerConfiguration
0 | berth config show | no scheduler runs here; these are the defaults
1 | berth config show --defaults >/dev/full | could not write: No space left on device
1 | berth decisions --decisions-file $work/none | none: No such file or directory
1 | berth decisions --decisions-file $work/text | text
1 | berth decisions show 1 --decisions-file $work/empty | empty
1 | berth conformance $work/none | cannot open .*none: No such file or directory
1 | berth conformance $work/text | text
1 | berth conformance $work/cut.gz | cut.gz
1 | berth keygen $work/none/key | none/key
0 | berth keygen $work/key | ^.*/key.key .*/key.pub$
1 | berth keygen $work/key | key
1 | berth plugin check $work/none | No such file
1 | berth plugin check $work/text | text is not a shared object
1 | berth plugin check $build/plugins/nodemetadata.so --args $work/none | none: No such file or directory
1 | berth plugin check $build/plugins/nodemetadata.so --args $work/broken | broken
1 | berth plugin check $build/plugins/nodemetadata.so --args $work/recipe | no kind "Recipe" is registered
0 | cd $work/dir && berth plugin new Mine | Mine
1 | cd $work/dir && berth plugin new Mine | folder .*Mine: File exists
0 | cd $work/dir && berth plugin new Rusty --lang rust | Rusty
0 | cd $work/dir && berth plugin new Guest --lang wasm-c | Guest
2 | berth plugin new Mine --lang go | invalid value "go" for --lang
1 | berth wasm check $work/none | none: No such file or directory
1 | berth wasm check $work/text | text: 
1 | berth wasm run $work/text f | text: 
1 | berth wasmc $work/none | none: No such file or directory
1 | berth wasmc $work/text | text: 
1 | berth record -o $work/none/r --openb --nodes $work/text --pods $work/text | could not write ".*none/r": No such file or directory
1 | berth record -o $work/text --openb --nodes $work/text --pods $work/text | text" is there already; --force replaces it
1 | berth record -o $work/r1 --openb --nodes $work/none --pods $work/none | none
1 | berth record -o $work/r2 --openb --nodes $work/lines --pods $work/lines | lines: no column "sn" in the header
1 | berth record -o $work/r3 --kwok $work/none | could not read ".*none": No such file or directory
1 | berth record -o $work/r4 --kwok $work/broken | broken
0 | berth record -o $work/r5 --kwok $work/recipe | 1 documents without use for scheduling were left out
1 | berth config check $work/empty-values.yaml | matchExpressions\[0\].values: Invalid value: \[\]: for 'in', 'notin' operators
1 | berth config check $work/empty-values.yaml | matchExpressions\[1\].values: Invalid value: null: for 'in', 'notin' operators
1 | berth load openb --nodes $work/none --pods $work/none --kubeconfig $work/sim.conf | none
1 | berth load openb --nodes $work/lines --kubeconfig $work/sim.conf | lines: no column "sn" in the header
1 | berth import --from $sim --manifests $work/none/m | could not write ".*none/m": No such file or directory
1 | berth import --from $work/none --dry-run | none
1 | berth import --from $work/broken --dry-run | broken
1 | berth up --config $work/none --port 0 | open .*none: no such file or directory
1 | berth up --config $work/wrong.yaml --port 0 | parallelism
1 | berth up --kubeconfig $work/none | none
1 | berth up --data $work/dir --port 0 --runtime-dir $work/up1 --front-port -1 | dir
1 | berth up --runtime-dir $work/text/below --port 0 | text/below
1 | berth-simulator --port 0 --client-ca-file $work/none | cannot read .*none: No such file or directory
1 | berth-simulator --port 0 --token-file $work/none | cannot read .*none
1 | berth-simulator --port 0 --faults @$work/none | cannot read .*none
1 | berth-simulator --port 0 --faults sometimes | sometimes
1 | berth-simulator --port 0 --tls-cert-file $work/text --tls-private-key-file $work/text | Cannot start
1 | berth-simulator --port 0 --data $work/text | Cannot start
1 | berth-simulator --port 0 --history-file $work/dir | Cannot start
1 | berth-simulator --port 0 --audit-log-path $work/none/audit | Cannot start
1 | berth-simulator --port 0 --kubeconfig-out $work/none/conf | Cannot start
1 | berth-simulator --port 0 --observe $work/none | Cannot start
1 | berth-simulator --address nowhere | Cannot start
1 | berth-scheduler --config $work/none | no such file or directory
1 | berth-scheduler --config $work/wrong.yaml | parallelism
1 | berth-scheduler --write-config-to $work/none/config | No such file or directory
0 | berth-scheduler --write-config-to $work/written -v 2 | Wrote configuration
1 | berth-scheduler --runtime-dir $work/text/below | text/below
1 | berth-scheduler --plugin-timeout soon | soon
2 | berth-scheduler --record-decisions some | invalid value "some" for --record-decisions
1 | berth-scheduler --config $work/good.yaml -v 2 --metrics-address nowhere | command failed
1 | berth-scheduler --metrics-address 0 --binder-listen tcp://127.0.0.1:0 | tcp needs a key and a folder of keys that may connect
1 | berth-scheduler --metrics-address 0 --binder-listen tcp://127.0.0.1:0 --key-file $work/none --binder-keys $work/dir | none
# ---- the program that runs plugins: nobody's but the scheduler's
2 | berth-plugin-host | the scheduler starts it, for plugins with `mode: process`
2 | berth-plugin-host 4</dev/null | the scheduler starts it
1 | berth-plugin-host 4</dev/null 5</dev/null 6</dev/null | berth-plugin-host: what it was given is no memory: 
# ---- benchmarks
2 | berth bench plugins --nodes -1 | invalid value for --nodes: 1 to 1000000
1 | berth bench plugins --load-guest $work/none | none: No such file or directory
1 | berth bench plugins --load-guest $work/text | text
1 | berth bench plugins --nodes 2 --plugin-dir $work/none | ScorePlugin "NodeNumber" does not exist
2 | berth bench scale --nodes '' | invalid value for --nodes: empty
2 | berth bench scale --nodes 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17 | invalid value for --nodes: at most 16 sizes
2 | berth bench scale --nodes 1000000 --pods-per-node 100 | more than 99,000,000 pods
0 | berth bench scale --nodes 5 --decisions 5 --clock cpu | Decisions are timed by CPU time of the thread
1 | berth bench scale --nodes 5 --decisions 5 >/dev/full | could not write: No space left on device
0 | TMPDIR= berth bench scale --nodes 5 --decisions 5 --clock cpu -o json | "clock": "cpu"
0 | berth bench scale --nodes 5 --decisions 5 --report $work/page.html --only plain | ^ *5  plain +5 
1 | berth bench scale --nodes 5 --decisions 5 --report $work/none/page.html | none/page.html: No such file or directory
2 | berth bench scale --nodes 99999999999999999999 | invalid value "99999999999999999999" for --nodes
2 | berth bench scale --nodes 5, | invalid value
1 | TMPDIR=$work/none berth bench scale --nodes 5 --decisions 5 | none/berth-scale-.*: No such file or directory
2 | berth bench perf $work/text --pace 0 | invalid value for --pace
2 | berth bench perf $work/text --time-limit 0s | invalid value for --time-limit: must be > 0
2 | berth bench perf $work/text --rounds 3 --mode pipeline | --rounds needs --record-decisions
2 | berth bench perf $work/text --name '(' | invalid value "\(" for --name
2 | berth bench perf $work/text --binders 33 --mode pipeline | invalid value for --binders: 1 to 32
1 | berth bench perf $work/text | a list of test cases is expected
1 | berth bench perf $work/empty | a list of test cases is expected
# ---- nobody there
1 | berth queue | nobody
1 | berth queue -w --runtime-dir $work/nobody | nobody
1 | berth get nodes | no snapshot in ".*nobody"
1 | berth get pods -o json --runtime-dir $work/nobody | no snapshot
1 | berth explain pod/p1 | nobody
1 | berth explain pod/p1 --what-if $work/none | none|nobody
1 | berth decisions | decisions.db: No such file or directory
1 | berth decisions show 7 | Is a scheduler recording
1 | berth compare | nobody|observe
1 | berth rebalance | nobody
0 | berth plugins | No plugins are loaded
1 | berth config show --runtime-dir $work/nobody | nobody
1 | berth replay --status --server $gone | Failed to connect to 127.0.0.1 port 1
1 | berth replay $work/text --server $gone | Failed to connect to 127.0.0.1 port 1
1 | KUBECONFIG=$work/none berth load synthetic | KUBECONFIG is ".*/none", and no such file exists
1 | berth load synthetic --kubeconfig $work/gone.conf --node-count 0 --pod-count 1 | ^berth load: API server http://127.0.0.1:1 of kubeconfig ".*gone.conf": 
1 | berth load synthetic --kubeconfig $work/gone.conf --node-count 1 --pod-count 1 | 127.0.0.1
1 | berth import --from $gone --dry-run | the source at http://127.0.0.1:1 cannot be reached
1 | berth import --from $sim --to $gone | the destination at http://127.0.0.1:1 cannot be reached
1 | berth sync --from $gone --to $sim | the source at http://127.0.0.1:1 cannot be reached
1 | berth record --from $gone -o $work/r6 | the source at http://127.0.0.1:1 cannot be reached
# ---- servers that answer otherwise
1 | berth import --from $guarded --dry-run | Unauthorized \(401\)
1 | berth sync --from $work/nobody.conf --to $sim | ^berth sync: Unauthorized \(401\)$
3 | berth import --from $work/somebody.conf --dry-run | nodes could not be read: .*forbidden
1 | berth sync --from $work/somebody.conf --to $sim | not one kind can be read: .*forbidden
1 | berth record --from $work/somebody.conf -o $work/r7 | not one kind can be read: .*forbidden
1 | berth record --from $work/admin.conf --context nothing -o $work/r8 | nothing
1 | berth replay $work/none --server $sim | could not read ".*none": No such file or directory
1 | berth replay $work/text --server $sim | not one line is a record; line 1: line 1, column 1: unexpected character
1 | berth replay $work/cut.gz --server $sim | there is no record in it
0 | berth replay --stop --server $sim | ^None 
1 | berth replay --pause --server $sim | ^berth replay: 
0 | berth replay --status --server $sim | .
1 | berth replay $work/text --server $guarded | ^berth replay: 
0 | berth import --from $sim --dry-run -o json | "created": 0
2 | berth import --from $sim --dry-run -o yaml | invalid value "yaml" for --output
TABLE

# ---- benchmarks: operations of a workload, and what is wrong with them
perf() { # OPERATIONS WORKLOADS
    printf -- '- {name: Case, workloadTemplate: [%s], workloads: [%s]}\n' "$1" "${2:-{name: w\}}" >"$work/perf.yaml"
    berth bench perf "$work/perf.yaml" --labels "" 2>&1
}
measured='{opcode: createPods, count: 1, collectMetrics: true'
while IFS='|' read -r ops workloads pattern; do
    [ -n "$pattern" ] || continue
    out=$(perf "${ops//PODS/$measured}" "${workloads## }")
    rc=$?
    if [ $rc -eq 1 ] && grep -qE -- "${pattern# }" <<<"$out"; then ok "bench perf: ${pattern# }"; else not_ok "bench perf: $ops" "status $rc, wanted 1 and: ${pattern# }
got: $out"; fi
done <<'TABLE'
{opcode: nothing} | | op 0: opcode: unknown opcode "nothing"
{count: 1} | | op 0: opcode: missing
7 | | op 0: opcode: missing
{opcode: sleep, duration: 1s} | | no operation collects metrics, so there is nothing to report
PODS, count: 2} | | perf.yaml: line 1: duplicate field "count"
PODS, Count: 2} | | "count" stands there twice \(line 1\)
PODS, colour: red} | | \(createPods\): unknown field "colour" \(line 1\)
PODS, namespace: 7} | | namespace: must be a text|namespace: must be
PODS, countParam: x} | | countParam: must be the name of a parameter: "\$name"
{opcode: createPods, countParam: $x, collectMetrics: true} | | countParam: parameter \$x is not defined
{opcode: createPods, countParam: $x, collectMetrics: true} | {name: w, params: {x: many}} | countParam: must be
{opcode: createPods, count: 1e30, collectMetrics: true} | | must be a number from 0 to
{opcode: createPods, count: -2, collectMetrics: true} | | -2: must be a number from 0 to
PODS} | {name: w, params: {z: 1}} | the parameters \[z\] are defined, but unused
PODS} | {params: {z: 1}} | name: missing
PODS} | {name: w}, {name: w} | workload w: Duplicate value
PODS} | {name: w, threshold: -1} | workload w: threshold: must be a number >= 0, or one for each topic
PODS} | {name: w, threshold: {a: b}} | threshold: a: must be a number >= 0
PODS} | {name: w, labels: [1]} | labels: must be a list of strings
PODS} | {name: w, featureGates: {A: 1}} | featureGates: A: must be true or false
PODS} | {name: w, featureGates: {Nothing: true}} | note: feature gate Nothing=true is not known to kube-scheduler
PODS} | {name: w, thresholdMetricSelector: {name: a name}} | thresholdMetricSelector: dataBucket: missing
PODS} | {name: w, thresholdMetricSelector: 7} | thresholdMetricSelector: must be an object
PODS, skipWaitToCompletion: true} | | skipWaitToCompletion: excludes collectMetrics and steadyState
PODS, steadyState: true} | | duration: must be > 0 with steadyState
PODS, steadyState: true, duration: soon} | | "soon" is no duration
PODS, persistentVolumeTemplatePath: x} | | persistentVolumeClaimTemplatePath go together
PODS}, {opcode: churn, mode: sometimes} | | mode: must be create or recreate
PODS}, {opcode: churn, mode: recreate} | | number: must be > 0 with mode recreate
PODS}, {opcode: churn, mode: create, intervalMilliseconds: -1} | | number, intervalMilliseconds: must be >= 0
PODS}, {opcode: churn, mode: create} | | templatePaths: missing
PODS}, {opcode: barrier, stageRequirement: Later} | | stageRequirement: must be Scheduled or Attempted
PODS}, {opcode: startCollectingMetrics, name: x} | | namespaces: missing
{opcode: createNodes, count: 1}, PODS}, {opcode: startCollectingMetrics, name: x, namespaces: [a]} | | startCollectingMetrics without stopCollectingMetrics
{opcode: stopCollectingMetrics} | | nothing is being collected
{opcode: createAny}, PODS} | | templatePath: missing
{opcode: createAny, templatePath: none.yaml}, PODS} | | none.yaml: No such file or directory
{opcode: createAny, templatePath: recipe}, PODS} | | recipe: its kind is not served here
{opcode: createAny, templatePath: empty}, PODS} | | empty: an object is expected
{opcode: createAny, templatePath: pod}, PODS} | | pod: namespace: Pod is namespaced, it needs one
{opcode: createAny, templatePath: node, namespace: a}, PODS} | | node: namespace: Node is not namespaced, it can have none
PODS}, {opcode: createResourceDriver, maxClaimsPerNodeParam: $x} | {name: w, params: {x: 1}} | driverName: missing
PODS}, {opcode: createPodSets, count: 1, createPodsOp: {opcode: sleep, duration: 1s}} | | createPodsOp: opcode: must be createPods
{opcode: createNodes, count: 1, labelNodePrepareStrategy: {labelKey: a, labelValues: [b]}, uniqueNodeLabelStrategy: {labelKey: c}}, PODS} | | at most one strategy can be given
{opcode: createNodes, count: 1, nodeTemplatePath: pod}, PODS} | | pod: kind: must be Node
PODS, podTemplatePath: node} | | node: kind: must be Pod
{opcode: deletePods}, PODS} | | namespace: missing
TABLE
while IFS='|' read -r label pattern; do # in a pod's template
    [ -n "$pattern" ] || continue
    printf 'apiVersion: v1\nkind: Pod\nmetadata:\n  generateName: p-\n  labels: {a: "%s"}\nspec: {containers: [{name: c, image: i}]}\n' "${label% }" >"$work/template"
    out=$(perf "{opcode: createNodes, count: 1}, $measured, podTemplatePath: template}")
    if grep -qE -- "${pattern# }" <<<"$out"; then ok "a template with ${label% }"; else not_ok "a template with $label" "wanted: ${pattern# }
got: $out"; fi
done <<'TABLE'
{{.Index}}-{{.Count}} | ^Case/w +1 +1 
{{AddInt 1 2 .Index}}{{SubtractFloat 3 .5}}{{MultiplyInt 2 3}}{{DivideFloat 1 4}}{{DivideInt 7 2}}{{Mod 7 4}} | ^Case/w +1 +1 
{{MultiplyFloat 2 .5}}{{AddFloat 1 2}}{{SubtractInt 3 1}} | ^Case/w +1 +1 
{{.Name}} | line 5: template: ".Name" is not known here: .Index, .Count or a number is expected
{{}} | line 5: template: an action is empty
{{.Index | line 5: template: "\{\{" is not closed
{{1 2}} | line 5: template: "2" after "1" is not known here
{{Mod 1}} | template: Mod takes at least 2 operands
{{Mod 1 2 3}} | template: Mod takes at most 2 operands
{{DivideInt 1 0}} | template: DivideInt: division by zero
{{Mod 1 0}} | template: Mod: division by zero
{{AddInt one}} | template: "one" is not known here
TABLE

# ---- recorded decisions: steps that are none, and decisions that are others
N='{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"},"status":{"allocatable":{"cpu":"4","pods":"9"}}}'
P='{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p1","uid":"u1"},"spec":{"containers":[{"name":"c"}]}}'
while IFS='|' read -r want flags steps pattern; do
    [ -n "$pattern" ] || continue
    steps=${steps//PUT/{\"op\":\"apply\",\"object\":$N\}} steps=${steps//POD/\"op\":\"schedule\",\"object\":$P}
    printf '{"name":"one","objects":[],"steps":[%s]}\n' "$steps" >"$work/case.jsonl"
    # shellcheck disable=SC2086
    out=$(berth conformance $flags "$work/case.jsonl" 2>&1)
    rc=$?
    if [ $rc -eq "$want" ] && grep -qE -- "${pattern# }" <<<"$out"; then ok "conformance: ${pattern# }"; else not_ok "conformance: $steps" "status $rc, wanted $want and: ${pattern# }
got: $out"; fi
done <<'TABLE'
1 | | {} | step 0: step without op
1 | | {"op":"sing"} | step 0: unknown op sing
1 | | {"op":"schedule","object":{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}} | schedule: the object is not a pod
1 | | {"op":"apply","object":{"apiVersion":"v1","kind":"Recipe"}} | unknown object v1 Recipe
1 | | {"op":"apply","object":{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"status":{"allocatable":{"cpu":"x"}}}} | step 0: Node n: 
1 | | {"op":"delete"} | delete: kind or name is missing
1 | | {"op":"delete","kind":"Recipe","name":"x"} | delete: unknown kind Recipe
0 | | PUT,{"op":"delete","kind":"Node","name":"n1"},{"op":"delete","kind":"Pod","name":"p9"} | decisions: 0/0 equal
1 | | PUT,{POD,"expect":{"chosen":"n1"}} | expected \(absent\)
1 | | PUT,{POD,"expect":{"chosen":"n2"}} | step 1: chosen differs
1 | | PUT,{POD,"expect":{"nothing":[1]}} | expected \[1\]
1 | | PUT,{POD,"expect":{"filtered":{"n1":{"plugin":"X","code":"Y","reasons":["z"]}}}} | step 1: filtered differs
1 | | PUT,{POD,"expect":{"feasible":["n1","n2"]}} | got      \["n1"\]
1 | --max-diffs 0 | PUT,{POD,"expect":{"chosen":"n2"}} | decisions: 0/1 equal
0 | --print | PUT,{POD,"expect":{"chosen":"n2"}} | "chosen":"n1"
0 | --file-filter other | PUT,{POD,"expect":{"chosen":"n2"}} | decisions: 0/0 equal
1 | --through-record --no-verify | PUT,{POD,"expect":{"feasible":["n1"]}} | best differs
TABLE
