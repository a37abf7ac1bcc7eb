"""slow_folder.py BEHIND MOUNT - a shared folder that is slow, as a FUSE mount: MOUNT shows BEHIND, and whatever is asked takes long.

The file BEHIND/../slow says how, and may change while files are open: "DELAY_S BYTES_PER_S ROOM_BYTES" (each call, written bytes, and how many
bytes may still be written before the folder is full; -1: no end). Ends when it is unmounted.
"""
import errno
import os
import sys
import time

try:
    import fusepy as fuse  # Debian's name
except ImportError:
    import fuse


class Slow(fuse.Operations):
    def __init__(self, behind):
        self.behind, self.rules, self.used = behind, behind.rstrip("/") + ".slow", 0

    def at(self, path):
        return self.behind + path

    def wait(self, size=0):
        try:
            with open(self.rules, encoding="ascii") as f:
                delay_s, bytes_per_s, room = (float(n) for n in f.read().split())
        except (OSError, ValueError):
            return
        if size and 0 <= room < self.used + size:
            raise fuse.FuseOSError(errno.ENOSPC)
        self.used += size
        time.sleep(delay_s + size / bytes_per_s)

    def getattr(self, path, fh=None):
        info = os.lstat(self.at(path))
        names = "st_atime st_ctime st_mtime st_gid st_uid st_mode st_nlink st_size".split()
        return {n: getattr(info, n) for n in names}

    def readdir(self, path, fh):
        self.wait()
        return [".", ".."] + os.listdir(self.at(path))

    def open(self, path, flags):
        self.wait()
        return os.open(self.at(path), flags & ~os.O_APPEND)

    def create(self, path, mode, fi=None):
        self.wait()
        return os.open(self.at(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)

    def read(self, path, size, offset, fh):
        return os.pread(fh, size, offset)

    def write(self, path, data, offset, fh):
        self.wait(len(data))
        return os.pwrite(fh, data, offset)

    def fsync(self, path, datasync, fh):
        self.wait()
        os.fsync(fh)

    def release(self, path, fh):
        os.close(fh)

    def truncate(self, path, length, fh=None):
        os.truncate(self.at(path), length)

    def mkdir(self, path, mode):
        self.wait()
        os.mkdir(self.at(path), mode)

    def rmdir(self, path):
        os.rmdir(self.at(path))

    def unlink(self, path):
        os.unlink(self.at(path))

    def rename(self, old, new):
        self.wait()
        os.rename(self.at(old), self.at(new))

    def chmod(self, path, mode):
        os.chmod(self.at(path), mode)

    def chown(self, path, uid, gid):
        os.chown(self.at(path), uid, gid)

    def utimens(self, path, times=None):
        os.utime(self.at(path), times)


if __name__ == "__main__":
    fuse.FUSE(Slow(sys.argv[1]), sys.argv[2], foreground=True, allow_other=True, attr_timeout=0, entry_timeout=0)
