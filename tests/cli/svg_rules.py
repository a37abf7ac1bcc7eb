#!/usr/bin/env python3
"""svg_rules.py FILE...: what every engine that renders SVG demands: well-formed XML, finite numbers, no matrix that cannot be
inverted, no negative size, references that exist. Prints the first broken rule of a file, or `good`."""
import re
import sys
import xml.etree.ElementTree as tree

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
SIZES = ("width", "height", "r", "rx", "ry", "stroke-width", "font-size")


def fault(path):
    root = tree.parse(path).getroot()
    if len(root.get("viewBox", "").split()) != 4:
        return "no viewBox"
    ids = {node.get("id") for node in root.iter()}
    for node in root.iter():
        for name, value in node.attrib.items():
            name = name.split("}")[-1]
            if re.search(r"\b(nan|inf)", value.lower()) and name in SIZES + ("d", "points", "transform", "x", "y"):
                return f"{name}={value}"
            if name in SIZES and NUMBER.match(value) and float(NUMBER.match(value).group()) < 0:
                return f"{name}={value}"
            for scale in re.findall(r"scale\(([^)]*)\)", value):
                if any(float(x) == 0 for x in NUMBER.findall(scale)):
                    return f"a matrix without inverse: {value}"
            wanted = re.findall(r"url\(#([^)]*)\)", value) + ([value[1:]] if name == "href" else [])
            if any(x not in ids for x in wanted):
                return f"no element {value}"
    return None


for path in sys.argv[1:]:
    problem = fault(path)
    print(f"{path}: {problem}" if problem else "good")
