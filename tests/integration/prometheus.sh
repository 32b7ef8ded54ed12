#!/usr/bin/env bash
# Debian's Prometheus scrapes a running Berth under job="kube-scheduler" while pods are scheduled, rejected and
# preempted; then every query of config/grafana-dashboard.json, every recording rule and every query that dashboards
# and integrations for kube-scheduler are known to make has to have data. Metrics, rules and alerts are linted.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
for t in curl jq kubectl prometheus promtool; do
    command -v $t >/dev/null || { skip "Prometheus" "no $t"; exit 0; }
done
repo=$(cd "$here/../.." && pwd)
JOB=kube-scheduler

# ---- without a running system
check "promtool check rules" promtool check rules "$repo/config/prometheus-rules.yaml"
sed "s|RULES|$repo/config/prometheus-rules.yaml|" "$here/prometheus-rules-test.yaml" >"$work/rules-test.yaml"
check "promtool test rules" promtool test rules "$work/rules-test.yaml"
check "the dashboard is JSON" jq -e '.title == "Berth / Scheduler" and (.panels | length) > 20' \
    "$repo/config/grafana-dashboard.json"

# ---- a system, and Prometheus
start_up --binders 2 || exit 1
# SCRAPE=https with TARGET (default 127.0.0.1:10259) and TOKEN_FILE scrapes kube-scheduler's own port, as
# kube-prometheus does; the default is each process's plain port.
SCRAPE=${SCRAPE:-plain}
if [ "$SCRAPE" = https ]; then
    targets="\"${TARGET:-127.0.0.1:10259}\""
    extra="scheme: https
    tls_config: {insecure_skip_verify: true}
    authorization: {credentials_file: ${TOKEN_FILE:?a token for SCRAPE=https}}"
else
    extra="scheme: http"
    targets=
    for p in watcher scheduler binder-1 binder-2; do
        targets="$targets${targets:+, }\"127.0.0.1:$(metrics_port $p)\""
    done
fi
port=$((20000 + $$ % 20000))
cat >"$work/prometheus.yaml" <<Y
global: {scrape_interval: 500ms, evaluation_interval: 500ms}
rule_files: ["$repo/config/prometheus-rules.yaml"]
scrape_configs:
  - job_name: $JOB
    $extra
    static_configs: [{targets: [$targets]}]
Y
check "promtool check config" promtool check config "$work/prometheus.yaml"
prometheus --config.file="$work/prometheus.yaml" --storage.tsdb.path="$work/tsdb" \
    --web.listen-address="127.0.0.1:$port" >"$work/prometheus.log" 2>&1 &
also_stop=$!
api() { curl -fsS "http://127.0.0.1:$port/api/v1/$1" "${@:2}"; }
found() { [ "$(api query --data-urlencode "query=$1" | jq '.data.result | length')" = "${2:-1}" ]; }
all_up() { found "up{job=\"$JOB\"} == 1" "$(tr -cd , <<<"$targets," | wc -c)"; }
eventually "Prometheus scrapes every process" 15 all_up

# ---- some hundred pods: scheduled, unschedulable, preempting
k() { kubectl --cache-dir "$work/cache" "$@"; }
load() { "$BERTH_BIN/berth" load synthetic --kubeconfig "$KUBECONFIG" --prefix "$1" --node-count 20 --pod-count "$2" --timeout $((20 * SCALE))s; }
check "a load is scheduled" load one 300
pods() { # name how-many cpu class labels
    local i
    for i in $(seq "$2"); do
        cat <<Y
apiVersion: v1
kind: Pod
metadata: {name: $1-$i, namespace: default, labels: {run: $1}}
spec:
  priorityClassName: $4
  nodeSelector: {$5}
  containers: [{name: c, image: pause, resources: {requests: {cpu: "$3"}}}]
---
Y
    done
}
objects() {
    cat <<Y
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: low}
value: -10
---
apiVersion: v1
kind: Node
metadata: {name: small, labels: {only: small, kubernetes.io/hostname: small}}
status:
  allocatable: {cpu: "2", memory: 8Gi, pods: "20"}
  capacity: {cpu: "2", memory: 8Gi, pods: "20"}
  conditions: [{type: Ready, status: "True"}]
---
Y
    pods victim 2 1 low "only: small"
    pods nowhere 3 1 low "only: nowhere"
}
objects >"$work/objects.yaml"
pods preemptor 1 2 high "only: small" >"$work/preemptor.yaml"
check "pods that fit, and pods that fit nowhere" k apply -f "$work/objects.yaml"
count() { [ "$(k get pods -l "$1" -o json | jq "[.items[] | select($2)] | length")" -ge "$3" ]; }
eventually "the victims are bound" 15 count run=victim '.spec.nodeName == "small"' 2
eventually "the others are told why not" 15 count run=nowhere '.status.conditions[]?.reason == "Unschedulable"' 3
check "a pod that needs their room" k apply -f "$work/preemptor.yaml"
eventually "it gets it" 20 count run=preemptor '.spec.nodeName == "small"' 1
check "a second load is scheduled" load two 300

# ---- what was scraped is clean
for p in watcher scheduler binder-1; do
    curl -fsS "http://127.0.0.1:$(metrics_port $p)/metrics" >"$work/$p.prom"
    check "$p promtool check metrics" bash -c "promtool check metrics <$work/$p.prom"
done

# ---- every query has data; those about failures may rightly have none
R=$((30 * SCALE))s
may_be_empty='code=~"[345]|rest_client_request_duration_seconds_bucket.*verb="GET"|kube_absent'
ask() { # name query
    local out
    out=$(api query --data-urlencode "query=$2") || { not_ok "$1" "$2"; return; }
    if jq -e '.data.result | length > 0' >/dev/null <<<"$out"; then
        ok "$1"
    elif grep -qE "$may_be_empty" <<<"$2"; then
        skip "$1" "nothing of the kind happened"
    else
        not_ok "$1" "no data: $2"
    fi
}
covered() { # two scrapes after the last load, so that a rate has something to say
    found "scheduler_pod_scheduling_attempts_count{job=\"$JOB\"} > 600 and rate(scheduler_pod_scheduling_attempts_count{job=\"$JOB\"}[$R]) > 0"
}
eventually "Prometheus has seen all of it" 15 covered
while IFS=$'\t' read -r title expr; do
    expr=${expr//\$__rate_interval/$R} expr=${expr//\$job/$JOB} expr=${expr//\$instance/.+}
    ask "dashboard: $title" "$expr"
done < <(jq -r '.panels[] | select(.targets) | .title as $t | .targets[] | [$t + " (" + .refId + ")", .expr] | @tsv' \
    "$repo/config/grafana-dashboard.json" | sed 's/\\\\/\\/g')
while read -r rule; do
    ask "recording rule $rule" "$rule{quantile=\"0.99\"}"
done < <(sed -n 's/^  - record: //p' "$repo/config/prometheus-rules.yaml" | sort -u)
# Metrics that Datadog, Alibaba Cloud, Elastic and others list, and labels that sums rely on.
while read -r query; do
    ask "known consumer: $query" "$query"
done <<'Q'
sum(up{job="kube-scheduler"}) > 0
sum(scheduler_pending_pods{queue="active"})
sum(scheduler_pending_pods{queue="backoff"})
sum(scheduler_pending_pods{queue="unschedulable"}) > 0
sum(scheduler_pending_pods{queue="gated"})
scheduler_schedule_attempts_total{result="scheduled",profile="default-scheduler"} > 0
scheduler_schedule_attempts_total{result="unschedulable",profile="default-scheduler"} > 0
scheduler_scheduling_algorithm_duration_seconds_count > 0
scheduler_scheduling_attempt_duration_seconds_bucket{result="scheduled",le="16.384"} > 0
scheduler_pod_scheduling_attempts_bucket{le="1"} > 0
scheduler_pod_scheduling_sli_duration_seconds_bucket{attempts="1",le="+Inf"} > 0
scheduler_cache_size{type="nodes"} > 0
scheduler_cache_size{type="pods"} > 0
scheduler_preemption_attempts_total > 0
scheduler_preemption_victims_count > 0
scheduler_unschedulable_pods{plugin="NodeAffinity",profile="default-scheduler"} > 0
scheduler_queue_incoming_pods_total{queue="active",event="UnschedulablePodAdd"} > 0
scheduler_framework_extension_point_duration_seconds_count{extension_point="Filter",status="Success",profile="default-scheduler"} > 0
scheduler_framework_extension_point_duration_seconds_count{extension_point="PostFilter"} > 0
scheduler_framework_extension_point_duration_seconds_count{extension_point="Bind",status="Success"} > 0
scheduler_plugin_evaluation_total{plugin="NodeResourcesFit",extension_point="Filter",profile="default-scheduler"} > 0
scheduler_plugin_evaluation_total{plugin="InterPodAffinity",extension_point="Score"}
scheduler_plugin_execution_duration_seconds_count{extension_point="Filter"} > 0
scheduler_event_handling_duration_seconds_count{event="NodeAdd"} > 0
scheduler_event_handling_duration_seconds_count{event="AssignedPodAdd"} > 0
scheduler_queueing_hint_execution_duration_seconds_count > 0
scheduler_goroutines{operation="binding"}
sum(rest_client_requests_total{code="201",method="POST"}) > 0
sum(rest_client_request_size_bytes_count{verb="POST"}) > 0
sum(rest_client_rate_limiter_duration_seconds_count) > 0
leader_election_master_status{name="kube-scheduler"} == 1
process_max_fds
process_open_fds
process_resident_memory_bytes
process_start_time_seconds
process_virtual_memory_max_bytes
process_network_receive_bytes_total
go_goroutines > 0
go_threads > 0
sum(kubernetes_build_info{major="1",minor="36"}) == 1
sum(version_info{component="kube",emulation="1.36"}) == 1
kubernetes_feature_enabled{name="SchedulerQueueingHints"} == 1
sum(registered_metrics_total{stability_level="STABLE"}) > 0
Q
expect "pending_pods has four series" '^4$' jq -r '.data.result | length' <(api query --data-urlencode 'query=scheduler_pending_pods')
expect "and no alert of ours fires" '^0$' jq -r '[.data.alerts[] | select(.state == "firing")] | length' <(api alerts)
