#!/bin/sh
# Wrong arguments end with 2, broken files with 3 and FILE:LINE:COL: error: KEY: what was expected. Nothing crashes.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH

system() { # system NAME TEXT...: a system file; predict on it
    name=$1
    shift
    printf '%s' "$*" > "$work/$name.json"
    run predict --system "$work/$name.json" --workload resnet50 --framework ideal
}
good='{"format": "dlmodel-system", "version": 1, "name": "x", "summary": "s", "source": "mem", "device": "v100_sxm2_16",
 "nodes": 4, "devices_per_node": 4'
intra='"links": {"intra": {"kind": "nvlink2", "source": "mem", "bandwidth_bytes_per_s": 1e11, "latency_s": 1e-6, "peer_to_peer": true},
 "inter": {"kind": "infiniband", "source": "mem", "bandwidth_bytes_per_s": 1e10, "latency_s": 1e-6, "rdma": true}}'

system fine "$good, $intra}"
check 'the file that the others break is good' 0

# Broken JSON
system truncated "$good, "
check 'truncated' 3 'truncated\.json:[0-9]+:[0-9]+: error: '
system comma "$good,, $intra}"
check 'two commas' 3 'comma\.json:2:[0-9]+: error: '
system trailing "$good, $intra} x"
check 'text after the end' 3 'trailing\.json:[0-9]+:[0-9]+: error: '
system brackets '[1, 2]'
check 'an array for an object' 3 'brackets\.json:1:1: error: '
system word 'hello'
check 'no JSON at all' 3 'word\.json:1:1: error: '
: > "$work/empty.json"
run predict --system "$work/empty.json"
check 'empty file' 3 'empty\.json.*error: .*empty'
system twice "$good, \"nodes\": 5, $intra}"
check 'a key twice' 3 'twice\.json:2:[0-9]+: error: nodes: '
awk 'BEGIN { for (i = 0; i < 20000; i++) printf "["; print "" }' > "$work/deep.json"
run predict --system "$work/deep.json"
check 'nested 20000 deep' 3 'deep\.json:1:[0-9]+: error: '
awk 'BEGIN { for (i = 0; i < 3000; i++) printf "{\"a\":"; print "1" }' > "$work/objects.json"
run predict --system "$work/objects.json"
check 'objects 3000 deep' 3 'objects\.json:1:[0-9]+: error: '
printf '\377\376\000x' > "$work/binary.json"
run predict --system "$work/binary.json"
check 'binary' 3 'binary\.json.*error: '
dd if=/dev/zero of="$work/big.json" bs=1 count=0 seek=104857600 2> /dev/null
run predict --system "$work/big.json"
check '100 MB file' 3 'big\.json.*error: '
json() { # json NAME TEXT: the bytes as they are (printf escapes)
    # shellcheck disable=SC2059
    printf "$2" > "$work/$1.json" # the format is this file's own
    run predict --system "$work/$1.json"
    check "JSON: $1" 3 "$1\\.json:[0-9]+:[0-9]+: error: "
}
json trailing_comma '{"format": "dlmodel-system", "version": 1,}'
json single_quotes "{'format': 'dlmodel-system'}"
json two_documents '{"format": "dlmodel-system", "version": 1} {"a": 1}'
json line_comment '{"format": "dlmodel-system", // no\n "version": 1}'
json leading_zero '{"format": "dlmodel-system", "version": 01}'
json leading_plus '{"format": "dlmodel-system", "version": +1}'
json hexadecimal '{"format": "dlmodel-system", "version": 0x1}'
json control_character '{"format": "dlmodel-system", "version": 1, "name": "a\001"}'
json not_utf8 '{"format": "dlmodel-system", "version": 1, "name": "a\377"}'
json half_a_surrogate '{"format": "dlmodel-system", "version": 1, "name": "\\ud800"}'
json open_string '{"format": "dlmodel-system", "version": 1, "name": "a'
json no_format '{"version": 1}'
json zero_byte '{"format": "dlmodel-system", \000 "version": 1}'

# The good file cut off after any number of bytes, in steps
length=$(wc -c < "$work/fine.json") at=1 wrong=
while [ "$at" -lt "$length" ]; do
    head -c "$at" "$work/fine.json" > "$work/cut.json"
    run predict --system "$work/cut.json"
    [ "$status" -eq 3 ] && grep -Eq 'cut\.json:[0-9]+:[0-9]+: error: ' "$work/err" || wrong="$wrong $at"
    at=$((at + 7))
done
status=${wrong:+1}
status=${status:-0}
check "cut off anywhere$wrong" 0

# Wrong keys and values
system unknown "$good, \"colour\": 1, $intra}"
check 'unknown key' 3 'unknown\.json:2:[0-9]+: error: colour: unknown key'
system misspelt "$good, $(printf '%s' "$intra" | sed 's/latency_s/latncy_s/')}"
check 'misspelt key with suggestion' 3 'misspelt\.json:[0-9]+:[0-9]+: error: links\.intra\.latncy_s: .*latency_s'
system type "$(printf '%s' "$good" | sed 's/"nodes": 4/"nodes": "four"/'), $intra}"
check 'text for a number' 3 'type\.json:2:[0-9]+: error: nodes: expected'
system negative "$(printf '%s' "$good" | sed 's/"nodes": 4/"nodes": -4/'), $intra}"
check 'negative count' 3 'negative\.json:2:[0-9]+: error: nodes: expected'
system fraction "$(printf '%s' "$good" | sed 's/"nodes": 4/"nodes": 4.5/'), $intra}"
check 'fraction of a node' 3 'fraction\.json:2:[0-9]+: error: nodes: expected'
system speed "$good, $(printf '%s' "$intra" | sed 's/1e11/-3/')}"
check 'negative bandwidth' 3 'speed\.json:[0-9]+:[0-9]+: error: links\.intra\.bandwidth_bytes_per_s: expected'
system nan "$good, $(printf '%s' "$intra" | sed 's/1e11/NaN/')}"
check 'NaN' 3 'nan\.json:[0-9]+:[0-9]+: error: '
system infinite "$good, $(printf '%s' "$intra" | sed 's/1e11/1e999/')}"
check 'infinite' 3 'infinite\.json:[0-9]+:[0-9]+: error: '
system null "$(printf '%s' "$good" | sed 's/"nodes": 4/"nodes": null/'), $intra}"
check 'null' 3 'null\.json:2:[0-9]+: error: nodes: '
system list "$good, \"links\": [1]}"
check 'a list for an object' 3 'list\.json:2:[0-9]+: error: links: expected'
system format "$(printf '%s' "$good" | sed 's/dlmodel-system/dlmodel-device/'), $intra}"
check 'another format' 3 'format\.json:1:[0-9]+: error: format: '
system version "$(printf '%s' "$good" | sed 's/"version": 1/"version": 7/'), $intra}"
check 'another version' 3 'version\.json:1:[0-9]+: error: version: '
system required '{"format": "dlmodel-system", "version": 1, "name": "x"}'
check 'missing keys' 3 'required\.json.*error: [a-z_]+: '
system device "$(printf '%s' "$good" | sed 's/v100_sxm2_16/v100_sxm2_17/'), $intra}"
check 'unknown device, with suggestion' 3 'v100_sxm2_1'
system missing_link "$good}"
run predict --system "$work/missing_link.json" --workload resnet50 --framework ideal --nodes 2
check 'no links where they are needed' 3 'link'

# Files that are none
run predict --system "$work/no such file.json"
check 'missing file' 3 'no such file\.json'
run predict --system "$work/"
check 'directory for a file' 3 'error'
mkdir "$work/dir.json"
run predict --system "$work/dir.json"
check 'directory named like a file' 3 'dir\.json.*director'
ln -s loop.json "$work/loop.json"
run predict --system "$work/loop.json"
check 'link to itself' 3 'loop\.json'
run predict --workload "$work/none.json"
check 'missing workload file' 3 'none\.json'
ln -s nowhere.json "$work/dangling.json"
run predict --system "$work/dangling.json"
check 'link to nothing' 3 'dangling\.json'
run predict --system "$work/fine.json/x.json"
check 'a file where a folder should be' 3 'fine\.json'
run predict --system /dev/zero
check 'a file without an end' 3 'at most'
run predict --system /dev/null
check 'a device without bytes' 3 'empty'
if [ "$(id -u)" -ne 0 ]; then # root reads everything
    cp "$work/fine.json" "$work/secret.json"
    chmod 000 "$work/secret.json"
    run predict --system "$work/secret.json"
    check 'unreadable file' 3 'secret\.json.*ermission'
fi
DLMODEL_LOCAL=$work/none.json run predict --system local
check 'no profile yet' 2 'dlmodel calibrate'

# Devices and frameworks
folder=$work/more
mkdir -p "$folder/devices" "$folder/systems"
device() { # device NAME MEMBERS: a system with that device
    printf '{"format": "dlmodel-device", "version": 1, "name": "%s", "summary": "s", "source": "mem", "kind": "gpu",\n%s}' "$1" "$2" \
        > "$folder/devices/$1.json"
    printf '{"format": "dlmodel-system", "version": 1, "name": "x", "summary": "s", "source": "mem", "device": "%s", "nodes": 1, "devices_per_node": 1}' \
        "$1" > "$folder/systems/with_$1.json"
    run --data "$folder" predict --system "with_$1" --workload lenet --framework ideal
}
rates='"rates": [{"precision": "fp32", "unit": "vector", "peak_flop_per_s": 1e12, "source": "mem"}]'
memory='"memory_bytes": 1e9, "memory_bandwidth_bytes_per_s": 1e11'
device usable "$memory, $rates"
check 'the device that the others break is good' 0
device narcissus "$memory, $rates, \"kernel_models_from\": \"narcissus\""
check 'kernels borrowed from itself' 3 'narcissus\.json:2:[0-9]+: error: kernel_models_from: '
device borrower "$memory, $rates, \"kernel_models_from\": \"v100_sxm2_61\""
check 'kernels borrowed from nobody' 3 'borrower\.json:2:[0-9]+: error: kernel_models_from: .*v100_sxm2_16'
device empty_rates "$memory, \"rates\": []"
check 'no rates' 3 'empty_rates\.json:2:[0-9]+: error: rates'
device slow "$memory, $(printf '%s' "$rates" | sed 's/1e12/-1e12/')"
check 'negative rate' 3 'slow\.json:2:[0-9]+: error: rates\[0\]\.peak_flop_per_s: expected'
device foreign "$memory, $(printf '%s' "$rates" | sed 's/fp32/fp23/')"
check 'unknown precision' 3 'foreign\.json:2:[0-9]+: error: rates\[0\]\.precision: expected one of'
device misattributed "$memory, $rates, \"sources\": {\"memory_byte\": \"mem\"}"
check 'source of what is not there' 3 'misattributed\.json:2:[0-9]+: error: sources\.memory_byte: '

framework() { # framework NAME MEMBERS BEHAVIOUR LIBRARY
    printf '{"format": "dlmodel-framework", "version": 1, "name": "f", "summary": "s", "source": "mem", "release": "1",\n"behaviour": "%s", "library": "%s"%s}' \
        "$3" "$4" "$2" > "$work/$1.json"
    run predict --system iris-v100 --framework "$work/$1.json"
}
framework usable_framework ', "bucket_bytes": 25e6' bucketed nccl
check 'the framework that the others break is good' 0
framework behaviour '' buckets nccl
check 'unknown behaviour' 3 'behaviour\.json:2:[0-9]+: error: behaviour: '
framework library '' bucketed ncll
check 'unknown library, with suggestion' 3 "library\\.json:2:[0-9]+: error: library: .*did you mean nccl"
framework bucket ', "bucket_bytes": -1' bucketed nccl
check 'negative bucket' 3 'bucket\.json:2:[0-9]+: error: bucket_bytes: expected'
framework fraction_above_1 ', "fragmentation_frac": 7' bucketed nccl
check 'a fraction above 1' 3 'fraction_above_1\.json:2:[0-9]+: error: fragmentation_frac: expected'

# What a behaviour cannot do without is checked in the file and after --set.
framework no_cycle ', "fusion_bytes": 67108864' tensor-fusion nccl
check 'tensor fusion without its cycle' 3 'no_cycle\.json:1:1: error: cycle_s: required, missing: time between two checks'
run predict --system iris-v100 --framework pytorch-ddp --set framework.behaviour=tensor-fusion --set framework.fusion_bytes=64MiB
check 'the same by --set' 3 'pytorch-ddp\.json:1:1: error: cycle_s: required, missing: time between two checks'
framework no_bucket '' bucketed nccl
check 'buckets without their size' 3 'no_bucket\.json:1:1: error: bucket_bytes: expected'
framework no_pack '' concatenated nccl
check 'concatenation without its size' 3 'no_pack\.json:1:1: error: pack_bytes: expected'
framework no_key '' kvstore-server ps-lite
check 'a KVStore server without its threshold' 3 'no_key\.json:1:1: error: big_key_elements: expected'
while read -r old members; do # each with the keys that its behaviour reads
    framework "older_$old" ", $members" "$old" copy
    check "the name $old of release 0.1" 0
done << 'END'
packed "pack_bytes": 0
fused-ticks "fusion_bytes": 67108864, "cycle_s": 0.005
keyed-device "message_s": 0
keyed-server "big_key_elements": 1e6
END
framework older_with_anothers ', "pack_bytes": 0, "fusion_bytes": 67108864' packed copy
check 'a key that the behaviour does not read' 3 'older_with_anothers\.json:2:[0-9]+: error: fusion_bytes: behaviour concatenated does not read it, only tensor-fusion'
framework no_strategy ', "bucket_bytes": 25e6, "strategy": "dta"' bucketed nccl
check 'unknown strategy' 3 'no_strategy\.json:2:[0-9]+: error: strategy: no such strategy'
framework no_allocator ', "bucket_bytes": 25e6, "allocator": "pytroch"' bucketed nccl
check 'unknown allocator, with suggestion' 3 'no_allocator\.json:2:[0-9]+: error: allocator: .*did you mean pytorch'
framework no_name ', "bucket_bytes": 25e6, "launch": {"program": "x.py", "tasks": "one", "environment": ["A B=1"]}' bucketed nccl
check 'environment without a name' 3 'no_name\.json:2:[0-9]+: error: launch\.environment: expected NAME=VALUE'

# Workloads
workload() {
    name=$1
    shift
    printf '%s' "$*" > "$work/$name.json"
    run predict --system iris-v100 --workload "$work/$name.json" --framework ideal
}
head='{"format": "dlmodel-workload", "version": 1, "name": "w", "summary": "s", "source": "mem", "family": "cnn", "input": {"channels": 3, "size": [32, 32]}'
workload plain "$head, \"layers\": [{\"kind\": \"conv\", \"name\": \"c\", \"out\": 8, \"kernel\": 3}]}"
check 'the workload that the others break is good' 0
workload kind "$head, \"layers\": [{\"kind\": \"konv\", \"name\": \"c\", \"out\": 8, \"kernel\": 3}]}"
check 'unknown layer kind' 3 'kind\.json:1:[0-9]+: error: layers\[0\].*conv'
workload toolarge "$head, \"layers\": [{\"kind\": \"conv\", \"name\": \"c\", \"out\": 8, \"kernel\": 99}]}"
check 'kernel larger than the image' 3 'toolarge\.json:1:[0-9]+: error: layers\[0\]'
workload zero "$head, \"layers\": [{\"kind\": \"conv\", \"name\": \"c\", \"out\": 0, \"kernel\": 3}]}"
check 'no filters' 3 'zero\.json:1:[0-9]+: error: layers\[0\]'
workload from "$head, \"layers\": [{\"kind\": \"conv\", \"name\": \"c\", \"from\": \"d\", \"out\": 8, \"kernel\": 3}]}"
check 'a layer that is not there' 3 'from\.json:1:[0-9]+: error: layers\[0\]'
workload nolayers "$head, \"layers\": []}"
check 'no layers' 3 'nolayers\.json.*error: layers'
workload expression "$head, \"layers\": [{\"kind\": \"conv\", \"name\": \"c\", \"out\": \"8*(\", \"kernel\": 3}]}"
check 'broken expression' 3 'expression\.json:1:[0-9]+: error: layers\[0\]\.out'
workload unnamed "$head, \"layers\": [{\"kind\": \"conv\", \"name\": \"c\", \"out\": \"width*8\", \"kernel\": 3}]}"
check 'expression with an unknown name' 3 'unnamed\.json:1:[0-9]+: error: layers\[0\]\.out.*width'
workload block "$head, \"blocks\": [{\"name\": \"b\", \"layers\": [{\"block\": \"b\", \"name\": \"x\"}]}], \"layers\": [{\"block\": \"b\", \"name\": \"y\"}]}"
check 'a block inside itself' 3 'block\.json:1:[0-9]+: error: '
printf '%s' '{"format": "dlmodel-workload", "version": 1, "name": "p", "summary": "s", "source": "mem", "family": "cnn", "extends": "'"$work"'/q.json"}' > "$work/p.json"
sed 's/q\.json/p.json/; s/"name": "p"/"name": "q"/' "$work/p.json" > "$work/q.json"
run predict --workload "$work/p.json"
check 'files that extend each other' 3 'error: extends'
workload huge "$head, \"layers\": [{\"kind\": \"conv\", \"name\": \"c\", \"out\": 1e300, \"kernel\": 3}]}"
check 'absurd size' 3 'huge\.json:1:[0-9]+: error: layers\[0\]'
workload repeats "$head, \"blocks\": [{\"name\": \"b\", \"layers\": [{\"kind\": \"relu\"}]}], \"layers\": [{\"block\": \"b\", \"name\": \"y\", \"repeat\": 1e9}]}"
check 'a thousand million layers' 3 'repeats\.json:1:[0-9]+: error: .*repeat'

# Command line
usage() { # usage NAME REGEX ARGS...
    name=$1 regex=$2
    shift 2
    run "$@"
    check "$name" 2 "$regex"
}
usage 'no nodes' '--nodes: expected' predict --nodes 0
usage 'negative nodes' '--nodes: expected' predict --nodes=-1
usage '10^12 nodes' '--nodes: expected' predict --nodes 1000000000000
usage 'nodes in words' '--nodes: expected .*sixteen' predict --nodes sixteen
usage 'empty list' '--nodes: expected' predict --nodes ''
usage 'endless list' '--nodes: expected' predict --nodes '1-1000000000'
usage 'list with a hole' '--nodes: expected' predict --nodes '1,,2'
usage 'batch 0' '--batch-per-device' predict --batch-per-device 0
usage 'batch nan' '--batch-per-device' predict --batch-per-device nan
usage 'both batches' 'not both' predict --batch-per-device 8 --global-batch 64
usage 'fewer samples than devices' 'fewer than' predict --system iris-v100 --nodes 4 --global-batch 3 --framework ideal
usage 'precision' '--precision: expected one of' predict --precision fp31
usage 'precision that the device lacks' 'no rate for' predict --system iris-v100 --workload gpt2 --precision fp8 --framework ideal
usage 'convolutions in 8 bits' 'linear layers, not convolutions' predict --system dgx-h100 --precision fp8 --framework ideal
usage 'optimizer' '--optimizer: expected one of' predict --optimizer adman
usage 'strategy' 'strateg' predict --strategy dat
usage 'axis that the strategy does not split over' '--tp: strategy data' predict --strategy data --tp 2
usage 'system with suggestion' 'iris-v100' predict --system iris-v10
usage 'workload with suggestion' 'resnet50' predict --workload resnet5
usage 'framework with suggestion' 'pytorch-ddp' predict --framework pytorch-dpd
usage 'unknown option with suggestion' '--nodes' predict --node 4
usage 'option without its value' '--nodes: expected' predict --nodes
usage 'unknown command with suggestion' 'predict' perdict
usage 'no command' '.' 
usage 'two formats' 'contradict|not both|one' predict --json --csv
usage 'unknown format' '--format: expected one of' predict --format yaml
usage '--set without a value' '--set: expected KEY=VALUE' predict --set nodes
usage '--set of an unknown key' 'links\.inter\.bandwith' predict --system iris-v100 --set links.inter.bandwith=1GB/s
usage '--set with the wrong unit' 'bandwidth' predict --system iris-v100 --set links.inter.bandwidth=3ms
usage '--set out of range' 'bandwidth' predict --system iris-v100 --set links.inter.bandwidth=-1GB/s
usage 'more devices than a node has' 'devices per node' predict --system iris-v100 --devices-per-node 9 --framework ideal
usage 'a GPT with no layers' '.' predict --workload gpt:layers=0,hidden=64,seq=8,vocab=8
usage 'a GPT with a word for a number' '.' predict --workload gpt:layers=many
usage 'a GPT with an unknown parameter' '.' predict --workload gpt:layer=2
usage 'the GPT parameter at fault is named' 'hidden: 1e300 does not fit' predict --workload gpt:layers=2,hidden=1e300,seq=8,vocab=8
usage 'a GPT parameter twice' 'given twice' predict --workload gpt:layers=2,layers=3
usage 'heads that do not divide' 'heads: 7' predict --workload gpt:layers=2,hidden=100,heads=7
usage 'a parameter of a workload that has none' 'no parameter' predict --workload resnet50:depth=3
usage 'an image of no size' 'input: 0x0' predict --set input=0x0
usage 'an image larger than any' 'input: ' predict --set input=9999999x9999999
usage 'no tokens' 'seq: 0' predict --workload bert_base --set seq=0
usage '--set of nothing' '--set: expected KEY=VALUE' predict --set =3
usage '--set of an object' 'links: expected the key of one value' predict --system iris-v100 --set links=5
usage '--set infinite' 'too large' predict --system iris-v100 --set links.inter.bandwidth=1e999GB/s
usage '--set not a number' 'expected a bandwidth' predict --system iris-v100 --set links.inter.bandwidth=nan
usage 'a descending range' '--nodes: expected' predict --nodes 4-1
usage 'a range that stands still' '--nodes: expected' predict --nodes '1-4*1'
usage 'half a node' '--nodes: expected' predict --nodes 1.5
usage 'infinite nodes' '--nodes: expected' predict --nodes 1e999
usage 'infinite batch' '--global-batch: expected' predict --global-batch 1e999
usage 'option twice' 'given twice' predict --json --json
usage 'value for a flag' '--quiet: takes no value' predict --quiet=5
# shellcheck disable=SC2046
usage 'too many options' 'more than' predict $(awk 'BEGIN { for (i = 0; i < 100; i++) print "--set nodes=4" }')
usage 'no such data folder' 'no/such' --data /no/such predict
usage 'colour' '--color: expected one of' --color=maybe predict
usage 'collective library' "no collective library 'nonsense'" predict --library nonsense --framework ideal --system iris-v100
usage 'one process, many nodes' 'inside one node' predict --system iris-v100 --framework mxnet-device --nodes 16
usage '--dp that does not fit the devices' '--dp 3' predict --system iris-v100 --dp 3 --framework ideal
usage 'explain of many' 'one number of nodes' explain --nodes 1,2 --framework ideal
usage '--max-error in words' '--max-error: expected' compare --max-error little data/runs/intel_caffe.csv
usage 'schema of what is not there' "did you mean 'system'" schema sistem
usage 'help on what is not there' "no command or topic 'nothing'" help nothing
usage 'argument that nobody asked for' 'unexpected' predict resnet50
usage 'compare without a file' 'expected at least one' compare
usage 'list of what is not there' 'systems' list sistems
usage 'tensor parallelism' '--tp' predict --tp 2

# Tables
csv() {
    name=$1
    shift
    printf '%b' "$*" > "$work/$name.csv"
    run compare "$work/$name.csv"
}
columns='id,source,system,framework,strategy,workload,nodes,devices_per_node,batch_per_device,metric,value'
csv short "$columns\na,s,iris-v100,ideal,data,resnet50,1\n"
check 'short row' 3 'short\.csv:2:[0-9]*:? ?error'
csv long "$columns\na,s,iris-v100,ideal,data,resnet50,1,4,32,throughput,100,7\n"
check 'long row' 3 'long\.csv:2:[0-9]*:? ?error'
csv number "$columns\na,s,iris-v100,ideal,data,resnet50,one,4,32,throughput,100\n"
check 'text in a number' 3 'number\.csv:2:[0-9]+: error: nodes: expected'
csv quote "$columns\na,\"s,iris-v100,ideal\n"
check 'quote that does not end' 3 'quote\.csv:[0-9]+:[0-9]*:? ?error'
csv header 'a,b,c\n1,2,3\n'
check 'header of nothing we know' 3 'header\.csv:1:1: error: expected the header'
csv nothing ''
check 'empty table' 3 'nothing\.csv.*error'
printf 'id,workload,metric\n\000\000' > "$work/nul.csv"
run compare "$work/nul.csv"
check 'NUL bytes' 3 'nul\.csv'
row() { # row NAME KEY ROW: what is wrong with one row is said with its line and column name, and the other row is compared
    printf '%s\n%s\n%s\n' "$columns" 'a,s,iris-v100,ideal,data,resnet50,1,4,32,throughput,100' "$3" > "$work/row.csv"
    run compare "$work/row.csv"
    check "$1" 0
    has "$1 is named" "row\\.csv:3:[0-9]+: error: $2: expected"
}
row 'negative nodes in a row' nodes 'b,s,iris-v100,ideal,data,resnet50,-1,4,32,throughput,100'
row 'half a node in a row' nodes 'b,s,iris-v100,ideal,data,resnet50,1.5,4,32,throughput,100'
row '10^15 nodes in a row' nodes 'b,s,iris-v100,ideal,data,resnet50,1e15,4,32,throughput,100'
row 'no devices in a row' devices_per_node 'b,s,iris-v100,ideal,data,resnet50,1,0,32,throughput,100'
row 'batch of a row below 0' batch_per_device 'b,s,iris-v100,ideal,data,resnet50,1,4,-32,throughput,100'
row 'measured nothing' value 'b,s,iris-v100,ideal,data,resnet50,1,4,32,throughput,0'
row 'measured NaN' value 'b,s,iris-v100,ideal,data,resnet50,1,4,32,throughput,nan'
row 'more devices than a node has' devices_per_node 'b,s,iris-v100,ideal,data,resnet50,1,1000,32,throughput,100'
row 'measured more than any machine does' value 'b,s,iris-v100,ideal,data,resnet50,1,4,32,throughput,1e308'
row 'measured infinity' value 'b,s,iris-v100,ideal,data,resnet50,1,4,32,throughput,1e999'
# other tables: ranges and words as of runs, with file, line and column
table() { # table NAME KEY HEADER ROW
    printf '%s\n%s\n' "$3" "$4" > "$work/table.csv"
    run compare "$work/table.csv"
    check "$1" 3 "table\\.csv:2:[0-9]+: error: $2: expected"
}
deepbench='device,op,m,n,k,a_trans,b_trans,precision,pass,time_ms'
table 'a GEMM without rows' m "$deepbench" 'V100,gemm,0,16,1760,N,N,fp32,fwd,0.1'
table 'one and a half rows' m "$deepbench" 'V100,gemm,1.5,16,1760,N,N,fp32,fwd,0.1'
table '10^18 columns' n "$deepbench" 'V100,gemm,16,1e18,1760,N,N,fp32,fwd,0.1'
table 'negative time of a kernel' time_ms "$deepbench" 'V100,gemm,16,16,1760,N,N,fp32,fwd,-1'
table 'an operation that DeepBench has not' op "$deepbench" 'V100,fft,16,16,1760,N,N,fp32,fwd,0.1'
table 'a storage order that there is not' a_trans "$deepbench" 'V100,gemm,16,16,1760,X,N,fp32,fwd,0.1'
by_gpu='gpu,op,pass,batch,m,n,k,dtype_a,library,time_us,timing,source'
table 'a GEMM by GPU without rows' m "$by_gpu" 'A10,matmul,fwd,1,0,16,16,fp32,torch,10,,a'
table 'a pass that there is not' pass "$by_gpu" 'A10,matmul,sideways,1,16,16,16,fp32,torch,10,,a'
collectives='library,lib_version,collective,device,system,nodes,ranks,network,dtype,size_bytes,time_us,algbw_GBs,busbw_GBs,source,notes'
table '10^18 ranks' ranks "$collectives" 'NCCL,2.18.3,all_reduce,V100,dgx1-v100,1,1e18,,float32,1024,10,,,a,'
table 'half a rank' ranks "$collectives" 'NCCL,2.18.3,all_reduce,V100,dgx1-v100,1,2.5,,float32,1024,10,,,a,'
table 'a type that there is not' dtype "$collectives" 'NCCL,2.18.3,all_reduce,V100,dgx1-v100,1,8,,float1024,1024,10,,,a,'
table 'negative bandwidth' busbw_GBs "$collectives" 'NCCL,2.18.3,all_reduce,V100,dgx1-v100,1,8,,float32,,,,-5,a,'
csv heading "$columns\n"
check 'a header alone' 3 'heading\.csv:1:1: error: expected a row'
csv twice "$columns,value\na,s,iris-v100,ideal,data,resnet50,1,4,32,throughput,100,5\n"
check 'a column twice' 3 'twice\.csv:1:[0-9]+: error: value: '
csv misspelt "$(printf '%s' "$columns" | sed 's/system/sytem/')\na,s,iris-v100,ideal,data,resnet50,1,4,32,throughput,100\n"
check 'a column misspelt' 3 'misspelt\.csv:1:1: error: system: '
csv inner 'id,workload,metric,source\na"b,c,d,e\n'
check 'quote inside a field' 3 'inner\.csv:2:2: error: '
csv behind 'id,workload,metric,source\n"a"b,c,d,e\n'
check 'text after a quoted field' 3 'behind\.csv:2:4: error: '
run compare data/systems/iris-v100.json
check 'JSON for a table' 3 'iris-v100\.json:[0-9]+:[0-9]+: error: '
run compare "$work/none.csv"
check 'missing table' 3 'none\.csv'
run compare "$work"
check 'directory for a table' 3 'error'

# what spreadsheets and other countries make of tables, and where in a row the fault is
runs=data/runs/tensorflow_2017.csv
head -n 3 "$runs" | tr , ';' > "$work/semicolons.csv"
run compare "$work/semicolons.csv"
check 'semicolons for commas' 3 'semicolons\.csv:1:1: error: expected fields separated by commas, got semicolons'
printf '\377\376i\000d\000' > "$work/utf16.csv"
run compare "$work/utf16.csv"
check 'a table in UTF-16' 3 'utf16\.csv:1:1: error: .*save the file as UTF-8'
printf '\377\376{\000}\000' > "$work/utf16.json"
run predict --system "$work/utf16.json"
check 'a system in UTF-16' 3 'utf16\.json:1:1: error: .*save the file as UTF-8'
cell() { # cell VALUE METRIC UNIT: a table of one run
    printf '%s\n%s\n' 'id,source,system,framework,workload,nodes,devices_per_node,batch_per_device,notes,metric,value,unit' \
        "a,s,iris-v100,pytorch-ddp,resnet50,1,4,32,\"quoted, with a comma\",$2,$1,$3" > "$work/run.csv"
    run compare "$work/run.csv" --rows
}
cell -5 throughput samples/s
check 'a fault is found in its column' 3 'run\.csv:2:77: error: value: expected a number from 1e-09 to'
cell '"1,5"' throughput samples/s
check 'a decimal comma' 3 'value: expected a number, got "1,5" \(a decimal point'
cell 1300 throughput samples/s
check 'a unit that is known' 0
has 'it is predicted' '\(1 row\)'
cell 1300 throughput images/hour
check 'a unit that is not known' 1 'no row could be predicted'
has 'it is said' 'unit "images/hour" of throughput: expected samples/s'
cell 100 iteration ms
check 'milliseconds' 0
has 'they are read as such' '^ a .* 100\.0  ms '
