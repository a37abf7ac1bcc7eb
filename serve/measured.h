/* measured.h - the runs of --measured, which sharpen answers and are shown beside them. */
#ifndef DL_SERVE_MEASURED_H
#define DL_SERVE_MEASURED_H

#include "serve/routes.h"

/* The path of one table with the rows of all tables of the folder that have the columns of the
 * first, by name; read again when a file changed. NULL: no folder, or nothing in it. */
const char *dl_measured_table(const struct dl_service *service);
/* How many tables it has, and how many others had other columns. */
void dl_measured_count(int *used, int *other);

#endif
