# fish completion for berth(1) and its daemons: what may follow comes from --help=words, so it is always that of the
# installed version.
function __berth_complete
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    set -l lead $words[1]
    for w in $words[2..-1]
        string match -q -- '-*' $w; and break
        set -a lead $w
    end
    set -l said ($lead --help=words 2>/dev/null); or return
    set -l value (string replace -rf -- "^"(string escape --style=regex -- $words[-1])"=([^\t]*).*" '$1' $said)
    if string match -qr -- '^-' $words[-1]; and test -n "$value"
        if string match -qr '^[a-z]+(\|[a-z]+)+$' -- $value[1]
            string split '|' -- $value[1]
        else if test "$words[-1]" = --node
            $words[1] get nodes --help=words 2>/dev/null | string match -rv -- '^-'
        else # a file, a name or a number
            __fish_complete_path $cur
        end
    else if string match -q -- '-*' $cur
        string match -r -- '^-.*' $said | string replace -r '^([^=\t]*)=?[^\t]*' '$1'
    else if test (count $lead) -eq (count $words); and string match -qr -- '^[^-]' $said
        string match -r -- '^[^-].*' $said
    else
        __fish_complete_path $cur
    end
end
for program in berth berth-watcher berth-scheduler berth-binder berth-front berth-metrics berth-simulator
    complete -c $program -f -a '(__berth_complete)'
end
