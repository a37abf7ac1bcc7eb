/* A number changed in the text of a document; what a checkpoint format saves, in words; a
 * prediction corrected by measured runs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/core/file.h"
#include "model/core/json.h"
#include "model/framework/checkpoint/checkpoint_format.h"
#include "model/network/collective.h"
#include "model/engine/correct.h"
#include "tests/check.h"
#include "tests/fake.h"

static void a_number_in_its_place(void **state) {
    (void)state;
    static const char text[] = "{ \"a\": {\"b\" : 1.50},\n  \"list\": [ {\"name\":\"x\",\"n\":7}, "
                               "3, {\"n\":8}, {\"name\":4}, {\"name\": \"xy\" , \"n\" :9e2} ] }\n";
    struct dl_arena arena = {0};
    struct dl_json *doc;
    struct dl_err err = {0};
    double value = 0;
    size_t begin = 0, end = 0;
    assert_int_equal(dl_json_parse("t.json", text, strlen(text), &arena, &doc, &err), DL_OK);
    assert_true(
        dl_json_number_at(doc, (const char *const[]){"a", "b", NULL}, &value, &begin, &end));
    check_close(value, 1.5, 0);
    assert_int_equal(end - begin, 4);
    assert_memory_equal(text + begin, "1.50", 4);
    assert_true(dl_json_number_at(doc, (const char *const[]){"list", "xy", "n", NULL}, &value,
                                  &begin, &end));
    check_close(value, 900, 0);
    assert_true(dl_json_number_at(doc, (const char *const[]){"list", "x", "n", NULL}, &value,
                                  &begin, &end));
    check_close(value, 7, 0);
    assert_false(dl_json_number_at(doc, (const char *const[]){"list", "z", "n", NULL}, &value,
                                   &begin, &end));
    assert_false(dl_json_number_at(doc, (const char *const[]){"list", "x", "m", NULL}, &value,
                                   &begin, &end));
    assert_false(dl_json_number_at(doc, (const char *const[]){"list", "x", "name", NULL}, &value,
                                   &begin, &end)); /* a text */
    assert_false(dl_json_number_at(doc, (const char *const[]){"c", NULL}, &value, &begin, &end));
    assert_string_equal(
        dl_json_with_number(doc, (const char *const[]){"list", "xy", "n", NULL}, 0.25, &arena),
        "{ \"a\": {\"b\" : 1.50},\n  \"list\": [ {\"name\":\"x\",\"n\":7}, 3, {\"n\":8}, "
        "{\"name\":4}, {\"name\": \"xy\" , \"n\" :0.25} ] }\n");
    assert_null(dl_json_with_number(doc, (const char *const[]){"c", NULL}, 1, &arena));
    dl_arena_free(&arena);
}

static void what_a_format_saves(void **state) {
    (void)state;
    struct dl_arena arena = {0};
    struct dl_checkpoint_format f = {.saves = DL_SAVES_OPTIMIZER};
    assert_string_equal(dl_checkpoint_saves_text(&f, &arena), "optimizer");
    f.saves = 1 | DL_SAVES_OPTIMIZER;
    assert_string_equal(dl_checkpoint_saves_text(&f, &arena), "weights, optimizer");
    f.saves = 1 | DL_SAVES_RNG | DL_SAVES_POSITION | DL_SAVES_SCALE;
    assert_string_equal(dl_checkpoint_saves_text(&f, &arena),
                        "weights, RNG, loader position, loss scale");
    dl_arena_free(&arena);
}

static const struct dl_interval_model model = {.widths = {{0.05}},
                                               .framework_sigma_log = 0.3,
                                               .release_sigma_log = 0.1,
                                               .device_sigma_log = 0.2,
                                               .communication_sigma_log = 0.5};

/* F-PACED: of 12 ms the device waits 3 for the host, whose pace 3 or 6 ms follow, 4 for the slowest
 * device, and 12 or none in the bubble: roots of 9 + 16 + 144 and of 36 + 16. */
static void waits_add_as_squares(void **state) {
    (void)state;
    struct dl_prediction p = {
        .overhead_s = 7e-3, .straggler_s = 4e-3, .paced_s = 2e-3, .bubble_s = 12e-3};
    check_close(dl_prediction_waits_s(&p), 13e-3, 1e-12);
    p.paced_s = 6e-3, p.bubble_s = 0;
    check_close(dl_prediction_waits_s(&p), sqrt(52) * 1e-3, 1e-12);
}

/* 10 ms of compute, 4 exposed, 2 of overhead; two runs took 1.2 times as long. What the devices
 * do grows by one factor, what they wait by it and another, the exchange by a third; the rest
 * follows, and the interval is that of the runs where it is narrower. */
static void corrected_by_runs(void **state) {
    (void)state;
    struct dl_fake f;
    struct dl_err err = {0};
    fake_make(&f);
    struct dl_prediction p = {.iteration_s = 16e-3,
                              .compute_s = 10e-3,
                              .forward_s = 4e-3,
                              .backward_s = 5e-3,
                              .update_s = 1e-3,
                              .comm_s = 6e-3,
                              .exposed_comm_s = 4e-3,
                              .overhead_s = 2e-3,
                              .throughput_samples_per_s = 1000,
                              .epoch_s = 1,
                              .scaling_efficiency = 0.625,
                              .model_sigma_log = 0.05};
    const struct dl_prediction before = p;
    struct dl_predict_request r = {.system = &f.system,
                                   .workload = &f.workload,
                                   .framework = &f.framework,
                                   .plan = &f.plan,
                                   .arena = &f.arena};
    dl_predict_correct(&r, &p);
    check_close(p.iteration_s, before.iteration_s, 0);
    check_close(p.iteration_high_s, 0, 0); /* no model of errors: nothing is set */
    f.framework.intervals = &model;
    const struct dl_interval_case c =
        dl_interval_case_of(&f.system, &f.workload, &f.framework, &f.plan, &p);
    check_close(c.exposed_frac, 0.25, 1e-12);
    check_close(c.overhead_frac, 0.125, 1e-12);
    check_close(c.waits_frac, 0.125, 1e-12);
    check_close(c.parameters, f.workload.parameters, 0);
    assert_true(c.parameters > 0 && !c.release_assumed);
    dl_predict_correct(&r, &p);
    check_close(p.iteration_s, before.iteration_s, 0);
    const double wide = log(p.iteration_high_s / p.iteration_s);
    assert_true(wide > 0);
    check_close(p.iteration_low_s * p.iteration_high_s, p.iteration_s * p.iteration_s, 1e-9);
    const struct dl_measured_run runs[] = {{log(1.2), c, "fake"}, {log(1.2), c, "fake"}};
    assert_int_equal(dl_posterior_make(&model, runs, 2, &f.arena, &f.framework.measured, &err),
                     DL_OK);
    p = before;
    dl_predict_correct(&r, &p);
    const double compute = p.compute_s / before.compute_s,
                 ratio = p.iteration_s / before.iteration_s;
    assert_true(ratio > 1.05 && ratio < 1.25);
    check_close(p.forward_s, before.forward_s * compute, 1e-12);
    check_close(p.backward_s, before.backward_s * compute, 1e-12);
    check_close(p.update_s, before.update_s * compute, 1e-12);
    check_close(p.comm_s / before.comm_s, p.exposed_comm_s / before.exposed_comm_s, 1e-12);
    check_close(p.iteration_s, p.compute_s + p.exposed_comm_s + p.overhead_s, 1e-12);
    check_close(p.throughput_samples_per_s, 1000 / ratio, 1e-12);
    check_close(p.epoch_s, ratio, 1e-12);
    check_close(p.scaling_efficiency, 0.625 * compute / ratio, 1e-12);
    assert_true(log(p.iteration_high_s / p.iteration_s) < wide);
    dl_arena_free(&f.arena);
}

/* The text of data/SOURCES.md has the key in backquotes; a row of a table says in words what it is.
 */
static void check_row(const char *sources, const char *name, const char *summary,
                      const char *source) {
    char key[96];
    snprintf(key, sizeof key, "`%s`", source);
    if (summary == NULL || strlen(summary) < 8) fail_msg("%s has no summary", name);
    if (source == NULL || strstr(sources, key) == NULL)
        fail_msg("%s: no %s in data/SOURCES.md", name, key);
}

/* Collective algorithms, checkpoint formats and advice say where they are from. */
static void rows_have_sources(void **state) {
    (void)state;
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    char path[600], *sources;
    size_t length;
    int rows = 0;
    static const char *const formats[] = {
        "torch-save",     "safetensors", "torch-dcp",        "torch-dcp-async", "tensorflow-v2",
        "keras",          "keras-h5",    "keras-weights-h5", "mxnet-params",    "npz",
        "npz-compressed", "chainermn",   "megatron",         "deepspeed-zero",  NULL};
    snprintf(path, sizeof path, "%s/data/SOURCES.md", check_root());
    assert_int_equal(dl_file_read(path, 1 << 22, &arena, &sources, &length, &err), DL_OK);
    for (int i = 0; dl_collective_algorithms[i] != NULL; i++, rows++) {
        const struct dl_collective_algorithm *a = dl_collective_algorithms[i];
        check_row(sources, a->name, a->summary, a->source);
        check_contains(a->formula, "F-");
    }
    for (int i = 0; dl_checkpoint_formats[i] != NULL; i++, rows++) {
        const struct dl_checkpoint_format *f = dl_checkpoint_formats[i];
        check_row(sources, f->name, f->summary, f->source);
        assert_string_equal(f->name, formats[i]); /* what --checkpoint-format takes */
        assert_ptr_equal(dl_checkpoint_format_find(formats[i]), f);
    }
    assert_true(rows > 30);
    dl_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_in_its_place), cmocka_unit_test(what_a_format_saves),
        cmocka_unit_test(rows_have_sources), cmocka_unit_test(waits_add_as_squares),
        cmocka_unit_test(corrected_by_runs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
