#!/usr/bin/env python3
"""Parameters and multiply-adds of networks, counted from the tables of their papers.

  flops.py          print the counts
  flops.py --check  compare flops.csv with them

Written apart from data/workloads/ and model/workload: LeNet as Caffe ships it, AlexNet in one column (Krizhevsky 2014), VGG
(Simonyan and Zisserman 2015, table 1), ResNet (He et al. 2015, table 1; the stride of v1.5 in the 3x3), GPT (Radford et al.
2019), Llama (Touvron et al. 2023). tests/unit/test_oracle_flops.c compares the program's counts with flops.csv.
"""
import os
import sys


class Net:
    """Follows the shape of an image through a network."""

    def __init__(self, channels, side):
        self.c, self.side, self.parameters, self.macs = channels, side, 0, 0

    def conv(self, out, k, stride=1, pad=0, bias=True, norm=False):
        self.side = (self.side + 2 * pad - k) // stride + 1
        weights = k * k * self.c * out
        self.parameters += weights + out * bias + 2 * out * norm
        self.macs += weights * self.side * self.side
        self.c = out

    def pool(self, k, stride, pad=0):
        self.side = (self.side + 2 * pad - k) // stride + 1

    def dense(self, out, inputs=None):
        inputs = inputs or self.c * self.side * self.side
        self.parameters += (inputs + 1) * out
        self.macs += inputs * out
        self.c, self.side = out, 1

    def row(self, name):
        return f"{name},{self.parameters},{self.macs}"


def lenet():
    n = Net(1, 28)
    n.conv(20, 5)
    n.pool(2, 2)
    n.conv(50, 5)
    n.pool(2, 2)
    n.dense(500)
    n.dense(10)
    return n.row("lenet")


def alexnet():
    n = Net(3, 224)
    n.conv(64, 11, 4, 2)
    n.pool(3, 2)
    n.conv(192, 5, 1, 2)
    n.pool(3, 2)
    for out in (384, 256, 256):
        n.conv(out, 3, 1, 1)
    n.pool(3, 2)
    for out in (4096, 4096, 1000):
        n.dense(out)
    return n.row("alexnet")


def vgg(name, blocks, norm=False):
    n = Net(3, 224)
    for depth, out in zip(blocks, (64, 128, 256, 512, 512)):
        for _ in range(depth):
            n.conv(out, 3, 1, 1, True, norm)
        n.pool(2, 2)
    for out in (4096, 4096, 1000):
        n.dense(out)
    return n.row(name)


def resnet(name, blocks, bottleneck, stride_first=False):
    n = Net(3, 224)
    n.conv(64, 7, 2, 3, False, True)
    n.pool(3, 2, 1)
    for stage, depth in enumerate(blocks):
        width = 64 << stage
        for block in range(depth):
            stride = 2 if stage > 0 and block == 0 else 1
            out = 4 * width if bottleneck else width
            c, side = n.c, n.side
            if bottleneck:
                n.conv(width, 1, stride if stride_first else 1, 0, False, True)
                n.conv(width, 3, 1 if stride_first else stride, 1, False, True)
                n.conv(out, 1, 1, 0, False, True)
            else:
                n.conv(out, 3, stride, 1, False, True)
                n.conv(out, 3, 1, 1, False, True)
            if stride > 1 or c != out:  # the projection of the shortcut
                after, (n.c, n.side) = n.side, (c, side)
                n.conv(out, 1, stride, 0, False, True)
                assert n.side == after
    n.dense(1000, n.c)
    return n.row(name)


def gpt(layers, hidden, heads, seq, vocab):
    """Tied embedding, biases, learned positions; every score, also those that the mask hides."""
    del heads
    parameters = vocab * hidden + seq * hidden + 2 * hidden
    macs = seq * hidden * vocab
    for _ in range(layers):
        parameters += 2 * 2 * hidden  # two layer norms
        for inputs, outputs in ((hidden, 3 * hidden), (hidden, hidden), (hidden, 4 * hidden), (4 * hidden, hidden)):
            parameters += inputs * outputs + outputs
            macs += seq * inputs * outputs
        macs += 2 * seq * seq * hidden  # scores, values
    return parameters, macs


def llama(layers, hidden, heads, kv_heads, ffn, seq, vocab):
    head = hidden // heads
    parameters, macs = 2 * vocab * hidden + hidden, seq * hidden * vocab
    for _ in range(layers):
        parameters += 2 * hidden
        for inputs, outputs in ((hidden, heads * head), (hidden, kv_heads * head), (hidden, kv_heads * head),
                                (heads * head, hidden), (hidden, ffn), (hidden, ffn), (ffn, hidden)):
            parameters += inputs * outputs
            macs += seq * inputs * outputs
        macs += 2 * seq * seq * heads * head
    return parameters, macs


def lines():
    yield "workload,parameters,multiply_adds"
    yield lenet()
    yield alexnet()
    for name, blocks in (("vgg11", (1, 1, 2, 2, 2)), ("vgg13", (2, 2, 2, 2, 2)), ("vgg16", (2, 2, 3, 3, 3)), ("vgg19", (2, 2, 4, 4, 4))):
        yield vgg(name, blocks)
    yield vgg("vgg16_bn", (2, 2, 3, 3, 3), True)
    for name, blocks, bottleneck in (("resnet18", (2, 2, 2, 2), False), ("resnet34", (3, 4, 6, 3), False),
                                     ("resnet50", (3, 4, 6, 3), True), ("resnet101", (3, 4, 23, 3), True),
                                     ("resnet152", (3, 8, 36, 3), True)):
        yield resnet(name, blocks, bottleneck)
    yield resnet("resnet50_v1", (3, 4, 6, 3), True, True)
    for name, shape in (("gpt2", (12, 768, 12, 1024, 50257)), ("gpt2_medium", (24, 1024, 16, 1024, 50257)),
                        ("gpt2_large", (36, 1280, 20, 1024, 50257)), ("gpt2_xl", (48, 1600, 25, 1024, 50257))):
        yield ",".join(map(str, (name,) + gpt(*shape)))
    for name, shape in (("llama2_7b", (32, 4096, 32, 32, 11008, 4096, 32000)), ("llama2_13b", (40, 5120, 40, 40, 13824, 4096, 32000)),
                        ("llama2_70b", (80, 8192, 64, 8, 28672, 4096, 32000)), ("llama3_8b", (32, 4096, 32, 8, 14336, 8192, 128256)),
                        ("llama3_70b", (80, 8192, 64, 8, 28672, 8192, 128256))):
        yield ",".join(map(str, (name,) + llama(*shape)))


def main():
    text = "\n".join(lines()) + "\n"
    if "--check" not in sys.argv:
        sys.stdout.write(text)
        return 0
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "flops.csv"), encoding="ascii") as f:
        return 0 if f.read() == text else 1


if __name__ == "__main__":
    sys.exit(main())
