#!/bin/sh
# deps.sh - installs the packages that building and testing need, if any is missing: says what it will install, uses sudo when not
# root, and knows apt alone; elsewhere it names the packages. What cannot be installed is said; it stops only when dlmodel itself
# could not be built.
set -u
packages="gcc make pkg-config libgsl-dev libcjson-dev libopenmpi-dev openmpi-bin gnuplot-nox libcmocka-dev libopenblas-dev libdnnl-dev python3 shellcheck libprotobuf-c-dev protobuf-c-compiler jq gcovr zsh locales"
# For the tests with a real Slurm and PyTorch (tests/slurm); without them those say that they were skipped.
packages="$packages slurm-wlm slurm-client slurm-wlm-basic-plugins munge slurmdbd mariadb-server python3-torch"

# Without these there is no dlmodel and no test; the others are optional.
required() {
    work=$(mktemp -d) || return 1
    cat > "$work/t.c" <<'C'
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <cjson/cJSON.h>
#include <gsl/gsl_math.h>
int main(void) { cJSON_Delete(cJSON_Parse("{}")); return gsl_isnan(1.0); }
C
    eval "${CC:-gcc} ${CPPFLAGS-} ${CFLAGS-} \"\$work/t.c\" -o \"\$work/t\" ${LDFLAGS-} -lcmocka -lcjson -lgsl -lgslcblas -lm" > /dev/null 2>&1
    found=$?
    rm -rf "$work"
    return $found
}
give_up() { # give_up REASON: go on with what is there, if that is enough
    printf '%s\n' "$1" >&2
    if required; then
        echo 'Going on without: compiler, GSL, cJSON and cmocka are here, the rest is optional (make features).' >&2
        exit 0
    fi
    exit 1
}

if ! command -v apt-get > /dev/null 2>&1; then
    required && exit 0
    cat >&2 <<'T'
No apt here. Install these and run make again (a C compiler, make, GSL, cJSON and cmocka are needed, the rest is optional):
  dnf:    gcc make pkgconf-pkg-config gsl-devel cjson-devel libcmocka-devel openmpi-devel gnuplot openblas-devel onednn-devel protobuf-c-devel protobuf-c-compiler
  zypper: gcc make pkg-config gsl-devel libcjson-devel libcmocka-devel openmpi4-devel gnuplot openblas-devel onednn-devel libprotobuf-c-devel protobuf-c
  spack:  gcc gmake pkgconf gsl cjson cmocka openmpi gnuplot openblas onednn protobuf-c
T
    exit 1
fi

missing=
for p in $packages; do
    dpkg-query -W -f '${db:Status-Status}\n' "$p" 2> /dev/null | grep -qx installed || missing="$missing $p"
done
[ -z "$missing" ] && exit 0

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
apt update || give_up 'apt-get update failed: check the network and the package sources.'
# shellcheck disable=SC2086
apt -y install --no-install-recommends $missing || give_up "apt-get could not install:$missing"
