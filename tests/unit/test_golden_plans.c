/* Plans and what is predicted of them, as tests/golden/plans.txt records it: one line per plan,
 * through the public library. `make golden-accept` rewrites the numbers; the diff is reviewed. */
#include <stdbool.h>

#include "include/dlmodel.h"
#include "tests/check.h"
#include "tests/text_cases.h"

/* Left out of a line where they are zero, unknown, or (counts) one. */
static const char *const seconds_and_bytes[] = {
    "iteration_s",
    "iteration_low_s",
    "iteration_high_s",
    "forward_s",
    "backward_s",
    "update_s",
    "comm_s",
    "exposed_comm_s",
    "exposed_input_s",
    "bubble_s",
    "overhead_s",
    "scaling_efficiency",
    "mfu_frac",
    "iteration_energy_j",
    "memory.weights_bytes",
    "memory.gradients_bytes",
    "memory.optimizer_bytes",
    "memory.activations_bytes",
    "memory.workspace_bytes",
    "memory.buffers_bytes",
    "memory.total_bytes",
};
static const char *const counts[] = {"devices", "global_batch_samples", "dp", "tp", "pp", "sp",
                                     "ep",      "micro_batch_samples"};

/* "system=dgx1-v100 nodes=4 sequence-parallel set=links.inter.bandwidth=1GB/s" */
static enum dlmodel_status predict(struct dlmodel *m, const char *plan) {
    char words[TEXT_CASE_BYTES], *rest = words;
    snprintf(words, sizeof words, "%s", plan);
    dlmodel_reset(m);
    enum dlmodel_status status = DLMODEL_OK;
    for (char *word; status == DLMODEL_OK && (word = strtok_r(rest, " ", &rest)) != NULL;) {
        char *value = strchr(word, '=');
        if (value != NULL) *value++ = 0;
        status = dlmodel_option(m, word, value);
    }
    return status == DLMODEL_OK ? dlmodel_predict(m) : status;
}

static void outcome(void *user, const char *plan, char *out) {
    struct dlmodel *m = user;
    *out = 0;
    if (predict(m, plan) != DLMODEL_OK) {
        const char *error = dlmodel_error(m), *text = strchr(error, ' ');
        text = text != NULL ? text + 1 : error; /* without the program's or the file's name */
        text_case_add(out, "refused: %.*s", (int)strcspn(text, "\n"), text);
        return;
    }
    for (size_t i = 0; i < sizeof seconds_and_bytes / sizeof *seconds_and_bytes; i++) {
        const double value = dlmodel_value(m, seconds_and_bytes[i]);
        const char *stem = strchr(seconds_and_bytes[i], '.');
        if (isfinite(value) && value != 0)
            text_case_add(out, "%s=%.6g ", stem != NULL ? stem + 1 : seconds_and_bytes[i], value);
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const double value = dlmodel_value(m, counts[i]);
        if (isfinite(value) && value != 1) text_case_add(out, "%s=%.6g ", counts[i], value);
    }
    if (dlmodel_value(m, "fits") == 0) text_case_add(out, "does-not-fit ");
    int warnings = 0;
    while (dlmodel_warning(m, warnings) != NULL) warnings++;
    if (warnings > 0) text_case_add(out, "warnings=%d ", warnings);
    text_case_add(out, "%s bottleneck=%s:%.4f", dlmodel_text(m, "strategy"),
                  dlmodel_text(m, "bottleneck"), dlmodel_value(m, "bottleneck_share"));
}

static void every_plan(void **state) {
    char data[TEXT_CASE_BYTES];
    snprintf(data, sizeof data, "%s/data", check_root());
    struct dlmodel *m = dlmodel_open(data);
    assert_non_null(m);
    check_text_cases("plans.txt", outcome, text_case_close, m);
    dlmodel_close(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_plan)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
