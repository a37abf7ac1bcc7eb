#!/usr/bin/env python3
"""Peaks of PyTorch's memory: allocations recorded from real training steps, replayed as on a GPU.

  record_memory.py              record every network (needs PyTorch, torchvision, a C compiler; two minutes), print memory.csv
  record_memory.py train NAME BATCH   what it runs under the recorder, once for each network

Two steps of SGD with momentum on one thread of the CPU, in fp32; memory_recorder.c notes each tensor's allocation and
release in their order. The replay is a transcription of what PyTorch documents of its caching allocator for CUDA
(docs "CUDA semantics", c10/cuda/CUDACachingAllocator.cpp; key pytorch-memory-source of data/SOURCES.md): sizes in
multiples of 512 bytes; up to 1 MiB from segments of 2 MiB, below 10 MiB from segments of 20 MiB, others from segments of
their own in multiples of 2 MiB; the smallest free block that fits, split when what is left is at least 512 bytes (small)
or above 1 MiB (large); neighbours that are free join. tests/unit/test_oracle_memory.c compares the model with memory.csv.
What a CPU's convolutions reorder is in the trace, the workspaces of cuDNN are not.
"""
import bisect
import os
import struct
import subprocess
import sys
import tempfile

KIB, MIB = 1024, 1024 * 1024
MARK = 128  # an alignment that no tensor has
NETWORKS = [("lenet", 64), ("lenet", 512), ("alexnet", 32), ("resnet18", 8), ("resnet18", 32), ("resnet50", 8),
            ("mobilenet_v2", 16), ("vgg11", 8), ("gpt", 4), ("gpt", 16)]


class CachingAllocator:
    """Blocks are [address, bytes, free, segment]; a segment's blocks are in the order of their addresses."""

    def __init__(self):
        self.blocks = {}  # segment -> blocks
        self.small = {}   # segment -> is it of small blocks
        self.free = ([], [])  # of large, of small: (bytes, segment, address)
        self.reserved = self.active = self.asked = 0
        self.peaks = [0, 0, 0]

    @staticmethod
    def rounded(size):
        return max(512, (size + 511) // 512 * 512)

    def take(self, size):
        asked, size = size, self.rounded(size)
        small = size <= MIB
        free = self.free[small]
        at = bisect.bisect_left(free, (size, -1, -1))
        if at < len(free):
            _, segment, address = free.pop(at)
        else:
            length = 2 * MIB if small else 20 * MIB if size < 10 * MIB else (size + 2 * MIB - 1) // (2 * MIB) * 2 * MIB
            segment, address = len(self.blocks), 0
            self.blocks[segment], self.small[segment] = [[0, length]], small
            self.reserved += length
        blocks = self.blocks[segment]
        i = bisect.bisect_left(blocks, [address, 0])
        left = blocks[i][1] - size
        if left >= 512 if small else left > MIB:
            blocks[i][1] = size
            blocks.insert(i + 1, [address + size, left])
            bisect.insort(free, (left, segment, address + size))
        size = blocks[i][1]
        self.active += size
        self.asked += asked
        self.peaks = [max(a, b) for a, b in zip(self.peaks, (self.asked, self.active, self.reserved))]
        return segment, address, size, asked

    def release(self, taken):
        segment, address, size, asked = taken
        self.active -= size
        self.asked -= asked
        blocks, free = self.blocks[segment], self.free[self.small[segment]]
        i = bisect.bisect_left(blocks, [address, 0])
        for j in (i + 1, i - 1):  # the neighbour above, then that below
            if not 0 <= j < len(blocks):
                continue
            entry = (blocks[j][1], segment, blocks[j][0])
            at = bisect.bisect_left(free, entry)
            if at == len(free) or free[at] != entry:
                continue
            free.pop(at)
            low = min(i, j)
            blocks[low][1] += blocks[low + 1][1]
            del blocks[low + 1]
            i = low
        bisect.insort(free, (blocks[i][1], segment, blocks[i][0]))


def by_hand():
    """3 of 700 KiB: two in the first segment of 2 MiB, the third in a second one. 12 MiB and 1 byte: 14 MiB."""
    a = CachingAllocator()
    taken = [a.take(700 * KIB) for _ in range(3)]
    assert a.reserved == 4 * MIB and a.active == 2100 * KIB
    a.release(taken[0])
    a.release(taken[1])
    assert [a.take(MIB)[0] for _ in range(2)] == [1, 0] and a.reserved == 4 * MIB  # the best fit, then what was joined
    a.take(12 * MIB + 1)
    assert a.reserved == 18 * MIB and a.take(1)[2] == 512
    a.take(2 * MIB)
    assert a.reserved == 38 * MIB
    a.take(18 * MIB)  # 18 MiB are left of 20: the whole block
    assert a.reserved == 38 * MIB


def train(name, batch):
    import ctypes
    import torch
    from torch import nn
    libc = ctypes.CDLL(None)

    def mark():
        pointer = ctypes.c_void_p()
        libc.posix_memalign(ctypes.byref(pointer), ctypes.c_size_t(MARK), ctypes.c_size_t(MARK))
        libc.free(pointer)

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.drop = nn.Dropout(0.1)

        def forward(self, x, mask):
            b, s, width = x.shape
            q, k, v = (t.view(b, s, self.heads, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).split(width, 2))
            scores = (q @ k.transpose(2, 3) * (width // self.heads) ** -0.5).masked_fill(mask[:s, :s], float("-inf"))
            y = (self.drop(scores.softmax(-1)) @ v).transpose(1, 2).reshape(b, s, width)
            x = x + self.drop(self.out(y))
            return x + self.drop(self.down(nn.functional.gelu(self.up(self.norm2(x)))))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(8000, 256), nn.Embedding(128, 256)
            self.drop = nn.Dropout(0.1)
            self.blocks = nn.ModuleList(Block(256, 8) for _ in range(6))
            self.norm = nn.LayerNorm(256)
            self.register_buffer("mask", torch.ones(128, 128, dtype=torch.bool).triu(1))

        def forward(self, x):
            x = self.drop(self.words(x) + self.places.weight[: x.shape[1]])
            for block in self.blocks:
                x = block(x, self.mask)
            return (self.norm(x) @ self.words.weight.t()).flatten(0, 1)

    def make():
        if name == "gpt":
            return Gpt()
        if name == "lenet":  # as Caffe has it
            return nn.Sequential(nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.Flatten(),
                                 nn.Linear(800, 500), nn.ReLU(True), nn.Linear(500, 10))
        import torchvision
        return getattr(torchvision.models, name)()

    torch.set_num_threads(1)
    shape, classes = {"lenet": ((1, 28, 28), 10), "gpt": ((128,), 8000)}.get(name, ((3, 224, 224), 1000))
    mark()
    net = make()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    for _ in range(2):
        x = torch.randint(0, classes, (batch,) + shape) if name == "gpt" else torch.randn((batch,) + shape)
        y = torch.randint(0, classes, (batch * shape[0],) if name == "gpt" else (batch,))
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        del x, y, loss
    mark()


def replay(path):
    """Peaks of what was asked for, of whole blocks, of segments, from the first mark on."""
    with open(path, "rb") as f:
        data = f.read()
    allocator, taken, marks = CachingAllocator(), {}, 0
    for size, alignment, address in struct.iter_unpack("QQQ", data):
        if alignment == MARK:
            marks += 1
        elif size > 0 and alignment == 64 and marks == 1:
            taken[address] = allocator.take(size)
        elif size == 0 and address in taken:
            allocator.release(taken.pop(address))
    assert marks == 2
    return allocator.peaks


def main():
    by_hand()
    here = os.path.dirname(os.path.abspath(__file__))
    if sys.argv[1:2] == ["train"]:
        train(sys.argv[2], int(sys.argv[3]))
        return
    if sys.argv[1:] == ["--check"]:
        return
    with tempfile.TemporaryDirectory() as work:
        library, trace = os.path.join(work, "recorder.so"), os.path.join(work, "trace")
        subprocess.run([os.environ.get("CC", "cc").split()[-1], "-O2", "-shared", "-fPIC", "-o", library,
                        os.path.join(here, "memory_recorder.c")], check=True)
        print("network,batch,asked_bytes,active_bytes,reserved_bytes")
        for name, batch in NETWORKS:
            if os.path.exists(trace):
                os.remove(trace)
            subprocess.run([sys.executable, os.path.abspath(__file__), "train", name, str(batch)], check=True,
                           env=dict(os.environ, LD_PRELOAD=library, RECORD=trace))
            print(",".join(map(str, [name, batch] + replay(trace))), flush=True)


if __name__ == "__main__":
    main()
