#!/bin/sh
# profiles: what Nsight Systems exports, against the same events in a trace of PyTorch's profiler, and against numbers by hand.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
trace=tests/fixtures/trace/gpu.json
set -- --workload resnet18 --system iris-v100

# ---- the database
if ! "$DLMODEL" -v --version 2> /dev/null | grep -q SQLite; then
    printf 'SQLite format 3\000and more' > "$SCRATCH/p.sqlite"
    run import trace "$SCRATCH/p.sqlite" "$@" --batch 32
    check 'built without SQLite, and it says so' 6 'built without it: install libsqlite3-dev'
elif ! python3 -c 'import sqlite3' 2> /dev/null; then
    echo "skip profiles: no sqlite3 in python3, which writes the database"
else
    python3 tests/python/nsys_export.py "$trace" "$SCRATCH/plain.json" "$SCRATCH/p.sqlite"
    run import trace "$SCRATCH/plain.json" "$@" --batch 32
    cp "$SCRATCH/out" "$SCRATCH/expected"
    run import trace "$SCRATCH/p.sqlite" "$@" --batch 32
    check 'an export of nsys' 0 'forward .* ms, backward'
    says 'the same layer times as of the same events in JSON' cmp -s "$SCRATCH/out" "$SCRATCH/expected"
    run import "$SCRATCH/p.sqlite" "$@" --batch 32
    check 'it is recognized' 0 'read as trace'
    python3 tests/python/nsys_export.py "$trace" "$SCRATCH/plain.json" "$SCRATCH/two.sqlite" 2
    run import trace "$SCRATCH/two.sqlite" "$@" --batch 32
    check 'layers of two ranks' 3 'layers of several processes'
    head -c 6000 "$SCRATCH/p.sqlite" > "$SCRATCH/cut.sqlite"
    run import trace "$SCRATCH/cut.sqlite" "$@" --batch 32
    check 'a database that is cut off' 3 'error: expected an export of nsys'
    python3 - "$SCRATCH" << 'P'
import os, sqlite3, sys
for name, sql in (("none", "CREATE TABLE t (x)"), ("view", "CREATE TABLE t (x); CREATE VIEW NVTX_EVENTS AS SELECT 1 AS start"),
                  ("columns", "CREATE TABLE NVTX_EVENTS (x)"),
                  ("empty", 'CREATE TABLE NVTX_EVENTS (start, "end", text, globalTid)')):
    db = sqlite3.connect(os.path.join(sys.argv[1], name + ".sqlite"))
    db.executescript(sql)
    db.close()
P
    for name in none view; do
        run import trace "$SCRATCH/$name.sqlite" "$@" --batch 32
        check "no table of ranges ($name)" 3 'with ranges of NVTX'
    done
    run import trace "$SCRATCH/columns.sqlite" "$@" --batch 32
    check 'other columns' 3 'expected an export of nsys: no such column'
    run import trace "$SCRATCH/empty.sqlite" "$@" --batch 32
    check 'no range' 3 'expected ranges named layer:NAME:forward'
fi

# ---- the table: 10 iterations; conv1 2.5 ms each, bn1 twice in each
cat > "$SCRATCH/p.csv" << 'T'
Processing [p.sqlite] with [nvtx_gpu_proj_sum.py]...
Range,Style,Total Proj Time (ns),Total Range Time (ns),Range Instances,Proj Avg (ns),Proj Med (ns)
:layer:conv1:forward,PushPop,25000000,26000000,10,2500000,2500000
:layer:conv1:backward,PushPop,50000000,26000000,10,5000000,5000000
:layer:bn1:forward,PushPop,8000000,26000000,20,400000,400000
:layer:maxpool:forward,PushPop,1000000,26000000,10,400000,400000
:layer:relu:forward,PushPop,1000000,26000000,10,400000,400000
:Optimizer.step#SGD.step,PushPop,1230000,26000000,10,123000,123000
:something else,PushPop,1,1,1,1,1
T
run import trace "$SCRATCH/p.csv" "$@" --batch 32
check 'a table of nsys' 0 '10 iterations'
tr -d '\n ' < "$SCRATCH/out" > "$SCRATCH/flat" && mv "$SCRATCH/flat" "$SCRATCH/out"
has 'an average' '"name":"conv1","forward_s":0.0025,"backward_s":0.005'
has 'two of a layer in an iteration' '"name":"bn1","forward_s":0.0008'
has 'the update' '"update_s":0.000123'
run import trace "$SCRATCH/p.csv" "$@" --batch 32 --steps 5
tr -d '\n ' < "$SCRATCH/out" > "$SCRATCH/flat" && mv "$SCRATCH/flat" "$SCRATCH/out"
has 'of as many iterations as given' '"name":"conv1","forward_s":0.005'
sed 's/,10,2500000/,none,2500000/' "$SCRATCH/p.csv" > "$SCRATCH/bad.csv"
run import trace "$SCRATCH/bad.csv" "$@" --batch 32
check 'an invalid number of instances' 3 'bad.csv:2'
grep -v layer "$SCRATCH/p.csv" > "$SCRATCH/bad.csv"
run import trace "$SCRATCH/bad.csv" "$@" --batch 32
check 'no layer' 3 'expected ranges of NVTX named layer:NAME:forward'
