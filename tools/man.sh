#!/usr/bin/env bash
# Makes the manual pages out of each program's --help: one text, never two that differ.
# usage: tools/man.sh BIN OUT      needs help2man
set -euo pipefail
bin=$1 out=$2
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$("$bin/berth" version | cut -d' ' -f2)

# help2man wants section titles between stars, and takes lines that start with a prompt as they are.
cat >"$work/sections.awk" <<'EOF'
/^[A-Z][A-Za-z ]*:$/ { examples = 0 }
/^Usage:$/ { print "*Synopsis*"; next }
/^(Flags|Commands):$/ { print "*" substr($0, 1, length($0) - 1) "*"; next }
/^Exit status:$/ { print "*Exit status*"; next }
/^Examples:$/ { examples = 1; print "*Examples*"; next }
/^[^ ]/ { examples = 0 }
examples && /^ +[^ ]/ { sub(/^ +/, "  $ ") }
{ print }
EOF

page() { # page SECTION NAME ABOUT COMMAND...
    local section=$1 name=$2 about=$3
    shift 3
    printf '#!/bin/sh\n%s --help | awk -f %s\n' "$(printf '%q ' "$@")" "$work/sections.awk" >"$work/$name"
    chmod +x "$work/$name"
    help2man --no-info --section "$section" --name "$about" --version-string "$version" \
        --manual Berth --source "Berth $version" "$work/$name" >"$out/$name.$section"
}

page 8 berth-watcher "keeps the snapshot of a cluster, and the leader lease" "$bin/berth-watcher"
page 8 berth-scheduler "takes the decisions of kube-scheduler, without API credentials" "$bin/berth-scheduler"
page 8 berth-binder "writes decisions to the API server" "$bin/berth-binder"
page 8 berth-front "kube-scheduler's HTTPS port for all of Berth" "$bin/berth-front"
page 8 berth-metrics "fetches the nodes' load for plugins of the scheduler" "$bin/berth-metrics"
page 8 berth-simulator "an API server with controllers, for trying things out" "$bin/berth-simulator"
page 1 berth "a Kubernetes scheduler that explains its decisions" "$bin/berth"
# every command of `berth --help` has a page of its own, and so have their commands: berth-scenario-run(1)
commands() { awk '/^Commands:$/ {on = 1; next} /^$/ {on = 0} on'; }
"$bin/berth" --help | commands | while read -r name about; do
    [ "$name" != version ] || continue
    page 1 "berth-$name" "$about" "$bin/berth" "$name"
    "$bin/berth" "$name" --help | commands | while read -r inner about; do
        page 1 "berth-$name-$inner" "$about" "$bin/berth" "$name" "$inner"
    done
done
# Pages name the one above them, and those below.
for f in "$out"/berth*.[18]; do
    name=$(basename "${f%.*}")
    above=${name%-*} see=()
    for other in "$out"/berth*.[18]; do
        page=$(basename "${other%.*}")
        if [ "$page" = "$above" ] && [ "$page" != "$name" ] || [ "${page%-*}" = "$name" ] && [ "$page" != "$name" ]; then
            see+=(".BR $page (${other##*.})")
        fi
    done
    { echo '.SH "SEE ALSO"'; printf '%s\n' "${see[@]}" | sed 's/-/\\-/g; $!s/$/,/'; } >>"$f"
done
echo ".so man1/berth.1" >"$out/kubectl-berth.1" # the same program under the name kubectl looks for

# The public header, as it is: its first comment, then the declarations.
awk -v version="$version" '
function raw(s) { gsub(/\\/, "\\e", s); gsub(/-/, "\\-", s); if (s ~ /^[.\047]/) s = "\\&" s; return s }
FNR == 1 {
    print ".TH BERTH_PLUGIN.H 3 \"\" \"Berth " version "\" Berth"
    print ".SH NAME\nberth_plugin.h \\- scheduling plugins that Berth did not compile"
    print ".SH SYNOPSIS\n.nf\n#include <berth/plugin.h>\n\ncc \\-shared \\-fPIC \\-fvisibility=hidden $(pkg\\-config \\-\\-cflags berth\\-plugin) \\-o NAME.so NAME.c\n.fi\n.SH DESCRIPTION"
    head = 1
    next
}
head && / \*\/$/ { head = 0; print ".SH DECLARATIONS\n.nf"; next }
head && FNR < 4 { next }
head { sub(/^ \* ?/, ""); print $0 == "" ? ".PP" : raw($0); next }
{ print raw($0) }
END { print ".fi\n.SH SEE ALSO\n.BR berth\\-plugin\\-new (1),\n.BR berth\\-plugin\\-check (1)" }
' plugins/include/berth/plugin.h >"$out/berth_plugin.h.3"
