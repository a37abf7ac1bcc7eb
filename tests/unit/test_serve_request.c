/* What a request may say (body.c): words of the command line from JSON and from forms, by the
 * tables of the real commands; what is refused, with its key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "serve/body.h"
#include "tests/check.h"

extern const struct dl_command dl_cmd_predict, dl_cmd_compare;

struct read {
    struct dl_arena arena;
    struct dl_words words;
    struct dl_err err;
    enum dl_code code;
};

static struct read body_of(const struct dl_command *command, const char *text) {
    struct read r = {.code = DL_OK};
    r.code = dl_words_of_body(command, text, strlen(text), &r.arena, &r.words, &r.err);
    return r;
}

static struct read form_of(const char *text) {
    struct read r = {.code = DL_OK};
    r.code = dl_words_of_form(&dl_cmd_predict, text, &r.arena, &r.words, &r.err);
    return r;
}

static void check_words(struct read r, const char *expected) {
    char all[1024] = "";
    if (r.code != DL_OK) fail_msg("%s: %s", r.err.key, r.err.message);
    for (int i = 0; i < r.words.count; i++) {
        if (i > 0) strcat(all, " ");
        strcat(all, r.words.list[i]);
    }
    assert_string_equal(all, expected);
    dl_arena_free(&r.arena);
}

static void check_refused(struct read r, const char *key, const char *message) {
    assert_int_not_equal(r.code, DL_OK);
    assert_string_equal(r.err.key, key);
    check_contains(r.err.message, message);
    dl_arena_free(&r.arena);
}

#define BODY(text) body_of(&dl_cmd_predict, text)

static void values(void **state) {
    (void)state;
    check_words(BODY(""), "");
    check_words(BODY("{}"), "");
    check_words(BODY("{\"system\":\"iris-v100\",\"nodes\":4}"), "--system=iris-v100 --nodes=4");
    check_words(BODY("{\"batch_per_device\":32}"), "--batch-per-device=32");
    check_words(BODY("{\"batch-per-device\":32}"), "--batch-per-device=32");
    check_words(BODY("{\"nodes\":[1,2,\"4-8\"]}"), "--nodes=1,2,4-8");
    check_refused(BODY("{\"nodes\":[]}"), "nodes", "at least one value");
    check_refused(BODY("{\"epochs\":[5]}"), "epochs", "one value, not a list");
    check_words(BODY("{\"strict\":true}"), "--strict");
    check_words(BODY("{\"strict\":false}"), "");
}

static void settings(void **state) {
    (void)state;
    check_words(BODY("{\"set\":{\"links.inter.bandwidth\":\"25GB/s\",\"n\":2,\"b\":true}}"),
                "--set=links.inter.bandwidth=25GB/s --set=n=2 --set=b=true");
    check_words(BODY("{\"set\":[\"a=1\",\"b=2\"]}"), "--set=a=1 --set=b=2");
    check_refused(BODY("{\"set\":{\"a\":null}}"), "set", "expected text, a number");
}

static void documents(void **state) {
    (void)state;
    struct read r = BODY("{\"workload\": {\"name\": \"a}\\\"b\", \"layers\": [{}]} , \"nodes\":1}");
    assert_int_equal(r.code, DL_OK);
    assert_int_equal(r.words.attached_count, 1);
    assert_string_equal(r.words.attached[0].text, "{\"name\": \"a}\\\"b\", \"layers\": [{}]}");
    assert_int_equal(r.words.attached[0].length, strlen(r.words.attached[0].text));
    assert_string_equal(r.words.list[0], "--workload=workload");
    dl_arena_free(&r.arena);
    r = body_of(&dl_cmd_compare, "{\"files\":[{\"name\":\"r.csv\",\"text\":\"a\\n1\\n\"},"
                                 "{\"name\":\"r.csv\",\"text\":\"b\"},{\"text\":\"c\"}]}");
    assert_int_equal(r.code, DL_OK);
    assert_int_equal(r.words.attached_count, 3);
    assert_string_equal(r.words.list[1], "r.csv (2)"); /* the same name twice: two tables */
    assert_string_equal(r.words.attached[0].text, "a\n1\n");
    dl_arena_free(&r.arena);
}

static void refusals(void **state) {
    (void)state;
    check_refused(BODY("[1]"), "", "expected an object");
    check_refused(BODY("{\"sytem\":\"x\"}"), "sytem", "expected an option of this command");
    check_refused(BODY("{\"nodes\":null}"), "nodes", "expected text or a number");
    check_refused(BODY("{\"nodes\":[[1]]}"), "nodes", "expected a list of texts or numbers");
    check_refused(BODY("{\"nodes\":{\"a\":1}}"), "nodes", "not an object");
    check_refused(BODY("{\"strict\":\"yes\"}"), "strict", "expected true or false");
    check_refused(BODY("{\"measured\":\"runs.csv\"}"), "measured", "expected a document");
    check_refused(body_of(&dl_cmd_compare, "{\"files\":[{\"name\":\"-x\",\"text\":\"\"}]}"),
                  "files", "does not begin with '-'");
    check_refused(body_of(&dl_cmd_compare, "{\"files\":\"runs.csv\"}"), "files", "expected a list");
    const char *withheld[] = {"output", "trace", "threads", "data", "format", "help", NULL};
    for (int i = 0; withheld[i] != NULL; i++) {
        char text[64];
        snprintf(text, sizeof text, "{\"%s\":\"x\"}", withheld[i]);
        check_refused(BODY(text), withheld[i], "a request cannot give this option");
    }
}

static void no_paths(void **state) {
    (void)state;
    const char *const bad[] = {"/etc/passwd", "../x", "a/b", "x.json", ".", ".hidden", NULL};
    for (int i = 0; bad[i] != NULL; i++) {
        char text[80];
        snprintf(text, sizeof text, "{\"system\":\"%s\"}", bad[i]);
        check_refused(BODY(text), "system", "expected a name");
        snprintf(text, sizeof text, "{\"framework\":[\"pytorch-ddp\",\"%s\"]}", bad[i]);
        if (bad[i][0] != '.' || bad[i][1] == '.') check_refused(BODY(text), "framework", "a name");
        snprintf(text, sizeof text, "system=%s", bad[i]);
        check_refused(form_of(text), "system", "expected a name");
    }
    check_refused(form_of("system=%2fetc%2Fpasswd"), "system", "expected a name");
}

static void too_many(void **state) {
    (void)state;
    static char text[4096];
    strcpy(text, "{\"set\":[\"a=1\"");
    for (int i = 1; i < DL_MAX_WORDS; i++) strcat(text, ",\"a=1\"");
    const size_t full = strlen(text);
    strcat(text, "]}");
    struct read r = BODY(text);
    assert_int_equal(r.code, DL_OK);
    assert_int_equal(r.words.count, DL_MAX_WORDS);
    dl_arena_free(&r.arena);
    strcpy(text + full, ",\"a=1\"]}");
    check_refused(BODY(text), "", "expected at most");
}

static void forms(void **state) {
    (void)state;
    check_words(form_of(""), "");
    check_words(form_of("system=iris-v100&nodes=1-16%2A2&precision="),
                "--system=iris-v100 --nodes=1-16*2");
    check_words(form_of("set=a%3d1+2&batch_per_device=8&noise&%"),
                "--set=a=1 2 --batch-per-device=8");
    check_words(form_of("nodes=4%00x"), "--nodes=4"); /* a NUL ends it */
    check_words(form_of("strict=true&"), "--strict");
    check_words(form_of("strict=false"), "");
    check_refused(form_of("strict=1"), "strict", "expected true or false");
    check_refused(form_of("sytem=x"), "sytem", "expected an option");
    check_refused(form_of("output=x"), "output", "expected an option");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),   cmocka_unit_test(settings), cmocka_unit_test(documents),
        cmocka_unit_test(refusals), cmocka_unit_test(no_paths), cmocka_unit_test(too_many),
        cmocka_unit_test(forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
