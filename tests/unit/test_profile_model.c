/* The model, with the profile of a recorded quick calibration, predicts the samples behind that
 * profile. */
#include "model/network/collective.h"
#include "model/catalog/data.h"
#include "model/core/file.h"
#include "model/statistics/stats.h"
#include "tests/check.h"
#include "tests/profile_fixture.h"

static const struct dl_raw_sample *sample(const struct dl_cal_journal *journal, const char *probe,
                                          const char *shape, const char *pass) {
    for (size_t i = 0; i < journal->sample_count; i++) {
        const struct dl_raw_sample *s = &journal->samples[i];
        if (strcmp(s->probe, probe) == 0 && strcmp(s->shape, shape) == 0 &&
            strcmp(s->pass, pass) == 0)
            return s;
    }
    fail_msg("no sample %s, %s, %s", probe, shape, pass);
    return NULL;
}

static void a_recorded_run_becomes_a_profile_that_loads(void **state) {
    struct dl_err err = {0};
    struct dl_cal_journal journal = recorded(&test_arena);
    struct dl_system profile = profile_of(&journal, &test_arena);
    char directory[128], *text;
    assert_true(check_directory(directory, sizeof directory));
    const char *path = dl_arena_printf(&test_arena, "%s/p.json", directory);
    assert_int_equal(dl_cal_profile_text(&profile, path, &test_arena, &text, &err), DL_OK);
    assert_int_equal(dl_file_write(path, text, strlen(text), &err), DL_OK);

    const struct dl_data data = {.directory_count = 0};
    const struct dl_system *loaded;
    if (dl_data_system(&data, path, &test_arena, &loaded, &err) != DL_OK)
        fail_msg("%s %s", err.key, err.message);
    assert_string_equal(loaded->name, "local");
    assert_string_equal(loaded->calibration.measured_on, RUN.host.name);
    assert_string_equal(loaded->calibration.measured_at, RUN.finished);
    assert_int_equal(loaded->nodes, 1);
    assert_int_equal(loaded->devices_per_node, 1);
    assert_int_equal(loaded->calibration.sample_count, journal.sample_count);
    const struct dl_device *device = loaded->device;
    assert_int_equal(device->kind, DL_DEVICE_CPU);
    assert_int_equal(device->unit_count, 2);
    check_close(device->memory_bytes, RUN.host.memory_bytes, 0);
    assert_int_equal(device->kernel_model_count, 4);
    /* The rate is the best GEMM of either library, the bandwidth the better of copy and triad. */
    const struct dl_raw_sample *triad = sample(&journal, "stream", "bytes=67108864", "triad"),
                               *copy = sample(&journal, "stream", "bytes=67108864", "copy");
    check_close(device->memory_bandwidth_bytes_per_s,
                fmax(3.0 * 67108864 / triad->median_s, 2.0 * 67108864 / copy->median_s), 1e-12);
    check_close(dl_device_peak(device, DL_FP32),
                fmax(best_rate(&journal, "gemm"), best_rate(&journal, "matmul")), 1e-12);
    static const char *const keys[] = {"started",       "mode",
                                       "seconds",       "cpu",
                                       "kernel",        "load_before",
                                       "load_after",    "openblas",
                                       "openblas_core", "onednn",
                                       "mpi",           "implementations",
                                       "fit_gemm_fwd",  "fit_conv_bwd_filter"};
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        bool there = false;
        for (int i = 0; i < loaded->calibration.measurement_count; i++)
            there = there || strcmp(loaded->calibration.measurement[i].key, keys[k]) == 0;
        if (!there) fail_msg("measurement.%s is not in the profile", keys[k]);
    }
    /* Writing what was loaded gives the same text. */
    assert_string_equal(dl_json_text(&dl_system_schema, loaded, &test_arena), text);
    unlink(path);
    rmdir(directory);
}

/* The samples themselves, through the fitted kernel-time models: half of them within 5 %, nine of
 * ten within 25 %. */
static void kernel_models_give_the_samples_back(void **state) {
    struct dl_cal_journal journal = recorded(&test_arena);
    struct dl_system profile = profile_of(&journal, &test_arena);
    double errors[200];
    size_t count = 0;
    for (size_t i = 0; i < journal.sample_count; i++) {
        const struct dl_raw_sample *s = &journal.samples[i];
        struct dl_kernel kernel;
        if (strcmp(s->probe, "gemm") == 0) {
            kernel = dl_kernel_gemm(DL_FORWARD, dl_cal_shape_number(s->shape, "m"),
                                    dl_cal_shape_number(s->shape, "n"),
                                    dl_cal_shape_number(s->shape, "k"), 1);
            kernel.a_trans = dl_cal_shape_number(s->shape, "ta") > 0;
            kernel.b_trans = dl_cal_shape_number(s->shape, "tb") > 0;
        } else if (strcmp(s->probe, "conv") == 0) {
            const double h = dl_cal_shape_number(s->shape, "h"),
                         r = dl_cal_shape_number(s->shape, "r"),
                         stride = dl_cal_shape_number(s->shape, "s"),
                         p = dl_cal_shape_number(s->shape, "p");
            enum dl_pass pass = strcmp(s->pass, "bwd_data") == 0     ? DL_BACKWARD_DATA
                                : strcmp(s->pass, "bwd_filter") == 0 ? DL_BACKWARD_WEIGHTS
                                                                     : DL_FORWARD;
            kernel = dl_kernel_conv(
                pass,
                &(struct dl_conv_shape){
                    dl_cal_shape_number(s->shape, "n"), dl_cal_shape_number(s->shape, "c"),
                    dl_cal_shape_number(s->shape, "f"), 1, (double[]){1, h, h}, (double[]){1, r, r},
                    (double[]){1, stride, stride}, (double[]){0, p, p}, (double[]){1, 1, 1}});
            check_close(kernel.flop, dl_cal_work(s), 1e-12);
        } else {
            continue;
        }
        struct dl_kernel_time time;
        dl_kernel_time(&profile.profile, DL_FP32, &kernel, &time);
        assert_string_equal(time.formula, "F-KERNEL-MODEL");
        assert_string_equal(time.origin, "fitted");
        assert_false(time.extrapolated);
        assert_true(count < 200);
        errors[count++] = fabs(time.time_s / s->median_s - 1.0);
    }
    assert_int_equal(count, 59); /* 18 GEMMs, 14 + 13 + 14 convolutions */
    dl_sort(errors, count);
    assert_true(dl_quantile_sorted(errors, count, 0.5) < 0.05);
    assert_true(dl_quantile_sorted(errors, count, 0.9) < 0.25);
}

static void links_and_collectives_follow_their_samples(void **state) {
    struct dl_cal_journal journal = recorded(&test_arena);
    struct dl_system profile = profile_of(&journal, &test_arena);
    assert_true(profile.has_intra && profile.has_inter);
    assert_string_equal(profile.intra.kind, "shm");
    assert_false(profile.intra.assumed);
    assert_string_equal(profile.inter.kind, "loopback");
    assert_true(profile.inter.assumed); /* one node cannot measure a network */
    assert_non_null(profile.inter.comment);
    check_close(profile.intra.latency_s,
                sample(&journal, "pingpong", "bytes=8 ranks=2", "shm")->median_s, 1e-12);
    assert_in_range(profile.intra.piece_count, 1, 4);
    check_close(profile.intra.pieces[profile.intra.piece_count - 1].max_bytes, 67108864, 0);
    check_close(profile.intra.bandwidth_bytes_per_s,
                1.0 / profile.intra.pieces[profile.intra.piece_count - 1].beta_s_per_byte, 1e-12);
    assert_int_equal(profile.collective_count, 1);
    const struct dl_coll_measured *c = &profile.collectives[0];
    assert_string_equal(c->library, "mpi");
    assert_string_equal(c->operation, "all_reduce");
    assert_int_equal(c->nodes, 1);
    assert_int_equal(c->ranks, 2);
    assert_int_equal(c->sample_count, 12);
    for (int i = 0; i < c->sample_count; i++) {
        const char *shape = dl_arena_printf(&test_arena, "bytes=%.0f ranks=2", c->samples[i].bytes);
        const struct dl_raw_sample *s = sample(&journal, "allreduce", shape, "shm");
        check_close(c->samples[i].time_s, s->median_s, 0);
        assert_true(c->samples[i].low_s <= c->samples[i].time_s &&
                    c->samples[i].time_s <= c->samples[i].high_s);
        assert_true(i == 0 || c->samples[i].bytes > c->samples[i - 1].bytes);
    }
    /* A collective on this node is what was measured. */
    profile.device = &profile.profile;
    const struct dl_collective_request request = {.op = DL_COLL_ALL_REDUCE,
                                                  .library = DL_LIB_MPI,
                                                  .bytes = 2097152,
                                                  .nodes = 1,
                                                  .ranks_per_node = 2,
                                                  .flows_per_adapter = 1};
    struct dl_collective_time time;
    assert_int_equal(dl_collective_time(&profile, &request, &time, NULL), DL_OK);
    assert_string_equal(time.origin, "measured");
    check_close(time.time_s,
                sample(&journal, "allreduce", "bytes=2097152 ranks=2", "shm")->median_s, 1e-9);
}

/* Samples in another order (a resumed run) give the same profile but for the order of the samples.
 */
static void order_does_not_matter(void **state) {
    struct dl_cal_journal journal = recorded(&test_arena),
                          turned = without(&journal, "-", "-", &test_arena);
    for (size_t i = 0; i < journal.sample_count; i++)
        turned.samples[i] = journal.samples[journal.sample_count - 1 - i];
    struct dl_system a = profile_of(&journal, &test_arena), b = profile_of(&turned, &test_arena);
    assert_int_equal(a.collectives[0].sample_count, b.collectives[0].sample_count);
    for (int i = 0; i < a.collectives[0].sample_count; i++)
        check_close(b.collectives[0].samples[i].time_s, a.collectives[0].samples[i].time_s, 0);
    assert_int_equal(a.intra.piece_count, b.intra.piece_count);
    check_close(b.intra.latency_s, a.intra.latency_s, 0);
    check_close(b.profile.memory_bandwidth_bytes_per_s, a.profile.memory_bandwidth_bytes_per_s, 0);
}

static void one_library_is_enough(void **state) {
    struct dl_cal_journal journal = recorded(&test_arena),
                          no_openblas = without(&journal, "gemm", "-", &test_arena),
                          no_onednn = without(&journal, "matmul", "conv", &test_arena);
    struct dl_system a = profile_of(&no_openblas, &test_arena),
                     b = profile_of(&no_onednn, &test_arena);
    assert_int_equal(a.profile.kernel_model_count, 4);
    /* convolutions then use the generic model */
    assert_int_equal(b.profile.kernel_model_count, 1);
    assert_true(dl_known(dl_device_peak(&a.profile, DL_FP32)) &&
                dl_known(dl_device_peak(&b.profile, DL_FP32)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recorded_run_becomes_a_profile_that_loads),
        cmocka_unit_test(kernel_models_give_the_samples_back),
        cmocka_unit_test(links_and_collectives_follow_their_samples),
        cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(one_library_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
