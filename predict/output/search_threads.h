/* search_threads.h - runs a search on several threads. */
#ifndef DL_PREDICT_OUTPUT_SEARCH_THREADS_H
#define DL_PREDICT_OUTPUT_SEARCH_THREADS_H

#include "model/search/search.h"

struct dl_search_run {
    struct dl_search *search;
    int threads;
    /* NULL: none; called by the first thread about twice a second; anything but 0 stops the search
     * with DL_ERR_CANCELLED */
    int (*progress)(void *context, double done_frac, double elapsed_s);
    void *context;
};

/* All cells, then all tasks; *out: merged. DL_ERR_SYSTEM when no thread can be started. */
enum dl_code dl_search_run(const struct dl_search_run *run, struct dl_search_worker *out,
                           double *elapsed_s_out, struct dl_err *err);

#endif
