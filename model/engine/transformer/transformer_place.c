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
                 head = tf->tied_elements > 0 ? tf->tied_elements
                                              : tf->split_elements[DL_TRANSFORMER_AFTER],
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

/* F-TRANSFORMER-STAGES: leading layers of another kind count like those of the body, and are on the
 * first stage, alone where they fill it. */
void dl_transformer_place_layers(const struct dl_transformer *tf, double pp,
                                 struct dl_transformer_mapping *out) {
    const double lead = tf->dense_prefix_layers, all = tf->stack + lead;
    out->all_layers = out->stage_layers = out->end_layers[0] = out->end_layers[1] = tf->stack;
    if (pp <= 1) return;
    if (tf->listed_stages > 0) {
        place_as_listed(tf, (int64_t)pp, out);
        return;
    }
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

double dl_transformer_stage_layers(const struct dl_transformer *tf,
                                   const struct dl_transformer_mapping *mapping, int64_t stage) {
    const int64_t last = mapping->split.pp - 1;
    if (last == 0) return mapping->stage_layers;
    if (stage == 0) return mapping->end_layers[0];
    if (stage == last) return mapping->end_layers[1];
    return tf->listed_stages > 0 ? tf->listed_layers[stage] : mapping->stage_layers;
}

bool dl_transformer_takes_parts(double layers, int64_t pp, int64_t v) {
    return (double)pp <= layers && fmod(ceil(layers / (double)pp), (double)v) == 0;
}

bool dl_transformer_takes_stages(const struct dl_transformer *tf, int64_t pp, int64_t v) {
    const double parts = (double)v;
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
