#!/bin/bash
# search.sh FOLDER - a real hyper-parameter search on the real Slurm test bed, predicted before it runs: LeNet with PyTorch on two virtual nodes of one core, a grid of
# learning rates and batches. Needs root and a machine that does nothing else (four minutes). Predicted from `calibrate`, a profile of one task for each batch, and one
# trial of one iteration, whose start-up counts; nothing is fitted to the search. FOLDER gets system.json, layers.json, trials.json, predicted.csv, measured.csv, result.txt.
# SEARCH_STEPS (150), SEARCH_PYTHON (/usr/bin/python3), SEARCH_FORM (steps or array).
set -eu
cd "$(dirname "$0")/../.."
export PATH=$PATH:/usr/sbin:/sbin
: "${DLMODEL:=$PWD/build/dlmodel}" "${SEARCH_STEPS:=150}" "${SEARCH_PYTHON:=/usr/bin/python3}" "${SEARCH_FORM:=steps}"
out=$1
mkdir -p "$out"
work=$(mktemp -d)
trap 'bash tests/slurm/testbed.sh stop "$work/bed" > /dev/null 2>&1; rm -rf "$work"' EXIT
bash tests/slurm/testbed.sh start "$work/bed" 2 > "$work/start"
export SLURM_CONF=$work/bed/slurm.conf DLMODEL_SITE=$work/site.json DLMODEL_LOCAL=/dev/null/local.json
sed "s|\"/usr/bin/python3\"|\"$SEARCH_PYTHON\"|; s|\"exclusive\": true|\"exclusive\": false|" tests/slurm/bed.json > "$work/site.json"
drained() { for _ in $(seq 1 240); do [ -n "$(squeue -h 2> /dev/null)" ] || return 0; sleep 0.25; done; }
batches='32 128' rates=0.3,0.1,0.03,0.01

[ -s "$out/system.json" ] || "$DLMODEL" -q calibrate --quick --cores 1 --virtual-nodes 2 -o "$out/system.json"
traces=()
for b in $batches; do
    "$DLMODEL" -q slurm submit --framework pytorch-ddp --workload lenet --batch-per-device "$b" --profile --warmup 10 --steps 60 --dir "$work/profiles" > /dev/null
    drained
    traces+=("$work/profiles/pytorch-ddp-lenet-n1x1-b$b-profile-r1/trace.json")
done
"$DLMODEL" -q import trace "${traces[@]}" --workload lenet --framework pytorch-ddp --batch "${batches// /,}" --system "$out/system.json" -o "$out/layers.json"
campaign() { # campaign ARGS...
    "$DLMODEL" -q campaign --system "$out/system.json" --layers "$out/layers.json" --workload lenet --framework pytorch-ddp --optimizer sgd --devices-per-trial 1 \
        --dispatch 0.05s "$@"
}
search() { # search NODES TRIALS FORM: its folder in $folder
    rm -rf "$work/runs"
    "$DLMODEL" -q slurm submit --campaign "$2" --as "$3" --nodes "$1" --dir "$work/runs" > /dev/null
    drained
    folder=$(echo "$work"/runs/campaign-*)
}
# Start-up of a task: a trial of one iteration, two at once as in the search.
campaign --nodes 2 --until-step 1 --space batch=32 --space lr=0.1,0.01 --export "$work/one.json" > /dev/null
search 2 "$work/one.json" "$SEARCH_FORM"
startup=$(python3 - "$folder" << 'END'
import glob, json, sys
lines = [json.loads(open(f).read().splitlines()[-1]) for f in glob.glob(sys.argv[1] + "/trials/*.jsonl")]
print("%.3f" % (sum(t["train_s"] - t["asked_s"] + t["end_s"] - t["trained_s"] for t in lines) / len(lines)))
END
)
campaign --nodes 2 --until-step "$SEARCH_STEPS" --space "batch=${batches// /,}" --space lr=$rates --startup "${startup}s" --show schedule --csv \
    --export "$out/trials.json" -o "$out/predicted.csv"
search 2 "$out/trials.json" "$SEARCH_FORM"
"$DLMODEL" slurm collect --campaign "$folder" -o "$out/measured.csv" 2> "$out/result.txt"
python3 - "$out" "$startup" << 'END' | tee -a "$out/result.txt"
import csv, sys
end = {n: max(float(r["end_s"]) for r in csv.DictReader(open("%s/%s.csv" % (sys.argv[1], n)))) for n in ("predicted", "measured")}
print("start-up of a task %s s; makespan predicted %.1f s, measured %.1f s: %+.1f %%" % (sys.argv[2], end["predicted"], end["measured"],
                                                                                   100 * (end["predicted"] / end["measured"] - 1)))
END
cat "$out/result.txt"
