#!/bin/sh
# deps.sh - installs the packages that building and testing need, if any is missing. Says what it will install; uses sudo when not
# root; on systems without apt it names the packages for others and stops.
set -u
packages="gcc make pkg-config libgsl-dev libcjson-dev libopenmpi-dev openmpi-bin gnuplot-nox libcmocka-dev libopenblas-dev libdnnl-dev"

if ! command -v apt-get > /dev/null 2>&1; then
    cat >&2 <<'T'
No apt here. Install these and run make again:
  dnf:    gcc make pkgconf-pkg-config gsl-devel cjson-devel openmpi-devel gnuplot libcmocka-devel openblas-devel onednn-devel
  zypper: gcc make pkg-config gsl-devel cJSON-devel openmpi4-devel gnuplot libcmocka-devel openblas-devel onednn-devel
  spack:  gcc gmake pkgconf gsl cjson openmpi gnuplot cmocka openblas onednn
T
    # Someone who has them all need not be stopped.
    if command -v gcc > /dev/null && printf '#include <cjson/cJSON.h>\n#include <gsl/gsl_math.h>\nint main(void){return 0;}\n' |
        gcc -x c - -o /dev/null -lcjson -lgsl -lgslcblas -lm 2> /dev/null; then
        exit 0
    fi
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
    if ! command -v sudo > /dev/null 2>&1; then
        echo "Not root, and there is no sudo. As root: apt-get install$missing" >&2
        exit 1
    fi
    sudo=sudo
fi
export DEBIAN_FRONTEND=noninteractive
lock='-o DPkg::Lock::Timeout=300'
# shellcheck disable=SC2086
$sudo apt-get $lock -qq update || { echo "apt-get update failed: check the network and the package sources" >&2; exit 1; }
# shellcheck disable=SC2086
$sudo env DEBIAN_FRONTEND=noninteractive apt-get $lock -qq -y install --no-install-recommends $missing > /dev/null ||
    { echo "apt-get could not install:$missing" >&2; exit 1; }
