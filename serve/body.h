/* body.h - a request's options, as words of the command line. */
#ifndef DL_SERVE_BODY_H
#define DL_SERVE_BODY_H

#include "model/catalog/command.h"

enum { DL_MOST_WORDS = 320, DL_MOST_ATTACHED = 16 };

struct dl_words {
    char *list[DL_MOST_WORDS];
    int count;
    /* documents inside the request, read under their names in place of files */
    struct dl_attachment attached[DL_MOST_ATTACHED];
    int attached_count;
};

/* Adds the options of a JSON object: keys are names of options, with '_' for '-'; values are text,
 * numbers, true for a flag, lists (repeated or joined by commas). An option that takes a file takes
 * a document in its place: an object, or {"name": ..., "text": ...} for a table. Refuses, by
 * DL_ERR_USAGE or DL_ERR_INPUT with the key: options that read or write files of this machine,
 * paths of files, and what the command does not have. "files" is a list of tables, for compare. */
enum dl_code dl_words_of_body(const struct dl_command *command, const char *body, size_t bytes,
                              struct dl_arena *arena, struct dl_words *out, struct dl_err *err);

/* The same for "a=b&c=d" of a form; empty values are left out. */
enum dl_code dl_words_of_form(const struct dl_command *command, const char *query,
                              struct dl_arena *arena, struct dl_words *out, struct dl_err *err);

enum dl_code dl_words_add(struct dl_words *words, char *word, struct dl_err *err);
/* A document under a name; *name_out is what to call it by, another one where that is taken. The
 * text is not copied. */
enum dl_code dl_words_attach(struct dl_words *words, const char *name, const char *text,
                             size_t bytes, struct dl_arena *arena, const char **name_out,
                             struct dl_err *err);

/* The option of a command by its name, NULL: it has none, or none that a request may give. */
const struct dl_option *dl_request_option(const struct dl_command *command, const char *name);
/* What may stand in place of one value: a document, a list. */
bool dl_option_takes_document(const struct dl_option *option);
bool dl_option_takes_list(const struct dl_option *option);

#endif
