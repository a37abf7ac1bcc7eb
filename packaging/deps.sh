#!/bin/sh
# deps.sh [build|demo|check|rest|all] - installs the Debian packages of a set that are missing: says what it will install, uses sudo when not
# root, and knows apt alone; elsewhere it names the packages. What cannot be installed is said; it stops only when dlmodel itself
# could not be built (and tested, for check and all).
#   build   compiler and the libraries that dlmodel links
#   demo    also what a calibration of a CPU measures with, and gnuplot
#   check   also what the tests need (default), a real Slurm and PyTorch among them: what is not there is counted as skipped
#   rest    also what `make check-all` also tests: Chromium, Firefox and proxies for the page of `serve`, mypy, clang for the fuzzers; from PyPI into
#           build/python, axe-core (rules of accessibility), Schemathesis (requests from the OpenAPI document) and PyTorch with torchvision,
#           timm, transformers and diffusers (6 GB; models that tests record)
#   all     also what coverage, valgrind and static analysis need, which are run by hand
set -u
what=${1:-check}
build='gcc libc6-dev make pkg-config libgsl-dev libcjson-dev'
demo='libdnnl-dev libopenblas-dev libopenmpi-dev openmpi-bin gnuplot-nox'
check='libcmocka-dev python3 shellcheck clang-format libmicrohttpd-dev libprotobuf-c-dev protobuf-c-compiler libyaml-dev zlib1g-dev libsqlite3-dev jq zsh locales
    slurm-wlm slurm-client slurm-wlm-basic-plugins munge slurmdbd mariadb-server python3-torch libjansson-dev strace faketime python3-fusepy'
rest='clang libclang-rt-14-dev chromium firefox-esr mypy python3-venv python3-pip nginx-light caddy openssl ruby'
all='gcovr clang-tidy cppcheck valgrind'
# The first clang that counts conditions (18 or later), where the distribution has one: make mcdc.
release=$(apt-cache pkgnames clang- 2> /dev/null | sed -n 's/^clang-\(1[89]\|2[0-9]\)$/\1/p' | sort -n | head -n 1)
[ -z "$release" ] || all="$all clang-$release llvm-$release libclang-rt-$release-dev"
case $what in
build) packages=$build ;;
demo) packages="$build $demo" ;;
check) packages="$build $demo $check" ;;
rest) packages="$build $demo $check $rest" ;;
all) packages="$build $demo $check $rest $all" ;;
*) echo 'usage: deps.sh [build|demo|check|rest|all]' >&2; exit 2 ;;
esac

# Without these there is no dlmodel and no test; the others are optional.
required() {
    cmocka='#include <cmocka.h>' library=-lcmocka
    case $what in build | demo) cmocka='' library='' ;; esac
    work=$(mktemp -d) || return 1
    cat > "$work/t.c" << C
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
$cmocka
#include <cjson/cJSON.h>
#include <gsl/gsl_math.h>
int main(void) { cJSON_Delete(cJSON_Parse("{}")); return gsl_isnan(1.0); }
C
    eval "${CC:-gcc} ${CPPFLAGS-} ${CFLAGS-} \"\$work/t.c\" -o \"\$work/t\" ${LDFLAGS-} $library -lcjson -lgsl -lgslcblas -lm" > /dev/null 2>&1
    found=$?
    rm -rf "$work"
    return $found
}
give_up() { # give_up REASON: go on with what is there, if that is enough
    printf '%s\n' "$1" >&2
    if required; then
        echo 'Going on without: what must be there is here, the rest is optional (make features).' >&2
        exit 0
    fi
    exit 1
}

if ! command -v apt-get > /dev/null 2>&1; then
    required && exit 0
    cat >&2 << 'T'
No apt here. Install these and run make again (a C compiler, make, GSL, cJSON and cmocka are needed, the rest is optional):
  dnf:    gcc make pkgconf-pkg-config gsl-devel cjson-devel libcmocka-devel openmpi-devel gnuplot openblas-devel onednn-devel protobuf-c-devel protobuf-c-compiler libyaml-devel zlib-devel sqlite-devel
  zypper: gcc make pkg-config gsl-devel libcjson-devel libcmocka-devel openmpi4-devel gnuplot openblas-devel onednn-devel libprotobuf-c-devel protobuf-c libyaml-devel zlib-devel sqlite3-devel
  spack:  gcc gmake pkgconf gsl cjson cmocka openmpi gnuplot openblas onednn protobuf-c libyaml zlib sqlite
T
    exit 1
fi

# Debian's PyTorch is older than 2.5, which recording a model needs.
torch_from_pypi() {
    [ ! -x "$at/torch/bin/python" ] || return 0
    mkdir -p "$at"
    if [ "$(df -Pk "$at" | awk 'NR == 2 { print $4 }')" -lt 12000000 ]; then
        echo 'Going on without PyTorch from PyPI, which needs 12 GB here: tests that record models will be skipped.' >&2
        return
    fi
    echo 'Installing from PyPI into build/python/torch: torch, torchvision, timm, transformers, diffusers (6 GB)'
    python3 -m venv "$at/torch" && timeout 900 "$at/torch/bin/pip" install -q --no-cache-dir 'torch==2.15.0' 'torchvision==0.29.2' 'timm==1.0.31' \
        'transformers==5.24.0' 'diffusers==0.42.1' && return 0
    rm -rf "$at/torch"
    echo 'Going on without: tests that record models will be skipped.' >&2
}

# What Debian does not have; tests without it are counted as skipped.
from_pypi() {
    case $what in rest | all) ;; *) return 0 ;; esac
    at=$(cd "$(dirname "$0")/.." && pwd)/build/python
    torch_from_pypi
    [ ! -d "$at/axe_playwright_python" ] || [ ! -x "$at/schemathesis/bin/schemathesis" ] || return 0
    echo 'Installing from PyPI into build/python: axe-playwright-python (for its axe-core), schemathesis'
    python3 -m pip install -q --no-deps --target "$at" 'axe-playwright-python==0.1.8' &&
        python3 -m venv "$at/schemathesis" &&
        "$at/schemathesis/bin/pip" install -q 'schemathesis==4.32.5' ||
        echo 'Going on without: tests that need them will be skipped.' >&2
}

# dpkg-query complains about names that it has never heard of, and those are missing.
# shellcheck disable=SC2086
missing=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $packages 2> /dev/null | awk -v want="$packages" '
    $1 == "installed" { have[$2] = 1 }
    END { n = split(want, p); for (i = 1; i <= n; i++) if (!(p[i] in have)) printf " %s", p[i] }')
if [ -z "$missing" ]; then
    from_pypi
    exit 0
fi

echo "Installing:$missing"
sudo=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo > /dev/null 2>&1 || give_up "Not root, and there is no sudo. As root: apt-get install$missing"
    sudo=sudo
fi
# apt speaks only when it fails
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
apt() {
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -qq "$@" > "$log" 2>&1 && return
    cat "$log" >&2
    return 1
}
# Lists of the last ten minutes will do: make calls this twice on a fresh machine.
listed() { [ -n "$(find /var/lib/apt/lists -name '*_Packages*' 2> /dev/null | head -n 1)" ] && [ -n "$(find /var/lib/apt/lists/partial -maxdepth 0 -mmin -10 2> /dev/null)" ]; }
listed || apt update || give_up 'apt-get update failed: check the network and the package sources.'
# shellcheck disable=SC2086
apt -y install --no-install-recommends $missing || give_up "apt-get could not install:$missing"
from_pypi
