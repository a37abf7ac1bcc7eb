/* Laws of every piece of advice on anything in data/: what is proposed is complete, an option of
 * predict, not in force already and not said twice; a rewritten network is one. Every piece is
 * proposed somewhere, and not everywhere. */
#include "model/search/advise/advise.h"
#include "model/engine/strategies/strategy.h"
#include "tests/catalog.h"
#include "tests/check.h"

enum { CASES = 1500, ITEMS = 64 };

static uint64_t seed = 20;
static int proposed[ITEMS], asked[ITEMS];

static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }

static bool one_of(const char *word, const char *const *words) {
    for (; *words != NULL; words++)
        if (strcmp(word, *words) == 0) return true;
    return false;
}

static bool same_options(const struct dl_advise_change *a, const struct dl_advise_change *b) {
    if (a->option_count != b->option_count ||
        (a->workload_text == NULL) != (b->workload_text == NULL))
        return false;
    if (a->workload_text != NULL && strcmp(a->workload_text, b->workload_text) != 0) return false;
    for (int o = 0; o < a->option_count; o++) {
        const char *x = a->options[o].value, *y = b->options[o].value;
        if (strcmp(a->options[o].name, b->options[o].name) != 0 || (x == NULL) != (y == NULL) ||
            (x != NULL && strcmp(x, y) != 0))
            return false;
    }
    return true;
}

static void check_network(const struct dl_advise_change *c, struct dl_arena *arena) {
    struct dl_json *doc = NULL;
    struct dl_workload workload;
    struct dl_err err = {0};
    const struct dl_json *docs[1];
    if (dl_json_parse("rewritten.json", c->workload_text, strlen(c->workload_text), arena, &doc,
                      &err) != DL_OK)
        fail_msg("%s: %s", c->item->name, err.message);
    docs[0] = doc;
    if (dl_workload_build(docs, 1, NULL, 0, arena, &workload, &err) != DL_OK)
        fail_msg("%s: %s: %s", c->item->name, err.key, err.message);
    assert_true(workload.layer_count > 0);
}

/* What the plan or the framework already does is not proposed. */
static void check_new(const struct dl_advise_change *c, const struct dl_advise_state *s) {
    for (int o = 0; o < c->option_count; o++) {
        const char *name = c->options[o].name, *value = c->options[o].value;
        if (strcmp(name, "precision") == 0 &&
            strcmp(value, dl_precision_names[s->plan->precision]) == 0)
            fail_msg("%s proposes the precision in force, %s", c->item->name, value);
        if (strcmp(name, "batch-per-device") == 0 &&
            strtod(value, NULL) == s->plan->batch_per_device_samples)
            fail_msg("%s proposes the batch in force, %s", c->item->name, value);
        if (strcmp(name, "set") == 0 && strchr(value, '=') == NULL)
            fail_msg("%s: --set %s", c->item->name, value);
    }
}

static void check_change(const struct dl_advise_change *c, const struct dl_advise_item *item,
                         const struct dl_advise_state *s) {
    static const char *const names[] = {"set",
                                        "precision",
                                        "batch-per-device",
                                        "global-batch",
                                        "micro-batch",
                                        "compiler",
                                        "attention",
                                        "recompute",
                                        "servers",
                                        "workload",
                                        "framework",
                                        "library",
                                        "strategy",
                                        "sequence-parallel",
                                        "optimizer",
                                        "decode-workers",
                                        "parameter-device",
                                        "backup-workers",
                                        "release",
                                        "zero",
                                        "schedule",
                                        "virtual-stages",
                                        NULL};
    assert_ptr_equal(c->item, item);
    if (c->text == NULL || c->text[0] == '\0' || c->setting == NULL || c->setting[0] == '\0')
        fail_msg("%s: no words", item->name);
    assert_true(c->option_count >= 0 && c->option_count <= DL_ADVISE_OPTIONS);
    assert_true(c->option_count > 0 || c->workload_text != NULL);
    assert_int_equal(c->workload_text != NULL, item->rewrites);
    for (int o = 0; o < c->option_count; o++)
        if (!one_of(c->options[o].name, names))
            fail_msg("%s: option %s", item->name, c->options[o].name);
    check_new(c, s);
    if (c->workload_text != NULL) check_network(c, s->arena);
}

static void ask_every_item(const struct dl_advise_state *state) {
    for (int i = 0; dl_advise_items[i].name != NULL; i++) {
        struct dl_advise_change changes[DL_ADVISE_CHANGES];
        const int count = dl_advise_propose(&dl_advise_items[i], state, changes);
        assert_true(count >= 0 && count <= DL_ADVISE_CHANGES);
        asked[i]++, proposed[i] += count > 0;
        for (int k = 0; k < count; k++) {
            check_change(&changes[k], &dl_advise_items[i], state);
            for (int j = 0; j < k; j++)
                if (same_options(&changes[j], &changes[k]))
                    fail_msg("%s proposes '%s' twice", dl_advise_items[i].name, changes[k].text);
        }
    }
}

static struct dl_plan a_plan(const struct dl_workload *workload) {
    static const double batches[] = {1, 4, 16, 64};
    struct dl_plan p = {.nodes = (int64_t)1 << upto(4),
                        .batch_per_device_samples = batches[upto(4)],
                        .precision = upto(2) == 0   ? DL_FP32
                                     : upto(2) == 0 ? DL_MIXED
                                                    : DL_BF16,
                        .optimizer = (enum dl_optimizer)upto(DL_OPTIMIZERS),
                        .input.synthetic = upto(3) != 0,
                        .recompute_open = true};
    if (upto(3) == 0) p.devices_per_node = 1;
    if (upto(3) == 0)
        p.input.decode_s_per_sample = 2e-2, p.input.sample_bytes = 1e5,
        p.input.dataset_samples = 1e6, p.input.synthetic = false;
    if (dl_known(workload->transformer_layers) && upto(3) == 0)
        p.tp = 2, p.strategy = dl_strategy_find("data+tensor");
    else if (dl_known(workload->transformer_layers) && upto(3) == 0)
        p.pp = 2, p.micro_batch_samples = 1, p.strategy = dl_strategy_find("3d");
    return p;
}

static void laws_of_advice(void **state) {
    int states = 0;
    for (int k = 0; k < CASES; k++) {
        struct dl_arena arena = {0};
        struct dl_prediction prediction;
        const struct dl_system *system = all.systems[upto(all.system_count)];
        const struct dl_workload *workload = all.workloads[upto(all.workload_count)];
        const struct dl_framework *framework = all.frameworks[upto(all.framework_count)];
        struct dl_plan plan = a_plan(workload);
        const struct dl_predict_options options = {.terms = false};
        if (dl_plan_complete(system, workload, framework, &plan, NULL) == DL_OK &&
            dl_predict(
                &(struct dl_predict_request){system, workload, framework, &plan, &options, &arena},
                &prediction, NULL) == DL_OK) {
            states++;
            ask_every_item(&(struct dl_advise_state){.system = system,
                                                     .workload = workload,
                                                     .framework = framework,
                                                     .plan = &plan,
                                                     .prediction = &prediction,
                                                     .arena = &arena});
        }
        dl_arena_free(&arena);
    }
    assert_true(states > CASES / 10);
    for (int i = 0; dl_advise_items[i].name != NULL; i++)
        if (proposed[i] == 0 || proposed[i] == asked[i])
            fail_msg("%s is proposed in %d of %d cases", dl_advise_items[i].name, proposed[i],
                     asked[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(laws_of_advice)};
    return cmocka_run_group_tests(tests, catalog_load, catalog_free);
}
