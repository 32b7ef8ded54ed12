# bash completion for berth(1) and its daemons: what may follow comes from --help=words, so it is always that of the
# installed version.
_berth() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} said value i=1
    while [ "$i" -lt "$COMP_CWORD" ] && [[ ${COMP_WORDS[i]} != -* ]]; do i=$((i + 1)); done
    said=$("${COMP_WORDS[@]:0:i}" --help=words 2>/dev/null) || return
    COMPREPLY=()
    if [[ $prev == -* ]]; then
        value=$(sed -n "s/^$prev=\([^\t]*\).*/\1/p" <<<"$said")
        if [[ $value =~ ^[a-z]+(\|[a-z]+)+$ ]]; then
            mapfile -t COMPREPLY < <(compgen -W "${value//|/ }" -- "$cur")
            return
        elif [ "$prev" = --node ]; then
            mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" get nodes --help=words 2>/dev/null | grep -oE '^[^-	][^	]*')" -- "$cur")
            return
        elif [ -n "$value" ]; then # a file, a name or a number
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
            return
        fi
    fi
    if [[ $cur == -* ]]; then
        said=$(grep -oE '^--[^=	]+' <<<"$said")
    else
        said=$(grep -oE '^[^-	][^	]*' <<<"$said")
        [ "$i" -eq "$COMP_CWORD" ] || said=
    fi
    mapfile -t COMPREPLY < <(compgen -W "$said" -- "$cur")
    [ -n "$said" ] || mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}
complete -o filenames -F _berth berth berth-watcher berth-scheduler berth-binder berth-front berth-metrics berth-simulator
