/* From a recorded journal of a real quick calibration to a profile: it loads again, its numbers
 * follow from the samples, and it names what is missing. */
#include "calibrate/report/cal_report.h"
#include "tests/check.h"
#include "tests/profile_fixture.h"

static void the_profile_loads_again(void **state) {
    struct dl_cal_journal journal = recorded(&test_arena);
    struct dl_system profile, again;
    struct dl_json *doc;
    struct dl_err err = {0};
    char *text;
    assert_int_equal(dl_cal_profile(&journal, &RUN, &test_arena, &profile, &err), DL_OK);
    if (dl_cal_profile_text(&profile, "local.json", &test_arena, &text, &err) != DL_OK)
        fail_msg("%s: %s", err.key, err.message);
    assert_int_equal(dl_json_parse("local.json", text, strlen(text), &test_arena, &doc, &err),
                     DL_OK);
    assert_int_equal(dl_json_load(doc, &dl_system_schema, &test_arena, &again, &err), DL_OK);
    assert_int_equal(dl_system_check(&again, doc, &err), DL_OK);
    assert_string_equal(dl_json_text(&dl_system_schema, &again, &test_arena), text);
    assert_string_equal(again.name, "local");
    assert_string_equal(again.calibration.measured_on, "node7");
    assert_string_equal(again.calibration.measured_at, "2024-01-31T12:00:30Z");
    assert_int_equal(again.calibration.sample_count, journal.sample_count);
    for (int i = 0; i < again.calibration.sample_count; i++) {
        assert_string_equal(again.calibration.samples[i].shape, journal.samples[i].shape);
        assert_true(again.calibration.samples[i].median_s ==
                    journal.samples[i].median_s); /* to the last bit */
    }
}

static void numbers_follow_from_the_samples(void **state) {
    struct dl_cal_journal journal = recorded(&test_arena);
    struct dl_system p;
    assert_int_equal(dl_cal_profile(&journal, &RUN, &test_arena, &p, NULL), DL_OK);
    check_close(p.profile.rates[0].peak_flop_per_s,
                fmax(best_rate(&journal, "gemm"), best_rate(&journal, "matmul")), 1e-15);
    check_close(p.profile.memory_bandwidth_bytes_per_s, best_rate(&journal, "stream"), 1e-15);
    check_close(p.storage.write_bytes_per_s, best_rate(&journal, "write"), 1e-15);
    /* GEMM, and three passes of convolution */
    assert_int_equal(p.profile.kernel_model_count, 4);
    assert_int_equal(p.profile.unit_count, 2);
    assert_true(p.has_intra && p.has_inter && p.inter.assumed && !p.intra.assumed);
    assert_int_equal(p.collective_count, 1);
    assert_int_equal(p.collectives[0].ranks, 2);
    assert_int_equal(p.collectives[0].sample_count, 12);
    for (int i = 1; i < 12; i++)
        assert_true(p.collectives[0].samples[i].bytes > p.collectives[0].samples[i - 1].bytes);
}

/* 8 images, 64 -> 256 channels, 56 x 56, 1x1: 8 56 56 64 256 multiply-adds = 411041792, twice that
 * in flop; stride 2 with 3x3 and padding 1 on 56: 28 x 28 results. Triad moves 3 arrays, copy 2. */
static void work_of_samples(void **state) {
    const struct dl_raw_sample
        pointwise = {.probe = "conv", .shape = "n=8 c=64 f=256 h=56 r=1 s=1 p=0"},
        strided = {.probe = "conv", .shape = "n=1 c=1 f=1 h=56 r=3 s=2 p=1"},
        triad = {.probe = "stream", .shape = "bytes=1000", .pass = "triad"},
        copy = {.probe = "stream", .shape = "bytes=1000", .pass = "copy"},
        gemm = {.probe = "matmul", .shape = "m=2 n=3 k=5 ta=0 tb=1"},
        concurrent = {.probe = "concurrent", .shape = "m=2 n=3 k=5 devices=2", .pass = "gemm"},
        older = {.probe = "beside", .shape = "bytes=1000 devices=2", .pass = "copy"};
    check_close(dl_cal_work(&pointwise), 822083584.0, 0);
    check_close(dl_cal_work(&strided), 2.0 * 28 * 28 * 9, 0);
    check_close(dl_cal_work(&triad), 3000.0, 0);
    check_close(dl_cal_work(&copy), 2000.0, 0);
    check_close(dl_cal_work(&gemm), 60.0, 0);
    check_close(dl_cal_work(&concurrent), 60.0, 0);
    check_close(dl_cal_work(&older), 2000.0, 0);
}

/* F-SHARED-HOST: two devices of a core each take 3 ms where one takes 2; copies of both move 32
 * GB/s. The probe has an older name, which stored samples keep. */
static void devices_of_a_host_slow_each_other(void **state) {
    static const char *const names[] = {"concurrent", "beside"};
    for (int i = 0; i < 2; i++) {
        struct dl_cal_journal journal = recorded(&test_arena),
                              more = without(&journal, "-", "-", &test_arena);
        const char *pass = i == 0 ? "gemm" : "product", *probe = names[i];
        const struct dl_raw_sample samples[] = {
            {.probe = probe,
             .shape = "m=8 n=8 k=8 devices=1",
             .pass = pass,
             .median_s = 2e-3,
             .min_s = NAN},
            {.probe = probe,
             .shape = "m=8 n=8 k=8 devices=2",
             .pass = pass,
             .median_s = 3e-3,
             .min_s = NAN},
            {.probe = probe, .shape = "bytes=8000000 devices=2", .pass = "copy", .median_s = 1e-3}};
        more.samples = dl_arena_alloc(&test_arena, journal.sample_count + 3, sizeof *more.samples);
        assert_non_null(more.samples);
        memcpy(more.samples, journal.samples, journal.sample_count * sizeof *more.samples);
        for (int k = 0; k < 3; k++) more.samples[more.sample_count++] = samples[k];
        more.header.choice.cores = 1;
        const struct dl_system p = profile_of(&more, &test_arena);
        check_close(p.profile.all_sockets_slowdown_ratio, 1.5, 1e-12);
        check_close(p.host.memory_bandwidth_bytes_per_s,
                    fmax(32e9, p.profile.memory_bandwidth_bytes_per_s), 1e-12);
        assert_int_equal(p.devices_per_node, 2);
    }
}

static void without_messages_the_network_is_assumed(void **state) {
    struct dl_cal_journal journal = recorded(&test_arena);
    struct dl_system p;
    char *text;
    journal = without(&journal, "pingpong", "allreduce", &test_arena);
    assert_int_equal(dl_cal_profile(&journal, &RUN, &test_arena, &p, NULL), DL_OK);
    assert_false(p.has_intra);
    /* `predict --nodes 16` answers, and says so */
    assert_true(p.has_inter && p.inter.assumed && p.has_links);
    assert_string_equal(p.inter.kind, "ethernet");
    assert_string_equal(p.inter.source, "unverified");
    check_close(p.inter.bandwidth_bytes_per_s, 1.175e9, 1e-9); /* 1.25e9 0.94 */
    assert_int_equal(p.inter.piece_count, 0);
    assert_int_equal(p.collective_count, 0);
    assert_int_equal(dl_cal_profile_text(&p, "local.json", &test_arena, &text, NULL), DL_OK);
    check_contains(dl_cal_summary(&p, "local.json", 1.0, &test_arena), "not measured");
}

static void a_profile_needs_a_gemm_and_bandwidth(void **state) {
    struct dl_cal_journal journal = recorded(&test_arena);
    struct dl_system p;
    struct dl_err err = {0};
    journal = without(&journal, "gemm", "-", &test_arena);
    /* those of matmul suffice */
    assert_int_equal(dl_cal_profile(&journal, &RUN, &test_arena, &p, &err), DL_OK);
    journal = without(&journal, "matmul", "-", &test_arena);
    assert_int_equal(dl_cal_profile(&journal, &RUN, &test_arena, &p, &err), DL_ERR_BACKEND);
    check_contains(err.message, "no GEMM was measured");
    journal = without(&journal, "stream", "-", &test_arena);
    assert_int_equal(dl_cal_profile(&journal, &RUN, &test_arena, &p, &err), DL_ERR_BACKEND);
    check_contains(err.message, "memory bandwidth");
}

static void a_plan_is_the_same_each_time_and_keeps_the_budget(void **state) {
    struct dl_err err = {0};
    struct dl_cal_choice choice = {
        .quick = true, .budget_s = (double)NAN, .ranks = 2, .file_dir = "/tmp"};
    struct dl_cal_plan a, b;
    assert_int_equal(dl_cal_plan_make(&choice, &test_arena, &a, &err), DL_OK);
    assert_int_equal(dl_cal_plan_make(&choice, &test_arena, &b, &err), DL_OK);
    assert_true(a.hash == b.hash && a.count == b.count && a.expected_s <= 60.0);
    double sum = 0.0;
    for (size_t i = 0; i < a.count; i++) sum += a.points[i].share_s;
    check_close(sum, a.choice.budget_s, 1e-9);
    choice.ranks = 4;
    assert_int_equal(dl_cal_plan_make(&choice, &test_arena, &b, &err), DL_OK);
    assert_true(a.hash != b.hash);
    /* the older name of a probe selects it too */
    choice.cores = 1;
    choice.devices = 2;
    choice.only = "beside";
    assert_int_equal(dl_cal_plan_make(&choice, &test_arena, &a, &err), DL_OK);
    choice.only = "concurrent";
    assert_int_equal(dl_cal_plan_make(&choice, &test_arena, &b, &err), DL_OK);
    assert_int_equal(a.count, b.count);
    assert_true(dl_cal_chosen(&a.choice, "concurrent"));
    choice.cores = choice.devices = 0;
    choice.only = "read,wirte";
    assert_int_equal(dl_cal_plan_make(&choice, &test_arena, &b, &err), DL_ERR_USAGE);
    check_contains(err.message, "'write'");
    /* plus what every profile needs: copy, triad, one GEMM by each library */
    choice.only = "read";
    assert_int_equal(dl_cal_plan_make(&choice, &test_arena, &b, &err), DL_OK);
    assert_int_equal(b.count, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_profile_loads_again),
        cmocka_unit_test(numbers_follow_from_the_samples),
        cmocka_unit_test(work_of_samples),
        cmocka_unit_test(devices_of_a_host_slow_each_other),
        cmocka_unit_test(without_messages_the_network_is_assumed),
        cmocka_unit_test(a_profile_needs_a_gemm_and_bandwidth),
        cmocka_unit_test(a_plan_is_the_same_each_time_and_keeps_the_budget),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
