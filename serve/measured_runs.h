/* measured_runs.h - the runs of --measured, which correct predictions and are compared with
 * them. */
#ifndef DL_SERVE_MEASURED_RUNS_H
#define DL_SERVE_MEASURED_RUNS_H

#include "serve/body.h"
#include "serve/routes.h"

/* Gives a request one table with the rows of all usable tables of the folder, read again when a
 * file changes. A table that is no regular file, too large or broken is left out, and named in each
 * answer. *name stays NULL where the folder has no table. */
enum dl_code dl_measured_attach(const struct dl_service *service, struct dl_words *words,
                                struct dl_arena *arena, const char **name, struct dl_err *err);

#endif
