#!/bin/sh
# features.sh BUILD - finds optional libraries by compiling and linking a few lines with each; writes BUILD/config.mk and
# BUILD/features.txt, and prints the latter. A library that is asked for (X=1) and missing is an error that says how to get it.
set -u
build=$1
work=$build/features
mkdir -p "$work"
config=$build/config.mk.new
report=$build/features.txt
: > "$config"
: > "$report"
found_all=
printf 'CONFIG_KEY := %s\n' "${CONFIG_KEY:-}" | sed 's/[$]/$$/g; s/#/\\#/g' >> "$config"

# try NAME FLAGS < source: compiles and links; the compiler's words are kept in NAME.log
try() {
    name=$1
    shift
    cat > "$work/$name.c"
    # as make's own shell would read the flags: quotes in them count
    eval "${CC:-cc} -std=c11 ${CPPFLAGS-} ${CFLAGS-} \"\$work/\$name.c\" -o \"\$work/\$name\" ${LDFLAGS-} $*" > "$work/$name.log" 2>&1
}

need() { # need NAME FLAG PACKAGE < source
    # shellcheck disable=SC2086
    if try "$1" $2 -lm; then return; fi
    printf 'error: %s does not compile and link (%s), and dlmodel needs it: make deps, or install %s\n' "$1" "$work/$1.log" "$3" >&2
    exit 1
}

# feature NAME VARIABLE CHOICE HOW-TO-GET CFLAGS LIBS < source
feature() {
    name=$1 variable=$2 choice=$3 get=$4 cflags=$5 libs=$6
    source=$(cat)
    if [ "$choice" = 0 ]; then
        printf '  -  %-9s left out (%s=0)\n' "$name" "$variable" >> "$report"
        return
    fi
    # shellcheck disable=SC2086
    if printf '%s\n' "$source" | try "$variable" $cflags $libs; then
        printf '  ✓  %-9s found\n' "$name" >> "$report"
        printf 'HAVE_%s := 1\n%s_CFLAGS := %s\n%s_LIBS := %s\n' "$variable" "$variable" "$cflags" "$variable" "$libs" >> "$config"
        found_all="$found_all $name"
    elif [ "$choice" = 1 ]; then
        printf 'error: %s=1, but %s does not compile and link (%s): %s\n' "$variable" "$name" "$work/$variable.log" "$get" >&2
        exit 1
    else
        printf '  ✗  %-9s not found: %s\n' "$name" "$get" >> "$report"
    fi
}

command -v "${CC%% *}" > /dev/null 2>&1 || { printf 'error: there is no compiler named %s: make deps, or CC=...\n' "$CC" >&2; exit 1; }
need cJSON -lcjson libcjson-dev <<'C'
#include <cjson/cJSON.h>
int main(void) { cJSON_Delete(cJSON_Parse("{}")); return 0; }
C
need GSL '-lgsl -lgslcblas' libgsl-dev <<'C'
#include <gsl/gsl_math.h>
int main(void) { return gsl_isnan(1.0); }
C

# Into the program, archives where the machine has them: to find and bind three shared libraries takes a quarter of a millisecond at
# each start, a tenth of a cold prediction. STATIC=0 keeps them shared, as a distribution wants it.
archives() { # archives CHOICE LIB... < source: their flags, -l:libX.a each; nothing where one is missing or does not link
    choice=$1 flags=
    shift
    [ "$choice" != 0 ] || return 0
    for library in "$@"; do flags="$flags -l:lib$library.a"; done
    # shellcheck disable=SC2086
    if try "archive_$1" $flags -lm; then printf '%s' "${flags# }"; fi
}
gsl_archives=$(archives "${STATIC:-auto}" gsl gslcblas <<'C'
#include <gsl/gsl_blas.h>
int main(void) { return gsl_blas_dgemm(CblasNoTrans, CblasNoTrans, 1, 0, 0, 1, 0); }
C
)
printf 'GSL_ARCHIVES := %s\n' "$gsl_archives" >> "$config"

pkg=${PKG_CONFIG:-pkg-config}
cuda=${CUDA_HOME:-/usr/local/cuda}
cuda_flags="-isystem $cuda/include"
cuda_libs="-L$cuda/lib64 -Wl,-rpath,$cuda/lib64"

# Open MPI's flags from pkg-config, else from its compiler wrapper.
if $pkg --exists ompi-c 2> /dev/null; then
    mpi_cflags=$($pkg --cflags ompi-c) mpi_libs=$($pkg --libs ompi-c)
else
    mpi_cflags=$(mpicc --showme:compile 2> /dev/null) mpi_libs=$(mpicc --showme:link 2> /dev/null)
fi
feature MPI MPI "${MPI:-auto}" 'apt install libopenmpi-dev openmpi-bin' "$mpi_cflags" "${mpi_libs:--lmpi}" <<'C'
#include <mpi.h>
int main(void) { int n; return MPI_Initialized(&n); }
C
feature oneDNN ONEDNN "${ONEDNN:-auto}" 'apt install libdnnl-dev (release 2; the interface of release 3 is another)' '' '-ldnnl' <<'C'
#include <oneapi/dnnl/dnnl.h>
int main(void) { dnnl_convolution_desc_t d; (void)d; return dnnl_version() == 0; }
C
feature OpenBLAS OPENBLAS "${OPENBLAS:-auto}" 'apt install libopenblas-dev' "$($pkg --cflags openblas 2>/dev/null)" \
    "$($pkg --libs openblas 2>/dev/null || echo -lopenblas)" <<'C'
#include <cblas.h>
char *openblas_get_corename(void);
int main(void) { return openblas_get_corename() == 0; }
C
feature CUDA CUDA "${CUDA:-auto}" 'set CUDA_HOME to the CUDA toolkit' "$cuda_flags" "$cuda_libs -lcudart -lcublas -lcublasLt" <<'C'
#include <cuda_runtime_api.h>
#include <cublas_v2.h>
int main(void) { int n = 0; cublasHandle_t h; (void)h; return (int)cudaGetDeviceCount(&n) < 0; }
C
feature cuDNN CUDNN "${CUDNN:-auto}" 'install cuDNN into CUDA_HOME' "$cuda_flags" "$cuda_libs -lcudnn -lcublas -lcudart" <<'C'
#include <cudnn.h>
int main(void) { return cudnnGetVersion() == 0; }
C
feature NCCL NCCL "${NCCL:-auto}" 'install NCCL into CUDA_HOME' "$cuda_flags" "$cuda_libs -lnccl -lcudart" <<'C'
#include <nccl.h>
int main(void) { int v; return ncclGetVersion(&v) != ncclSuccess; }
C
# Both the library and the compiler of the messages' description; PROTOC_C=NAME names another.
protobuf_c=${PROTOBUF_C:-auto} protobuf_c_libs=$($pkg --libs libprotobuf-c 2> /dev/null || echo -lprotobuf-c)
if [ "$protobuf_c" != 0 ] && ! "${PROTOC_C:-protoc-c}" --version > /dev/null 2>&1; then protobuf_c_libs=-lprotobuf-c-without-its-compiler; fi
feature protobuf-c PROTOBUF_C "$protobuf_c" 'apt install libprotobuf-c-dev protobuf-c-compiler (import onnx needs both)' \
    "$($pkg --cflags libprotobuf-c 2> /dev/null)" "$protobuf_c_libs" <<'C'
#include <protobuf-c/protobuf-c.h>
int main(void) { return protobuf_c_version_number() == 0; }
C
if [ -x "$work/PROTOBUF_C" ]; then
    printf 'PROTOBUF_C_ARCHIVES := %s\n' "$(archives "${STATIC:-auto}" protobuf-c < "$work/PROTOBUF_C.c")" >> "$config"
fi
feature libyaml LIBYAML "${LIBYAML:-auto}" 'apt install libyaml-dev (import of YAML files)' \
    "$($pkg --cflags yaml-0.1 2> /dev/null)" "$($pkg --libs yaml-0.1 2> /dev/null || echo -lyaml)" <<'C'
#include <yaml.h>
int main(void) { int a, b, c; yaml_get_version(&a, &b, &c); return a < 0; }
C
if [ -x "$work/LIBYAML" ]; then
    printf 'LIBYAML_ARCHIVES := %s\n' "$(archives "${STATIC:-auto}" yaml < "$work/LIBYAML.c")" >> "$config"
fi
feature zlib ZLIB "${ZLIB:-auto}" 'apt install zlib1g-dev (import of traces compressed by gzip)' \
    "$($pkg --cflags zlib 2> /dev/null)" "$($pkg --libs zlib 2> /dev/null || echo -lz)" <<'C'
#include <zlib.h>
int main(void) { return zlibVersion() == 0; }
C
if [ -x "$work/ZLIB" ]; then
    printf 'ZLIB_ARCHIVES := %s\n' "$(archives "${STATIC:-auto}" z < "$work/ZLIB.c")" >> "$config"
fi
feature SQLite SQLITE "${SQLITE:-auto}" 'apt install libsqlite3-dev (import of profiles that nsys exports)' \
    "$($pkg --cflags sqlite3 2> /dev/null)" "$($pkg --libs sqlite3 2> /dev/null || echo -lsqlite3)" <<'C'
#include <sqlite3.h>
int main(void) { return sqlite3_libversion_number() < 3031000; }
C
if [ -x "$work/SQLITE" ]; then
    printf 'SQLITE_ARCHIVES := %s\n' "$(archives "${STATIC:-auto}" sqlite3 < "$work/SQLITE.c")" >> "$config"
fi
feature microhttpd MICROHTTPD "${MICROHTTPD:-auto}" 'apt install libmicrohttpd-dev (dlmodel serve)' \
    "$($pkg --cflags libmicrohttpd 2> /dev/null)" "$($pkg --libs libmicrohttpd 2> /dev/null || echo -lmicrohttpd)" <<'C'
#include <microhttpd.h>
int main(void) { return MHD_get_version() == 0; }
C

# Not linked but loaded: under the name that a program linked with it asks for.
if [ -x "$work/MICROHTTPD" ]; then
    soname=$(readelf -d "$work/MICROHTTPD" 2> /dev/null | sed -n 's/.*(NEEDED).*\[\(libmicrohttpd[^]]*\)\].*/\1/p' | head -n 1)
    printf 'MICROHTTPD_SONAME := %s\n' "${soname:-libmicrohttpd.so}" >> "$config"
fi

printf 'FEATURES := %s\n' "${found_all# }" >> "$config"
mv "$config" "$build/config.mk"
cat "$report"
