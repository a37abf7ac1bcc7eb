/* quote.h - escapes text of users and files for bash options, #SBATCH lines and folder names. */
#ifndef DL_SLURM_SCRIPT_QUOTE_H
#define DL_SLURM_SCRIPT_QUOTE_H

#include "model/core/arena.h"
#include "model/core/status.h"

/* "--key='value'": with '=', the value cannot be taken for an option. */
const char *dl_sl_quote_option(struct dl_arena *arena, const char *key, const char *value);
/* Escapes a value for Slurm's parser of #SBATCH lines: a backslash before all but letters, digits
 * and _.,:/=+@%- . DL_ERR_USAGE names `what` for control characters, which no such line can hold.
 */
enum dl_code dl_sl_directive(struct dl_arena *arena, const char *what, const char *value,
                             const char **out, struct dl_err *err);
/* A name for a job or folder: replaces all but letters, digits, '.', '_', '+', '=' and '-' by '_',
 * as well as a '-' or '.' at the start; cut to 120 bytes; "_" when empty. */
const char *dl_sl_tame(struct dl_arena *arena, const char *text);

#endif
