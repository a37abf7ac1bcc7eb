/* gains.c - see the header. */
#include "predict/output/gains.h"

#include "model/core/figure.h"
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

/* What the time saved by more of `gain` comes from: "; 76 ms of input depends on this, 8 ms of
 * it exposed". */
static const char *depends_text(const struct dl_prediction *p, const struct dl_saving *gain,
                                struct dl_arena *arena) {
    const bool input = relieves(gain, DL_BOUND_INPUT), compute = relieves(gain, DL_BOUND_COMPUTE);
    const double all_s = input ? p->input_s : p->comm_s,
                 exposed_s = input ? p->exposed_input_s : p->exposed_comm_s;
    if ((compute && !input) || !(exposed_s > 0)) return "";
    return dl_arena_printf(arena, "; %s of %s depends on this, %s of it exposed",
                           dl_duration_text(arena, all_s), input ? "input" : "communication",
                           dl_duration_text(arena, exposed_s));
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
    const char *said = dl_text_string(&text);
    return dl_arena_printf(
        arena, "10 %% more of one resource shortens the iteration by: %s%s.%s\n", said,
        shown < gains->count ? "; others under 0.05 %" : "",
        !differs ? ""
                 : dl_arena_printf(arena, " Most time goes to %s, but more %s would help most%s.",
                                   dl_bottleneck_names[p->bottleneck], first->resource,
                                   depends_text(p, first, arena)));
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
