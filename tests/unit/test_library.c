/* include/dlmodel.h: the same figures as the model's own functions, options that replace and add,
 * errors as sentences. */
#include "include/dlmodel.h"
#include "model/core/json.h"
#include "tests/check.h"

static struct dlmodel *open_data(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s/data", check_root());
    struct dlmodel *m = dlmodel_open(path);
    assert_non_null(m);
    return m;
}

static void set(struct dlmodel *m, const char *name, const char *value) {
    if (dlmodel_option(m, name, value) != DLMODEL_OK) fail_msg("%s", dlmodel_error(m));
}

static void predict(struct dlmodel *m) {
    if (dlmodel_predict(m) != DLMODEL_OK) fail_msg("%s", dlmodel_error(m));
}

static void a_prediction_by_names(void **state) {
    struct dlmodel *m = open_data();
    check_nan(dlmodel_value(m, "iteration_s")); /* nothing predicted yet */
    set(m, "workload", "vgg16");
    set(m, "nodes", "4");
    predict(m);
    const double four = dlmodel_value(m, "iteration_s");
    assert_string_equal(dlmodel_text(m, "system"), "iris-v100");
    assert_string_equal(dlmodel_text(m, "framework"), "pytorch-ddp");
    check_close(dlmodel_value(m, "nodes"), 4, 0);
    check_close(dlmodel_value(m, "devices"), 16, 0);
    check_close(dlmodel_value(m, "fits"), 1, 0);
    check_close(four,
                dlmodel_value(m, "compute_s") + dlmodel_value(m, "exposed_comm_s") +
                    dlmodel_value(m, "exposed_input_s") + dlmodel_value(m, "bubble_s") +
                    dlmodel_value(m, "overhead_s"),
                1e-9); /* F-ITERATION */
    assert_true(dlmodel_value(m, "memory.total_bytes") > 1e9 &&
                dlmodel_value(m, "iteration_low_s") < four);
    check_nan(dlmodel_value(m, "bottleneck")); /* a word */
    check_nan(dlmodel_value(m, "no such name"));
    assert_null(dlmodel_text(m, "iteration_s"));
    assert_null(dlmodel_warning(m, 1000));
    enum { MOST = 128 };
    double values[MOST];
    const char *texts[MOST], *type = NULL;
    const int columns = dlmodel_row(m, values, texts, MOST);
    assert_in_range(columns, 60, MOST);
    assert_null(dlmodel_column(columns, NULL));
    for (int i = 0; i < columns; i++) { /* all at once are the same */
        const char *name = dlmodel_column(i, &type);
        const double one = dlmodel_value(m, name);
        assert_true(values[i] == one || (isnan(values[i]) && isnan(one)));
        assert_ptr_equal(texts[i], dlmodel_text(m, name));
        assert_true(texts[i] == NULL || strcmp(type, "string") == 0);
    }
    set(m, "set", "links.inter.bandwidth=1GB/s");
    check_nan(dlmodel_value(m, "iteration_s")); /* that one is gone with the change */
    assert_int_equal(dlmodel_row(m, values, texts, MOST), 0);
    predict(m);
    assert_true(dlmodel_value(m, "iteration_s") > 1.05 * four);
    set(m, "nodes", "1"); /* in place of 4; "set" stays */
    predict(m);
    check_close(dlmodel_value(m, "devices"), 4, 0);
    dlmodel_reset(m);
    set(m, "workload", "vgg16");
    set(m, "nodes", "4");
    predict(m);
    check_close(dlmodel_value(m, "iteration_s"), four, 0);
    dlmodel_close(m);
    dlmodel_close(NULL);
}

static void errors_are_sentences(void **state) {
    struct dlmodel *m = open_data();
    assert_int_equal(dlmodel_option(m, "workloads", "vgg16"), DLMODEL_USAGE);
    check_contains(dlmodel_error(m), "workload");
    assert_int_equal(dlmodel_option(m, NULL, NULL), DLMODEL_USAGE);
    assert_int_equal(dlmodel_option(m, "workload", NULL), DLMODEL_USAGE); /* it takes a value */
    set(m, "workload", "vgg61");
    assert_string_equal(dlmodel_error(m), "");
    assert_int_equal(dlmodel_predict(m), DLMODEL_USAGE);
    check_contains(dlmodel_error(m), "vgg61");
    check_nan(dlmodel_value(m, "iteration_s"));
    set(m, "workload", "vgg16");
    set(m, "nodes", "1,2");
    assert_int_equal(dlmodel_predict(m), DLMODEL_USAGE);
    check_contains(dlmodel_error(m), "one number of nodes");
    set(m, "nodes", "1");
    set(m, "set", "links.intr.bandwidth=1GB/s");
    assert_int_equal(dlmodel_predict(m), DLMODEL_USAGE);
    check_contains(dlmodel_error(m), "links.intr");
    dlmodel_reset(m);
    set(m, "workload", "gpt2_xl"); /* too large for 16 GB with Adam: no error, an answer */
    set(m, "batch-per-device", "64");
    predict(m);
    check_close(dlmodel_value(m, "fits"), 0, 0);
    dlmodel_close(m);
    m = dlmodel_open("/nonexistent");
    assert_int_equal(dlmodel_predict(m), DLMODEL_SYSTEM);
    check_contains(dlmodel_error(m), "/nonexistent");
    dlmodel_close(m);
}

static struct dlmodel_answer *ask(struct dlmodel_context *c, const char *request, int status) {
    struct dlmodel_answer *a = dlmodel_call(c, request, NULL);
    assert_non_null(a);
    if ((int)dlmodel_answer_status(a) != status)
        fail_msg("%s: %d %s", request, (int)dlmodel_answer_status(a), dlmodel_answer_json(a));
    return a;
}

static void requests_in_a_shared_context(void **state) {
    char path[4096];
    snprintf(path, sizeof path, "%s/data", check_root());
    const struct dlmodel_settings settings = {.data_directory = path, .names_only = 1};
    struct dlmodel_context *c = dlmodel_context_open(&settings);
    struct dlmodel *m = dlmodel_open_in(c);
    assert_non_null(m);
    predict(m);
    struct dlmodel_answer *a =
        ask(c,
            "{\"command\": \"predict\", \"options\": {\"system\": \"iris-v100\", \"framework\": "
            "\"pytorch-ddp\", \"nodes\": 1, \"first-epoch\": false}}",
            DLMODEL_OK);
    char number[64], digits[DL_NUMBER_TEXT];
    dl_number_text(dlmodel_value(m, "iteration_s"), digits);
    snprintf(number, sizeof number, "\"iteration_s\": %s,", digits);
    check_contains(dlmodel_answer_json(a), number);
    assert_null(dlmodel_answer_error(a));
    dlmodel_close(m);
    dlmodel_context_close(c); /* answers live on */
    check_contains(dlmodel_answer_json(a), "dlmodel-prediction");
    dlmodel_answer_free(a);
    dlmodel_answer_free(NULL);
}

static void refused_requests(void **state) {
    static const struct {
        const char *request, *says;
        int status;
    } cases[] = {
        {"", "empty", DLMODEL_INPUT},
        {"{\"command\": 1}", "\"line\": 1", DLMODEL_INPUT},
        {"{\"command\": \"predict\", \"sytem\": 1}", "unknown key", DLMODEL_INPUT},
        {"{\"command\": \"calibrate\"}", "no command", DLMODEL_USAGE},
        {"{\"command\": \"predict\", \"options\": {\"output\": \"x\"}}", "no option of a request",
         DLMODEL_USAGE},
        {"{\"command\": \"predict\", \"options\": {\"strict\": 2}}", "true or false",
         DLMODEL_USAGE},
        {"{\"command\": \"predict\", \"options\": {\"system\": \"/etc/x.json\"}}", "not read here",
         DLMODEL_USAGE},
        {"{\"command\": \"compare\", \"arguments\": [\"/etc/passwd\"]}", "not read here",
         DLMODEL_USAGE},
        {"{\"command\": \"predict\", \"set\": {\"links.nothing\": 1}}", "no field", DLMODEL_USAGE},
        {"{\"command\": \"compare\", \"arguments\": [\"r.csv\"], \"files\": {\"r.csv\": \"id\"}}",
         "\"file\": \"r.csv\"", DLMODEL_INPUT},
    };
    char path[4096];
    snprintf(path, sizeof path, "%s/data", check_root());
    const struct dlmodel_settings settings = {.data_directory = path, .names_only = 1};
    struct dlmodel_context *c = dlmodel_context_open(&settings);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dlmodel_answer *a = ask(c, cases[i].request, cases[i].status);
        check_contains(dlmodel_answer_error(a), cases[i].says);
        check_contains(dlmodel_answer_error(a), "\"kind\"");
        assert_string_equal(dlmodel_answer_json(a), dlmodel_answer_error(a));
        dlmodel_answer_free(a);
    }
    dlmodel_context_close(c);
    const struct dlmodel_settings nowhere = {.data_directory = "/nonexistent"};
    c = dlmodel_context_open(&nowhere);
    dlmodel_answer_free(ask(c, "{\"command\": \"predict\"}", DLMODEL_SYSTEM));
    dlmodel_context_close(c);
    dlmodel_context_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prediction_by_names), cmocka_unit_test(errors_are_sentences),
        cmocka_unit_test(requests_in_a_shared_context), cmocka_unit_test(refused_requests)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
