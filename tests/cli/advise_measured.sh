#!/bin/sh
# advise_measured.sh - three pieces of advice, as tests/advise/measure.sh measured them with PyTorch DDP on two cores: bucket size, gradient accumulation, batch.
# The measured gain is the median over the rounds of the ratio within a round. Of 80 % intervals at least 80 % hold it, and where an interval lies on one side of 0,
# the measured gain has its sign. What advise recommends, a gain of 0.5 % or more, gained.
cd "$(dirname "$0")/../.." || exit 2
. tests/cli/lib.sh
here=tests/fixtures/advise
: > "$SCRATCH/held"
compare() { # compare WORKLOAD BASE SYSTEM ARGS...
    workload=$1 base=$2 system=$3
    shift 3
    DLMODEL_LOCAL=$PWD/$here/$system.json run advise --system local --framework pytorch-ddp --nodes 2 --optimizer sgd --workload "$workload" --layers "$here/layers-$workload.json" "$@" --json
    check "advise $workload" 0
    python3 - "$SCRATCH/out" "$here/advise_$workload.csv" "$base" "$SCRATCH/held" << 'PY'
import csv, json, re, statistics, sys
advice = json.load(open(sys.argv[1]))
rows = list(csv.DictReader(open(sys.argv[2])))
rate = {(r["setting"], r["round"]): float(r["batch_per_device"]) / float(r["iteration_s"]) for r in rows}
rounds = sorted({r["round"] for r in rows})
for setting in dict.fromkeys(r["setting"] for r in rows):
    if setting == sys.argv[3]:
        continue
    kind, number = setting.split("-")
    text = {"bucket": "buckets of %s MiB", "batch": "%s samples per device", "accumulate": "accumulate gradients over %s micro-batches of"}[kind] % number
    a = next(a for a in advice["advice"] if a["advice"] == kind and a["change"].startswith(text))
    gain = statistics.median(rate[setting, r] / rate[sys.argv[3], r] for r in rounds) - 1
    low, high = a["gain_low_frac"], a["gain_high_frac"]
    if low > 0 or high < 0:
        print(("ok " if gain * low > 0 else "not ok ") + "sign: " + a["change"])
    if a["gain_frac"] >= 0.005:
        print(("ok " if gain > 0 else "not ok ") + "what is recommended gained: " + a["change"])
    with open(sys.argv[4], "a") as held:
        held.write("%d\n" % (low <= gain <= high))
    print("# %s: predicted %+.1f %% (%+.1f to %+.1f), measured %+.1f %%" % (a["change"], 100 * a["gain_frac"], 100 * low, 100 * high, 100 * gain))
PY
}
compare resnet18 base system --set input=64x64 --batch-per-device 4
compare lenet tensor system --batch-per-device 8 --set bucket_bytes=1048.576
compare densenet121 tensor system-densenet121 --set input=32x32 --batch-per-device 2 --set bucket_bytes=1048.576
all=$(wc -l < "$SCRATCH/held") held=$(grep -c 1 "$SCRATCH/held")
if [ "$all" -eq 11 ] && [ $((held * 10)) -ge $((all * 8)) ]; then echo "ok $held of $all intervals hold the measured gain"; else bad 'intervals' "$held of $all"; fi
