#!/bin/sh
# import: models, benchmark output and traces become data files that the other commands take; broken and hostile files end with an
# exact message and exit status, never with a crash.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH
onnx=tests/fixtures/onnx bench=tests/fixtures/bench trace=tests/fixtures/trace
fact() { if [ "$2" = "$3" ]; then echo "ok $1"; else printf 'not ok %s\n  expected %s\n  found    %s\n' "$1" "$3" "$2"; fi; }

# ---- the command itself
run import
check 'import: nothing to import' 2 'expected a kind of file to import: onnx, pt2, config, keras, nccl-tests, osu, torch-nccl, trace'
run import onxx x
check 'import: suggestion' 2 "did you mean 'onnx'"
run import spreadsheet x
check 'import: unknown kind' 2 "cannot import 'spreadsheet'; there are onnx"
for kind in onnx config nccl-tests osu; do
    run import $kind
    check "import $kind: no file" 2 'expected a file'
done
run import osu "$bench/osu_5.9_latency.txt" --skip-unknown
check 'import: an option of another kind' 2 '--skip-unknown: import osu has no such option'
run import onnx "$onnx/mlp.onnx" "$onnx/mlp.onnx"
check 'import onnx: one file' 2 'unexpected argument'
run import onnx "$onnx/mlp.onnx" --collective all_reduce
check 'import onnx: --collective' 2 'no such option'

# ---- config
config=tests/fixtures/config
run import config "$config/llama.json" --name mine -o "$work/llama.json"
check 'import config' 0 'mine: 8030261248 parameters, 8030261248 of them active; 8192 tokens a sample'
run predict --workload "$work/llama.json" --system dgx-h100 --framework megatron --tp 8 --precision bf16 --batch-per-device 1
check 'import config: the file predicts' 0
run import config "$config/deepseek_v3.json"
check 'import config: what is left out is reported' 0 'left out: the layers that predict further tokens'
has 'import config: extends gpt' '"extends": "gpt"'
# Kinds of configs that people have: parameters as published or summed over the members.
counted() { # counted FILE PARAMETERS [REGEX]
    run import config "$config/case_$1.json"
    check "import config: $1" 0 "${3-}"
    fact "import config: parameters of $1" "$(sed -n 's/^[^:]*: \([0-9]*\) parameters.*/\1/p' "$SCRATCH/err")" "$2"
}
counted kimi_k2 1026408232448
counted olmo2 7298617344
counted glm4_moe 106852251264 'left out: the layers that predict further tokens'
counted llama4_nested 107769861120 'left out: the vision tower .vision_config., which changes the prediction and is not modelled'
# LLaVA 1.5 and Qwen2-VL of transformers, towers included
counted llava 7063427072
counted qwen2_vl 8291375616
sed 's/{/{"cross_attention_layers": [3, 8], /' "$config/llama.json" > "$work/crossing.json"
run import config "$work/crossing.json" --skip-unknown
check 'import config: layers with cross-attention are named, not skipped' 3 'cross_attention_layers: the model has layers with cross-attention to images'
counted gpt2_extra 81912576
counted gemma2_extra 9241705984
counted phi4_mini_extra 3836021760
counted qwen3_moe_extra 480154875392 '35474765312 of them active'
counted opt 6658473984
run import config "$config/case_infinity.json"
check 'import config: Infinity is read' 0 '1443158208 parameters'
has 'import config: a pattern of layers' '"pattern": "M-\*-"'
sed 's/"nemotron_h"/"falcon_mamba"/' "$config/case_infinity.json" > "$work/other.json"
run import config "$work/other.json"
check 'import config: a layer without a kind is named' 3 'hybrid_override_pattern: the model has Mamba'
run predict --system dgx-h100 --workload 'gpt:pattern=M-X,hidden=1024,heads=8'
check 'a pattern with a letter that is none' 2 'pattern: M-X does not fit the workload: no letter .X. in "M-X"; the letters are M, '
sed 's/"model_type": "deepseek_v3"/"model_type": "deepseek_v32", "index_topk": 2048, "index_n_heads": 64, "index_head_dim": 128/' \
    "$config/deepseek_v3.json" > "$work/selected.json"
run import config "$work/selected.json"
check 'import config: keys that an index selects are read as a window, and this is said' 0 'the indexer of sparse attention.*read as a window of as many'
has 'import config: the window' '"window": 2048'
sed 's/"index_topk": 2048/"index_topk": 512, "compress_ratios": [4, 128]/' "$work/selected.json" > "$work/compressed.json"
run import config "$work/compressed.json"
check 'import config: attention over compressed keys is refused' 3 'compress_ratios: the model has attention over compressed keys'
printf '{"model_type": "newmodel", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
  "vocab_size": 100, "hidden_act": "silu", "rms_norm_eps": NaN}' > "$work/new.json"
run import config "$work/new.json"
check 'import config: an unknown type with the members of a Llama' 0 'model_type "newmodel" is not known: its members are read as those of a Llama'
printf '{"model_type": "llama", "alpha_mix": 1, "beta_mix": 2, "temperature": 1}' > "$work/bad.json"
run import config "$work/bad.json"
check 'import config: all unknown members at once' 3 'alpha_mix: .*all of these are not: alpha_mix, beta_mix;'
printf '{\n  "model_type": "llama",\n  "hiden_size": 4096\n}\n' > "$work/bad.json"
run import config "$work/bad.json"
check 'import config: an unknown member' 3 "bad.json:3:[0-9]+: error: hiden_size: .*did you mean 'hidden_size'"
run import config "$work/bad.json" --dim batch=1
check 'import config: an option of another kind' 2 '--dim: import config has no such option'
printf '{"model_type": "mamba"}' > "$work/bad.json"
run import config "$work/bad.json"
check 'import config: an unknown model type' 3 'bad.json:1:[0-9]+: error: model_type: "mamba" is not known'
run import config "$work"
check 'import config: a folder' 3

# ---- output of benchmarks and traces as launchers and releases write them
run import nccl-tests "$bench/nccl_current_version.log" --system dgx-h100
check 'nccl-tests 2.17' 0
has 'nccl-tests 2.17: the release of the library' '^nccl,2.28.5,all_reduce,'
cp "$SCRATCH/out" "$work/current.csv"
run import nccl-tests "$bench/nccl_2.28_h100.json" --system dgx-h100
fact 'nccl-tests -J: the rows that it prints' "$(cat "$SCRATCH/out")" "$(cat "$work/current.csv")"
sed 's/"time": 48.3/"time": "48.3"/' "$bench/nccl_2.28_h100.json" > "$work/torn.json"
run import "$work/torn.json" --system dgx-h100
check 'nccl-tests -J: a damaged row is named' 0 'damaged rows are left out: .*torn.json: lines'
sed 's/"time": 48.3/"cpu_time": 48.3/' "$bench/nccl_2.28_h100.json" > "$work/cpu.json"
run import nccl-tests "$work/cpu.json" --system dgx-h100
check 'nccl-tests -J: times of the CPU' 3 'cpu_time: the times are those of the CPU'
run import nccl-tests "$bench/nccl_timestamps.log" --system dgx-h100
fact 'nccl-tests with timestamps: the same rows' "$(cat "$SCRATCH/out")" "$(cat "$work/current.csv")"
sed 's/^/[2026-05-04 12:30:00] node1: /' "$bench/nccl_current_version.log" > "$work/prefixed.log"
run import nccl-tests "$work/prefixed.log" --system dgx-h100
fact 'nccl-tests behind a clock and a host: the same rows' "$(cat "$SCRATCH/out")" "$(cat "$work/current.csv")"
run import nccl-tests "$bench/nccl_torn_row.log" --system dgx-h100
check 'nccl-tests: a damaged row is named' 0 'damaged rows are left out: .*lines 26'
fact 'nccl-tests: the others stay' "$(grep -c ',all_reduce,' "$SCRATCH/out")" 4
run import nccl-tests "$bench/nccl_cputime.log" --system dgx-h100
check 'nccl-tests: times of the CPU' 3 'cputime: the times are those of the CPU'
sed 's/nccl-tests version/rccl-tests version/' "$bench/nccl_current_version.log" > "$work/rccl.log"
run import nccl-tests "$work/rccl.log" --system dgx-h100
check 'nccl-tests: RCCL on a device that is not of AMD' 2 'RCCL, which runs on AMD devices'
run import nccl-tests "$bench/nccl_current_version.log" --system iris-v100
check 'nccl-tests: another device than the system has' 0 'warning: the output is of "NVIDIA H100 80GB HBM3"'
run import osu "$bench/osu_nccl.txt" --system iris-v100 -n 2 --ranks 8
has 'osu: the library of the title' '^nccl,,all_reduce,.*,float,4,'
if "$DLMODEL" -v --version 2> /dev/null | grep -q zlib; then
    run import trace "$trace/trace_gz.json.gz" -w lenet -s iris-v100 -b 32
    check 'trace: compressed by gzip' 0
    gzip -dc "$trace/trace_gz.json.gz" | sed 's/ *\]} *$//' > "$work/open.json"
    cp "$SCRATCH/out" "$work/closed"
    run import trace "$work/open.json" -w lenet -s iris-v100 -b 32
    check 'trace: without its end' 0
    fact 'trace: without its end, the same times' "$(grep -v source "$SCRATCH/out")" "$(grep -v source "$work/closed")"
else
    echo 'skip traces compressed by gzip: built without zlib'
fi

# ---- onnx
if "$DLMODEL" -v --version 2> /dev/null | grep -q protobuf-c; then
    # Exported by PyTorch: parameters and multiply-adds are those of the built-in workloads, which have their own checks.
    "$DLMODEL" list workloads --csv > "$work/builtin.csv" 2> /dev/null
    builtin() { awk -F, -v n="$1" -v c="$2" 'NR == 1 { for (i = 1; i <= NF; i++) k[$i] = i } $1 == n { print $k[c] }' "$work/builtin.csv"; }
    for pair in alexnet:alexnet vgg16:vgg16 vgg16_bn:vgg16_bn resnet18:resnet18 resnet50:resnet50 resnet101:resnet101 \
        resnext50_32x4d:resnext50_32x4d densenet121:densenet121 googlenet:googlenet inception_v3:inception_v3 mobilenet_v2:mobilenet_v2 \
        efficientnet_b0:efficientnet_b0 squeezenet1_0:squeezenet1_0 squeezenet1_1:squeezenet1_1 vit_b_16:vit_b_16 unet:unet \
        bert:bert_base gpt2:gpt2; do
        file=${pair%%:*} name=${pair#*:}
        run import onnx "$onnx/$file.onnx" --name "$name" -o "$work/$file.json"
        check "onnx $file" 0 "$name: [0-9]+ nodes became [0-9]+ layers"
        fact "onnx $file: parameters of $name" "$(sed -n 's/.* layers: \([0-9]*\) parameters.*/\1/p' "$work/err")" "$(builtin "$name" parameters)"
        fact "onnx $file: multiply-adds of $name" "$(sed -n 's/.* parameters, \([0-9.]*\) GMAC.*/\1/p' "$work/err")" \
            "$(builtin "$name" forward_macs_per_sample | awk '{ printf "%.6g\n", $1 / 1e9 }')"
    done
    # Those without a built-in: counts that PyTorch printed when the fixtures were made.
    for pair in convnext_tiny:28589128 mobilenet_v3_small:2542856 shufflenet_v2_x1_0:2278604 regnet_y_400mf:4344144 translator:452528 \
        lstm:20293392 mlp:203530 channels_last:369; do
        run import onnx "$onnx/${pair%%:*}.onnx" -o "$work/x.json"
        check "onnx ${pair%%:*}: parameters" 0 "layers: ${pair#*:} parameters"
    done
    run import onnx "$onnx/resnet50.onnx" --name mine -o "$work/mine.json"
    check 'onnx: stripped weights are reported' 0 'tensors have no data; their shapes are all that is needed'
    run predict --workload "$work/mine.json" --system iris-v100 --framework pytorch-ddp
    check 'onnx: the file predicts' 0
    has 'onnx: under its name' '^mine fp32'
    run predict --workload "$work/mine.json" --system iris-v100 --framework pytorch-ddp --set input=256x256
    check 'onnx: --set input works on it' 0
    run import onnx "$onnx/mlp.onnx"
    check 'onnx: to standard output' 0
    has 'onnx: symbolic batch becomes one sample' '"kind":"dense","out":256,"bias":true'
    has 'onnx: name from the file' '"name":"mlp"'
    run import onnx "$onnx/mlp.onnx" --dim batch=4
    check 'onnx: --dim' 0 'the model has a batch of 4'
    run import onnx "$onnx/mlp.onnx" --dim length=4
    check 'onnx: --dim that is not there' 2 "no input of the model has a dimension 'length'"
    for dim in batch batch= =3 batch=0 batch=1.5 batch=x; do
        run import onnx "$onnx/mlp.onnx" --dim "$dim"
        check "onnx: --dim $dim" 2 '--dim: expected NAME=N with a whole N'
    done
    run import onnx "$onnx/odd.onnx" -o "$work/odd.json"
    check 'onnx: an unknown operator fails' 3 '1 of 6 nodes \(17 %\) map to no layer; --skip-unknown skips them'
    check 'onnx: it is named with its share' 3 'CumSum: 1 of 6 nodes \(17 %\), first node 2: no layer corresponds to it'
    if [ -e "$work/odd.json" ]; then echo 'not ok onnx: nothing is written then'; else echo 'ok onnx: nothing is written then'; fi
    run import onnx "$onnx/odd.onnx" --skip-unknown -o "$work/odd.json"
    check 'onnx: --skip-unknown' 0 'warning: skipped, with all their parameters'
    run import onnx "$onnx/gpt2.onnx"
    has 'onnx: tied weight' '"kind":"dense","out":"vocab","tied":"wte"'
    has 'onnx: causal attention' '"kind":"attention","heads":"heads","dropout":0.1[^,]*,"causal":1'
    has 'onnx: a stack is one block' '"name":"h","block":"layer","repeat":"layers"'
    check 'onnx: the stack is reported' 0 "a stack of 12 equal layers 'h'"
    # What splits the built-in transformers splits the imported ones, into the same times.
    iteration() { # iteration WORKLOAD OPTIONS...
        workload=$1
        shift
        run predict --workload "$workload" --system dgx-a100-80 --framework megatron -n 2 --precision mixed --global-batch 64 \
            --micro-batch 1 --csv "$@"
        awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) k[$i] = i } NR == 2 { print $k["iteration_s"] }' "$SCRATCH/out"
    }
    close() { awk -v a="$2" -v b="$3" 'BEGIN { exit !(a > 0 && b > 0 && a / b < 1.01 && b / a < 1.01) }' && echo "ok $1" ||
        printf 'not ok %s\n  %s and %s\n' "$1" "$2" "$3"; }
    for plan in '--tp 4' '--tp 2 --pp 4' '--tp 1 --pp 4'; do
        # shellcheck disable=SC2086
        for pair in gpt2:gpt2 vit_b_16:vit_b_16; do
            close "onnx ${pair%%:*}: $plan" "$(iteration "$work/${pair%%:*}.json" $plan)" "$(iteration "${pair#*:}" $plan)"
        done
        # shellcheck disable=SC2086
        run predict --workload "$work/bert.json" --system dgx-a100-80 --framework megatron -n 2 --precision mixed --global-batch 64 \
            --micro-batch 1 $plan
        check "onnx bert: $plan" 0
    done
    run predict --workload "$work/gpt2.json" --system dgx-a100-80 --framework megatron --tp 8 --precision mixed --set layers=24 \
        --set hidden=1024 --set heads=16
    check 'onnx: --set changes the stack' 0
    # A Llama: 2 x 500 x 64 + 3 (64 (64 + 2 x 32 + 64) + 3 x 64 x 160 + 2 x 64) + 64 parameters.
    run import onnx "$onnx/llama.onnx" -o "$work/small_llama.json"
    check 'onnx llama: parameters' 0 'llama: [0-9]+ nodes became [0-9]+ layers: 193472 parameters'
    check 'onnx llama: its stack' 0 "a stack of 3 equal layers 'model.layers'"
    cp "$work/small_llama.json" "$SCRATCH/out"
    has 'onnx llama: RMS norm' '"name":"input_layernorm","kind":"rmsnorm"'
    has 'onnx llama: rotary embedding of queries' '"kind":"rope",.*"heads":"heads"'
    has 'onnx llama: rotary embedding of keys' '"kind":"rope",.*"heads":2'
    has 'onnx llama: shared heads' '"kind":"attention",.*"heads":"heads","kv_heads":2,"causal":1'
    has 'onnx llama: gate' '"kind":"mul","from":\["swish","mlp.up_proj"\]'
    run predict --workload "$work/small_llama.json" --system dgx-a100-80 --framework megatron --tp 2 --pp 3 --global-batch 48 \
        --nodes 3 --micro-batch 1 --precision mixed
    check 'onnx llama: tensor and pipeline parallelism' 0
    run import onnx "$onnx/translator.onnx"
    hasnt 'onnx: two kinds of layers are no stack' '"blocks"'
    run import onnx "$onnx/lstm.onnx"
    has 'onnx: both directions' '"kind":"lstm","out":512,"bidirectional":true'

    # Broken and hostile files
    run import onnx "$work/none.onnx"
    check 'onnx: no such file' 3 'none.onnx: error: cannot read'
    run import onnx "$onnx"
    check 'onnx: a directory' 3 'error: '
    : > "$work/empty.onnx"
    run import onnx "$work/empty.onnx"
    check 'onnx: empty' 3 'expected an ONNX model, found an empty file'
    run import onnx README.md
    check 'onnx: a text' 3 'expected an ONNX model: this is not its protobuf format, or the file is cut off or damaged'
    for bytes in 1 7 100 5000 20000; do
        head -c $bytes "$onnx/resnet50.onnx" > "$work/cut.onnx"
        run import onnx "$work/cut.onnx"
        check "onnx: cut off after $bytes bytes" 3 'cut.onnx: error: expected an ONNX model'
    done
    for seed in 1 2 3 4 5 6; do # each byte of a stretch replaced
        { head -c $((seed * 100)) "$onnx/mlp.onnx"; head -c 20 README.md | tr 'a-z' '\200-\231'; tail -c +$((seed * 100 + 21)) "$onnx/mlp.onnx"; } > "$work/bad.onnx"
        run import onnx "$work/bad.onnx"
        if [ "$status" -eq 3 ] || [ "$status" -eq 0 ] || [ "$status" -eq 2 ]; then check "onnx: damaged $seed" "$status"; else bad "onnx: damaged $seed" 'expected 0, 2 or 3'; fi
    done
    printf '\010\007' > "$work/nograph.onnx"
    run import onnx "$work/nograph.onnx"
    check 'onnx: without graph' 3 'expected an ONNX model, found one without graph'
    printf '\010\007\072\002\012\000' > "$work/noop.onnx"
    run import onnx "$work/noop.onnx"
    check 'onnx: a graph without inputs' 3 "expected an input of graph"
    printf '\010\007\072\000' > "$work/nonode.onnx"
    run import onnx "$work/nonode.onnx"
    check 'onnx: a graph without nodes' 3 'expected at least one node in graph'
    # input x [2,3], node Relu(y) -> z: y is never made
    printf '\010\007\072\042\012\014\012\001y\022\001z\042\004Relu\132\022\012\001x\022\015\012\013\010\001\022\007\012\002\010\002\012\001\010' > "$work/order.onnx"
    run import onnx "$work/order.onnx"
    check 'onnx: a shape cut off inside' 3 'expected an ONNX model'
    run import onnx "$onnx/mlp.onnx" -o "$work/no/dir/x.json"
    check 'onnx: no such directory' 5 'no/dir'
else
    run import onnx "$onnx/mlp.onnx"
    check 'onnx without protobuf-c says how to get it' 6 'built without protobuf-c.*libprotobuf-c-dev and protobuf-c-compiler'
fi

# ---- nccl-tests
header='^library,lib_version,collective,device,system,nodes,ranks,network,dtype,size_bytes,time_us,algbw_GBs,busbw_GBs,source,notes,series$'
run import nccl-tests "$bench/nccl_2.18_a100.txt" --system dgx-a100-40
check 'nccl-tests 2.18' 0
has 'nccl-tests: the contract'"'"'s columns' "$header"
has 'nccl-tests: hosts, ranks, device, release' '^nccl,2.18.3,all_reduce,NVIDIA A100-SXM4-40GB,dgx-a100-40,2,16,'
has 'nccl-tests: out of place' ',8,34,.*,nccl-tests,out of place,out of place$'
has 'nccl-tests: in place' ',8,32.98,.*,nccl-tests,in place,in place$'
fact 'nccl-tests: all rows' "$(wc -l < "$work/out" | tr -d ' ')" 27
cp "$work/out" "$work/nccl.csv"
run compare "$work/nccl.csv" --json
check 'nccl-tests: compare takes the table' 0
has 'nccl-tests: compare finds the system by its name' '"system": "dgx-a100-40"'
run import nccl-tests "$bench/nccl_2.17_two_runs.txt" --placement out
check 'nccl-tests: two runs in a file' 0
has 'nccl-tests: the first' '^nccl,2.28.3,all_gather,Tesla V100-SXM2-16GB,,1,8,'
has 'nccl-tests: the second' '^nccl,2.28.3,all_to_all,Tesla V100-SXM2-16GB,,1,8,'
run import nccl-tests "$bench/nccl_2.17_two_runs.txt" --placement in
hasnt 'nccl-tests: N/A is no row' 'all_to_all'
run import nccl-tests "$bench/nccl_2.4_all_reduce_perf.txt" --json
check 'nccl-tests 2.4 under srun --label, collective from the file name' 0
has 'nccl-tests: JSON' '"collective": "all_reduce"'
run import nccl-tests "$bench/nccl_2.4_all_reduce_perf.txt" --ranks 4
check 'nccl-tests: ranks that contradict the bus bandwidth' 3 'nccl_2.4_all_reduce_perf.txt:[0-9]+:1: error: busbw: bus bandwidth is 1.7[0-9]* times .* give --collective or --ranks'
cp "$bench/nccl_2.4_all_reduce_perf.txt" "$work/log.txt"
run import nccl-tests "$work/log.txt"
check 'nccl-tests: collective unknown' 3 'does not name the collective; give --collective'
run import nccl-tests "$work/log.txt" --collective all_reduce
check 'nccl-tests: --collective' 0
run import nccl-tests "$work/log.txt" --collective allreduce
check 'nccl-tests: --collective misspelt' 2 'did you mean all_reduce'
grep -v 'Rank' "$work/log.txt" > "$work/norank.txt"
run import nccl-tests "$work/norank.txt" --collective all_reduce
check 'nccl-tests: no ranks' 3 'the output lists no ranks; give --ranks'
run import nccl-tests "$work/norank.txt" --collective all_reduce --ranks 8
check 'nccl-tests: no hosts' 3 'the output lists no hosts; give --nodes'
run import nccl-tests "$work/norank.txt" --collective all_reduce --ranks 8 --nodes 1 --library-version 2.4.8
check 'nccl-tests: all given' 0
has 'nccl-tests: --library-version' '^nccl,2.4.8,all_reduce'
run import nccl-tests "$work/norank.txt" --collective all_reduce --ranks 1 --nodes 2
check 'nccl-tests: fewer ranks than nodes' 3 'fewer ranks \(1\) than nodes \(2\)'
head -c 2200 "$bench/nccl_2.18_a100.txt" > "$work/all_reduce_perf_cut.txt"
tail -n 1 "$work/all_reduce_perf_cut.txt" | grep -q . || printf '     ' >> "$work/all_reduce_perf_cut.txt"
sed -n '1,28p' "$bench/nccl_2.18_a100.txt" > "$work/cut.txt"
printf '           8             2     float     sum\n' >> "$work/cut.txt"
run import nccl-tests "$work/cut.txt"
check 'nccl-tests: cut off' 0 'damaged rows are left out: .*cut.txt: lines 29'
sed 's/ 34\.00 / -34.0 /' "$bench/nccl_2.18_a100.txt" > "$work/negative.txt"
run import nccl-tests "$work/negative.txt"
check 'nccl-tests: a negative time' 0 'damaged rows are left out: .*negative.txt: lines 26'
sed 's/ 34\.00 / 1e-320 /' "$bench/nccl_2.18_a100.txt" > "$work/short.txt"
run import nccl-tests "$work/short.txt"
check 'nccl-tests: a time that is 0 in seconds' 0 'damaged rows are left out: .*short.txt: lines 26'
sed '/float/d' "$bench/nccl_2.18_a100.txt" > "$work/norow.txt"
run import nccl-tests "$work/norow.txt"
check 'nccl-tests: no rows' 3 'the run printed none'
run import nccl-tests README.md
check 'nccl-tests: another text' 3 "expected the output of nccl-tests: no heading"
run import nccl-tests "$bench/osu_5.9_allreduce.txt"
check 'nccl-tests: output of OSU' 3 'expected the output of nccl-tests'
awk '$1 == 8 { $9 = 7 } { print }' "$bench/nccl_2.18_a100.txt" > "$work/wrong.txt"
run import nccl-tests "$work/wrong.txt"
check 'nccl-tests: wrong results are reported' 0 'failed the tool.s own check'
run import nccl-tests "$bench/nccl_2.18_a100.txt" --library ncl
check 'nccl-tests: --library' 2 'did you mean nccl'

# Into a profile, which then predicts what was measured.
run import nccl-tests "$bench/nccl_2.18_a100.txt" --profile dgx-a100-40
check 'profile: needs -o' 2 '--profile: give -o FILE'
run import nccl-tests "$bench/nccl_2.18_a100.txt" --profile dgx-a100-40 -o "$work/profile.json"
check 'profile: written' 0 '13 measured times of 1 collectives and rank sets'
run import nccl-tests "$bench/nccl_2.18_a100.txt" --placement in --system "$work/profile.json" -o "$work/in.csv"
run compare "$work/in.csv" --json
has 'profile: its own times are predicted exactly' '"max_ape_pct": (0|[0-9.]+e-1[0-9])'
run import nccl-tests "$bench/nccl_2.18_a100.txt" --profile "$work/profile.json" -o "$work/again.json"
check 'profile: again' 0
if cmp -s "$work/profile.json" "$work/again.json"; then echo 'ok profile: the second time changes nothing'; else echo 'not ok profile: the second time changes nothing'; fi
run import nccl-tests "$bench/nccl_2.18_a100.txt" --profile no-such-system -o "$work/x.json"
check 'profile: no such system' 2 'no system "no-such-system"'
run import osu "$bench/osu_5.9_bw.txt" --nodes 2 --profile stampede2-skx -o "$work/x.json"
check 'profile: bandwidth tests are no single messages' 3 'no row is usable in a profile: 12 measure several messages in flight'
run predict --system "$work/profile.json" --nodes 2 --framework pytorch-ddp
check 'profile: predicts' 0

# ---- OSU
run import osu "$bench/osu_5.9_allreduce.txt"
check 'osu: ranks are not said' 2 "does not say how many ranks; give --ranks"
run import osu "$bench/osu_5.9_allreduce.txt" --ranks 8
check 'osu: nodes are not said' 2 "does not say how many nodes; give --nodes"
run import osu "$bench/osu_5.9_allreduce.txt" --ranks 8 --nodes 4 --system stampede2-skx --library-version openmpi-4.1
check 'osu 5.9 allreduce' 0
has 'osu: columns' "$header"
has 'osu: a row' '^mpi,openmpi-4.1,all_reduce,,stampede2-skx,4,8,,,4,6,'
run import osu "$bench/osu_7.3_allgather.txt" --ranks 8 --nodes 4
check 'osu 7.3 allgather' 0
has 'osu: sizes become the whole buffer' ',all_gather,,,4,8,,char,32768,13.19,.*4096 bytes per rank'
run import osu "$bench/osu_5.6_allreduce_full.txt" --ranks 8 --nodes 4
check 'osu 5.6 with -f on CUDA' 0
has 'osu: the average counts' ',all_reduce,.*,4,16,'
run import osu "$bench/osu_5.9_latency.txt" --nodes 2
check 'osu latency: two ranks' 0
has 'osu: size 0' ',p2p,,,2,2,,,0,1.3,'
run import osu "$bench/osu_5.9_bw.txt" --nodes 2
has 'osu bandwidth: marked' 'many messages in flight'
run import osu "$bench/osu_7.3_barrier.txt" --ranks 4 --nodes 2
check 'osu: barrier' 3 ':2:1: error: cannot use .*a barrier has no size'
run import osu "$bench/osu_5.9_latency.txt" "$bench/osu_5.9_allreduce.txt" --nodes 2 --ranks 2
check 'osu: several files' 0
printf '# OSU MPI Allreduce Latency Test v5.9\n# Size       Avg Latency(us)\n4\n' > "$work/osu.txt"
run import osu "$work/osu.txt" --nodes 2 --ranks 2
check 'osu: cut off' 3 'osu.txt:3:1: error: expected a size and a value: the line is cut off'
printf '# OSU MPI Allreduce Latency Test v5.9\n# Size       Avg Latency(us)\n4   nan\n' > "$work/osu.txt"
run import osu "$work/osu.txt" --nodes 2 --ranks 2
check 'osu: nan' 3 'Latency: expected a number above 0, found "nan"'
printf '# OSU MPI Allreduce Latency Test v5.9\n# Size       Avg Latency(us)\n4   1e-320\n' > "$work/osu.txt"
run import osu "$work/osu.txt" --nodes 2 --ranks 2
check 'osu: a time that is 0 in seconds' 3 'Latency: expected a number above 0, found "1e-320"'
printf '# OSU MPI Bandwidth Test v5.9\n# Size      Bandwidth (MB/s)\n0   12\n' > "$work/osu.txt"
run import osu "$work/osu.txt" --nodes 2
check 'osu: bandwidth of nothing' 3 'a bandwidth needs a size above 0'
printf '# OSU MPI Something Test v9\n' > "$work/osu.txt"
run import osu "$work/osu.txt" --nodes 2
check 'osu: an unknown test' 3 'osu.txt:1:1: error: no test that is known'
printf '# Size  Latency (us)\n1 2\n' > "$work/osu.txt"
run import osu "$work/osu.txt" --nodes 2
check 'osu: no title' 3 "expected a title"
run import osu "$bench/nccl_2.18_a100.txt" --nodes 2
check 'osu: output of nccl-tests' 3 'expected the output of an OSU micro-benchmark'

# ---- traces
common="--workload resnet18 --device v100_sxm2_16"
run import trace "$trace/gpu.json"
check 'trace: workload' 2 'give --workload NAME'
# shellcheck disable=SC2086
set -- $common
run import trace "$trace/gpu.json" "$@"
check 'trace: batch' 2 '--batch: give the samples per device'
run import trace "$trace/gpu.json" "$@" --batch 16,32
check 'trace: a batch for each file' 2 'expected one number for each of 1 files, got 2'
run import trace "$trace/gpu.json" --workload resnet18 --batch 32
check 'trace: device' 2 'give --device NAME or --system NAME'
run import trace "$trace/gpu.json" "$@" --batch 32 -o "$work/times.json"
check 'trace: kernels by the range of their launch' 0 'batch 32, 2 iterations, 2 of [0-9]+ layers: forward 3 ms, backward 5 ms \(by sequence numbers\)'
check 'trace: time outside layers' 0 '11.1 % of the device.s time is outside all layers'
fact 'trace: conv1 forward' "$(grep -A1 '"name": "conv1"' "$work/times.json" | sed -n 's/.*"forward_s": \([0-9.e-]*\).*/\1/p')" 0.002
run schema layers
check 'schema layers' 0
has 'schema layers has its fields' 'batches\[\]\.layers\[\]\.forward_s'
run predict --workload resnet18 --system iris-v100 --framework pytorch-ddp --batch-per-device 32 --layers "$work/times.json"
check 'predict --layers' 0 '2 of [0-9]+ layers have times measured by framework profiler'
run explain --workload resnet18 --system iris-v100 --framework pytorch-ddp --batch-per-device 32 --layers "$work/times.json" --csv
has 'explain names the origin' '^conv1 forward,forward,F-LAYER-TIMES,.*,0\.002,.*measured by framework profiler'
has 'explain: other layers keep the kernel-time model' '^layer2.0.conv1 forward,forward,F-KERNEL-MODEL,'
run predict --workload resnet50 --system iris-v100 --layers "$work/times.json"
check '--layers of another workload' 2 'the times are of workload resnet18, not of resnet50'
run predict --workload resnet18 --system dgx1-p100 --layers "$work/times.json"
check '--layers of another device' 2 'the times are of device v100_sxm2_16, not of'
run predict --workload resnet18 --system iris-v100 --precision mixed --layers "$work/times.json"
check '--layers of another precision' 2 'the times are of precision fp32, not of mixed'
run predict --workload resnet18 --system iris-v100 --framework chainermn --layers "$work/times.json"
check '--layers of another framework' 2 'the times are of framework pytorch, not of chainermn'
run predict --workload resnet18 --system iris-v100 --layers no-such
check '--layers: no such name' 2 "no layer times 'no-such'"
mkdir -p "$work/data/layers"
cp "$work/times.json" "$work/data/layers/mine.json"
run --data "$work/data" predict --workload resnet18 --system iris-v100 --framework pytorch-ddp
check 'data/layers/ is used by itself' 0 'measured by framework profiler'
run --data "$work/data" predict --workload resnet50 --system iris-v100 --framework pytorch-ddp
if grep -q 'framework profiler' "$work/err"; then echo 'not ok but only where it fits'; else echo 'ok but only where it fits'; fi
sed 's/"precision"/"precison"/' "$work/times.json" > "$work/typo.json"
run predict --workload resnet18 --system iris-v100 --layers "$work/typo.json"
check '--layers: a misspelt key' 3 'typo.json:[0-9]+:[0-9]+: error: precison: .*precision'
run import trace "$trace/layers.csv" "$@" --batch 8
check 'trace: a table' 0 'batch 8, 3 iterations'
has 'trace: the median of repeats' '"forward_s": 0.0011'
has 'trace: its update' '"update_s": 0.0005'
run import trace "$trace/cpu.json" "$@" --batch 4
check 'trace: a CPU, ranges inside ranges, a list of events' 0 'forward 1.8 ms, backward 3 ms'
run import trace "$trace/cpu.json" "$trace/layers.csv" "$@" --batch 8,4
check 'trace: several batches' 0
has 'trace: ascending' '"batch_samples": 4,'
run import trace "$trace/cpu.json" --workload bert_base --device v100_sxm2_16 --batch 4
check 'trace: of another workload' 3 'none of its ranges is a layer of bert_base'
# 58 MB of events, nearly all of which count, in 90 MB of address space, programs and libraries included (the parsed text would take
# several times that); figures are those that the awk program below finds with lists of its own.
steps=2600
[ -z "${SANITIZED-}" ] || steps=200
awk -v steps="$steps" -f tests/bench/trace.awk > "$work/long.json"
(
    # shellcheck disable=SC3045 # dash and bash have it
    [ -n "${SANITIZED-}" ] || ulimit -v 90000
    exec "$DLMODEL" import trace "$work/long.json" "$@" --batch 32 -o "$work/long.times" > "$work/out" 2> "$work/err"
)
status=$?
check 'trace: a long one, event by event' 0 "batch 32, $steps iterations, 20 of [0-9]+ layers: .*by sequence numbers"
median() { sort -g | awk '{ t[NR] = $1 } END { printf "%.9f", 1e-6 * (t[int((NR + 1) / 2)] + t[int(NR / 2) + 1]) / 2 }' | sed 's/0*$//'; }
long() { grep -A2 "\"name\": \"$1\"" "$work/long.times" | sed -n "s/.*\"$2\": \([0-9.e-]*\).*/\1/p"; }
conv1=$(awk -v n="$steps" 'BEGIN { for (s = 0; s < n; s++) printf "%.3f\n", 300 + (s * 41 + 7) % 301 / 11 }' | median)
back=$(awk -v n="$steps" 'BEGIN { for (s = 0; s < n; s++) printf "%.3f\n", 600 + (s * 43 + 5) % 307 / 13 }' | median)
fact 'trace: a long one, conv1 forward' "$(long conv1 forward_s)" "$conv1"
fact 'trace: a long one, conv1 backward' "$(long conv1 backward_s)" "$back"
fact 'trace: a long one, kernels that nobody launched' "$(long layer1.0.conv1 backward_s)" 0
rm -f "$work/long.json"
head -c 300 "$trace/gpu.json" > "$work/cut.json"
run import trace "$work/cut.json" "$@" --batch 4
check 'trace: cut off' 3 'cut.json:[0-9]+:[0-9]+: error: '
for text in '[]' '{}' '{"traceEvents": 3}' '[3]' '"x"' '[{"ph": "X", "name": "layer:conv1:forward", "ts": 1}]' \
    '[{"ph": "X", "name": "layer:conv1:forward", "ts": 1, "dur": -5}]' '[{"ph": "X", "name": "layer::forward", "ts": 1, "dur": 5}]' \
    '[{"ph": "X", "name": "layer:conv1:sideways", "ts": 1, "dur": 5}]'; do
    printf '%s' "$text" > "$work/hostile.json"
    run import trace "$work/hostile.json" "$@" --batch 4
    check "trace: $text" 3 'hostile.json.* error: '
done
printf 'layer,pass\nconv1,forward\n' > "$work/t.csv"
run import trace "$work/t.csv" "$@" --batch 4
check 'trace: a table without times' 3 't.csv:1:1: error: expected the columns layer, pass and time_s'
printf 'layer,pass,time_s\nconv1,forwards,1\n' > "$work/t.csv"
run import trace "$work/t.csv" "$@" --batch 4
check 'trace: an unknown pass' 3 't.csv:2:1: error: pass: expected forward, backward or update'
printf 'layer,pass,time_s\nconv1,forward,-1\n' > "$work/t.csv"
run import trace "$work/t.csv" "$@" --batch 4
check 'trace: a negative time' 3 'time_s: expected seconds from 0'
