#!/bin/sh
# dlmodel report: one page that loads nothing, in which no name becomes markup, and whose numbers are those of the other commands.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH

# A page is well-formed XML too, has every id once, and holds no element or attribute that runs or loads something.
cat > "$work/judge.py" <<'END'
import sys, xml.etree.ElementTree as tree
page = open(sys.argv[1], encoding="utf-8").read()
assert page.startswith("<!DOCTYPE html>\n")
root = tree.fromstring(page.split("\n", 1)[1])
ids, figures, texts = set(), 0, []
for node in root.iter():
    tag = node.tag.split("}")[-1]
    assert tag not in ("script", "img", "link", "iframe", "object", "embed", "image", "foreignObject", "a", "form", "b"), tag
    figures += tag == "figure"
    if node.text: texts.append(node.text)
    for name, value in node.attrib.items():
        name = name.split("}")[-1]
        assert not name.startswith("on") and name != "src", name
        assert name != "href" or value.startswith("#"), value
        if "url(" in value: assert "url(#" in value, value
        if name == "id":
            assert value not in ids, value
            ids.add(value)
        if name == "href": assert value[1:] in ids or value[1:].split("-")[0] in {i.split("-")[0] for i in ids}, value
style = root.find(".//style").text
assert "url(" not in style and "@import" not in style and "@media print" in style and "max-width" in style
print("figures", figures)
for text in sys.argv[2:]:
    assert any(text in t for t in texts), "missing text: " + text
print("good")
END
judge() { # judge NAME FILE [TEXT...]: the page is one that may be handed on and holds the texts
    name=$1
    shift
    python3 "$work/judge.py" "$@" > "$work/out" 2>&1
    has "$name" '^good$'
}
draws=no
command -v gnuplot > /dev/null 2>&1 && draws=yes

# The numbers are those of predict.
run report --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 1-4*2 --no-figures -o "$work/plan.html"
check 'a page about a plan' 0
run predict --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 4
samples=$(sed -n 's/.*: \([0-9]*\) samples\/s.*/\1/p' "$work/out")
judge 'a page without figures is whole and gives what predict does' "$work/plan.html" "pytorch-ddp on 4 nodes (16 devices): $samples samples/s" \
    'Question and answer' 'The machine' 'Scaling' 'Memory' 'Limits, and what to change' 'Accuracy' 'Calibration of the machine' 'Method'
run report --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 1-4*2 --no-figures --markdown
check 'Markdown' 0
has 'a table in Markdown' '^\| nodes \| throughput \(samples/s\) \| memory \(GiB\) \| bottleneck \|'
has 'the same answer in Markdown' "pytorch-ddp on 4 nodes \(16 devices\): $samples samples/s"
hasnt 'no HTML in Markdown' '<[a-z]'
run report --framework pytorch-ddp --no-figures
check 'defaults answer too' 0
has 'up to 16 nodes when none are given' '1 to 16 nodes of iris-v100'
run report data/runs/tensorflow_2017.csv --workload resnet50 --no-figures -o "$work/runs.html"
check 'a page about runs' 0
run compare data/runs/tensorflow_2017.csv --where workload=resnet50
median=$(sed -n 's/.* \([0-9.]*\) % in the median.*/\1/p' "$work/out")
judge 'the errors are those of compare' "$work/runs.html" '16 of 16 runs are predicted' "$median" 'tfb-0002'

# What it costs, what no fit has seen, and the page about a campaign
run report --system dgx-a100-80 --workload gpt2_xl --framework megatron --nodes 1-4*2 --global-batch 64 --micro-batch 1 --precision bf16 --pp 4 \
    --tokens 1G --price 30USD --carbon 300 --no-figures -o "$work/cost.html"
check 'a page with prices' 0
judge 'time, cost and energy of the run, advice, never seen errors' "$work/cost.html" 'How many nodes, and at what price' 'device-hours' 'USD' 'kWh' 'CO2' \
    'MFU' 'Error for runs that no fit has seen' 'each source (mean over sources)'
run predict --system dgx-a100-80 --workload gpt2_xl --framework megatron --nodes 4 --global-batch 64 --micro-batch 1 --precision bf16 --pp 4 --tokens 1G \
    --price 30USD --csv
cost=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "cost") at = i; next } { printf "%.4g", $at }' "$work/out")
judge 'the cost is that of predict' "$work/cost.html" "$cost"
run report --framework pytorch-ddp --nodes 1,2 --no-figures --markdown
check 'a page without prices' 0
hasnt 'unknown cost is no column' '\| cost'
run campaign --nodes 4 --workload resnet50 --framework pytorch-ddp --epochs 1 --trials 9 --search asha --show schedule --csv
cp "$work/out" "$work/schedule.csv"
run report "$work/schedule.csv" --no-figures -o "$work/campaign.html"
check 'a page about a campaign' 0
judge 'the campaign in one sentence and by rung' "$work/campaign.html" 'slots take' 'The tasks by rung; a search without rungs has one.'

# Names that would like to be markup.
evil='<script>alert(1)</script>"'"'"'&amp;<img src=x onerror=alert(2)>|`*'
{
    sed -n 1p data/runs/tensorflow_2017.csv
    for n in 1 2 4; do
        printf '"<b>%s</b>","%s",dgx1-p100,tensorflow-ps,data,"<b>&lt;x onload=1",resnet50,,fp32,,1,%s,64,,,,,,throughput,%s,samples/s,"</td></table><b>","<b>"\n' \
            "$n" "$(printf '%s' "$evil" | sed 's/"/""/g')" $n $((200 * n))
    done
    printf '"<b>4</b>",s,"<b>no such system",tensorflow-ps,data,,resnet50,,fp32,,1,8,64,,,,,,throughput,9,samples/s,,\n'
} > "$work/evil.csv"
run report "$work/evil.csv" --where system=dgx1-p100 --title "$evil" --no-figures -o "$work/evil.html"
check 'hostile names' 0
judge 'hostile names stay text' "$work/evil.html" "$evil" '<b>1</b>'
run report "$work/evil.csv" --where system=dgx1-p100 --title "$evil" --no-figures --markdown
hasnt 'hostile names stay text in Markdown' '<[a-z/]'
run report "$work/evil.csv" --no-figures -o "$work/evil.html"
check 'an unknown system of a row' 0
judge 'is a row that is not predicted' "$work/evil.html" '3 of 4 runs are predicted'
rm -f "$work/evil.html"
sed '0,/"name"/s/"name": "[^"]*"/"name": "<b>\&quot;evil<\/b>"/; 0,/"summary"/s/"summary": "[^"]*"/"summary": "<script>"/' data/workloads/alexnet.json > "$work/evil.json"
run report --workload "$work/evil.json" --framework pytorch-ddp --nodes 1,2 --no-figures -o "$work/evil.html"
check 'a workload with a hostile name' 0
judge 'a workload with a hostile name stays text' "$work/evil.html"

# What is wrong with the question
run report --where system=x
check 'where without files' 2 '--where selects rows of files: give a file'
run report "$work/missing.csv"
check 'a missing file' 3 'missing\.csv'
run report --markdwn
check 'a misspelt option' 2 'did you mean --markdown'
run report data/runs/tensorflow_2017.csv --workload resnet5 --no-figures
check 'no such rows' 2 'did you mean resnet50'
echo old > "$work/kept.html"
env PATH="$work/nothing" "$DLMODEL" report --framework pytorch-ddp --nodes 1 -o "$work/kept.html" > "$work/out" 2> "$work/err" < /dev/null
status=$?
check 'without gnuplot it says what to do' 5 'gnuplot'
cp "$work/kept.html" "$work/out"
has 'and leaves the old page' '^old$'

# Checkpoints: the numbers of predict.
plan='--system dgx-a100-80 --workload bert_large --framework pytorch-ddp --nodes 8 --set node_mtbf=20000h --checkpoint best --checkpoint-format torch-save,torch-dcp-async'
# shellcheck disable=SC2086
run predict $plan --json
goodput=$(python3 -c "import json; f = json.load(open('$work/out'))['results'][0]['checkpoint_formats'][1]; print('%.5g' % (100 * f['goodput_frac']))")
# shellcheck disable=SC2086
run report $plan --no-figures --markdown
check 'a page with checkpoints' 0
has 'a section about them' '^## Checkpoints and failures'
has 'the goodput of predict' "^\| torch-dcp-async .*\| $goodput "
run report --system dgx-a100-80 --workload bert_large --framework pytorch-ddp --nodes 8 --no-figures --markdown
hasnt 'no checkpoints, no section' 'Checkpoints and failures'
run report --system dgx-a100-80 --workload bert_large --checkpoint-format keras --no-figures --markdown
check 'a format without checkpoints' 2 'give --checkpoint best too'

[ $draws = yes ] || exit 0
run report --system iris-v100 --workload vgg16 --framework pytorch-ddp,tensorflow-ps --nodes 1-4*2 -o "$work/plan.html"
check 'a page with figures' 0
judge 'figures stand in the page' "$work/plan.html" 'Figure 1.' 'Figure 5.' 'Faster settings'
has 'five of them' '^figures 5$'
run report "$work/evil.csv" --where system=dgx1-p100 --title "$evil" -o "$work/evil.html"
check 'figures of hostile names' 0
judge 'hostile names stay text in figures' "$work/evil.html" "$evil"
has 'and are drawn' '^figures 2$'
run report --workload "$work/evil.json" --framework pytorch-ddp --nodes 1,2 -o "$work/evil.html"
judge 'hostile titles stay text in figures' "$work/evil.html"
run report --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 1-4*2 --markdown
check 'Markdown with figures' 0
has 'figures of characters' 'throughput \(samples/s\)'

# the name says the form
run report --framework pytorch-ddp --no-figures -o "$SCRATCH/page.md"
check 'a page called .md' 0
if head -n 1 "$SCRATCH/page.md" | grep -q '^# '; then echo 'ok it is Markdown'; else bad 'it is Markdown' "$(head -n 1 "$SCRATCH/page.md")"; fi
run report --framework pytorch-ddp --no-figures -o "$SCRATCH/page.pdf"
check 'a page called .pdf' 2 'a browser prints the HTML page to PDF'
run report --framework pytorch-ddp --no-figures --markdown -o "$SCRATCH/page.html"
check 'Markdown called .html' 2 'contradicts the name'

# devices in all, in place of nodes
for n in 16:'4 nodes' 2:'1 node'; do
    run report --system iris-v100 --workload resnet50 --framework pytorch-ddp --gpus "${n%%:*}" --markdown --no-figures
    check "a page about ${n%%:*} devices" 0
    has "on ${n#*:}" "on ${n#*:} of iris-v100"
    has 'and their number' "\\(${n%%:*} devices\\)"
done
