/* Documents: nesting, paths of errors, the writer. What a text is read as, or refused for, are
 * cases of tests/golden/texts.txt. */
#include "model/core/hash.h"
#include "model/core/json.h"
#include "tests/check.h"

static char message[1600];

static void test_nesting_and_many_keys(void **state) {
    char deep[400], *many;
    struct dl_json *doc;
    struct dl_err err;
    size_t length = 0;

    memset(deep, '[', 65);
    memset(deep + 65, ']', 65);
    deep[130] = '\0';
    assert_int_equal(dl_json_parse("x", deep + 1, 128, &test_arena, &doc, &err),
                     DL_OK); /* 64 levels */
    many = malloc(100000 * 16);
    assert_non_null(many);
    for (int i = 0; i < 100000;
         i++) /* the last repeats the first; a quadratic search would take minutes */
        length += (size_t)sprintf(many + length, "%s\"k%d\":%d", i == 0 ? "{" : ",",
                                  i == 99999 ? 0 : i, i);
    many[length++] = '}';
    assert_int_equal(dl_json_parse("x", many, length, &test_arena, &doc, &err), DL_ERR_INPUT);
    assert_string_equal(err.key, "k0");
    assert_int_equal(err.col, (int)length - 10);
    free(many);
}

static void test_text_need_not_be_terminated(void **state) {
    struct dl_json *doc, *other;
    const char text[] = "\xef\xbb\xbf{\"a\": 1}garbage"; /* with a byte order mark */

    assert_int_equal(dl_json_parse("n", text, 11, &test_arena, &doc, NULL), DL_OK);
    assert_string_equal(dl_json_name(doc), "n");
    assert_int_equal(dl_json_parse("n", "a", 1, &test_arena, &other, NULL), DL_ERR_INPUT);
    /* FNV-1a of "{}": ((basis ^ '{') * prime ^ '}') * prime, worked by hand with 64-bit wrap-around
     */
    assert_int_equal(dl_json_parse("n", "{}", 2, &test_arena, &doc, NULL), DL_OK);
    assert_true(dl_hash_bytes(DL_HASH_START, "{}", 2) ==
                ((0xcbf29ce484222325u ^ 0x7bu) * 0x100000001b3u ^ 0x7du) * 0x100000001b3u);
}

static void test_fail_at_a_path(void **state) {
    struct dl_json *doc;
    struct dl_err err;
    const char *text = "{\"layers\": [1,\n {\"kernel\": 3, \"a.b\": 4}]}";

    assert_int_equal(dl_json_parse("n", text, strlen(text), &test_arena, &doc, &err), DL_OK);
    assert_int_equal(dl_json_fail(doc, "layers[1].kernel", &err, "expected %d", 5), DL_ERR_INPUT);
    dl_err_text(&err, "w", message, sizeof message);
    assert_string_equal(message, "n:2:13: error: layers[1].kernel: expected 5");
    dl_json_fail(doc, "layers[1].a.b", &err, "m");
    assert_int_equal(err.col, 23);
    dl_json_fail(doc, "layers[1].missing", &err, "m"); /* the last place on the way */
    assert_int_equal(err.col, 2);
    dl_json_fail(doc, NULL, &err, "m");
    assert_int_equal(err.line * 100 + err.col, 101);
}

static void test_writer(void **state) {
    struct dl_json_writer w;

    dl_jw_init(&w, &test_arena, true);
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
}

int main(void) {
    const struct CMUnitTest tests[] = {

        cmocka_unit_test(test_nesting_and_many_keys),
        cmocka_unit_test(test_text_need_not_be_terminated),
        cmocka_unit_test(test_fail_at_a_path),
        cmocka_unit_test(test_writer),
    };

    return cmocka_run_group_tests(tests, NULL, check_free);
}
