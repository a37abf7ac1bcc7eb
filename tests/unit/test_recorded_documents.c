/* Recorded results (recorded.h: a regression net, no oracle) of reading: documents of data/ with a
 * fault, --set with any key and value, tables with a fault, quantities, parameters of networks.
 * What is refused with which words at which place, and what is read where nothing is wrong.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/statistics/stats.h"
#include "model/core/units.h"
#include "model/catalog/data.h"
#include "model/network/coll_match.h"
#include "model/machine/kernel_match.h"
#include "tests/check.h"
#include "tests/recorded.h"

enum { DOCUMENTS = 1200, SETTINGS = 600, TABLES = 150, TEXTS = 400, TEXT_BYTES = 40000 };

static uint64_t seed;
static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }

static char directory[4096];
static const char *directories[] = {directory};

/* A message without the place of the repository. */
static void record_message(const char *name, const struct dl_err *err) {
    char whole[2048], text[2048];
    dl_err_text(err, "dlmodel", whole, sizeof whole);
    const char *place = strstr(whole, directory);
    if (place == NULL)
        snprintf(text, sizeof text, "%s", whole);
    else
        snprintf(text, sizeof text, "%.*sdata%.1900s", (int)(place - whole), whole,
                 place + strlen(directory));
    recorded_text(name, text);
}

static const struct kind {
    enum dl_data_kind kind;
    const char *folder;
    const struct dl_schema *schema;
} kinds[] = {{DL_DATA_DEVICE, "devices", &dl_device_schema},
             {DL_DATA_SYSTEM, "systems", &dl_system_schema},
             {DL_DATA_FRAMEWORK, "frameworks", &dl_framework_schema},
             {DL_DATA_WORKLOAD, "workloads", NULL}};

/* Text of what was loaded. */
static const char *load(const struct dl_data *data, const struct kind *kind, const char *name,
                        struct dl_arena *arena, struct dl_err *err) {
    const struct dl_device *device;
    const struct dl_system *system;
    const struct dl_framework *framework;
    const struct dl_workload *workload;
    switch (kind->kind) {
    case DL_DATA_DEVICE:
        if (dl_data_device(data, name, arena, &device, err) != DL_OK) return NULL;
        return dl_json_text(kind->schema, device, arena);
    case DL_DATA_SYSTEM:
        if (dl_data_system(data, name, arena, &system, err) != DL_OK) return NULL;
        return dl_json_text(kind->schema, system, arena);
    case DL_DATA_FRAMEWORK:
        if (dl_data_framework(data, name, arena, &framework, err) != DL_OK) return NULL;
        return dl_json_text(kind->schema, framework, arena);
    default:
        if (dl_data_workload(data, name, arena, &workload, err) != DL_OK) return NULL;
        return dl_arena_printf(arena, "%d layers %.12g %.12g %.12g", workload->layer_count,
                               workload->parameters, workload->forward_macs_per_sample,
                               workload->activation_elements_per_sample);
    }
}

static void record_load(const struct dl_data *data, const struct kind *kind, const char *name,
                        struct dl_arena *arena) {
    struct dl_err err = {0};
    const char *text = load(data, kind, name, arena, &err);
    if (text == NULL)
        record_message("refusal", &err);
    else
        recorded_text("what was read", text);
}

/* Copies `text` with one change that a person or a disk could make. */
static void spoil(const char *text, size_t length, char *out, size_t *out_length) {
    static const char *const words[] = {"null", "true", "\"x\"", "-1",   "0",   "1e99",    "[]",
                                        "{}",   "1.5",  "7",     "\"\"", "nan", "\\u00e9", ","};
    size_t at = (size_t)upto((int)length), skip = 0;
    const char *insert = "";
    char one[2] = {0};
    switch (upto(5)) {
    case 0: skip = 1 + (size_t)upto(3); break;
    case 1: one[0] = (char)(32 + upto(95)), insert = one, skip = (size_t)upto(2); break;
    case 2: /* another value */
        while (at < length && text[at] != ':') at++;
        if (at < length) at++;
        while (at + skip < length && strchr(",\n}", text[at + skip]) == NULL) skip++;
        insert = words[upto(14)];
        break;
    case 3: /* another key */
        while (at > 0 && text[at] != '"') at--;
        at += at + 2 < length ? 1 : 0, skip = (size_t)upto(3), insert = "x";
        break;
    default: /* a line less */
        while (at > 0 && text[at - 1] != '\n') at--;
        while (at + skip < length && text[at + skip] != '\n') skip++;
        skip++;
    }
    if (at + skip > length) skip = length - at;
    *out_length = (size_t)snprintf(out, TEXT_BYTES + 16, "%.*s%s%.*s", (int)at, text, insert,
                                   (int)(length - at - skip), text + at + skip);
}

static void documents(void **state) {
    (void)state;
    static char spoiled[TEXT_BYTES + 16];
    recorded_open("documents");
    seed = 81;
    for (int i = 0; i < DOCUMENTS; i++) {
        struct dl_arena arena = {0};
        struct dl_data data = {.directories = directories, .directory_count = 1};
        const struct kind *kind = &kinds[upto(4)];
        const char **names, *path;
        char *text, title[128];
        size_t length;
        int count = 0;
        struct dl_err err = {0};
        assert_int_equal(dl_data_names(&data, kind->kind, &arena, &names, &err), DL_OK);
        while (names[count] != NULL) count++;
        const char *name = names[upto(count)];
        assert_int_equal(dl_data_path(&data, kind->kind, name, &arena, &path, &err), DL_OK);
        assert_int_equal(dl_data_read(&data, path, 1 << 20, &arena, &text, &length, &err), DL_OK);
        snprintf(title, sizeof title, "%s/%s with a fault", kind->folder, name);
        recorded_case(title);
        if (length < TEXT_BYTES) {
            spoil(text, length, spoiled, &length);
            const struct dl_attachment attachment = {
                .name = "spoiled.json", .text = spoiled, .length = length};
            data.attachments = &attachment, data.attachment_count = 1;
            record_load(&data, kind, "spoiled.json", &arena);
        }
        recorded_end_case();
        dl_arena_free(&arena);
    }
    recorded_close();
}

static void settings(void **state) {
    (void)state;
    static const char *const values[] = {
        "3",   "1",   "0", "-1", "0.5",   "1e30", "true",  "false", "none",   "12GB/s",
        "5us", "2ms", "x", "",   "16GiB", "8",    "1,2,3", "100W",  "1.5GHz", "nan"};
    static const char *const names[] = {"k80", "azure-nc24r-k80", "pytorch-ddp", "resnet50"};
    struct dl_arena kept = {0};
    recorded_open("settings");
    seed = 82;
    for (int i = 0; i < SETTINGS; i++) {
        struct dl_arena arena = {0};
        const int which = upto(3);
        const char *const *keys = dl_json_keys(kinds[which].schema, &kept);
        int count = 0;
        while (keys[count] != NULL) count++;
        char key[256], *end;
        snprintf(key, sizeof key, "%s", keys[upto(count)]);
        while ((end = strstr(key, ".N")) != NULL) end[1] = (char)('0' + upto(3));
        struct dl_override override = {.key = key, .value = values[upto(20)]};
        const struct dl_data data = {.directories = directories,
                                     .directory_count = 1,
                                     .overrides = &override,
                                     .override_count = 1};
        char title[400];
        snprintf(title, sizeof title, "%s with %s=%s", names[which], key, override.value);
        recorded_case(title);
        record_load(&data, &kinds[which], names[which], &arena);
        recorded_number("used", override.used);
        recorded_end_case();
        dl_arena_free(&arena);
    }
    recorded_close();
    dl_arena_free(&kept);
}

static void record_row(const struct dl_csv *csv, int r, struct recorded_sum *sum) {
    struct dl_kernel_row kernel;
    struct dl_coll_row row;
    struct dl_err err = {0};
    if (dl_kernel_header(csv)) {
        if (dl_kernel_row_read(csv, r, &kernel, &err) != DL_OK) {
            record_message("row refused", &err);
        } else if (kernel.why != NULL) {
            recorded_text("no kernel", kernel.why);
        } else {
            recorded_add(sum, kernel.kernel.flop), recorded_add(sum, kernel.measured_s);
            recorded_add(sum, kernel.kernel.read_elements + kernel.kernel.extra_bytes);
            recorded_add(sum, kernel.kernel.write_elements + kernel.kernel.launches);
            recorded_add(sum, 1 + (double)kernel.precision + 20 * kernel.kernel.work);
        }
    } else if (dl_coll_row_read(csv, r, &row, &err) != DL_OK) {
        record_message("row refused", &err);
    } else {
        const struct dl_coll_match m = dl_coll_match(&row);
        if (m.system == NULL) {
            recorded_text("no collective", m.why);
            return;
        }
        recorded_add(sum, m.request.bytes), recorded_add(sum, m.measured_s);
        recorded_add(sum, 1 + (double)m.request.op + 20 * m.request.library);
        recorded_add(sum, (double)(m.request.nodes + 100 * m.request.ranks_per_node));
        recorded_add(sum, 1 + m.launches + 100 * m.version_ignored);
    }
}

/* A header and some rows of a table, with a fault in one place. */
static void record_table(const char *name, const char *text, size_t length,
                         struct dl_arena *arena) {
    static char part[TEXT_BYTES], spoiled[TEXT_BYTES + 16];
    struct dl_csv csv;
    struct dl_err err = {0};
    struct recorded_sum sum = {0};
    const size_t head = (size_t)(strchr(text, '\n') - text) + 1;
    size_t at = head + (size_t)upto((int)(length - head - 1000)), part_length, rows = 0;
    while (text[at - 1] != '\n') at++;
    for (int lines = 0; lines < 6 && at + rows < length; rows++) lines += text[at + rows] == '\n';
    part_length =
        (size_t)snprintf(part, sizeof part, "%.*s%.*s", (int)head, text, (int)rows, text + at);
    spoil(part, part_length, spoiled, &part_length);
    recorded_case(name);
    if (dl_csv_parse(name, spoiled, part_length, arena, &csv, &err) != DL_OK)
        record_message("refusal", &err);
    else
        for (int r = 0; r < csv.row_count; r++) record_row(&csv, r, &sum);
    recorded_sum_of("rows", &sum);
    recorded_end_case();
}

static void tables(void **state) {
    (void)state;
    static const char *const names[] = {
        "kernels/deepbench_gemm.csv",   "kernels/deepbench_conv.csv", "kernels/by_gpu_gemm.csv",
        "kernels/by_gpu_attention.csv", "kernels/by_gpu_conv.csv",    "kernels/by_gpu_stream.csv",
        "collectives/published.csv",    "collectives/published_2.csv"};
    const struct dl_data data = {.directories = directories, .directory_count = 1};
    recorded_open("tables");
    seed = 83;
    for (int i = 0; i < 8; i++) {
        struct dl_arena arena = {0};
        struct dl_err err = {0};
        char path[4200], *text;
        size_t length;
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        if (dl_data_read(&data, path, 64 << 20, &arena, &text, &length, &err) != DL_OK)
            fail_msg("%s", err.message);
        for (int k = 0; k < TABLES; k++) record_table(names[i], text, length, &arena);
        dl_arena_free(&arena);
    }
    recorded_close();
}

static void record_quantities(void) {
    static const char *const units[] = {"",      "B",    "GB/s", "Gb/s", "MiB", "us", "ms",
                                        "s",     "W",    "GHz",  "kB",   "TB",  "h",  "Tflop/s",
                                        "KiB/s", "flop", "%",    "ns",   "d",   "J"};
    char text[64], shown[64];
    double value = 0;
    struct dl_err err = {0};
    const double size = pow(10, 12 * check_uniform(&seed) - 6);
    const int digits = 1 + upto(6);
    const bool negative = upto(6) == 0;
    const char *space = upto(4) == 0 ? " " : "";
    snprintf(text, sizeof text, "%.*g%s%s", digits, negative ? -size : size, space,
             units[upto(20)]);
    recorded_case(text);
    for (int unit = 0; unit < DL_UNITS; unit++) {
        err = (struct dl_err){0};
        if (dl_units_parse(text, (enum dl_unit)unit, &value, &err) == DL_OK)
            recorded_number("value", value);
        else
            recorded_error("refusal", &err);
        dl_units_format(pow(10, 24 * check_uniform(&seed) - 12), (enum dl_unit)unit, shown,
                        sizeof shown);
        recorded_text("format", shown);
    }
    recorded_end_case();
}

static void record_list(void) {
    static const char letters[] = "0123456789,,--**12 x";
    char text[12];
    int64_t values[16];
    size_t count = 0;
    struct dl_err err = {0};
    struct recorded_sum sum = {0};
    const int length = 1 + upto(8);
    for (int i = 0; i < length; i++) text[i] = letters[upto(20)];
    text[length] = '\0';
    recorded_case(text);
    if (dl_list_parse(text, values, 16, &count, &err) != DL_OK) recorded_error("refusal", &err);
    for (size_t i = 0; i < count && i < 16 && err.code == DL_OK; i++)
        recorded_add(&sum, (double)values[i]);
    recorded_sum_of("list", &sum);
    recorded_end_case();
}

static void record_network(void) {
    static const char *const names[] = {"gpt", "bert_base", "resnet50", "llama2_13b", "vgg16"};
    static const char *const parameters[] = {"layers",  "hidden", "heads", "seq", "vocab",
                                             "experts", "topk",   "input", "zzz"};
    static const char *const values[] = {"1",    "2", "4",  "12", "64", "768",
                                         "1000", "0", "-3", "x",  "",   "1.5"};
    const struct dl_data data = {.directories = directories, .directory_count = 1};
    struct dl_arena arena = {0};
    char text[128];
    int at = snprintf(text, sizeof text, "%s", names[upto(5)]);
    const int count = 1 + upto(4);
    for (int i = 0; i < count; i++) {
        const char *parameter = parameters[upto(9)];
        const int sound = upto(3) == 0 ? 12 : 6;
        at += snprintf(text + at, sizeof text - (size_t)at, "%c%s=%s", i == 0 ? ':' : ',',
                       parameter, values[upto(sound)]);
    }
    recorded_case(text);
    record_load(&data, &kinds[3], text, &arena);
    recorded_end_case();
    dl_arena_free(&arena);
}

static void record_statistics(void) {
    double x[40], scratch[40], low, high;
    bool outlier[40];
    struct recorded_sum sum = {0};
    const size_t n = 1 + (size_t)upto(40);
    for (size_t i = 0; i < n; i++) {
        const double far = upto(10) == 0 ? 5 : 1;
        x[i] = exp(check_uniform(&seed)) * far + (i < 3 ? 2 : 0);
    }
    recorded_case("statistics");
    recorded_number("warm-up", (double)dl_warmup_samples(x, n, scratch));
    recorded_number("drift_frac", dl_drift_frac(x, n, scratch));
    recorded_number("outliers", (double)dl_outliers(x, n, outlier, scratch));
    recorded_add(&sum, dl_mean(x, n)), recorded_add(&sum, dl_stddev(x, n));
    recorded_add(&sum, dl_median(x, n, scratch)), recorded_add(&sum, dl_mad(x, n, scratch));
    dl_sort(x, n);
    dl_median_interval(x, n, &low, &high);
    recorded_add(&sum, low), recorded_add(&sum, high);
    recorded_add(&sum, dl_quantile_sorted(x, n, check_uniform(&seed)));
    recorded_sum_of("mean to quantile", &sum);
    recorded_number("repeats", (double)dl_repeats_wanted(x, n, 0.05));
    recorded_number("normal_quantile", dl_normal_quantile(check_uniform(&seed)));
    recorded_number("expected_max", dl_normal_expected_max(1 + upto(5000)));
    const double size = 1 + upto(16), all = 1 + upto(64);
    recorded_number("expected_order", dl_normal_expected_order(1 + upto((int)all), all, size));
    recorded_end_case();
}

static void texts(void **state) {
    (void)state;
    recorded_open("texts");
    seed = 84;
    for (int i = 0; i < TEXTS; i++) {
        if (i % 4 == 0) record_quantities();
        if (i % 4 == 1) record_list();
        if (i % 4 == 2) record_network();
        if (i % 4 == 3) record_statistics();
    }
    recorded_close();
}

static int find_data(void **state) {
    (void)state;
    snprintf(directory, sizeof directory, "%s/data", check_root());
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(documents), cmocka_unit_test(settings),
                                       cmocka_unit_test(tables), cmocka_unit_test(texts)};
    return cmocka_run_group_tests(tests, find_data, NULL);
}
