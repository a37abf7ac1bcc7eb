/* What scripts rely on: the JSON and CSV that the program prints, read back with our own parsers.
 * Fields by name and kind, the identities between them, and the same rows in both formats. Runs the
 * program that was built with this test.
 */
#include <sys/wait.h>

#include "model/core/csv.h"
#include "model/core/json_node.h"
#include "tests/check.h"

static char program[4096]; /* BUILD/dlmodel, from BUILD/tests/unit/test_contract */

static int find_program(void **state) {
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    char *slash = NULL;
    if (length <= 0) return -1;
    program[length] = 0;
    for (int up = 0; up < 3; up++) {
        slash = strrchr(program, '/');
        if (slash == NULL) return -1;
        *slash = 0;
    }
    memcpy(slash, "/dlmodel", sizeof "/dlmodel"); /* shorter than what was cut off */
    return access(program, X_OK);
}

/* Standard output of the program; its exit status must be the expected one. */
static char *run(int expected, const char *arguments) {
    char *command = dl_arena_printf(
        &test_arena,
        "DLMODEL_LOCAL=/dev/null/x '%s' -q --data '%s/data' %s 2> /dev/null < /dev/null", program,
        check_root(), arguments);
    assert_non_null(command);
    FILE *pipe = popen(command, "r"); /* NOLINT: a constant command line of this test */
    assert_non_null(pipe);
    size_t length = 0, capacity = 1 << 22, got;
    char *text = dl_arena_alloc(&test_arena, capacity + 1, 1);
    assert_non_null(text);
    while ((got = fread(text + length, 1, capacity - length, pipe)) > 0) length += got;
    const int status = pclose(pipe);
    assert_true(length < capacity);
    text[length] = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != expected)
        fail_msg("status %d of: %s", status, command);
    assert_true(length > 0 && text[length - 1] == '\n');
    return text;
}

static const struct dl_json_node *json(const char *arguments) {
    const char *text = run(0, arguments);
    struct dl_json *doc = NULL;
    struct dl_err err = {0};
    if (dl_json_parse("stdout", text, strlen(text), &test_arena, &doc, &err) != DL_OK) {
        fail_msg("%d:%d: %s %s", err.line, err.col, err.key, err.message);
    }
    return doc->root;
}

static const struct dl_json_node *member(const struct dl_json_node *object, const char *key,
                                         enum dl_json_kind kind) {
    const struct dl_json_node *node = dl_json_member(object, key, strlen(key));
    if (node == NULL) fail_msg("no member %s", key);
    if (node->kind != kind)
        fail_msg("%s is of kind %d, expected %d", key, (int)node->kind, (int)kind);
    return node;
}
static double number(const struct dl_json_node *object, const char *key) {
    return member(object, key, DL_JSON_NUMBER)->number;
}
static const char *string(const struct dl_json_node *object, const char *key) {
    return member(object, key, DL_JSON_STRING)->string;
}

static bool is_one_of(const char *word, const char *const *words) {
    for (; *words != NULL; words++) {
        if (strcmp(word, *words) == 0) return true;
    }
    return false;
}

static void check_header(const struct dl_json_node *root, const char *format) {
    assert_string_equal(string(root, "format"), format);
    assert_true(number(root, "version") == 1);
    (void)string(member(root, "dlmodel", DL_JSON_OBJECT), "version");
    (void)string(member(root, "dlmodel", DL_JSON_OBJECT), "commit");
    (void)member(root, "inputs", DL_JSON_OBJECT);
}

static double memory_sum(const struct dl_json_node *memory) {
    static const char *const parts[] = {"weights_bytes",     "gradients_bytes", "optimizer_bytes",
                                        "activations_bytes", "workspace_bytes", "buffers_bytes",
                                        "context_bytes"};
    double sum = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        assert_true(number(memory, parts[i]) >= 0);
        sum += number(memory, parts[i]);
    }
    return sum;
}

static void check_result(const struct dl_json_node *r) {
    static const char *const bottlenecks[] = {"compute",       "memory-bandwidth",
                                              "latency",       "intra-link",
                                              "inter-link",    "host-copy",
                                              "host",          "parameter-server",
                                              "input",         "pipeline-bubble",
                                              "framework",     "memory-capacity",
                                              "scaling-limit", NULL};
    static const char *const words[] = {"system", "workload", "framework", "strategy", "precision"};
    static const char *const times[] = {
        "forward_s",      "backward_s", "update_s",        "compute_s", "comm_s",
        "exposed_comm_s", "input_s",    "exposed_input_s", "bubble_s",  "overhead_s"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        assert_true(string(r, words[i])[0] != 0);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        assert_true(number(r, times[i]) >= 0);
    const double iteration_s = number(r, "iteration_s"), devices = number(r, "devices");
    check_close(number(r, "compute_s") + number(r, "exposed_comm_s") +
                    number(r, "exposed_input_s") + number(r, "bubble_s") + number(r, "overhead_s"),
                iteration_s, 1e-12);
    check_close(number(r, "forward_s") + number(r, "backward_s") + number(r, "update_s"),
                number(r, "compute_s"), 1e-12);
    assert_true(number(r, "iteration_low_s") <= iteration_s &&
                iteration_s <= number(r, "iteration_high_s"));
    assert_true(number(r, "exposed_comm_s") <= number(r, "comm_s") * (1 + 1e-12));
    check_close(number(r, "throughput_samples_per_s"),
                number(r, "global_batch_samples") / iteration_s, 1e-12);
    check_close(number(r, "global_batch_samples"),
                number(r, "batch_per_device_samples") * number(r, "dp"), 1e-12);
    assert_true(number(r, "scaling_efficiency") > 0);
    assert_true(number(r, "epoch_s") > 0);
    assert_true(devices == 4 * number(r, "nodes")); /* iris-v100 has four a node */
    assert_true(number(r, "dp") * number(r, "tp") * number(r, "pp") * number(r, "sp") == devices);
    const struct dl_json_node *memory = member(r, "memory", DL_JSON_OBJECT);
    check_close(number(memory, "total_bytes"), memory_sum(memory), 1e-12);
    assert_int_equal(member(r, "fits", DL_JSON_BOOL)->boolean,
                     number(memory, "total_bytes") <= number(memory, "capacity_bytes"));
    assert_true(is_one_of(string(r, "bottleneck"), bottlenecks));
    assert_true(number(r, "bottleneck_share") > 0 && number(r, "bottleneck_share") <= 1);
    (void)member(r, "extrapolated", DL_JSON_BOOL);
    (void)member(r, "warnings", DL_JSON_ARRAY);
}

static void predictions_in_json(void **state) {
    const struct dl_json_node *root = json("predict --system iris-v100 --nodes 1-16*2 --json");
    check_header(root, "dlmodel-prediction");
    const struct dl_json_node *results = member(root, "results", DL_JSON_ARRAY);
    assert_true(results->child_count >= 5 * 10);
    for (const struct dl_json_node *r = results->child; r != NULL; r = r->next) check_result(r);
}

/* The number or word of a JSON result under a CSV column, where "memory.total_bytes" is a member of
 * a member. */
static const struct dl_json_node *under_column(const struct dl_json_node *r, const char *column) {
    const char *dot = strchr(column, '.');
    if (dot == NULL) return dl_json_member(r, column, strlen(column));
    r = dl_json_member(r, column, (size_t)(dot - column));
    return r == NULL ? NULL : dl_json_member(r, dot + 1, strlen(dot + 1));
}

static void csv_and_json_carry_the_same(void **state) {
    const char *arguments = "predict --system azure-nc24rs-p100 --workload vgg16 --nodes 1,4";
    const char *text = run(0, dl_arena_printf(&test_arena, "%s --csv", arguments));
    const struct dl_json_node *r = member(
        json(dl_arena_printf(&test_arena, "%s --json", arguments)), "results", DL_JSON_ARRAY);
    struct dl_csv csv;
    assert_int_equal(dl_csv_parse("stdout", text, strlen(text), &test_arena, &csv, NULL), DL_OK);
    assert_int_equal(csv.row_count, r->child_count);
    assert_true(csv.row_count >= 10);
    r = r->child;
    for (int row = 0; row < csv.row_count; row++, r = r->next) {
        for (int c = 0; c < csv.column_count; c++) {
            const struct dl_json_node *value = under_column(r, csv.header[c]);
            const char *cell = csv.rows[row][c];
            if (value == NULL) fail_msg("column %s is not in the JSON", csv.header[c]);
            if (value->kind == DL_JSON_NUMBER)
                check_close(strtod(cell, NULL), value->number, 1e-15);
            if (value->kind == DL_JSON_STRING) assert_string_equal(cell, value->string);
            if (value->kind == DL_JSON_BOOL)
                assert_string_equal(cell, value->boolean ? "true" : "false");
            if (value->kind == DL_JSON_NULL) assert_string_equal(cell, "");
        }
        /* nothing is missing from the CSV */
        for (const struct dl_json_node *m = r->child; m != NULL; m = m->next) {
            const bool nested = m->kind == DL_JSON_OBJECT || m->kind == DL_JSON_ARRAY;
            if (!nested && dl_csv_column(&csv, m->key) < 0)
                fail_msg("%s is not in the CSV", m->key);
        }
    }
}

static void comparisons_in_json(void **state) {
    const char *root_path = check_root();
    const struct dl_json_node *root = json(dl_arena_printf(
        &test_arena,
        "compare '%s/data/runs/tensorflow_2017.csv' '%s/tests/fixtures/unpredictable_runs.csv' "
        "--json",
        root_path, root_path));
    static const char *const errors[] = {"mape_pct", "median_ape_pct", "p90_ape_pct",
                                         "max_ape_pct"};
    int predicted = 0, skipped = 0, all = 0;
    check_header(root, "dlmodel-comparison");
    for (const struct dl_json_node *r = member(root, "rows", DL_JSON_ARRAY)->child; r != NULL;
         r = r->next) {
        assert_true(string(r, "id")[0] != 0);
        assert_true(strcmp(string(r, "unit"), "samples/s") == 0 ||
                    strcmp(string(r, "unit"), "s") == 0);
        if (member(r, "skipped", DL_JSON_BOOL)->boolean) {
            assert_true(string(r, "why")[0] != 0);
            (void)member(r, "predicted", DL_JSON_NULL);
            skipped++;
            continue;
        }
        const double measured = number(r, "measured");
        check_close(number(r, "error_pct"), 100 * (number(r, "predicted") - measured) / measured,
                    1e-12);
        assert_true(string(r, "bottleneck")[0] != 0);
        predicted++;
    }
    assert_true(predicted > 10 && skipped > 0); /* the second file's strategy is unknown */
    for (const struct dl_json_node *s = member(root, "summary", DL_JSON_ARRAY)->child; s != NULL;
         s = s->next) {
        const char *group = string(s, "group");
        if (strcmp(group, "all") != 0 && strcmp(group, "all-by-source") != 0) continue;
        all++;
        assert_true(number(s, "rows") == predicted);
        for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++)
            assert_true(number(s, errors[e]) >= 0);
        assert_true(fabs(number(s, "bias_pct")) <= number(s, "mape_pct") * (1 + 1e-12));
    }
    assert_int_equal(all, 2);
}

/* What a user's table says may be anything; what we print of it is JSON all the same. */
static void names_of_any_bytes_stay_json(void **state) {
    char folder[256];
    assert_true(check_directory(folder, sizeof folder));
    char *path = dl_arena_printf(&test_arena, "%s/odd.csv", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(
        "id,source,system,framework,workload,nodes,devices_per_node,batch_per_device,metric,value\n"
        "\"a\"\"\t\\\n\x01\",\"s\xff\xfe\",iris-v100,ideal,resnet50,1,4,32,throughput,1000\n",
        file);
    assert_int_equal(fclose(file), 0);
    const struct dl_json_node *rows = member(
        json(dl_arena_printf(&test_arena, "compare '%s' --json", path)), "rows", DL_JSON_ARRAY);
    assert_int_equal(rows->child_count, 1);
    assert_string_equal(string(rows->child, "id"), "a\"\t\\\n\x01");
    assert_int_equal(remove(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predictions_in_json),
        cmocka_unit_test(csv_and_json_carry_the_same),
        cmocka_unit_test(comparisons_in_json),

        cmocka_unit_test(names_of_any_bytes_stay_json),
    };
    return cmocka_run_group_tests(tests, find_program, check_free);
}
