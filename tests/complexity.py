#!/usr/bin/env python3
"""complexity.py [--all] FILES: C functions of more than 60 lines or with a cyclomatic complexity (CCN) above 20.

Prints "FILE:LINE: NAME: N lines, CCN M" for each; with --all for every function. A function whose header comment says
"Kept whole: REASON" is left out. Lines are those from the function's name to its closing brace; CCN is one more than its decision points
(if, for, while, case, &&, ||, ?, #if, #ifdef, #elif), as lizard counts them (which misses a few ?
in initializers). Meant for sources that clang-format has formatted.
"""
import re
import sys

MOST_LINES, MOST_CCN = 60, 20
TOKEN = re.compile(
    r"/\*.*?\*/|//[^\n]*"  # comments
    r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''  # strings and characters
    r"|^[ \t]*#(?:\\\n|/\*.*?\*/|[^\n])*"  # lines of the preprocessor
    r"|[A-Za-z_]\w*|\d[\w.]*|&&|\|\||\n|\S",
    re.S | re.M,
)
DECISIONS = {"if", "for", "while", "case", "&&", "||", "?"}
CONDITIONAL = re.compile(r"\s*#\s*(if|ifdef|elif)\b")  # #ifndef is a guard, as for lizard


def functions(text):
    """Yields (name, first line, last line, CCN, header comment) of each function that is defined in the text."""
    line, depth, parentheses = 1, 0, 0
    candidate = None  # (name, line) of the parenthesis that was opened last outside of braces
    previous, comment, header = "", "", ""
    current, ccn = None, 1
    for match in TOKEN.finditer(text):
        token = match.group()
        if token == "\n":
            line += 1
            continue
        if token.startswith(("/*", "//")):
            if depth == 0:
                # neighbouring comments of one line each are one
                comment = comment + token if previous == "comment" else token
                previous = "comment"
        elif token.lstrip().startswith("#"):
            if current and CONDITIONAL.match(token):
                ccn += 1
        else:
            if depth == 0 and parentheses == 0 and previous in ("comment", ";", "}", ""):
                header = comment if previous == "comment" else ""
            if token == "{":
                if depth == 0 and previous == ")" and candidate:
                    current, ccn = candidate, 1
                depth += 1
            elif token == "}":
                depth -= 1
                if depth == 0 and current:
                    yield current[0], current[1], line, ccn, header
                    current = candidate = None
            elif token == "(":
                if depth == 0 and parentheses == 0 and re.match(r"[A-Za-z_]", previous) and previous != "__attribute__":
                    candidate = (previous, line)
                parentheses += 1
            elif token == ")":
                parentheses -= 1
            elif current and token in DECISIONS:
                ccn += 1
            if depth == 0 and token in (";", "="):
                candidate = None
            previous = token
        line += token.count("\n")


def main():
    every = "--all" in sys.argv
    for path in (a for a in sys.argv[1:] if a != "--all"):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for name, first, last, ccn, header in functions(text):
            long_or_complex = last - first + 1 > MOST_LINES or ccn > MOST_CCN
            if every or (long_or_complex and "Kept whole: " not in header):
                print(f"{path}:{first}: {name}: {last - first + 1} lines, CCN {ccn}")


main()
