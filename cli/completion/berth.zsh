#compdef berth berth-watcher berth-scheduler berth-binder berth-front berth-metrics berth-simulator
# zsh completion for berth(1) and its daemons: what may follow comes from --help=words, so it is always that of the
# installed version.
_berth() {
    local cur=$words[CURRENT] prev=$words[CURRENT-1] value w
    local -a lead said offer
    for w in ${words[1,CURRENT-1]}; do
        [[ $w == -* ]] && break
        lead+=$w
    done
    said=("${(@f)$($lead --help=words 2>/dev/null)}")
    if [[ $prev == -* ]]; then
        value=${${(M)said:#${prev}=*}%%$'\t'*}
        value=${value#*=}
        if [[ $value =~ '^[a-z]+([|][a-z]+)+$' ]]; then
            offer=(${(s:|:)value})
            compadd -a offer
            return
        elif [[ $prev == --node ]]; then
            offer=(${${(f)"$($words[1] get nodes --help=words 2>/dev/null)"}%%$'\t'*})
            offer=(${offer:#-*})
            compadd -a offer
            return
        elif [[ -n $value ]]; then # a file, a name or a number
            _files
            return
        fi
    fi
    if [[ $cur == -* ]]; then
        offer=(${(M)said:#-*})
        offer=(${offer/(#m)=[^$'\t']#/})
    elif (( $#lead == CURRENT - 1 )); then
        offer=(${said:#-*})
    fi
    offer=(${${offer//:/\\:}/$'\t'/:}) # name:description
    if (( $#offer )); then
        _describe 'berth' offer
    else
        _files
    fi
}
_berth "$@"
