#!/bin/sh
# search_heterogeneous.sh - which nodes a job takes, which job takes which nodes; and match, which compares machines.
cd "$(dirname "$0")/../.." || exit 2
. tests/cli/lib.sh
kinds='--heterogeneous dgx1-v100:2,dgx1-p100:2 --framework pytorch-ddp'
field() { python3 -c "import json; d=json.load(open('$SCRATCH/out')); print($1)"; }
for objective in time energy; do
    # shellcheck disable=SC2086
    run search $kinds --workload resnet50 --global-batch 1024 --objective $objective --top 64 --json
    check "nodes by $objective" 0
    cp "$SCRATCH/out" "$SCRATCH/$objective.json"
done
cp "$SCRATCH/time.json" "$SCRATCH/out"
# 3 x 3 - 1 choices; the four with both kinds also with balanced batches
if [ "$(field 'len(d["results"])')" = 12 ]; then echo 'ok every choice'; else bad 'every choice' "$(field 'len(d["results"])')"; fi
best=$(field 'd["results"][0]["throughput_samples_per_s"]')
python3 - "$SCRATCH/time.json" "$SCRATCH/energy.json" << 'PY'
import json, os, shlex, subprocess, sys
time, energy = (json.load(open(p))["results"] for p in sys.argv[1:3])
print("ok sorted by time" if all(a["throughput_samples_per_s"] >= b["throughput_samples_per_s"] for a, b in zip(time, time[1:])) else "not ok sorted by time")
print("ok sorted by energy" if all(a["sample_energy_j"] <= b["sample_energy_j"] for a, b in zip(energy, energy[1:])) else "not ok sorted by energy")
rates = []
for r in time:
    words = shlex.split(r["command"])
    words[0] = os.environ["DLMODEL"]
    done = subprocess.run(words + ["--json"], capture_output=True, text=True, check=False)
    rates.append(json.loads(done.stdout)["results"][0]["throughput_samples_per_s"])
same = all(abs(rate / r["throughput_samples_per_s"] - 1) < 1e-12 for rate, r in zip(rates, time))
print("ok commands give the figures" if same else "not ok commands give the figures")
PY
# brute force over all choices by predict alone
python3 - "$best" << 'PY'
import json, os, subprocess, sys
best = 0
for v in range(3):
    for p in range(3):
        nodes = ",".join("%s:%d" % (s, n) for s, n in (("dgx1-v100", v), ("dgx1-p100", p)) if n)
        for split in ("equal", "balanced"):
            if not nodes:
                continue
            words = [os.environ["DLMODEL"], "predict", "--heterogeneous", nodes, "--split", split, "--workload", "resnet50", "--framework", "pytorch-ddp", "--global-batch", "1024", "--json"]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            best = max(best, json.loads(done.stdout)["results"][0]["throughput_samples_per_s"])
print("ok the best of all choices" if abs(best / float(sys.argv[1]) - 1) < 1e-12 else "not ok the best of all choices: %g" % best)
PY
run search --heterogeneous iris-v100:4,das5-titanx:8,cartesius-knl:8 --framework horovod-tensorflow --jobs resnet50,vgg16,alexnet
check 'jobs on kinds of nodes' 0
has 'each job has its nodes' '^ vgg16 +[a-z0-9-]+ +[1-8] '
run search --heterogeneous iris-v100:1,das5-titanx:1 --framework pytorch-ddp --jobs resnet50,vgg16,alexnet
check 'more jobs than nodes' 1 'do not fit on these nodes together'
run search --jobs resnet50 --framework pytorch-ddp
check 'jobs without kinds' 2 'jobs needs --heterogeneous'
run search --heterogeneous iris-v100:1,das5-titanx:1 --framework pytorch-ddp --objective memory
check 'another objective' 2 'time, energy or cost'
run search --heterogeneous iris-v100:1,das5-titanx:1 --framework pytorch-ddp --objective cost
check 'no price' 2 'price'

run match --systems iris-v100,das5-titanx --workloads resnet50,vgg16 --framework pytorch-ddp,mxnet-device --json
check 'match' 0
if [ "$(field 'len(d["results"])')" = 8 ]; then echo 'ok all combinations'; else bad 'all combinations' "$(field 'len(d["results"])')"; fi
first=$(field 'd["results"][0]["throughput_samples_per_s"]') joule=$(field 'd["results"][0]["samples_per_joule"]')
run predict --system iris-v100 --workload resnet50 --framework pytorch-ddp --json
same=$(field "abs(d['results'][0]['throughput_samples_per_s'] - $first) < 1e-9 and abs($first / $joule * d['results'][0]['iteration_s'] / d['results'][0]['iteration_energy_j'] - 1) < 1e-9")
if [ "$same" = True ]; then echo 'ok as predict'; else bad 'as predict' "$same"; fi
run match --systems iris-v100,dgx-h100 --workloads resnet50
check 'machines with different defaults' 0
has 'the answer comes first' '^resnet50: fastest: dgx-h100 with [a-z0-9-]+, [0-9,]+ samples/s on 8 devices'
has 'one precision for all' '^mixed on all of them .their defaults differ; -p chooses.'
lines=$(grep -c '^ resnet50 ' "$SCRATCH/out")
if [ "$lines" = 2 ]; then echo 'ok one line a machine'; else bad 'one line a machine' "$lines"; fi
run match --systems cartesius-k40 --workloads bert_base --long
check 'frameworks too new for a machine' 0
has 'and why' 'deepspeed-zero1 needs GPUs of pascal or newer; k40 is kepler'
hasnt 'which have no row' '^ bert_base +megatron-core'
run match --systems nowhere
check 'an unknown system' 2 'nowhere'
run match --system iris-v100 --systems das5-titanx
check 'systems given twice' 2 'are the same list'
run match -s iris-v100,dgx-h100 -w 'resnet50,gpt:layers=4,hidden=512,seq=512,vocab=1024' -f pytorch-ddp -p fp32 --weights 3,1 --prices 10,40USD --carbon 360 --json
check 'a mix of workloads' 0
worked=$(field '(lambda rate, joule, mix: abs(mix["speed_ratio"] * (0.75 * rate[0] / rate[1] + 0.25 * rate[2] / rate[3]) - 1) < 1e-9 and abs(mix["cost_ratio"] * mix["speed_ratio"] / 4 - 1) < 1e-9 and abs(mix["energy_ratio"] * (0.75 * rate[0] / joule[0] + 0.25 * rate[2] / joule[2]) / (0.75 * rate[0] / joule[1] + 0.25 * rate[2] / joule[3]) - 1) < 1e-9)([r["throughput_samples_per_s"] for r in d["results"]], [r["samples_per_joule"] for r in d["results"]], d["mix"][0])')
if [ "$worked" = True ]; then echo 'ok the mix by hand'; else bad 'the mix by hand' "$worked"; fi
carbon=$(field 'all(abs(r["carbon_kg_per_million_samples"] * r["samples_per_joule"] * 10 - 1) < 1e-9 for r in d["results"])')
if [ "$carbon" = True ]; then echo 'ok carbon of a million samples'; else bad 'carbon of a million samples' "$carbon"; fi
run match -s iris-v100 -w resnet50,bert_base --epochs 90 -f pytorch-ddp
has 'why a workload has no line' '^bert_base: runs on none of these systems: --epochs: bert_base has no usual dataset'
run match -s iris-v100 -w resnet50,vgg16 --weights 1
check 'a weight for each workload' 2 'expected 2 amounts'

# Stages: on one kind as the strategy pipeline orders them; commands give what is asked.
run search --heterogeneous iris-v100:2,das5-titanx:4 --workload resnet50 --framework pytorch-ddp --global-batch 256 --place stages --devices-per-node 1 --json
check 'stages' 0
ordered=$(field 'all(a["throughput_samples_per_s"] >= b["throughput_samples_per_s"] for a, b in zip(d["results"], d["results"][1:]))')
if [ "$ordered" = True ]; then echo 'ok stages sorted by time'; else bad 'stages sorted by time' "$ordered"; fi
both=$(field 'max(r["throughput_samples_per_s"] for r in d["results"] if "iris" in r["nodes"] and "das5" in r["nodes"])')
alone=$(field 'max(r["throughput_samples_per_s"] for r in d["results"] if r["nodes"] == "iris-v100:2")')
if python3 -c "import sys; sys.exit(not $both > $alone)"; then echo 'ok four slow nodes help two fast ones'; else bad 'slow nodes help' "$both $alone"; fi
run search --heterogeneous iris-v100:2,das5-titanx:4 --workload resnet50 --framework pytorch-ddp --global-batch 256 --place stages --micro-batch 100
check 'micro-batches that do not divide' 2 'does not divide'
run search --heterogeneous iris-v100:2,das5-titanx:2 --framework pytorch-ddp --place stages --jobs resnet50
check 'stages of several jobs' 2 'give one'

# Parts: servers on other nodes, and decoding on nodes with many cores.
run search --heterogeneous iris-v100:2,cartesius-knl:2 --workload vgg16 --framework tensorflow-ps --input real --place parts --json
check 'parts' 0
ordered=$(field 'all(a["throughput_samples_per_s"] >= b["throughput_samples_per_s"] for a, b in zip(d["results"], d["results"][1:]) if a["fits"] == b["fits"])')
if [ "$ordered" = True ]; then echo 'ok parts sorted by time'; else bad 'parts sorted by time' "$ordered"; fi
run search --heterogeneous iris-v100:2,cartesius-knl:2 --framework pytorch-ddp --place parts
check 'no part to place' 2 'has no parameter servers'

# Figures and pages of match and advise.
run plot match --systems iris-v100,das5-titanx --workloads resnet50,vgg16 --framework pytorch-ddp --csv
check 'numbers of plot match' 0
has 'a row for each network and system' '^2,.*das5-titanx'
run plot advise --system iris-v100 --workload vgg16 --framework pytorch-ddp --nodes 8 --csv
check 'numbers of plot advise' 0
has 'the combination is there' 'together'
run report --systems iris-v100,das5-titanx --workloads resnet50 --framework pytorch-ddp,horovod-tensorflow --no-figures --markdown
check 'a page about match' 0
has 'its answer' 'resnet50: .* on iris-v100 trains [0-9]+ samples/s'

# The choices as a figure and a page: what search wrote, in its order; another table is refused.
for place in nodes stages parts; do
    run search --heterogeneous iris-v100:2,das5-titanx:2 --workload resnet50 --framework tensorflow-ps --input real --global-batch 256 --place $place --csv -o "$SCRATCH/$place.csv"
    check "a table of $place" 0
    run plot heterogeneous "$SCRATCH/$place.csv" --csv
    check "numbers of $place" 0
    python3 - "$SCRATCH/$place.csv" "$SCRATCH/out" << 'PY'
import csv, sys
wrote, drawn = ([r for r in csv.DictReader(open(p)) if r.get("fits") != "false"] for p in sys.argv[1:3])
drawn.sort(key=lambda r: float(r["line"]))
same = len(drawn) == len(wrote) > 1 and all(abs(float(d["rate"]) / float(w["throughput_samples_per_s"]) - 1) < 1e-12
                                            and abs(float(d["per_joule"]) * float(w["sample_energy_j"]) - 1) < 1e-12 for d, w in zip(drawn, wrote))
print("ok each choice is drawn" if same else "not ok each choice is drawn: %d of %d" % (len(drawn), len(wrote)))
PY
    run report "$SCRATCH/$place.csv" --no-figures --markdown
    check "a page about $place" 0
    has 'the best choice is the answer' '^> iris-v100:[12].* samples/s \(80 % interval'
done
run plot heterogeneous "$SCRATCH/stages.csv" --csv
has 'stages are counted' 'iris-v100:2; 1 stage|2 stages'
run report "$SCRATCH/stages.csv" --no-figures --markdown
has 'stages are listed' '^- iris-v100:[12] conv1\.\.'
printf 'nodes,split\n' > "$SCRATCH/short.csv"
run plot heterogeneous "$SCRATCH/short.csv" --csv
check 'another table' 3 'short.csv:1:1: error: .*expected what'
sed '2s/\(,[a-z]*,\)[0-9.]*/\1-1/' "$SCRATCH/nodes.csv" > "$SCRATCH/broken.csv"
run plot heterogeneous "$SCRATCH/broken.csv" --csv
check 'a rate below 0' 3 'broken.csv:2:.*above 0'
run plot heterogeneous
check 'no table of choices' 2 'takes one file'
