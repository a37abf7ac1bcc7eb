/* arguments.h - the arguments of a training run from any kind of file: names with values, each
 * with its line. Readers of files fill the list, plans request values; the rest is sorted into
 * arguments that cost no time and those that would change a prediction. */
#ifndef DL_IMPORT_RUN_ARGUMENTS_H
#define DL_IMPORT_RUN_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "model/core/arena.h"
#include "model/core/status.h"

enum { DL_ARGUMENTS = 4096 };

struct dl_argument {
    const char *name;  /* "num_layers", "model.optim.name"; of options with underscores */
    const char *value; /* NULL: a flag; of a list its elements, one a line */
    int line;
    bool list, used;
};
struct dl_arguments {
    const char *path; /* of the file, for messages */
    struct dl_arena *arena;
    struct dl_argument *all; /* of equal names the last, at the place of the first */
    int count;
    const char **asked; /* names that readers requested, for suggestions */
    int asked_count;
    const char **remarks; /* what a reader assumed, where it had a choice */
    int remark_count;
};

void dl_arguments_start(struct dl_arguments *out, const char *path, struct dl_arena *arena);
/* DL_ERR_INPUT: too many. */
enum dl_code dl_arguments_add(struct dl_arguments *arguments, const char *name, const char *value,
                              int line, struct dl_err *err);
void dl_arguments_note(struct dl_arguments *arguments, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* names: "a|b|c", the first that is there. They mark what they read as used. */
const struct dl_argument *dl_arguments_find(struct dl_arguments *arguments, const char *names);
const char *dl_arguments_word(struct dl_arguments *arguments, const char *names,
                              const char *fallback);
/* The value of one, which stays unused; NULL: none. */
const char *dl_arguments_peek(const struct dl_arguments *arguments, const char *name);
/* Given, and not false, 0, no, none, off or null. */
bool dl_arguments_flag(struct dl_arguments *arguments, const char *names);
/* DL_ERR_INPUT at its line: no number from low to high. */
enum dl_code dl_arguments_number(struct dl_arguments *arguments, const char *names, double low,
                                 double high, double *inout, struct dl_err *err);
/* DL_ERR_INPUT at the line of the argument; names as above. */
enum dl_code dl_arguments_fail(struct dl_arguments *arguments, const char *names,
                               struct dl_err *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Whether a value switches nothing on: "", false, 0, no, none, off, null, NaN. */
bool dl_is_off(const char *value);

/* One letter too much, too few or wrong, or two in the wrong order. */
bool dl_one_slip(const char *a, const char *b);

/* ---- arguments that no reader requested ---- */

enum dl_argument_use {
    DL_COSTS_NOTHING = 1,
    DL_NOT_MODELLED,         /* where it is switched on */
    DL_NOT_MODELLED_EVEN_OFF /* on by default */
};
/* Names that match a pattern of fnmatch. */
struct dl_argument_class {
    enum dl_argument_use use;
    const char *pattern;
};
struct dl_argument_lists {
    const char **taken, **costs_nothing, **not_modelled, **unknown; /* NULL-terminated */
};
/* The first row that matches counts, of the format's own table before the common one; tables end by
 * pattern NULL. DL_ERR_INPUT, unless skip: an argument looks like a degree, a precision, a
 * compiler or an offload and no row of the format's own knows it, or it is misspelt. */
enum dl_code dl_arguments_sort(struct dl_arguments *arguments, const struct dl_argument_class *own,
                               const struct dl_argument_class *common, bool skip,
                               struct dl_argument_lists *out, struct dl_err *err);

#endif
