/* measured_runs.h - the runs of --measured, which sharpen answers and are shown beside them. */
#ifndef DL_SERVE_MEASURED_RUNS_H
#define DL_SERVE_MEASURED_RUNS_H

#include "serve/body.h"
#include "serve/routes.h"

/* One table with the rows of all tables of the folder that have the columns of the
 * first, by name; read again when a file changed. NULL: no folder, or nothing in it. */
const char *dl_measured_table(const struct dl_service *service, size_t *bytes);
/* Gives a request that table; *name stays NULL where there is none. */
enum dl_code dl_measured_attach(const struct dl_service *service, struct dl_words *words,
                                struct dl_arena *arena, const char **name, struct dl_err *err);

#endif
