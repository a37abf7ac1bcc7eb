/* spread_of_alternatives.c - see spread_of_alternatives.h. */
#include "fits/spread_of_alternatives.h"

#include <math.h>
#include <string.h>

struct search {
    const struct dl_alternative *list;
    size_t count;
    bool frameworks;
    bool *done; /* of each row */
};

static const char *job_of(const struct search *s, size_t i) {
    const struct dl_decision_keys *keys = &s->list[i].row->decision;
    return s->frameworks ? keys->frameworks : keys->plans;
}

static const char *alternative_of(const struct search *s, size_t i) {
    const struct dl_decision_keys *keys = &s->list[i].row->decision;
    return s->frameworks ? keys->framework : keys->plan;
}

/* Whether row `i`, which is not done, is of the job of row `first`. */
static bool in_job(const struct search *s, size_t i, size_t first) {
    return !s->done[i] && dl_known(s->list[i].error_log) && job_of(s, first)[0] != 0 &&
           strcmp(job_of(s, i), job_of(s, first)) == 0;
}

/* Mean error of the alternative of row `first` over its repeats, which are then done. */
static double mean_of(struct search *s, size_t first) {
    double times = 0, sum = 0;
    for (size_t i = first; i < s->count; i++) {
        if (!in_job(s, i, first) || strcmp(alternative_of(s, i), alternative_of(s, first)) != 0)
            continue;
        s->done[i] = true;
        times++;
        sum += s->list[i].error_log;
    }
    return sum / times;
}

struct source {
    const char *name;
    double squares, freedom;
};

static struct source *source_of(struct source *sources, size_t *count, const char *name) {
    size_t k = 0;
    while (k < *count && strcmp(sources[k].name, name) != 0) k++;
    if (k == *count) sources[(*count)++] = (struct source){.name = name};
    return &sources[k];
}

double dl_spread_of_alternatives(const struct dl_alternative *list, size_t count, bool frameworks,
                                 struct dl_arena *arena) {
    struct search s = {.list = list, .count = count, .frameworks = frameworks};
    struct source *sources = dl_arena_alloc(arena, count + 1, sizeof *sources);
    size_t source_count = 0;
    s.done = dl_arena_alloc(arena, count + 1, sizeof *s.done);
    for (size_t i = 0; i < count; i++) {
        double alternatives = 0, sum = 0, square = 0;
        for (size_t j = i; j < count; j++) {
            if (!in_job(&s, j, i)) continue;
            const double mean = mean_of(&s, j);
            alternatives++;
            sum += mean;
            square += mean * mean;
        }
        if (alternatives < 2) continue;
        struct source *of = source_of(sources, &source_count, list[i].row->source);
        of->squares += fmax(0, square - sum * sum / alternatives);
        of->freedom += alternatives - 1;
    }
    double variance = 0;
    for (size_t k = 0; k < source_count; k++) variance += sources[k].squares / sources[k].freedom;
    return source_count > 0 ? sqrt(variance / (double)source_count) : 0;
}
