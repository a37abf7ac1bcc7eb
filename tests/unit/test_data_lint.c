/* What is shipped in data/: every file loads, every number has a source that the bibliography
 * knows, every name that a file uses is there. */
#include <dirent.h>

#include "model/core/csv.h"
#include "model/catalog/data.h"
#include "model/core/file.h"
#include "model/framework/release.h"
#include "tests/check.h"

struct shipped {
    char root[512];
    const char *directories[1];
    struct dl_data data;
    struct dl_arena arena;
    struct dl_err err;
    char *bibliography;
};

static int setup(void **state) {
    struct shipped *shipped = calloc(1, sizeof *shipped);
    if (shipped == NULL) return -1;
    snprintf(shipped->root, sizeof shipped->root, "%s/data", check_root());
    shipped->directories[0] = shipped->root;
    shipped->data = (struct dl_data){.directories = shipped->directories, .directory_count = 1};
    const char *path = dl_arena_printf(&shipped->arena, "%s/SOURCES.md", shipped->root);
    size_t length;
    *state = shipped;
    return dl_file_read(path, 1 << 20, &shipped->arena, &shipped->bibliography, &length,
                        &shipped->err) == DL_OK
               ? 0
               : -1;
}

static int teardown(void **state) {
    struct shipped *shipped = *state;
    dl_arena_free(&shipped->arena);
    free(shipped);
    return 0;
}

static void fail_loading(const struct shipped *shipped) {
    char text[1500];
    dl_err_text(&shipped->err, "lint", text, sizeof text);
    fail_msg("%s", text);
}

/* --- sources --- */

static bool in_bibliography(const struct shipped *shipped, const char *key, size_t length) {
    char line[128];
    snprintf(line, sizeof line, "\n- `%.*s`:", (int)length, key);
    return strstr(shipped->bibliography, line) != NULL;
}

static void check_keys(const struct shipped *shipped, const char *where, const char *member,
                       const char *source) {
    if (source == NULL || *source == '\0') fail_msg("%s: %s has no source", where, member);
    for (const char *at = source; *at != '\0';) {
        size_t length = strcspn(at, ",");
        if (!in_bibliography(shipped, at, length))
            fail_msg("%s: %s: source '%.*s' is not in SOURCES.md", where, member, (int)length, at);
        at += length;
        at += strspn(at, ", ");
    }
}

/* Every number of one object that its file gives; returns how many there were. */
static int check_numbers(const struct shipped *shipped, const char *where,
                         const struct dl_schema *schema, const void *object, const char *source,
                         const struct dl_map_entry *sources, int source_count) {
    int count = 0;
    for (const struct dl_field *field = schema->fields; field->key != NULL; field++) {
        const char *member = (const char *)object + field->offset;
        bool given = false;
        if (field->type == DL_FIELD_NUMBER) {
            double value;
            memcpy(&value, member, sizeof value);
            given = dl_known(value) &&
                    !(field->has_fallback && value >= field->fallback && value <= field->fallback);
        } else if (field->type == DL_FIELD_INTEGER) {
            int64_t value;
            memcpy(&value, member, sizeof value);
            given = value != DL_ABSENT;
        } else if (field->type == DL_FIELD_LIST || field->type == DL_FIELD_NUMBERS) {
            int items;
            memcpy(&items, (const char *)object + field->count_offset, sizeof items);
            given = items > 0;
        }
        const char *key = source; /* of the object, unless the member has its own */
        for (int i = 0; i < source_count; i++)
            if (strcmp(sources[i].key, field->key) == 0) key = sources[i].text;
        if (given) check_keys(shipped, where, field->key, key);
        count += given;
    }
    for (int i = 0; i < source_count; i++)
        check_keys(shipped, where, sources[i].key, sources[i].text);
    return count;
}

static const struct dl_schema *child(const struct dl_schema *schema, const char *key) {
    for (const struct dl_field *field = schema->fields; field->key != NULL; field++)
        if (strcmp(field->key, key) == 0) return field->child;
    fail_msg("no member %s", key);
    return NULL;
}

static void devices(void **state) {
    struct shipped *s = *state;
    const char **names;
    dl_data_names(&s->data, DL_DATA_DEVICE, &s->arena, &names);
    int count = 0;
    for (; *names != NULL; names++, count++) {
        const struct dl_device *device;
        if (dl_data_device(&s->data, *names, &s->arena, &device, &s->err) != DL_OK) fail_loading(s);
        assert_string_equal(device->name, *names);
        int numbers = check_numbers(s, *names, &dl_device_schema, device, device->source,
                                    device->sources, device->source_count);
        assert_true(numbers >= 8);
        for (int i = 0; i < device->rate_count; i++)
            if (device->rates[i].source != NULL)
                check_keys(s, *names, "rates", device->rates[i].source);
        assert_true(dl_device_peak(device, DL_FP32) > 1e12);
        assert_true(device->memory_bandwidth_bytes_per_s > 5e10);
        for (int i = 0; i < device->kernel_model_count; i++)
            if (device->kernel_models[i].source != NULL)
                check_keys(s, *names, "kernel_models", device->kernel_models[i].source);
        /* a lender that borrows was loaded with its own lender */
        if (device->kernel_models_from != NULL) {
            assert_non_null(device->borrowed);
            assert_true((device->borrowed->kernel_models_from != NULL) ==
                        (device->borrowed->borrowed != NULL));
            assert_true(device->borrowed->kind == device->kind);
        }
    }
    assert_true(count >= 29);
}

static void lint_system(struct shipped *s, const char *name) {
    const struct dl_system *system;
    if (dl_data_system(&s->data, name, &s->arena, &system, &s->err) != DL_OK) fail_loading(s);
    assert_string_equal(system->name, name);
    assert_false(system->has_profile);
    assert_null(system->calibration.measured_on);
    check_numbers(s, name, &dl_system_schema, system, system->source, system->sources,
                  system->source_count);
    const struct dl_schema *links = child(&dl_system_schema, "links");
    const struct dl_link *intra = &system->intra, *inter = &system->inter;
    if (system->has_host)
        check_numbers(s, name, child(&dl_system_schema, "host"), &system->host, system->host.source,
                      system->host.sources, system->host.source_count);
    if (system->has_intra)
        check_numbers(s, name, child(links, "intra"), intra, intra->source, intra->sources,
                      intra->source_count);
    if (system->has_inter)
        check_numbers(s, name, child(links, "inter"), inter, inter->source, inter->sources,
                      inter->source_count);
    if (system->has_fabric)
        check_numbers(s, name, child(&dl_system_schema, "fabric"), &system->fabric,
                      system->fabric.source, system->fabric.sources, system->fabric.source_count);
    if (system->has_storage)
        check_numbers(s, name, child(&dl_system_schema, "storage"), &system->storage,
                      system->storage.source, system->storage.sources,
                      system->storage.source_count);
    /* What a prediction over several nodes cannot do without. */
    if (system->nodes > 1) assert_true(inter->bandwidth_bytes_per_s > 0 && inter->latency_s > 0);
    if (system->device->kind == DL_DEVICE_GPU)
        assert_true(system->has_host && system->host.copy_bandwidth_bytes_per_s > 0);
    assert_true(system->has_host && system->host.memory_bandwidth_bytes_per_s > 0);
}

static void all_systems(void **state) {
    struct shipped *s = *state;
    const char **names;
    dl_data_names(&s->data, DL_DATA_SYSTEM, &s->arena, &names);
    for (; *names != NULL; names++) {
        assert_string_not_equal(*names, "local");
        lint_system(s, *names);
    }
}

static void rings_of_link_graphs(void **state) {
    struct shipped *s = *state;
    /* Published all-reduce rates over 2, 3, 4, 6, 7 and 8 of the 8 V100: 1, 2, 4, 2, 4 and 6 rings
     * of 22.5 GB/s, and none over 5 (37 GB/s then, over the host). */
    static const int cube[] = {0, 0, 1, 2, 4, 0, 2, 4, 6}, mesh[] = {0, 0, 2, 4, 6};
    const struct dl_system *system;
    if (dl_data_system(&s->data, "dgx1-v100", &s->arena, &system, &s->err) != DL_OK)
        fail_loading(s);
    for (int n = 2; n <= 8; n++) assert_int_equal(system->intra.ring_channels[n], cube[n]);
    if (dl_data_system(&s->data, "iris-v100", &s->arena, &system, &s->err) != DL_OK)
        fail_loading(s);
    for (int n = 2; n <= 4; n++) assert_int_equal(system->intra.ring_channels[n], mesh[n]);
    if (dl_data_system(&s->data, "dgx1-p100", &s->arena, &system, &s->err) != DL_OK)
        fail_loading(s);
    assert_int_equal(system->intra.ring_channels[8], 4);
    if (dl_data_system(&s->data, "summit-v100", &s->arena, &system, &s->err) != DL_OK)
        fail_loading(s);
    assert_int_equal(system->intra.ring_channels[3], 4);
    assert_false(system->intra.connected[6]); /* only through the CPUs */
}

/* What a release has is a fact of its own: `source` of the file does not cover it. */
static void check_capabilities(const struct dl_framework *framework) {
    const size_t start = offsetof(struct dl_framework, capabilities),
                 end = start + sizeof framework->capabilities;
    for (const struct dl_field *field = dl_framework_schema.fields; field->key != NULL; field++) {
        if (field->offset < start || field->offset >= end) continue;
        const char *base = (const char *)framework, *member = base + field->offset;
        const bool given = field->type == DL_FIELD_BOOL ? *(const bool *)member
                           : field->type == DL_FIELD_CHOICE
                               ? *(const int *)member >= 0
                               : *(const int *)(base + field->count_offset) > 0;
        bool has_source = false;
        for (int i = 0; i < framework->source_count; i++)
            has_source = has_source || strcmp(framework->sources[i].key, field->key) == 0;
        if (given && !has_source) fail_msg("%s: sources has no %s", framework->name, field->key);
    }
}

static void frameworks_and_workloads(void **state) {
    struct shipped *s = *state;
    const char **names;
    dl_data_names(&s->data, DL_DATA_FRAMEWORK, &s->arena, &names);
    for (; *names != NULL; names++) {
        const struct dl_framework *framework;
        if (dl_data_framework(&s->data, *names, &s->arena, &framework, &s->err) != DL_OK)
            fail_loading(s);
        assert_string_equal(framework->name, *names);
        check_numbers(s, *names, dl_framework_schema_of(framework->behaviour, &s->arena), framework,
                      framework->source, framework->sources, framework->source_count);
        check_keys(s, *names, "source", framework->source);
        check_capabilities(framework);
        if (framework->kernels.optimizer != NULL)
            check_keys(s, framework->kernels.optimizer->name, "source",
                       framework->kernels.optimizer->source);
    }
    dl_data_names(&s->data, DL_DATA_WORKLOAD, &s->arena, &names);
    for (; *names != NULL; names++) {
        const struct dl_workload *workload;
        if (dl_data_workload(&s->data, *names, &s->arena, &workload, &s->err) != DL_OK)
            fail_loading(s);
        assert_string_equal(workload->name, *names);
        check_keys(s, *names, "source", workload->source);
    }
}

/* --- measurements --- */

/* Calls `each` for every row of every .csv of a folder; returns the number of rows. */
static int each_row(struct shipped *s, const char *folder,
                    void (*each)(struct shipped *, const struct dl_csv *, int)) {
    const char *path = dl_arena_printf(&s->arena, "%s/%s", s->root, folder);
    DIR *directory = opendir(path);
    assert_non_null(directory);
    int rows = 0;
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        size_t length = strlen(entry->d_name);
        if (length < 4 || strcmp(entry->d_name + length - 4, ".csv") != 0) continue;
        struct dl_csv csv;
        if (dl_csv_read(dl_arena_printf(&s->arena, "%s/%s", path, entry->d_name), &s->arena, &csv,
                        &s->err) != DL_OK)
            fail_loading(s);
        for (int i = 0; i < csv.row_count; i++) each(s, &csv, i);
        rows += csv.row_count;
        if (strcmp(folder, "runs") == 0)
            assert_true(strstr(s->bibliography, entry->d_name) != NULL);
    }
    closedir(directory);
    return rows;
}

static const char *cell(const struct dl_csv *csv, int row, const char *name) {
    int column = dl_csv_column(csv, name);
    if (column < 0) fail_msg("%s has no column %s", csv->name, name);
    return csv->rows[row][column];
}

static double number(struct shipped *s, const struct dl_csv *csv, int row, const char *name) {
    double value = NAN;
    if (dl_csv_number(csv, row, dl_csv_column(csv, name), &value, &s->err) != DL_OK)
        fail_loading(s);
    return value;
}

enum { RUNS = 436 + 877 + 109 };
static const char *ids[RUNS + 1];
static int id_count;

static void run_row(struct shipped *s, const struct dl_csv *csv, int row) {
    const char *path;
    if (id_count <= RUNS) ids[id_count++] = cell(csv, row, "id");
    if (dl_data_path(&s->data, DL_DATA_SYSTEM, cell(csv, row, "system"), &s->arena, &path,
                     &s->err) != DL_OK)
        fail_loading(s);
    const struct dl_framework *framework;
    if (dl_data_framework(&s->data, cell(csv, row, "framework"), &s->arena, &framework, &s->err) !=
        DL_OK)
        fail_loading(s);
    const char *workload = cell(csv, row, "workload");
    const char *name = dl_arena_strndup(&s->arena, workload, strcspn(workload, ":"));
    if (dl_data_path(&s->data, DL_DATA_WORKLOAD, name, &s->arena, &path, &s->err) != DL_OK)
        fail_loading(s);
    assert_true(number(s, csv, row, "value") > 0);
    assert_true(number(s, csv, row, "nodes") >= 1 && number(s, csv, row, "devices_per_node") >= 1);
    const char *metric = cell(csv, row, "metric"), *unit = cell(csv, row, "unit");
    if (strcmp(metric, "throughput") == 0)
        assert_string_equal(unit, "samples/s");
    else
        assert_true(strcmp(metric, "iteration") == 0 && strcmp(unit, "s") == 0);
    assert_true(cell(csv, row, "source")[0] != '\0');
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void runs(void **state) {
    struct shipped *s = *state;
    id_count = 0;
    assert_int_equal(each_row(s, "runs", run_row), RUNS);
    qsort(ids, RUNS, sizeof ids[0], by_text);
    for (int i = 1; i < RUNS; i++)
        if (strcmp(ids[i], ids[i - 1]) == 0) fail_msg("id %s twice", ids[i]);
}

static void collective_row(struct shipped *s, const struct dl_csv *csv, int row) {
    double bytes = number(s, csv, row, "size_bytes"), time_us = number(s, csv, row, "time_us");
    double rate = number(s, csv, row, "algbw_GBs"), ranks = number(s, csv, row, "ranks");
    const char *path;
    if (dl_data_path(&s->data, DL_DATA_SYSTEM, cell(csv, row, "system"), &s->arena, &path,
                     &s->err) != DL_OK)
        fail_loading(s);
    assert_true(cell(csv, row, "system_as_published")[0] != '\0');
    assert_true(ranks >= 2 && number(s, csv, row, "nodes") >= 1);
    /* A row is a size with its time, or a best rate over sizes that were not printed. */
    assert_true(dl_known(bytes)
                    ? bytes > 0 && (time_us > 0 || rate > 0 || number(s, csv, row, "busbw_GBs") > 0)
                    : number(s, csv, row, "busbw_GBs") > 0);
    assert_true(cell(csv, row, "source")[0] != '\0' && cell(csv, row, "library")[0] != '\0');
    if (dl_known(bytes) && dl_known(time_us) && dl_known(rate))
        check_close(bytes / time_us / 1e3, rate, 0.02);
}

static void kernel_row(struct shipped *s, const struct dl_csv *csv, int row) {
    const bool by_gpu = dl_csv_column(csv, "gpu") >= 0;
    assert_true(number(s, csv, row, by_gpu ? "time_us" : "time_ms") > 0);
    assert_true(cell(csv, row, by_gpu ? "source" : "source_path")[0] != '\0' &&
                cell(csv, row, by_gpu ? "gpu" : "device")[0] != '\0');
}

static void collectives_and_kernels(void **state) {
    struct shipped *s = *state;
    assert_int_equal(each_row(s, "collectives", collective_row), 718 + 1232);
    assert_int_equal(each_row(s, "kernels", kernel_row), 1771 + 3290 + 41194 + 28 + 12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices),
        cmocka_unit_test(all_systems),
        cmocka_unit_test(rings_of_link_graphs),
        cmocka_unit_test(frameworks_and_workloads),
        cmocka_unit_test(runs),
        cmocka_unit_test(collectives_and_kernels),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
