/* F-BOUND against F-SAVING on random plans: where the bottleneck
 * is a resource, no other one saves more of the iteration than those that relieve it, unless two
 * limit at once: with 10 % more of the first the bottleneck is another. */
#include "model/engine/strategies/strategy.h"
#include "model/machine/what_if.h"
#include "model/search/limits.h"
#include "tests/catalog.h"
#include "tests/check.h"

enum { USUAL = 9000, REPORTED = 10 };
/* Of the iteration: kernels of several limits count as what limits most of each. */
static const double NEAR = 0.01;

/* Of the plans: links whose attained rate NCCL's samples or an adapter's slot set, so that their
 * own bandwidth saves nothing, are the bottleneck by name; other stages and messages, with two
 * limits one after the other, by the larger. */
static const double MOST_FRAC = 0.003;

static uint64_t seed = 20261129;
static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }
static int64_t any_ranks(unsigned axes, unsigned axis) {
    return axes & axis ? (int64_t)1 << upto(4) : 0;
}

static struct dl_plan any_plan(void) {
    int count = 0;
    while (dl_strategies[count] != NULL) count++;
    const struct dl_strategy *s = dl_strategies[upto(count)];
    struct dl_plan plan = {.strategy = s,
                           .optimizer = DL_ADAM,
                           .input.synthetic = true,
                           .nodes = (int64_t)1 << upto(7),
                           .precision = upto(2) == 0 ? DL_MIXED : DL_FP32,
                           .batch_per_device_samples = (double)(1 << upto(7)),
                           .tp = any_ranks(s->axes, DL_AXIS_TP),
                           .pp = any_ranks(s->axes, DL_AXIS_PP),
                           .ep = any_ranks(s->axes, DL_AXIS_EP)};
    plan.sequence_parallel = plan.tp > 1 && upto(2) == 0;
    plan.shard = s->shard == 0 ? upto(4) : 0;
    if (s->shard > 0 && upto(4) == 0) plan.shard_group = 8;
    if (plan.pp > 1 || upto(4) == 0) plan.micro_batch_samples = 1;
    return plan;
}

static const struct dl_workload *any_workload(void) {
    static const char *const names[] = {"resnet50",  "vgg16",      "bert_large", "gpt2",
                                        "llama3_8b", "llama3_70b", "alexnet",    "mixtral_8x7b"};
    const char *name = names[upto(sizeof names / sizeof names[0])];
    for (int i = 0; i < all.workload_count; i++)
        if (strcmp(all.workloads[i]->name, name) == 0) return all.workloads[i];
    fail_msg("no workload %s", name);
    return NULL;
}

/* Whether the bottleneck is the same with a tenth more of it. */
static bool stays(const struct dl_predict_request *r, const struct dl_prediction *p) {
    const double by = 1.1;
    struct dl_system more = *r->system;
    struct dl_device device = *r->system->device;
    struct dl_rate rates[16];
    struct dl_prediction after;
    if (more.as_measured == NULL) more.as_measured = r->system;
    switch (p->bottleneck) {
    case DL_BOUND_INTRA:
        more.intra.bandwidth_bytes_per_s *= by, more.intra.cross_bandwidth_bytes_per_s *= by;
        break;
    case DL_BOUND_INTER:
        more.inter.bandwidth_bytes_per_s *= by, more.inter.cross_bandwidth_bytes_per_s *= by;
        break;
    case DL_BOUND_HOST_COPY: more.host.copy_bandwidth_bytes_per_s *= by; break;
    case DL_BOUND_MEMORY_BANDWIDTH: device.memory_bandwidth_bytes_per_s *= by; break;
    default:
        assert_true(device.rate_count <= 16);
        memcpy(rates, device.rates, (size_t)device.rate_count * sizeof *rates);
        for (int i = 0; i < device.rate_count; i++) rates[i].peak_flop_per_s *= by;
        device.rates = rates;
    }
    dl_device_what_if(r->system->device, &device, r->arena);
    more.device = &device;
    dl_system_what_if(r->system, &more, r->arena);
    assert_int_equal(dl_predict(&(struct dl_predict_request){&more, r->workload, r->framework,
                                                             r->plan, NULL, r->arena},
                                &after, NULL),
                     DL_OK);
    return after.bottleneck == p->bottleneck;
}

static int compared, contradicted;

static void compare(struct dl_arena *arena) {
    const struct dl_system *system = all.systems[upto(all.system_count)];
    const struct dl_workload *workload = any_workload();
    const struct dl_framework *framework = all.frameworks[upto(all.framework_count)];
    struct dl_plan plan = any_plan(); /* complete: idle links are left out */
    plan.devices_per_node = system->devices_per_node;
    struct dl_prediction p;
    struct dl_saving gains[DL_MAX_LIMITS];
    int count = 0;
    if (dl_predict(&(struct dl_predict_request){system, workload, framework, &plan, NULL, arena},
                   &p, NULL) != DL_OK)
        return;
    if (!p.fits) return;
    const struct dl_predict_request request = {.system = system,
                                               .workload = workload,
                                               .framework = framework,
                                               .plan = &plan,
                                               .arena = arena};
    assert_int_equal(dl_gains_of(&request, p.iteration_s, gains, &count, NULL), DL_OK);
    double own = 0;
    for (int i = 0; i < count; i++)
        if (gains[i].relieves & 1u << p.bottleneck) own += gains[i].saved_frac;
    compared++;
    /* with a tenth more no plan takes longer, or less than ten elevenths: another cut */
    const bool same_plan = count == 0 || (own >= 0 && gains[0].saved_frac <= 1 - 1 / 1.1);
    if (count == 0 || !same_plan || gains[0].relieves & 1u << p.bottleneck ||
        gains[0].saved_frac <= own + NEAR || !stays(&request, &p))
        return;
    if (contradicted++ < REPORTED)
        print_error("%s, %s, %s, %s, %lld nodes, batch %g, tp %lld, pp %lld, shard %lld: %s (%.0f "
                    "%%) saves %.2f %%, %s %.2f %%\n",
                    system->name, workload->name, framework->name, plan.strategy->name,
                    (long long)plan.nodes, plan.batch_per_device_samples, (long long)plan.tp,
                    (long long)plan.pp, (long long)plan.shard, dl_bottleneck_names[p.bottleneck],
                    100 * p.bottleneck_share, 100 * own, gains[0].resource,
                    100 * gains[0].saved_frac);
}

static void the_bottleneck_saves_most(void **state) {
    const char *asked = getenv("DL_BOTTLENECKS");
    const int cases = asked != NULL ? atoi(asked) : USUAL;
    while (compared < cases) {
        struct dl_arena arena = {0};
        compare(&arena);
        dl_arena_free(&arena);
    }
    print_message("# %d plans, %d contradictions\n", compared, contradicted);
    assert_true(contradicted <= MOST_FRAC * compared);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_bottleneck_saves_most)};
    return cmocka_run_group_tests(tests, catalog_load, catalog_free);
}
