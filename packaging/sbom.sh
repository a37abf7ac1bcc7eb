#!/bin/sh
# sbom.sh PROGRAM... - prints a software bill of materials in SPDX 2.3 (JSON): dlmodel, the Debian packages whose shared libraries
# its programs load or whose archives (ARCHIVES: "-l:libgsl.a ...") are linked into them, and the tables in data/ that others measured,
# with the licences that REUSE.toml names. VERSION and COMMIT: of dlmodel.
set -eu
text() { sed 's/\\/\\\\/g; s/"/\\"/g' | tr -d '\n\r\t'; }
created=$(date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%Y-%m-%dT%H:%M:%SZ)
sum=$(cat "$@" | sha256sum | cut -d' ' -f1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

: > "$work/linked"
# Libraries -> packages. A library that no package owns (a toolkit outside /usr) is listed by its file.
for program in "$@"; do ldd "$program" 2> /dev/null; done | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u > "$work/libraries"
for archive in ${ARCHIVES-}; do ${CC:-cc} -print-file-name="${archive#-l:}"; done | sed -n '/^\//p' > "$work/archives"
cat "$work/archives" >> "$work/libraries"
while read -r library; do
    real=$(readlink -f "$library")
    package=$( { dpkg -S "$real" 2> /dev/null || dpkg -S "${real#/usr}" 2> /dev/null || true; } | head -1 | sed 's/: .*//; s/:.*//')
    # shared or linked in: what refers to the package below
    case $library in *.a) printf '%s\n' "${package:-$(basename "$library")}" >> "$work/linked" ;; esac
    if [ -n "$package" ]; then
        dpkg-query -W -f '${Package}\t${Version}\t${source:Package}\n' "$package" 2> /dev/null | head -1
    else
        printf '%s\t%s\t-\n' "$(basename "$library")" "$(basename "$real" | sed 's/.*\.so\.*//; s/^$/unknown/')"
    fi
done < "$work/libraries" | sort -u > "$work/packages"

printf '{\n  "spdxVersion": "SPDX-2.3",\n  "dataLicense": "CC0-1.0",\n  "SPDXID": "SPDXRef-DOCUMENT",\n'
printf '  "name": "dlmodel-%s",\n  "documentNamespace": "https://spdx.org/spdxdocs/dlmodel-%s-%s",\n' "$VERSION" "$VERSION" "$sum"
printf '  "creationInfo": { "created": "%s", "creators": ["Tool: dlmodel make sbom"] },\n' "$created"
printf '  "documentDescribes": ["SPDXRef-dlmodel"],\n  "packages": [\n'
printf '    { "SPDXID": "SPDXRef-dlmodel", "name": "dlmodel", "versionInfo": "%s (%s)", "downloadLocation": "NOASSERTION",\n' "$VERSION" "$COMMIT"
printf '      "filesAnalyzed": false, "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0", "copyrightText": "2026 dlmodel developers" }'
awk -F '\t' '{
    id = $1; gsub(/[^A-Za-z0-9.-]/, "-", id)
    printf ",\n    { \"SPDXID\": \"SPDXRef-%s\", \"name\": \"%s\", \"versionInfo\": \"%s\", \"downloadLocation\": \"NOASSERTION\",\n", id, $1, $2
    printf "      \"filesAnalyzed\": false, \"licenseConcluded\": \"NOASSERTION\", \"licenseDeclared\": \"NOASSERTION\", \"copyrightText\": \"NOASSERTION\""
    if ($3 != "-") {
        version = $2; gsub(/\+/, "%2B", version); gsub(/:/, "%3A", version)
        printf ",\n      \"externalRefs\": [{ \"referenceCategory\": \"PACKAGE-MANAGER\", \"referenceType\": \"purl\", "
        printf "\"referenceLocator\": \"pkg:deb/debian/%s@%s\" }]", $1, version
    }
    printf " }"
}' "$work/packages"
# Tables of others: each annotation of REUSE.toml that is not ours.
awk '/^path = /{ path = $0; sub(/^path = /, "", path); gsub(/[]["]/, "", path) }
     /^SPDX-FileCopyrightText = /{ who = $0; sub(/^[^"]*"/, "", who); sub(/"$/, "", who) }
     /^SPDX-License-Identifier = /{ licence = $0; sub(/^[^"]*"/, "", licence); sub(/"$/, "", licence)
         if (path ~ /^data\//) printf "%s\t%s\t%s\n", path, who, licence }' REUSE.toml | while IFS="$(printf '\t')" read -r path who licence; do
    id=$(printf '%s' "$path" | tr -c 'A-Za-z0-9.-' '-')
    printf ',\n    { "SPDXID": "SPDXRef-%s", "name": "%s", "versionInfo": "%s", "downloadLocation": "NOASSERTION",\n' "$id" \
        "$(printf '%s' "$path" | text)" "$COMMIT"
    printf '      "filesAnalyzed": false, "licenseConcluded": "%s", "licenseDeclared": "%s", "copyrightText": "%s" }' "$licence" "$licence" \
        "$(printf '%s' "$who" | text)"
done
printf '\n  ],\n  "relationships": [\n    { "spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-dlmodel" }'
cut -f1 "$work/packages" | while read -r name; do
    link=DYNAMIC_LINK
    if grep -qxF -- "$name" "$work/linked"; then link=STATIC_LINK; fi
    printf ',\n    { "spdxElementId": "SPDXRef-dlmodel", "relationshipType": "%s", "relatedSpdxElement": "SPDXRef-%s" }' "$link" \
        "$(printf '%s' "$name" | tr -c 'A-Za-z0-9.-' '-')"
done
printf '\n  ]\n}\n'
