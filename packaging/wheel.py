"""The Python wheel: the module of python/, the program, the library and the data, in one file.

    make wheel            build/dlmodel-VERSION-py3-none-manylinux_2_N_x86_64.whl
    pip install .         the same, through the hooks of PEP 517 below

Nothing but Python's standard library, make and binutils. The layout is that of `make install`: the
program in bin/, data in share/dlmodel, libdlmodel.so.0 and the shared libraries that it needs in
share/dlmodel/lib (`pip install --target` leaves out lib/). The same sources give the same bytes: files in order, with the time of
SOURCE_DATE_EPOCH (1980 without).

Shared libraries of this machine come along under names of their own (dl_z.so.1 for libz.so.1), so
that a process that has loaded another libz keeps it. The tag is the newest version of glibc that any
of these files needs.
"""

import base64
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import zipfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Of glibc: what a manylinux wheel takes from the machine (PEP 600).
OF_THE_MACHINE = re.compile(r"^(lib(c|m|dl|rt|pthread)\.so\.\d+|ld-linux.*)$")
# Probes measure this machine's own libraries, for which they are built: a wheel brings none.
WITHOUT = ["CUDA=0", "NCCL=0", "CUDNN=0", "MPI=0", "ONEDNN=0", "OPENBLAS=0"]
# Packed relocations need glibc 2.36. Old tags: the path holds for the libraries' own needs, too.
# '@' becomes '$', which make and the shell would expand.
LDFLAGS = ("-s -Wl,-z,nopack-relative-relocs -Wl,--disable-new-dtags "
           "-Wl,-rpath,@ORIGIN/../share/dlmodel/lib:@ORIGIN/../lib")
LIBRARIES = os.path.join("share", "dlmodel", "lib")
METADATA = """\
Metadata-Version: 2.4
Name: dlmodel
Version: %s
Summary: Performance model of distributed deep-learning training: predict, search, compare
License-Expression: %s
Requires-Python: >=3.9
Provides-Extra: pandas
Requires-Dist: pandas; extra == "pandas"
Provides-Extra: torch
Requires-Dist: torch>=2.5; extra == "torch"
Requires-Dist: numpy; extra == "torch"
Provides-Extra: transformers
Requires-Dist: torch>=2.5; extra == "transformers"
Requires-Dist: transformers>=4.48; extra == "transformers"
Description-Content-Type: text/markdown
%s
%s"""


def _read(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as file:
        return file.read()


def _version():
    return re.search(r"^VERSION := (\S+)$", _read("Makefile"), re.M).group(1)


def _make(build, *words, **environment):
    command = [os.environ.get("MAKE", "make"), "--no-print-directory", "-C", TOP, "BUILD=" + build,
               "PREFIX=/nonexistent", "LDFLAGS=" + LDFLAGS, *WITHOUT, *words]
    subprocess.run(command, check=True, env={**os.environ, **environment}, stdout=sys.stderr)


def _dynamic(path):
    """Libraries that a file needs, and its newest version of glibc."""
    text = subprocess.run(["readelf", "-dV", "--wide", path], check=True, capture_output=True,
                          text=True, env={**os.environ, "LC_ALL": "C"}).stdout
    versions = [int(v) for v in re.findall(r"Name: GLIBC_2\.(\d+)", text)]
    if "GLIBC_ABI_DT_RELR" in text:
        versions.append(36)
    return re.findall(r"\(NEEDED\).*\[(.+)\]", text), max(versions, default=17)


def _foreign(path):
    return [name for name in _dynamic(path)[0] if not OF_THE_MACHINE.match(name)]


def _own_names(path):
    """Renames the libraries that a file needs, and itself as one, in its strings: equal lengths."""
    with open(path, "rb") as file:
        content = file.read()
    content = content.replace(b"@ORIGIN", b"$ORIGIN")
    for name in {*_foreign(path), os.path.basename(path)} - {"libdlmodel.so.0"}:
        if name.startswith("lib"):
            content = content.replace(name.encode() + b"\0", b"dl_" + name[3:].encode() + b"\0")
    with open(path, "wb") as file:
        file.write(content)


def _bring_libraries(stage, binaries):
    """Copies what the binaries need into share/dlmodel/lib; all files with their new names."""
    resolved, queue = {}, list(binaries)
    while queue:
        path = queue.pop()
        found = dict(re.findall(r"(\S+) => (/\S+)", subprocess.run(
            ["ldd", path], check=True, capture_output=True, text=True).stdout))
        for name in _foreign(path):
            if name == "libdlmodel.so.0" or name in resolved:
                continue
            if name not in found:
                raise SystemExit("wheel: %s needs %s, which is not here" % (path, name))
            resolved[name] = os.path.realpath(found[name])
            queue.append(resolved[name])
    copies = []
    for name, path in sorted(resolved.items()):
        copies.append(os.path.join(stage, LIBRARIES, name))
        shutil.copyfile(path, copies[-1])
        os.chmod(copies[-1], 0o755)
    for path in [*binaries, *copies]:
        subprocess.run(["strip", "--strip-unneeded", path], check=True)
    needs = [_dynamic(path)[1] for path in [*binaries, *copies]]
    for path in [*binaries, *copies]:
        _own_names(path)
    for path in copies:
        folder, name = os.path.split(path)
        os.rename(path, os.path.join(folder, "dl_" + name[3:]))
    return max(needs)


def _licences(bill):
    """Texts for the packages in the bill of materials, as Debian has them."""
    texts = {"LICENSE": _read("LICENSE").encode()}
    for name in sorted(set(re.findall(r"pkg:deb/debian/([^@]+)@", bill))):
        path = "/usr/share/doc/%s/copyright" % name
        if name not in ("libc6",) and os.path.exists(path):
            with open(path, "rb") as file:
                texts[name + ".txt"] = file.read()
    return texts


def _take_objects(build, whole):
    """Objects of `make` for which the wheel sets nothing: those that it compiled are its own."""
    for where, _, names in os.walk(whole):
        for name in names:
            path = os.path.join(where, name)
            own = os.path.join(build, os.path.relpath(path, whole))
            if where.startswith(build) or not name.endswith(".o"):
                continue
            if not os.path.exists(own[:-2] + ".d"):
                os.makedirs(os.path.dirname(own), exist_ok=True)
                shutil.copy2(path, own)
    if os.path.exists(os.path.join(whole, "flags")) and not os.path.exists(
            os.path.join(build, "flags")):
        shutil.copy2(os.path.join(whole, "flags"), os.path.join(build, "flags"))


def _install(build):
    """`make install` into a folder, in the layout of the wheel. That folder, and the glibc."""
    jobs = "-j%d" % (os.cpu_count() or 1)
    _take_objects(build, os.path.dirname(build))
    for name in ("dlmodel", "libdlmodel.so.0"):  # linked again: make does not see other LDFLAGS
        if os.path.exists(os.path.join(build, name)):
            os.remove(os.path.join(build, name))
    _make(build, jobs, "all")
    _make(build, "sbom")
    root = os.path.join(build, "stage")
    shutil.rmtree(root, ignore_errors=True)
    _make(build, "install", DESTDIR=root)
    stage = os.path.join(root, "nonexistent")
    os.mkdir(os.path.join(stage, LIBRARIES))
    binaries = [os.path.join(stage, "bin", "dlmodel"),
                os.path.join(stage, LIBRARIES, "libdlmodel.so.0")]
    os.rename(os.path.join(stage, "lib", "libdlmodel.so.0"), binaries[1])
    return stage, _bring_libraries(stage, binaries)


def _files(version, stage, bill):
    """Names in the wheel, with their content and whether they are programs."""
    files = {}

    def add(folder, below, name_of):
        for where, _, names in os.walk(os.path.join(folder, below)):
            for name in names:
                path = os.path.join(where, name)
                if not name.endswith(".pyc"):
                    with open(path, "rb") as file:
                        files[name_of(os.path.relpath(path, folder))] = (
                            file.read(), os.access(path, os.X_OK))

    data = "dlmodel-%s.data/" % version
    add(os.path.join(TOP, "python"), "dlmodel", lambda path: path)
    add(stage, "bin", lambda path: data + "scripts/" + os.path.basename(path))
    add(stage, "share", lambda path: data + "data/" + path)
    about = "dlmodel-%s.dist-info/" % version
    licences = _licences(bill)
    # GSL is linked in, so that GPL-3.0-or-later holds for the whole; the sources stay Apache-2.0
    expression = ("Apache-2.0 AND GPL-3.0-or-later" if any(n.startswith("libgsl") for n in licences)
                  else "Apache-2.0")
    for name, text in licences.items():
        files[about + "licenses/" + name] = (text, False)
    files[about + "METADATA"] = ((METADATA % (
        version, expression, "".join("License-File: %s\n" % name for name in sorted(licences)),
        _read("python", "README.md"))).encode(), False)
    files[about + "sboms/dlmodel.spdx.json"] = (bill.encode(), False)
    return files


def _write(path, files):
    since = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), 315532800))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (content, program) in files.items():
            entry = zipfile.ZipInfo(name, since[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = (0o100755 if program else 0o100644) << 16
            archive.writestr(entry, content)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517."""
    version = _version()
    build = os.path.join(os.environ.get("BUILD", "build"), "wheel")
    os.environ.setdefault("SOURCE_DATE_EPOCH", "315532800")
    build = os.path.relpath(os.path.join(TOP, build), TOP)
    os.chdir(TOP)
    stage, glibc = _install(build)
    with open(os.path.join(build, "dlmodel.spdx.json"), encoding="utf-8") as file:
        bill = file.read()
    tag = "py3-none-manylinux_2_%d_%s" % (glibc, platform.machine())
    files = dict(sorted(_files(version, stage, bill).items()))
    about = "dlmodel-%s.dist-info/" % version
    files[about + "WHEEL"] = (("Wheel-Version: 1.0\nGenerator: dlmodel\nRoot-Is-Purelib: false\n"
                               "Tag: %s\n" % tag).encode(), False)
    record = ""
    for name, (content, _) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        record += "%s,sha256=%s,%d\n" % (name, digest, len(content))
    files[about + "RECORD"] = ((record + about + "RECORD,,\n").encode(), False)
    name = "dlmodel-%s-%s.whl" % (version, tag)
    _write(os.path.join(wheel_directory, name), files)
    return name


def build_sdist(sdist_directory, config_settings=None):
    """PEP 517: the source archive of `make dist`."""
    name = "dlmodel-%s.tar.gz" % _version()
    subprocess.run(["make", "-C", TOP, "dist"], check=True, stdout=sys.stderr)
    if os.path.realpath(sdist_directory) != TOP:
        shutil.move(os.path.join(TOP, name), os.path.join(sdist_directory, name))
    return name


if __name__ == "__main__":
    place = os.path.abspath(sys.argv[1])
    print(os.path.join(sys.argv[1], build_wheel(place)))
