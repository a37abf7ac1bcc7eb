/* The search against brute force that knows nothing of it: 40 small spaces (DL_SEARCH_SPACES=N: N)
 * of transformers, with and without experts, over data, tensor, pipeline, context and expert ranks,
 * micro-batches, schedules, virtual stages, recomputation, sharding, sequence parallelism, mappings
 * and, in most spaces, one or two settings of the release (dispatch and overlap of experts, CUDA
 * graphs, overlap of collectives, offload within the host's memory, recomputed layers and modules).
 * Plain loops over all numbers, most of them impossible and refused, hand every plan to dl_predict;
 * the search must find the same best plans, and say of each what dl_predict says. */
#include "model/engine/strategies/strategy.h"
#include "model/framework/settings.h"
#include "model/search/search.h"
#include "predict/output/search_threads.h"
#include "tests/check.h"
#include "tests/fake.h"
#include "tests/load_workload.h"

enum { SPACES = 40, MOST = 4000000, KEPT = 16 };

static uint64_t seed;
static double unit(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) / 9007199254740992.0;
}
static bool chance(double p) { return unit() < p; }
static double spread(double low, double high) { return low * pow(high / low, unit()); }
static int64_t one_of(int count, const int64_t *values) { return values[(int)(unit() * count)]; }
#define ONE_OF(...)                                                                                \
    one_of((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

struct space {
    struct dl_fake f;
    struct dl_workload workload;
    struct dl_search_request request;
    int64_t layers, experts;
};

/* What the release of these spaces has, and one or two settings that vary. */
static const char *const release_has[] = {
    "overlap-grad-reduce", "overlap-param-gather", "tp-comm-overlap", "allreduce",
    "moe-dispatch",        "cuda-graphs",          "moe-overlap",     "recompute-layers",
    "recompute-every",     "recompute-modules",    "offload",         "cp-comm"};
enum { HAS = sizeof release_has / sizeof *release_has };

static void vary_some(struct space *s) {
    struct dl_framework *f = &s->f.framework;
    f->capabilities.settings = (const char **)release_has;
    f->capabilities.setting_count = HAS;
    s->f.system.has_host = true;
    s->f.system.host.copy_bandwidth_bytes_per_s = spread(1e9, 6e10);
    s->f.system.host.memory_bandwidth_bytes_per_s = spread(2e10, 2e11);
    s->f.system.host.memory_bytes = chance(0.5) ? 1e12 : spread(1e8, 1e9);
    if (chance(0.25)) return;
    s->request.vary = 1u << (1 + (int)(unit() * HAS));
    if (chance(0.4)) s->request.vary |= 1u << (1 + (int)(unit() * HAS));
}

/* A value of a plan's field given by the user, or left open. */
static void fix_some(struct dl_plan *fixed, int64_t devices) {
    if (chance(0.15)) fixed->tp = ONE_OF(1, 2);
    if (chance(0.15)) fixed->pp = ONE_OF(1, 2, 4);
    if (chance(0.3)) fixed->sp = ONE_OF(1, 1, 2);
    if (fixed->tp * fixed->pp * fixed->sp > devices) fixed->tp = fixed->pp = fixed->sp = 0;
    fixed->recompute_open = chance(0.4);
    fixed->recompute = fixed->recompute_open ? DL_RECOMPUTE_NONE : (enum dl_recompute)(unit() * 3);
}

static void list_schedules(struct dl_framework *f) {
    static const char *all[DL_SCHEDULES];
    memcpy(all, dl_schedule_names, sizeof all);
    f->capabilities.schedules = all;
    f->capabilities.schedule_count = DL_SCHEDULES;
}

static void make_space(struct space *s) {
    static struct dl_override o[9];
    static char text[9][32];
    static const char *const keys[] = {"layers",  "heads", "hidden",   "seq",     "vocab",
                                       "experts", "topk",  "capacity", "kv_heads"};
    const int64_t heads = ONE_OF(1, 2, 4, 6);
    s->layers = ONE_OF(1, 2, 3, 4, 5, 6, 7, 8);
    s->experts = chance(0.5) ? ONE_OF(2, 4, 8) : 0;
    const int64_t values[] = {s->layers,
                              heads,
                              heads * 64,
                              ONE_OF(8, 12, 64),
                              1000,
                              s->experts,
                              s->experts > 0 ? ONE_OF(1, 2) : 1,
                              ONE_OF(0, 1, 2),
                              heads % 2 == 0 && chance(0.5) ? heads / 2 : heads};
    for (int i = 0; i < 9; i++) {
        snprintf(text[i], sizeof text[i], "%lld", (long long)values[i]);
        o[i] = (struct dl_override){.key = keys[i], .value = text[i]};
    }
    fake_make(&s->f);
    load_name("gpt", o, 9, &test_arena, &s->workload);
    struct dl_framework *f = &s->f.framework;
    f->splits_layers = true;
    f->shards = chance(0.7);
    if (chance(0.5)) list_schedules(f);
    f->sync.overlaps_backward = chance(0.5);
    f->host.dispatch_s = chance(0.5) ? 0 : spread(1e-7, 1e-5);
    s->f.device.memory_bytes = chance(0.6) ? 1e10 : spread(6.2e8, 9e8);
    s->f.system.inter.bandwidth_bytes_per_s = spread(1e8, 5e10);
    s->f.system.intra.bandwidth_bytes_per_s = spread(1e9, 5e11);
    s->f.system.nodes = 64;
    s->f.system.devices_per_node = 8;
    struct dl_plan fixed = s->f.plan;
    fixed.strategy = NULL;
    fixed.nodes = 0;
    fixed.precision = chance(0.5) ? DL_MIXED : DL_FP32;
    fixed.optimizer = DL_ADAM;
    fixed.devices_per_node = ONE_OF(1, 2, 3, 4, 4, 8);
    fixed.batch_per_device_samples = 0;
    fixed.global_batch_samples = (double)ONE_OF(1, 2, 3, 4, 6, 8, 8, 12, 16);
    s->request = (struct dl_search_request){.system = &s->f.system,
                                            .workload = &s->workload,
                                            .framework = f,
                                            .nodes = {ONE_OF(1, 2, 3, 4)},
                                            .node_count = 1,
                                            .keep = KEPT,
                                            .any_schedule = chance(0.6),
                                            .any_shard = chance(0.5),
                                            .any_mapping = chance(0.7),
                                            .any_sequence_parallel = chance(0.6)};
    s->request.objective = chance(0.7) ? DL_BY_TIME : DL_BY_MEMORY;
    fix_some(&fixed, s->request.nodes[0] * fixed.devices_per_node);
    if (!s->request.any_shard && f->shards) fixed.shard = ONE_OF(0, 0, 1, 2, 3);
    if (!s->request.any_schedule) fixed.schedule = (enum dl_schedule)(unit() * DL_SCHEDULES);
    s->request.fixed = fixed;
    vary_some(s);
}

struct oracle {
    const struct space *s;
    double *scores;
    int64_t count, predicted, uneven, expert, context, interleaved, sharded, pipeline_inside,
        varied, offloaded;
    struct dl_plan settings; /* of the plans that are judged now */
    struct dl_plan best;
    double least;
    const struct dl_framework *framework;
};

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The release has it, and it does not apply gradients of other weights. */
static bool is_proposed(const struct space *s, enum dl_schedule schedule) {
    const bool all = s->f.framework.capabilities.schedule_count > 0;
    return schedule != DL_ASYNC && (schedule <= DL_INTERLEAVED || all);
}

/* What the user gave is kept; what was left open may be anything. */
static bool wanted(const struct space *s, const struct dl_plan *p) {
    const struct dl_search_request *r = &s->request;
    const struct dl_plan *x = &r->fixed;
    if ((x->tp > 0 && p->tp != x->tp) || (x->pp > 0 && p->pp != x->pp) ||
        (x->sp > 0 && p->sp != x->sp))
        return false;
    if (!x->recompute_open && p->recompute != x->recompute) return false;
    if (!r->any_schedule && p->schedule != x->schedule) return false;
    if (r->any_schedule && !is_proposed(s, p->schedule)) return false;
    if (!r->any_mapping && p->mapping != x->mapping) return false;
    /* given stages and sequence parallelism concern those that can have them */
    if (!r->any_shard && p->dp * p->ep * p->sp > 1 && p->shard != x->shard) return false;
    return r->any_sequence_parallel || p->sequence_parallel == x->sequence_parallel;
}

/* Recomputed layers belong to full recomputation, modules to selective one. */
static bool recomputes(const struct dl_plan *p) {
    const struct dl_plan_recomputed *some = &p->recomputed;
    return (some->modules == 0 || p->recompute == DL_RECOMPUTE_SELECTIVE) &&
           (some->layers + some->every == 0 || p->recompute == DL_RECOMPUTE_FULL);
}

static void judge(struct oracle *o, struct dl_plan p) {
    const struct space *s = o->s;
    struct dl_arena arena = {0};
    struct dl_prediction out;
    p.settings = o->settings.settings;
    p.offload = o->settings.offload;
    p.recomputed = o->settings.recomputed;
    if (!wanted(s, &p) || !recomputes(&p)) return;
    if (dl_predict(&(struct dl_predict_request){&s->f.system, &s->workload, o->framework, &p, NULL,
                                                &arena},
                   &out, NULL) == DL_OK) {
        o->predicted++;
        o->varied += s->request.vary != 0;
        o->offloaded += p.offload.what != 0;
        o->uneven += s->layers % p.pp != 0;
        o->expert += p.ep > 1;
        o->context += p.sp > 1;
        o->interleaved += p.schedule == DL_INTERLEAVED;
        o->sharded += p.shard > 0;
        o->pipeline_inside += p.mapping == DL_MAP_PIPELINE_INSIDE;
        if (out.fits) {
            assert_true(o->count < MOST);
            const double score =
                s->request.objective == DL_BY_MEMORY ? out.memory.total_bytes : out.iteration_s;
            if (o->count == 0 || score < o->least) o->least = score, o->best = p;
            o->scores[o->count++] =
                s->request.objective == DL_BY_MEMORY ? out.memory.total_bytes : out.iteration_s;
        }
    }
    dl_arena_free(&arena);
}

static void judge_choices(struct oracle *o, struct dl_plan p) {
    const bool pipelines = p.pp > 1, shares = p.dp * p.ep * p.sp > 1 && o->s->f.framework.shards;
    for (int schedule = 0; schedule <= (pipelines ? DL_SCHEDULES - 1 : 0); schedule++) {
        /* without a pipeline there is one schedule, whatever was given */
        const int said = pipelines ? schedule : (int)o->s->request.fixed.schedule;
        for (int64_t v = 1; v <= (schedule == DL_INTERLEAVED ? o->s->layers : 1); v++) {
            if (schedule == DL_INTERLEAVED && v < 2) continue;
            for (int r = 0; r < 3; r++)
                for (int shard = 0; shard <= (shares ? 3 : 0); shard++)
                    for (int seq = 0; seq <= (p.tp > 1); seq++)
                        for (int mapping = 0; mapping < 2; mapping++) {
                            p.schedule = (enum dl_schedule)said;
                            if (!pipelines && dl_schedules[said]->most_parts > 1) continue;
                            p.virtual_stages = v > 1 ? v : 0;
                            p.recompute = (enum dl_recompute)r;
                            p.shard = shard;
                            p.sequence_parallel = seq;
                            p.mapping = (enum dl_mapping)mapping;
                            judge(o, p);
                        }
        }
    }
}

static void judge_splits(struct oracle *o) {
    const struct dl_search_request *r = &o->s->request;
    const int64_t devices = r->nodes[0] * r->fixed.devices_per_node,
                  batch = (int64_t)r->fixed.global_batch_samples;
    struct dl_plan p = r->fixed;
    p.nodes = r->nodes[0];
    p.recompute_open = false;
    for (p.dp = 1; p.dp <= devices; p.dp++)
        for (p.tp = 1; p.dp * p.tp <= devices; p.tp++)
            for (p.pp = 1; p.dp * p.tp * p.pp <= devices; p.pp++)
                for (p.sp = 1; p.dp * p.tp * p.pp * p.sp <= devices; p.sp++) {
                    const int64_t rest = p.dp * p.tp * p.pp * p.sp;
                    if (devices % rest != 0) continue;
                    p.ep = devices / rest;
                    if (p.ep > 1 && o->s->experts == 0) continue;
                    if (batch % (p.dp * p.ep) != 0) continue; /* whole samples for each rank */
                    p.strategy = dl_strategy_find(p.ep > 1 ? "expert" : "3d");
                    for (int64_t b = 1; b <= batch / (p.dp * p.ep); b++) {
                        p.micro_batch_samples = (double)b;
                        judge_choices(o, p);
                    }
                }
}

static bool varies(const struct space *s, const char *name) {
    for (int n = 1; dl_settings_varied[n] != NULL; n++)
        if (strcmp(dl_settings_varied[n], name) == 0) return (s->request.vary >> n & 1) != 0;
    return false;
}

/* Every value of the settings that vary. */
static void judge_all(struct oracle *o) {
    const struct space *s = o->s;
    const bool experts = s->experts > 0;
    const struct {
        const char *name;
        int *value, most;
    } named[] = {{"overlap-grad-reduce", &o->settings.settings.overlap_grad_reduce, 2},
                 {"overlap-param-gather", &o->settings.settings.overlap_param_gather, 2},
                 {"tp-comm-overlap", &o->settings.settings.tp_comm_overlap, 2},
                 {"allreduce", &o->settings.settings.allreduce, 2},
                 {"moe-dispatch", &o->settings.settings.moe_dispatch, experts ? 4 : 0},
                 {"cp-comm", &o->settings.settings.cp_comm, 3},
                 {"cuda-graphs", &o->settings.settings.cuda_graphs, 3}};
    enum { NAMED = sizeof named / sizeof *named };
    const int overlaps = varies(s, "moe-overlap") && experts ? 1 : 0,
              layers = varies(s, "recompute-layers") ? (int)s->layers : 0,
              every = varies(s, "recompute-every") ? (int)s->layers : 0,
              modules = varies(s, "recompute-modules") ? 15 : 0,
              offload = varies(s, "offload") ? 7 : 0;
    int most[NAMED], all = 1;
    for (int i = 0; i < NAMED; i++) {
        most[i] = varies(s, named[i].name) ? named[i].most : 0;
        all *= most[i] + 1;
    }
    for (int choice = 0; choice < all; choice++) {
        int left = choice;
        for (int i = 0; i < NAMED; i++) {
            *named[i].value = left % (most[i] + 1);
            left /= most[i] + 1;
        }
        for (int overlap = 0; overlap <= overlaps; overlap++)
            for (int l = 0; l <= layers; l++)
                for (int e = 0; e <= every; e++)
                    for (int m = 0; m <= modules; m++)
                        for (int f = 0; f <= offload; f++) {
                            struct dl_arena arena = {0};
                            const struct dl_system *system = &s->f.system;
                            if ((l > 0) + (e > 0) + (m > 0) > 1) continue;
                            o->settings.settings.moe_overlap = overlap;
                            o->settings.recomputed.layers = l;
                            o->settings.recomputed.every = e;
                            o->settings.recomputed.modules = (unsigned)m;
                            o->settings.offload.what = (unsigned)f;
                            o->framework = &s->f.framework;
                            assert_int_equal(dl_settings_apply(&o->settings, &arena, &system,
                                                               &o->framework, NULL),
                                             DL_OK);
                            judge_splits(o);
                            dl_arena_free(&arena);
                        }
    }
    qsort(o->scores, (size_t)o->count, sizeof *o->scores, ascending);
}

static bool same(double a, double b) { return fabs(a - b) <= 1e-11 * fabs(b); }

/* The space and the first plan found in it, for a failure. */
static void describe(const struct space *s, const struct dl_search_worker *found) {
    const struct dl_search_request *r = &s->request;
    const struct dl_plan *x = &r->fixed;
    const struct dl_search_candidate *b = &found->best[0];
    print_message("%lld layers, %lld experts, %lld x %lld devices, batch %g; given (0: open) tp "
                  "%lld pp %lld cp %lld, schedule %d%s, zero %d%s, recompute %d%s, objective %d, "
                  "settings 0x%x\n",
                  (long long)s->layers, (long long)s->experts, (long long)r->nodes[0],
                  (long long)x->devices_per_node, x->global_batch_samples, (long long)x->tp,
                  (long long)x->pp, (long long)x->sp, (int)x->schedule,
                  r->any_schedule ? " open" : "", (int)x->shard, r->any_shard ? " open" : "",
                  (int)x->recompute, x->recompute_open ? " open" : "", (int)r->objective, r->vary);
    if (found->best_count == 0) return;
    print_message("found: dp %lld tp %lld pp %lld cp %lld ep %lld, micro-batch %g, schedule %d v "
                  "%lld, zero %d, seq %d, mapping %d, recompute %d: %.17g\n",
                  (long long)b->split.dp, (long long)b->split.tp, (long long)b->split.pp,
                  (long long)b->split.sp, (long long)b->split.ep, b->micro_samples,
                  (int)b->choice.schedule, (long long)b->choice.virtual_stages, b->shard,
                  b->split.sequence_parallel, (int)b->split.mapping, (int)b->choice.recompute,
                  b->score);
}

/* The first plan of brute force. */
static void describe_best(const struct oracle *o) {
    const struct dl_plan *p = &o->best;
    print_message(
        "brute force: dp %lld tp %lld pp %lld cp %lld ep %lld, micro-batch %g, schedule "
        "%d v %lld, zero %d, seq %d, mapping %d, recompute %d layers %lld every %lld "
        "modules %u, offload %u, graphs %d, dispatch %d, overlap %d: %.17g\n",
        (long long)p->dp, (long long)p->tp, (long long)p->pp, (long long)p->sp, (long long)p->ep,
        p->micro_batch_samples, (int)p->schedule, (long long)p->virtual_stages, (int)p->shard,
        p->sequence_parallel, (int)p->mapping, (int)p->recompute, (long long)p->recomputed.layers,
        (long long)p->recomputed.every, p->recomputed.modules, p->offload.what,
        p->settings.cuda_graphs, p->settings.moe_dispatch, p->settings.moe_overlap, o->least);
}

/* The plans found are the best ones in their order: different scores of the list are the lowest
 * different scores of all plans. */
static void check_list(const struct oracle *o, const struct dl_search_worker *found) {
    int64_t at = 0;
    if (found->best_count > 0 && o->count > 0 && !same(found->best[0].score, o->scores[0]))
        describe(o->s, found), describe_best(o);
    for (int i = 0; i < found->best_count; i++) {
        const double score = found->best[i].score;
        if (i > 0) assert_true(score >= found->best[i - 1].score);
        if (i > 0 && same(score, found->best[i - 1].score)) continue;
        if (at >= o->count) fail_msg("plan %d, %g: brute force has no more", i, score);
        if (!same(score, o->scores[at])) describe(o->s, found), describe_best(o);
        if (!same(score, o->scores[at]))
            fail_msg("plan %d: search %.17g, brute force %.17g", i, score, o->scores[at]);
        while (at < o->count && same(o->scores[at], score)) at++;
    }
    if (found->best_count < KEPT) assert_int_equal(at, o->count); /* none is left out */
}

/* What the search says of a plan is what dl_predict says of it. */
static void check_predictions(const struct space *s, struct dl_search *search,
                              const struct dl_search_worker *found) {
    for (int i = 0; i < found->best_count; i++) {
        struct dl_err err = {0};
        struct dl_arena arena = {0};
        struct dl_prediction p;
        struct dl_plan plan = dl_search_plan(search, &found->best[i]);
        const struct dl_framework *framework = dl_search_framework(search, &found->best[i]);
        if (dl_predict(&(struct dl_predict_request){&s->f.system, &s->workload, framework, &plan,
                                                    NULL, &arena},
                       &p, &err) != DL_OK)
            fail_msg("%s", err.message);
        check_close(p.iteration_s, found->best[i].iteration_s, 1e-11);
        check_close(p.memory.total_bytes, found->best[i].memory_bytes, 1e-11);
        dl_arena_free(&arena);
    }
}

static void search_is_brute_force(void **state) {
    static struct dl_search_worker found;
    struct oracle all = {0};
    int feasible = 0;
    const char *asked = getenv("DL_SEARCH_SPACES");
    const int spaces = asked != NULL ? atoi(asked) : SPACES;
    double *scores = malloc(MOST * sizeof *scores);
    assert_non_null(scores);
    seed = 20;
    for (int i = 0; i < spaces; i++) {
        struct space s;
        struct dl_err err = {0};
        struct dl_arena arena = {0};
        struct dl_search *search;
        double elapsed_s;
        make_space(&s);
        struct oracle o = {.s = &s, .scores = scores};
        judge_all(&o);
        memset(&found, 0, sizeof found);
        const enum dl_code code = dl_search_prepare(&s.request, &arena, &search, &err);
        if (code == DL_OK) {
            const struct dl_search_run run = {.search = search, .threads = 1};
            if (dl_search_run(&run, &found, &elapsed_s, &err) != DL_OK) fail_msg("%s", err.message);
        }
        if ((found.best_count > 0) != (o.count > 0)) {
            describe(&s, &found);
            describe_best(&o);
            fail_msg("space %d: search finds %d plans (%s), brute force %lld", i, found.best_count,
                     err.message, (long long)o.count);
        }
        check_list(&o, &found);
        if (code == DL_OK) check_predictions(&s, search, &found);
        feasible += o.count > 0;
        all.predicted += o.predicted, all.uneven += o.uneven, all.expert += o.expert,
            all.context += o.context, all.interleaved += o.interleaved, all.sharded += o.sharded,
            all.pipeline_inside += o.pipeline_inside, all.varied += o.varied,
            all.offloaded += o.offloaded;
        dl_arena_free(&arena);
        dl_arena_free(&test_arena);
    }
    free(scores);
    print_message("%d spaces, %d with plans that fit; %lld plans predicted: %lld with uneven "
                  "stages, %lld expert, %lld context, %lld interleaved, %lld sharded, %lld "
                  "pipeline-inside, %lld with settings that vary, %lld offloaded\n",
                  spaces, feasible, (long long)all.predicted, (long long)all.uneven,
                  (long long)all.expert, (long long)all.context, (long long)all.interleaved,
                  (long long)all.sharded, (long long)all.pipeline_inside, (long long)all.varied,
                  (long long)all.offloaded);
    assert_true(feasible > spaces / 3 && all.uneven > 50 * spaces && all.expert > 20 * spaces &&
                all.context > 50 * spaces && all.interleaved > 10 * spaces &&
                all.sharded > 50 * spaces && all.pipeline_inside > 50 * spaces &&
                all.varied > 100 * spaces && all.offloaded > 10 * spaces);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(search_is_brute_force)};
    return cmocka_run_group_tests(tests, NULL, check_free);
}
