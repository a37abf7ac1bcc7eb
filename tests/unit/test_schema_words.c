/* Keys, help and choices of every field of a file are those that `dlmodel schema` was accepted to
 * print; a member that a behaviour needs; strides of gradients among sequence ranks; the error of
 * what messages take; pieces of a network that is no stack. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/framework/layer_times.h"
#include "model/engine/evidence.h"
#include "model/engine/interval.h"
#include "tests/fake_transformer.h"
#include "tests/gradient_bench.h"

static struct dl_err err;

static char accepted[200000];

static void read_accepted(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/schema-%s.out", check_root(), name);
    FILE *file = fopen(path, "r");
    if (file == NULL) fail_msg("no %s", path);
    const size_t length = fread(accepted, 1, sizeof accepted - 1, file);
    accepted[length] = 0;
    fclose(file);
    assert_true(length > 1000);
}

/* Fields down to those of lists; how many there are. */
static int every_field(const struct dl_schema *schema) {
    int count = 0;
    for (const struct dl_field *f = schema->fields; f->type != DL_FIELD_END; f++, count++) {
        char words[2000] = "";
        if (f->help != NULL) snprintf(words, sizeof words, "%s", f->help);
        for (int i = 0; f->choices != NULL && f->choices[i] != NULL; i++) {
            const size_t n = strlen(words);
            snprintf(words + n, sizeof words - n, "%s%s%s", i == 0 ? ": " : ", ", f->choices[i],
                     f->has_fallback && f->fallback == i ? " (default)" : "");
        }
        if (strstr(accepted, words) == NULL) fail_msg("%s: not accepted: %s", f->key, words);
        if (strstr(accepted, f->key) == NULL) fail_msg("%s: not accepted", f->key);
        if (f->child != NULL) count += every_field(f->child);
    }
    return count;
}

static void fields_as_accepted(void **state) {
    (void)state;
    read_accepted("framework");
    assert_true(every_field(&dl_framework_schema) > 100);
    read_accepted("system");
    assert_true(every_field(&dl_system_schema) > 60);
    read_accepted("device");
    assert_true(every_field(&dl_device_schema) > 40);
}

/* Names of objects, as messages about their keys have them, in the order of the file. */
static void every_object(const struct dl_schema *schema, char *words, size_t size) {
    const size_t n = strlen(words);
    snprintf(words + n, size - n, "%s%s", n > 0 ? ", " : "", schema->name);
    for (const struct dl_field *f = schema->fields; f->type != DL_FIELD_END; f++)
        if (f->child != NULL) every_object(f->child, words, size);
}

static void objects_by_name(void **state) {
    (void)state;
    static const struct {
        const struct dl_schema *schema;
        const char *words;
    } cases[] = {
        {&dl_framework_schema, "dlmodel-framework, release, launch"},
        {&dl_system_schema,
         "dlmodel-system, dlmodel-device, rate, kernel-time model, work, host, links, link, edge, "
         "piece, link, edge, piece, fabric, storage, collective, sample, piece, raw sample"},
        {&dl_device_schema, "dlmodel-device, rate, kernel-time model, work"},
        {&dl_layer_times_schema, "dlmodel-layers, batch, layer-time"},
        {&dl_interval_schema,
         "dlmodel-intervals, widths, widths, framework, release, device, arithmetic"},
        {&dl_workload_schema, "dlmodel-workload, choice, limit, input, block, layer, layer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char words[1000] = "";
        every_object(cases[i].schema, words, sizeof words);
        assert_string_equal(words, cases[i].words);
    }
}

static void members_that_are_missing(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_json *doc;
    fake_make(&f);
    assert_int_equal(dl_json_parse("x.json", "{}", 2, &f.arena, &doc, &err), DL_OK);
    f.framework.behaviour_name = "bucketed";
    assert_int_equal(dl_framework_resolve(&f.framework, doc, &err), DL_OK);
    f.framework.sync.bucketed.bucket_bytes = NAN;
    assert_int_equal(dl_framework_resolve(&f.framework, doc, &err), DL_ERR_INPUT);
    check_contains(err.message, "expected a number in [1, 1e12] byte (size at which a gradient "
                                "bucket is closed): behaviour bucketed requires it");
    f.framework.behaviour_name = "bucketted";
    assert_int_equal(dl_framework_resolve(&f.framework, doc, &err), DL_ERR_INPUT);
    check_contains(err.message, "no such behaviour 'bucketted'; did you mean bucketed");
    f.framework.behaviour_name = "per-layer";
    assert_int_equal(dl_framework_resolve(&f.framework, doc, &err), DL_ERR_INPUT);
    check_contains(err.message, "needs bucket_bytes as well");
    dl_arena_free(&f.arena);
}

/* Ranks that share a gradient are tp x sp apart. */
static void strides(void **state) {
    (void)state;
    static const double size = 4e6, ready = 1;
    for (int tp = 1; tp <= 4; tp *= 2) {
        for (int sp = 1; sp * tp <= 4; sp *= 2) {
            struct bench b;
            struct dl_collective_time t;
            struct dl_message m = {.name = NULL};
            make(&b, 1, &size, &ready);
            b.fake.plan.nodes = 4, b.fake.plan.tp = tp, b.fake.plan.sp = sp;
            b.fake.plan.dp = 16 / tp / sp;
            const struct dl_collective_request wanted = {.op = DL_COLL_ALL_REDUCE,
                                                         .library = DL_LIB_NCCL,
                                                         .bytes = size,
                                                         .nodes = 4,
                                                         .ranks_per_node = 4,
                                                         .flows_per_adapter = 1,
                                                         .group_size =
                                                             tp * sp > 1 ? 16 / tp / sp : 0,
                                                         .group_stride = tp * sp,
                                                         .concurrent = tp * sp};
            assert_int_equal(dl_collective_time(&b.fake.system, &wanted, &t, &err), DL_OK);
            assert_int_equal(
                dl_gradient_sync_collective(&b.request, DL_COLL_ALL_REDUCE, size, &m, &err), DL_OK);
            check_close(m.duration_s, t.time_s, 1e-12);
            check_close(m.latency_s, t.latency_s, 1e-12);
            dl_arena_free(&b.fake.arena);
        }
    }
}

/* 2 s at 0.1 and 6 s at 0.3 are 8 s at 0.25, of which half is exposed. */
static void errors_of_messages(void **state) {
    (void)state;
    const struct dl_message messages[] = {
        {.duration_s = 2, .latency_s = 0.5, .bandwidth_s = 1.5, .sigma_log = 0.1, .limit = "inter"},
        {.duration_s = 6, .latency_s = 1, .bandwidth_s = 5, .sigma_log = 0.3, .limit = "intra"}};
    for (int servers = 0; servers < 2; servers++) {
        struct dl_evidence e = {.exposed_comm_s = 4};
        dl_evidence_of_messages(messages, 2, servers, &e);
        check_close(e.comm_error_s, 4 * 0.25, 1e-12);
        check_close(e.latency_s, 1.5, 1e-12);
        check_close(e.inter_s, servers ? 0 : 1.5, 0);
        check_close(e.intra_s, servers ? 0 : 5, 0);
        check_close(e.server_s, servers ? 6.5 : 0, 0);
        dl_evidence_of_messages(messages, 0, servers, &e);
        check_close(e.comm_error_s, 0, 0);
    }
}

/* 4 layers with 29 million parameters of 4 bytes: as many pieces as there are buckets of 25
 * MB, but no more than layers. */
static void pieces_of_a_network(void **state) {
    (void)state;
    static const double buckets[] = {NAN, 1e9, 60e6, 25e6, 1e6};
    static const double pieces[] = {1, 1, 2, 4, 4};
    for (int i = 0; i < 5; i++) {
        struct dl_fake f;
        struct dl_transformer tf;
        fake_make(&f);
        f.framework.shards = true, f.framework.sync.bucketed.bucket_bytes = buckets[i];
        f.plan.strategy = dl_strategy_find("zero1");
        f.plan.tp = f.plan.pp = f.plan.sp = f.plan.ep = 1, f.plan.dp = 8;
        assert_int_equal(dl_transformer_prepare(&f.system, &f.workload, &f.framework, &f.plan,
                                                &f.arena, &tf, &err),
                         DL_OK);
        /* 1000 x 4000 + 4000 x 4000 + 4000 x 2000 + 2000 x 500 = 29 million of 4 bytes */
        assert_true(tf.plain);
        check_close(tf.stack, pieces[i], 0);
        check_close(tf.whole_elements[DL_TRANSFORMER_BODY], 29e6 / pieces[i], 1e-12);
        dl_arena_free(&f.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_as_accepted),       cmocka_unit_test(objects_by_name),
        cmocka_unit_test(members_that_are_missing), cmocka_unit_test(strides),
        cmocka_unit_test(errors_of_messages),       cmocka_unit_test(pieces_of_a_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
