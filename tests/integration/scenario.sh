#!/usr/bin/env bash
# shellcheck disable=SC2059
# `berth scenario`: run, check, report; exit codes, repeatability across environments, a comparison of two configurations,
# hostile files, the trace format, and the server's side: uploads, reports, objects of kind Scenario.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
config=$(cd "$here/../../config/scenarios" && pwd)
s() { "$BERTH_BIN/berth" scenario "$@"; }
any() { "$@" 2>&1 || true; }
head='apiVersion: sim.berth.dev/v1alpha1\nkind: Scenario\n'
file() { printf "$head$2" >"$work/$1.yaml"; }

# ---- command line
for f in "$config"/*.yaml; do
    check "valid: $(basename "$f")" s check "$f"
    check "as expected: $(basename "$f")" status 0 s run "$f" -o none
done
check "no file: status 2" status 2 s run
check "a wrong flag: status 2" status 2 s run x -o xml
check "no such file: status 1" status 1 s run "$work/none.yaml"
expect "help names the exit codes" '^ *3  an expectation was not met' s run --help
file wrong 'spec:\n  timeline:\n  - {at: 1s, generate: {kind: Pod, cuont: 3}}\n'
expect "errors name file, document, line, field" \
    'wrong.yaml: document 1, line 5: spec.timeline\[0\].generate.cuont: unknown field \(did you mean count\?\); known are: apiVersion, kind, count' \
    any s check "$work/wrong.yaml"
file typo 'spec:\n  timeline:\n  - create:\n      apiVersion: v1\n      kind: Pod\n      metadata: {name: p}\n      spec:\n        nodeSelecter: {a: b}\n'
expect "a field that a manifest's kind does not have" \
    'typo.yaml: document 1, line 10: spec.timeline\[0\].create: unknown field "spec.nodeSelecter" \(did you mean nodeSelector\?\)' \
    any s check "$work/typo.yaml"
printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {nodeSelecter: {}}\n' >"$work/typo-pod.yaml"
file files 'timeline:\n- {files: typo-pod.yaml}\n'
expect "or that a file has" 'line 4: unknown field "spec.nodeSelecter"' any s check "$work/files.yaml"
file template 'timeline:\n- {generate: {kind: Pod, template: {spec: {nodeSelecter: {}}}}}\n'
expect "or a template, before anything runs" \
    'document 1, line 4: timeline\[0\].generate.template: unknown field "spec.nodeSelecter" \(did you mean nodeSelector\?\)' \
    any s check "$work/template.yaml"
file merge 'timeline:\n- {patch: {kind: Node, name: node, merge: {spec: {unschedulabel: true}}}}\n'
expect "or a patch" 'timeline\[0\].patch.merge: unknown field "spec.unschedulabel" \(did you mean unschedulable\?\)' any s check "$work/merge.yaml"
# shellcheck disable=SC2016  # words of a patch
file strategic 'timeline:\n- {patch: {kind: Node, name: node, strategic: {spec: {$patch: replace, taints: [{key: a, $patch: delete}]}}}}\n'
check "the words of a strategic patch are no fields" s check "$work/strategic.yaml"
file unmet 'timeline:\n- {generate: {kind: Pod}}\nexpect:\n- {pods: "", scheduled: 100%%}\n'
check "an expectation that is not met: status 3" status 3 s run "$work/unmet.yaml"
expect "and is told" '^FAILED .* 0 of 1 scheduled' any s run "$work/unmet.yaml"
stdin() { s run - -o json <"$config/zones.yaml"; }
expect "standard input" '"kind": "ScenarioResult"' stdin

# ---- the same bytes
s run "$config/zones.yaml" -o none --out "$work/a.json" --html "$work/a.html"
(cd / && TZ=Pacific/Auckland LC_ALL=C.UTF-8 HOME=/nonexistent BERTH_RUNTIME_DIR=/nonexistent s run "$config/zones.yaml" \
    -o none --verify --out "$work/b.json" --html "$work/b.html")
check "the same result elsewhere and with --verify" cmp "$work/a.json" "$work/b.json"
check "the same report" cmp "$work/a.html" "$work/b.html"
s report "$work/a.json" --html "$work/c.html"
check "the report made later is the same" cmp "$work/a.html" "$work/c.html"
other() {
    s run "$config/zones.yaml" -o json --seed 8 >"$work/seed8.json" || return 1
    cmp -s "$work/seed8.json" "$work/a.json"
    [ $? -eq 1 ]
}
check "another seed, another result" other
check "the report loads nothing and runs nothing" no_line_with '<script|<link|<img|src=|https?://|url\(|style="' tr '[:upper:]' '[:lower:]' <"$work/a.html"
expect "a comparison" '"pods": \{"same":[0-9]+,"different":[1-9]' cat "$work/a.json"
check "a report of nonsense: status 1" status 1 s report "$config/zones.yaml" --html "$work/x.html"

# ---- configurations of the command line
printf 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: other}]\n' >"$work/other.yaml"
expect "configurations given" '^METRIC +default +other$' any s run "$work/unmet.yaml" --config "default,$work/other.yaml"
from_here() { cd "$work" && any s run "$config/operations.yaml" --config other.yaml; }
expect "relative to where one is" '^METRIC +other$' from_here
expect "one that is not valid is refused" 'wrong.yaml' any s run "$work/unmet.yaml" --config "$work/wrong.yaml"

# ---- trace
printf 'sn,cpu_milli,memory_mib,gpu,model\nn1,4000,8192,0,\nn2,4000,8192,0,\n' >"$work/nodes.csv"
printf 'name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time\na,3000,1,0,0,0,100\nb,3000,1,0,0,10,100\nc,3000,1,0,0,20,200\n' >"$work/pods.csv"
file trace 'setup:\n- {load: {format: openb, nodes: nodes.csv}}\ntimeline:\n- {load: {format: openb, pods: pods.csv, speed: 10}}\nexpect:\n- {at: 5s, pods: "", scheduled: 2, pending: 1}\n- {at: 15s, pods: "", count: 1, scheduled: 1}\n- {pods: "", count: 0}\n'
check "a trace at ten times its speed" status 0 s run "$work/trace.yaml" -o none

rec() { printf '{"time":"2026-03-01T00:00:%sZ","event":"%s","resource":{"apiVersion":"v1","kind":"%s","metadata":{"name":"%s"%s}%s}}\n' "$@"; }
{
    rec 00 Add Node n1 '' ',"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"10"}}'
    for p in p1 p2; do
        rec 10 Add Pod $p ',"namespace":"team","uid":"'$p'"' ',"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"3"}}}]}'
    done
    rec 50 Delete Pod p1 ',"namespace":"team"' ''
} >"$work/record.jsonl"
file record 'timeline:\n- {at: 5s, load: {format: record, file: record.jsonl, speed: 2}}\nexpect:\n- {at: 9s, pods: "", count: 0}\n- {at: 11s, pods: "", scheduled: 1, pending: 1}\n- {at: 31s, pods: "", count: 1, scheduled: 1}\n'
check "a record file at twice its speed" status 0 s run "$work/record.yaml" -o none

# ---- hostile files: an error at once
printf 'a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g]\n' >"$work/laughs.yaml"
check "a billion laughs: status 1" status 1 s check "$work/laughs.yaml"
head -c 200000 /dev/zero | tr '\0' '[' >"$work/deep.yaml"
check "deeply nested: status 1" status 1 s check "$work/deep.yaml"
head -c 100000 /dev/urandom >"$work/random.yaml"
check "random bytes: status 1" status 1 s check "$work/random.yaml"
file circle 'timeline:\n- {generate: {kind: Node}}\n- {churn: {delete: 1, of: x, every: 1h, for: 100000h}}\natMost: 24h\n'
expect "what never comes to rest ends" 'does not come to rest before atMost' any s run "$work/circle.yaml"

# ---- beside a server
"$BERTH_BIN/berth-simulator" --port 0 --kubeconfig-out "$work/kubeconfig" >"$work/url" 2>"$work/sim.err" &
also_stop=$!
wait_for_file "$work/kubeconfig"
wait_for_file "$work/url"
url=$(head -n 1 "$work/url")/berth/v1/scenarios
get() { curl -sS "$url$1"; }
expect "an upload is accepted" '"id":"s1"' curl -sS --data-binary @"$config/zones.yaml" "$url?name=mine"
done_as() { get "/s$1" | grep -q "\"phase\":\"$2\""; }
eventually "it runs to its end" 20 done_as 1 Succeeded
expect "with a name of its own" '"name":"mine"' get ""
expect "and the result" '"result":\{' get /s1
expect "and a report under a policy of its own" "^Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'" \
    curl -sSi "$url/s1/report"
same_result() { get /s1 | python3 -c 'import json,sys; a=json.load(sys.stdin)["result"]; b=json.load(open(sys.argv[1])); sys.exit(a["schedulers"][0]["pods"] != b["schedulers"][0]["pods"])' "$work/a.json"; }
check "the same placements as without a server" same_result
expect "a wrong one is refused with field and line" '"field":"spec.timeline\[0\].generate.cuont","line":5' \
    curl -sS --data-binary @"$work/wrong.yaml" "$url"
expect "files of the server are not read" 'files cannot be read here' \
    curl -sS --data-binary "$(printf "${head}timeline: [{files: /etc/passwd}]")" "$url"
expect "no other site may upload" '403' curl -sS -o /dev/null -w '%{http_code}' -H 'Origin: http://evil.example' -d x "$url"
long="${head}setup: [{generate: {kind: Node, count: 50}}]\ntimeline:\n- {generate: {kind: Deployment, name: d, replicas: 500}}\n- {churn: {delete: 50%%, every: 1s, for: 5000h}}\n"
expect "a long one" '"id":"s2","name":"scenario","phase":"Running"' curl -sS --data-binary "$(printf "$long")" "$url"
expect "others wait" '"id":"s3".*"phase":"Pending"' curl -sS --data-binary @"$config/zones.yaml" "$url"
expect "the server answers meanwhile" '"items"' get ""
check "the long one is stopped and forgotten" curl -sSf -X DELETE "$url/s2"
eventually "and the next one runs" 20 done_as 3 Succeeded
expect "what is forgotten is gone" 'there is no scenario s2' get /s2
if kubectl version --client >/dev/null 2>&1; then
    k() { kubectl --kubeconfig "$work/kubeconfig" "$@"; }
    expect "kubectl create" 'scenario.sim.berth.dev/zones created' k create -f "$config/zones.yaml"
    eventually "the object tells its end" 20 bash -c \
        "kubectl --kubeconfig '$work/kubeconfig' get scenario zones -o jsonpath='{.status.phase} {.status.passed}' | grep -q '^Succeeded true$'"
    expect "so does the table" '^zones +Succeeded ' k get scenarios
    expect "and a summary" '"bindings": ?[1-9]' k get scenario zones -o json
    printf "${head}metadata: {name: bad}\nspec: {timeline: [{at: 1x, done: {}}]}\n" >"$work/bad.yaml"
    k create -f "$work/bad.yaml" >/dev/null 2>&1
    eventually "a wrong object fails with the reason" 20 bash -c \
        "kubectl --kubeconfig '$work/kubeconfig' get scenario bad -o jsonpath='{.status.phase} {.status.message}' | grep -q '^Failed spec.timeline\[0\].at: expected a duration'"
else
    skip "objects of kind Scenario" "there is no kubectl"
fi
expect "a scenario that is running does not hold up the end" '"phase":"(Running|Pending)"' curl -sS --data-binary "$(printf "$long")" "$url"
kill "$also_stop"
ended() { ! kill -0 "$also_stop" 2>/dev/null; }
eventually "the server ends" 10 ended
