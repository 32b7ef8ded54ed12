#!/usr/bin/env bash
# `berth config check` and `berth config show`: files, standard input, a live system; and what a daemon says at its
# start about a configuration that is wrong.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
b() { "$BERTH_BIN/berth" "$@"; }
examples=$here/../../config
head1='apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration'
# status WANT COMMAND...: the exit status, with what was printed

# ---- check
cat >"$work/wrong.yaml" <<Y
$head1
parallelism: 0
profiles:
- schedulerName: a
  pluginConfig:
  - name: InterPodAffinity
    args:
      hardPodAffinityWeight: 200
extenders:
- prioritizeVerb: p
Y
printf '%s\nfoo: 1\nparallelism: 1\nparallelism: 2\n' "$head1" >"$work/strict.yaml"
check "the examples are valid" b config check "$examples/scheduler.yaml" "$examples/scheduler-defaults.yaml" \
    "$examples/example-scheduler.yaml" "$examples/example-policy.json"
expect "valid files are named" '^.*/scheduler.yaml: valid, 1 profile, 0 extenders$' b config check "$examples/scheduler.yaml"
check "a valid file: status 0" status 0 b config check -q "$examples/scheduler.yaml"
check "a wrong file: status 1" status 1 b config check "$examples/scheduler.yaml" "$work/wrong.yaml"
check "no file: status 2" status 2 b config check
check "a file that is not there: status 1" status 1 b config check /nonexistent/x
check "an unknown command: status 2" status 2 b config chek
b config check "$work/wrong.yaml" >"$work/out" 2>"$work/err"
check "each error has its line" diff - "$work/out" <<Y
$work/wrong.yaml:3: parallelism: Invalid value: 0: should be an integer value greater than zero
$work/wrong.yaml:9: profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 200: not in valid range [0, 100]
$work/wrong.yaml:11: extenders[0].weight: Invalid value: 0: must have a positive weight applied to it
Y
check "nothing on standard error" test ! -s "$work/err"
b config check "$work/strict.yaml" >"$work/out"
check "strict errors, one a line" diff - "$work/out" <<Y
$work/strict.yaml:5: strict decoding error: yaml: unmarshal errors:\\n  line 5: key "parallelism" already set in map
$work/strict.yaml:3: strict decoding error: unknown field "foo"
Y
expect "standard input" '^<stdin>:3: strict decoding error: unknown field "x"$' \
    bash -c "! printf '%s\nx: 1\n' '$head1' | '$BERTH_BIN/berth' config check -"
expect "json" '^9 profiles' bash -c "'$BERTH_BIN/berth' config check -o json '$work/wrong.yaml' | jq -r '.items[0].errors[] | \"\(.line) \(.message)\"'"
expect "json: upstream's text" '^\[parallelism: .*, profiles\[0\]\.plugin.*, extenders\[0\]\..*\]$' \
    bash -c "'$BERTH_BIN/berth' config check -o json '$work/wrong.yaml' | jq -r '.items[0].error'"
b config check "$examples/example-policy.json" >"$work/out" 2>"$work/err"
check "notes and warnings go to standard error" grep -q 'example-policy.json:9: note: predicate MaxEBSVolumeCount became NodeVolumeLimits' "$work/err"
check "warnings count with --strict" status 1 b config check --strict "$examples/example-policy.json"
check "notes alone do not" status 0 b config check --strict "$examples/example-scheduler.yaml"
printf '\xff\xfe\x00' >"$work/binary"
check "no text at all" status 1 b config check "$work/binary" /dev/null "$work"
head -c 10000000 /dev/zero | tr '\0' x >"$work/huge"
expect "a huge file" '/huge: open .*/huge: file too large$' bash -c "! '$BERTH_BIN/berth' config check '$work/huge'"

# ---- show
check "the defaults, as shipped" diff "$examples/scheduler-defaults.yaml" <(b config show --defaults -o yaml)
for f in example-scheduler.yaml example-policy.json scheduler.yaml; do
    b config show --config "$examples/$f" -o yaml >"$work/once.yaml" 2>/dev/null
    check "$f loads to the same again" diff "$work/once.yaml" <(b config show --config "$work/once.yaml" -o yaml)
    check "$f says the same as a table" diff <(b config show --config "$examples/$f" 2>/dev/null | tail -n +2) \
        <(b config show --config "$work/once.yaml" | tail -n +2)
    check "$f without a warning then" test -z "$(b config show --config "$work/once.yaml" 2>&1 >/dev/null)"
done
expect "json" '^default-scheduler bin-packing in-tree-disks$' \
    bash -c "'$BERTH_BIN/berth' config show --config '$examples/example-scheduler.yaml' -o json | jq -r '[.profiles[].schedulerName] | join(\" \")'"
expect "scores have weights" '^  score +TaintToleration +3$' b config show --defaults
expect "a wrong file" 'not in valid range \[0, 100\], .* \(.*wrong.yaml: lines 3, 9, 11\)$' bash -c "! '$BERTH_BIN/berth' config show --config '$work/wrong.yaml'"
expect "no scheduler there" 'no Berth runs here .*/none: No such file' bash -c "! '$BERTH_BIN/berth' config show --runtime-dir '$work/none'"
check "two sources: status 2" status 2 b config show --defaults --config "$examples/scheduler.yaml"

# ---- a daemon with a wrong configuration
{
    echo "$head1"
    echo extenders:
    for i in $(seq 1 60); do echo "- {prioritizeVerb: p, weight: -$i}"; done
} >"$work/long.yaml"
"$BERTH_BIN/berth-scheduler" --config "$work/long.yaml" --runtime-dir "$work/r" >"$work/log" 2>&1
check "a daemon refuses it" test $? -eq 1
check "no error is cut from the log" bash -c "for i in \$(seq 1 60); do grep -q \"extenders\[\$((i - 1))\].weight: Invalid value: -\$i: must have a positive weight applied to it\" '$work/log' || { echo \$i; exit 1; }; done"
expect "short ones stand in one line, with their lines" 'command failed.*parallelism: Invalid value: 0: .*wrong.yaml: lines 3, 9, 11\)' \
    bash -c "! '$BERTH_BIN/berth-scheduler' --config '$work/wrong.yaml' --runtime-dir '$work/r'"
expect "berth up tells each error" 'wrong.yaml:9: profiles\[0\].pluginConfig\[0\]' \
    bash -c "! '$BERTH_BIN/berth' up --config '$work/wrong.yaml' --runtime-dir '$work/r'"

# ---- a live system
cat >"$work/live.yaml" <<Y
apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles:
- schedulerName: live
  plugins: {score: {disabled: [{name: ImageLocality}]}}
extenders:
- {urlPrefix: 'http://127.0.0.1:9', ignorable: true, managedResources: [{name: example.com/x}], tlsConfig: {serverName: s, keyData: c2VjcmV0, certData: c2VjcmV0}}
Y
start_up --binders 1 --config "$work/live.yaml" || exit 1
expect "warnings are logged" 'v1beta3 was removed from kube-scheduler in 1.29' cat "$run/scheduler.log"
expect "show asks the running scheduler" "the scheduler running in $run, from $run/scheduler.yaml" b config show --runtime-dir "$run"
check "it is what the file put in force" diff <(b config show --config "$work/live.yaml" -o yaml 2>/dev/null | grep -v c2VjcmV0) \
    <(b config show --runtime-dir "$run" -o yaml)
check "keys stay with the scheduler" no_line_with c2VjcmV0 b config show --runtime-dir "$run" -o yaml

# ---- a second `berth up` in the same directory
seen() { (cd "$run" && stat -c '%n %i %Y' scheduler.yaml kubeconfig && sha1sum scheduler.yaml kubeconfig); }
seen >"$work/before"
check "a second berth up in the directory fails" status 1 b up --front-port 0 --runtime-dir "$run"
expect "... and names the one that runs" \
    "^berth up: runtime directory $run: another 'berth up' runs in it \(process $up_pid, since 20[0-9-]+T[0-9:]+Z\): stop it, or choose" \
    bash -c "! '$BERTH_BIN/berth' up --front-port 0 --runtime-dir '$run'"
check "... before it touches a file" diff "$work/before" <(seen)
check "... and the first one goes on" b config show --runtime-dir "$run"
kill -KILL "$up_pid"
wait "$up_pid" 2>/dev/null
# One that was killed leaves nothing locked. Not by check(): in a shell of its own it would outlive the test.
start_up --binders 1 --config "$work/live.yaml" --runtime-dir "$run" || exit 1
