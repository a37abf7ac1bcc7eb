/* What all commands share: found by name, the form of their output from three options, parts of
 * results, the header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/core/text.h"
#include "model/catalog/command.h"
#include "tests/check.h"

static void found_by_name(void **state) {
    (void)state;
    static const struct dl_command one = {.name = "predict"}, two = {.name = "search"},
                                   three = {.name = "list"};
    static const struct dl_command *const commands[] = {&one, &two, &three, NULL};
    const struct dl_command *found = NULL;
    struct dl_err err = {0};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dl_command_find(commands, commands[i]->name, &found, &err), DL_OK);
        assert_ptr_equal(found, commands[i]);
    }
    assert_int_equal(dl_command_find(commands, "serach", &found, &err), DL_ERR_USAGE);
    assert_string_equal(err.message, "no command 'serach'; did you mean 'search'?");
    assert_int_equal(dl_command_find(commands, "lisp", &found, &err), DL_ERR_USAGE);
    assert_string_equal(err.message, "no command 'lisp'; did you mean 'list'?");
    assert_int_equal(dl_command_find(commands, "zzzzzzzzzz", &found, &err), DL_ERR_USAGE);
    assert_string_equal(err.message, "no command 'zzzzzzzzzz'; there are predict, search, list");
    assert_int_equal(dl_command_find(commands + 2, "zzzzzzzzzz", &found, &err), DL_ERR_USAGE);
    assert_string_equal(err.message, "no command 'zzzzzzzzzz'; there are list");
    assert_int_equal(dl_command_find(commands + 3, "x", &found, &err), DL_ERR_USAGE);
    assert_string_equal(err.message, "no command 'x'; there are ");
}

/* Thirty names of ten letters: the list is cut after 255 characters, and the 24 first are those
 * that a wrong one may mean. */
static void many_commands(void **state) {
    (void)state;
    static char names[30][16];
    static struct dl_command all[30];
    const struct dl_command *commands[31] = {NULL}, *found = NULL;
    struct dl_err err = {0};
    char expected[400] = "";
    for (int i = 0; i < 30; i++) {
        snprintf(names[i], sizeof names[i], "%c%ccommands", 'a' + i % 26, 'A' + i);
        all[i].name = names[i];
        commands[i] = &all[i];
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%s%s",
                 i > 0 ? ", " : "", names[i]);
    }
    expected[255] = '\0';
    assert_int_equal(dl_command_find(commands, "0123456789", &found, &err), DL_ERR_USAGE);
    char message[500];
    snprintf(message, sizeof message, "no command '0123456789'; there are %s", expected);
    assert_string_equal(err.message, message);
    for (int i = 0; i < 30; i++) {
        char wrong[16];
        assert_int_equal(dl_command_find(commands, names[i], &found, &err), DL_OK);
        assert_ptr_equal(found, &all[i]);
        snprintf(wrong, sizeof wrong, "%sx", names[i]);
        assert_int_equal(dl_command_find(commands, wrong, &found, &err), DL_ERR_USAGE);
        if (i >= 24) continue;
        snprintf(message, sizeof message, "no command '%s'; did you mean '%s'?", wrong, names[i]);
        assert_string_equal(err.message, message);
    }
}

/* --format in each of its values or not, with and without --json and --csv: one form, or a
 * contradiction. */
static void every_form(void **state) {
    (void)state;
    static char words[][16] = {"", "--format=table", "--format=csv", "--format=json"};
    static char json_word[] = "--json", csv_word[] = "--csv";
    static const struct dl_option *const tables[] = {dl_output_options, NULL};
    static const enum dl_format forms[] = {DL_FORMAT_TEXT, DL_FORMAT_TEXT, DL_FORMAT_CSV,
                                           DL_FORMAT_JSON};
    for (int given = 0; given < 4; given++) {
        for (int flags = 0; flags < 4; flags++) {
            const bool json = (flags & 1) != 0, csv = (flags & 2) != 0;
            char *line[3];
            int count = 0;
            struct dl_options options;
            struct dl_err err = {0};
            enum dl_format format = DL_FORMAT_TEXT;
            if (given > 0) line[count++] = words[given];
            if (json) line[count++] = json_word;
            if (csv) line[count++] = csv_word;
            assert_int_equal(dl_options_parse(tables, count, line, &options, &err), DL_OK);
            const enum dl_code code = dl_output_format(&options, &format, &err);
            const bool contradicts = (json && csv) || (json && given != 0 && given != 3) ||
                                     (csv && given != 0 && given != 2);
            assert_int_equal(code, contradicts ? DL_ERR_USAGE : DL_OK);
            if (contradicts)
                assert_string_equal(err.message,
                                    "--format, --json and --csv contradict each other; give one");
            else
                assert_int_equal(format, json  ? DL_FORMAT_JSON
                                         : csv ? DL_FORMAT_CSV
                                               : forms[given]);
        }
    }
    char wrong[] = "--format=xml", *line[] = {wrong};
    struct dl_options options;
    struct dl_err err = {0};
    enum dl_format format = DL_FORMAT_TEXT;
    assert_int_equal(dl_options_parse(tables, 1, line, &options, &err), DL_OK);
    assert_int_equal(dl_output_format(&options, &format, &err), DL_ERR_USAGE);
}

static char given_out[200];
static int parts, lasts;
static enum dl_code take(const struct dl_options *options, const char *text, struct dl_err *err) {
    (void)options, (void)err;
    snprintf(given_out, sizeof given_out, "%s", text);
    return DL_OK;
}
static enum dl_code take_part(const struct dl_options *options, const char *text, bool last,
                              struct dl_err *err) {
    (void)options, (void)err;
    parts++, lasts += last;
    snprintf(given_out + strlen(given_out), sizeof given_out - strlen(given_out), "%s", text);
    return last ? DL_ERR_NO : DL_OK;
}

/* Parts are held until the last where only whole texts can be given out, else passed on. */
static void results_in_parts(void **state) {
    (void)state;
    struct dl_arena arena = {0};
    struct dl_text held = {.arena = &arena};
    struct dl_options options = {0};
    struct dl_err err = {0};
    struct dl_context context = {.output = take};
    assert_int_equal(dl_output_part(&context, &options, &held, "one ", false, &err), DL_OK);
    assert_string_equal(given_out, "");
    assert_int_equal(dl_output_part(&context, &options, &held, "two", true, &err), DL_OK);
    assert_string_equal(given_out, "one two");
    given_out[0] = '\0';
    context.output_part = take_part;
    assert_int_equal(dl_output_part(&context, &options, NULL, "3 ", false, &err), DL_OK);
    assert_string_equal(given_out, "3 ");
    assert_int_equal(dl_output_part(&context, &options, NULL, "4", true, &err), DL_ERR_NO);
    assert_string_equal(given_out, "3 4");
    assert_true(parts == 2 && lasts == 1);
    assert_int_equal(dl_output_part(&context, &options, NULL, NULL, true, &err), DL_ERR_SYSTEM);
    assert_string_equal(err.message, "out of memory");
    assert_int_equal(parts, 2);
    dl_arena_free(&arena);
}

/* {"format": F, "version": 1, "dlmodel": {"version": V, "commit": C}: V and C as in the text of
 * --version. */
static void header(void **state) {
    (void)state;
    struct dl_arena arena = {0};
    struct dl_json_writer w;
    char version[64], expected[300];
    dl_jw_init(&w, &arena, false);
    dl_output_header(&w, "dlmodel-x");
    dl_jw_end(&w);
    assert_false(w.failed);
    assert_int_equal(strncmp(dl_version_text, "dlmodel ", 8), 0);
    const char *open = strstr(dl_version_text, " ("), *close = strrchr(dl_version_text, ')');
    assert_true(open != NULL && close != NULL && close[1] == '\0');
    snprintf(version, sizeof version, "%.*s", (int)(open - dl_version_text - 8),
             dl_version_text + 8);
    struct dl_json *doc = NULL;
    struct dl_err err = {0};
    assert_int_equal(dl_json_parse("h", w.text, strlen(w.text), &arena, &doc, &err), DL_OK);
    snprintf(expected, sizeof expected, "\"version\": \"%s\",\n    \"commit\": \"%.*s\"\n  }",
             version, (int)(close - open - 2), open + 2);
    check_contains(w.text, expected);
    check_contains(w.text,
                   "{\n  \"format\": \"dlmodel-x\",\n  \"version\": 1,\n  \"dlmodel\": {\n");
    dl_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(found_by_name), cmocka_unit_test(many_commands),
        cmocka_unit_test(every_form), cmocka_unit_test(results_in_parts), cmocka_unit_test(header)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
