# theory.awk - makes a C file of the theory manual and the rows of the index of formulas: awk -f theory.awk docs/theory.md docs/formulas.md
function quote(text) { gsub(/\\/, "\\\\", text); gsub(/"/, "\\\"", text); gsub(/\?/, "\\?", text); return "    \"" text "\"," }
BEGIN { print "/* made by predict/manual/theory.awk; do not edit */\n#include \"predict/manual/theory.h\"\n\nconst char *const dl_theory_lines[] = {" }
FNR == 1 { file++ }
file == 2 && !second { print "    NULL,\n};\n\nconst char *const dl_formula_lines[] = {"; second = 1 }
file == 1 { print quote($0) }
file == 2 && /^\| F-/ { print quote($0) }
END { print "    NULL,\n};" }
