#!/bin/sh
# try.sh - builds the image of dlmodel.def with Apptainer and runs it, on a Debian that has neither Apptainer nor a way to Docker's
# images (root; needs debootstrap, 3 GB, 10 minutes and a kernel with user namespaces):
#     make dist && sudo sh packaging/apptainer/try.sh [FOLDER]
# Apptainer is in Debian's unstable release alone: it gets a tree of its own. The base image is debootstrap's minbase of the release
# that the definition names; the definition's first two lines name that tree instead, all else is as it stands.
# FOLDER (else a temporary one, removed at the end) keeps the trees, which a second run takes over, and the image in FOLDER/apptainer/src.
# MIRROR: a mirror of Debian, else debootstrap's own.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
definition=$here/packaging/apptainer/dlmodel.def
fail() {
    printf 'error: %s\n' "$1" >&2
    exit 1
}
[ "$(id -u)" = 0 ] || fail 'wants to be root, for debootstrap and mounts'
command -v debootstrap > /dev/null || fail 'no debootstrap: apt install debootstrap'
archive=$(sed -n 's/^ *\(dlmodel-[0-9.]*\.tar\.gz\) .*/\1/p' "$definition")
[ -f "$here/$archive" ] || fail "no $archive: make dist"
case $(sed -n 's/^From: *//p' "$definition") in
debian:12) release=bookworm ;;
debian:13) release=trixie ;;
*) fail 'the definition starts from an image whose release of Debian is not known here' ;;
esac

if [ $# -gt 0 ]; then
    mkdir -p "$1"
    folder=$(cd "$1" && pwd)
else
    folder=$(mktemp -d)
    trap 'rm -rf --one-file-system "$folder"' EXIT
    trap 'exit 1' INT TERM HUP
fi
tree=$folder/apptainer
base=$folder/base
if [ ! -f "$folder/ready" ]; then
    debootstrap --variant=minbase "$release" "$base" ${MIRROR:+"$MIRROR"}
    rm -rf "${base:?}"/dev/* # an image has no device nodes, and in a user namespace none can be made
    debootstrap --variant=minbase sid "$tree" ${MIRROR:+"$MIRROR"}
    DEBIAN_FRONTEND=noninteractive chroot "$tree" apt-get install -y --no-install-recommends apptainer squashfs-tools squashfuse ca-certificates
    echo '127.0.0.1 localhost' > "$tree/etc/hosts"
    mkdir -p "$tree/src" "$tree/base"
    touch "$folder/ready"
fi
cp "$here/$archive" "$tree/src/"
sed -e 's/^Bootstrap:.*/Bootstrap: localimage/' -e 's,^From:.*,From: /base,' "$definition" > "$tree/src/dlmodel.def"
commit=$(tar -xzOf "$here/$archive" "${archive%.tar.gz}/packaging/commit.txt")

cat > "$tree/src/run.sh" << 'T'
set -eu
cd /src
export TMPDIR=/src APPTAINER_TMPDIR=/src APPTAINER_CACHEDIR=/src/cache
apptainer build --force dlmodel.sif dlmodel.def # %files, %post and, last, %test
apptainer inspect dlmodel.sif
apptainer run-help dlmodel.sif
apptainer exec dlmodel.sif sh -c '[ "$LC_ALL" = C.UTF-8 ]' # %environment
apptainer run dlmodel.sif predict --nodes 16 --framework pytorch-ddp --json > prediction.json # %runscript
grep '"commit": "'"$1"'"' prediction.json
grep '"iteration_s"' prediction.json
T

# A namespace of mounts that ends with the script. Apptainer refuses a plain chroot, so the tree becomes the root; in a user
# namespace it has every capability that it asks for, as for a user without privileges.
# shellcheck disable=SC2016
unshare --mount --propagation private sh -c '
    set -e
    mount --bind "$1" "$1"
    mount --bind "$2" "$1/base"
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    mount --rbind /sys "$1/sys"
    cd "$1"
    pivot_root . mnt
    exec chroot . sh -c "umount -l /mnt && cd / && exec unshare --user --mount --map-users=0,0,65536 --map-groups=0,0,65536 \
        --setuid 0 --setgid 0 sh /src/run.sh \$1" sh "$3"
' sh "$tree" "$base" "$commit"
echo "ok: dlmodel.def builds, passes its test and runs ($commit)"
