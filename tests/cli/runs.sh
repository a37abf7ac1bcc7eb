#!/bin/sh
# Tables of runs from elsewhere: units, words for the input, reasons why a row is skipped that say what was expected.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh

table=$SCRATCH/runs.csv
cat > "$table" <<'T'
id,source,system,framework,strategy,workload,input,precision,optimizer,nodes,devices_per_node,batch_per_device,metric,value,unit,notes
s,here,iris-v100,pytorch-ddp,data,resnet50,,fp32,,1,1,32,iteration,0.1,s,"a note, with ""quotes"""
ms,here,iris-v100,pytorch-ddp,data,resnet50,synthetic,fp32,,1,1,32,iteration,100,ms,
none,here,iris-v100,pytorch-ddp,,resnet50,224x224,,,1,1,32,iteration,0.1,,
rate,here,iris-v100,pytorch-ddp,data,resnet50,real,fp32,,1,1,32,throughput,320,images/s,
odd,here,iris-v100,pytorch-ddp,data,resnet50,,fp32,,1,1,32,throughput,320,tokens/s,
amp,here,iris-v100,pytorch-ddp,data,resnet50,,amp,,1,1,32,throughput,320,samples/s,
nag,here,iris-v100,pytorch-ddp,data,resnet50,,fp32,nesterov,1,1,32,throughput,320,samples/s,
way,here,iris-v100,pytorch-ddp,sideways,resnet50,,fp32,,1,1,32,throughput,320,samples/s,
T
run compare "$table" --rows --csv
check 'a table with odd rows is compared' 0
# The same measurement in seconds, milliseconds and without a unit: one value.
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "measured") c = i } $1 == "s" || $1 == "ms" || $1 == "none" { print $c }' "$SCRATCH/out" | sort -u > "$SCRATCH/values"
run compare "$table" --long
has 'tokens are not samples' 'odd .*unit "tokens/s" of throughput: expected samples/s'
has 'precisions are named' 'amp .*unknown precision "amp"; expected fp32, tf32, mixed'
has 'optimizers are named' 'nag .*unknown optimizer "nesterov"; expected sgd, momentum'
has 'strategies are named' 'way .*unknown strategy "sideways"'
has 'images a second are samples a second' 'rate .*320\.0 +samples/s +[0-9-]'
cp "$SCRATCH/values" "$SCRATCH/out"
[ "$(wc -l < "$SCRATCH/values")" -eq 1 ] || echo 'several values' >> "$SCRATCH/out"
hasnt 'seconds and milliseconds agree' 'several'
has 'as seconds' '^0\.1'

# Real samples without a dataset are those of the workload's usual one, as for `predict --input real`; unless the devices decode.
cat > "$SCRATCH/real.csv" <<'T'
id,source,system,framework,framework_version,strategy,workload,data,dataset,precision,nodes,devices_per_node,batch_per_device,metric,value,unit
usual,here,dgx1-v100,tensorflow-mirrored,2.0,data,alexnet,real,,mixed,1,8,128,throughput,4000,samples/s
named,here,dgx1-v100,tensorflow-mirrored,2.0,data,alexnet,real,imagenet,mixed,1,8,128,throughput,4000,samples/s
none,here,dgx1-v100,tensorflow-mirrored,2.0,data,alexnet,synthetic,,mixed,1,8,128,throughput,4000,samples/s
dali,here,dgx1-v100,horovod-tensorflow,NGC 20.03-tf1,data,resnet50,real,,mixed,1,8,128,throughput,4000,samples/s
same,here,dgx1-v100,horovod-tensorflow,NGC 20.03-tf1,data,resnet50,synthetic,,mixed,1,8,128,throughput,4000,samples/s
T
run compare "$SCRATCH/real.csv" --rows --csv
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "predicted") c = i; next } { v[$1] = $c }
    END { print (v["usual"] == v["named"]), (v["usual"] < 0.8 * v["none"]), (v["dali"] > 0.98 * v["same"]) }' "$SCRATCH/out" > "$SCRATCH/values"
cp "$SCRATCH/values" "$SCRATCH/out"
has 'the usual dataset is decoded, on the host or not' '^1 1 1$'

# A row without a strategy runs as the framework does: with the ranks and the stage of its columns, tensor ranks that no column gives are 1.
cat > "$SCRATCH/own.csv" <<'T'
id,source,system,framework,workload,precision,nodes,devices_per_node,global_batch,tp,pp,cp,zero,zero_group,metric,value,unit
ranks,here,dgx-h100,megatron-core,llama3_8b,bf16,2,8,64,2,2,,,,iteration,4,s
cut,here,dgx-h100,megatron-core,llama3_8b,bf16,2,8,64,,,2,,,iteration,4,s
stage,here,dgx-h100,pytorch-fsdp2,llama3_8b,bf16,2,8,64,,,,3,8,iteration,4,s
bare,here,iris-v100,pytorch-ddp,resnet50,fp32,2,4,256,,,,,,iteration,0.1,s
T
run compare "$SCRATCH/own.csv" --rows --csv
cell() { awk -F, -v row="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "predicted") c = i } $1 == row { print $c }' "$SCRATCH/rows"; }
time_of() { run predict -n 2 --json "$@" && sed -n 's/^ *"iteration_s": *\([^,]*\),*/\1/p' "$SCRATCH/out"; }
cp "$SCRATCH/out" "$SCRATCH/rows"
{
    echo "$(cell ranks)" "$(time_of -p bf16 -B 64 -s dgx-h100 -w llama3_8b -f megatron-core --tp 2 --pp 2 --strategy 3d)"
    echo "$(cell cut)" "$(time_of -p bf16 -B 64 -s dgx-h100 -w llama3_8b -f megatron-core --tp 1 --cp 2 --strategy 3d)"
    echo "$(cell stage)" "$(time_of -p bf16 -B 64 -s dgx-h100 -w llama3_8b -f pytorch-fsdp2 --strategy zero3 --zero-group 8)"
    echo "$(cell bare)" "$(time_of -s iris-v100 -w resnet50 -f pytorch-ddp -p fp32 -B 256)"
} > "$SCRATCH/values"
awk '{ d = $1 / $2 - 1; print (NF == 2 && d < 1e-5 && d > -1e-5 ? "same" : "not the same: " $0) }' "$SCRATCH/values" > "$SCRATCH/out"
hasnt 'a row without a strategy is what predict says' 'not'
has 'four of them' 'same'

# A column that is nearly one of a table of runs is a slip; any other is the user's own.
sed '1s/precision/precison/' "$SCRATCH/own.csv" > "$SCRATCH/slip.csv"
run compare "$SCRATCH/slip.csv"
check 'a misspelled column' 3 "slip\.csv:1:1: error: precison: .* did you mean 'precision'"
sed '1s/$/,my_notes/; 2,$s/$/,x/' "$SCRATCH/own.csv" > "$SCRATCH/more.csv"
run compare "$SCRATCH/more.csv"
check 'a column of the user' 0

# The factor of an anchor is found where the prediction jumps over the measured time, too; a group is refused only where its smallest run
# was faster than predicted.
refused='was faster than its predicted communication and overhead alone'
run compare data/unseen/dp_mlperf_large.csv data/unseen/dp_mlperf_v21.csv --anchor --rows --csv
check 'anchors next to jumps' 0
hasnt 'no group is refused' "$refused"
run compare data/runs/paradl_abci.csv --anchor --rows --csv
has 'a run faster than the rest of its prediction' "$refused"
run compare data/runs/paradl_abci.csv --rows --csv
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next } $1 == "paradl-0592" { print ($c["measured"] < $c["predicted"] ? "faster" : "slower") }' "$SCRATCH/out" > "$SCRATCH/values"
cp "$SCRATCH/values" "$SCRATCH/out"
has 'it was faster than predicted' '^faster$'

# What a run measured of its own collectives: broken links inside a node skip it, slow calls over all ranks say that ranks checked each other.
cat > "$SCRATCH/rates.csv" <<'T'
id,source,system,framework,pp_fix,strategy,workload,precision,nodes,devices_per_node,global_batch,dp,tp,pp,micro_batch,metric,value,unit,allreduce_intra_node_gb_per_s,allgather_gb_per_s
fast,here,hf-h100-efa,nanotron,True,3d,llama3_8b,bf16,8,8,256,8,8,1,1,iteration,4,s,458,180
slow,here,hf-h100-efa,nanotron,True,3d,llama3_8b,bf16,8,8,256,8,8,1,1,iteration,4,s,425,54
open,here,hf-h100-efa,nanotron,True,3d,llama3_8b,bf16,8,8,256,8,8,1,1,iteration,4,s,,
broken,here,hf-h100-efa,nanotron,True,3d,llama3_8b,bf16,8,8,256,8,8,1,1,iteration,4,s,45.3,54
T
run compare "$SCRATCH/rates.csv" --rows --csv
has 'a run on broken links is skipped' '^broken,.*true,.*measured 10 % of the usual rate'
cp "$SCRATCH/out" "$SCRATCH/rows"
echo "$(cell fast) $(cell slow) $(cell open)" | awk '{ print ($2 > 1.5 * $1 && $2 == $3 ? "as measured" : "not: " $0) }' > "$SCRATCH/out"
has 'checks take their time where the run measured them' '^as measured$'
