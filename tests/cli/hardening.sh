#!/bin/sh
# hardening.sh - the programs and the library are built hardened, and the bill of materials says what they are made of.
cd "$(dirname "$0")/../.." || exit 2
. tests/cli/lib.sh
status=0
build=$(dirname "$DLMODEL")
if ! command -v readelf > /dev/null 2>&1; then
    echo 'skip hardened binaries: no readelf (Debian package binutils)'
elif nm -D "$DLMODEL" 2> /dev/null | grep -q '__asan_init'; then
    echo 'skip hardened binaries: built with sanitizers'
else
    for file in "$build"/dlmodel "$build"/dlmodel-probe-* "$build"/libdlmodel.so.0; do
        [ -e "$file" ] || continue
        name=$(basename "$file")
        readelf -lWd "$file" > "$SCRATCH/elf" 2> /dev/null
        if grep -q GNU_RELRO "$SCRATCH/elf" && grep -Eq 'BIND_NOW|FLAGS_1.*NOW' "$SCRATCH/elf"; then
            echo "ok $name: read-only relocations, bound at start"
        else
            bad "$name: read-only relocations, bound at start" "$(grep -E 'RELRO|NOW' "$SCRATCH/elf")"
        fi
        if grep 'GNU_STACK' "$SCRATCH/elf" | grep -q 'RWE'; then bad "$name: no executable stack" "$(grep GNU_STACK "$SCRATCH/elf")"; else echo "ok $name: no executable stack"; fi
        readelf -sW --dyn-syms "$file" > "$SCRATCH/symbols" 2> /dev/null
        if grep -q '__stack_chk_fail' "$SCRATCH/symbols"; then echo "ok $name: stack protector"; else bad "$name: stack protector" 'no __stack_chk_fail'; fi
        if grep -Eq '__[a-z]+_chk(@|$)' "$SCRATCH/symbols"; then echo "ok $name: fortified calls"; else bad "$name: fortified calls" 'no *_chk'; fi
        case $name in *.so*) ;; *)
            if readelf -hW "$file" | grep -q 'DYN'; then echo "ok $name: position independent"; else bad "$name: position independent" "$(readelf -hW "$file" | grep Type)"; fi ;;
        esac
        if [ "$(uname -m)" = x86_64 ]; then
            # the property of a whole program needs every object; ours are looked at one by one
            if objdump -d --no-show-raw-insn "$file" 2> /dev/null | grep -q endbr64; then echo "ok $name: branch protection"; else bad "$name: branch protection" 'no endbr64'; fi
        fi
    done
fi

# The bill of materials: well-formed, names the program, its libraries and the tables of others with their licences.
archives=$(sed -n 's/^[A-Z_]*_ARCHIVES := //p' "$build/config.mk" 2> /dev/null | tr '\n' ' ')
if VERSION=1 COMMIT=abc SOURCE_DATE_EPOCH=0 ARCHIVES=$archives sh packaging/sbom.sh "$DLMODEL" > "$SCRATCH/sbom.json" 2> "$SCRATCH/err" &&
    python3 - "$SCRATCH/sbom.json" "$archives" << 'PY' 2> "$SCRATCH/err"
import json, sys
d = json.load(open(sys.argv[1]))
assert d["spdxVersion"] == "SPDX-2.3" and d["creationInfo"]["created"] == "1970-01-01T00:00:00Z"
names = {p["name"] for p in d["packages"]}
ids = [p["SPDXID"] for p in d["packages"]]
assert len(ids) == len(set(ids)), "an SPDXID twice"
assert "dlmodel" in names and any("gsl" in n.lower() for n in names), names
assert any(n.startswith("data/kernels/") for n in names), names
linked = {r["relatedSpdxElement"] for r in d["relationships"] if r["relationshipType"] == "STATIC_LINK"}
assert any("gsl" in e.lower() for e in linked) == ("gsl" in sys.argv[2]), linked
for r in d["relationships"]:
    assert r["relatedSpdxElement"] in ids + ["SPDXRef-DOCUMENT"]
PY
then echo 'ok bill of materials'; else bad 'bill of materials' "$(tail -3 "$SCRATCH/err")"; fi
# Every table of measurements in data/ falls under an annotation of REUSE.toml.
missing=$(find data/runs data/collectives data/kernels -name '*.csv' | while read -r f; do grep -qF "\"$f\"" REUSE.toml || echo "$f"; done)
if [ -z "$missing" ]; then echo 'ok licences of tables'; else bad 'licences of tables' "not in REUSE.toml: $missing"; fi
