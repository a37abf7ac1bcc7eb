/* search_pipes.h - pipelines of a network that is no stack, with one size of micro-batch: what many
 * plans share, computed once. F-TABLES. Private to the search.
 *
 *   dl_search_pipes_new -> _want for each plan -> _make -> _evaluate
 */
#ifndef DL_MODEL_SEARCH_SEARCH_PIPES_H
#define DL_MODEL_SEARCH_SEARCH_PIPES_H

#include "model/search/search_internal.h"

struct dl_search_pipes;

/* Nothing is wanted yet. In the arena, which holds the tables too. */
enum dl_code dl_search_pipes_new(const struct dl_search *s, int micro, struct dl_arena *arena,
                                 struct dl_search_pipes **out, struct dl_err *err);
/* plan: complete. */
void dl_search_pipes_want(struct dl_search_pipes *pipes, const struct dl_plan *plan);
void dl_search_pipes_make(struct dl_search_pipes *pipes);
/* Of a plan that was wanted. Where the iteration is longer than limit_s: *iteration_s at least,
 * *memory_bytes NAN. */
enum dl_code dl_search_pipes_evaluate(const struct dl_search_pipes *pipes,
                                      const struct dl_plan *plan, double limit_s,
                                      double *iteration_s, double *memory_bytes,
                                      struct dl_err *err);

#endif
