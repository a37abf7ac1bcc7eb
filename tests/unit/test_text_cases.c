/* Readers and writers of text against tests/golden/texts.txt, one case a line: KIND ARGUMENTS =>
 * what is read, or the error. \n, \t, \r, \\ and \xNN are escapes. */
#include "calibrate/run/cal_journal.h"
#include "model/catalog/command.h"
#include "model/core/csv.h"
#include "model/core/json.h"
#include "model/core/name_hint.h"
#include "model/core/text.h"
#include "model/core/units.h"
#include "model/machine/system.h"
#include "model/network/libraries/mpi_rules.h"
#include "model/search/campaign/campaign_file.h"
#include "model/workload/workload_expr.h"
#include "serve/body.h"
#include "tests/check.h"
#include "tests/load_workload.h"
#include "tests/rich_schema.h"
#include "tests/text_cases.h"

extern const struct dl_command dl_cmd_predict, dl_cmd_compare;

static struct dl_arena arena;
static char *result; /* TEXT_CASE_BYTES */

static void add(const char *format, ...) {
    const size_t used = strlen(result);
    va_list args;
    va_start(args, format);
    vsnprintf(result + used, TEXT_CASE_BYTES - used, format, args);
    va_end(args);
}

static void refuse(const struct dl_err *err) {
    char text[1600];
    dl_err_text(err, NULL, text, sizeof text);
    *result = 0;
    add("%s", strncmp(text, "dlmodel: ", 9) == 0 ? text + 9 : text);
}

/* Decodes the escapes in place; returns the length. */
static size_t decode(char *text) {
    char *to = text;
    for (const char *from = text; *from != 0; from++) {
        if (*from != '\\') {
            *to++ = *from;
            continue;
        }
        const char *const names = "ntr\\", *const bytes = "\n\t\r\\", *name;
        unsigned code;
        if (*++from == 'x' && sscanf(from + 1, "%2x", &code) == 1) {
            *to++ = (char)code;
            from += 2;
        } else if (*from != 0 && (name = strchr(names, *from)) != NULL) {
            *to++ = bytes[name - names];
        } else {
            fail_msg("unknown escape in %s", text);
        }
    }
    *to = 0;
    return (size_t)(to - text);
}

/* Adds text with the same escapes. */
static void add_encoded(const char *text) {
    for (; *text != 0; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '\n')
            add("\\n");
        else if (c == '\\')
            add("\\\\");
        else
            add(c < 32 || c > 126 ? "\\x%02x" : "%c", c);
    }
}

/* Cuts the first word off. */
static char *word(char **text) {
    char *first = *text;
    const size_t length = strcspn(first, " ");
    *text += length + (first[length] != 0);
    first[length] = 0;
    return first;
}

static enum dl_unit unit_of(const char *name) {
    static const char *const names[] = {"number", "count"}; /* units without a name */
    for (int u = 0; u < DL_UNITS; u++) {
        const char *own = dl_unit_name((enum dl_unit)u);
        if (strcmp(name, own[0] != 0 ? own : names[u == DL_UNIT_COUNT]) == 0)
            return (enum dl_unit)u;
    }
    fail_msg("unknown unit %s", name);
    return DL_UNITS;
}

static void quantity(char *text, size_t length) {
    const enum dl_unit unit = unit_of(word(&text));
    struct dl_err err;
    double value = 42;
    const enum dl_code code = dl_units_parse(text, unit, &value, &err);
    if (code == DL_OK) {
        add("%.17g", value);
        return;
    }
    assert_int_equal(code, DL_ERR_USAGE);
    assert_true(value == 42); /* nothing is written on failure */
    refuse(&err);
}

static void format(char *text, size_t length) {
    const enum dl_unit unit = unit_of(word(&text));
    char shown[64];
    dl_units_format(strtod(text, NULL), unit, shown, sizeof shown);
    add("%s", shown);
}

static void list(char *text, size_t length) {
    int64_t values[64];
    size_t count = 77;
    struct dl_err err;
    if (dl_list_parse(text, values, 64, &count, &err) != DL_OK) {
        assert_int_equal(count, 77);
        refuse(&err);
        return;
    }
    for (size_t i = 0; i < count; i++) add("%s%lld", i > 0 ? " " : "", (long long)values[i]);
}

/* A document of the rich schema, written again without white space at the ends of lines. */
static void load_rich(const char *text, size_t length, struct dl_override *change) {
    struct dl_err err = {.code = DL_OK};
    struct dl_json *doc;
    struct rich rich;
    enum dl_code code = dl_json_parse("x", text, length, &arena, &doc, &err);
    if (code == DL_OK && change != NULL) code = dl_json_set(doc, &rich_schema, change, 1, &err);
    if (code == DL_OK) code = dl_json_load(doc, &rich_schema, &arena, &rich, &err);
    if (code != DL_OK) {
        refuse(&err);
        return;
    }
    if (change != NULL && !change->used) {
        add("unknown key");
        return;
    }
    char *written = dl_json_text(&rich_schema, &rich, &arena), *line = written;
    const char *const skipped = "\"title\": \"t\",";
    for (; *line != 0; line += strspn(line, "\n ")) {
        const size_t end = strcspn(line, "\n");
        const bool own =
            strncmp(line, "\"format\"", 8) == 0 || strncmp(line, "\"version\"", 9) == 0 ||
            strncmp(line, "\"fallback", 9) == 0 || strncmp(line, skipped, strlen(skipped)) == 0;
        if (!own) add_encoded(dl_arena_strndup(&arena, line, end));
        line += end;
    }
}

static void json(char *text, size_t length) {
    struct dl_err err = {.code = DL_OK};
    struct dl_json *doc;
    if (dl_json_parse("x", text, length, &arena, &doc, &err) == DL_OK)
        add("ok");
    else
        refuse(&err);
}

/* The members that follow the head of a rich document. */
static void load(char *text, size_t length) {
    const char *whole = dl_arena_printf(
        &arena, "{\"format\": \"dlmodel-rich\", \"version\": 1, \"title\": \"t\"%s}", text);
    load_rich(whole, strlen(whole), NULL);
}

static void document(char *text, size_t length) { load_rich(text, length, NULL); }

static void set(char *text, size_t length) {
    static const char whole[] =
        "{\"format\": \"dlmodel-rich\", \"version\": 1, \"title\": \"t\", \"links\": {\"intra\": "
        "{\"bandwidth_bytes_per_s\": 1e9}}, \"items\": [{\"name\": \"a\"}, {\"name\": \"b\"}], "
        "\"numbers\": [1, 2, 3]}";
    struct dl_override change = {word(&text), text, false};
    const bool known = dl_json_key_known(&rich_schema, change.key);
    load_rich(whole, sizeof whole - 1, &change);
    if (strcmp(result, "unknown key") == 0) assert_false(known);
}

/* Rows between bars, cells between commas. */
static void csv(char *text, size_t length) {
    struct dl_err err = {.code = DL_OK};
    struct dl_csv t;
    if (dl_csv_parse("x", text, length, &arena, &t, &err) != DL_OK) {
        refuse(&err);
        return;
    }
    for (int row = -1; row < t.row_count; row++) {
        if (row >= 0) add(" | %d:", t.row_lines[row]);
        for (int c = 0; c < t.column_count; c++) {
            add("%s", c > 0 ? "," : "");
            add_encoded(row < 0 ? t.header[c] : t.rows[row][c]);
        }
    }
}

static void number(char *text, size_t length) {
    const char *table = dl_arena_printf(&arena, "name\n\"%s\"\n", text);
    struct dl_err err = {.code = DL_OK};
    struct dl_csv t;
    double value;
    assert_int_equal(dl_csv_parse("x", table, strlen(table), &arena, &t, &err), DL_OK);
    if (dl_csv_number(&t, 0, 0, &value, &err) == DL_OK)
        add("%.17g", value);
    else
        refuse(&err);
}

static enum dl_code find(void *context, const char *name, double *out, struct dl_err *err) {
    (void)context;
    *out = strcmp(name, "two") == 0 ? 2 : strcmp(name, "six") == 0 ? 6 : -0.5;
    if (*out > 0 || strcmp(name, "_x1") == 0) return DL_OK;
    return dl_fail(err, DL_ERR_INPUT, "no parameter %s", name);
}

static void expression(char *text, size_t length) {
    const struct dl_expr_names names = {.find = find};
    struct dl_err err = {.code = DL_OK};
    double value;
    if (dl_expr_eval(text, &names, &value, &err) == DL_OK)
        add("%.17g", value);
    else
        refuse(&err);
}

static void workload(char *text, size_t length) {
    struct dl_workload w;
    struct dl_err err;
    const char *whole = dl_arena_printf(
        &arena,
        "{'format':'dlmodel-workload','version':1,'name':'t','summary':'s','source':'x',%s}", text);
    if (load_text(whole, NULL, 0, &arena, &w, &err) == DL_OK)
        add("%d layers, %.17g parameters", w.layer_count, w.parameters);
    else
        refuse(&err);
}

/* The members that follow what every device has. */
static void device(char *text, size_t length) {
    const char *whole = dl_arena_printf(
        &arena,
        "{\"format\":\"dlmodel-device\",\"version\":1,\"name\":\"x\",\"summary\":\"s\","
        "\"kind\":\"gpu\",\"memory_bytes\":16e9,\"memory_bandwidth_bytes_per_s\":900e9%s}",
        text);
    struct dl_err err = {.code = DL_OK};
    struct dl_json *doc;
    struct dl_device read;
    enum dl_code code = dl_json_parse("x", whole, strlen(whole), &arena, &doc, &err);
    if (code == DL_OK) code = dl_json_load(doc, &dl_device_schema, &arena, &read, &err);
    if (code == DL_OK) code = dl_device_check(&read, doc, &err);
    code == DL_OK ? add("ok") : refuse(&err);
}
static void system_file(char *text, size_t length) {
    const char *whole = dl_arena_printf(
        &arena,
        "{\"format\":\"dlmodel-system\",\"version\":1,\"name\":\"x\",\"summary\":\"s\","
        "\"source\":\"unverified\",\"device\":\"d\",%s}",
        text);
    struct dl_err err = {.code = DL_OK};
    struct dl_json *doc;
    struct dl_system read;
    enum dl_code code = dl_json_parse("x", whole, strlen(whole), &arena, &doc, &err);
    if (code == DL_OK) code = dl_json_load(doc, &dl_system_schema, &arena, &read, &err);
    if (code == DL_OK) code = dl_system_check(&read, doc, &err);
    code == DL_OK ? add("ok") : refuse(&err);
}

/* Writes the text to a file and names it in its errors by an x. */
static const char *scratch_file(const char *head, const char *text, const char *tail) {
    static char path[128];
    const char *base = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/dlmodel-text.%ld", base != NULL ? base : "/tmp",
             (long)getpid());
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fprintf(out, "%s%s%s", head, text, tail);
    assert_int_equal(fclose(out), 0);
    return path;
}
static void refuse_file(const char *path, struct dl_err *err) {
    assert_string_equal(err->file, path);
    snprintf(err->file, sizeof err->file, "x");
    refuse(err);
}

static void journal(char *text, size_t length) {
    struct dl_cal_journal j;
    struct dl_err err = {.code = DL_OK};
    const char *path = scratch_file("", text, "");
    if (dl_cal_journal_read(path, &arena, &j, &err) == DL_OK)
        add("%d samples, %d facts", j.sample_count, j.fact_count);
    else
        refuse_file(path, &err);
    unlink(path);
}

/* A command line of `predict`: the options that were given and the arguments. */
static void options(char *text, size_t length) {
    char *words[DL_MAX_POSITIONAL + 2];
    int count = 0;
    while (*text != 0) words[count++] = word(&text);
    struct dl_options *given = dl_arena_alloc(&arena, 1, sizeof *given);
    struct dl_err err = {.code = DL_OK};
    if (dl_options_parse(dl_cmd_predict.options, count, words, given, &err) != DL_OK) {
        refuse(&err);
        return;
    }
    for (int i = 0; i < given->given_count; i++)
        add("%s%s=%s", i > 0 ? " " : "", given->given[i].option->name,
            given->given[i].value != NULL ? given->given[i].value : "yes");
    for (int i = 0; i < given->positional_count; i++) add(" [%s]", given->positional[i]);
}

static void campaign(char *text, size_t length) {
    struct dl_campaign_file file;
    struct dl_err err = {.code = DL_OK};
    const char *path =
        scratch_file("{\"format\": \"dlmodel-campaign\", \"version\": 1,\n", text, "}\n");
    if (dl_campaign_read(path, &arena, &file, &err) != DL_OK) {
        refuse_file(path, &err);
    } else {
        add("%s %s %s %s %s steps %lld devices %lld", file.workload, file.framework, file.precision,
            file.optimizer, file.input != NULL ? file.input : "-", (long long)file.steps,
            (long long)file.devices_per_trial);
        for (int i = 0; i < file.trial_count; i++) {
            add(" | batch %lld", (long long)file.trials[i].batch_per_device);
            for (int k = 0; k < file.trials[i].parameter_count; k++)
                add(" %s=%s", file.trials[i].parameters[k].key, file.trials[i].parameters[k].text);
        }
    }
    unlink(path);
}

static void add_words(enum dl_code code, const struct dl_words *words, const struct dl_err *err) {
    if (code != DL_OK) {
        add("%s: %s", err->key, err->message);
        return;
    }
    for (int i = 0; i < words->count; i++) add("%s%s", i > 0 ? " " : "", words->list[i]);
    for (int i = 0; i < words->attached_count; i++) {
        add(" <");
        add_encoded(words->attached[i].text);
        add(">");
    }
}

/* What a request to the HTTP service may say: JSON of predict and compare, and forms. */
static void body_of(const struct dl_command *command, const char *text, size_t length) {
    struct dl_words words = {.count = 0};
    struct dl_err err = {.code = DL_OK};
    add_words(dl_words_of_body(command, text, length, &arena, &words, &err), &words, &err);
}
static void body(char *text, size_t length) { body_of(&dl_cmd_predict, text, length); }
static void tables(char *text, size_t length) { body_of(&dl_cmd_compare, text, length); }
static void form(char *text, size_t length) {
    struct dl_words words = {.count = 0};
    struct dl_err err = {.code = DL_OK};
    add_words(dl_words_of_form(&dl_cmd_predict, text, &arena, &words, &err), &words, &err);
}

/* Characters of an error: control characters and broken UTF-8 become '?'. */
static void printable(char *text, size_t length) {
    struct dl_err err;
    char shown[200];
    dl_fail(&err, DL_ERR_NO, "%s", text);
    dl_err_text(&err, NULL, shown, sizeof shown);
    add_encoded(shown + strlen("dlmodel: "));
}

static void quote(char *text, size_t length) { add_encoded(dl_shell_quote(&arena, text)); }

/* The error for an unknown name of the list before it. */
static void hint(char *text, size_t length) {
    const char *names[16] = {NULL};
    char *list = word(&text);
    int count = 0;
    for (char *name = strtok(list, ","); name != NULL && count < 15; name = strtok(NULL, ","))
        names[count++] = name;
    struct dl_err err = {.code = DL_OK};
    assert_int_equal(dl_name_hint("system", "systems", text, names, &arena, &err), DL_ERR_USAGE);
    refuse(&err);
}

static void suggest(char *text, size_t length) {
    static const char *const names[] = {"bandwidth_bytes_per_s",
                                        "latency_s",
                                        "nodes",
                                        "horovod-pytorch",
                                        "resnet50",
                                        "resnet101",
                                        NULL};
    const char *near = dl_suggest(text, names);
    add("%s", near != NULL ? near : "none");
}

/* A cell of CSV: what a spreadsheet would run is text for it. */
static void cell(char *text, size_t length) {
    static const struct dl_column column[] = {{.key = "a", .heading = "a"}};
    struct dl_table table;
    dl_table_init(&table, &arena, column, 1);
    dl_table_row(&table)->string = text;
    add_encoded(dl_table_csv(&table) + 2);
}

/* What an MPI takes for one operation of this many bytes: algorithm and segment. */
struct mpi_question {
    enum dl_mpi_kind kind;
    enum dl_collective_op op;
    double ranks;
};

static const char *mpi_answer(const struct mpi_question *q, double bytes) {
    double below;
    if (q->op == DL_COLL_ALL_REDUCE)
        return dl_mpi_algorithms[dl_mpi_all_reduce_choice(q->kind, q->ranks, bytes, &below)].name;
    const struct dl_mpi_choice c = dl_mpi_other_choice(q->kind, q->op, q->ranks, bytes);
    const char *name = dl_mpi_algorithms[DL_MPI_FIRST_OTHER + c.algorithm].name;
    return c.segment_bytes > 0 ? dl_arena_printf(&arena, "%s/%.0f", name, c.segment_bytes) : name;
}

/* KIND OPERATION RANKS: the choice from one byte a rank to 4 MiB, with the total sizes at which it
 * changes. */
static void mpi(char *text, size_t length) {
    static const char *const kinds[] = {"open-4.0", "open-4.1", "mpich"};
    struct mpi_question q = {.op = DL_COLL_BROADCAST};
    const char *kind = word(&text), *operation = word(&text);
    while (strcmp(kinds[q.kind], kind) != 0) q.kind++;
    for (int op = 0; op < DL_COLL_OPS; op++)
        if (strcmp(dl_collective_op_names[op], operation) == 0) q.op = (enum dl_collective_op)op;
    q.ranks = atof(text);
    const double unit = q.op == DL_COLL_BROADCAST || q.op == DL_COLL_REDUCE ||
                                q.op == DL_COLL_REDUCE_SCATTER || q.op == DL_COLL_ALL_REDUCE
                            ? 1
                            : q.ranks;
    const char *now = mpi_answer(&q, unit);
    add("%s", now);
    for (int step = 2; step < 45; step++) { /* 1, 1.5, 2, 3, 4, 6, ... */
        double low = floor(ldexp(step % 2 ? 1.5 : 1, step / 2 - 1) * unit),
               high = floor(ldexp(step % 2 ? 2 : 1.5, step / 2 - 1) * unit);
        if (strcmp(mpi_answer(&q, high), now) == 0) continue;
        while (high - low > 1) {
            const double middle = floor((low + high) / 2);
            *(strcmp(mpi_answer(&q, middle), now) == 0 ? &low : &high) = middle;
        }
        now = mpi_answer(&q, high);
        add(" %.0f %s", high, now);
    }
}

static void one_case(void *user, const char *line, char *out) {
    static const struct {
        const char *name;
        void (*run)(char *text, size_t length);
    } kinds[] = {{"quantity", quantity},
                 {"format", format},
                 {"list", list},
                 {"json", json},
                 {"load", load},
                 {"document", document},
                 {"set", set},
                 {"csv", csv},
                 {"number", number},
                 {"options", options},
                 {"campaign", campaign},
                 {"expression", expression},
                 {"body", body},
                 {"workload", workload},
                 {"journal", journal},
                 {"tables", tables},
                 {"form", form},
                 {"device", device},
                 {"system", system_file},
                 {"cell", cell},
                 {"quote", quote},
                 {"hint", hint},
                 {"mpi", mpi},
                 {"suggest", suggest},
                 {"printable", printable}};
    char copy[TEXT_CASE_BYTES], *text = copy;
    snprintf(copy, sizeof copy, "%s", line);
    const char *kind = word(&text);
    result = out;
    *out = 0;
    const size_t length = decode(text);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, kind) != 0) continue;
        kinds[i].run(text, length);
        dl_arena_free(&arena);
        return;
    }
    fail_msg("unknown kind of case: %s", kind);
}

static void every_text(void **state) { check_text_cases("texts.txt", one_case, NULL, NULL); }

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
