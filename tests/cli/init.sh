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
