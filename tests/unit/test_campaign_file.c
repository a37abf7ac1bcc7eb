/* Campaigns as files: what is read of one, and what is refused with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/search/campaign/campaign_file.h"
#include "tests/check.h"

static struct dl_arena arena;
static char folder[128], path[160];

static int setup(void **state) {
    (void)state;
    if (!check_directory(folder, sizeof folder)) return -1;
    snprintf(path, sizeof path, "%s/campaign.json", folder);
    return 0;
}
static int teardown(void **state) {
    (void)state;
    unlink(path), rmdir(folder);
    dl_arena_free(&arena);
    return 0;
}

#define HEAD "{\"format\": \"dlmodel-campaign\", \"version\": 1,\n"
#define WORDS                                                                                      \
    "\"workload\": \"lenet\", \"framework\": \"pytorch-ddp\", \"precision\": \"fp32\", "           \
    "\"optimizer\": \"adam\",\n"
#define TRIALS                                                                                     \
    "\"trials\": [{\"batch_per_device\": 32, \"parameters\": {\"lr\": 0.1, \"act\": \"relu\"}},\n" \
    "{\"batch_per_device\": 64}]}\n"

static enum dl_code read_text(const char *text, struct dl_campaign_file *out, struct dl_err *err) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    memset(err, 0, sizeof *err);
    return dl_campaign_read(path, &arena, out, err);
}

static void what_is_read(void **state) {
    (void)state;
    struct dl_campaign_file c;
    struct dl_err err;
    if (read_text(HEAD WORDS
                  "\"steps\": 1000, \"devices_per_trial\": 2, \"input\": \"64x64\", " TRIALS,
                  &c, &err) != DL_OK)
        fail_msg("%s: %s", err.key, err.message);
    assert_string_equal(c.workload, "lenet");
    assert_string_equal(c.framework, "pytorch-ddp");
    assert_string_equal(c.precision, "fp32");
    assert_string_equal(c.optimizer, "adam");
    assert_string_equal(c.input, "64x64");
    assert_int_equal(c.steps, 1000);
    assert_int_equal(c.devices_per_trial, 2);
    assert_int_equal(c.trial_count, 2);
    assert_int_equal(c.trials[0].batch_per_device, 32);
    assert_int_equal(c.trials[0].parameter_count, 2);
    assert_string_equal(c.trials[0].parameters[0].key, "lr");
    check_close(c.trials[0].parameters[0].number, 0.1, 0);
    assert_string_equal(c.trials[0].parameters[1].text, "relu");
    assert_int_equal(c.trials[1].batch_per_device, 64);
    assert_int_equal(c.trials[1].parameter_count, 0);
    assert_int_equal(
        read_text(HEAD WORDS "\"steps\": 1, \"devices_per_trial\": 1, " TRIALS, &c, &err), DL_OK);
    assert_null(c.input);
}

static void what_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *key, *message;
        int line;
    } rows[] = {
        {HEAD WORDS "\"steps\": 1, \"devices_per_trial\": 1, \"trials\": []}\n", "trials",
         "expected at least one trial", 3},
        {HEAD WORDS "\"devices_per_trial\": 1, " TRIALS, "steps", "missing", 1},
        {HEAD WORDS "\"steps\": 1, " TRIALS, "devices_per_trial", "missing", 1},
        {HEAD "\"steps\": 1, \"devices_per_trial\": 1, " TRIALS, "workload", "missing", 1},
        {HEAD WORDS "\"steps\": 0, \"devices_per_trial\": 1, " TRIALS, "steps",
         "expected a whole number in [1, 1e9], got 0", 3},
        {HEAD WORDS "\"steps\": 1, \"devices_per_trial\": 2000000000, " TRIALS, "devices_per_trial",
         "expected a whole number in [1, 1e9], got 2e9", 3},
        {HEAD WORDS "\"steps\": 1, \"devices_per_trial\": 1, \"trials\": [{}]}",
         "trials[0].batch_per_device", "missing", 3},
        {HEAD WORDS "\"steps\": 1, \"devices_per_trial\": 1}\n", "trials", "missing", 1},
        {HEAD WORDS "\"step\": 1}\n", "step", "unknown key; did you mean steps?", 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct dl_campaign_file c;
        struct dl_err err;
        assert_int_equal(read_text(rows[i].text, &c, &err), DL_ERR_INPUT);
        if (strcmp(err.key, rows[i].key) != 0 || strstr(err.message, rows[i].message) == NULL ||
            err.line != rows[i].line)
            fail_msg("row %zu: %d: %s: %s", i, err.line, err.key, err.message);
        assert_string_equal(err.file, path);
    }
    struct dl_campaign_file c;
    struct dl_err err;
    assert_int_equal(dl_campaign_read("/nonexistent/c.json", &arena, &c, &err), DL_ERR_INPUT);
}

#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {test(what_is_read), test(what_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
