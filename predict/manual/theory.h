/* theory.h - the theory manual (docs/theory.md) and the index of formulas (docs/formulas.md)
 * that the build embeds in the program, and the lookup of a formula in them. */
#ifndef DL_PREDICT_MANUAL_THEORY_H
#define DL_PREDICT_MANUAL_THEORY_H

#include "predict/manual/manual.h"

/* of docs/theory.md, NULL-terminated; made by predict/manual/theory.awk */
extern const char *const dl_theory_lines[];
/* rows of the index: "| id | what | where | source |" */
extern const char *const dl_formula_lines[];

/* The whole manual; with an id (F-NCCL, nccl): its meaning, files and source, and every paragraph
 * and row of the manual that mentions it. DL_ERR_USAGE with a suggestion for an unknown id. */
enum dl_code dl_theory_help(struct dl_text *out, const char *id, struct dl_err *err);

#endif
