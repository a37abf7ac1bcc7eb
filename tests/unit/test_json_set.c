/* Changes of single members of a document, as --set makes them: which keys resolve, how values are
 * read. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/core/json.h"
#include "tests/check.h"
#include "tests/rich_schema.h"

#define HEAD                                                                                       \
    "{\"format\": \"dlmodel-rich\", \"version\": 1, \"title\": \"t\"" /* the rest follows */

static char message[1600];

/* Sets one key in a small document and loads it. */
static enum dl_code set(const char *key, const char *value, struct dl_arena *arena,
                        struct rich *out, bool *used) {
    static const char text[] =
        HEAD ", \"links\": {\"intra\": {\"bandwidth_bytes_per_s\": 1e9}},"
             "\"items\": [{\"name\": \"a\"}, {\"name\": \"b\"}], \"numbers\": [1, 2, 3]}";
    struct dl_override override = {key, value, false};
    struct dl_err err = {.code = DL_OK};
    struct dl_json *doc;
    enum dl_code code = dl_json_parse("x.json", text, sizeof text - 1, arena, &doc, &err);

    if (code == DL_OK) code = dl_json_set(doc, &rich_schema, &override, 1, &err);
    if (code == DL_OK) code = dl_json_load(doc, &rich_schema, arena, out, &err);
    *used = override.used;
    message[0] = '\0';
    if (code != DL_OK) dl_err_text(&err, "who", message, sizeof message);
    return code;
}

#define check_set(key, value)                                                                      \
    do {                                                                                           \
        if (set(key, value, &arena, &r, &used) != DL_OK || !used)                                  \
            fail_msg("%s:%d: %s=%s: %s", __FILE__, __LINE__, key, value, message);                 \
    } while (0)

static void test_set(void **state) {
    struct dl_arena arena = {0};
    struct rich r;
    bool used;

    (void)state;
    check_set("links.intra.bandwidth", "25GB/s");
    check_close(r.intra.bandwidth_bytes_per_s, 25e9, 0);
    check_set("links.intra.bandwidth_bytes_per_s", "100Gb/s"); /* 100e9 bit / 8 */
    check_close(r.intra.bandwidth_bytes_per_s, 12.5e9, 0);
    check_set("links.inter.bandwidth", "2"); /* the object is made */
    check_close(r.inter.bandwidth_bytes_per_s, 2, 0);
    check_set("size", "64MiB"); /* 64 * 1024 * 1024 */
    check_close(r.size_bytes, 67108864, 0);
    check_set("count", "4k");
    assert_int_equal(r.count, 4000);
    check_set("flag", "on");
    assert_true(r.flag);
    check_set("color", "blue");
    assert_int_equal(r.color, 2);
    check_set("title", "");
    assert_string_equal(r.title, "");
    check_set("shape", "2*hidden");
    assert_string_equal(r.shape, "2*hidden");
    check_set("shapes", "9");
    assert_string_equal(r.shapes[0], "9");
    check_set("words", "w");
    assert_string_equal(r.words[0], "w");
    check_set("items.1.alpha", "2ms");
    check_close(r.items[1].alpha_s, 0.002, 0);
    check_set("numbers.2", "-5");
    check_close(r.numbers[2], -5, 0);
    check_set("numbers", "7,8");
    assert_int_equal(r.number_count, 2);
    check_close(r.numbers[1], 8, 0);
    check_set("facts.a.b", "3k");
    assert_string_equal(r.facts[0].key, "a.b");
    check_close(r.facts[0].number, 3000, 0);
    check_set("facts.x", "true");
    assert_string_equal(r.facts[0].text, "true");
    check_set("facts.x", "1e9x");
    assert_string_equal(r.facts[0].text, "1e9x");
    dl_arena_free(&arena);
}

static void test_set_refusals(void **state) {
    static const struct {
        const char *key, *value, *expected;
    } cases[] = {
        {"links.inter.bandwidth", "-3",
         "who: links.inter.bandwidth: expected a number in [1, 1e15] byte/s, got -3"},
        {"links.inter.bandwidth", "25GB",
         "who: links.inter.bandwidth: expected a bandwidth such as 25GB/s"},
        {"count", "1.5", "expected a whole number"},
        {"flag", "maybe", "expected true or false"},
        {"color", "gren", "did you mean green?"},
        {"links", "1", "expected the key of one value, got that of object"},
        {"items", "1", "add an element and its member"},
        {"items.2.alpha", "1", "expected an element of a list of 2, counted from 0, got 2"},
        {"numbers", "1,,2", "expected a number"},
        {"twin", "1", "expected twin_s or twin_bytes"},
        {"flag", "maybe", "who: flag: expected true or false, got \"maybe\""},
        {"flag", "", "who: flag: expected true or false, got \"\""},
        {"color", "gren",
         "who: color: expected one of red, green, blue, got \"gren\"; did you mean green?"},
        {"color", "zzzzz", "who: color: expected one of red, green, blue, got \"zzzzz\""},
        {"items.123456789.alpha", "1",
         "who: items.123456789.alpha: expected an element of a list of 2, counted from 0, got "
         "123456789"},
        {"items.0.points.0", "1",
         "who: items.0.points.0: expected an element of a list of 0, counted from 0, got 0"},
        {"numbers.3", "1",
         "who: numbers.3: expected an element of a list of 3, counted from 0, got 3"},
        {"numbers", "1,0000000000000000000000000000000000000000000000000000000000000002",
         "who: numbers: expected numbers separated by commas, got "
         "\"1,0000000000000000000000000000000000000000000000000000000000\""},
        {"numbers", "1,", "who: numbers: expected a number such as 0.5 or 50%, got \"\""},
        {"shape", "", "who: shape: expected a number or an expression, got \"\""},
        {"shapes", "", "who: shapes: expected a number or an expression, got \"\""},
        {"links", "1",
         "who: links: expected the key of one value, got that of object: add a member (.KEY)"},
        {"items", "1",
         "who: items: expected the key of one value, got that of array of objects: add an "
         "element and its member (.0.KEY)"},
        {"facts", "1",
         "who: facts: expected the key of one value, got that of map: add a member (.KEY)"},
        {"count", "0", "who: count: expected a whole number in [1, 1e9], got 0"},
        {"title", "\xff", "expected UTF-8 text"},
        {"title", "ok\xc3", "expected UTF-8 text"},
        {"facts.\x93", "1", "expected UTF-8 text"},
    };
    struct dl_arena arena = {0};
    struct rich r;
    bool used;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(set(cases[i].key, cases[i].value, &arena, &r, &used), DL_ERR_USAGE);
        check_contains(message, cases[i].expected);
        assert_false(used);
    }
    dl_arena_free(&arena);
}

/* Every word for yes and no, every way to a number, and what a map takes for what. */
static void test_words_and_numbers(void **state) {
    static const char *const yes[] = {"true", "yes", "on", "1"}, *const no[] = {"false", "no",
                                                                                "off", "0"};
    static const struct {
        const char *value;
        double number; /* NAN: a string */
    } facts[] = {{"1.5", 1.5},      {"50%", 0.5},       {"2k", 2000},
                 {"true", 1},       {"false", 0},       {"yes", (double)NAN},
                 {"", (double)NAN}, {"t", (double)NAN}, {"1 2", (double)NAN}};
    struct dl_arena arena = {0};
    struct rich r;
    bool used;

    (void)state;
    for (int i = 0; i < 4; i++) {
        check_set("flag", yes[i]);
        assert_true(r.flag);
        check_set("flag", no[i]);
        assert_false(r.flag);
    }
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        check_set("facts.a.b", facts[i].value); /* all that follows a map is one key */
        assert_int_equal(r.fact_count, 1);
        assert_string_equal(r.facts[0].key, "a.b");
        check_close(r.facts[0].number, facts[i].number, 0);
        if (isnan(facts[i].number)) assert_string_equal(r.facts[0].text, facts[i].value);
    }
    /* an item of 63 characters */
    check_set("numbers", "7,000000000000000000000000000000000000000000000000000000000000012,3");
    assert_int_equal(r.number_count, 3);
    check_close(r.numbers[1], 12, 0);
    check_close(r.numbers[2], 3, 0);
    check_set("numbers.1", "50%");
    assert_int_equal(r.number_count, 3);
    check_close(r.numbers[0], 1, 0);
    check_close(r.numbers[1], 0.5, 0);
    check_close(r.numbers[2], 3, 0);
    check_set("numbers", "4");
    assert_int_equal(r.number_count, 1);
    check_set("items.1.points", "5,6");
    assert_int_equal(r.items[0].point_count, 0);
    assert_int_equal(r.items[1].point_count, 2);
    check_close(r.items[1].points[1], 6, 0);
    check_set("title", "");
    assert_string_equal(r.title, "");
    check_set("title", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    assert_string_equal(r.title, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    check_set("words", "one,two"); /* one string */
    assert_int_equal(r.word_count, 1);
    assert_string_equal(r.words[0], "one,two");
    check_set("shapes", "2*h");
    assert_int_equal(r.shape_count, 1);
    dl_arena_free(&arena);
}

static void test_set_leaves_unknown_keys(void **state) {
    static const char *const unknown[] = {"",
                                          ".",
                                          "nothing",
                                          "links.",
                                          "links.nowhere",
                                          "links.intra.bandwith",
                                          "items.x.alpha",
                                          "items.0",
                                          "items.0.",
                                          "count.1",
                                          "numbers.0.1",
                                          "facts.",
                                          "size_byte",
                                          "bandwidth",
                                          "items.99999999999.alpha",
                                          NULL};
    struct dl_arena arena = {0};
    struct rich r;
    bool used;

    (void)state;
    for (int i = 0; unknown[i] != NULL; i++) {
        assert_false(dl_json_key_known(&rich_schema, unknown[i]));
        assert_int_equal(set(unknown[i], "1", &arena, &r, &used), DL_OK);
        if (used) fail_msg("%s was taken", unknown[i]);
        assert_true(r.item_count == 2 && r.fact_count == 0); /* nothing was made on the way */
        check_nan(r.inter.bandwidth_bytes_per_s);
    }
    assert_true(dl_json_key_known(&rich_schema, "items.5.alpha"));
    dl_arena_free(&arena);
}

static void test_keys_for_suggestions(void **state) {
    struct dl_arena arena = {0};
    const char *const *keys = dl_json_keys(&rich_schema, &arena);

    (void)state;
    assert_non_null(keys);
    assert_string_equal(dl_suggest("links.inter.bandwith", keys), "links.inter.bandwidth");
    assert_string_equal(dl_suggest("items.0.alpha_s", keys), "items.N.alpha_s");
    assert_string_equal(dl_suggest("facts.KEy", keys), "facts.KEY");
    dl_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_set_refusals),
        cmocka_unit_test(test_words_and_numbers),
        cmocka_unit_test(test_set_leaves_unknown_keys),
        cmocka_unit_test(test_keys_for_suggestions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
