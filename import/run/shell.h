/* shell.h - what a shell script would start, found without starting anything: assignments, arrays,
 * expansions, arithmetic, conditions, loops and functions of bash are evaluated; a program of the
 * script is only recorded with its words.
 *
 * What the file alone does not decide is marked in the text: a variable that nothing sets, or the
 * output of a program. In a condition such a variable counts as empty; a condition on a file or on
 * a program's result counts as false unless its other branch ends the script, with a note. */
#ifndef DL_IMPORT_RUN_SHELL_H
#define DL_IMPORT_RUN_SHELL_H

#include <stdbool.h>
#include <stddef.h>

#include "model/core/arena.h"
#include "model/core/status.h"

/* Enclose the name of a variable that is not set, or PROGRAM and the name of a program whose output
 * is not known. */
enum { DL_SHELL_OPEN = 1, DL_SHELL_CLOSE = 2, DL_SHELL_PROGRAM = 3 };

struct dl_shell_list {
    const char **texts;
    int count;
};
/* A program that the script would start. */
struct dl_shell_command {
    struct dl_shell_list words;
    const char *path; /* of the script */
    int line;
};
struct dl_shell_variable {
    const char *name;
    struct dl_shell_list keys, values; /* of a scalar one value with the key "0" */
};
/* Text that the script would write to a file. */
struct dl_shell_file {
    const char *path, *text;
};
struct dl_shell_function {
    const char *name, *path, *text, *body, *end;
};
struct dl_shell {
    struct dl_arena *arena;
    /* text of a file that the script includes or submits, NULL: not to be read */
    const char *(*read)(void *data, const char *name, size_t *length);
    void *data;

    struct dl_shell_command *commands;
    struct dl_shell_variable *variables;
    struct dl_shell_file *files;
    struct dl_shell_function *functions;
    int command_count, variable_count, file_count, function_count;
    struct dl_shell_list defaults; /* NAME=WORD that ${NAME:-WORD} took */
    struct dl_shell_list remarks;  /* conditions that were not decided */
    struct dl_shell_list missing;  /* files that it includes and that are not there */
    int steps, depth;              /* steps: commands run or passed over */
};

/* shell has its arena and what reads files; the rest grows. DL_ERR_INPUT at a place that no shell
 * reads, or beyond what a script of arguments needs. */
enum dl_code dl_shell_run(struct dl_shell *shell, const char *path, const char *text, size_t length,
                          struct dl_err *err);
/* Sets a variable before the script runs, as its environment does. */
void dl_shell_set(struct dl_shell *shell, const char *name, const char *value);
/* Sets $1, $2, ..., "$@" and $#. */
void dl_shell_arguments(struct dl_shell *shell, const struct dl_shell_list *words);
/* The first value of a variable; NULL: not set. */
const char *dl_shell_get(const struct dl_shell *shell, const char *name);

void dl_shell_push(struct dl_arena *arena, struct dl_shell_list *list, const char *text);
/* Marks shown as $NAME and $(PROGRAM). */
const char *dl_shell_shown(struct dl_arena *arena, const char *text);

#endif
