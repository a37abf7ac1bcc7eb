/* Plans and the terms that `explain` shows of them, as tests/golden/explained.txt records it: one
 * line per plan (as in plans.txt). Of the layers of a network the first ones of each pass stand for
 * all. `make golden-accept` rewrites the outcomes; the diff is reviewed. */
#include <cjson/cJSON.h>

#include "include/dlmodel.h"
#include "tests/text_cases.h"

/* of each group but memory */
enum { LAYERS_SHOWN = 2, TERMS_SHOWN = 6 };

static double number_of(const cJSON *term, const char *key) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(term, key);
    return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

static const char *text_of(const cJSON *term, const char *key) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(term, key));
    return text != NULL ? text : "";
}

/* "; all_reduce 2 of 5 0.0164 +-0.3 limited by intra: 33.5 MB ring/LL ..." */
static void add_term(char *out, const cJSON *term) {
    const double seconds = number_of(term, "value_s"), sigma = number_of(term, "sigma_log"),
                 start_s = number_of(term, "start_s");
    const char *limit = text_of(term, "limit"), *inputs = text_of(term, "inputs");
    text_case_add(out, "; %s %.5g", text_of(term, "term"),
                  isnan(seconds) ? number_of(term, "value_bytes") : seconds);
    if (!isnan(start_s)) text_case_add(out, " at %.4g", start_s);
    if (!isnan(sigma)) text_case_add(out, " +-%.3g", sigma);
    if (*limit != 0) text_case_add(out, " limited by %s", limit);
    if (*inputs != 0) text_case_add(out, ": %s", inputs);
}

/* The request of "system=dgx1-v100 nodes=4 sequence-parallel set=links.inter.bandwidth=1GB/s". */
static char *request_of(const char *plan) {
    char words[TEXT_CASE_BYTES], *rest = words;
    cJSON *request = cJSON_CreateObject();
    cJSON_AddStringToObject(request, "command", "explain");
    cJSON *options = cJSON_AddObjectToObject(request, "options"),
          *set = cJSON_AddObjectToObject(request, "set");
    snprintf(words, sizeof words, "%s", plan);
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;) {
        char *value = strchr(word, '=');
        if (value != NULL) *value++ = 0;
        if (value == NULL) {
            cJSON_AddTrueToObject(options, word);
        } else if (strcmp(word, "set") == 0) {
            char *changed = strchr(value, '=');
            assert_non_null(changed);
            *changed++ = 0;
            cJSON_AddStringToObject(set, value, changed);
        } else {
            cJSON_AddStringToObject(options, word, value);
        }
    }
    char *text = cJSON_PrintUnformatted(request);
    cJSON_Delete(request);
    return text;
}

static void outcome(void *user, const char *plan, char *out) {
    char *request = request_of(plan);
    struct dlmodel_answer *answer = dlmodel_call(user, request, NULL);
    cJSON *root = cJSON_Parse(dlmodel_answer_json(answer)), *term;
    const cJSON *terms = cJSON_GetObjectItemCaseSensitive(root, "terms");
    const char *group = "";
    int shown = 0;
    *out = 0;
    if (cJSON_GetArraySize(terms) == 0) text_case_add(out, "refused");
    cJSON_ArrayForEach(term, terms) {
        const bool layer = strstr(text_of(term, "formula"), "F-KERNEL") != NULL;
        if (strcmp(group, text_of(term, "group")) != 0) group = text_of(term, "group"), shown = 0;
        if (shown++ < (layer ? LAYERS_SHOWN : TERMS_SHOWN) || strcmp(group, "memory") == 0)
            add_term(out, term);
    }
    cJSON_Delete(root);
    dlmodel_answer_free(answer);
    cJSON_free(request);
}

static void every_plan(void **state) {
    char data[TEXT_CASE_BYTES];
    snprintf(data, sizeof data, "%s/data", check_root());
    const struct dlmodel_settings settings = {.data_directory = data};
    struct dlmodel_context *context = dlmodel_context_open(&settings);
    assert_non_null(context);
    check_text_cases("explained.txt", outcome, text_case_close, context);
    dlmodel_context_close(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_plan)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
