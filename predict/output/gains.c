/* gains.c - see the header. */
#include "predict/output/gains.h"

#include "model/core/text.h"

enum dl_code dl_gains_find(const struct dl_prediction_row *row, struct dl_cost_memo *memo,
                           struct dl_arena *arena, struct dl_gains *out, struct dl_err *err) {
    const struct dl_predict_options options = {.memo = memo};
    const struct dl_predict_request request = {.system = row->system,
                                               .workload = row->workload,
                                               .framework = row->framework,
                                               .plan = row->plan,
                                               .options = &options,
                                               .arena = arena};
    out->count = 0;
    if (row->prediction->group_count > 0 || !row->prediction->fits) return DL_OK;
    return dl_gains_of(&request, row->prediction->iteration_s, out->list, &out->count, err);
}

static bool relieves(const struct dl_saving *gain, enum dl_bottleneck bottleneck) {
    return (gain->relieves & 1u << bottleneck) != 0;
}

const char *dl_gains_text(const struct dl_prediction_row *row, const struct dl_gains *gains,
                          struct dl_arena *arena) {
    const double SHOWN = 5e-4; /* 0.05 % */
    const struct dl_prediction *p = row->prediction;
    struct dl_text text = {.arena = arena};
    double own = 0;
    int shown = 0;
    for (int i = 0; i < gains->count; i++) {
        const struct dl_saving *g = &gains->list[i];
        if (relieves(g, p->bottleneck)) own += g->saved_frac;
        if (g->saved_frac < SHOWN) continue;
        dl_text_printf(&text, "%s%s %.1f %%", shown++ > 0 ? ", " : "", g->resource,
                       100 * g->saved_frac);
    }
    if (shown == 0) return "";
    const struct dl_saving *first = &gains->list[0];
    const bool differs = !relieves(first, p->bottleneck) && first->saved_frac > own;
    const char *said = dl_text_string(&text),
               *on = relieves(first, DL_BOUND_COMPUTE)
                         ? ""
                         : dl_arena_printf(arena,
                                           ", on which %.3g ms of communication depend (%.3g ms of "
                                           "it exposed),",
                                           1e3 * p->comm_s, 1e3 * p->exposed_comm_s);
    return dl_arena_printf(
        arena, "10 %% more of one resource saves, of an iteration: %s%s.%s\n",
        said != NULL ? said : "", shown < gains->count ? "; others less than 0.05 %" : "",
        !differs ? ""
                 : dl_arena_printf(arena,
                                   " %s has the largest share of the time, but %s%s is what to "
                                   "raise first.",
                                   dl_bottleneck_names[p->bottleneck], first->resource, on));
}

void dl_gains_json(struct dl_json_writer *w, const struct dl_gains *gains) {
    dl_jw_array(w, "gains");
    for (int i = 0; i < gains->count; i++) {
        dl_jw_object(w, NULL);
        dl_jw_string(w, "resource", gains->list[i].resource);
        dl_jw_number(w, "saved_frac", gains->list[i].saved_frac);
        dl_jw_end(w);
    }
    dl_jw_end(w);
}
