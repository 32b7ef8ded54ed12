#!/usr/bin/env bash
# The web page in Chromium, against a real `berth up`: tests/browser/test_*.py, each a browser of its own.
# Pictures of the screens, light and dark, are kept in $BUILD/screenshots.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
python=/usr/bin/python3 # Debian's: python3-selenium is installed for it
for need in /usr/bin/chromium /usr/bin/chromedriver; do
    [ -x "$need" ] || { skip "the page in a browser" "$need is not installed"; exit 0; }
done
"$python" -c 'import selenium' 2>/dev/null || { skip "the page in a browser" "python3-selenium is not installed"; exit 0; }
tests=$(cd "$here/../browser" && pwd)
web=$here/../../simulator/web
check "no script makes markup or code from text" \
    no_line_with 'innerHTML|outerHTML|insertAdjacentHTML|document\.write|[^a-z]eval\(|new Function|cssText' cat "$web"/*.js
check "the page has nothing inline and nothing foreign" \
    no_line_with '<style|<script>| on[a-z]+=| style=|https?://' cat "$web"/*.html
start_up --port 0 --front-port 0 --runtime-dir "$work/run" --runtime-config scheduling.k8s.io/v1alpha2=true \
    --feature-gates GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true || exit 1
BERTH_URL=$(awk '/API server/ {print $3; exit}' "$work/up.out")
SCREENSHOTS=${SCREENSHOTS:-$BERTH_BIN/../screenshots}
BERTH_SERVER_PID=$(pid_of berth-simulator)
AXE=$BERTH_BIN/../axe.min.js
export AXE BERTH_SERVER_PID BERTH_BIN BERTH_URL SCREENSHOTS PYTHONDONTWRITEBYTECODE=1
for t in "$tests"/test_*.py; do
    [ $# -eq 0 ] || [[ " $* " == *" $(basename "$t") "* ]] || continue
    [ -f "$AXE" ] || [ "$(basename "$t")" != test_access.py ] || { skip "the page's accessibility" "axe-core is not fetched: tools/axe.sh $AXE"; continue; }
    (cd "$tests" && timeout $((240 * PATIENCE)) "$python" "$t") >"$work/out" 2>"$work/err"
    rc=$?
    cat "$work/out"
    good=$(grep -c '^ok - ' "$work/out")
    bad=$(grep -c '^not ok - ' "$work/out")
    passed=$((passed + good)) failed=$((failed + bad))
    [ "$bad" -eq 0 ] || tail -n 12 "$work/up.err" "$work"/run/*.log | sed 's/^/#   /'
    [ "$rc" -eq 0 ] || [ "$bad" -gt 0 ] || not_ok "$(basename "$t") ends well" "status $rc: $(tail -n 15 "$work/err")"
done
kill -0 "$up_pid" 2>/dev/null && ok "the server survived" || not_ok "the server survived" "$(tail -n 20 "$work/up.err")"
