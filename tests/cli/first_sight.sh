#!/bin/sh
# first_sight.sh - the record of first sights: what is recorded is what is compared, and never changes.
. tests/cli/lib.sh
set -u

run compare data/first_sight/*.csv --csv
check 'the record is as it was recorded' 0
says 'every file of the record is in its chain' [ "$(cut -d ' ' -f 2 data/first_sight/chain | LC_ALL=C sort)" = \
    "$(basename -s .csv -a data/first_sight/*.csv | LC_ALL=C sort)" ]
# Its errors follow from its predictions: another program than the one that wrote them.
if command -v python3 > /dev/null 2>&1; then
python3 - data/first_sight/*.csv > "$SCRATCH/wrong" << 'END'
import csv, sys
for path in sys.argv[1:]:
    for row in csv.DictReader(open(path, newline="")):
        if row["predicted"] == "": continue
        predicted, measured = float(row["predicted"]), float(row["measured"])
        error = predicted / measured - 1 if row["unit"] in ("s", "ms", "us") else measured / predicted - 1
        inside = float(row["low"]) <= measured <= float(row["high"])
        if abs(100 * error - float(row["time_error_pct"])) > 1e-3 * abs(100 * error) + 1e-4 or inside != (row["in_interval"] == "1"):
            print(path, row["id"])
END
status=$?
says 'errors and coverage of each record follow from its prediction' [ "$status$(cat "$SCRATCH/wrong")" = 0 ]
else
    echo 'skip errors and coverage of each record follow from its prediction: no python3 (Debian package python3)'
fi

# A folder of data of its own, whose record grows.
mkdir "$SCRATCH/data"
cp -R data/. "$SCRATCH/data"
head -n 4 data/runs/keras_aws.csv > "$SCRATCH/new.csv"
run --data "$SCRATCH/data" compare "$SCRATCH/new.csv" --first-sight new
check 'a source is recorded' 0
says 'with a row for each run, under the columns of the record' [ "$(wc -l < "$SCRATCH/data/first_sight/new.csv") $(head -n 1 "$SCRATCH/data/first_sight/new.csv")" = \
    '4 file,id,source,kind,predicted,low,high,unit,measured,time_error_pct,in_interval,version,date' ]
says 'the record before it is unchanged' cmp -s data/first_sight/runs_3.csv "$SCRATCH/data/first_sight/runs_3.csv"
run --data "$SCRATCH/data" compare "$SCRATCH/data/first_sight/new.csv" --csv
cp "$SCRATCH/out" "$SCRATCH/recorded"
run --data "$SCRATCH/data" compare "$SCRATCH/new.csv" --csv
errors() { sed -n 's/^all-by-source,//p' "$1" | cut -d , -f 2-8; }
says 'the record has the errors that compare prints' [ "$(errors "$SCRATCH/out" | wc -l) $(errors "$SCRATCH/out")" = "1 $(errors "$SCRATCH/recorded")" ]
run --data "$SCRATCH/data" compare "$SCRATCH/new.csv" --first-sight new
check 'a name is recorded once' 2 'new.csv is there'
run --data "$SCRATCH/data" compare "$SCRATCH/new.csv" --first-sight again
check 'a run is recorded once' 2 'recorded already, by version'
run --data "$SCRATCH/data" compare "$SCRATCH/new.csv" --first-sight ../again
check 'a name has no folder' 2 'expected a name'
run --data "$SCRATCH/data" compare data/runs/megatron.csv --first-sight what_if --set device.load_scale=0.5
check 'what-ifs are not recorded' 2 'goes without --set'
run --data "$SCRATCH/data" compare data/collectives/published.csv --first-sight collectives
check 'collectives are not recorded' 2 'is not a table of runs'
sed -i '2s/2016/2017/; 2s/,cnn/,CNN/' "$SCRATCH/data/first_sight/mxnet_k80.csv"
run --data "$SCRATCH/data" compare "$SCRATCH/data/first_sight/new.csv"
check 'a changed line is refused' 3 'mxnet_k80.csv: error: not the file that was recorded'
