/* shell_internal.h - what the files of the shell reader share. For those files alone. */
#ifndef DL_IMPORT_RUN_SHELL_INTERNAL_H
#define DL_IMPORT_RUN_SHELL_INTERNAL_H

#include "import/run/shell.h"
#include "model/core/text.h"

enum dl_shell_truth { DL_SHELL_FALSE, DL_SHELL_TRUE, DL_SHELL_OPEN_QUESTION };

/* A place in a script. */
struct dl_shell_reader {
    struct dl_shell *shell;
    const char *path, *text, *at, *end;
    const char *jump;    /* behind the here-documents of this line; NULL: none */
    const char *counted; /* lines before it were counted */
    int counted_line;
    enum dl_shell_truth status; /* of the last command */
    enum { DL_SHELL_RUNS, DL_SHELL_CONTINUE, DL_SHELL_BREAK, DL_SHELL_EXIT } stopped;
    struct dl_text *output; /* of echo and functions; NULL: not wanted */
    bool *output_known;
    struct dl_err *err;
};

/* ---- shell_lex.c ---- */
bool dl_shell_is_name(char c, bool first);
/* Past blanks, continued lines and comments; with newlines also those and ';'. */
void dl_shell_skip(struct dl_shell_reader *r, bool newlines);
/* Past one word as written; DL_ERR_INPUT: a quote or bracket without its end. */
enum dl_code dl_shell_skip_word(struct dl_shell_reader *r);
/* Past "$...", the bracket or the backquote at r->at. */
enum dl_code dl_shell_skip_dollar(struct dl_shell_reader *r);
enum dl_code dl_shell_skip_backquote(struct dl_shell_reader *r);
int dl_shell_line(struct dl_shell_reader *r);
enum dl_code dl_shell_fail(struct dl_shell_reader *r, const char *message);
/* Whether the word at r->at is one of the words, NULL-terminated, as a whole. */
bool dl_shell_at_word(const struct dl_shell_reader *r, const char *const *words);

/* ---- shell_expand.c ---- */
/* The word [from, to) as the shell would pass it on: fields behind out's, one text if not split. */
enum dl_code dl_shell_expand(struct dl_shell_reader *r, const char *from, const char *to,
                             bool split, struct dl_shell_list *out);
/* As one text. here: as a here-document, where quotes are plain. */
enum dl_code dl_shell_expand_text(struct dl_shell_reader *r, const char *from, const char *to,
                                  bool here, const char **out);
/* ---- shell_variable.c ---- */
/* Values of "$NAME", "${NAME[1]}", "${NAME:-x}" and so on: what stands between the brackets. */
enum dl_code dl_shell_parameter(struct dl_shell_reader *r, const char *from, const char *to,
                                struct dl_shell_list *out, bool *separate);
struct dl_shell_variable *dl_shell_find(const struct dl_shell *shell, const char *name);
void dl_shell_assign(struct dl_shell *shell, const char *name, const char *key, const char *value,
                     bool append);
void dl_shell_clear(struct dl_shell *shell, const char *name);
/* The mark of a variable that is not set. */
const char *dl_shell_mark(struct dl_shell *shell, const char *name);
/* The name [from, to) has a value that is to be written there. */
void dl_shell_unset(struct dl_shell *shell, const char *from, const char *to);
bool dl_shell_is_marked(const char *text);
/* Without the marks of variables that are not set; *open: the output of a program is in it. */
const char *dl_shell_plain(struct dl_arena *arena, const char *text, bool *open);

/* ---- shell_arithmetic.c ---- */
/* The expression of $((...)): a number as text, or a mark. fractions: as bc does. */
const char *dl_shell_arithmetic(struct dl_shell *shell, const char *text, bool fractions);

/* ---- shell_test.c ---- */
/* "[" and "test": words without the closing bracket. */
enum dl_shell_truth dl_shell_test(struct dl_shell *shell, const char *const *words, int count);
/* "[[ ... ]]" at r->at, which is behind "[[". */
enum dl_code dl_shell_double_test(struct dl_shell_reader *r, bool live, enum dl_shell_truth *out);

/* ---- shell_command.c ---- */
/* Runs an expanded command: a built-in, a function, or a program that is recorded. */
enum dl_code dl_shell_dispatch(struct dl_shell_reader *r, struct dl_shell_list *words,
                               const char *input, int line);
/* ---- shell_compound.c: behind their first word; live: run, not only passed ---- */
enum dl_code dl_shell_run_if(struct dl_shell_reader *r, bool live);
enum dl_code dl_shell_run_case(struct dl_shell_reader *r, bool live);
enum dl_code dl_shell_run_for(struct dl_shell_reader *r, bool live);
enum dl_code dl_shell_run_while(struct dl_shell_reader *r, bool live, bool until);
/* At the opening bracket of "{ ... }" or "( ... )". */
enum dl_code dl_shell_run_group(struct dl_shell_reader *r, bool live);
enum dl_code dl_shell_define(struct dl_shell_reader *r, const char *name, bool live);
/* ---- shell_simple.c: input: what the command before it in a pipeline put out, or NULL ---- */
enum dl_code dl_shell_run_simple(struct dl_shell_reader *r, bool live, const char *input);
/* ---- shell_batch.c ---- */
/* Options of sbatch ("--nodes=4", "-N", "4") become the variables that Slurm sets for a job. */
void dl_shell_batch(struct dl_shell *shell, const struct dl_shell_list *words);
/* The same of "#SBATCH" lines. */
void dl_shell_batch_lines(struct dl_shell *shell, const char *text, size_t length);

/* ---- shell.c ---- */
bool dl_shell_is_live(const struct dl_shell_reader *r, bool live);
/* Past the word if it is there. */
bool dl_shell_take(struct dl_shell_reader *r, const char *word);
/* Commands up to one of the words, which stays. */
enum dl_code dl_shell_run_list(struct dl_shell_reader *r, bool live, const char *const *ends);
/* Runs another text with the same variables. arguments: new $1 and so on, NULL: the same. */
enum dl_code dl_shell_run_text(struct dl_shell_reader *r, const char *path, const char *text,
                               size_t length, const struct dl_shell_list *arguments);
enum dl_code dl_shell_run_function(struct dl_shell_reader *r, const struct dl_shell_function *f,
                                   const struct dl_shell_list *words);
/* The output of the commands in the text. */
enum dl_code dl_shell_output_of(struct dl_shell_reader *r, const char *text, size_t length,
                                const char **out);

#endif
