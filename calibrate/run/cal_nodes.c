/* cal_nodes.c - see the header. */
#include "calibrate/run/cal_nodes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/statistics/stats.h"

static const double SILENCE_S = 60; /* a launcher waits about this long for a node that is down */
/* Healthy nodes differ by a few percent at most; a link that fell back to half its rate takes
 * twice as long (judgement). */
static const double SLOW_FACTOR = 1.4;
/* Below it a message is all latency, which differs more between healthy nodes (hops, interrupts).
 */
static const double SHORT_BYTES = 4096;
static const double SHORT_SLOW_FACTOR = 2.5;

struct survey {
    struct dl_cal_journal *journal;
    struct dl_arena *arena;
    const char *hosts;
    struct dl_cal_pair *pairs;
    size_t count;
    const char *why; /* the last query failed; NULL: it did not */
};

static bool first_of_size(const struct dl_cal_pair *pairs, size_t index) {
    for (size_t i = 0; i < index; i++) {
        if (pairs[i].bytes == pairs[index].bytes) return false;
    }
    return true;
}

/* Shortest time of each node with any partner, for messages of one size. */
static void best_times(const struct dl_cal_pair *pairs, size_t pair_count, double bytes,
                       size_t nodes, double *best) {
    for (size_t i = 0; i < nodes; i++) best[i] = INFINITY;
    for (size_t i = 0; i < pair_count; i++) {
        const struct dl_cal_pair *p = &pairs[i];
        if (p->bytes != bytes || p->from < 0 || p->to < 0 || (size_t)p->from >= nodes ||
            (size_t)p->to >= nodes)
            continue;
        best[p->from] = fmin(best[p->from], p->time_s);
        best[p->to] = fmin(best[p->to], p->time_s);
    }
}

size_t dl_cal_slow_nodes(const struct dl_cal_pair *pairs, size_t pair_count, size_t nodes,
                         double *slow_frac, struct dl_arena *arena) {
    size_t slow = 0;
    double *best = dl_arena_alloc(arena, nodes, sizeof *best),
           *scratch = dl_arena_alloc(arena, nodes, sizeof *scratch);
    for (size_t i = 0; i < nodes; i++) slow_frac[i] = 0;
    if (nodes < 3) return 0;
    for (size_t k = 0; k < pair_count; k++) {
        if (!first_of_size(pairs, k)) continue;
        best_times(pairs, pair_count, pairs[k].bytes, nodes, best);
        const double usual = dl_median(best, nodes, scratch);
        const double limit = pairs[k].bytes < SHORT_BYTES ? SHORT_SLOW_FACTOR : SLOW_FACTOR;
        for (size_t i = 0; i < nodes; i++) {
            if (isfinite(best[i]) && best[i] > limit * usual)
                slow_frac[i] = fmax(slow_frac[i], best[i] / usual);
        }
    }
    for (size_t i = 0; i < nodes; i++) slow += slow_frac[i] > 0;
    return slow;
}

static enum dl_code keep_pair(struct survey *s, const struct dl_raw_sample *sample,
                              struct dl_err *err) {
    s->pairs = dl_arena_grow(s->arena, s->pairs, s->count, sizeof *s->pairs);
    s->pairs[s->count++] =
        (struct dl_cal_pair){dl_cal_shape_number(sample->shape, "bytes"), sample->median_s,
                             (int)dl_cal_shape_number(sample->shape, "from"),
                             (int)dl_cal_shape_number(sample->shape, "to")};
    const struct dl_cal_point same = {
        .probe = sample->probe, .shape = sample->shape, .pass = sample->pass};
    return dl_cal_journal_has(s->journal, &same)
               ? DL_OK
               : dl_cal_journal_sample(s->journal, sample, s->arena, err);
}

static enum dl_code hear(void *context, const char *text, size_t length, struct dl_err *err) {
    struct survey *s = context;
    struct dl_cal_line line;
    if (length == 0 || text[0] != '{') return DL_OK; /* output of a launcher */
    DL_TRY(dl_cal_line_parse("dlmodel-probe-mpi --survey", 0, text, length, s->arena, &line, err));
    if (line.has_sample) return keep_pair(s, &line.sample, err);
    if (!line.has_fact) return DL_OK;
    if (strcmp(line.fact.key, "hosts") == 0) s->hosts = line.fact.value;
    return dl_cal_journal_fact(s->journal, line.fact.key, line.fact.value, s->arena, err);
}

/* Runs the probe with `option` on these hosts. s->why NULL: every node answered. */
static enum dl_code query(const struct dl_cal_launch *launch, const char *const *hosts,
                          size_t count, const char *option, struct survey *s, struct dl_err *err) {
    struct dl_child_ending ending;
    struct dl_err own = {0};
    size_t n;
    const char **argv = dl_cal_launch_words(launch, hosts, count, 3, s->arena, &n);
    argv[n++] = launch->tools->program[DL_CAL_PROGRAM_MPI];
    argv[n++] = option;
    argv[n] = NULL;
    s->why = NULL;
    const enum dl_code code = dl_cal_child_run(argv, SILENCE_S, hear, s, &ending, &own);
    if (code == DL_ERR_SYSTEM) {
        if (err != NULL) *err = own;
        return code;
    }
    for (char *c = ending.last_words; *c != 0; c++) {
        if (*c == '\n') *c = ' ';
    }
    if (code != DL_OK)
        s->why = dl_arena_strdup(s->arena, own.message);
    else if (ending.exit_status != 0)
        s->why = ending.last_words[0] != 0 ? dl_arena_strdup(s->arena, ending.last_words)
                                           : "it failed without a message";
    return DL_OK;
}

static void exclude(struct dl_cal_launch *launch, size_t at) {
    for (; at + 1 < launch->host_count; at++) launch->hosts[at] = launch->hosts[at + 1];
    launch->host_count--;
}

/* After a failure: tries each node alone, then each with the first one that works. */
static enum dl_code drop_failing(struct dl_cal_launch *launch, struct survey *s,
                                 const struct dl_cal_progress *progress, struct dl_err *err) {
    for (int round = 0; round < 2; round++) {
        for (size_t i = (size_t)round; i < launch->host_count;) {
            const char *both[] = {launch->hosts[0], launch->hosts[i]};
            DL_TRY(
                query(launch, round == 0 ? &both[1] : both, round == 0 ? 1 : 2, "--hello", s, err));
            if (s->why == NULL) {
                i++;
                continue;
            }
            const char *text = dl_arena_printf(
                s->arena, "node %s excluded: %s: %.200s", launch->hosts[i],
                round == 0 ? "cannot start an MPI program there" : "it cannot exchange messages",
                s->why);
            progress->warn(progress->context, text);
            exclude(launch, i);
        }
    }
    return DL_OK;
}

/* Host names of MPI and of the host list may differ in the domain. Without a match, ranks follow
 * the order of the launcher. */
static size_t host_of_rank(const struct dl_cal_launch *launch, const char *hosts, size_t rank) {
    const char *name = hosts;
    for (size_t i = 0; i < rank && name != NULL; i++) {
        name = strchr(name, ',');
        if (name != NULL) name++;
    }
    const size_t length = name == NULL ? 0 : strcspn(name, ",.");
    for (size_t i = 0; i < launch->host_count && length > 0; i++) {
        if (strncmp(launch->hosts[i], name, length) == 0 &&
            strchr(".", launch->hosts[i][length]) != NULL)
            return i;
    }
    return rank;
}

static bool any_slow(const struct survey *s, size_t nodes) {
    double *slow = dl_arena_alloc(s->arena, nodes, sizeof *slow);
    return dl_cal_slow_nodes(s->pairs, s->count, nodes, slow, s->arena) > 0;
}

static void drop_slow(struct dl_cal_launch *launch, struct survey *s,
                      const struct dl_cal_progress *progress) {
    double *slow = dl_arena_alloc(s->arena, launch->host_count, sizeof *slow);
    const size_t nodes = launch->host_count;
    if (dl_cal_slow_nodes(s->pairs, s->count, nodes, slow, s->arena) == 0) return;
    bool *drop = dl_arena_alloc(s->arena, nodes, sizeof *drop);
    for (size_t rank = 0; rank < nodes; rank++) {
        if (slow[rank] <= 0) continue;
        const bool chooses = dl_cal_launch_chooses(launch);
        const size_t host = chooses ? host_of_rank(launch, s->hosts, rank) : rank;
        const char *name = chooses && host < nodes ? launch->hosts[host]
                                                   : dl_arena_printf(s->arena, "of rank %zu", rank);
        const char *text =
            chooses ? dl_arena_printf(s->arena,
                                      "node %s excluded: its messages take %.1f times as long as "
                                      "those of the other nodes",
                                      name, slow[rank])
                    : dl_arena_printf(
                          s->arena,
                          "node %s: its messages take %.1f times as long as those of the other "
                          "nodes; it stays, because --launcher has no {hosts} to exclude it",
                          name, slow[rank]);
        progress->warn(progress->context, text);
        if (chooses && host < nodes) drop[host] = true;
    }
    for (size_t i = nodes; i-- > 0;) {
        if (drop[i]) exclude(launch, i);
    }
}

enum dl_code dl_cal_nodes_survey(struct dl_cal_launch *launch, struct dl_cal_tools *tools,
                                 struct dl_cal_journal *journal,
                                 const struct dl_cal_progress *progress, struct dl_arena *arena,
                                 struct dl_err *err) {
    struct survey s = {.journal = journal, .arena = arena};
    const size_t asked = launch->host_count;
    DL_TRY(query(launch, launch->hosts, launch->host_count, "--survey", &s, err));
    if (s.why != NULL && dl_cal_launch_chooses(launch)) {
        DL_TRY(drop_failing(launch, &s, progress, err));
        s.count = 0; /* the ranks are numbered anew */
        if (launch->host_count >= 2 && launch->host_count < asked)
            DL_TRY(query(launch, launch->hosts, launch->host_count, "--survey", &s, err));
    }
    /* A short disturbance does not make a slow node: repeat, and count the fastest message of each
     * pair. */
    for (int again = 0; again < 2 && s.why == NULL && any_slow(&s, launch->host_count); again++)
        DL_TRY(query(launch, launch->hosts, launch->host_count, "--survey", &s, err));
    if (s.why == NULL) drop_slow(launch, &s, progress);
    if (s.why != NULL || launch->host_count < 2) {
        return dl_fail(err, DL_ERR_BACKEND, "MPI between nodes: %zu of %zu nodes answer: %.300s",
                       s.why != NULL && launch->host_count == asked ? (size_t)0
                                                                    : launch->host_count,
                       asked, s.why != NULL ? s.why : "the others were excluded");
    }
    tools->hosts_left = (int64_t)launch->host_count;
    return DL_OK;
}
