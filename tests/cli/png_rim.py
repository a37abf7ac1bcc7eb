"""png_rim.py FILE.png...: says of which pictures something touches an edge: text that is cut off."""

import struct
import sys
import zlib


def rows(path):
    """Undone filters (PNG specification, 9): the bytes of each row, and how many a pixel has."""
    with open(path, "rb") as file:
        data = file.read()
    at, packed, width, each = 8, [], 0, 0
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, _, depth, color, _, _, interlace = struct.unpack(">IIBBBBB", body)
            assert depth == 8 and color in (2, 6) and interlace == 0, "RGB or RGBA of 8 bits"
            each = 3 if color == 2 else 4
        if kind == b"IDAT":
            packed.append(body)
        at += 12 + length
    plain = zlib.decompress(b"".join(packed))
    before = bytes(width * each)
    for start in range(0, len(plain), width * each + 1):
        how, row = plain[start], bytearray(plain[start + 1:start + 1 + width * each])
        if how == 2:
            row = bytearray((a + b) & 255 for a, b in zip(row, before))
        elif how:
            for i in range(len(row)):
                left = row[i - each] if i >= each else 0
                corner = before[i - each] if i >= each else 0
                if how == 1:
                    guess = left
                elif how == 3:
                    guess = (left + before[i]) >> 1
                else:
                    p, q, r = abs(before[i] - corner), abs(left - corner), abs(left + before[i] - 2 * corner)
                    guess = left if p <= q and p <= r else before[i] if q <= r else corner
                row[i] = (row[i] + guess) & 255
        yield bytes(row), each
        before = row


for name in sys.argv[1:]:
    edges, last, each = set(), b"", 3
    for number, (row, each) in enumerate(rows(name)):
        white = b"\xff" * each
        if number == 0 and row.strip(b"\xff"):
            edges.add("top")
        if row[:each] != white:
            edges.add("left")
        if row[-each:] != white:
            edges.add("right")
        last = row
    if last.strip(b"\xff"):
        edges.add("bottom")
    if edges:
        print(name, *sorted(edges))
