/* schedule.c - see schedule.h. F-PIPE-ORDER. */
#include "model/engine/schedule.h"

#include <math.h>

/* The i-th forward or backward pass of a stage: micro-batches in groups of p, part after part. */
static struct dl_pipeline_pass pass_of(const struct dl_pipeline_order *o, int stage, int i,
                                       bool backward) {
    struct dl_pipeline_pass p = {.stage = stage, .micro_batch = i, .backward = backward};
    if (o->parts > 1) {
        const int group = o->stages * o->parts, part = i % group / o->stages;
        p.part = backward ? o->parts - 1 - part : part;
        p.micro_batch = i / group * o->stages + i % o->stages;
    }
    return p;
}

/* Forward passes before the first backward pass of a stage. */
static int warm_up(const struct dl_pipeline_order *o, int stage) {
    const int all = o->micro_batches * o->parts, behind = o->stages - 1 - stage;
    const int count = o->schedule == DL_GPIPE ? all
                      : o->parts > 1          ? 2 * behind + (o->parts - 1) * o->stages
                                              : behind;
    return count < all ? count : all;
}

static void order_stage(const struct dl_pipeline_order *o, int stage,
                        struct dl_pipeline_pass *passes) {
    const int all = o->micro_batches * o->parts, first = warm_up(o, stage);
    int n = 0;
    for (int i = 0; i < first; i++) passes[n++] = pass_of(o, stage, i, false);
    for (int i = 0; i < all; i++) {
        if (first + i < all) passes[n++] = pass_of(o, stage, first + i, false);
        passes[n++] = pass_of(o, stage, i, true);
    }
}

/* Ends of passes, by direction, part of the whole pipeline (part x stages + stage) and micro-batch;
 * NAN: not yet run. */
struct ends {
    const struct dl_pipeline_order *order;
    double *end_s;
};

static double *end_of(const struct ends *e, int place, int micro_batch, bool backward) {
    const int places = e->order->stages * e->order->parts;
    return &e->end_s[((size_t)(backward ? places : 0) + (size_t)place) *
                         (size_t)e->order->micro_batches +
                     (size_t)micro_batch];
}

/* When the pass has what it needs; NAN: not yet. */
static double ready_s(const struct ends *e, const struct dl_pipeline_pass *p) {
    const int place = p->part * e->order->stages + p->stage;
    if (!p->backward) return place == 0 ? 0 : *end_of(e, place - 1, p->micro_batch, false);
    if (place == e->order->stages * e->order->parts - 1)
        return *end_of(e, place, p->micro_batch, false);
    return *end_of(e, place + 1, p->micro_batch, true);
}

/* Runs the passes of a stage as far as its neighbours allow; returns how many it has run. */
static int advance(const struct ends *e, struct dl_pipeline_pass *passes, int next, int count) {
    const struct dl_pipeline_order *o = e->order;
    for (; next < count; next++) {
        struct dl_pipeline_pass *p = &passes[next];
        const double from_s = ready_s(e, p);
        if (isnan(from_s)) break;
        p->start_s = next > 0 ? fmax(passes[next - 1].end_s, from_s) : from_s;
        p->end_s =
            p->start_s + (p->backward ? o->backward_s : o->forward_s)[p->stage] / (double)o->parts;
        *end_of(e, p->part * o->stages + p->stage, p->micro_batch, p->backward) = p->end_s;
    }
    return next;
}

enum dl_code dl_pipeline_passes(const struct dl_pipeline_order *o, struct dl_arena *arena,
                                struct dl_pipeline_pass **out, int *count, struct dl_err *err) {
    if (o->parts > 1 && o->micro_batches % o->stages != 0)
        return dl_fail(
            err, DL_ERR_USAGE,
            "an interleaved schedule needs micro-batches (%d) in groups of the pipeline's "
            "%d stages",
            o->micro_batches, o->stages);
    const int each = 2 * o->parts * o->micro_batches;
    const size_t all = (size_t)each * (size_t)o->stages;
    struct dl_pipeline_pass *passes = dl_arena_alloc(arena, all, sizeof *passes);
    int *next = dl_arena_alloc(arena, (size_t)o->stages, sizeof *next);
    struct ends ends = {o, dl_arena_alloc(arena, all, sizeof(double))};
    for (size_t i = 0; i < all; i++) ends.end_s[i] = NAN;
    for (int s = 0; s < o->stages; s++) {
        order_stage(o, s, &passes[s * each]);
        next[s] = 0;
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (int s = 0; s < o->stages; s++) {
            const int before = next[s];
            next[s] = advance(&ends, &passes[s * each], before, each);
            moved = moved || next[s] > before;
        }
    }
    *out = passes;
    *count = (int)all;
    return DL_OK;
}
