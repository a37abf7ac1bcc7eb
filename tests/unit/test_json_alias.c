/* Fields and choices that a release renamed: the older name loads and can be set, the new one is
 * written and listed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "model/core/json.h"
#include "tests/check.h"

struct inner {
    double rate_bytes_per_s;
};

struct renamed {
    double delay_s;
    int color;
    struct inner link;
    struct inner *items;
    int item_count;
};

static const struct dl_field inner_fields[] = {
    {.key = "rate_bytes_per_s",
     .alias = "speed_bytes_per_s",
     .type = DL_FIELD_NUMBER,
     .offset = offsetof(struct inner, rate_bytes_per_s),
     .min = 1,
     .max = 1e12,
     .unit = DL_UNIT_BYTE_PER_S,
     .required = true},
    {.key = NULL},
};
static const struct dl_schema inner_schema = {
    .name = "inner", .summary = "a rate", .size = sizeof(struct inner), .fields = inner_fields};
static const char *const colors[] = {"red", "green", NULL};
static const char *const older_colors[] = {NULL, "verdant"};
static const struct dl_field fields[] = {
    {.key = "delay_s",
     .alias = "lag_s",
     .type = DL_FIELD_NUMBER,
     .offset = offsetof(struct renamed, delay_s),
     .unit = DL_UNIT_S},
    {.key = "color",
     .type = DL_FIELD_CHOICE,
     .offset = offsetof(struct renamed, color),
     .choices = colors,
     .choice_aliases = older_colors},
    {.key = "link",
     .alias = "wire",
     .type = DL_FIELD_OBJECT,
     .offset = offsetof(struct renamed, link),
     .child = &inner_schema},
    {.key = "items",
     .alias = "parts",
     .type = DL_FIELD_LIST,
     .offset = offsetof(struct renamed, items),
     .count_offset = offsetof(struct renamed, item_count),
     .child = &inner_schema},
    {.key = NULL},
};
static const struct dl_schema schema = {.name = "dlmodel-renamed",
                                        .summary = "renamed keys",
                                        .size = sizeof(struct renamed),
                                        .fields = fields,
                                        .top_level = true};

#define HEAD "{\"format\": \"dlmodel-renamed\", \"version\": 1, "
static const char new_names[] = HEAD "\"delay_s\": 1, \"color\": \"green\","
                                     "\"link\": {\"rate_bytes_per_s\": 5},"
                                     "\"items\": [{\"rate_bytes_per_s\": 6}]}";
static const char older_names[] = HEAD "\"lag_s\": 1, \"color\": \"verdant\","
                                       "\"wire\": {\"speed_bytes_per_s\": 5},"
                                       "\"parts\": [{\"speed_bytes_per_s\": 6}]}";

static char message[1600];

/* Loads `text` after key=value (NULL: none); `used` says whether the document took it. */
static enum dl_code load(const char *text, const char *key, const char *value,
                         struct dl_arena *arena, struct renamed *out, bool *used) {
    struct dl_override override = {key, value, false};
    struct dl_err err = {.code = DL_OK};
    struct dl_json *doc;
    enum dl_code code = dl_json_parse("x.json", text, strlen(text), arena, &doc, &err);

    if (code == DL_OK && key != NULL) code = dl_json_set(doc, &schema, &override, 1, &err);
    if (code == DL_OK) code = dl_json_load(doc, &schema, arena, out, &err);
    if (used != NULL) *used = override.used;
    message[0] = '\0';
    if (code != DL_OK) dl_err_text(&err, "who", message, sizeof message);
    return code;
}

static void test_both_names_load(void **state) {
    const char *texts[] = {new_names, older_names};
    struct dl_arena arena = {0};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct renamed r;
        char *written;

        assert_int_equal(load(texts[i], NULL, NULL, &arena, &r, NULL), DL_OK);
        check_close(r.delay_s, 1, 0);
        assert_int_equal(r.color, 1);
        check_close(r.link.rate_bytes_per_s, 5, 0);
        check_close(r.items[0].rate_bytes_per_s, 6, 0);
        written = dl_json_text(&schema, &r, &arena);
        assert_non_null(strstr(written, "\"delay_s\": 1"));
        assert_non_null(strstr(written, "\"color\": \"green\""));
        assert_null(strstr(written, "lag_s"));
        assert_null(strstr(written, "verdant"));
    }
    dl_arena_free(&arena);
}

/* Every pair of a file's names and a key's names meets in the same member. */
static void test_both_names_can_be_set(void **state) {
    static const char *const delays[] = {"delay_s", "delay", "lag_s", "lag"};
    static const char *const rates[] = {"link.rate", "link.speed", "wire.rate_bytes_per_s",
                                        "wire.speed"};
    static const char *const items[] = {"items.0.rate", "parts.0.speed"};
    const char *texts[] = {new_names, older_names, HEAD "\"color\": \"red\"}"};
    struct dl_arena arena = {0};
    struct renamed r;
    bool used;

    (void)state;
    for (int t = 0; t < 3; t++) {
        for (int i = 0; i < 4; i++) {
            assert_int_equal(load(texts[t], delays[i], "2ms", &arena, &r, &used), DL_OK);
            assert_true(used);
            check_close(r.delay_s, 0.002, 0);
            assert_int_equal(load(texts[t], rates[i], "3GB/s", &arena, &r, &used), DL_OK);
            assert_true(used);
            check_close(r.link.rate_bytes_per_s, 3e9, 0);
        }
        assert_int_equal(load(texts[t], "color", "verdant", &arena, &r, &used), DL_OK);
        assert_int_equal(r.color, 1);
    }
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < 2; i++) {
            assert_int_equal(load(texts[t], items[i], "3GB/s", &arena, &r, &used), DL_OK);
            check_close(r.items[0].rate_bytes_per_s, 3e9, 0);
        }
    dl_arena_free(&arena);
}

static void test_refusals(void **state) {
    struct dl_arena arena = {0};
    struct renamed r;

    (void)state;
    assert_int_equal(load(HEAD "\"lag_s\": 1, \"delay_s\": 2}", NULL, NULL, &arena, &r, NULL),
                     DL_ERR_INPUT);
    assert_string_equal(message, "x.json:1:45: error: lag_s: the former name of delay_s, which the "
                                 "file also has; remove one");
    assert_int_equal(load(HEAD "\"wire\": {}}", NULL, NULL, &arena, &r, NULL), DL_ERR_INPUT);
    assert_non_null(strstr(message, "wire.rate_bytes_per_s: required, missing"));
    assert_int_equal(
        load(HEAD "\"wire\": {\"speed_bytes_per_s\": 0}}", NULL, NULL, &arena, &r, NULL),
        DL_ERR_INPUT);
    assert_non_null(strstr(message, "wire.speed_bytes_per_s: expected a number in [1, 1e12]"));
    assert_int_equal(load(HEAD "\"color\": \"blue\"}", NULL, NULL, &arena, &r, NULL), DL_ERR_INPUT);
    assert_non_null(strstr(message, "expected one of red, green, got \"blue\""));
    dl_arena_free(&arena);
}

static void test_keys_list_the_new_names(void **state) {
    struct dl_arena arena = {0};
    const char *const *keys = dl_json_keys(&schema, &arena);

    (void)state;
    assert_true(dl_json_key_known(&schema, "wire.speed"));
    assert_false(dl_json_key_known(&schema, "wire.lag"));
    for (int i = 0; keys[i] != NULL; i++) {
        assert_null(strstr(keys[i], "lag"));
        assert_null(strstr(keys[i], "wire"));
    }
    dl_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_names_load),
        cmocka_unit_test(test_both_names_can_be_set),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_keys_list_the_new_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
