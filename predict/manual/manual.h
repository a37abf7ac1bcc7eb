/* manual.h - text for people about the commands: shared by help, the man page and the completion.
 */
#ifndef DL_PREDICT_MANUAL_MANUAL_H
#define DL_PREDICT_MANUAL_MANUAL_H

#include "model/core/text.h"
#include "model/catalog/command.h"

/* "-n, --nodes LIST", in the arena. */
const char *dl_option_usage(struct dl_arena *arena, const struct dl_option *option);

/* Calls each(text, option, first) for every option of a command, those of one group together,
 * groups in the order in which they first appear; first: the option begins its group. */
void dl_option_each(struct dl_text *text, const struct dl_command *command,
                    void (*each)(struct dl_text *, const struct dl_option *, bool first));

/* The options of a command in that order; their number. */
enum { DL_MAX_OPTIONS = 256 };
int dl_option_list(const struct dl_command *command, const struct dl_option *list[DL_MAX_OPTIONS]);

extern const char dl_exit_text[]; /* the exit statuses, one a line under a heading */

/* In roff: the page of the program, and of one command. */
void dl_manual_page(struct dl_text *text, const struct dl_context *context,
                    const char *environment);
void dl_manual_command(struct dl_text *text, const struct dl_context *context,
                       const struct dl_command *command);
/* Completion scripts for bash and zsh. */
void dl_manual_completion(struct dl_text *text, const struct dl_context *context);
void dl_manual_zsh(struct dl_text *text, const struct dl_context *context);

#endif
