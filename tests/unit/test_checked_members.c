/* Conditions between members of systems, links, kernel-time models, layer times and frameworks,
 * one at a time on the structures themselves: next to each refusal a case that passes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/framework/layer_times.h"
#include "model/machine/kernel_model.h"
#include "tests/check.h"
#include "tests/fake.h"

static struct dl_err err;
static struct dl_arena arena;
static struct dl_json *doc;

static int setup(void **state) {
    (void)state;
    return dl_json_parse("x.json", "{\"name\":\"x\"}", strlen("{\"name\":\"x\"}"), &arena, &doc,
                         &err) == DL_OK
               ? 0
               : -1;
}
static int teardown(void **state) {
    (void)state;
    dl_arena_free(&arena);
    return 0;
}

#define refused(call, words)                                                                       \
    do {                                                                                           \
        memset(&err, 0, sizeof err);                                                               \
        assert_int_equal(call, DL_ERR_INPUT);                                                      \
        check_contains(err.message, words);                                                        \
    } while (0)
#define passes(call)                                                                               \
    do {                                                                                           \
        if ((call) != DL_OK) fail_msg("%s: %s", err.key, err.message);                             \
    } while (0)

static void members_of_a_system(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_system *s = &f.system, base;
    s->price_per_node_hour = s->host_w = s->pue = NAN;
    passes(dl_system_check(s, doc, &err));
    base = *s;
    s->device_name = NULL;
    refused(dl_system_check(s, doc, &err), "expected device");
    *s = base, s->has_profile = true;
    refused(dl_system_check(s, doc, &err), "not both");
    *s = base, s->price_per_node_hour = 1;
    refused(dl_system_check(s, doc, &err), "expected the currency");
    s->price_currency = "USD";
    passes(dl_system_check(s, doc, &err));
    *s = base, s->has_intra = false;
    refused(dl_system_check(s, doc, &err), "need links.intra");
    s->devices_per_node = 1;
    passes(dl_system_check(s, doc, &err));
    *s = base, s->has_inter = false;
    refused(dl_system_check(s, doc, &err), "need links.inter");
    s->nodes = 1;
    passes(dl_system_check(s, doc, &err));
    *s = base, s->host.sockets = 4, s->host.cores = 3;
    refused(dl_system_check(s, doc, &err), "cores of all sockets");
    s->host.cores = 4;
    passes(dl_system_check(s, doc, &err));
    s->host.cores = DL_ABSENT;
    passes(dl_system_check(s, doc, &err));
    s->host.cores = 3, s->host.sockets = DL_ABSENT;
    passes(dl_system_check(s, doc, &err));
    s->host.sockets = 4, s->has_host = false;
    passes(dl_system_check(s, doc, &err));
    dl_arena_free(&f.arena);
}

static void measured_samples(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_system *s = &f.system;
    s->price_per_node_hour = NAN;
    struct dl_coll_sample samples[] = {{8, 1e-5, NAN, NAN}, {16, 1e-5, NAN, NAN}};
    struct dl_coll_measured m = {.library = "mpi",
                                 .operation = "broadcast",
                                 .nodes = 2,
                                 .ranks = 2,
                                 .samples = samples,
                                 .sample_count = 2};
    s->collectives = &m, s->collective_count = 1;
    passes(dl_system_check(s, doc, &err));
    samples[0].bytes = NAN;
    refused(dl_system_check(s, doc, &err), "expected bytes and a time_s above 0");
    samples[0].bytes = 8, samples[0].time_s = 0;
    refused(dl_system_check(s, doc, &err), "expected bytes and a time_s above 0");
    samples[0].time_s = 1e-5, samples[1].bytes = 8;
    refused(dl_system_check(s, doc, &err), "more bytes than the sample before");
    samples[1].bytes = 9, m.ranks = 1;
    refused(dl_system_check(s, doc, &err), "at least one rank on each node");
    dl_arena_free(&f.arena);
}

static void members_of_a_link(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_link link = f.system.intra;
    struct dl_piece pieces[] = {{1e3, 1e-6, 1e-9}, {1e6, 1e-6, 1e-9}};
    link.domain_nodes = DL_ABSENT;
    passes(dl_link_check(&link, 4, doc, "links.intra", &err));
    link.bandwidth_bytes_per_s = NAN;
    refused(dl_link_check(&link, 4, doc, "links.intra", &err),
            "expected bandwidth_bytes_per_s or pieces");
    link.pieces = pieces, link.piece_count = 2;
    passes(dl_link_check(&link, 4, doc, "links.intra", &err));
    pieces[1].max_bytes = 1e3;
    assert_int_equal(dl_link_check(&link, 4, doc, "links.intra", &err), DL_ERR_INPUT);
    pieces[1].max_bytes = 1e6, link.cross_bandwidth_bytes_per_s = 1e9;
    refused(dl_link_check(&link, 4, doc, "links.intra", &err), "needs peer_group");
    link.peer_group = 4;
    passes(dl_link_check(&link, 4, doc, "links.intra", &err));
    link.peer_group = 5;
    refused(dl_link_check(&link, 4, doc, "links.intra", &err), "at most devices_per_node = 4");
    link.peer_group = 2, link.domain_nodes = 2;
    refused(dl_link_check(&link, 4, doc, "links.intra", &err), "kind nvswitch");
    link.kind = "nvswitch";
    passes(dl_link_check(&link, 4, doc, "links.intra", &err));
    link.kind = "nvlink2", link.domain_nodes = 1;
    passes(dl_link_check(&link, 4, doc, "links.intra", &err));
    link.distance = "FAR";
    refused(dl_link_check(&link, 4, doc, "links.intra", &err),
            "expected PIX, PXB, PHB, NODE or SYS");
    link.distance = NULL, link.kind = "nvlink22";
    refused(dl_link_check(&link, 4, doc, "links.intra", &err), "no such kind of link");
    dl_arena_free(&f.arena);
}

static void counts_of_a_kernel_model(void **state) {
    (void)state;
    double lengths[] = {1, 2}, points[] = {1, 2, 3, 4, 5, 6}, weights[] = {1, 2, 3}, low[] = {0, 0},
           high[] = {1, 1};
    const char *features[] = {dl_kernel_model_features[DL_OP_GEMM][0],
                              dl_kernel_model_features[DL_OP_GEMM][1]};
    const struct dl_kernel_model base = {.op = DL_OP_GEMM,
                                         .lengths = lengths,
                                         .length_count = 2,
                                         .points = points,
                                         .point_count = 6,
                                         .weights = weights,
                                         .weight_count = 3,
                                         .domain_low = low,
                                         .domain_high = high,
                                         .domain_low_count = 2,
                                         .domain_high_count = 2,
                                         .features = features,
                                         .feature_count = 2};
    struct dl_kernel_model m = base;
    passes(dl_kernel_model_check(&m, doc, "kernel_models[0]", &err));
    m.point_count = 5;
    refused(dl_kernel_model_check(&m, doc, "m", &err),
            "points has 5 numbers, expected lengths x weights = 2 x 3");
    m = base, m.domain_low_count = 1;
    refused(dl_kernel_model_check(&m, doc, "m", &err), "must have the same count");
    m = base, m.domain_low_count = m.domain_high_count = 3;
    refused(dl_kernel_model_check(&m, doc, "m", &err), "must have the same count");
    m = base, m.feature_count = 1;
    refused(dl_kernel_model_check(&m, doc, "m", &err),
            "features and lengths must have the same count");
    m = base, m.feature_count = 0;
    passes(dl_kernel_model_check(&m, doc, "m", &err));
    m = base, lengths[1] = 0;
    refused(dl_kernel_model_check(&m, doc, "m", &err), "lengths must be positive, found 0");
    lengths[1] = 2, features[1] = "colour";
    refused(dl_kernel_model_check(&m, doc, "m", &err), "is called \"colour\"");
    m = base, m.length_count = DL_FEATURES_MAX + 1;
    refused(dl_kernel_model_check(&m, doc, "m", &err), "expected at most");
    m = (struct dl_kernel_model){.op = DL_OP_GEMM}; /* a model without points, of a rate alone */
    passes(dl_kernel_model_check(&m, doc, "m", &err));
}

static void batches_of_layer_times(void **state) {
    (void)state;
    struct dl_layer_time layers[] = {{"a", 1, 1}, {"b", 1, 1}};
    struct dl_layer_batch batches[] = {{.batch_samples = 4, .layers = layers, .layer_count = 2},
                                       {.batch_samples = 8, .layers = layers, .layer_count = 2}};
    struct dl_layer_times t = {.batches = batches, .batch_count = 2};
    passes(dl_layer_times_check(&t, doc, &err));
    batches[1].batch_samples = 4;
    refused(dl_layer_times_check(&t, doc, &err), "expected ascending batches");
    batches[1].batch_samples = 8, batches[1].layer_count = 0;
    refused(dl_layer_times_check(&t, doc, &err), "at least one layer");
    batches[1].layer_count = 2, batches[0].layer_count = 0;
    refused(dl_layer_times_check(&t, doc, &err), "at least one layer");
    batches[0].layer_count = 2, layers[1].name = "a";
    refused(dl_layer_times_check(&t, doc, &err), "'a' is named twice");
    assert_string_equal(err.key, "batches[0].layers[1].name");
    t.batch_count = 0;
    refused(dl_layer_times_check(&t, doc, &err), "at least one batch");
}

static void members_of_a_framework(void **state) {
    (void)state;
    struct dl_fake f;
    fake_make(&f);
    struct dl_framework *w = &f.framework;
    w->behaviour_name = "bucketed";
    passes(dl_framework_resolve(w, doc, &err));
    w->behaviour_name = "per-layer", w->sync.bucketed.bucket_bytes = NAN;
    refused(dl_framework_resolve(w, doc, &err), "needs bucket_bytes as well");
    w->sync.bucketed.first_bucket_bytes = NAN;
    w->behaviour_name = "bucket";
    refused(dl_framework_resolve(w, doc, &err), "did you mean bucketed");
    w->behaviour_name = "q";
    refused(dl_framework_resolve(w, doc, &err), "no such behaviour 'q'");
    w->behaviour_name = "bucketed", w->sync.bucketed.bucket_bytes = 1e6;
    static const struct {
        const char *entry;
        bool good;
    } entries[] = {{"A=1", true}, {"_B2=", true},  {"a_b=x=y", true}, {"=1", false},
                   {"A", false},  {"2A=1", false}, {"9=1", false},    {"A-B=1", false},
                   {"", false},   {":A=1", false}};
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        const char *environment[] = {entries[i].entry, "GOOD=1", entries[i].entry};
        char expected[80];
        snprintf(expected, sizeof expected, "expected NAME=VALUE, got \"%s\"", entries[i].entry);
        for (int begin = 0; begin < 2; begin++) { /* the first entry, and the last */
            w->has_launch = true, w->launch.environment = environment + begin;
            w->launch.environment_count = 2;
            if (entries[i].good)
                passes(dl_framework_resolve(w, doc, &err));
            else
                refused(dl_framework_resolve(w, doc, &err), expected);
            w->has_launch = false;
            passes(dl_framework_resolve(w, doc, &err));
        }
    }
    int needed = 0;
    for (int i = 0; dl_framework_behaviours[i] != NULL; i++) {
        const char *const *key = dl_framework_behaviours[i]->required;
        for (; key != NULL && *key != NULL; key++) {
            const struct dl_field *field = dl_framework_schema.fields;
            while (strcmp(field->key, *key) != 0) field++;
            double *member = (double *)((char *)w + field->offset);
            const double was = *member;
            char range[160], expected[600];
            dl_field_expected(field, range, sizeof range);
            snprintf(expected, sizeof expected, "expected %s (%s): behaviour %s requires it", range,
                     field->help, dl_framework_behaviours[i]->name);
            w->behaviour_name = dl_framework_behaviours[i]->name, *member = NAN;
            refused(dl_framework_resolve(w, doc, &err), expected);
            *member = was;
            needed++;
        }
    }
    assert_true(needed > 0);
    dl_arena_free(&f.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_of_a_system),    cmocka_unit_test(measured_samples),
        cmocka_unit_test(members_of_a_link),      cmocka_unit_test(counts_of_a_kernel_model),
        cmocka_unit_test(batches_of_layer_times), cmocka_unit_test(members_of_a_framework)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
