/* quote.h - text of users and files made inert for bash, for #SBATCH lines and for names of
 * folders. */
#ifndef DL_SLURM_SCRIPT_QUOTE_H
#define DL_SLURM_SCRIPT_QUOTE_H

#include "model/base/arena.h"
#include "model/base/status.h"

/* "--key='value'": the value cannot become an option of its own, for it is glued to the key. */
const char *dl_sl_quote_option(struct dl_arena *arena, const char *key, const char *value);
/* The value as Slurm's parser of #SBATCH lines reads it back: a backslash before all but letters,
 * digits and _.,:/=+@%- . Such a line cannot hold control characters: DL_ERR_USAGE that names
 * `what`. */
enum dl_code dl_sl_directive(struct dl_arena *arena, const char *what, const char *value,
                             const char **out, struct dl_err *err);
/* A name for a job or a folder: other than letters, digits, '.', '_', '+', '=' and '-' becomes '_',
 * and so does a '-' or '.' at its start; cut to 120 bytes; "_" when empty. */
const char *dl_sl_tame(struct dl_arena *arena, const char *text);

#endif
