#!/bin/sh
# library: libdlmodel as another program uses it: docs/example.c against the static and the shared library, by pkg-config; the names that
# the shared library exports; C++.
# shellcheck source=tests/cli/lib.sh
. tests/cli/lib.sh
work=$SCRATCH
built=$(cd "$(dirname "$DLMODEL")" && pwd)
export DLMODEL_DATA="${DLMODEL_DATA:-$(pwd)/data}"
status=0
if [ -n "${SANITIZED-}" ]; then
    echo 'skip library: linked into a program without sanitizers'
    exit 0
fi
config() { PKG_CONFIG_PATH=$built "${PKG_CONFIG:-pkg-config}" "--define-variable=prefix=$(pwd)" "--define-variable=libdir=$built" "$@" dlmodel; }
if ! command -v "${PKG_CONFIG:-pkg-config}" > /dev/null 2>&1; then
    echo 'skip library: no pkg-config (Debian package pkgconf)'
    exit 0
fi
says 'pkg-config knows the version' [ "dlmodel $(config --modversion)" = "$("$DLMODEL" --version)" ]
warnings='-std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wstrict-prototypes -Werror'
# shellcheck disable=SC2046,SC2086
${CC:-gcc} $warnings docs/example.c $(config --cflags --libs) -o "$work/shared" > "$work/out" 2> "$work/err"
status=$?
check 'the example compiles against the shared library' 0
# shellcheck disable=SC2046,SC2086
${CC:-gcc} $warnings docs/example.c $(config --cflags) "$built/libdlmodel.a" $(config --static --libs-only-l | sed 's/-ldlmodel//') \
    -o "$work/static" > "$work/out" 2> "$work/err"
status=$?
check 'the example compiles against the static library' 0
LD_LIBRARY_PATH=$built "$work/shared" vgg16 > "$work/out" 2> "$work/err"
status=$?
check 'the example runs' 0
cp "$work/out" "$work/shared.out"
"$work/static" vgg16 > "$work/out" 2> "$work/err"
status=$?
check 'the example runs, static' 0
says 'both say the same' cmp -s "$work/out" "$work/shared.out"
run predict --workload vgg16 --system dgx1-v100 --framework horovod-pytorch --precision mixed --json
predicted=$(sed -n 's/^ *"iteration_s": *\([0-9.e+-]*\),*$/\1/p' "$work/out" | head -n 1)
says 'and what the program says' grep -q "^ 1 nodes: $(printf '%.6g' "$predicted") s " "$work/shared.out"
LD_LIBRARY_PATH=$built "$work/shared" vgg61 > "$work/out" 2> "$work/err"
status=$?
check 'an error is a sentence' 1 'vgg61'
if command -v nm > /dev/null 2>&1; then
    nm -D --defined-only "$built/libdlmodel.so" | awk '$2 ~ /[TDBR]/ { print $3 }' | grep -v '^dlmodel_' > "$work/out"
    says 'the shared library exports nothing but dlmodel_*' [ ! -s "$work/out" ]
    declared=$(grep -vE '^ ?/?\*' include/dlmodel.h | grep -oE 'dlmodel_[a-z_]+\(' | sort -u | wc -l)
    says 'and all of it' [ "$(nm -D --defined-only "$built/libdlmodel.so" | grep -c ' T dlmodel_')" -eq "$declared" ]
fi
if command -v g++ > /dev/null 2>&1; then
    printf '#include <dlmodel.h>\nint main() { return dlmodel_open("x") == nullptr; }\n' > "$work/main.cc"
    # shellcheck disable=SC2046
    g++ -Wall -Wextra -Werror "$work/main.cc" $(config --cflags --libs) -o "$work/cc" > "$work/out" 2> "$work/err"
    status=$?
    check 'C++ takes the header' 0
fi
# a program that has set its user's locale, where numbers have a comma
if command -v localedef > /dev/null 2>&1 && localedef -i de_DE -f UTF-8 "$work/de_DE.UTF-8" > /dev/null 2>&1; then
    cat > "$work/german.c" <<'END'
#include <dlmodel.h>
#include <locale.h>
#include <stdio.h>
int main(void) {
    struct dlmodel *m = dlmodel_open(NULL);
    const int set = setlocale(LC_ALL, "") != NULL;
    if (m == NULL || dlmodel_option(m, "set", "links.inter.bandwidth=12.5GB/s") != DLMODEL_OK || dlmodel_option(m, "nodes", "2") != DLMODEL_OK) return 1;
    if (dlmodel_predict(m) != DLMODEL_OK) fprintf(stderr, "%s\n", dlmodel_error(m));
    printf("%d %s %.12g\n", set, localeconv()->decimal_point, dlmodel_value(m, "iteration_s"));
    dlmodel_close(m);
    return 0;
}
END
    # shellcheck disable=SC2046,SC2086
    ${CC:-gcc} $warnings "$work/german.c" $(config --cflags --libs) -o "$work/german" > "$work/out" 2> "$work/err"
    LC_ALL=C LD_LIBRARY_PATH=$built "$work/german" > "$work/english.out" 2> "$work/err"
    LOCPATH=$work LC_ALL=de_DE.UTF-8 LD_LIBRARY_PATH=$built "$work/german" > "$work/out" 2> "$work/err"
    status=$?
    check 'a program in a German locale' 0
    has 'its numbers have a comma' '^1 , 0,[0-9]+$'
    says 'and are the same' [ "$(sed 's/ , / . /; s/0,/0./' "$work/out")" = "$(cat "$work/english.out")" ]
else
    echo 'skip library in a German locale: no sources of locales (Debian package locales)'
fi
