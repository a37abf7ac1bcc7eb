/* The error summary by hand, rows of runs and kernels that must be predicted or skipped with a
 * reason, and what --anchor promises: the anchor's own prediction becomes its measurement. */
#include "model/machine/kernel_match.h"
#include "model/framework/layer_times.h"
#include "predict/compare/compare.h"
#include "fits/fit_rows.h"
#include "tests/check.h"

static void add(struct dl_comparison *c, const char *source, const char *system, double predicted,
                double measured) {
    struct dl_compared *row = dl_comparison_add(c);
    assert_non_null(row);
    *row = (struct dl_compared){.id = "row",
                                .source = source,
                                .system = system,
                                .predicted = predicted,
                                .measured = measured,
                                .error_pct = 100 * (predicted - measured) / measured,
                                .low = 0.9 * predicted,
                                .high = 1.1 * predicted};
}

static const struct dl_error_summary *group(const struct dl_error_summary *list, int count,
                                            const char *kind, const char *name) {
    for (int i = 0; i < count; i++) {
        if (strcmp(list[i].kind, kind) == 0 && strcmp(list[i].group, name) == 0) return &list[i];
    }
    fail_msg("no group %s %s", kind, name);
    return NULL;
}

/* Source a: errors +10, -30, +20 %; b: +50 %; c: one skipped row.
 * a: mean |e| = 60/3 = 20, median 20, 90th by type 7: sorted 10 20 30 at 1.8 -> 28, bias 0.
 * all: mean (10 + 30 + 20 + 50)/4 = 27.5, bias (10 - 30 + 20 + 50)/4 = 12.5. By source: (20 + 50)/2
 * = 35. Inside [0.9, 1.1] x predicted: 100 in [99, 121] only, so 1 of 3 of a and 0 of b. */
static void summary_by_hand(void **state) {
    struct dl_comparison c = {.arena = &test_arena};
    add(&c, "a", "s1", 110, 100);
    add(&c, "a", "s1", 70, 100);
    add(&c, "a", "s2", 120, 100);
    add(&c, "b", "s2", 150, 100);
    add(&c, "c", "s3", 1, 1);
    c.rows[4].skipped = true;
    struct dl_error_summary *list;
    int count;
    dl_compare_summarize(&c, &list, &count);
    const struct dl_error_summary *a = group(list, count, "source", "a"),
                                  *all = group(list, count, "all", "all");
    const struct dl_error_summary *by_source = group(list, count, "all", "all-by-source");
    check_close(a->mape_pct, 20, 1e-12);
    check_close(a->median_ape_pct, 20, 1e-12);
    check_close(a->p90_ape_pct, 28, 1e-12);
    check_close(a->max_ape_pct, 30, 1e-12);
    assert_true(a->bias_pct > -1e-9 && a->bias_pct < 1e-9);
    check_close(a->inside_pct, 100.0 / 3, 1e-12);
    check_close(all->mape_pct, 27.5, 1e-12);
    check_close(all->bias_pct, 12.5, 1e-12);
    assert_int_equal(all->rows, 4);
    assert_int_equal(all->skipped, 1);
    check_close(by_source->mape_pct, 35, 1e-12); /* source c has no row that counts */
    check_close(by_source->max_ape_pct, 50, 1e-12);
    assert_int_equal(by_source->skipped, 1);
    assert_int_equal(group(list, count, "system", "s3")->rows, 0);
}

static struct dl_data data_of(struct dl_arena *arena) {
    const char *root = getenv("DLMODEL_ROOT");
    const char **directories = dl_arena_alloc(arena, 1, sizeof *directories);
    directories[0] = dl_arena_printf(arena, "%s/data", root != NULL ? root : ".");
    return (struct dl_data){.directories = directories, .directory_count = 1};
}

static const char header[] =
    "id,source,system,framework,strategy,backend,workload,input,precision,optimizer,nodes,devices_"
    "per_node,"
    "batch_per_device,global_batch,dp,tp,pp,micro_batch,metric,value,unit,framework_version\n";

static enum dl_code compare_text(const char *rows, bool anchor, struct dl_arena *arena,
                                 struct dl_comparison *out, struct dl_err *err) {
    const struct dl_data data = data_of(arena);
    const char *text = dl_arena_printf(arena, "%s%s", header, rows);
    struct dl_csv csv;
    DL_TRY(dl_csv_parse("runs.csv", text, strlen(text), arena, &csv, err));
    *out = (struct dl_comparison){.arena = arena};
    return dl_compare_runs(&data, &csv, anchor, out, err);
}

static void rows_are_predicted_or_skipped_with_a_reason(void **state) {
    struct dl_comparison c;
    struct dl_err err = {0};
    const char *rows =
        "a,s,iris-v100,ideal,data,,resnet50,,fp32,,1,4,32,,,,,,iteration,0.1,s,\n"
        "b,s,nowhere,ideal,data,,resnet50,,fp32,,1,4,32,,,,,,iteration,0.1,s,\n"
        "c,s,iris-v100,ideal,telepathy,,resnet50,,fp32,,1,4,32,,,,,,iteration,0.1,s,\n"
        "d,s,iris-v100,ideal,data,,resnet50,,fp32,,1,4,,,,,,,iteration,0.1,s,\n"
        "e,s,iris-v100,ideal,data,,resnet50,,fp99,,1,4,32,,,,,,throughput,100,samples/s,\n"
        "f,s,iris-v100,ideal,data,,resnet50,,fp32,,1,4,32,,,,,,throughput,100,samples/s,\n"
        "g,s,iris-v100,ideal,data,,bert_base,seq128,fp32,adam,1,4,8,,,,,,throughput,100,samples/"
        "s,\n"
        "h,s,iris-v100,ideal,data,,resnet50,banana,fp32,,1,4,32,,,,,,throughput,100,samples/s,\n";
    if (compare_text(rows, false, &test_arena, &c, &err) != DL_OK) fail_msg("%s", err.message);
    assert_int_equal(c.count, 8);
    static const char *const reasons[] = {NULL,        "nowhere", "strategy", "batch",
                                          "precision", NULL,      NULL,       "banana"};
    for (int i = 0; i < 8; i++) {
        if (c.rows[i].skipped != (reasons[i] != NULL))
            fail_msg("row %s: %s", c.rows[i].id, c.rows[i].why);
        if (reasons[i] != NULL && strstr(c.rows[i].why, reasons[i]) == NULL)
            fail_msg("row %s: %s", c.rows[i].id, c.rows[i].why);
    }
    /* a and f are the same run: 128 samples an iteration on 4 devices. */
    check_close(c.rows[0].predicted * c.rows[5].predicted, 128, 1e-9);
    assert_true(c.rows[0].low < c.rows[0].predicted && c.rows[0].predicted < c.rows[0].high);
    assert_true(c.rows[5].low < c.rows[5].predicted && c.rows[5].predicted < c.rows[5].high);
    assert_string_equal(c.rows[0].bottleneck, "compute");
}

/* On one device the iteration is compute and host overhead: an anchor measured at t makes the ideal
 * framework's prediction for more devices at least t, and without communication to wait for, t
 * itself within the host's part. */
static void anchor_corrects_compute(void **state) {
    struct dl_comparison plain, anchored;
    const char *rows = "a,s,iris-v100,ideal,data,,resnet50,,fp32,,1,1,32,,,,,,iteration,0.2,s,\n"
                       "b,s,iris-v100,ideal,data,,resnet50,,fp32,,1,2,32,,,,,,iteration,0.2,s,\n"
                       "c,s,iris-v100,ideal,data,,vgg16,,fp32,,1,2,32,,,,,,iteration,0.2,s,\n"
                       "d,s,iris-v100,ideal,data,,resnet50,,fp32,,1,2,24,,,,,,iteration,0.2,s,\n";
    assert_int_equal(compare_text(rows, false, &test_arena, &plain, NULL), DL_OK);
    assert_int_equal(compare_text(rows, true, &test_arena, &anchored, NULL), DL_OK);
    /* anchor, alone, other batch */
    assert_true(anchored.rows[0].skipped && anchored.rows[2].skipped && anchored.rows[3].skipped);
    assert_false(anchored.rows[1].skipped);
    assert_true(plain.rows[1].error_pct < -20); /* 0.2 s is about twice what the model says */
    check_close(anchored.rows[1].predicted, 0.2, 0.02);
}

/* A product of matrices took 1 ms beside the profile of the layers and 1.5 ms beside run a, 0.5 ms
 * beside b, 1.1 ms beside c; d does not say. */
static void the_speed_of_the_core_is_remarked(void **state) {
    struct dl_comparison c = {.arena = &test_arena};
    struct dl_err err = {0};
    struct dl_data data = data_of(&test_arena);
    struct dl_layer_time layer = {.name = "conv1", .forward_s = 0.01, .backward_s = 0.02};
    struct dl_layer_batch batch = {.batch_samples = 32,
                                   .update_s = NAN,
                                   .jitter_frac = NAN,
                                   .core_s = 1e-3,
                                   .steps = 1,
                                   .layers = &layer,
                                   .layer_count = 1};
    const struct dl_layer_times times = {.name = "t",
                                         .summary = "t",
                                         .source = "measured",
                                         .workload = "resnet50",
                                         .framework = "ideal",
                                         .batches = &batch,
                                         .batch_count = 1};
    const struct dl_layer_times *list[] = {&times};
    data.layer_times = list;
    data.layer_times_count = 1;
    const char text[] = "id,source,system,framework,workload,nodes,devices_per_node,batch_per_"
                        "device,metric,value,core_s\n"
                        "a,s,iris-v100,ideal,resnet50,1,1,32,iteration,0.1,0.0015\n"
                        "b,s,iris-v100,ideal,resnet50,1,1,32,iteration,0.1,0.0005\n"
                        "c,s,iris-v100,ideal,resnet50,1,1,32,iteration,0.1,0.0011\n"
                        "d,s,iris-v100,ideal,resnet50,1,1,32,iteration,0.1,\n";
    struct dl_csv csv;
    assert_int_equal(dl_csv_parse("runs.csv", text, strlen(text), &test_arena, &csv, &err), DL_OK);
    if (dl_compare_runs(&data, &csv, false, &c, &err) != DL_OK) fail_msg("%s", err.message);
    assert_non_null(strstr(c.rows[0].remark, "1.5 times slower"));
    assert_non_null(strstr(c.rows[1].remark, "2 times faster"));
    assert_null(c.rows[2].remark);
    assert_null(c.rows[3].remark);
}

/* A batch shared out over more devices (4 x 8 is 1 x 32) is anchored where no run has the batch per
 * device: half the work is 0.2 / 4 and what small batches lose. Of three runs of the smallest job,
 * one of them disturbed, the median counts, and none is predicted. Another release of the framework
 * is another group, with nothing to compare. */
static void what_makes_a_group(void **state) {
    struct dl_comparison c;
    const char *rows = "a,s,iris-v100,ideal,data,,resnet50,,fp32,,1,1,32,,,,,,iteration,0.18,s,\n"
                       "b,s,iris-v100,ideal,data,,resnet50,,fp32,,1,4,8,,,,,,iteration,0.06,s,\n"
                       "c,s,iris-v100,ideal,data,,resnet50,,fp32,,1,1,32,,,,,,iteration,0.2,s,\n"
                       "d,s,iris-v100,ideal,data,,resnet50,,fp32,,1,4,32,,,,,,iteration,0.2,s,\n"
                       "e,s,dgx1-v100,pytorch-ddp,data,,resnet50,,mixed,,1,1,256,,,,,,throughput,"
                       "800,samples/s,NGC 20.02-py3\n"
                       "f,s,dgx1-v100,pytorch-ddp,data,,resnet50,,mixed,,1,8,256,,,,,,throughput,"
                       "6000,samples/s,NGC 20.12-py3\n"
                       "g,s,dgx1-v100,pytorch-ddp,data,,resnet50,,mixed,,1,8,256,,,,,,throughput,"
                       "6000,samples/s,NGC 20.02\n"
                       "h,s,iris-v100,ideal,data,,resnet50,,fp32,,1,1,32,,,,,,iteration,0.9,s,\n";
    assert_int_equal(compare_text(rows, true, &test_arena, &c, NULL), DL_OK);
    static const bool skipped[] = {true, false, true, false, true, true, false, true};
    for (int i = 0; i < 8; i++) {
        if (c.rows[i].skipped != skipped[i])
            fail_msg("row %s: %s", c.rows[i].id,
                     c.rows[i].why == NULL ? "predicted" : c.rows[i].why);
    }
    assert_true(c.rows[1].predicted > 0.2 / 4 && c.rows[1].predicted < 0.2 / 2);
    check_close(c.rows[3].predicted, 0.2, 0.02);
}

/* A run on one device need not name a backend: it anchors those of its framework's library, not
 * those of another one, and counts only where no run on one device names it (second list). A table
 * with global batches alone has groups of equal batches per device too. */
static void backends_and_global_batches_make_groups(void **state) {
    struct dl_comparison c;
    const char *open =
        "a,s,iris-v100,pytorch-ddp,data,,resnet50,,fp32,,1,1,,32,,,,,iteration,0.5,s,\n"
        "b,s,iris-v100,pytorch-ddp,data,nccl,resnet50,,fp32,,1,4,,128,,,,,iteration,0.5,s,\n"
        "c,s,iris-v100,pytorch-ddp,data,gloo,resnet50,,fp32,,1,4,,128,,,,,iteration,0.5,s,\n"
        "d,s,iris-v100,pytorch-ddp,data,nccl,resnet50,,fp32,,1,4,,512,,,,,iteration,0.5,s,\n";
    assert_int_equal(compare_text(open, true, &test_arena, &c, NULL), DL_OK);
    assert_true(c.rows[0].skipped && !c.rows[1].skipped);
    assert_true(c.rows[2].skipped && c.rows[3].skipped);
    assert_true(c.rows[1].predicted > 0.5 && c.rows[1].predicted < 0.6);
    const char *named =
        "a,s,iris-v100,pytorch-ddp,data,,resnet50,,fp32,,1,1,,32,,,,,iteration,0.5,s,\n"
        "b,s,iris-v100,pytorch-ddp,data,nccl,resnet50,,fp32,,1,4,,128,,,,,iteration,0.5,s,\n"
        "c,s,iris-v100,pytorch-ddp,data,nccl,resnet50,,fp32,,1,1,,32,,,,,iteration,0.7,s,\n";
    assert_int_equal(compare_text(named, true, &test_arena, &c, NULL), DL_OK);
    assert_true(c.rows[0].skipped && c.rows[2].skipped);
    assert_true(c.rows[1].predicted > 0.7 && c.rows[1].predicted < 0.84);
}

/* Predictions of rows that differ in these columns alone. */
static void predict_versions(const char *text, double *predicted, const char **remarks, int count,
                             const char *release, struct dl_arena *arena) {
    struct dl_data data = data_of(arena);
    data.release = release;
    struct dl_comparison c = {.arena = arena};
    struct dl_err err = {0};
    struct dl_csv csv;
    if (dl_csv_parse("runs.csv", text, strlen(text), arena, &csv, &err) != DL_OK ||
        dl_compare_runs(&data, &csv, false, &c, &err) != DL_OK)
        fail_msg("%s", err.message);
    assert_int_equal(c.count, count);
    for (int i = 0; i < count; i++) {
        if (c.rows[i].skipped) fail_msg("row %s: %s", c.rows[i].id, c.rows[i].why);
        predicted[i] = c.rows[i].predicted;
        remarks[i] = c.rows[i].remark;
    }
}

/* ResNeXt in mixed precision, whose constants differ between releases: framework_version selects
 * one, with layout where the release asks for it; id, source and notes never do. */
static void framework_version_selects_the_release(void **state) {
    enum { ROWS = 8 };
    static const char text[] =
        "id,source,system,framework,workload,precision,nodes,devices_per_node,batch_per_device,"
        "metric,value,framework_version,layout,notes,versions\n"
        "a,s,dgx1-v100,pytorch-ddp,resnext101_32x4d,mixed,1,1,128,iteration,1,NGC 20.06-py3,,,\n"
        "b,s,dgx1-v100,pytorch-ddp,resnext101_32x4d,mixed,1,1,128,iteration,1,NGC 20.06-py3,nhwc,,"
        "\n"
        "c,s,dgx1-v100,pytorch-ddp,resnext101_32x4d,mixed,1,1,128,iteration,1,NGC 20.12,nhwc,,\n"
        "d,s,dgx1-v100,pytorch-ddp,resnext101_32x4d,mixed,1,1,128,iteration,1,NGC 21.03,,,\n"
        "e,s,dgx1-v100,pytorch-ddp,resnext101_32x4d,mixed,1,1,128,iteration,1,NGC 20.061,,,\n"
        "f,s,dgx1-v100,pytorch-ddp,resnext101_32x4d,mixed,1,1,128,iteration,1,,,,\n"
        "NGC 20.06,NGC 20.06,dgx1-v100,pytorch-ddp,resnext101_32x4d,mixed,1,1,128,iteration,1,,"
        "nhwc,NGC 20.06,NGC 20.06\n"
        "h,s,dgx1-v100,ideal,resnext101_32x4d,mixed,1,1,128,iteration,1,,,,\n";
    double by_column[ROWS], by_option[ROWS];
    const char *remarks[ROWS], *none[ROWS];
    predict_versions(text, by_column, remarks, ROWS, NULL, &test_arena);
    static const struct {
        int row;
        const char *release;
    } same[] = {
        {0, "NGC 20.06"}, {1, "NGC 20.06 channels last"}, {2, "NGC 20.12"}, {3, "NGC 21.03"}};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        predict_versions(text, by_option, none, ROWS, same[i].release, &test_arena);
        check_close(by_column[same[i].row], by_option[same[i].row], 1e-12);
        assert_null(remarks[same[i].row]);
        for (int k = 0; k < ROWS; k++) assert_null(none[k]);
    }
    /* channels-last from 20.12 on, and where the column says so */
    assert_true(by_column[0] > 1.02 * by_column[1]);
    check_close(by_column[1], by_column[2], 1e-12);
    predict_versions(text, by_option, none, ROWS, "1.8", &test_arena);
    for (int i = 5; i < 7; i++) {
        check_close(by_column[i], by_option[i], 1e-12);
        assert_non_null(strstr(remarks[i], "default release 1.8"));
    }
    check_close(by_column[4], by_column[2], 1e-12);
    assert_non_null(strstr(remarks[4], "covers framework_version \"NGC 20.061\""));
    assert_non_null(strstr(remarks[4], "nearest release NGC 20.12"));
    assert_non_null(strstr(remarks[5], "framework_version is empty"));
    assert_null(remarks[7]); /* has no releases to choose from */
}

/* Rows that do not say their release say so to the model of errors; a version that no release
 * covers says nothing either. */
static void runs_that_do_not_say_their_release(void **state) {
    enum { ROWS = 5 };
    static const char text[] =
        "id,source,system,framework,workload,precision,nodes,devices_per_node,batch_per_device,"
        "metric,value,framework_version\n"
        "a,s,dgx1-v100,pytorch-ddp,resnext101_32x4d,mixed,1,1,128,iteration,1,NGC 20.12\n"
        "b,s,dgx1-v100,pytorch-ddp,resnext101_32x4d,mixed,1,1,128,iteration,1,\n"
        "c,s,dgx1-v100,pytorch-ddp,resnext101_32x4d,mixed,1,1,128,iteration,1,NGC 20.061\n"
        "d,s,dgx1-v100,pytorch-ddp,resnet50,mixed,1,1,128,iteration,1,NGC 20.12\n"
        "e,s,dgx1-v100,pytorch-ddp,resnet50,mixed,1,1,128,iteration,1,\n";
    struct dl_err err = {0};
    const struct dl_data data = data_of(&test_arena);
    struct dl_csv csv;
    struct dl_fit_rows rows;
    struct dl_fit_prediction said[ROWS];
    assert_int_equal(dl_csv_parse("runs.csv", text, strlen(text), &test_arena, &csv, &err), DL_OK);
    if (dl_fit_rows_read(&data, &csv, 1, &test_arena, &rows, &err) != DL_OK ||
        dl_fit_rows_predict(&rows, NULL, NULL, said, &err) != DL_OK)
        fail_msg("%s", err.message);
    static const bool assumed[ROWS] = {false, true, true, false, true};
    for (int i = 0; i < ROWS; i++) {
        const struct dl_interval_case c = dl_fit_case(&rows.rows[i], &said[i]);
        assert_int_equal(c.release_assumed, assumed[i]);
        check_close(c.parameters, i < 3 ? 44177704 : 25557032, 1e-9);
    }
    assert_true(fabs(log(said[0].iteration_s / said[1].iteration_s)) > 0.02);
}

/* A run that does not say its release anchors those that say the one that is assumed for it, and no
 * others. */
static void an_assumed_release_anchors(void **state) {
    struct dl_comparison c;
    struct dl_err err = {0};
    const char *rows =
        "a,s,iris-v100,pytorch-ddp,data,,resnet50,,fp32,,1,1,32,,,,,,iteration,0.2,s,\n"
        "b,s,iris-v100,pytorch-ddp,data,,resnet50,,fp32,,1,4,32,,,,,,iteration,0.2,s,1.8\n"
        "c,s,iris-v100,pytorch-ddp,data,,resnet50,,fp32,,2,4,32,,,,,,iteration,0.2,s,NGC 20.12\n";
    if (compare_text(rows, true, &test_arena, &c, &err) != DL_OK) fail_msg("%s", err.message);
    assert_true(c.rows[0].skipped && !c.rows[1].skipped && c.rows[2].skipped);
    assert_true(c.rows[1].predicted > 0.19);
}

/* `system` names a file or the row is not predicted, also where prose describes a machine that has
 * a file; a release of the library that the row gives takes the place of the system's. */
static void collectives_name_their_system(void **state) {
    const struct dl_data data = data_of(&test_arena);
    struct dl_comparison c = {.arena = &test_arena};
    struct dl_csv csv;
    struct dl_err err = {0};
    static const char text[] =
        "library,lib_version,collective,device,system,nodes,ranks,network,dtype,size_bytes,time_us,"
        "algbw_GBs,busbw_GBs,source,notes,buffers,algorithm,devices_per_process\n"
        "NCCL,,all_reduce,V100,dgx1-v100,1,8,,float32,8,50,,,s,,,,\n"
        "NCCL,,all_reduce,V100,dgx1-v100,1,8,,float32,8,50,,,s,,,,8\n"
        "NCCL,,all_reduce,V100,\"8x V100, hybrid cube-mesh (NV1/NV2)\",1,8,NVLink,float32,8,50,,,s,"
        ",,,\n"
        "NCCL,,all_reduce,V100,dgx1-v10,1,8,,float32,8,50,,,s,,,,\n"
        "NCCL,,all_reduce,V100,,1,8,,float32,8,50,,,s,,,,\n"
        "NCCL,NGC 24.06,all_reduce,V100,dgx1-v100,1,8,,float32,8,50,,,s,,,,\n"
        "Open MPI,openmpi-5.0,all_reduce,V100,v100-8x-edr,4,32,,float32,1048576,50,,,s,,host,,\n"
        "Open MPI,openmpi-5.0,all_reduce,V100,v100-8x-edr,4,32,,float32,1048576,50,,,s,,device,,\n"
        "Open MPI,openmpi-5.0,all_reduce,V100,v100-8x-edr,4,32,,float32,1048576,50,,,s,,host,"
        "ring,\n"
        "telepathy,,all_reduce,V100,dgx1-v100,1,8,,float32,8,50,,,s,,,,\n";
    assert_int_equal(dl_csv_parse("c.csv", text, strlen(text), &test_arena, &csv, &err), DL_OK);
    if (dl_compare_collectives(&data, &csv, &c, &err) != DL_OK) fail_msg("%s", err.message);
    static const char *const reasons[] = {NULL, NULL, "8x V100", "dgx1-v100", "no system",
                                          NULL, NULL, NULL,      NULL,        "library"};
    assert_int_equal(c.count, 10);
    for (int i = 0; i < 10; i++) {
        const bool skipped = reasons[i] != NULL;
        if (c.rows[i].skipped != skipped || (skipped && strstr(c.rows[i].why, reasons[i]) == NULL))
            fail_msg("row %d: %s", i, c.rows[i].why == NULL ? "predicted" : c.rows[i].why);
    }
    assert_true(c.rows[1].predicted > 1.2 * c.rows[0].predicted); /* one thread starts 8 kernels */
    check_close(c.rows[5].predicted, c.rows[0].predicted, 1e-12);
    assert_non_null(strstr(c.rows[5].remark, "NGC 24.06"));
    assert_null(c.rows[0].remark);
    assert_true(c.rows[7].predicted > 1.05 * c.rows[6].predicted);
    assert_non_null(strstr(c.rows[8].workload, "ring"));
    assert_null(strstr(c.rows[6].workload, " ring"));
}

static void broken_rows_are_named(void **state) {
    struct dl_comparison c;
    struct dl_err err = {0};
    const char *rows = "a,s,iris-v100,ideal,data,,resnet50,,fp32,,1,4,32,,,,,,iteration,0.1,s,\n"
                       "b,s,iris-v100,ideal,data,,resnet50,,fp32,,one,4,32,,,,,,iteration,0.1,s,\n";
    assert_int_equal(compare_text(rows, false, &test_arena, &c, &err), DL_OK);
    assert_false(c.rows[0].skipped);
    assert_true(c.rows[1].skipped);
    assert_non_null(strstr(c.rows[1].why, "error: nodes: expected a number, got \"one\""));
    assert_int_equal(compare_text(strchr(rows, '\n') + 1, false, &test_arena, &c, &err),
                     DL_ERR_INPUT);
    assert_int_equal(err.line, 2);
    assert_string_equal(err.key, "nodes");
}

/* 2 m n k = 2 x 10 x 20 x 30 = 12000 flop in 1.5 ms; the 16-bit kinds are "mixed". */
static void kernel_rows(void **state) {
    struct dl_csv csv;
    struct dl_err err = {0};
    const char *text = "device,op,m,n,k,a_trans,b_trans,precision,pass,time_ms\n"
                       "V100,gemm,10,20,30,T,N,fp16_in_fp16mul_fp32acc_tensorcore,fwd,1.5\n"
                       "V100,gemm,10,,30,N,N,fp32,fwd,1.5\nAMD_MI25,gemm,1,1,1,N,N,fp32,fwd,\nV100,"
                       "gemm,1,1,1,N,N,fp77,fwd,1\n";
    assert_int_equal(dl_csv_parse("k.csv", text, strlen(text), &test_arena, &csv, &err), DL_OK);
    assert_true(dl_kernel_header(&csv));
    struct dl_kernel_row row;
    assert_int_equal(dl_kernel_row_read(&csv, 0, &row, &err), DL_OK);
    assert_null(row.why);
    check_close(row.kernel.flop, 12000, 1e-15);
    check_close(row.measured_s, 1.5e-3, 1e-15);
    assert_true(row.kernel.a_trans && !row.kernel.b_trans);
    assert_int_equal(row.precision, DL_MIXED);
    assert_string_equal(dl_kernel_match_device(row.device), "v100_sxm2_16");
    assert_null(dl_kernel_match_device("AMD_MI25"));
    assert_string_equal(dl_kernel_match_device("my_device"), "my_device");
    assert_int_equal(dl_kernel_row_read(&csv, 1, &row, &err), DL_OK);
    assert_string_equal(row.why, "a size is not given");
    assert_int_equal(dl_kernel_row_read(&csv, 2, &row, &err), DL_OK);
    assert_string_equal(row.why, "no time is given");
    assert_int_equal(dl_kernel_row_read(&csv, 3, &row, &err), DL_ERR_INPUT);
    assert_int_equal(err.line, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(summary_by_hand),
        cmocka_unit_test(rows_are_predicted_or_skipped_with_a_reason),
        cmocka_unit_test(anchor_corrects_compute),
        cmocka_unit_test(the_speed_of_the_core_is_remarked),
        cmocka_unit_test(what_makes_a_group),
        cmocka_unit_test(backends_and_global_batches_make_groups),
        cmocka_unit_test(framework_version_selects_the_release),
        cmocka_unit_test(runs_that_do_not_say_their_release),
        cmocka_unit_test(an_assumed_release_anchors),
        cmocka_unit_test(collectives_name_their_system),
        cmocka_unit_test(broken_rows_are_named),
        cmocka_unit_test(kernel_rows),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
