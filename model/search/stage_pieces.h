/* stage_pieces.h - the pieces of a network that stages of a pipeline may hold: it is cut before
 * layers that multiply, where only the output of the layer before crosses. */
#ifndef DL_MODEL_SEARCH_STAGE_PIECES_H
#define DL_MODEL_SEARCH_STAGE_PIECES_H

#include "model/search/stages.h"

/* Piece i = layers [first[i], first[i + 1]). */
struct dl_stage_pieces {
    int first[DL_STAGE_PIECES + 1], count;
};

/* `cuts`: dl_pipeline_cuts(). Neighbours that compute least are joined until the search of
 * `all` has few enough states. DL_ERR_USAGE: too many nodes for two pieces. */
enum dl_code dl_stage_pieces(const struct dl_heterogeneous_job *all,
                             const struct dl_workload *workload, const double *cuts,
                             struct dl_arena *arena, struct dl_stage_pieces *out,
                             struct dl_err *err);

#endif
