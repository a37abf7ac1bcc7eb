/* matrix.c - frameworks x numbers of nodes. */
#include <math.h>

#include "predict/output/predicted.h"

enum { GIB = 1 << 30, FIXED = 5, WIDEST = 10 };

/* Which of the numbers of nodes have a column: positions in the list that was asked for. */
struct shown {
    int at[WIDEST];
    int count;
};

struct line {
    const struct dl_framework *framework;
    const struct dl_predicted_row *cells[DL_MAX_LIST]; /* NULL: cannot run */
    const struct dl_predicted_row *last;               /* on the most nodes */
};

/* Throughput on as many nodes as `last` has; rows that fit come before others. */
static double rank_of(const struct line *line) {
    const struct dl_prediction *p = &line->last->prediction;
    return (p->fits ? 1e12 : 1) * (double)line->last->plan.nodes +
           fmin(p->throughput_samples_per_s, 1e11);
}

/* One line for each framework, fastest first. Returns how many. */
static int collect(const struct dl_predicted *p, struct line *lines) {
    int count = 0;
    for (int i = 0; i < p->count; i++) {
        const struct dl_predicted_row *row = &p->rows[i];
        struct line *line = NULL;
        for (int k = 0; k < count; k++) {
            if (lines[k].framework == row->framework) line = &lines[k];
        }
        if (line == NULL) {
            line = &lines[count++];
            *line = (struct line){.framework = row->framework};
        }
        for (size_t n = 0; n < p->inputs->node_count; n++) {
            if (p->inputs->nodes[n] == row->plan.nodes) line->cells[n] = row;
        }
        if (line->last == NULL || row->plan.nodes >= line->last->plan.nodes) line->last = row;
    }
    for (int i = 1; i < count; i++) {
        const struct line one = lines[i];
        int at = i;
        for (; at > 0 && rank_of(&lines[at - 1]) < rank_of(&one); at--) lines[at] = lines[at - 1];
        lines[at] = one;
    }
    return count;
}

/* Numbers of nodes of which each is at least `step` times the one before, and the last one.
 * Returns whether there is a column for each. */
static bool choose(struct shown *shown, const struct dl_inputs *inputs, long long step) {
    const int last = (int)inputs->node_count - 1;
    long long least = 0;
    shown->count = 0;
    for (int n = 0; n <= last; n++) {
        if (inputs->nodes[n] < least && n < last) continue;
        if (shown->count == WIDEST) return false;
        shown->at[shown->count++] = n;
        least = inputs->nodes[n] * step;
    }
    return true;
}

/* All numbers of nodes where they have room, else a part of them that doubles, or more. */
static struct shown choose_nodes(const struct dl_inputs *inputs) {
    struct shown shown = {.count = 0};
    for (long long step = 0; !choose(&shown, inputs, step); step = step == 0 ? 2 : 2 * step) {
    }
    return shown;
}

static void make_columns(struct dl_column *c, const struct dl_predicted *p,
                         const struct shown *shown, bool tokens, struct dl_arena *arena) {
    int i = 0;
    c[i++] = (struct dl_column){"framework", "framework", "", DL_COLUMN_STRING, 0, 0};
    for (int n = 0; n < shown->count; n++) {
        const long long nodes = (long long)p->inputs->nodes[shown->at[n]];
        c[i++] =
            (struct dl_column){"throughput",
                               dl_arena_printf(arena, "%lld node%s", nodes, nodes == 1 ? "" : "s"),
                               tokens ? "token/s" : "sample/s",
                               DL_COLUMN_NUMBER,
                               0,
                               4};
    }
    c[i++] = (struct dl_column){"scaling_efficiency", "eff", "%", DL_COLUMN_NUMBER, 0.01, 0};
    c[i++] = (struct dl_column){"memory", "memory", "GiB", DL_COLUMN_NUMBER, GIB, 0};
    c[i++] = (struct dl_column){"bottleneck", "bottleneck", "", DL_COLUMN_STRING, 0, 0};
    c[i] = (struct dl_column){"share", "share", "%", DL_COLUMN_NUMBER, 0.01, 0};
}

const char *dl_predicted_matrix(struct dl_context *context, const struct dl_predicted *p) {
    struct dl_arena *arena = context->arena;
    struct line *lines = dl_arena_alloc(arena, (size_t)p->count, sizeof *lines);
    struct dl_column *columns = dl_arena_alloc(arena, FIXED + WIDEST, sizeof *columns);
    const double per_sample = dl_tokens_per_sample(p->inputs->workload);
    const struct shown shown = choose_nodes(p->inputs);
    const int nodes = shown.count;
    struct dl_table table;
    make_columns(columns, p, &shown, dl_known(per_sample), arena);
    dl_table_init(&table, arena, columns, nodes + FIXED);
    const int count = collect(p, lines);
    for (int i = 0; i < count; i++) {
        union dl_cell *c = dl_table_row(&table);
        c[0].string = lines[i].framework->name;
        for (int n = 0; n < nodes; n++) {
            const struct dl_predicted_row *cell = lines[i].cells[shown.at[n]];
            c[1 + n].number = cell != NULL && cell->prediction.fits
                                  ? cell->prediction.throughput_samples_per_s *
                                        (dl_known(per_sample) ? per_sample : 1)
                                  : NAN;
        }
        const struct dl_prediction *last = &lines[i].last->prediction;
        c[1 + nodes].number = last->scaling_efficiency;
        c[2 + nodes].number = last->memory.total_bytes;
        c[3 + nodes].string = dl_bottleneck_names[last->bottleneck];
        c[4 + nodes].number = last->bottleneck_share;
    }
    const char *left_out =
        nodes == (int)p->inputs->node_count
            ? ""
            : dl_arena_printf(arena, "%d of %zu numbers of nodes; all of them: --long, --csv.\n",
                              nodes, p->inputs->node_count);
    return dl_arena_printf(arena,
                           "%s\n-: does not fit in memory, or cannot run on so many nodes. "
                           "Efficiency, memory and bottleneck: on the most nodes.\n%sTimes and "
                           "intervals of every row: --long\n",
                           dl_table_text(&table), left_out);
}
