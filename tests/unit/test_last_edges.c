/* Edges of single conditions of the cost models, by hand: counts of one, arguments that may be
 * missing, words of tables, lists of names. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/network/coll_fit.h"
#include "model/network/coll_match.h"
#include "model/framework/cost.h"
#include "model/framework/release.h"
#include "model/machine/fair.h"
#include "model/machine/kernel_match.h"
#include "model/machine/what_if.h"
#include "model/engine/pipe.h"
#include "model/workload/layer.h"
#include "tests/check.h"
#include "tests/fake_transformer.h"
#include "tests/gradient_bench.h"
#include "tests/guarded.h"
#include "tests/load_workload.h"

static struct dl_err err;

/* 1 us and 1 ns a byte; who does not ask for the error gets none. */
static void fits_without_their_error(void **state) {
    (void)state;
    const struct dl_coll_sample samples[] = {
        {1000, 2e-6, NAN, NAN}, {3000, 4e-6, NAN, NAN}, {7000, 8e-6, NAN, NAN}};
    struct dl_piece pieces[DL_COLL_FIT_PIECES];
    assert_int_equal(dl_coll_fit(samples, 3, 1, pieces, NULL), 1);
    check_close(dl_coll_fit_s(pieces, 1, 5000), 6e-6, 1e-9);
    assert_int_equal(dl_coll_fit(samples, 1, 1, pieces, NULL), 0);
}

/* Any bandwidth above 0 is one: 1 GiB x 2 x 7/8 at 0.05 B/s. */
static void the_slowest_bus(void **state) {
    (void)state;
    const struct dl_coll_row row = {.library = "NCCL",
                                    .collective = "all_reduce",
                                    .system = "s",
                                    .nodes = 2,
                                    .ranks = 8,
                                    .size_bytes = NAN,
                                    .time_s = NAN,
                                    .bus_bytes_per_s = 0.05,
                                    .devices_per_process = NAN};
    const struct dl_coll_match match = dl_coll_match(&row);
    assert_null(match.why);
    check_close(match.measured_s, 1073741824 * 1.75 / 0.05, 1e-12);
}

/* What each behaviour needs, by its own code. */
static void members_that_behaviours_need(void **state) {
    (void)state;
    static const struct {
        const char *behaviour, *keys[3];
    } cases[] = {
        {"bucketed", {"bucket_bytes"}},        {"concatenated", {"pack_bytes"}},
        {"ideal", {"bucket_bytes"}},           {"kvstore-server", {"big_key_elements"}},
        {"local-steps", {"local_step_count"}}, {"tensor-fusion", {"fusion_bytes", "cycle_s"}},
        {"replicated", {"pack_bytes"}},        {"top-k", {"gradient_frac"}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const *key = dl_framework_behaviour_find(cases[i].behaviour)->required;
        for (int k = 0; cases[i].keys[k] != NULL; k++, key++)
            assert_string_equal(*key, cases[i].keys[k]);
        assert_null(*key);
    }
}

static void what_the_store_lacks(void **state) {
    (void)state;
    struct bench b;
    const double size = 4e6, ready = 1;
    make(&b, 1, &size, &ready);
    b.fake.system.host.copy_bandwidth_bytes_per_s =
        b.fake.system.host.pageable_bandwidth_bytes_per_s = NAN;
    memset(&err, 0, sizeof err);
    assert_int_equal(
        dl_framework_behaviour_find("kvstore-server")->synchronize(&b.request, &b.sync, &err),
        DL_ERR_INPUT);
    assert_string_equal(err.message, "system fake lacks host.copy_bandwidth_bytes_per_s or "
                                     "host.memory_bandwidth_bytes_per_s, which servers need");
    dl_arena_free(&b.fake.arena);
}

/* An activation that reads the network's input is fused into nothing. */
static void activations_of_the_input(void **state) {
    (void)state;
    int from = -1;
    const struct dl_layer relu = {.kind = &dl_layer_relu, .inputs = &from, .input_count = 1};
    const struct dl_workload w = {.layers = guarded(&relu, sizeof relu, GUARD_BEFORE),
                                  .layer_count = 1};
    assert_false(dl_cost_fused(&w, 0));
    struct dl_layer two[2] = {{.kind = &dl_layer_batchnorm, .inputs = &from, .input_count = 1},
                              {.kind = &dl_layer_relu, .inputs = &from, .input_count = 1}};
    const struct dl_workload net = {.layers = two, .layer_count = 2};
    from = 0;
    assert_true(dl_cost_fused(&net, 1));
    assert_false(dl_cost_fused(&net, 0));
}

static void columns_of_releases(void **state) {
    (void)state;
    struct dl_arena arena = {0};
    struct dl_json *doc;
    struct dl_map_entry where = {.key = "color", .text = "red"};
    struct dl_framework_release release = {.name = "1.2", .where = &where, .where_count = 1};
    const struct dl_framework framework = {.releases = &release, .release_count = 1};
    static const char *const known[] = {"workload", "layout", "strategy", "compiler"};
    assert_int_equal(dl_json_parse("x.json", "{}", 2, &arena, &doc, &err), DL_OK);
    assert_int_equal(dl_framework_release_check(&framework, doc, &err), DL_ERR_INPUT);
    assert_string_equal(err.message, "release 1.2: where names column 'color', expected workload, "
                                     "layout, compiler, precision or strategy");
    for (int i = 0; i < 4; i++) {
        where.key = known[i];
        assert_int_equal(dl_framework_release_check(&framework, doc, &err), DL_OK);
    }
    dl_arena_free(&arena);
}

/* Two flows over links of 6 and 10 B/s, of which the second carries half of each byte. */
static void one_class_of_flows(void **state) {
    (void)state;
    const double capacity[] = {6, 10};
    for (int guard = 0; guard < GUARDS; guard++) {
        struct dl_fair_class class = {
            .flows = 2, .demand_bytes_per_s = HUGE_VAL, .use_frac = {1, 0.5, 1e9}};
        dl_fair_shares(guarded(capacity, sizeof capacity, guard), 2, &class, 1);
        check_close(class.rate_bytes_per_s, 3, 1e-12);
        assert_int_equal(class.limit, 0);
    }
}

static void passes_of_kernel_tables(void **state) {
    (void)state;
    static const struct {
        const char *word;
        enum dl_pass pass;
    } cases[] = {{"fwd", DL_FORWARD},
                 {"bwd_data", DL_BACKWARD_DATA},
                 {"bwd_weights", DL_BACKWARD_WEIGHTS},
                 {"bwd_filter", DL_BACKWARD_WEIGHTS}};
    struct dl_arena arena = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dl_csv csv;
        struct dl_kernel_row row;
        const char *text = dl_arena_printf(
            &arena,
            "gpu,op,pass,n,c,h,w,k,r,s,stride_h,stride_w,pad_h,pad_w,dtype,time_us\n"
            "X,conv,%s,2,8,9,9,8,3,3,1,1,1,1,fp32,7\n",
            cases[i].word);
        if (dl_csv_parse("t.csv", text, strlen(text), &arena, &csv, &err) != DL_OK ||
            dl_kernel_row_read(&csv, 0, &row, &err) != DL_OK)
            fail_msg("%s", err.message);
        assert_int_equal(row.kernel.op, DL_OP_CONV);
        assert_int_equal(row.kernel.pass, cases[i].pass);
    }
    dl_arena_free(&arena);
}

static void parts_of_stages(void **state) {
    (void)state;
    struct dl_plan plan = {.schedule = DL_INTERLEAVED};
    check_close(dl_pipe_virtual_stages(&plan), 2, 0);
    for (int parts = 1; parts <= 3; parts++) {
        plan.virtual_stages = parts;
        check_close(dl_pipe_virtual_stages(&plan), parts, 0);
    }
    plan.schedule = DL_1F1B;
    check_close(dl_pipe_virtual_stages(&plan), 1, 0);
    /* Without a pipeline one micro-batch is in flight, whatever the schedule. */
    for (int schedule = 0; schedule < 3; schedule++) {
        const struct dl_transformer_mapping one = {.split = {.pp = 1}};
        const struct dl_transformer_choice choice = {
            .schedule = (enum dl_schedule)schedule, .micro_batches = 8, .virtual_stages = 1};
        check_close(dl_transformer_in_flight(&one, &choice, 0), 1, 0);
        check_close(dl_transformer_in_flight(&one, &choice, 1), 1, 0);
    }
}

static void names_of_bottlenecks(void **state) {
    (void)state;
    static const char *const names[] = {"compute",         "memory-bandwidth", "latency",
                                        "intra-link",      "inter-link",       "parameter-server",
                                        "input",           "pipeline-bubble",  "framework",
                                        "memory-capacity", "scaling-limit"};
    const int count = sizeof names / sizeof *names;
    for (int i = 0; i < count; i++) assert_string_equal(dl_bottleneck_names[i], names[i]);
    assert_null(dl_bottleneck_names[count]);
}

/* Horovod's thread on CPUs, in the singular and the plural. */
static void computing_threads(void **state) {
    (void)state;
    for (int cores = 1; cores <= 2; cores++) {
        struct dl_fake f;
        struct dl_prediction p;
        bool said = false;
        fake_make(&f);
        f.device.kind = DL_DEVICE_CPU, f.device.unit_count = cores;
        f.framework.behaviour = dl_framework_behaviour_find("tensor-fusion");
        assert_int_equal(fake_predict(&f, &p), DL_OK);
        for (int i = 0; i < p.warning_count; i++) {
            if (strstr(p.warnings[i], "polls in MPI") == NULL) continue;
            check_contains(p.warnings[i], cores == 1 ? "next to 1 computing thread: "
                                                     : "next to 2 computing threads: ");
            said = true;
        }
        assert_true(said);
        dl_arena_free(&f.arena);
    }
}

/* What bounds products on matrix units, in the words of their maker. */
static void units_of_makers(void **state) {
    (void)state;
    static const struct {
        const char *vendor, *words;
    } cases[] = {{"nvidia", "tensor cores"}, {"amd", "matrix units"}, {NULL, "matrix units"}};
    for (int i = 0; i < 3; i++) {
        struct dl_fake f;
        struct dl_prediction p;
        int said = 0;
        fake_make(&f);
        struct dl_rate rates[] = {f.rate, {.precision = DL_FP16, .unit = 1}};
        rates[1].peak_flop_per_s = 2e13; /* low: the products are bound by it */
        f.device.rates = rates, f.device.rate_count = 2, f.device.vendor = cases[i].vendor;
        f.plan.precision = DL_MIXED, f.plan.batch_per_device_samples = 4096;
        assert_int_equal(fake_predict(&f, &p), DL_OK);
        for (int k = 0; k < p.term_count; k++) {
            if (strcmp(p.terms[k].group, "forward") != 0) continue;
            check_contains(p.terms[k].inputs, cases[i].words);
            said++;
        }
        assert_int_equal(said, 4);
        dl_arena_free(&f.arena);
    }
}

/* A member of a link of the other kind is told by the place of its link alone. */
static void members_of_no_link(void **state) {
    (void)state;
    assert_non_null(dl_what_if_reason("links.intra.rdma"));
    assert_non_null(dl_what_if_reason("links.inter.channels"));
    assert_null(dl_what_if_reason("links.inter.rdma"));
    assert_null(dl_what_if_reason("links.intra.channels"));
    assert_null(dl_what_if_reason("links.fiber.rdma"));
    assert_null(dl_what_if_reason("links.fiber.channels"));
    assert_null(dl_what_if_reason("fabric.portsrdma"));
}

/* A fault names the value that it quotes, else the last that was given. */
static void values_to_blame(void **state) {
    (void)state;
    static const char text[] =
        "{'format': 'dlmodel-workload', 'version': 1, 'name': 'small', 'summary': 'test', "
        "'source': 'test', 'family': 'cnn', 'epoch_samples': 10, 'parameters': {'width': 8, "
        "'classes': 4}, 'input': {'channels': 3, 'size': ['width', 'width']}, 'layers': ["
        "{'name': 'a', 'kind': 'conv', 'out': 'classes', 'kernel': 3}, {'kind': 'loss'}]}";
    static const char *const values[][2] = {{"0", "10"}, {"8", "0"}, {"0", "0"}, {"2", "10"}};
    static const char *const blamed[] = {"width", "classes", "width", "classes"};
    for (int i = 0; i < 4; i++) {
        struct dl_arena arena = {0};
        struct dl_workload w;
        struct dl_override set[] = {{.key = "width", .value = values[i][0]},
                                    {.key = "classes", .value = values[i][1]}};
        memset(&err, 0, sizeof err);
        assert_int_equal(load_text(text, set, 2, &arena, &w, &err), DL_ERR_USAGE);
        assert_string_equal(err.key, blamed[i]);
        dl_arena_free(&arena);
    }
    struct dl_arena arena = {0};
    struct dl_workload w;
    struct dl_override half_a_pixel = {.key = "width", .value = "12.25"};
    assert_int_equal(load_text(text, &half_a_pixel, 1, &arena, &w, &err), DL_ERR_USAGE);
    check_contains(err.message, "of at least 1, found 12.25 from \"width\"");
    dl_arena_free(&arena);
}

/* Where a member of a device is at fault, in a file of its own and inside a system's. */
static void places_in_devices(void **state) {
    (void)state;
    static const char *const paths[] = {"", "device_profile"};
    for (int i = 0; i < 2; i++) {
        const char *before = i == 0 ? "" : "device_profile.";
        struct dl_fake f;
        struct dl_json *doc;
        char key[64];
        fake_make(&f);
        memset(&err, 0, sizeof err);
        assert_int_equal(dl_json_parse("x.json", "{}", 2, &f.arena, &doc, &err), DL_OK);
        f.device.context_bytes = 15.9e9;
        assert_int_equal(dl_device_check_at(&f.device, doc, paths[i], &err), DL_OK);
        f.device.rate_count = 0;
        assert_int_equal(dl_device_check_at(&f.device, doc, paths[i], &err), DL_ERR_INPUT);
        snprintf(key, sizeof key, "%srates", before);
        assert_string_equal(err.key, key);
        assert_string_equal(err.message, "expected at least one rate");
        f.device.context_bytes = 16e9;
        assert_int_equal(dl_device_check_at(&f.device, doc, paths[i], &err), DL_ERR_INPUT);
        snprintf(key, sizeof key, "%scontext_bytes", before);
        assert_string_equal(err.key, key);
        assert_string_equal(err.message, "expected less than memory_bytes");
        f.device.kernel_models_from = "fake-gpu";
        assert_int_equal(dl_device_check_at(&f.device, doc, paths[i], &err), DL_ERR_INPUT);
        snprintf(key, sizeof key, "%skernel_models_from", before);
        assert_string_equal(err.key, key);
        assert_string_equal(err.message,
                            "expected another device: a device cannot borrow from itself");
        dl_arena_free(&f.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fits_without_their_error),
        cmocka_unit_test(the_slowest_bus),
        cmocka_unit_test(members_that_behaviours_need),
        cmocka_unit_test(what_the_store_lacks),
        cmocka_unit_test(activations_of_the_input),
        cmocka_unit_test(columns_of_releases),
        cmocka_unit_test(one_class_of_flows),
        cmocka_unit_test(passes_of_kernel_tables),
        cmocka_unit_test(parts_of_stages),
        cmocka_unit_test(computing_threads),
        cmocka_unit_test(units_of_makers),
        cmocka_unit_test(members_of_no_link),
        cmocka_unit_test(values_to_blame),
        cmocka_unit_test(places_in_devices),
        cmocka_unit_test(names_of_bottlenecks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
