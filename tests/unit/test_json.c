/* Documents through field tables: what is read, what is refused and where, and the text that is
 * written. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/stat.h>

#include "model/core/file.h"
#include "model/core/hash.h"
#include "model/core/json.h"
#include "tests/check.h"
#include "tests/rich_schema.h"

#define HEAD                                                                                       \
    "{\"format\": \"dlmodel-rich\", \"version\": 1, \"title\": \"t\"" /* the rest follows */

static char message[1600];

static enum dl_code load(const char *text, struct dl_arena *arena, struct rich *out) {
    struct dl_err err = {.code = DL_OK};
    struct dl_json *doc;
    enum dl_code code = dl_json_parse("x.json", text, strlen(text), arena, &doc, &err);

    if (code == DL_OK) code = dl_json_load(doc, &rich_schema, arena, out, &err);
    message[0] = '\0';
    if (code != DL_OK) dl_err_text(&err, "dlmodel test", message, sizeof message);
    return code;
}

/* The whole message for a text that is refused. */
static const char *refusal(const char *text) {
    struct dl_arena arena = {0};
    struct rich rich;
    enum dl_code code = load(text, &arena, &rich);

    dl_arena_free(&arena);
    if (code != DL_ERR_INPUT)
        fail_msg("expected a refusal with DL_ERR_INPUT, got %d for %s", (int)code, text);
    return message;
}

static void test_all_types(void **state) {
    struct dl_arena arena = {0};
    struct rich r;

    (void)state;
    assert_int_equal(
        load(HEAD
             ", \"comment\": \"ignored\", \"ratio\": -1.5e-3, \"size_bytes\": 1024, \"count\": 12,"
             "\"flag\": true, \"fallback_flag\": false, \"color\": \"green\", \"shape\": "
             "\"4*hidden\","
             "\"links\": {\"intra\": {\"bandwidth_bytes_per_s\": 25e9, \"latency_s\": 1e-6, "
             "\"up\": true},"
             "            \"inter\": {\"bandwidth_bytes_per_s\": 1e10, \"comment\": \"c\"}},"
             "\"items\": [{\"name\": \"a\", \"points\": [1, 2.5]}, {\"name\": \"b\\u00e9\", "
             "\"alpha_s\": 1}],"
             "\"numbers\": [], \"shapes\": 7, \"words\": [\"x\", \"\"],"
             "\"facts\": {\"a.b\": 1e3, \"t\": \"text\", \"yes\": true}}",
             &arena, &r),
        DL_OK);
    check_close(r.ratio, -0.0015, 0);
    check_close(r.size_bytes, 1024, 0);
    assert_int_equal(r.count, 12);
    assert_true(r.flag);
    assert_false(r.fallback_flag);
    assert_string_equal(r.title, "t");
    assert_int_equal(r.color, 1);
    assert_string_equal(r.shape, "4*hidden");
    assert_true(r.has_intra && r.intra.up);
    check_close(r.intra.bandwidth_bytes_per_s, 25e9, 0);
    check_close(r.inter.bandwidth_bytes_per_s, 1e10, 0);
    check_nan(r.inter.latency_s);
    assert_int_equal(r.item_count, 2);
    assert_int_equal(r.items[0].point_count, 2);
    check_close(r.items[0].points[1], 2.5, 0);
    assert_string_equal(r.items[1].name, "b\xc3\xa9");
    check_nan(r.items[0].alpha_s);
    assert_int_equal(r.number_count, 0);
    assert_null(r.numbers);
    assert_int_equal(r.shape_count, 1);
    assert_string_equal(r.shapes[0], "7");
    assert_int_equal(r.word_count, 2);
    assert_string_equal(r.words[1], "");
    assert_int_equal(r.fact_count, 3);
    assert_string_equal(r.facts[0].key, "a.b");
    assert_string_equal(r.facts[0].text, "1000");
    check_close(r.facts[0].number, 1000, 0);
    check_nan(r.facts[1].number);
    check_close(r.facts[2].number, 1, 0);
    assert_string_equal(r.facts[2].text, "true");
    dl_arena_free(&arena);
}

static void test_absent_and_fallback(void **state) {
    struct dl_arena arena = {0};
    struct rich r;

    (void)state;
    assert_int_equal(load(HEAD "}", &arena, &r), DL_OK);
    check_nan(r.ratio);
    check_nan(r.inter.bandwidth_bytes_per_s); /* required, but only inside a link that is there */
    assert_int_equal(r.count, DL_ABSENT);
    assert_int_equal(r.color, -1);
    assert_false(r.flag || r.has_intra);
    assert_null(r.shape);
    assert_true(r.items == NULL && r.item_count == 0 && r.facts == NULL && r.words == NULL);
    check_close(r.fallback_s, 0.25, 0);
    assert_int_equal(r.fallback_count, 7);
    assert_true(r.fallback_flag);
    assert_int_equal(r.fallback_color, 2);
    dl_arena_free(&arena);
}

/* Positions count lines and bytes from 1. */
static void test_refusals_of_members(void **state) {
    static const struct {
        const char *text, *told;
    } cases[] = {
        {HEAD ", \"items\": [{\"name\": \"a\", \"points\": [1, null]}]}",
         "items[0].points[1]: expected a number, got null (leave the key out"},
        {HEAD ", \"zzzzzz\": 1}", "zzzzzz: unknown key in dlmodel-rich"},
        {HEAD ", \"count\": 1.5}", "count: expected a whole number in [1, 1e9], got 1.5"},
        {HEAD ", \"count\": 0}", "count: expected a whole number in [1, 1e9], got 0"},
        {HEAD ", \"flag\": 1}", "flag: expected true or false, got 1"},
        {HEAD ", \"color\": \"gren\"}",
         "expected one of red, green, blue, got \"gren\"; did you mean green?"},
        {HEAD ", \"color\": true}", "expected one of red, green, blue, got true"},
        {HEAD ", \"shape\": \"\"}", "expected a number or an expression in a string, got \"\""},
        {HEAD ", \"items\": {}}", "items: expected an array of objects, got an object"},
        {HEAD ", \"items\": [4]}", "items[0]: expected an object (item), got 4"},
        {HEAD ", \"numbers\": [2e6]}", "numbers[0]: expected a number in [-1e6, 1e6], got 2e6"},
        {HEAD ", \"words\": [1]}", "words[0]: expected a string or an array of strings, got 1"},
        {HEAD ", \"facts\": {\"a\": []}}",
         "facts.a: expected a number, a string, true or false, got an array"},
        {HEAD ", \"comment\": 1}", "comment: expected a string"},
        {"[]", "x.json:1:1: error: expected an object (dlmodel-rich), got an array"},
    };

    (void)state;
    assert_string_equal(
        refusal(HEAD ",\n\"links\": {\"inter\":\n\n  {\"bandwidth_bytes_per_s\": -3}}}"),
        "x.json:4:29: error: links.inter.bandwidth_bytes_per_s: expected a number in [1, 1e15] "
        "byte/s, got -3");
    assert_string_equal(refusal(HEAD ",\n\"links\": {\"inter\": {\"bandwith_bytes_per_s\": 3}}}"),
                        "x.json:2:21: error: links.inter.bandwith_bytes_per_s: unknown key; did "
                        "you mean bandwidth_bytes_per_s?");
    assert_string_equal(refusal(HEAD ",\n\"links\": {\"intra\": {}}}"),
                        "x.json:2:20: error: links.intra.bandwidth_bytes_per_s: required, missing: "
                        "bandwidth of one direction");
    assert_string_equal(
        refusal(HEAD ",\n\"items\": [{\"name\": \"a]\\\"\", \"alpha_s\": 0}, {\"name\": \"b\", "
                     "\"alpha_s\": \"1\"}]}"),
        "x.json:2:68: error: items[1].alpha_s: expected a number in [0, 1] s, got \"1\"");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_contains(refusal(cases[i].text), cases[i].told);
}

static void test_format_and_version(void **state) {
    (void)state;
    check_contains(refusal("{}"),
                   "x.json:1:1: error: format: required, missing: expected \"dlmodel-rich\"");
    check_contains(refusal("{\"format\": \"dlmodel-poor\", \"version\": 1}"),
                   "format: expected \"dlmodel-rich\", got \"dlmodel-poor\"");
    check_contains(refusal("{\"format\": \"dlmodel-rich\"}"),
                   "version: required, missing: expected 1");
    check_contains(refusal("{\"format\": \"dlmodel-rich\", \"version\": 2}"),
                   "1:39: error: version: expected 1, got 2");
    check_contains(refusal("{\"format\": \"dlmodel-rich\", \"version\": 1}"),
                   "title: required, missing: what it is called");
}

/* A file's object inside another, as a device in a system, may keep its format. */
static void test_nested_format(void **state) {
    static const struct dl_field fields[] = {
        {.key = "inner",
         .type = DL_FIELD_OBJECT,
         .offset = 0,
         .child = &rich_schema,
         .help = "a whole file"},
        {.type = DL_FIELD_END},
    };
    static const struct dl_schema outer = {
        .name = "outer", .summary = "holds a file", .size = sizeof(struct rich), .fields = fields};
    static const struct {
        const char *text;
        enum dl_code code;
    } cases[] = {
        {"{\"inner\": {\"title\": \"t\"}}", DL_OK},
        {"{\"inner\": " HEAD "}}", DL_OK},
        {"{\"inner\": {\"format\": \"dlmodel-poor\", \"version\": 1, \"title\": \"t\"}}",
         DL_ERR_INPUT},
        {"{\"inner\": {\"version\": 1, \"title\": \"t\"}}", DL_ERR_INPUT},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dl_arena arena = {0};
        struct dl_json *doc;
        struct dl_err err;
        struct rich r;

        assert_int_equal(
            dl_json_parse("x", cases[i].text, strlen(cases[i].text), &arena, &doc, &err), DL_OK);
        assert_int_equal(dl_json_load(doc, &outer, &arena, &r, &err), cases[i].code);
        if (cases[i].code == DL_OK) assert_string_equal(r.title, "t");
        dl_arena_free(&arena);
    }
}

static void test_refusals_of_text(void **state) {
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", "x.json: error: expected a JSON object, got an empty file"},
        {" \n", "got an empty file"},
        {"{", "x.json:1:2: error: expected a key in double quotes, got the end of the file"},
        {"{\"a\": 1} x", "x.json:1:10: error: expected nothing after the JSON value, got 'x'"},
        {"{\"a\": 1,}", "1:9: error: expected a key in double quotes, got '}'"},
        {"{\"a\": [1,]}", "1:10: error: expected a value, got ']'"},
        {"{\"a\": [1 2]}", "expected ',' or ']', got '2'"},
        {"{\"a\" 1}", "expected ':' after a key, got '1'"},
        {"{a: 1}", "expected a key in double quotes, got 'a'"},
        {"{\"a\": 01}", "1:7: error: expected a number without leading zeros"},
        {"{\"a\": 1.}", "expected a digit after the decimal point"},
        {"{\"a\": .5}", "expected a value, got '.'"},
        {"{\"a\": 1e}", "expected a digit in the exponent"},
        {"{\"a\": +1}", "expected a value, got '+'"},
        {"{\"a\": NaN}", "expected a value, got 'N'"},
        {"{\"a\": -Infinity}", "expected a digit, got 'I'"},
        {"{\"b\": {\"a\": [0, 1e999]}}",
         "1:17: error: b.a[1]: expected a number within the range of a double"},
        {"{\"a\": 1, \"b\": {\"c\": 1, \"d\": 2, \"c\": 3}}",
         "1:32: error: b.c: expected each key once in an object"},
        {"{\"a\": 1, \"\\u0061\": 2}", "1:10: error: a: expected each key once"},
        {"{\"a\": \"x", "1:7: error: expected a closing quote"},
        {"{\"a\": \"\\x\"}", "expected an escape"},
        {"{\"a\": \"\\u00g0\"}", "expected four hexadecimal digits"},
        {"{\"a\": \"\\u0000\"}", "expected no \\u0000"},
        {"{\"a\": \"\\ud800\"}", "expected a low surrogate"},
        {"{\"a\": \"\\udc00\"}", "expected a high surrogate"},
        {"{\"a\": \"\xff\"}", "expected UTF-8 text, got byte 0xff"},
        {"{\"a\": \"\xc0\x80\"}", "expected UTF-8 text"},
        {"{\"a\": \"\n\"}", "expected no control character in a string, got byte 0x0a"},
        {"// c\n{}", "expected a value, got '/'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_contains(refusal(cases[i].text), cases[i].expected);
}

static void test_nesting_and_many_keys(void **state) {
    char deep[400], *many;
    struct dl_arena arena = {0};
    struct dl_json *doc;
    struct dl_err err;
    size_t length = 0;

    (void)state;
    memset(deep, '[', 65);
    memset(deep + 65, ']', 65);
    deep[130] = '\0';
    check_contains(refusal(deep), "x.json:1:65: error: expected nesting of at most 64 levels");
    assert_int_equal(dl_json_parse("x", deep + 1, 128, &arena, &doc, &err), DL_OK); /* 64 levels */
    many = malloc(100000 * 16);
    assert_non_null(many);
    for (int i = 0; i < 100000;
         i++) /* the last repeats the first; a quadratic search would take minutes */
        length += (size_t)sprintf(many + length, "%s\"k%d\":%d", i == 0 ? "{" : ",",
                                  i == 99999 ? 0 : i, i);
    many[length++] = '}';
    assert_int_equal(dl_json_parse("x", many, length, &arena, &doc, &err), DL_ERR_INPUT);
    assert_string_equal(err.key, "k0");
    assert_int_equal(err.col, (int)length - 10);
    free(many);
    dl_arena_free(&arena);
}

static void test_text_need_not_be_terminated(void **state) {
    struct dl_arena arena = {0};
    struct dl_json *doc, *other;
    struct dl_err err;
    const char text[] = "\xef\xbb\xbf{\"a\": 1}garbage"; /* with a byte order mark */

    (void)state;
    assert_int_equal(dl_json_parse("n", text, 11, &arena, &doc, &err), DL_OK);
    assert_string_equal(dl_json_name(doc), "n");
    assert_int_equal(dl_json_parse("n", "a", 1, &arena, &other, &err), DL_ERR_INPUT);
    /* FNV-1a of "{}": ((basis ^ '{') * prime ^ '}') * prime, worked by hand with 64-bit wrap-around
     */
    assert_int_equal(dl_json_parse("n", "{}", 2, &arena, &doc, &err), DL_OK);
    assert_true(dl_hash_bytes(DL_HASH_START, "{}", 2) ==
                ((0xcbf29ce484222325u ^ 0x7bu) * 0x100000001b3u ^ 0x7du) * 0x100000001b3u);
    dl_arena_free(&arena);
}

static void test_read(void **state) {
    struct dl_arena arena = {0};
    struct dl_json *doc;
    struct dl_err err;
    char directory[256], path[300];
    FILE *file;

    (void)state;
    assert_true(check_directory(directory, sizeof directory));
    snprintf(path, sizeof path, "%s/a.json", directory);
    assert_int_equal(dl_json_read(path, &arena, &doc, &err), DL_ERR_INPUT);
    assert_string_equal(err.file, path);
    check_contains(err.message, "No such file");
    assert_int_equal(dl_json_read(directory, &arena, &doc, &err), DL_ERR_INPUT);
    check_contains(err.message, "got a directory");
    assert_int_equal(dl_file_write(path, "", 0, &err), DL_OK);
    assert_int_equal(dl_json_read(path, &arena, &doc, &err), DL_ERR_INPUT);
    check_contains(err.message, "empty file");
    assert_int_equal(dl_file_write(path, "{\"a\": 1}", 8, &err), DL_OK);
    assert_int_equal(dl_json_read(path, &arena, &doc, &err), DL_OK);
    file = fopen(path, "w"); /* sparse, 100 MB: refused by its size, not read */
    assert_non_null(file);
    assert_int_equal(fseek(file, 100000000, SEEK_SET), 0);
    fputc('x', file);
    fclose(file);
    assert_int_equal(dl_json_read(path, &arena, &doc, &err), DL_ERR_INPUT);
    check_contains(err.message, "expected a file of at most 67108864 bytes");
    /* a text of such a length has no place that is to blame; none of it is read */
    err.line = err.col = 7;
    assert_int_equal(dl_json_parse("t.json", "x", 67108865, &arena, &doc, &err), DL_ERR_INPUT);
    assert_string_equal(err.message, "expected a file of at most 67108864 bytes");
    assert_string_equal(err.file, "t.json");
    assert_int_equal(err.line, 0);
    assert_int_equal(err.col, 0);
    unlink(path);
    rmdir(directory);
    dl_arena_free(&arena);
}

static void test_fail_at_a_path(void **state) {
    struct dl_arena arena = {0};
    struct dl_json *doc;
    struct dl_err err;
    const char *text = "{\"layers\": [1,\n {\"kernel\": 3, \"a.b\": 4}]}";

    (void)state;
    assert_int_equal(dl_json_parse("n", text, strlen(text), &arena, &doc, &err), DL_OK);
    assert_int_equal(dl_json_fail(doc, "layers[1].kernel", &err, "expected %d", 5), DL_ERR_INPUT);
    dl_err_text(&err, "w", message, sizeof message);
    assert_string_equal(message, "n:2:13: error: layers[1].kernel: expected 5");
    dl_json_fail(doc, "layers[1].a.b", &err, "m");
    assert_int_equal(err.col, 23);
    dl_json_fail(doc, "layers[1].missing", &err, "m"); /* the last place on the way */
    assert_int_equal(err.col, 2);
    dl_json_fail(doc, NULL, &err, "m");
    assert_int_equal(err.line * 100 + err.col, 101);
    dl_arena_free(&arena);
}

struct seen {
    int count, deepest;
    bool found;
};

static void see(void *context, const char *path, const struct dl_field *field, int depth) {
    struct seen *seen = context;

    seen->count++;
    if (depth > seen->deepest) seen->deepest = depth;
    if (strcmp(path, "items[].beta_s_per_byte") == 0) {
        char text[128];

        dl_field_expected(field, text, sizeof text);
        assert_string_equal(text, "a number in [1e-15, 0.001] s/byte");
        seen->found = true;
    }
}

static const struct dl_schema loop_schema;
static const struct dl_field loop_fields[] = {
    {.key = "loops",
     .type = DL_FIELD_LIST,
     .offset = 0,
     .count_offset = 8,
     .child = &loop_schema,
     .help = "itself"},
    {.type = DL_FIELD_END},
};
static const struct dl_schema loop_schema = {
    .name = "loop", .summary = "contains itself", .size = 16, .fields = loop_fields};

static void test_visit(void **state) {
    struct seen seen = {0, 0, false};

    (void)state;
    dl_schema_visit(&rich_schema, see, &seen);
    assert_int_equal(seen.count, 20 + 2 + 2 * 3 + 4); /* rich, links, two links, item */
    assert_int_equal(seen.deepest, 2);
    assert_true(seen.found);
    seen = (struct seen){0, 0, false};
    dl_schema_visit(&loop_schema, see, &seen);
    assert_int_equal(seen.count, 1);
}

static void test_text(void **state) {
    struct dl_arena arena = {0};
    struct rich r;
    char *text;

    (void)state;
    assert_int_equal(
        load(HEAD
             ", \"ratio\": 0.1, \"color\": \"red\", \"fallback_count\": 3, \"numbers\": [1, 2.5],"
             "\"items\": [{\"name\": \"a\\n\\\"\"}], \"shapes\": [4, \"4.0\"], \"facts\": {\"k\": "
             "true}}",
             &arena, &r),
        DL_OK);
    text = dl_json_text(&rich_schema, &r, &arena);
    assert_string_equal(text, "{\n"
                              "  \"format\": \"dlmodel-rich\",\n"
                              "  \"version\": 1,\n"
                              "  \"ratio\": 0.1,\n"
                              "  \"fallback_s\": 0.25,\n"
                              "  \"fallback_count\": 3,\n"
                              "  \"fallback_flag\": true,\n"
                              "  \"title\": \"t\",\n"
                              "  \"color\": \"red\",\n"
                              "  \"fallback_color\": \"blue\",\n"
                              "  \"items\": [\n"
                              "    {\n"
                              "      \"name\": \"a\\n\\\"\"\n"
                              "    }\n"
                              "  ],\n"
                              "  \"numbers\": [1,2.5],\n"
                              "  \"shapes\": [4,\"4.0\"],\n"
                              "  \"facts\": {\n"
                              "    \"k\": true\n"
                              "  }\n"
                              "}\n");
    dl_arena_free(&arena);
}

static void test_writer(void **state) {
    struct dl_arena arena = {0};
    struct dl_json_writer w;

    (void)state;
    dl_jw_init(&w, &arena, true);
    dl_jw_object(&w, NULL);
    dl_jw_number(&w, "x", (double)NAN);
    dl_jw_number(&w, "y", -(double)INFINITY);
    dl_jw_number(&w, "z", 1.0 / 3);
    dl_jw_integer(&w, "i", INT64_MIN);
    dl_jw_array(&w, "a");
    dl_jw_end(&w);
    dl_jw_array(&w, "b");
    dl_jw_bool(&w, NULL, true);
    dl_jw_object(&w, NULL);
    dl_jw_end(&w);
    dl_jw_end(&w);
    dl_jw_string(&w, "s", "\x01\t\xff\xc3\xa9\\");
    dl_jw_string(&w, "n", NULL);
    dl_jw_end(&w);
    assert_false(w.failed);
    /* 1/3 needs 16 digits; a byte that is no UTF-8 becomes U+FFFD */
    assert_string_equal(w.text, "{\"x\":null,\"y\":null,\"z\":0.3333333333333333,\"i\":-"
                                "9223372036854775808,\"a\":[],\"b\":[true,{}],"
                                "\"s\":\"\\u0001\\t\xef\xbf\xbd\xc3\xa9\\\\\",\"n\":null}");
    dl_jw_end(&w); /* one too many */
    assert_true(w.failed);
    dl_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_types),
        cmocka_unit_test(test_absent_and_fallback),
        cmocka_unit_test(test_refusals_of_members),
        cmocka_unit_test(test_format_and_version),
        cmocka_unit_test(test_nested_format),
        cmocka_unit_test(test_refusals_of_text),
        cmocka_unit_test(test_nesting_and_many_keys),
        cmocka_unit_test(test_text_need_not_be_terminated),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_fail_at_a_path),
        cmocka_unit_test(test_visit),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_writer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
