/* stage_pieces.c - see stage_pieces.h. */
#include "model/search/stage_pieces.h"

#include <math.h>
#include <string.h>

static bool may_cut(const struct dl_workload *workload, const double *cuts, int cut) {
    const struct dl_layer *layers = workload->layers;
    return layers[cut].forward_macs > 0 &&
           cuts[cut] <= dl_shape_elements(&layers[cut - 1].out) * (1 + 1e-9);
}

/* Joins the two neighbours that compute least, until few enough are left. */
static void join_smallest(const struct dl_workload *workload, int *first, int *pieces, int most) {
    while (*pieces > most) {
        double least = INFINITY;
        int at = 1;
        for (int i = 1; i < *pieces; i++) {
            double macs = 0;
            for (int k = first[i - 1]; k < first[i + 1]; k++)
                macs += workload->layers[k].forward_macs;
            if (macs < least) least = macs, at = i;
        }
        memmove(&first[at], &first[at + 1], (size_t)(*pieces - at) * sizeof *first);
        --*pieces;
    }
}

enum dl_code dl_stage_pieces(const struct dl_heterogeneous_job *all,
                             const struct dl_workload *workload, const double *cuts,
                             struct dl_arena *arena, struct dl_stage_pieces *out,
                             struct dl_err *err) {
    const int count = workload->layer_count;
    int *every = dl_arena_alloc(arena, (size_t)count + 1, sizeof *every);
    int found = 0, most = DL_STAGE_PIECES;
    int64_t uses = 1;
    every[found++] = 0;
    for (int cut = 1; cut < count; cut++)
        if (may_cut(workload, cuts, cut)) every[found++] = cut;
    every[found] = count;
    for (int k = 0; k < all->group_count && uses <= DL_STAGE_STATES; k++)
        uses *= all->groups[k].nodes + 1;
    /* many nodes leave room for fewer pieces */
    const int64_t room = DL_STAGE_STATES / (DL_STAGES + 1) / uses - 1;
    if (room < most) most = (int)room;
    if (most < 2)
        return dl_fail(err, DL_ERR_USAGE,
                       "too many nodes to place stages exactly: at most %d choices of nodes",
                       DL_STAGE_STATES / (DL_STAGES + 1) / 3);
    join_smallest(workload, every, &found, most);
    memcpy(out->first, every, ((size_t)found + 1) * sizeof *every);
    out->count = found;
    return DL_OK;
}
