#!/bin/sh
# Describing one's machine: extends, all missing keys at once, templates, and `init`.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH
file() { # file NAME MEMBERS
    printf '{"format": "dlmodel-system", "version": 1, "name": "%s", "summary": "test",\n%s}\n' "$1" "$2" > "$work/$1.json"
}
value() { # value COLUMN ARGS: of a prediction
    column=$1
    shift
    "$DLMODEL" predict -f pytorch-ddp -w vgg16 --csv "$@" 2> /dev/null |
        awk -F, -v c="$column" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == c) k = i } NR == 2 { print k ? $k : NR rand() }'
}

# A system that extends another is that one where it says nothing.
file same '"extends": "dgx-h100"'
for column in iteration_s comm_s exposed_comm_s memory.total_bytes; do
    [ "$(value $column -s "$work/same.json" -n 8)" = "$(value $column -s dgx-h100 -n 8)" ] && echo "ok extends keeps $column" || echo "not ok extends keeps $column"
done
file slower '"extends": "dgx-h100", "links": {"inter": {"bandwidth_bytes_per_s": 5e9}}'
[ "$(value comm_s -s "$work/slower.json" -n 8)" = "$(value comm_s -s dgx-h100 -n 8 --set links.inter.bandwidth=5GB/s)" ] && echo 'ok extends changes one number' || echo 'not ok extends changes one number'
file third "\"extends\": \"$work/slower.json\", \"nodes\": 4"
[ "$(value comm_s -s "$work/third.json" -n 4)" = "$(value comm_s -s "$work/slower.json" -n 4)" ] && echo 'ok extends a system that extends' || echo 'not ok extends a system that extends'
file device '"extends": "dgx-a100-80", "device": "a100_sxm4_40"'
run predict -s "$work/device.json" -f pytorch-ddp -w vgg16
check 'extends with another device' 0
has 'the other device' 'a100_sxm4_40'
run predict -s "$work/slower.json" -f pytorch-ddp -w vgg16 -n 2 --set links.inter.bandwidth=50GB/s
check 'what-ifs of a system that extends' 0
file a "\"extends\": \"$work/b.json\""
file b "\"extends\": \"$work/a.json\""
run predict -s "$work/a.json" -f pytorch-ddp
check 'systems that extend each other' 3 "b\.json:2:[0-9]+: error: extends: '.*a\.json' extends itself"
file lost '"extends": "dgx-h1000"'
run predict -s "$work/lost.json" -f pytorch-ddp
check 'extends an unknown system' 3 'lost\.json:2:[0-9]+: error: extends: no system "dgx-h1000"; did you mean "dgx-h100"'
file wrong '"nodes": -1, "devices_per_node": 1, "device": "h100_sxm"'
file above "\"extends\": \"$work/wrong.json\""
run predict -s "$work/above.json" -f pytorch-ddp
check 'a fault in the base names its file' 3 'wrong\.json:2:10: error: nodes: expected'

# One error names all missing keys, those of links included.
echo '{"devices_per_node": 2, "links": {"inter": {}}}' > "$work/bare.json"
run predict -s "$work/bare.json" -f pytorch-ddp
check 'all missing keys' 3 'format: required, missing: .*; also missing: version, links\.inter\.kind, name, summary, nodes, device, links\.intra\.kind, links\.intra\.bandwidth_bytes_per_s, links\.inter\.bandwidth_bytes_per_s$'
file short '"device": "h100_sxm", "nodes": 2, "devices_per_node": 8'
run predict -s "$work/short.json" -f pytorch-ddp
check 'missing links' 3 'links\.intra\.kind: .*; also missing: links\.intra\.bandwidth_bytes_per_s, links\.inter\.kind, links\.inter\.bandwidth_bytes_per_s$'

# Templates: JSON whose unfilled values the loader refuses by name.
for kind in system site; do
    run schema $kind --template
    check "template of a $kind" 0
    has "its required keys" '"name": "REQUIRED: '
done
run schema system --template
cp "$work/out" "$work/template.json"
run predict -s "$work/template.json" -f pytorch-ddp
check 'an unfilled template' 3 'nodes: expected a whole number in \[1, 1e7\], got "REQUIRED: '
run schema device --template
check 'no template of a device' 2 "expected 'schema system'"

# init: saved outputs of tools, options, or answers make a system and a site that predict and slurm take.
tools=tests/fixtures/init
json() { # json FILE EXPRESSION: of the document d
    python3 -c "import json, sys; d = json.load(open(sys.argv[1])); sys.exit(not ($2))" "$1"
}
run init $tools/scontrol.txt $tools/topo.txt $tools/gpus.txt $tools/ibstat.txt --name mine -o "$work/mine.json" --site-output "$work/mine-site.json"
check 'init from saved outputs' 0 'wrote .*mine\.json; next: dlmodel predict'
says 'the nodes with GPUs are counted' json "$work/mine.json" 'd["nodes"] == 2 and d["devices_per_node"] == 4 and d["device"] == "v100_sxm2_16"'
says 'host of scontrol' json "$work/mine.json" 'd["host"]["cores"] == 28 and d["host"]["memory_bytes"] == 768000 * 2**20 and d["host"]["sources"]["cores"] == "scontrol show node"'
says 'active adapters of ibstat, at 95 % of their rate' json "$work/mine.json" 'd["links"]["inter"]["adapters_per_node"] == 2 and d["links"]["inter"]["bandwidth_bytes_per_s"] == 0.95 * 12.5e9'
says 'distance of topo -m' json "$work/mine.json" 'd["links"]["inter"]["distance"] == "PIX"'
says 'the rest is marked as borrowed' json "$work/mine.json" 'd["source"] == d["links"]["intra"]["source"] == d["host"]["source"] == "borrowed" and "dgx1-v100" in d["comment"]'
says 'links of the GPUs that are there' json "$work/mine.json" 'all(e["from"] < 4 and e["to"] < 4 for e in d["links"]["intra"]["edges"])'
run predict -s "$work/mine.json" -f pytorch-ddp -n 2
check 'its system predicts' 0
run slurm submit --site "$work/mine-site.json" -f pytorch-ddp --gpus 8 --dry-run --dir "$work/runs"
check 'its site submits' 0
has '8 GPUs are 2 nodes' 'n2x4'
run slurm submit --site "$work/mine-site.json" -f pytorch-ddp --gpus 6 --dry-run --dir "$work/runs"
check 'GPUs that fill no nodes' 2 'multiple of the 4 devices'
run init --device h100 --nodes 4 --network '4x200Gb/s roce'
check 'init from options' 0
cp "$work/out" "$work/options.json"
says 'RoCE is Ethernet with RDMA' json "$work/options.json" 'd["links"]["inter"]["kind"] == "ethernet" and d["links"]["inter"]["rdma"] and d["devices_per_node"] == 8'
(cd "$work" && printf 'asked\nNVIDIA A100-SXM4-80GB\n4\n16\n4x200Gb/s infiniband\ngpu\n' | "$DLMODEL" init --ask > out 2> err)
status=$?
check 'init asks six questions' 0 'wrote asked-site\.json'
says 'answers' json "$work/asked.json" 'd["device"] == "a100_sxm4_80" and d["nodes"] == 16 and d["links"]["inter"]["adapters_per_node"] == 4'
(cd "$work" && printf 'asked\nh100\n8\n2\n\n\n' | "$DLMODEL" init --ask > out 2> err)
status=$?
check 'no file is replaced unasked' 2 'asked\.json exists'
run init
check 'init without a GPU' 2 'no GPU is known'
run init --device h100 --nodes 4 --network fast
check 'a network without a rate' 2 'expected \[Nx\]RATE'
run init --device nosuch
check 'an unknown GPU' 2 'schema system --template'
run init "$work/mine.json"
check 'no output of a tool' 3 'expected the output of scontrol'
