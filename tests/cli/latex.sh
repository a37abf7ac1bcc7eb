#!/bin/sh
# latex.sh - tables for papers: each row of a tabular has the cells that its columns say, nothing in them is a command of LaTeX.
cd "$(dirname "$0")/../.." || exit 2
. tests/cli/lib.sh

# As many cells as columns in each line, three rules; a character that LaTeX reads as a command stands only behind a backslash.
tabular() { # tabular NAME ROWS
    python3 - "$1" "$2" "$SCRATCH/out" << 'PY'
import re, sys
name, wanted, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
lines = open(path).read().splitlines()
columns = re.fullmatch(r"\\begin\{tabular\}\{([lr]+)\}", lines[1])
rows = [l for l in lines if l.endswith(r" \\")]
cells = [re.split(r"(?<!\\)&", l[:-3]) for l in rows]
faults = []
if lines[0] != r"% \usepackage{booktabs}" or lines[-1] != r"\end{tabular}" or columns is None:
    faults.append("no tabular")
elif any(len(c) != len(columns.group(1)) for c in cells):
    faults.append("cells %s, columns %s" % ([len(c) for c in cells], columns.group(1)))
if [l for l in lines if "rule" in l] != [r"\toprule", r"\midrule", r"\bottomrule"]:
    faults.append("rules")
body = lines[lines.index(r"\midrule") + 1:lines.index(r"\bottomrule")]
if len(body) != wanted:
    faults.append("%d rows, expected %d" % (len(body), wanted))
for l in rows:
    plain = re.sub(r"\\(text[a-z]+\{\}|[&%$#_{}\\])", "", l.replace("{} ", "", 1)).replace("&", "")
    if re.search(r"[%$#_{}~^\\<>]", plain):
        faults.append("not escaped: " + l)
print("not ok %s\n  %s" % (name, "; ".join(faults)) if faults else "ok " + name)
PY
}

run predict --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 1-8*2 --format latex
check 'predict' 0
tabular 'predict: a row for each number of nodes' 4
has 'predict: cells are those of the text' '^8 & 32 & [0-9]+ \([0-9]+-[0-9]+\) & [0-9,]+ & .* & host-copy [0-9]+ \\% '
run predict --system iris-v100 --workload 'gpt:layers=2,hidden=256,heads=4,vocab=1000' --framework pytorch-ddp,deepspeed-zero1 --format latex
tabular 'predict: a row for each framework' 2
run search --system dgx-h100 --workload llama3_8b --framework megatron-core --gpus 16 --global-batch 64 --format latex
check 'search' 0
tabular 'search: a row for each split' "$("$DLMODEL" search --system dgx-h100 --workload llama3_8b --framework megatron-core --gpus 16 --global-batch 64 2> /dev/null | grep -c '^ dp')"
run match --workloads resnet50 --systems iris-v100,dgx-h100 --format latex
check 'match' 0
tabular 'match: a row for each machine' 2
run advise --system iris-v100 --workload resnet50 --framework pytorch-ddp --nodes 4 -b 64 --format latex
check 'advise' 0
has 'advise: its first row' '^precision & mixed precision \(fp16\) & rounding & '
cat > "$SCRATCH/runs.csv" << 'END'
id,source,system,framework,workload,precision,nodes,devices_per_node,batch_per_device,metric,value,unit
a,10 % of {A_B} & C,iris-v100,pytorch-ddp,resnet50,fp32,1,4,32,throughput,1300,samples/s
END
run compare "$SCRATCH/runs.csv" --format latex
check 'compare' 0
has 'compare: a source with every character' '^source & 1 & .* & 10 \\% of \\\{A\\_B\\\} \\& C '
tabular 'compare: source, system, all' 4
run explain --system iris-v100 --workload resnet50 --format latex
check 'a command without such a table' 2 '--format latex: for predict, search, compare, match and advise'
