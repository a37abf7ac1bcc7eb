/* transformer_place.c - which layers of a transformer each stage of its pipeline has. */
#include <math.h>

#include "model/engine/transformer/transformer_internal.h"

double dl_transformer_end_layers(double layers, double stages, int last) {
    const double most = ceil(layers / stages), missing = most * stages - layers;
    return most - (missing >= (last ? 1 : 2) ? 1 : 0);
}

/* F-TRANSFORMER-STAGES: a stage is full when the layers up to its last one, and the head after
 * them, hold more than its share of all their parameters. */
static void place_by_cost(const struct dl_transformer *tf, double pp,
                          struct dl_transformer_mapping *out) {
    const double body = tf->split_elements[DL_TRANSFORMER_BODY],
                 head = tf->tied_elements + tf->split_elements[DL_TRANSFORMER_AFTER],
                 share = (tf->stack * body + head) / pp;
    double stage = 0, held = 0, most = 0;
    for (double layer = 1; layer <= tf->stack; layer++) {
        held++;
        if (stage == pp - 1 || layer * body <= (stage + 1) * share) continue;
        if (stage == 0)
            out->end_layers[0] = held;
        else
            most = fmax(most, held);
        held = 0;
        stage++;
    }
    out->end_layers[1] = stage == pp - 1 ? held : 0;
    if (stage < pp - 1) most = fmax(most, held);
    out->stage_layers = pp > 2 ? fmax(1, most) : fmax(out->end_layers[0], out->end_layers[1]);
}

/* F-STAGE-LAYERS: the fullest stage between the first and the last stands for those. */
static void place_as_listed(const struct dl_transformer *tf, int64_t pp,
                            struct dl_transformer_mapping *out) {
    const double *list = tf->listed_layers;
    out->end_layers[0] = list[0] - tf->dense_prefix_layers;
    out->end_layers[1] = list[pp - 1];
    out->stage_layers = pp > 2 ? 0 : fmax(out->end_layers[0], out->end_layers[1]);
    for (int64_t i = 1; i < pp - 1; i++) out->stage_layers = fmax(out->stage_layers, list[i]);
}

/* Two chains: each stage has its layers and those of the stage as far from the other end. */
static void fold_ends(const struct dl_transformer *tf, struct dl_transformer_mapping *out) {
    const int64_t pp = out->split.pp;
    const double ends = (out->end_layers[0] + out->end_layers[1]) / 2;
    out->end_layers[0] = out->end_layers[1] = ends;
    if (pp == 2) out->stage_layers = ends;
    for (int64_t i = 1; tf->listed_stages > 0 && i < pp - 1; i++) {
        const double layers = (tf->listed_layers[i] + tf->listed_layers[pp - 1 - i]) / 2;
        out->stage_layers = i == 1 ? layers : fmax(out->stage_layers, layers);
    }
}

/* A V: of its 2 p parts, as even as those of 2 p stages, the first stage has both ends. */
static void place_in_v(const struct dl_transformer *tf, double pp,
                       struct dl_transformer_mapping *out) {
    const double lead = tf->dense_prefix_layers, all = tf->stack + lead,
                 ends = dl_transformer_end_layers(all, 2 * pp, 0) +
                        dl_transformer_end_layers(all, 2 * pp, 1);
    out->end_layers[0] = fmax(0, ends - lead);
    const double others = tf->stack - out->end_layers[0];
    out->stage_layers = ceil(others / (pp - 1));
    out->end_layers[1] = floor(others / (pp - 1));
    if (pp <= 2) out->stage_layers = fmax(out->end_layers[0], out->end_layers[1]);
}

/* F-TRANSFORMER-STAGES: leading layers of another kind count like those of the body, and are on the
 * first stage, alone where they fill it. */
static void place_in_turn(const struct dl_transformer *tf, double pp,
                          struct dl_transformer_mapping *out) {
    const double lead = tf->dense_prefix_layers, all = tf->stack + lead;
    if (tf->framework->transformer.stages_by_cost && lead == 0 && tf->stack >= pp) {
        place_by_cost(tf, pp, out);
        return;
    }
    if (ceil(all / pp) <= lead) {
        out->stage_layers = ceil(tf->stack / (pp - 1));
        out->end_layers[0] = 0;
        out->end_layers[1] = dl_transformer_end_layers(tf->stack, pp - 1, 1);
        return;
    }
    out->stage_layers = ceil(all / pp);
    out->end_layers[0] = dl_transformer_end_layers(all, pp, 0) - lead;
    out->end_layers[1] = dl_transformer_end_layers(all, pp, 1);
}

void dl_transformer_place_layers(const struct dl_transformer *tf, double pp,
                                 struct dl_transformer_mapping *out) {
    out->all_layers = out->stage_layers = out->end_layers[0] = out->end_layers[1] = tf->stack;
    if (pp <= 1) return;
    if (tf->listed_stages > 0)
        place_as_listed(tf, (int64_t)pp, out);
    else if (out->split.placing == DL_PLACED_IN_V)
        place_in_v(tf, pp, out);
    else
        place_in_turn(tf, pp, out);
    if (out->split.placing == DL_PLACED_BOTH_WAYS) fold_ends(tf, out);
}

enum dl_transformer_stage_kind dl_transformer_kind_of(const struct dl_transformer_mapping *mapping,
                                                      int64_t stage) {
    if (stage == 0) return DL_TRANSFORMER_FIRST;
    return stage == mapping->split.pp - 1 ? DL_TRANSFORMER_LAST : DL_TRANSFORMER_BETWEEN;
}

void dl_transformer_kind_times(const struct dl_transformer_mapping *mapping,
                               enum dl_transformer_stage_kind kind,
                               double times[DL_TRANSFORMER_PARTS]) {
    /* the embedding and the head on the first stage, and on the last */
    static const double ends[DL_PLACINGS][2][2] = {[DL_PLACED_IN_TURN] = {{1, 0}, {0, 1}},
                                                   [DL_PLACED_IN_V] = {{1, 1}, {0, 0}},
                                                   [DL_PLACED_BOTH_WAYS] = {{.5, .5}, {.5, .5}}};
    const bool one = mapping->split.pp <= 1, end = kind != DL_TRANSFORMER_BETWEEN;
    const double *own = ends[mapping->split.placing][kind == DL_TRANSFORMER_LAST];
    times[DL_TRANSFORMER_BEFORE] = one ? 1 : end ? own[0] : 0;
    times[DL_TRANSFORMER_AFTER] = one ? 1 : end ? own[1] : 0;
    times[DL_TRANSFORMER_BODY] =
        end && !one ? mapping->end_layers[kind == DL_TRANSFORMER_LAST] : mapping->stage_layers;
}

void dl_transformer_stage_times(const struct dl_transformer *tf,
                                const struct dl_transformer_mapping *mapping, int64_t stage,
                                double times[DL_TRANSFORMER_PARTS]) {
    dl_transformer_kind_times(mapping, dl_transformer_kind_of(mapping, stage), times);
    times[DL_TRANSFORMER_BODY] = dl_transformer_stage_layers(tf, mapping, stage);
}

double dl_transformer_stage_layers(const struct dl_transformer *tf,
                                   const struct dl_transformer_mapping *mapping, int64_t stage) {
    const int64_t last = mapping->split.pp - 1;
    if (last == 0) return mapping->stage_layers;
    if (stage == 0) return mapping->end_layers[0];
    if (stage == last) return mapping->end_layers[1];
    if (tf->listed_stages <= 0) return mapping->stage_layers;
    const int64_t other = mapping->split.placing == DL_PLACED_BOTH_WAYS ? last - stage : stage;
    return (tf->listed_layers[stage] + tf->listed_layers[other]) / 2;
}

bool dl_transformer_takes_schedule(const struct dl_transformer *tf, int64_t pp,
                                   enum dl_schedule schedule, int64_t virtual_stages) {
    const struct dl_schedule_row *row = dl_schedules[schedule];
    return virtual_stages >= row->least_parts && virtual_stages <= row->most_parts &&
           dl_transformer_takes_stages(tf, pp, virtual_stages / dl_placing_chains(row->placing));
}

bool dl_transformer_takes_parts(double layers, int64_t pp, int64_t v) {
    return (double)pp <= layers && fmod(ceil(layers / (double)pp), (double)v) == 0;
}

double dl_transformer_frozen_room(const struct dl_transformer *tf, int64_t pp) {
    const struct dl_workload *w = tf->workload;
    const int end = w->stack.first + w->stack.count * w->stack.each;
    const double lead = tf->dense_prefix_layers;
    if (pp <= 1 || tf->is_generic_stack || !(w->frozen_elements > 0)) return HUGE_VAL;
    if (w->layers[end - 1].detached) return 0;
    if (w->stack.first == w->stack.lead || !w->layers[w->stack.first - 1].detached) return HUGE_VAL;
    return ceil((tf->stack + lead) / (double)pp) - 1;
}

bool dl_transformer_takes_stages(const struct dl_transformer *tf, int64_t pp, int64_t v) {
    const double parts = (double)v, room = dl_transformer_frozen_room(tf, pp);
    if (room < 1 || tf->dense_prefix_layers > room) return false;
    if (tf->listed_stages <= 0) return dl_transformer_takes_parts(tf->stack, pp, v);
    if (pp != tf->listed_stages || pp < 2) return false;
    for (int64_t i = 0; i < pp && v > 1; i++) {
        const double layers = tf->listed_layers[i];
        if (layers < parts ||
            (fmod(layers, parts) != 0 && !tf->framework->transformer.uneven_parts))
            return false;
    }
    return true;
}
