/* Command lines against option tables: values in their ranges, choices, former names. */
#include "model/catalog/command.h"
#include "tests/check.h"

static const struct dl_option plan[] = {
    {"nodes", 'n', "LIST", "Plan", "how many", NULL},
    {"batch", 'b', "N", "Plan", "samples", NULL},
    {"set", 0, "KEY=VALUE", "Plan", "what if", DL_REPEATED},
    {"strict", 's', NULL, "Plan", "a flag", NULL},
    {"verbose", 'v', NULL, "Plan", "a flag that may be repeated", DL_REPEATED},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {plan, dl_output_options, NULL};

#define PARSE(...)                                                                                 \
    char *words[] = {__VA_ARGS__, NULL};                                                           \
    struct dl_options options;                                                                     \
    struct dl_err err = {0};                                                                       \
    const int word_count = (int)(sizeof words / sizeof words[0]) - 1;                              \
    const enum dl_code code = dl_options_parse(tables, word_count, words, &options, &err)

/* gcc's -Wwrite-strings: the words of a command line are writable. */
#define W(text)                                                                                    \
    (char[]) { text }

static void numbers_keep_to_their_range(void **state) {
    PARSE(W("--batch"), W("64k"), W("--nodes"), W("2.5"));
    assert_int_equal(code, DL_OK);
    double value = 7;
    assert_int_equal(
        dl_option_number(&options, "batch",
                         &(struct dl_value){.unit = DL_UNIT_COUNT, .min = 1, .max = 1e6}, &value,
                         &err),
        DL_OK);
    check_close(value, 64000, 1e-15);
    assert_int_equal(
        dl_option_number(&options, "batch",
                         &(struct dl_value){.unit = DL_UNIT_COUNT, .min = 1, .max = 100}, &value,
                         &err),
        DL_ERR_USAGE);
    assert_string_equal(err.message, "--batch: expected a number in [1, 100], got \"64k\"");
    check_close(value, 64000, 1e-15); /* unchanged by a failure */
    value = 7;
    assert_int_equal(dl_option_number(&options, "strict",
                                      &(struct dl_value){.unit = DL_UNIT_NONE, .min = 0, .max = 1},
                                      &value, &err),
                     DL_OK);
    check_close(value, 7, 1e-15); /* not given: as it was */
    int64_t whole = 3;
    assert_int_equal(dl_option_integer(&options, "nodes", 1, 10, &whole, &err), DL_ERR_USAGE);
    assert_int_equal(whole, 3);
    assert_int_equal(dl_option_integer(&options, "batch", 1, 100000, &whole, &err), DL_OK);
    assert_int_equal(whole, 64000);
}

static void choices_and_formats(void **state) {
    static const char *const sizes[] = {"small", "large", NULL};
    PARSE(W("--nodes"), W("large"), W("--json"));
    assert_int_equal(code, DL_OK);
    int choice = -1;
    assert_int_equal(dl_option_choice(&options, "nodes", sizes, &choice, &err), DL_OK);
    assert_int_equal(choice, 1);
    static const char *const other[] = {"red", "green", NULL};
    assert_int_equal(dl_option_choice(&options, "nodes", other, &choice, &err), DL_ERR_USAGE);
    assert_string_equal(err.message, "--nodes: expected one of red, green, got \"large\"");
    enum dl_format format = DL_FORMAT_TEXT;
    assert_int_equal(dl_output_format(&options, &format, &err), DL_OK);
    assert_int_equal(format, DL_FORMAT_JSON);
}

static void contradicting_formats(void **state) {
    enum dl_format format = DL_FORMAT_TEXT;
    {
        PARSE(W("--json"), W("--csv"));
        assert_int_equal(code, DL_OK);
        assert_int_equal(dl_output_format(&options, &format, &err), DL_ERR_USAGE);
    }
    {
        PARSE(W("--format=table"), W("--csv"));
        assert_int_equal(code, DL_OK);
        assert_int_equal(dl_output_format(&options, &format, &err), DL_ERR_USAGE);
    }
    {
        PARSE(W("--format=csv"), W("--csv"));
        assert_int_equal(code, DL_OK);
        assert_int_equal(dl_output_format(&options, &format, &err), DL_OK);
        assert_int_equal(format, DL_FORMAT_CSV);
    }
}

static void commands_are_found_or_suggested(void **state) {
    static const struct dl_command predict = {.name = "predict"}, list = {.name = "list"};
    static const struct dl_command *const commands[] = {&predict, &list, NULL};
    const struct dl_command *found = NULL;
    struct dl_err err = {0};
    assert_int_equal(dl_command_find(commands, "list", &found, &err), DL_OK);
    assert_ptr_equal(found, &list);
    assert_int_equal(dl_command_find(commands, "predcit", &found, &err), DL_ERR_USAGE);
    assert_non_null(strstr(err.message, "did you mean 'predict'?"));
    assert_int_equal(dl_command_find(commands, "zzzz", &found, &err), DL_ERR_USAGE);
    assert_non_null(strstr(err.message, "no command 'zzzz'; there are predict, list"));
}

/* One row of each type, as commands have them. */
struct asked {
    bool flag, number_given, most;
    double number;
    int64_t count;
    enum dl_format format;
    const char *text, *word;
};
#define ASKED(member) struct asked, member
static const char *const formats[] = {"table", "csv", "json", NULL};
static const char *const words_allowed[] = {"cpu", "gpu", NULL};
static const struct dl_option bound[] = {
    {"flag", 'f', NULL, "Plan", "a flag", DL_FLAG(ASKED(flag))},
    {"number", 0, "N|max", "Plan", "a time",
     DL_NUMBER(ASKED(number), .unit = DL_UNIT_S, .min = 1e-3, .max = 10,
               DL_GIVEN(ASKED(number_given)), DL_OR_WORD("max", ASKED(most)))},
    {"count", 0, "N", "Plan", "a count", DL_INTEGER(ASKED(count), .min = 1, .max = 8)},
    {"format", 0, "table|csv|json", "Plan", "a choice",
     DL_CHOICE(ASKED(format), .choices = formats)},
    {"text", 0, "TEXT", "Plan", "a text", DL_TEXT(ASKED(text))},
    {"word", 0, "cpu|gpu", "Plan", "a text of a list",
     DL_WORD(ASKED(word), .choices = words_allowed, .alias = "former")},
    {"free", 0, "TEXT", "Plan", "asked for by name", NULL},
    {.name = NULL},
};
static const struct dl_option *const bound_tables[] = {bound, NULL};

static enum dl_code bind(int count, char **words, struct asked *out, struct dl_err *err) {
    struct dl_options options;
    assert_int_equal(dl_options_parse(bound_tables, count, words, &options, err), DL_OK);
    return dl_options_bind(&options, bound, out, err);
}

static void rows_fill_their_fields(void **state) {
    struct asked asked = {.number = 5, .text = "default"};
    struct dl_err err = {0};
    char *words[] = {W("-f"),       W("--number=20ms"), W("--count=3"),
                     W("--format"), W("json"),          W("--former=gpu")};
    assert_int_equal(bind(6, words, &asked, &err), DL_OK);
    assert_true(asked.flag);
    assert_true(asked.number_given);
    assert_false(asked.most);
    assert_true(asked.number > 0.0199 && asked.number < 0.0201);
    assert_int_equal(asked.count, 3);
    assert_int_equal(asked.format, DL_FORMAT_JSON);
    assert_string_equal(asked.text, "default"); /* absent: as it was */
    assert_string_equal(asked.word, "gpu");     /* by its former name */
}

static void a_word_in_place_of_a_number(void **state) {
    struct asked asked = {.number = 5};
    struct dl_err err = {0};
    char *words[] = {W("--number"), W("max")};
    assert_int_equal(bind(2, words, &asked, &err), DL_OK);
    assert_true(asked.most);
    assert_true(asked.number_given);
    assert_true(asked.number > 4.9 && asked.number < 5.1);
}

static void bound_faults(void **state) {
    static const struct {
        const char *word, *message;
    } faults[] = {
        {"--number=11", "--number: expected a number in [0.001, 10] s, got \"11\""},
        {"--count=0", "--count: expected a number in [1, 8], got \"0\""},
        {"--count=2.5", "--count: expected a whole number such as 16 or 64k, got \"2.5\""},
        {"--format=xml", "--format: expected one of table, csv, json, got \"xml\""},
        {"--former=tpu", "--word: expected one of cpu, gpu, got \"tpu\""},
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct asked asked = {.count = 7};
        struct dl_err err = {0};
        char word[64];
        char *words[] = {word};
        snprintf(word, sizeof word, "%s", faults[i].word);
        assert_int_equal(bind(1, words, &asked, &err), DL_ERR_USAGE);
        assert_string_equal(err.message, faults[i].message);
        assert_int_equal(asked.count, 7); /* nothing was stored */
    }
}

static void a_former_name_counts_as_the_option(void **state) {
    struct dl_options options;
    struct dl_err err = {0};
    char *twice[] = {W("--word=cpu"), W("--former=gpu")};
    assert_int_equal(dl_options_parse(bound_tables, 2, twice, &options, &err), DL_ERR_USAGE);
    assert_string_equal(err.message, "--word: given twice");
    char *once[] = {W("--former=gpu")};
    assert_int_equal(dl_options_parse(bound_tables, 1, once, &options, &err), DL_OK);
    assert_string_equal(dl_option_text(&options, "word"), "gpu");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_fill_their_fields),
        cmocka_unit_test(a_word_in_place_of_a_number),
        cmocka_unit_test(bound_faults),
        cmocka_unit_test(a_former_name_counts_as_the_option),

        cmocka_unit_test(numbers_keep_to_their_range),
        cmocka_unit_test(choices_and_formats),
        cmocka_unit_test(contradicting_formats),
        cmocka_unit_test(commands_are_found_or_suggested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
