/* Documents through field tables: files, nested formats, paths of errors, the text that is written.
 * What a text is read as, or refused for, are cases of tests/golden/texts.txt. */
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

static void test_nesting_and_many_keys(void **state) {
    char deep[400], *many;
    struct dl_arena arena = {0};
    struct dl_json *doc;
    struct dl_err err;
    size_t length = 0;

    memset(deep, '[', 65);
    memset(deep + 65, ']', 65);
    deep[130] = '\0';
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
    /* 1/3 needs 16 digits; a byte that is no UTF-8 becomes U+FFFD */
    assert_string_equal(w.text, "{\"x\":null,\"y\":null,\"z\":0.3333333333333333,\"i\":-"
                                "9223372036854775808,\"a\":[],\"b\":[true,{}],"
                                "\"s\":\"\\u0001\\t\xef\xbf\xbd\xc3\xa9\\\\\",\"n\":null}");
    dl_arena_free(&arena);
}

/* Keys that errors suggest. */
static void test_keys(void **state) {
    struct dl_arena arena = {0};
    const char *const *keys = dl_json_keys(&rich_schema, &arena);

    assert_string_equal(dl_suggest("links.inter.bandwith", keys), "links.inter.bandwidth");
    assert_string_equal(dl_suggest("items.0.alpha_s", keys), "items.N.alpha_s");
    assert_string_equal(dl_suggest("facts.KEy", keys), "facts.KEY");
    assert_true(dl_json_key_known(&rich_schema, "items.5.alpha"));
    dl_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {

        cmocka_unit_test(test_nested_format),

        cmocka_unit_test(test_nesting_and_many_keys),
        cmocka_unit_test(test_text_need_not_be_terminated),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_fail_at_a_path),
        cmocka_unit_test(test_visit),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_writer),
        cmocka_unit_test(test_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
