"""python_types.py PROGRAM > python/dlmodel/typed.py - the options of each command and the columns of its
results as Python types, from the program's own tables (`dlmodel schema`)."""

import json
import subprocess
import sys
import textwrap

COMMANDS = ("predict", "search", "explain", "advise", "campaign", "match", "compare", "plot")
# refused by libdlmodel (library/call.c): they choose a format or write files
REFUSED = {"output", "format", "json", "csv", "help", "trace", "export", "merge", "sweep", "markdown", "leave-out",
           "fit", "intervals", "generalize", "tables", "write", "fit-constants"}
# rows of results: schema, columns that each row has, and members that are no columns
ROWS = {"PredictionRow": ("prediction", ("system", "workload", "framework"), {"warnings": "Sequence[str]"}),
        "MatchRow": ("match", ("workload", "framework", "system", "device", "precision", "devices", "release"), {}),
        "AdviceRow": ("advice", ("advice", "change", "effect"), {}),
        "CampaignRow": ("campaign", ("devices_per_trial",), {}),
        "ComparisonRow": ("comparison", ("id",), {"interval": "Optional[Sequence[float]]",
                                                  "causes": "Sequence[Mapping[str, Scalar]]"})}
TYPES = {"boolean": "bool", "number": "Union[float, str]", "integer": "Union[int, str]", "list": "Words",
         "string": "Text", "choice": "str"}
HEAD = '''"""Options of the commands and columns of their results, made by tools/python_types.py. Do not edit."""

from __future__ import annotations

from typing import Literal, Mapping, Optional, Sequence, TypedDict, Union

Scalar = Union[str, int, float]
Text = Union[Scalar, Sequence[Scalar]]  # a list is joined by commas
Words = Union[str, Sequence[str]]
'''


def schema(*words):
    text = subprocess.run([sys.argv[1], "schema", *words, "--json"], capture_output=True, text=True, check=True).stdout
    return json.loads(text)


def option_type(option):
    if option["key"] in ("set", "where"):
        return "Mapping[str, Scalar]"
    if option["type"] == "choice":
        return "Literal[%s]" % ", ".join(w if w.isdigit() else '"%s"' % w for w in option["choices"].split() if w != "open")
    return TYPES[option["type"]]


def comment(text):
    return textwrap.wrap(text, 100, initial_indent="    # ", subsequent_indent="    # ", break_on_hyphens=False)


def written(name, base, options):
    lines = ["", "", "class %s(%s, total=False):" % (name, base)]
    for option in options:
        lines += comment(option["help"])
        lines.append("    %s: Optional[%s]" % (option["key"].replace("-", "_"), option_type(option)))
    return lines if options else lines + ["    pass"]


def main():
    options = {command: [o for o in schema("options", command) if o["key"] not in REFUSED] for command in COMMANDS}
    kinds = {command: {o["key"]: option_type(o) for o in options[command]} for command in COMMANDS}
    plan = [o for o in options["predict"]
            if all(kinds[c].get(o["key"]) == option_type(o) for c in COMMANDS[:6])]
    shared = {o["key"] for o in plan}
    lines = HEAD.splitlines() + written("PlanOptions", "TypedDict", plan)
    for command in COMMANDS:
        own = [o for o in options[command] if o["key"] not in shared]
        whole = shared <= set(kinds[command])
        lines += written(command.capitalize() + "Options", "PlanOptions" if whole else "TypedDict",
                         own if whole else options[command])
    for name, (kind, always, more) in ROWS.items():
        lines += ["", "", '%s = TypedDict("%s", {' % (name, name)]
        for field in schema(kind)["fields"]:
            key = field["key"].split(".", 1)[1]
            what = {"string": "str", "number": "float", "integer": "int", "boolean": "bool"}[field["type"]]
            lines += comment(field["help"])
            lines.append('    "%s": %s,' % (key, what if key in always or what == "bool" else "Optional[%s]" % what))
        lines += ['    "%s": %s,' % member for member in more.items()] + ["})"]
    print("\n".join(lines))


main()
