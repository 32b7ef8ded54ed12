#!/usr/bin/env bash
# WebAssembly guests beyond their decisions (plugins.sh): what people see of them, Events.
here=$(dirname "$0")
# shellcheck source=tests/integration/lib/common.sh
. "$here/lib/common.sh"
build=$(realpath "$(dirname "$BERTH_BIN")")
wish=$build/tests/guests/wish.wasm
if [ ! -e "$wish" ]; then
    skip "WebAssembly guests" "they are not built: clang and wasm-ld are needed"
    exit
fi
# ---- from an empty folder
expect "a guest is begun" 'PreferRank.c, Makefile, config.yaml and cluster.yaml are there' bash -c 'cd "$2" && "$1" plugin new PreferRank --lang wasm-c' - "$BERTH_BIN/berth" "$work"
made() { make -C "$work/PreferRank" check; }
expect "made, and it decides" 'pod1 +Scheduled +high$' made
expect "both paths agree" 'pod1 +Scheduled +high$' bash -c 'cd "$2" && "$1" simulate --verify -f cluster.yaml --config config.yaml' - "$BERTH_BIN/berth" "$work/PreferRank"
sed -i 's/guestConfig: rank/&, nodeLocal: true/' "$work/PreferRank/config.yaml"
expect "its answers may be kept: both paths agree" 'pod1 +Scheduled +high$' bash -c 'cd "$2" && "$1" simulate --verify -f cluster.yaml --config config.yaml' - "$BERTH_BIN/berth" "$work/PreferRank"
sed -i 's/, guestConfig: rank//' "$work/PreferRank/config.yaml"
expect "its arguments are looked at" 'args.guestConfig: the key of a label is needed' bash -c 'make -C "$1" check || true' - "$work/PreferRank"
# Debian: libstd-rust-dev-wasm32 brings the target. RUSTC and RUSTFLAGS say where else it is.
if ! command -v "${RUSTC:=rustc}" >/dev/null; then
    skip "a guest in Rust" "no rustc"
elif [ -z "${RUSTFLAGS:-}" ] && ! compgen -G "$("$RUSTC" --print sysroot)/lib/rustlib/wasm32-unknown-unknown/lib/libcore-*" >/dev/null; then
    skip "a guest in Rust" "$RUSTC has no target wasm32-unknown-unknown"
else
    export RUSTC
    expect "a guest in Rust is begun" 'Rusty.rs, Makefile, config.yaml and cluster.yaml are there' bash -c 'cd "$2" && "$1" plugin new Rusty --lang wasm-rust' - "$BERTH_BIN/berth" "$work"
    expect "made, and it decides" 'pod1 +Scheduled +high$' make -C "$work/Rusty" check
    check "without a warning" test "$(touch "$work/Rusty/Rusty.rs" && make -C "$work/Rusty" 2>&1 | grep -c warning)" = 0
    sed -i 's/, guestConfig: rank//' "$work/Rusty/config.yaml"
    expect "its arguments are looked at, too" 'args.guestConfig: the key of a label is needed' bash -c 'make -C "$1" check || true' - "$work/Rusty"
fi
node() { # name
    printf -- '---\napiVersion: v1\nkind: Node\nmetadata: {name: %s}\nstatus: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}\n' "$1"
}
pod() { # name profile
    printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {schedulerName: %s, containers: [{name: c, image: i}]}\n' "$@"
}
guest() { # plugin, wishes, URL, digest
    printf '%s\n  plugins: {multiPoint: {enabled: [{name: %s}]}}\n' "- schedulerName: ${1,,}" "$1"
    printf '  pluginConfig: [{name: %s, args: {guestURL: "%s", guestConfig: "%s", hookTimeout: 1m%s}}]\n' "$1" "${3:-file://$wish}" "$2" "${4:+, guestDigest: \"$4\"}"
}
# One that lies on a server: berth-watcher downloads it, berth-scheduler has no need of a network.
serve='import http.server, os, sys
os.chdir(sys.argv[1])
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
open("port", "w").write(str(s.server_port))
s.serve_forever()'
mkdir "$work/web"
cp "$wish" "$work/web/served.wasm"
python3 -c "$serve" "$work/web" 2>"$work/web.log" &
also_stop=$!
wait_for_file "$work/web/port" || exit 1
url=http://127.0.0.1:$(<"$work/web/port")/served.wasm
sum=$(sha256sum <"$wish" | cut -d' ' -f1)
head=$'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: default-scheduler\n'
refused() { # name, text, guest's URL, digest
    { printf '%s' "$head"; guest Bad '' "$3" "$4"; } >"$work/bad.yaml"
    expect "refused: $1" "$2" bash -c '! "$1" config check "$2"' - "$BERTH_BIN/berth" "$work/bad.yaml"
}
refused "not what is wanted" "served.wasm: its digest is sha256:$sum, wanted is sha256:${sum//?/0}" "$url" "sha256:${sum//?/0}"
refused "not pinned" 'guestDigest is required with it' "$url" ''
refused "not there" 'received 404 status code' "$url.gz" "sha256:$sum"
refused "a file with another digest" 'wish.wasm: its digest is sha256:' "file://$wish" "sha256:${sum//?/1}"
refused "an image" 'unsupported URL scheme: oci: images are not read' oci://x/y "sha256:$sum"
expect "what loading one costs" 'wish.wasm: [0-9]+ bytes, loaded in [0-9.]+ ms of CPU$' "$BERTH_BIN/berth" bench plugins --load-guest "$wish"
check "of a file that is no guest" status 1 "$BERTH_BIN/berth" bench plugins --load-guest "$0"
# ---- compiled ahead of time
wasmc() { "$BERTH_BIN/berth" wasmc --cache "$work/compiled" "$@"; }
if command -v cc >/dev/null; then
    so=$work/compiled/$sum.so
    expect "a guest is compiled" "^$so\$" wasmc "$wish"
    check "its file is its owner's" test "$(stat -c %a "$so")" = 644
    expect "the C of one" 'bh_wasm_compiled_guest = ' wasmc --print "$wish"
    fails() { "$@" && return 1; true; }
    expect "what is no guest" 'guests.sh: at 0x0: this is no WebAssembly module' fails wasmc "$0"
    expect "no compiler" 'the C compiler no-such-cc' fails wasmc --cc no-such-cc "$wish"
    check "no guest at all" status 2 wasmc
    check "no time" status 2 wasmc --cpu 0 "$wish"
    { printf '%s' "$head"; guest Fast filter=2; } >"$work/fast.yaml"
    { node n1; pod p1 fast; } >"$work/fast-cluster.yaml"
    fast() { BERTH_WASM_CACHE="$work/compiled" "$BERTH_BIN/berth" simulate --explain --config "$work/fast.yaml" -f "$work/fast-cluster.yaml" 2>&1 || true; }
    expect "it decides" '1 filter' fast
    check "without a complaint" test "$(fast | grep -c 'is not used')" = 0
    chmod 666 "$so"
    expect "a file that others may change is not run" 'A compiled guest is not used, it is interpreted.*has mode 0666' fast
    chmod 644 "$so"
    not_used() { # NAME TEXT: the log has the reason, and the guest decides
        expect "$1" "A compiled guest is not used, it is interpreted.*$2" fast
        expect "$1: it decides" '1 filter' fast
    }
    seal() { # GUEST [MADE_WITH]: a header for what stands there
        printf 'berth-wasm-code 1\nmade-with %s\nguest %s\ncode %s\nbytes %010d\n' "${2:-$made_with}" "$1" \
            "$(sha256sum "$so" | cut -d' ' -f1)" "$(stat -c %s "$so")" >"$so.header"
    }
    made_with=$(sed -n 's/^made-with //p' "$so.header")
    cp "$so" "$work/own.so" && cp "$so.header" "$work/own.header"
    rm "$so.header"
    not_used "nor one without a digest" 'has no digest beside it .*: make it again with berth wasmc'
    seal "$sum"
    check "the digest is of the file" cmp "$so.header" "$work/own.header"
    truncate -s -1 "$so"
    not_used "nor one that is cut short" 'is damaged, it is not what berth wasmc wrote'
    cp "$work/own.so" "$so" && printf '\377' | dd of="$so" bs=1 seek=100 conv=notrunc status=none
    not_used "nor one with a flipped byte" 'is damaged, it is not what berth wasmc wrote'
    echo 'void __attribute__((constructor)) end(void) { __builtin_trap(); }' | cc -shared -fPIC -x c -o "$so" -
    seal "$sum"
    not_used "nor one that crashes" 'crashed while it was loaded: '
    cp "$build/plugins/nodenumber.so" "$so" && seal "$sum"
    not_used "nor one that is no guest" 'is no guest that berth wasmc has compiled'
    wasmc "$build/tests/guests/local.wasm" >"$work/made" && cp "$(<"$work/made")" "$so" && cp "$(<"$work/made").header" "$so.header"
    not_used "nor one of another guest" 'is of another guest: sha256:'
    cp "$work/own.so" "$so" && seal "$sum" "${sum//?/0}"
    not_used "nor one of another version" 'was made by another version of berth wasmc'
    cp "$work/own.header" "$so.header"
    check "as it was it is used" test "$(fast | grep -c 'is not used')" = 0
else
    skip "a guest is compiled" "no C compiler cc"
fi
# NodeNumber looks at the pod's name, which no two pods of a template have in common.
{
    printf '%s' "$head"
    guest Liar '' "file://$build/plugins/wasm/nodenumber.wasm" | sed 's/hookTimeout: 1m/&, nodeLocal: true/'
} >"$work/liar.yaml"
{ node n1; node n2; for i in 1 2 3 4; do pod "p$i" liar; done; } >"$work/lies.yaml"
lies() { "$BERTH_BIN/berth" simulate "$@" --config "$work/liar.yaml" -f "$work/lies.yaml"; }
found() { lies --verify || true; }
expect "a guest whose answers may not be kept is found" 'verify: .* differs from the reference path' found
{
    printf '%s' "$head"
    guest Served filter=2 "$url" "sha256:$sum"
    guest Traps filter=panic
    guest Changes '' "file://$work/changes.wasm"
    guest Tells 'filter=node postbind=event'
} >"$work/config.yaml"
command -v kubectl >/dev/null || { skip "a running scheduler" "no kubectl"; exit 0; }
k() { kubectl --cache-dir "$work/cache" "$@"; }
cp "$build/tests/guests/local.wasm" "$work/changes.wasm"
start_up --binders 1 --no-example --config "$work/config.yaml" || exit 1
{ node n1; pod t1 traps; pod e1 tells; pod s1 served; } | k create -f - >/dev/null
plugins() { "$BERTH_BIN/berth" plugins --runtime-dir "$run" "$@"; }
says() { k get pod "$1" -o 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}' | grep -F "$2"; }
eventually "one traps" 30 says t1 'wasm: filter error: panic!'
eventually "one that was downloaded decides" 30 says s1 '1 filter'
check "it lies in the store" cmp "$wish" "$run/watcher/guests/$sum.wasm"
recorded() { k get events -o json | jq -r '.items[] | select(.reason == "Wished") | "\(.type) \(.involvedObject.kind) \(.involvedObject.name) \(.reportingComponent): \(.message)"'; }
wished() { recorded | grep -q '^Warning Pod e1 tells: a "note".100%$'; }
eventually "an Event that a guest records is written by a binder" 30 wished
expect "berth plugins shows guests" '^Traps +[0-9]+ +[1-9][0-9]* .* enqueue,prefilter,' plugins
expect "and why the last call trapped" 'Last trap of Traps:' plugins
check "as JSON" jq -e --arg sum "$sum" \
    '.guests[] | select(.name == "Tells") | .events == 1 and .eventsDropped == 0 and .sha256 == $sum and .instances >= 1' <(plugins -o json)
server=$(k config view --minify -o 'jsonpath={.clusters[0].cluster.server}')
page() { curl -fsS "$server/berth/v1/guests" | jq -r '.items[].name'; }
expect "the page is told as well" '^Tells$' page

# ---- another file under the name, and a reload
loaded() { [ "$(plugins -o json | jq -r '.guests[] | select(.name == "Changes").sha256')" = "$(sha256sum <"$1" | cut -d' ' -f1)" ]; }
replace() { cp "$1" "$work/next.wasm" && mv "$work/next.wasm" "$work/changes.wasm" && kill -HUP "$(pid_of berth-scheduler)"; }
check "it is the file's guest" loaded "$build/tests/guests/local.wasm"
replace "$0"
stays() { grep -q 'the configuration stays as it is.*wasm: error compiling guest' "$run/scheduler.log"; }
eventually "one that would be refused changes nothing" 20 stays
replace "$build/tests/guests/old.wasm"
eventually "another one is loaded" 20 loaded "$build/tests/guests/old.wasm"
# The start of one in which a name means two would fail: the one that runs does not begin it. `berth up` gave it a copy.
{ cat "$run/scheduler.yaml"; guest Changes '' | sed 's/: changes$/: twice/; s/hookTimeout: 1m/&, nodeLocal: true/'; } >"$work/two.yaml"
cp "$work/two.yaml" "$run/scheduler.yaml"
kill -HUP "$(pid_of berth-scheduler)"
two() { grep -q 'the configuration stays as it is.*Changes has another guest or nodeLocal in another profile' "$run/scheduler.log"; }
eventually "a name has one guest" 20 two
