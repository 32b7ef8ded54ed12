#!/usr/bin/env bash
# Debian's Prometheus scrapes a running Berth as kube-prometheus scrapes kube-scheduler: HTTPS, a bearer token, the
# certificate not looked at, job="kube-scheduler"; /metrics/slis and /metrics/resources too. Meanwhile pods are
# scheduled, rejected and preempted, and the API server fails now and then. Then every query of
# config/grafana-dashboard.json, every recording rule and every query that dashboards and integrations for
# kube-scheduler are known to make has to have data. Metrics, rules and alerts are linted.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
for t in curl jq kubectl prometheus promtool python3; do
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
# As in a cluster: system:monitoring may read /metrics and /metrics/slis, but not /metrics/resources.
printf 'admin-token\nprometheus-token,prometheus,7,"system:monitoring"\n' >"$work/tokens"
printf 'prometheus-token' >"$work/prometheus.token"
printf 'admin-token' >"$work/admin.token"
: >"$work/faults"
"$BERTH_BIN/berth-simulator" --port 0 --tls --token-file "$work/tokens" --kubeconfig-out "$work/kubeconfig" \
    --faults "@$work/faults" >"$work/simulator.log" 2>&1 &
simulator=$!
also_stop=$simulator
wait_for_file "$work/kubeconfig" || { not_ok "the API server starts" "$(cat "$work/simulator.log")"; exit 1; }
start_up --kubeconfig "$work/kubeconfig" --binders 2 --front-port 0 || exit 1
export KUBECONFIG=$work/kubeconfig
url=$(awk '/^  HTTPS/ {print $2; exit}' "$work/up.out")
job() { # name path token-file
    cat <<Y
  - job_name: $1
    scheme: https
    metrics_path: $2
    tls_config: {insecure_skip_verify: true}
    authorization: {credentials_file: $3}
    static_configs: [{targets: ["${url#https://}"]}]
Y
}
port=$((12000 + $$ % 6000)) # below the ports that the kernel hands out
cat >"$work/prometheus.yaml" <<Y
global: {scrape_interval: 500ms, evaluation_interval: 500ms}
rule_files: ["$repo/config/prometheus-rules.yaml"]
scrape_configs:
$(job $JOB /metrics "$work/prometheus.token")
$(job $JOB-slis /metrics/slis "$work/prometheus.token")
$(job $JOB-resources /metrics/resources "$work/admin.token")
Y
probed() { [ "$(curl -sk "$url/readyz")" = ok ]; } # somebody has to ask, or there is nothing to count
eventually "ready" 20 probed
check "promtool check config" promtool check config "$work/prometheus.yaml"
prometheus --config.file="$work/prometheus.yaml" --storage.tsdb.path="$work/tsdb" \
    --web.listen-address="127.0.0.1:$port" >"$work/prometheus.log" 2>&1 &
also_stop="$also_stop $!"
api() { curl -fsS "http://127.0.0.1:$port/api/v1/$1" "${@:2}"; }
found() { [ "$(api query --data-urlencode "query=$1" | jq '.data.result | length')" = "${2:-1}" ]; }
eventually "Prometheus scrapes what kube-scheduler serves" 15 found 'up{job=~"kube-scheduler.*"} == 1' 3

# ---- some hundred pods: scheduled, unschedulable, preempting
k() { kubectl --cache-dir "$work/cache" "$@"; }
load() { "$BERTH_BIN/berth" load synthetic --kubeconfig "$KUBECONFIG" --prefix "$1" --node-count 20 --pod-count "$2" --timeout $((20 * PATIENCE))s; }
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
# every tenth request fails, so that there are 5xx
printf '503-every=10' >"$work/faults"
kill -HUP $simulator
check "a second load is scheduled although the API server fails" load two 300
: >"$work/faults"
kill -HUP $simulator

# ---- what was scraped is clean, merged and of each process
lint() { # file
    promtool check metrics <"$1" && python3 "$here/lib/histograms.py" "$1"
}
for p in watcher scheduler binder-1; do
    curl -fsS --unix-socket "$run/$p.http" http://localhost/metrics >"$work/$p.prom"
    check "$p: promtool check metrics" lint "$work/$p.prom"
done
for p in metrics metrics/slis metrics/resources; do
    curl -fsSk -H 'Authorization: Bearer admin-token' "$url/$p" >"$work/merged.prom"
    check "/$p: promtool check metrics" lint "$work/merged.prom"
done
check "system:monitoring may not see what pods ask for" test \
    "$(curl -sk -o /dev/null -w '%{http_code}' -H 'Authorization: Bearer prometheus-token' "$url/metrics/resources")" = 403

# ---- every query has data, but for one: 3xx. An API server redirects nobody, and nobody asks it If-None-Match.
R=1h # no rate depends on how long ago the loads were
has() { [ "$(api query --data-urlencode "query=$1" | jq ".data.result | length")" -gt 0 ] || { echo "no data: $1"; return 1; }; }
ask() { eventually "$1" 15 has "$2"; } # a scrape that took too long leaves a gap
covered() { # two scrapes after the last load, so that a rate has something to say
    found "scheduler_pod_scheduling_attempts_count{job=\"$JOB\"} > 600 and rate(scheduler_pod_scheduling_attempts_count{job=\"$JOB\"}[$R]) > 0" &&
        found "count(rate(rest_client_requests_total{job=\"$JOB\",code=~\"5..\"}[$R])) > 0"
}
eventually "Prometheus has seen all of it" 15 covered
while IFS=$'\t' read -r title expr; do
    [[ $expr == *'code=~"3.."'* ]] && continue
    expr=${expr//\$__rate_interval/$R} expr=${expr//\$job/$JOB} expr=${expr//\$instance/.+}
    ask "dashboard: $title" "$expr"
done < <(jq -r '.panels[] | select(.targets) | .title as $t | .targets[] | [$t + " (" + .refId + ")", .expr] | @tsv' \
    "$repo/config/grafana-dashboard.json" | sed 's/\\\\/\\/g')
while read -r rule; do
    for q in 0.99 0.9 0.5; do ask "recording rule $rule, $q" "$rule{quantile=\"$q\"} > 0"; done
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
sum(rest_client_requests_total{code=~"4.."}) > 0
sum(rest_client_requests_total{code="503"}) > 0
rest_client_requests_total{host!=""} > 0
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
eventually "pending_pods has four series" 15 found scheduler_pending_pods 4
# /metrics/slis and /metrics/resources
while read -r query; do
    ask "further endpoints: $query" "$query"
done <<'Q'
kubernetes_healthcheck{job="kube-scheduler-slis",name="leaderElection",type="readyz"} == 1
kubernetes_healthchecks_total{job="kube-scheduler-slis",name="sched-handler-sync",status="success"} > 0
kube_pod_resource_request{job="kube-scheduler-resources",resource="cpu",unit="cores",pod="preemptor-1"} == 2
Q
expect "every rule was evaluated" '^0$' jq -r '[.data.groups[].rules[]] | if length == 0 then "no rules" else map(select(.health != "ok")) | length end' <(api rules)
quiet() { api alerts >"$work/alerts" && jq -e '.data.alerts == []' "$work/alerts"; }
eventually "no alert fires or is about to" 15 quiet
