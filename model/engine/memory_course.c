/* memory_course.c - see memory_course.h. */
#include "model/engine/memory_course.h"

#include <math.h>

#include "model/engine/memory.h"
#include "model/framework/facts.h"
#include "model/framework/workspace.h"

struct curve {
    struct dl_memory_point *points;
    int count;
    const struct dl_memory *parts;
    double fixed_bytes, held_bytes;
    double total_per_byte; /* the allocator loses a share */
};

/* What stays: all but the activations. */
static struct curve begin(const struct dl_memory *m, size_t points, struct dl_arena *arena) {
    const double parts_bytes = m->weights_bytes + m->gradients_bytes + m->optimizer_bytes +
                               m->activations_bytes + m->workspace_bytes + m->buffers_bytes +
                               m->context_bytes;
    return (struct curve){.points = dl_arena_alloc(arena, points, sizeof(struct dl_memory_point)),
                          .parts = m,
                          .fixed_bytes = parts_bytes - m->activations_bytes,
                          .total_per_byte = parts_bytes > 0 ? m->total_bytes / parts_bytes : 1};
}

static void add_point(struct curve *c, double s, double change_bytes) {
    c->held_bytes += change_bytes;
    c->points[c->count++] =
        (struct dl_memory_point){s, (c->fixed_bytes + c->held_bytes) * c->total_per_byte};
}

static struct dl_memory_curve end(const struct curve *c) {
    return (struct dl_memory_curve){c->points, c->count, *c->parts};
}

enum { PASS_POINTS = 5 }; /* at most */

static void add_pass(struct curve *c, const struct dl_pass_memory *each, bool last_part,
                     const struct dl_pipeline_pass *x) {
    const double head = last_part ? each->head_bytes : 0;
    add_point(c, x->start_s, 0);
    switch (x->kind) {
    case DL_PASS_FORWARD:
        add_point(c, x->end_s, each->kept_bytes);
        add_point(c, x->end_s, head);
        return;
    case DL_PASS_BACKWARD: {
        const double layers_s =
            x->start_s + (last_part ? each->head_frac : 0) * (x->end_s - x->start_s);
        add_point(c, layers_s, -head);
        add_point(c, layers_s, each->repeated_bytes);
        add_point(c, x->end_s, each->splits ? 0 : -each->kept_bytes);
        add_point(c, x->end_s, -each->repeated_bytes);
        return;
    }
    default: add_point(c, x->end_s, -each->kept_bytes);
    }
}

void dl_memory_course_of_stages(const struct dl_pipeline_passes *passes,
                                const struct dl_pass_memory *each, const struct dl_memory *memory,
                                struct dl_arena *arena, struct dl_course *out) {
    const int own = passes->count / passes->stages; /* the list is stage by stage */
    struct dl_memory_curve *curves = dl_arena_alloc(arena, (size_t)passes->stages, sizeof *curves);
    for (int s = 0; s < passes->stages; s++) {
        const struct dl_pipeline_pass *first = passes->list + (size_t)s * (size_t)own;
        struct curve c = begin(&memory[s], (size_t)own * PASS_POINTS + 2, arena);
        add_point(&c, 0, 0);
        for (int i = 0; i < own; i++) {
            const int place = dl_placing_place(passes->placing, passes->stages, s, first[i].part);
            add_pass(&c, &each[s],
                     dl_placing_ends(passes->placing, passes->stages, passes->parts, place),
                     &first[i]);
        }
        add_point(&c, passes->end_s, 0);
        curves[s] = end(&c);
    }
    out->memory = curves;
    out->memory_count = passes->stages;
    out->left_out_micro_batches = passes->left_out;
    out->left_from_s = passes->left_from_s;
    out->left_to_s = passes->left_to_s;
}

/* A device with all layers, and what each keeps. */
struct device {
    const struct dl_prediction_inputs *parts;
    double samples;
    struct dl_kernel_facts facts;
    struct dl_recomputed full; /* of full recomputation, else 0 */
    int first_block;           /* its first layer; the number of layers if there is none */
};

static double kept_bytes(const struct device *d, const struct dl_layer *layer) {
    const struct dl_plan *plan = d->parts->plan;
    double bytes = d->samples * dl_memory_layer_bytes(layer, plan->precision, plan->recompute,
                                                      d->facts.attention);
    if (plan->recompute == DL_RECOMPUTE_FULL && dl_memory_is_repeated(layer))
        bytes = d->samples * d->full.inputs_bytes / d->full.repeated;
    if (plan->recompute == DL_RECOMPUTE_NONE)
        bytes += d->samples * dl_memory_composed_layer_bytes(layer, &d->facts) +
                 dl_rounding_layer_bytes(layer, d->parts->framework, plan->precision, d->samples);
    return bytes;
}

/* Full recomputation frees what follows the blocks before it repeats the first one. */
static void add_backward(const struct device *d, struct curve *c) {
    const struct dl_timeline *t = d->parts->with_comm;
    const struct dl_layer *layers = d->parts->workload->layers;
    double after_bytes = d->samples * d->full.after_bytes;
    bool repeats = false;
    for (int i = d->parts->workload->layer_count - 1; i >= 0; i--) {
        const double start_s = t->backward_start_s[i],
                     end_s = start_s + d->parts->cost->layers[i].backward.time_s;
        const bool in_block = i >= d->first_block && dl_memory_is_repeated(&layers[i]),
                   after = i >= d->first_block && !in_block;
        double freed_bytes = kept_bytes(d, &layers[i]);
        if (in_block && !repeats) {
            repeats = true;
            add_point(c, start_s, -after_bytes);
            add_point(c, start_s, d->samples * d->full.one_bytes);
        } else {
            add_point(c, start_s, 0);
        }
        if (after && repeats) freed_bytes = 0;
        if (after) after_bytes -= freed_bytes;
        if (i == d->first_block) freed_bytes += d->samples * d->full.one_bytes;
        add_point(c, end_s, -freed_bytes);
    }
}

void dl_memory_course_of_layers(const struct dl_prediction_inputs *parts, double samples,
                                const struct dl_memory *memory, struct dl_course *out) {
    const struct dl_workload *workload = parts->workload;
    const struct dl_plan *plan = parts->plan;
    const double input_bytes =
        dl_known(workload->input_bytes_per_sample) ? samples * workload->input_bytes_per_sample : 0;
    const int layers = workload->layer_count;
    struct device d = {.parts = parts,
                       .samples = samples,
                       .facts = dl_plan_facts(parts->framework, parts->system->device, plan),
                       .first_block = layers};
    if (plan->recompute == DL_RECOMPUTE_FULL) {
        dl_memory_recompute(workload, plan->precision, d.facts.attention, &d.full);
        d.first_block = 0;
        while (d.first_block < layers && !dl_memory_is_repeated(&workload->layers[d.first_block]))
            d.first_block++;
    }
    struct curve c = begin(memory, 5 * (size_t)layers + 4, parts->arena);
    add_point(&c, 0, 0);
    add_point(&c, 0, input_bytes);
    for (int i = 0; i < layers; i++) {
        const double start_s = parts->with_comm->forward_start_s[i];
        add_point(&c, start_s, 0);
        add_point(&c, start_s + parts->cost->layers[i].forward.time_s,
                  kept_bytes(&d, &workload->layers[i]));
    }
    add_backward(&d, &c);
    add_point(&c, c.points[c.count - 1].s, -input_bytes);
    add_point(&c, fmax(c.points[c.count - 1].s, parts->with_comm->period_s), 0);
    struct dl_memory_curve *curve = dl_arena_alloc(parts->arena, 1, sizeof *curve);
    *curve = end(&c);
    out->memory = curve;
    out->memory_count = 1;
}
