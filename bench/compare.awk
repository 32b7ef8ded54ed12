# What moved: awk -v compiler=NAME -v limit=PERCENT -f bench/compare.awk BASELINE COUNTS
# Both files have count.sh's lines; the baseline's head is "# compiler: NAME". Exit status 1 when a case got worse by more
# than limit per cent of instructions or by 0.01 allocations, or is gone; 0 also when the baseline is another compiler's, as its
# counts say nothing then.
BEGIN {
    FS = "\t"
    if (limit == "") limit = 2
}
function percent(new, old) { return old ? (new - old) * 100 / old : (new ? 100 : 0) }
function broken(why) { print FILENAME ":" FNR ": " why > "/dev/stderr"; failed = 2; exit 2 }
/^#/ {
    if (sub(/^# compiler: /, "") && FILENAME == ARGV[1]) theirs = $0
    next
}
NF != 4 || $3 !~ /^[0-9]+$/ || $4 !~ /^[0-9.]+$/ { broken("expected four columns: case, times, instructions, allocations") }
FILENAME == ARGV[1] { instructions[$1] = $3; allocations[$1] = $4; next }
{
    seen[$1] = 1
    counted++
    if (!($1 in instructions)) {
        lines[++n] = sprintf("  %-34s %12d instructions %9.3f allocations   new", $1, $3, $4)
        fresh++
        next
    }
    di = percent($3, instructions[$1])
    da = $4 - allocations[$1]
    if (di <= limit && di >= -limit && da < 0.01 && da > -0.01) next
    bad = di > limit || da >= 0.01
    worse += bad
    better += !bad
    line = sprintf("  %-34s %12d -> %d instructions (%+.1f %%)", $1, instructions[$1], $3, di)
    if (da >= 0.01 || da <= -0.01) line = line sprintf(", %.3f -> %.3f allocations", allocations[$1], $4)
    lines[++n] = line (bad ? "   WORSE" : "")
}
END {
    if (failed) exit failed
    for (c in instructions)
        if (!(c in seen)) { lines[++n] = sprintf("  %-34s in the baseline, not counted   WORSE", c); worse++; lost++ }
    for (i = 1; i <= n; i++) print lines[i]
    printf "%d cases: %d worse, %d better, %d new, %d as before (within %s %%)\n", counted, worse, better, fresh,
        counted - fresh - better - (worse - lost), limit
    if (theirs == "") exit 0 # nothing to compare with yet
    if (theirs != compiler) {
        printf "the baseline was counted with \"%s\", this with \"%s\": no verdict\n", theirs, compiler
        exit 0
    }
    exit worse > 0
}
