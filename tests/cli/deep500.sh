#!/bin/sh
# slurm submit --method deep500: rounds of repeats until the interval of the median is narrow enough, with jobs of our own (slurm/fake_sbatch.py); what is planned is
# compared with an arithmetic of its own (order statistics of the binomial distribution). Then collect, and report with its methods section and figures as files.
# The same with a real Slurm: tests/slurm/method.sh.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH
command -v python3 > /dev/null 2>&1 || { echo 'skip deep500: no python3 (Debian package python3)'; exit 0; }
mkdir -p "$work/bin" "$work/state"
export DLMODEL_SITE="$PWD/tests/slurm/bed.json"
printf '#!/bin/sh\nexec python3 "%s/tests/slurm/fake_sbatch.py" "%s/state" "$@"\n' "$PWD" "$work" > "$work/bin/sbatch"
printf '#!/bin/sh\nfor a; do case $a in --jobs=*) for j in $(echo "${a#--jobs=}" | tr , " "); do echo "$j|COMPLETED|2|n0|0:0|0"; done ;; esac; done\n' > "$work/bin/sacct"
printf '#!/bin/sh\nexit 0\n' > "$work/bin/squeue"
chmod +x "$work/bin/sbatch" "$work/bin/sacct" "$work/bin/squeue"
PATH=$work/bin:$PATH
submit() {
    run slurm submit --method deep500 --framework pytorch-ddp --workload lenet --nodes 1,2 --steps 24 --dir "$work/runs" "$@"
}

# What is wrong with the question
submit --repeat 3
check 'repeats are planned' 2 '--method plans the repeats itself'
run slurm submit --method deep5000 --framework pytorch-ddp
check 'an unknown method' 2 '--method: expected one of deep500'
submit --interval-width 0%
check 'a width of zero' 2 'interval-width'
submit --most-repeats 0
check 'no repeats' 2 'most-repeats'
run slurm submit --framework pytorch-ddp --interval-width 5% --dry-run
check 'a width without a method' 2 '--interval-width and --most-repeats belong to --method'
submit --dry-run
check 'a dry run' 0 'nothing was written'
[ -e "$work/runs" ] && bad 'a dry run leaves nothing' 'a folder was made' || echo 'ok a dry run leaves nothing'

# Rounds: six, then what the spread of the runs asks for, until both are narrow or have their most
cat > "$work/judge.py" <<'END'
import math, statistics, sys
from collections import defaultdict
state, width, most, expected = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
runs = defaultdict(list)
try:
    for line in open(state):
        nodes, repeat, step = line.split()
        assert int(repeat) == len(runs[nodes]) + 1, "repeats in order: " + line
        runs[nodes].append(float(step))
except FileNotFoundError:
    pass
missing = {}
for nodes in "1", "2":
    x, n = sorted(runs[nodes]), len(runs[nodes])
    if n < 6:
        missing[nodes] = 6 - n
        continue
    rank = max(r for r in range(1, n // 2 + 1) if sum(math.comb(n, i) for i in range(r)) / 2 ** n <= 0.025)
    wide = (x[n - rank] - x[rank - 1]) / statistics.median(x) / width
    wanted = n if wide <= 1 else min(2 * n, math.ceil(n * wide * wide))
    missing[nodes] = min(wanted, most) - n
text = "%d %d" % (missing["1"], missing["2"])
print("good" if text == expected else "expected " + text)
END
round=0 total=0
while [ $round -lt 12 ]; do
    round=$((round + 1))
    cp "$work/state/runs" "$work/before" 2> /dev/null || rm -f "$work/before"
    submit --interval-width 5% --most-repeats 50 --csv
    check "round $round" 0 'configurations have a 95 % interval of the median of at most 5 %'
    one=$(grep -c 'n1x1' "$work/out") two=$(grep -c 'n2x1' "$work/out")
    total=$((total + one + two))
    python3 "$work/judge.py" "$work/before" 0.05 50 "$one $two" > "$work/out" 2>&1
    has "round $round plans what the interval asks for: $one and $two" '^good$'
    [ $((one + two)) -gt 0 ] || break
done
[ $round -gt 2 ] && [ $round -lt 12 ] && echo 'ok the rounds end' || bad 'the rounds end' "$round rounds"
if [ "$(grep -c '^1 ' "$work/state/runs")" -lt 20 ] && [ "$(grep -c '^2 ' "$work/state/runs")" -eq 50 ]; then
    echo 'ok quiet runs need few, noisy ones have their most'
else bad 'quiet runs need few, noisy ones have their most' "$(cut -d' ' -f1 "$work/state/runs" | sort | uniq -c)"; fi
grep -q '1 of 2 configurations' "$work/err" && echo 'ok what is not narrow is reported' || bad 'what is not narrow is reported' "$(cat "$work/err")"
sed -n 's/^ *pytorch-ddp-lenet-n1x1-b8 *\(.*\)/\1/p' "$work/err" > "$work/out"
has 'its level, and the steps that were warm-up' "^2 +$(grep -c '^1 ' "$work/state/runs") +0 +0 +$((4 * $(grep -c '^1 ' "$work/state/runs")))  "
if [ "$(find "$work/runs" -name run.json | wc -l)" -eq $total ]; then echo 'ok a folder a run'; else bad 'a folder a run' "$total were planned"; fi
submit --interval-width 2% --most-repeats 50
check 'a narrower width later asks for more' 0
has 'of the same configuration' 'n1x1-b8-r'

# A job that has not ended is not submitted twice.
: > "$work/state/lost-1000"
echo 999 > "$work/state/jobs"
printf '#!/bin/sh\nfor a; do case $a in --jobs=*) for j in $(echo "${a#--jobs=}" | tr , " "); do [ $j = 1000 ] && s=RUNNING || s=COMPLETED; echo "$j|$s|2|n0|0:0|0"; done ;; esac; done\n' > "$work/bin/sacct"
printf '#!/bin/sh\necho "1000|RUNNING|/elsewhere"\n' > "$work/bin/squeue"
for _ in 1 2; do run slurm submit --method deep500 --framework pytorch-ddp --workload lenet --nodes 1 --steps 24 --dir "$work/open" --csv; done
check 'submitted again while a job runs' 0 'pytorch-ddp-lenet-n1x1-b8 +2 +5 +1 '
[ "$(wc -l < "$work/out")" -le 1 ] && echo 'ok an open run counts' || bad 'an open run counts' 'it was submitted again'

# The table and the page
run slurm collect --dir "$work/runs" -o "$work/runs.csv"
check 'collect' 0
draws=--no-figures
command -v gnuplot > /dev/null 2>&1 && draws="--attach $work/attached"
# shellcheck disable=SC2086
run report "$work/runs.csv" --markdown $draws -o "$work/page.md"
check 'the page of the runs' 0
cp "$work/page.md" "$work/out"
has 'a methods section' '^## How it was measured'
has 'what was asked of the runs' '95 % interval from order statistics'
has 'levels of both' 'pytorch-ddp lenet fp32 \| 1 x 1 \| 2 \|'
has 'levels of both: training on several' 'pytorch-ddp lenet fp32 \| 2 x 1 \| 3 \|'
has 'the environment' 'torch.*1\.13'
cut -d, -f5- "$work/runs.csv" > "$work/out"
has 'warm-up that the program did not know of is left out' 'median of 20 steps,'
python3 - "$work/runs.csv" "$work/page.md" > "$work/out" 2>&1 <<'END'
import csv, math, re, statistics, sys
rows = list(csv.DictReader(open(sys.argv[1])))
for nodes in "1", "2":
    x = sorted(float(r["value"]) for r in rows if r["nodes"] == nodes)
    n = len(x)
    rank = max(r for r in range(1, n // 2 + 1) if sum(math.comb(n, i) for i in range(r)) / 2 ** n <= 0.025)
    want = [statistics.median(x), x[rank - 1], x[n - rank]]
    line = [l for l in open(sys.argv[2]) if "lenet fp32 | %s x 1" % nodes in l][0].split("|")
    got = [float(c) for c in line[8:11]]
    assert int(line[4]) == n, line
    assert all(abs(a - b) < 1e-3 * b for a, b in zip(got, want)), (got, want)
print("good")
END
has 'median and interval of the page are those of the table' '^good$'
if [ "$draws" = --no-figures ]; then echo 'skip figures to attach: no gnuplot (Debian package gnuplot-nox)'; else
    for f in "$work"/attached/*.pdf; do head -c 5 "$f"; echo; done > "$work/out"
    has 'figures as PDF' '^%PDF-'
    for f in "$work"/attached/*.csv; do head -n 1 "$f"; wc -l < "$f"; done > "$work/out"
    has 'their numbers as CSV' ','
    [ "$(find "$work/attached" -name '*.pdf' | wc -l)" -eq "$(find "$work/attached" -name '*.csv' | wc -l)" ] && echo 'ok a table for each' || bad 'a table for each' 'one is missing'
fi

# The same on a real Slurm (fixtures/deep500): the report of its runs has the medians, intervals and counts that the last round reported.
run report tests/fixtures/deep500/runs.csv --markdown --no-figures -o "$work/real.md"
check 'the page of real runs' 0
python3 - "$work/real.md" tests/fixtures/deep500/rounds.txt > "$work/out" 2>&1 <<'END'
import sys
reported = [l.split() for l in open(sys.argv[2]) if l.startswith(" pytorch-ddp-")][-2:]
page = {l.split("|")[2].strip(): [c.strip() for c in l.split("|")] for l in open(sys.argv[1]) if l.startswith("| pytorch-ddp lenet fp32")}
for row, nodes in zip(reported, ("1 x 1", "2 x 1")):
    assert row[0].endswith("n%sx1-b64" % nodes[0]) and row[1] == page[nodes][3] and row[2] == page[nodes][4], (row, page[nodes])
    for mine, theirs in zip(row[6:9], page[nodes][8:11]):
        assert abs(float(mine) / 1e3 / float(theirs) - 1) < 1e-3, (row, page[nodes])
    assert abs(float(row[9]) - float(page[nodes][11])) < 0.1, (row, page[nodes])
assert float(reported[1][9]) <= 10 < float(reported[0][9]) and int(reported[0][2]) == 24
print("good")
END
has 'is what the rounds ended with' '^good$'
