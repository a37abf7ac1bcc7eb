#!/bin/sh
# blanks: a checkout, DESTDIR and PREFIX with blanks. The makefile runs in full, with a compiler that compiles nothing: files arrive where
# they should, uninstall removes them, and what lies next to them stays. Homes and data folders with blanks: states.sh.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
says() {
    name=$1
    shift
    if "$@"; then printf 'ok %s\n' "$name"; else bad "$name" "failed: $*"; fi
}
if [ -n "${SANITIZED-}" ]; then
    echo 'skip blanks: the makefile does not depend on sanitizers'
    exit 0
fi
status=0
REAL=$(realpath "$DLMODEL")
export REAL
unset DLMODEL_DATA MAKEFLAGS MFLAGS MAKELEVEL BUILD
tools="$SCRATCH/to ols"
checkout="$SCRATCH/sp ace/check out"
mkdir -p "$tools" "$checkout"
# It writes an empty object for -c, else a program that is this one: install asks it for the manual.
cat > "$tools/nocc" << 'EOF'
#!/bin/sh
out=
while [ $# -gt 0 ]; do
    case $1 in -o) out=$2; shift ;; esac
    shift
done
case $out in
'') ;;
*.o) : > "$out" ;;
*) printf '#!/bin/sh\nexec "$REAL" "$@"\n' > "$out" && chmod +x "$out" ;;
esac
EOF
chmod +x "$tools/nocc"
PATH="$tools:$PATH"
tar -c Makefile dlmodel.c calibrate data docs import include library model packaging plots predict serve slurm tests/tests.mk | tar -x -C "$checkout"
made() { # made NAME ARGUMENTS: make in the checkout
    name=$1
    shift
    (cd "$checkout" && make --no-print-directory CC=nocc PROTOBUF_C=0 "$@") > "$SCRATCH/out" 2> "$SCRATCH/err" < /dev/null
    status=$?
    check "$name" 0
}
made 'make in a folder with blanks' -j4 all
says 'it finds its own folder' [ -d "$checkout/build/source/plots" ]

dest="$SCRATCH/u v's"
mkdir -p "$SCRATCH/u" "$dest"
echo kept > "$SCRATCH/u/file"
for prefix in /usr '/opt/my models'; do
    where="PREFIX $prefix"
    missing=
    made "install: $where" install DESTDIR="$dest" PREFIX="$prefix"
    for file in bin/dlmodel share/dlmodel/data/systems/iris-v100.json share/dlmodel/slurm/sites/iris.json share/dlmodel/plots/style.gp \
        share/man/man1/dlmodel.1 share/man/man1/dlmodel-predict.1 include/dlmodel.h lib/libdlmodel.so.0 lib/pkgconfig/dlmodel.pc \
        share/bash-completion/completions/dlmodel share/zsh/site-functions/_dlmodel libexec/dlmodel/dlmodel-probe-cpu; do
        [ -e "$dest$prefix/$file" ] || missing="$missing $file"
    done
    says "install: $where: all files$missing" [ -z "$missing" ]
    touch "$dest$prefix/bin/other" "$dest$prefix/lib/libdlmodel.txt"
    made "uninstall: $where" uninstall DESTDIR="$dest" PREFIX="$prefix"
    says "uninstall: $where: what is not ours stays, and nothing else" [ "$(cd "$dest$prefix" && find . -type f -o -type l | sort | tr '\n' ' ')" = './bin/other ./lib/libdlmodel.txt ' ]
    rm -rf "${dest:?}$prefix"
done
says 'nothing is written next to DESTDIR or into the checkout' [ "$(find "$SCRATCH" -maxdepth 1 | sort | tr '\n' ' ')$(cat "$SCRATCH/u/file")$(cd "$checkout" && find . -maxdepth 1 -name 'v*')" = \
    "$(printf '%s\n' "$SCRATCH" "$SCRATCH/err" "$SCRATCH/out" "$SCRATCH/sp ace" "$SCRATCH/to ols" "$SCRATCH/u" "$dest" | sort | tr '\n' ' ')kept" ]

# `make -n uninstall` can be read before it is run: each rm with its path in quotes.
(cd "$checkout" && make -n uninstall DESTDIR='/x/u v' PREFIX=/usr) > "$SCRATCH/out" 2> "$SCRATCH/err"
status=$?
check 'make -n uninstall' 0
says 'make -n uninstall: each rm has one quoted path' [ "$(grep -c . "$SCRATCH/out")" -eq "$(grep -cE "^rm -r?f '/x/u v/usr/[^']*'[^ ]*$" "$SCRATCH/out")" ]

refused() { # refused NAME REGEX ARGUMENTS
    name=$1 regex=$2
    shift 2
    (cd "$checkout" && make "$@") > "$SCRATCH/out" 2> "$SCRATCH/err" < /dev/null
    status=$?
    check "$name" 2 "$regex"
}
refused 'BUILD with a blank' 'BUILD: expected the name of a folder without blanks' BUILD='a b' all
refused 'a quote in PREFIX' 'PREFIX and LIBDIR: expected paths without quotes' PREFIX="/a'b" uninstall
