/* Formats of checkpoints: what a network saves, bytes of each format by hand, costs from a probe
 * (F-CKPT-CONTENT, F-CKPT-BYTES, F-CKPT-SERIALIZE), and the sizes of measured files. */
#include "model/framework/checkpoint/checkpoint_cost.h"
#include "tests/check.h"
#include "tests/load_workload.h"

static const struct dl_checkpoint_format *find(const char *name) {
    const struct dl_checkpoint_format *f = dl_checkpoint_format_find(name);
    if (f == NULL) fail_msg("no format %s", name);
    return f;
}

/* ResNet-50: 25557032 weights in 161 tensors, 53 batch norms with 53120 statistics. PyTorch with
 * Adam: 161 x 4 (weight, two moments, step) + 53 x 3 = 803 tensors, of 76724430 elements (two of
 * them 8 bytes in each batch norm's counter). Keras: 161 x 3 + 106 + 2 = 591. */
static void contents(void **state) {
    struct dl_workload w;
    struct dl_checkpoint_content c;
    load_name("resnet50", NULL, 0, &test_arena, &w);
    dl_checkpoint_content(find("torch-save"), &w, DL_ADAM, 4, &c);
    check_close(c.tensor_count, 803, 0);
    check_close(c.setting_count, 12, 0); /* members of param_groups of Adam */
    check_close(c.data_bytes, 4 * 76724430.0 + 4 * 53, 0);
    assert_true(c.large_bytes > 0.5 * c.data_bytes && c.large_bytes < c.data_bytes);
    dl_checkpoint_content(find("keras"), &w, DL_ADAM, 4, &c);
    check_close(c.tensor_count, 591, 0);
    check_close(c.setting_count, 0, 0);
    dl_checkpoint_content(find("torch-dcp"), &w, DL_MOMENTUM, 4, &c);
    check_close(c.setting_count, 10, 0);
    dl_checkpoint_content(find("mxnet-params"), &w, DL_SGD, 4, &c);
    check_close(c.tensor_count, 267, 0);
    check_close(c.data_bytes, 4 * (25557032.0 + 53120), 0);
}

/* Two tensors of 100 floats, names of 12 characters, two dimensions. */
static void bytes_by_hand(void **state) {
    const struct dl_checkpoint_content c = {
        .layers = 2, .tensor_count = 2, .data_bytes = 800, .name_char_count = 12, .dim_count = 2};
    /* 8 + half of 8, each 48 + 12 + 2 x 4 + 2 x 3 digits */
    check_close(dl_checkpoint_bytes(find("safetensors"), &c, 1), 800 + 12 + 2 * 74, 1e-12);
    /* 32, each 4 + 4 + 4 + 16 + 8 + 4 and 8 + 12 */
    check_close(dl_checkpoint_bytes(find("mxnet-params"), &c, 1), 800 + 32 + 2 * 60, 1e-12);
    /* 22, each 30 + 16 + 148 + 46 + 16 */
    check_close(dl_checkpoint_bytes(find("npz"), &c, 1), 800 + 22 + 2 * 256, 1e-12);
    /* 1200, each 30 + 19 + 51.5 + 46 + 19 and 92 */
    check_close(dl_checkpoint_bytes(find("torch-save"), &c, 1), 800 + 1200 + 2 * 257.5, 1e-12);
    /* 900, each 1577 + 31.5 + 226 + 12; a setting 1261 + 148 */
    struct dl_checkpoint_content with = c;
    check_close(dl_checkpoint_bytes(find("torch-dcp"), &with, 1), 800 + 900 + 2 * 1846.5, 1e-12);
    with.setting_count = 12;
    check_close(dl_checkpoint_bytes(find("torch-dcp"), &with, 1),
                800 + 900 + 2 * 1846.5 + 12 * 1409, 1e-12);
    /* 2048, 2 x 2 + 4 groups of 1032, each 272, 4 / 6 tables of 328; a layer 900; 1500 */
    const double hdf5 = 2048 + 8 * 1032 + 2 * 272 + 4.0 / 6 * 328, config = 2 * 900 + 1500;
    check_close(dl_checkpoint_bytes(find("keras-h5"), &c, 1), 800 + hdf5 + config, 1e-12);
    check_close(dl_checkpoint_bytes(find("keras"), &c, 1), 800 + hdf5 + config + 3 * 128, 1e-12);
    /* every rank its copy, deflated */
    check_close(dl_checkpoint_bytes(find("chainermn"), &c, 4), 4 * (800 * 0.926 + 22 + 2 * 192),
                1e-12);
}

/* Storage 1 ns a byte, 2 with a sync. Sharded: one 1 ms, 2 ms with two ranks; 101 tensors 1 + 100 x
 * (0.2 + 0.1) ms, with two ranks 2 + 100 x (0.2 + 0.05): half of a tensor's 0.3 ms is shared out
 * twice: 0.1. Medium: 4 MB at 3 ns, large 40 MB at 5 ns, both and the storage's 2. */
static const char probe[] =
    "platform,format,state,optimizer,ranks,cores,layers,tensors,elements,bytes,write_s,blocking_s\n"
    "t,raw,probe-large,none,1,2,0,1,1000000,4000000,0.004,0.004\n"
    "t,raw-sync,probe-large,none,1,2,0,1,1000000,4000000,0.008,0.008\n"
    "t,torch-dcp,probe-one,none,1,2,0,1,1,4,0.001,0.001\n"
    "t,torch-dcp,probe-many,none,1,2,0,101,101,404,0.031,0.031\n"
    "t,torch-dcp,probe-medium,none,1,2,0,1,1000000,4000000,0.0213,0.0213\n"
    "t,torch-dcp,probe-large,none,1,2,0,1,10000000,40000000,0.2813,0.2813\n"
    "t,torch-dcp,probe-one,none,2,2,0,1,1,4,0.002,0.002\n"
    "t,torch-dcp,probe-many,none,2,2,0,101,101,404,0.027,0.027\n";

static enum dl_code read_probe(const char *text, struct dl_arena *arena,
                               struct dl_checkpoint_cost *out, bool *known, struct dl_err *err) {
    struct dl_csv csv;
    DL_TRY(dl_csv_parse("probe.csv", text, strlen(text), arena, &csv, err));
    return dl_checkpoint_cost_read(&csv, find("torch-dcp"), false, out, known, err);
}

static void costs_by_hand(void **state) {
    struct dl_checkpoint_cost cost;
    bool known;
    assert_int_equal(read_probe(probe, &test_arena, &cost, &known, NULL), DL_OK);
    assert_true(known);
    check_close(cost.base_s, 1e-3, 1e-9);
    check_close(cost.rank_s, 1e-3, 1e-9);
    check_close(cost.tensor_s, 2e-4, 1e-9);
    check_close(cost.shared_tensor_s, 1e-4, 1e-9);
    check_close(cost.storage_s_per_byte, 2e-9, 1e-9);
    check_close(cost.cached_s_per_byte, 3e-9, 1e-9);
    check_close(cost.large_s_per_byte, 5e-9, 1e-9);
    /* 4 ranks on 2 cores: 1 + 3 ms, 10 tensors of 0.2 + 0.05 ms, 1 MB at 1.5 and 2 at 2.5 ns,
     * 3 MB to storage at 2 */
    const struct dl_checkpoint_content c = {
        .tensor_count = 10, .data_bytes = 3e6, .large_bytes = 2e6};
    struct dl_checkpoint_scale scale = {
        .ranks = 4, .node_rank_count = 4, .node_core_count = 2, .storage_s_per_byte = NAN};
    check_close(dl_checkpoint_write_s(find("torch-dcp"), &cost, &c, &scale),
                4e-3 + 2.5e-3 + 1.5e-3 + 5e-3 + 6e-3, 1e-9);
    /* sharded: each rank writes a part of each of the 10 tensors, 0.2 + 2 x 0.1 ms */
    scale.is_sharded = true;
    check_close(dl_checkpoint_write_s(find("torch-dcp"), &cost, &c, &scale),
                4e-3 + 4e-3 + 1.5e-3 + 5e-3 + 6e-3, 1e-9);
}

/* The same with the pieces of planning, per tensor: each rank 0.05 ms (v), the first one 0.02 ms
 * for each rank (e). One rank: 0.3 = t + e + v + s; two: 0.25 = t + 2 e + v + s/2, so s = 2 (0.3 +
 * 0.02 - 0.25) = 0.14 and t = 0.09 ms. A collection of 1000 objects takes 7 ms. */
static const char pieces[] = "t,dcp-plan,probe-many,none,1,2,0,100,100,1,0.005,0.005\n"
                             "t,dcp-coordinate,probe-many,none,1,2,0,100,100,1,0.004,0.004\n"
                             "t,dcp-coordinate,probe-many,none,2,2,0,100,100,1,0.006,0.006\n"
                             "t,collect,probe-objects,none,1,2,0,1000,1000,1,0.007,0.007\n";

static void planning_by_hand(void **state) {
    struct dl_checkpoint_cost cost;
    bool known;
    const char *text = dl_arena_printf(&test_arena, "%s%s", probe, pieces);
    assert_non_null(text);
    assert_int_equal(read_probe(text, &test_arena, &cost, &known, NULL), DL_OK);
    assert_true(known);
    check_close(cost.every_tensor_s, 5e-5, 1e-9);
    check_close(cost.rank_tensor_s, 2e-5, 1e-9);
    check_close(cost.shared_tensor_s, 1.4e-4, 1e-9);
    check_close(cost.tensor_s, 9e-5, 1e-9);
    check_close(cost.large_s_per_byte, 5e-9, 1e-9);
    /* 4 ranks on 2 cores, 8 tensors and 2 settings of the optimizer: 4 ms, 10 x (0.09 + 4 x 0.02 +
     * 2 x 0.05 + 0.14 x 2/4) ms. Objects of the first rank: 10 x (8.4 + 4 x 16.9 + 33.7/4) = 844,
     * 3.4 times a quarter of 1000; of the others, two of which share a core: 10 x (12.7 + 33.7/4) =
     * 211, 0.8 times: 3 and 2 x 1 collections. */
    const struct dl_checkpoint_content c = {.tensor_count = 8, .setting_count = 2};
    const struct dl_checkpoint_scale scale = {
        .ranks = 4, .node_rank_count = 4, .node_core_count = 2, .storage_s_per_byte = NAN};
    check_close(dl_checkpoint_write_s(find("torch-dcp"), &cost, &c, &scale),
                4e-3 + 3.4e-3 + 5 * 7e-3, 1e-9);
    /* one rank collects for itself alone: 10 x (8.4 + 16.9 + 33.7) = 590, 2.4 times: 2 */
    const struct dl_checkpoint_scale one = {
        .ranks = 1, .node_rank_count = 1, .node_core_count = 2, .storage_s_per_byte = NAN};
    check_close(dl_checkpoint_write_s(find("torch-dcp"), &cost, &c, &one),
                1e-3 + 10 * (9e-5 + 2e-5 + 5e-5 + 1.4e-4) + 2 * 7e-3, 1e-9);
    /* two ranks that are faster by chance: no rank costs less than nothing */
    struct dl_checkpoint_cost faster;
    text = dl_arena_printf(&test_arena, "%s%s", probe,
                           "t,dcp-plan,probe-many,none,1,2,0,100,100,1,0.005,0.005\n"
                           "t,dcp-coordinate,probe-many,none,1,2,0,100,100,1,0.006,0.006\n"
                           "t,dcp-coordinate,probe-many,none,2,2,0,100,100,1,0.004,0.004\n");
    assert_int_equal(read_probe(text, &test_arena, &faster, &known, NULL), DL_OK);
    check_close(faster.rank_tensor_s, 0, 0);
    check_close(faster.every_tensor_s, 5e-5, 1e-9);
    /* a format that rank 0 writes alone plans nothing */
    check_close(dl_checkpoint_write_s(find("torch-save"), &cost, &c, &scale),
                1e-3 + 3 * 1e-3 + 8 * (9e-5 + 4 * 2e-5 + 5e-5 + 1.4e-4), 1e-9);
}

/* Kept objects by quarters of the process's: below half of one none, as in most checkpoints. */
static void collections(void **state) {
    check_close(dl_checkpoint_collections(0, 1000), 0, 0);
    check_close(dl_checkpoint_collections(124, 1000), 0, 0);
    check_close(dl_checkpoint_collections(126, 1000), 1, 0);
    check_close(dl_checkpoint_collections(374, 1000), 1, 0);
    check_close(dl_checkpoint_collections(1000, 1000), 4, 0);
}

/* Asynchronous: each rank copies all that it holds. One tensor 3 ms of which 1 is the copy, 101
 * take 33 ms of which 11: 0.1 ms to copy one. 4 MB: the copy takes 1 + 0.1 + 4 ms, 1 ns a byte, 40
 * MB 2 ns. The rest as above without planning: 0.2 ms for a tensor, on one rank and on two, hence
 * none shared. */
static const char staged[] =
    "platform,format,state,optimizer,ranks,cores,layers,tensors,elements,bytes,write_s,blocking_s\n"
    "t,raw-sync,probe-large,none,1,2,0,1,1000000,4000000,0.008,0.008\n"
    "t,raw,probe-large,none,1,2,0,1,1000000,4000000,0.004,0.004\n"
    "t,torch-dcp-async,probe-one,none,1,2,0,1,1,4,0.003,0.001\n"
    "t,torch-dcp-async,probe-many,none,1,2,0,101,101,404,0.033,0.011\n"
    "t,torch-dcp-async,probe-medium,none,1,2,0,1,1000000,4000000,0.0273,0.0051\n"
    "t,torch-dcp-async,probe-large,none,1,2,0,1,10000000,40000000,0.3633,0.0811\n"
    "t,torch-dcp-async,probe-one,none,2,2,0,1,1,4,0.003,0.001\n"
    "t,torch-dcp-async,probe-many,none,2,2,0,101,101,404,0.033,0.011\n";

static void copies_by_hand(void **state) {
    const struct dl_checkpoint_format *format = find("torch-dcp-async");
    struct dl_csv csv;
    struct dl_checkpoint_cost all, waits;
    bool known;
    assert_int_equal(dl_csv_parse("probe.csv", staged, strlen(staged), &test_arena, &csv, NULL),
                     DL_OK);
    assert_int_equal(dl_checkpoint_cost_read(&csv, format, false, &all, &known, NULL), DL_OK);
    assert_int_equal(dl_checkpoint_cost_read(&csv, format, true, &waits, &known, NULL), DL_OK);
    check_close(all.every_tensor_s, 1e-4, 1e-9);
    check_close(all.tensor_s, 2e-4, 1e-9);
    check_close(all.staged_cached_s_per_byte, 1e-9, 1e-9);
    check_close(all.staged_large_s_per_byte, 2e-9, 1e-9);
    /* 27.3 - 3 - 0.3 - 4 (copy) - 8 (storage) = 12 ms of 4 MB; 363.3 - 3.3 - 80 - 80 = 200 of 40 */
    check_close(all.cached_s_per_byte, 3e-9, 1e-9);
    check_close(all.large_s_per_byte, 5e-9, 1e-9);
    /* 4 ranks on 2 cores wait 1 ms + 10 x 0.2 + 1 MB at 2 and 2 MB at 4 ns; sharded a quarter of
     * the bytes. All of it: 3 + 10 x (0.2 + 0.2) + 1 MB at 1.5 and 2 at 2.5 + the copy + 3 MB at 2
     * ns. */
    const struct dl_checkpoint_content c = {
        .tensor_count = 10, .data_bytes = 3e6, .large_bytes = 2e6};
    struct dl_checkpoint_scale scale = {
        .ranks = 4, .node_rank_count = 4, .node_core_count = 2, .storage_s_per_byte = NAN};
    check_close(dl_checkpoint_write_s(format, &waits, &c, &scale), 1e-3 + 2e-3 + 10e-3, 1e-9);
    check_close(dl_checkpoint_write_s(format, &all, &c, &scale),
                3e-3 + 4e-3 + 1.5e-3 + 5e-3 + 10e-3 + 6e-3, 1e-9);
    scale.is_sharded = true;
    check_close(dl_checkpoint_write_s(format, &waits, &c, &scale), 1e-3 + 2e-3 + 2.5e-3, 1e-9);
    /* copies of many tensors, or of large ones, that take no longer than one's: nothing each */
    char *quick = dl_arena_printf(&test_arena, "%s", staged);
    memcpy(strstr(quick, "0.033,0.011"), "0.033,0.000", 11);
    memcpy(strstr(quick, "0.0273,0.0051"), "0.0273,0.0001", 13);
    assert_int_equal(dl_csv_parse("probe.csv", quick, strlen(quick), &test_arena, &csv, NULL),
                     DL_OK);
    assert_int_equal(dl_checkpoint_cost_read(&csv, format, false, &all, &known, NULL), DL_OK);
    check_close(all.every_tensor_s, 0, 0);
    check_close(all.staged_cached_s_per_byte, 0, 0);
    /* a copy longer than the whole is refused */
    const char *broken = dl_arena_printf(&test_arena, "%s", staged);
    memcpy(strstr(broken, "0.033,0.011"), "0.010", 5);
    assert_int_equal(dl_csv_parse("probe.csv", broken, strlen(broken), &test_arena, &csv, NULL),
                     DL_OK);
    assert_int_equal(dl_checkpoint_cost_read(&csv, format, false, &all, &known, NULL),
                     DL_ERR_INPUT);
}

static void rows_are_whole(void **state) {
    const struct dl_checkpoint_content c = {
        .layers = 3, .tensor_count = 9, .data_bytes = 1e6, .name_char_count = 10, .dim_count = 2};
    for (int i = 0; dl_checkpoint_formats[i] != NULL; i++) {
        const struct dl_checkpoint_format *f = dl_checkpoint_formats[i];
        assert_ptr_equal(dl_checkpoint_format_find(f->name), f);
        assert_non_null(f->summary);
        assert_non_null(f->source);
        assert_true((f->saves & DL_SAVES_WEIGHTS) != 0);
        assert_true(f->probe == NULL || dl_checkpoint_format_find(f->probe) != NULL);
        assert_true(dl_checkpoint_bytes(f, &c, 2) > f->ratio * 1e6);
        assert_true(dl_checkpoint_bytes(f, &c, 2) < 2.1e6);
    }
    assert_null(dl_checkpoint_format_find("tar"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contents),       cmocka_unit_test(bytes_by_hand),
        cmocka_unit_test(costs_by_hand),  cmocka_unit_test(planning_by_hand),
        cmocka_unit_test(collections),    cmocka_unit_test(copies_by_hand),
        cmocka_unit_test(rows_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, check_free);
}
