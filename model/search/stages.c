/* stages.c - see stages.h. States are filled from the last piece to the first: a stage is placed in
 * front of those behind it, so that the number of these (and with it how many micro-batches the
 * stage holds at once) is known. */
#include "model/search/stages.h"

#include <math.h>

/* The end of a pipeline from some piece on. */
struct label {
    double sum_s, most_s;
    const struct label *behind; /* without its first stage; NULL: the end of the network */
    struct label *next;         /* of the same state: larger sum, smaller maximum */
    struct dl_stage stage;
};

struct table {
    const struct dl_stages_request *request;
    struct dl_arena *arena;
    struct label **heads;
    int64_t stride[DL_MIXED_GROUPS], uses; /* of nodes in use */
    int64_t label_count;
    bool failed;
};

static struct label **head_of(const struct table *t, int from, int stages, int64_t use) {
    return &t->heads[((int64_t)from * (DL_STAGES + 1) + stages) * t->uses + use];
}

/* Keeps the list of a state free of labels that another one beats in sum and maximum. */
static void insert(struct table *t, struct label **head, const struct label *one) {
    struct label **at = head;
    while (*at != NULL && (*at)->sum_s <= one->sum_s) {
        if ((*at)->most_s <= one->most_s) return;
        at = &(*at)->next;
    }
    while (*at != NULL && (*at)->most_s >= one->most_s) *at = (*at)->next;
    struct label *own = dl_arena_alloc(t->arena, 1, sizeof *own);
    if (++t->label_count > DL_STAGE_LABELS) {
        t->failed = true;
        return;
    }
    *own = *one;
    own->next = *at;
    *at = own;
}

/* Every stage that can stand in front of the labels of one state. */
static void extend(struct table *t, int to, int behind, int64_t use) {
    const struct dl_stages_request *r = t->request;
    const struct label *first = *head_of(t, to, behind, use);
    for (int k = 0; k < r->kinds && first != NULL; k++) {
        const int64_t free_nodes = r->nodes[k] - use / t->stride[k] % (r->nodes[k] + 1);
        for (int64_t n = 1; n <= free_nodes; n++) {
            for (int from = to - 1; from >= 0; from--) {
                const struct dl_stage stage = {from, to, k, n};
                struct dl_stage_cost cost;
                if (!r->cost(r->data, &stage, behind, &cost)) continue;
                struct label **head = head_of(t, from, behind + 1, use + n * t->stride[k]);
                for (const struct label *l = first; l != NULL && !t->failed; l = l->next) {
                    const struct label one = {.sum_s = l->sum_s + cost.through_s,
                                              .most_s = fmax(l->most_s, cost.steady_s),
                                              .behind = to == r->pieces ? NULL : l,
                                              .stage = stage};
                    insert(t, head, &one);
                }
            }
        }
    }
}

/* The fastest whole pipeline with these nodes in use; false: none. */
static bool collect(const struct table *t, int64_t use, struct dl_stages *out) {
    const struct label *best = NULL;
    out->time_s = INFINITY;
    for (int stages = 1; stages <= DL_STAGES; stages++) {
        for (const struct label *l = *head_of(t, 0, stages, use); l != NULL; l = l->next) {
            if (!(l->sum_s + l->most_s < out->time_s)) continue;
            out->time_s = l->sum_s + l->most_s;
            best = l;
        }
    }
    out->count = 0;
    for (const struct label *l = best; l != NULL; l = l->behind)
        out->stages[out->count++] = l->stage;
    for (int k = 0; k < t->request->kinds; k++)
        out->used[k] = use / t->stride[k] % (t->request->nodes[k] + 1);
    return best != NULL;
}

static enum dl_code prepare(struct table *t, struct dl_err *err) {
    const struct dl_stages_request *r = t->request;
    t->uses = 1;
    if (r->pieces < 1 || r->pieces > DL_STAGE_PIECES)
        return dl_fail(err, DL_ERR_USAGE, "expected 1 to %d pieces of a network, got %d",
                       DL_STAGE_PIECES, r->pieces);
    for (int k = 0; k < r->kinds; k++) {
        t->stride[k] = t->uses;
        t->uses *= r->nodes[k] + 1;
        if (t->uses * (r->pieces + 1) * (DL_STAGES + 1) > DL_STAGE_STATES)
            return dl_fail(err, DL_ERR_USAGE,
                           "too many nodes to place stages exactly: at most %d states",
                           DL_STAGE_STATES);
    }
    const size_t states = (size_t)((r->pieces + 1) * (DL_STAGES + 1) * t->uses);
    t->heads = dl_arena_alloc(t->arena, states, sizeof(struct label *)); /* zero: no labels */
    return DL_OK;
}

enum dl_code dl_stages_place(const struct dl_stages_request *request, struct dl_arena *arena,
                             struct dl_stages **out, int *count, struct dl_err *err) {
    struct table t = {.request = request, .arena = arena};
    DL_TRY(prepare(&t, err));
    const struct label end = {.sum_s = 0, .most_s = 0};
    struct dl_stages *list = dl_arena_alloc(arena, (size_t)t.uses, sizeof *list);
    insert(&t, head_of(&t, request->pieces, 0, 0), &end);
    for (int to = request->pieces; to > 0; to--)
        for (int behind = 0; behind < DL_STAGES; behind++)
            for (int64_t use = 0; use < t.uses && !t.failed; use++) extend(&t, to, behind, use);
    if (t.failed) return dl_fail(err, DL_ERR_USAGE, "too many nodes to place stages exactly");
    *count = 0;
    for (int64_t use = 0; use < t.uses; use++) *count += collect(&t, use, &list[*count]);
    if (*count == 0) return dl_fail(err, DL_ERR_NO, "no pipeline over these nodes fits in memory");
    *out = list;
    return DL_OK;
}
