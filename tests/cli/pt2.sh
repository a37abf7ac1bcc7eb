#!/bin/sh
# Archives of torch.export without PyTorch. Parameters are those that PyTorch counted when the archives were made, multiply-adds half of
# what its FlopCounterMode counts (docs/recorded_models.md); the prediction is that of the workload of the same name.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
archives=tests/fixtures/pt2
if ! "$DLMODEL" -v --version 2> /dev/null | grep -q zlib; then
    run import "$archives/resnet18.pt2"
    check 'pt2: compressed, without zlib' 6 'built without zlib'
    exit 0
fi
rate() { jq -r '.results[0].iteration_s' "$SCRATCH/out"; }
named() { # named FILE PARAMETERS GMAC
    run import "$archives/$1.pt2" -o "$SCRATCH/$1.json"
    check "$1" 0 "$1: [0-9]+ nodes became [0-9]+ layers: $2 parameters, $3 GMAC a sample"
    run predict -w "$1" -s iris-v100 -f pytorch-ddp -b 32 --json
    builtin=$(rate)
    run predict -w "$archives/$1.pt2" -s iris-v100 -f pytorch-ddp -b 32 --json
    says "$1: within 3 % of the workload of that name" awk -v a="$builtin" -v b="$(rate)" 'BEGIN { exit !(a > 0 && (b / a - 1) ^ 2 < 0.03 ^ 2) }'
}
named resnet18 11689512 1.81407
named mobilenet_v2 3504872 0.300774
named densenet121 7978856 2.83416
named vit_b_16 86567656 17.5638

# 2 blocks of 32 tokens: 12 * 64^2 a token and 2 * 32^2 * 64 for attention; the head 64 * 1000 a token
run import pt2 "$archives/language.pt2" -o "$SCRATCH/language.json"
check 'a language model' 0 '230144 parameters, 0.00545587 GMAC'
says 'a language model: causal attention' grep -q '"kind":"attention".*"causal":1' "$SCRATCH/language.json"
says 'a language model: stack of equal layers' grep -q 'a stack of 2 equal layers' "$SCRATCH/err"
run import pt2 "$archives/unusual.pt2"
check 'an operator without a layer' 3 'aten.celu.*no layer corresponds'
says 'an operator without a layer: the recorder' grep -q 'python -m dlmodel export' "$SCRATCH/err"
run predict -w "$archives/unusual.pt2"
check 'an operator without a layer, as a workload' 3 'python -m dlmodel export'
head -c 2000 "$archives/resnet18.pt2" > "$SCRATCH/cut.pt2"
run import pt2 "$SCRATCH/cut.pt2"
check 'an archive that is cut off' 3 'python -m dlmodel export'
