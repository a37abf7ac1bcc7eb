/* body.h - options of a request as command-line arguments. */
#ifndef DL_SERVE_BODY_H
#define DL_SERVE_BODY_H

#include "model/catalog/command.h"

enum { DL_MAX_WORDS = 320, DL_MAX_ATTACHED = 16 };

struct dl_words {
    char *list[DL_MAX_WORDS];
    int count;
    /* documents of the request, read in place of files of their names */
    struct dl_attachment attached[DL_MAX_ATTACHED];
    int attached_count;
};

/* Adds the options of a JSON object: keys are option names with '_' for '-'; values are text,
 * numbers, true for a flag, lists (repeated or joined by commas). An option that takes a file
 * accepts a document instead: an object, or {"name": ..., "text": ...} for a table. Refuses, with
 * DL_ERR_USAGE or DL_ERR_INPUT and the key: options that read or write files of this machine, file
 * paths, and unknown options. "files" is a list of tables, for compare. */
enum dl_code dl_words_of_body(const struct dl_command *command, const char *body, size_t bytes,
                              struct dl_arena *arena, struct dl_words *out, struct dl_err *err);

/* The same for a form's "a=b&c=d"; empty values are ignored. */
enum dl_code dl_words_of_form(const struct dl_command *command, const char *query,
                              struct dl_arena *arena, struct dl_words *out, struct dl_err *err);

enum dl_code dl_words_add(struct dl_words *words, char *word, struct dl_err *err);
/* Attaches a document; *name_out is its name, made unique where `name` is taken. The text is not
 * copied. */
enum dl_code dl_words_attach(struct dl_words *words, const char *name, const char *text,
                             size_t bytes, struct dl_arena *arena, const char **name_out,
                             struct dl_err *err);

/* The text of a value of a document, as JSON. */
struct dl_json_node;
const char *dl_body_value(const struct dl_json *doc, const struct dl_json_node *node,
                          struct dl_arena *arena, size_t *bytes);

/* The command's option of that name; NULL where it has none that a request may give. */
const struct dl_option *dl_request_option(const struct dl_command *command, const char *name);
/* Whether a document or a list may replace a single value. */
bool dl_option_takes_document(const struct dl_option *option);
bool dl_option_takes_list(const struct dl_option *option);

#endif
