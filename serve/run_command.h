/* run_command.h - runs a command for a request; its output is the answer. */
#ifndef DL_SERVE_RUN_COMMAND_H
#define DL_SERVE_RUN_COMMAND_H

#include "serve/body.h"
#include "serve/routes.h"

struct dl_ran {
    enum dl_code code;
    struct dl_err err;
    const char *text;  /* its output; NULL: none */
    const char *notes; /* messages, one a line; "" for none */
};

/* The command of that name; NULL: not in this build. */
const struct dl_command *dl_service_command(const struct dl_service *service, const char *name);

/* Parses the words and runs the command. Messages contain no folder of this machine. */
void dl_run_command(const struct dl_service *service, const struct dl_command *command,
                    struct dl_words *words, const struct dl_request *request,
                    struct dl_arena *arena, struct dl_ran *out);

/* The command's text as the answer, else its error as problem details (RFC 9457). */
void dl_answer_ran(const struct dl_ran *ran, enum dl_media media, struct dl_arena *arena,
                   struct dl_answer *out);

/* The title of an HTTP status that is an error. */
const char *dl_status_title(int status);
/* Problem details: title of the status, detail, and the key at fault if any. */
void dl_answer_problem(int status, const char *detail, const char *key, int line, int col,
                       struct dl_arena *arena, struct dl_answer *out);
void dl_answer_text(int status, enum dl_media media, const char *text, struct dl_answer *out);

#endif
