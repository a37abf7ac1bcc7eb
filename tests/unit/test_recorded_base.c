/* Recorded results (recorded.h: a regression net, no oracle) of model/core: texts of JSON and CSV
 * that are right or wrong in every way, --set of every type of field, tables, suggestions, quoting,
 * and the statistics that fits stand on.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <gsl/gsl_matrix.h>
#include <gsl/gsl_vector.h>

#include "model/statistics/classes.h"
#include "model/core/csv.h"
#include "model/core/hash.h"
#include "model/statistics/linear.h"
#include "model/statistics/mixed_model.h"
#include "model/core/name_hint.h"
#include "model/statistics/ranking.h"
#include "model/statistics/robust_fit.h"
#include "model/core/table.h"
#include "model/core/text.h"
#include "tests/check.h"
#include "tests/recorded.h"
#include "tests/rich_schema.h"

enum { DOCUMENTS = 3000, SETS = 1500, CSVS = 1500, TABLES = 300, WORDS = 800, FITS = 150 };
enum { TEXT_BYTES = 4096, ROWS = 24 };

static uint64_t seed;
static int upto(int count) { return (int)(check_random(&seed) % (uint64_t)count); }
static bool once_in(int count) { return upto(count) == 0; }

/* Tokens of which a value is made: those that JSON has, and those that it has not. */
static const char *const scalars[] = {"0",    "1",     "-1",      "1.5",     "2e3",     "-0.25E-2",
                                      "true", "false", "\"red\"", "\"4*x\"", "\"blu\"", "\"\""};
static const char *const odd[] = {"null",
                                  "01",
                                  "1.",
                                  ".5",
                                  "+1",
                                  "1e",
                                  "1e400",
                                  "-",
                                  "nan",
                                  "Infinity",
                                  "0x10",
                                  "'a'",
                                  "\"a",
                                  "\"\\u00e9\"",
                                  "\"\\ud83d\\ude00\"",
                                  "\"\\ud83d\"",
                                  "\"\\q\"",
                                  "\"\\u12\"",
                                  "\"\xc3\xa9\"",
                                  "\"\xc3\"",
                                  "\"\xff\x01\"",
                                  "\"\xed\xa0\x80\"",
                                  "\"\xf0\x9f\x98\x80\"",
                                  "\"\t\"",
                                  "\"\\t\\n\\/\"",
                                  "tru",
                                  "[1, 2,]",
                                  "{\"a\": 1,}",
                                  "[1 2]",
                                  "{\"a\" 1}",
                                  "9007199254740993",
                                  "1e-400",
                                  "\"\x01\"",
                                  "\"\\u0000\"",
                                  "//",
                                  "\xef\xbb\xbf"};
enum { ODD = sizeof odd / sizeof odd[0] };

static size_t put_value(char *text, size_t n, int depth) {
    const int form = upto(depth > 2 ? 6 : 9);
    if (form < 6)
        return n + (size_t)snprintf(text + n, TEXT_BYTES - n, "%s",
                                    once_in(8) ? odd[upto(ODD)] : scalars[upto(12)]);
    const int count = upto(3);
    text[n++] = form == 8 ? '{' : '[';
    for (int i = 0; i < count; i++) {
        if (i > 0) text[n++] = ',';
        if (form == 8) n += (size_t)snprintf(text + n, TEXT_BYTES - n, " \"k%d\": ", upto(3));
        n = put_value(text, n, depth + 1);
    }
    text[n++] = form == 8 ? '}' : ']';
    text[n] = '\0';
    return n;
}

/* A value that fits the field, most of the time. */
static size_t put_field(char *text, size_t n, const struct dl_field *f, int depth);

static size_t put_object(char *text, size_t n, const struct dl_schema *schema, int depth) {
    bool first = true;
    n += (size_t)snprintf(text + n, TEXT_BYTES - n, "{");
    if (schema->top_level && !once_in(25)) {
        const char *name = once_in(25) ? "other" : schema->name;
        const int version = once_in(25) ? 2 : 1;
        n += (size_t)snprintf(text + n, TEXT_BYTES - n, "\"format\": \"%s\", \"version\": %d", name,
                              version);
        first = false;
    }
    for (const struct dl_field *f = schema->fields; f->type != DL_FIELD_END; f++) {
        if (!(f->required ? !once_in(40) : once_in(2))) continue;
        const char *key = once_in(40) && f->alias != NULL ? f->alias : f->key;
        const int copies = once_in(150) ? 2 : 1;
        for (int i = 0; i < copies; i++) {
            const char *wrong = once_in(120) ? "y" : "", *colon = once_in(200) ? "" : ": ";
            n += (size_t)snprintf(text + n, TEXT_BYTES - n, "%s\n%*s\"%s%s\"%s", first ? "" : ",",
                                  depth, "", key, wrong, colon);
            n = put_field(text, n, f, depth + 1);
            first = false;
        }
    }
    if (once_in(60))
        n += (size_t)snprintf(text + n, TEXT_BYTES - n, "%s\"comment\": 1", first ? "" : ",");
    return n + (size_t)snprintf(text + n, TEXT_BYTES - n, "}");
}

static size_t put_field(char *text, size_t n, const struct dl_field *f, int depth) {
    static const char *const lists[] = {"[\"a\", \"b\"]", "\"one\"", "[]", "[\"\"]"};
    if (once_in(50)) return put_value(text, n, 0);
    const double sound = f->min == 0 && f->max == 0 ? 1 + upto(5) : f->min + (f->max - f->min) / 2;
    switch (f->type) {
    case DL_FIELD_NUMBER: return n + (size_t)snprintf(text + n, TEXT_BYTES - n, "%.6g", sound);
    case DL_FIELD_INTEGER:
        return n + (size_t)snprintf(text + n, TEXT_BYTES - n, "%.0f", fmin(floor(sound), 1e6));
    case DL_FIELD_BOOL:
        return n + (size_t)snprintf(text + n, TEXT_BYTES - n, "%s", once_in(2) ? "true" : "false");
    case DL_FIELD_CHOICE:
        return n + (size_t)snprintf(text + n, TEXT_BYTES - n, "\"%s\"", f->choices[0]);
    case DL_FIELD_OBJECT: return put_object(text, n, f->child, depth);
    case DL_FIELD_LIST:
        n += (size_t)snprintf(text + n, TEXT_BYTES - n, "[");
        n = put_object(text, n, f->child, depth);
        if (once_in(2))
            n += (size_t)snprintf(text + n, TEXT_BYTES - n, ","),
                n = put_object(text, n, f->child, depth);
        return n + (size_t)snprintf(text + n, TEXT_BYTES - n, "]");
    case DL_FIELD_NUMBERS:
        return n + (size_t)snprintf(text + n, TEXT_BYTES - n, "[%.6g, %.6g]", sound, sound);
    case DL_FIELD_MAP:
        return n + (size_t)snprintf(text + n, TEXT_BYTES - n,
                                    "{\"a\": 1.5, \"b\": \"x\", \"c\": %s}",
                                    once_in(8) ? "[1]" : "true");
    case DL_FIELD_EXPRS:
    case DL_FIELD_STRINGS:
        return n + (size_t)snprintf(text + n, TEXT_BYTES - n, "%s", lists[upto(4)]);
    default: return n + (size_t)snprintf(text + n, TEXT_BYTES - n, "\"4*w\"");
    }
}

static void record_rich(struct dl_json *doc, struct dl_arena *arena) {
    static struct rich rich;
    struct dl_err err = {0};
    memset(&rich, 0, sizeof rich);
    if (dl_json_load(doc, &rich_schema, arena, &rich, &err) != DL_OK)
        recorded_error("load", &err);
    else
        recorded_text("read", dl_json_text(&rich_schema, &rich, arena));
}

static void documents(void **state) {
    (void)state;
    static char text[TEXT_BYTES * 2];
    recorded_open("json");
    seed = 41;
    for (int i = 0; i < DOCUMENTS; i++) {
        struct dl_arena arena = {0};
        struct dl_err err = {0};
        struct dl_json *doc;
        char title[64];
        size_t n = once_in(4) ? put_value(text, 0, 0) : put_object(text, 0, &rich_schema, 0);
        if (once_in(20)) n += (size_t)snprintf(text + n, TEXT_BYTES - n, "%s", odd[upto(ODD)]);
        if (once_in(20)) n = (size_t)upto((int)n + 1);
        snprintf(title, sizeof title, "document %d", i);
        recorded_case(title);
        if (dl_json_parse("FILE", text, n, &arena, &doc, &err) != DL_OK)
            recorded_error("parse", &err);
        else
            record_rich(doc, &arena);
        recorded_end_case();
        dl_arena_free(&arena);
    }
    recorded_close();
}

static void sets(void **state) {
    (void)state;
    static const char *const values[] = {"1",    "0",    "-1",  "1.5",  "2us", "3GB/s", "1e30",
                                         "true", "off",  "red", "gren", "",    "1,2,3", "4,x",
                                         "1,,2", "10ns", "5 B", "yes",  "4*x", "nan",   "12KiB"};
    static const char whole[] = "{\"format\": \"dlmodel-rich\", \"version\": 1}";
    struct dl_arena kept = {0};
    const char *const *keys = dl_json_keys(&rich_schema, &kept);
    int count = 0;
    while (keys[count] != NULL) count++;
    recorded_open("sets");
    seed = 42;
    for (int i = 0; i < SETS; i++) {
        static char text[TEXT_BYTES * 2];
        struct dl_arena arena = {0};
        struct dl_err err = {0};
        struct dl_json *doc;
        char key[2][64], *at;
        struct dl_override overrides[2];
        size_t n = once_in(3) ? (size_t)snprintf(text, sizeof text, "%s", whole)
                              : put_object(text, 0, &rich_schema, 0);
        for (int k = 0; k < 2; k++) {
            const char *name = keys[upto(count)], *more = once_in(12) ? ".x" : "";
            snprintf(key[k], sizeof key[k], "%s%s", name, more);
            while ((at = strstr(key[k], ".N")) != NULL) at[1] = (char)('0' + upto(3));
            overrides[k] = (struct dl_override){.key = key[k], .value = values[upto(21)]};
        }
        recorded_case(key[0]);
        recorded_number("known", 1 + dl_json_key_known(&rich_schema, key[0]));
        if (dl_json_parse("FILE", text, n, &arena, &doc, &err) == DL_OK) {
            if (dl_json_set(doc, &rich_schema, overrides, 2, &err) != DL_OK)
                recorded_error("set", &err);
            recorded_number("used", 1 + overrides[0].used + 2 * overrides[1].used);
            record_rich(doc, &arena);
        }
        recorded_end_case();
        dl_arena_free(&arena);
    }
    recorded_close();
    dl_arena_free(&kept);
}

static void csvs(void **state) {
    (void)state;
    static const char *const parts[] = {
        "a",     "b",         "1.5", ",",     ",",  ",",        "\n",   "\n", "\r\n", "\"", "\"\"",
        "\"x\"", "\"1,\n2\"", " ",   "1e400", "-3", "\xc3\xa9", "\xff", "=1", "\r",   "\t"};
    static const char *const heads[] = {"", "one;two\n", "one\ttwo\n", "\xef\xbb\xbfone,two\n",
                                        "one,\"two\"\r\n"};
    recorded_open("csv");
    seed = 43;
    for (int i = 0; i < CSVS; i++) {
        static char text[TEXT_BYTES];
        struct dl_arena arena = {0};
        struct dl_err err = {0};
        struct dl_csv csv;
        char title[64];
        size_t n =
            (size_t)snprintf(text, sizeof text, "%s", once_in(6) ? heads[upto(5)] : "one,two\n");
        const int count = upto(14);
        for (int k = 0; k < count; k++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s",
                                  parts[k % 2 == 1 && !once_in(15) ? 3 + 3 * (k % 4 / 2)
                                                                   : upto(once_in(3) ? 21 : 3)]);
        if (once_in(25)) text[upto((int)n + 1)] = '\0';
        snprintf(title, sizeof title, "table %d", i);
        recorded_case(title);
        if (dl_csv_parse("FILE", text, n, &arena, &csv, &err) != DL_OK) {
            recorded_error("parse", &err);
        } else {
            csv.text = text, csv.text_bytes = n; /* so that faults have a column */
            recorded_number("rows", 1 + csv.row_count + 100 * csv.column_count);
            recorded_number("column", 2 + dl_csv_column(&csv, "two"));
            for (int r = 0; r < csv.row_count && r < 4; r++)
                for (int c = 0; c < csv.column_count && c < 4; c++) {
                    double value = 0;
                    recorded_text("cell", csv.rows[r][c]);
                    err = (struct dl_err){0};
                    if (dl_csv_number(&csv, r, c, &value, &err) != DL_OK)
                        recorded_error("number", &err);
                    else
                        recorded_number("number", value);
                }
            if (csv.row_count > 0) {
                dl_csv_fault(&csv, csv.row_count - 1, csv.column_count - 1, &err, "at the end");
                recorded_error("fault", &err);
            }
        }
        recorded_end_case();
        dl_arena_free(&arena);
    }
    recorded_close();
}

static void record_table(void) {
    static const char *const names[] = {"plain",       "a,b",     "=1+1", "@x", "\xc3\xa9\xc3\xa9",
                                        "two\nlines",  "\x1b[1m", "q\"q", NULL, "",
                                        "\xe4\xb8\xad"};
    static const char *const keys[] = {"name", "deep.one", "deep.two", "rate", "good", "hidden"};
    struct dl_arena arena = {0};
    struct dl_table table;
    struct dl_column columns[6];
    const int column_count = 1 + upto(6), row_count = upto(5);
    for (int c = 0; c < column_count; c++) {
        columns[c] = (struct dl_column){.key = keys[c]};
        columns[c].heading = once_in(6) ? NULL : once_in(3) ? "a long heading" : "h";
        columns[c].unit = once_in(2) ? NULL : "ms";
        columns[c].type = (enum dl_column_type)upto(4);
        columns[c].scale = once_in(2) ? 0 : 1e-3;
        columns[c].digits = upto(6);
    }
    dl_table_init(&table, &arena, columns, column_count);
    for (int r = 0; r < row_count; r++) {
        union dl_cell *cells = dl_table_row(&table);
        for (int c = 0; c < column_count; c++) {
            if (columns[c].type == DL_COLUMN_STRING) cells[c].string = names[upto(11)];
            const double size = pow(10, 24 * check_uniform(&seed) - 12);
            if (columns[c].type == DL_COLUMN_NUMBER)
                cells[c].number = once_in(6)   ? (double)NAN
                                  : once_in(6) ? 0
                                  : once_in(3) ? -size
                                               : size;
            if (columns[c].type == DL_COLUMN_INTEGER)
                cells[c].integer = once_in(6) ? DL_ABSENT : upto(2000000) - 1000000;
            if (columns[c].type == DL_COLUMN_BOOL) cells[c].boolean = once_in(2);
        }
    }
    recorded_text("text", dl_table_render(&table, DL_FORMAT_TEXT));
    recorded_text("csv", dl_table_render(&table, DL_FORMAT_CSV));
    recorded_text("json", dl_table_render(&table, DL_FORMAT_JSON));
    if (row_count > 0) recorded_text("cell", dl_table_cell_text(&table, 0, 0, &arena));
    dl_arena_free(&arena);
}

static void tables(void **state) {
    (void)state;
    recorded_open("text_tables");
    seed = 44;
    for (int i = 0; i < TABLES; i++) {
        recorded_case("a table");
        record_table();
        recorded_end_case();
    }
    recorded_close();
}

static uint64_t word_hash(const void *context, int item) {
    const char *const *list = context;
    return dl_hash_text(1, list[item]);
}
static bool word_equal(const void *context, int a, int b) {
    const char *const *list = context;
    return strcmp(list[a], list[b]) == 0;
}

static void record_words(void) {
    static const char letters[] = "aabbcdAB-_. '\x1b\xc3";
    static char words[12][16];
    const char *names[13];
    struct dl_arena arena = {0};
    struct dl_err err = {0};
    struct dl_classes classes;
    char text[64];
    const int count = 1 + upto(12);
    for (int i = 0; i < 12; i++) {
        const int length = 1 + upto(i == 0 ? 5 : 8);
        for (int k = 0; k < length; k++) words[i][k] = letters[upto(once_in(3) ? 16 : 5)];
        words[i][length] = '\0';
    }
    for (int i = 1; i < count; i++) names[i - 1] = words[i];
    names[count - 1] = NULL;
    recorded_text("suggested", dl_suggest(words[0], names));
    dl_name_hint("device", "devices", words[0], names, &arena, &err);
    recorded_error("hint", &err);
    recorded_text("quoted", dl_shell_quote(&arena, words[0]));
    snprintf(text, sizeof text, "%s", words[0]);
    dl_text_printable(text, "\t");
    recorded_text("printable", text);
    recorded_number("hash", (double)(dl_hash_text(7, words[0]) >> 20));
    const char *list[12];
    for (int i = 0; i < 12; i++) list[i] = words[i];
    const struct dl_class_keys keys = {word_hash, word_equal, list};
    struct recorded_sum sum = {0};
    for (int i = 6; i < 12; i++) words[i][1 + upto(2)] = '\0';
    if (dl_classes_make(&keys, 12, &arena, &classes, &err) == DL_OK)
        for (int i = 0; i < 12; i++)
            recorded_add(&sum, 2 + classes.first[i] + 20 * (2 + classes.next[i]));
    recorded_sum_of("classes", &sum);
    dl_arena_free(&arena);
}

static void words(void **state) {
    (void)state;
    recorded_open("words");
    seed = 45;
    for (int i = 0; i < WORDS; i++) {
        recorded_case("words");
        record_words();
        recorded_end_case();
    }
    recorded_close();
}

/* y = a exp(-b t) + c with outliers. */
struct curve {
    double t[ROWS], y[ROWS];
    bool refuse;
};
static enum dl_code curve_residuals(void *context, const double *x, double *residuals,
                                    struct dl_err *err) {
    const struct curve *c = context;
    for (int i = 0; i < ROWS; i++) residuals[i] = x[0] * exp(-x[1] * c->t[i]) + x[2] - c->y[i];
    if (c->refuse && x[1] > 3) return dl_fail(err, DL_ERR_NO, "too steep");
    return DL_OK;
}
static enum dl_code curve_derivatives(void *context, const double *x, const double *residuals,
                                      size_t parameter, double *jacobian, struct dl_err *err) {
    const struct curve *c = context;
    (void)residuals, (void)err;
    for (int i = 0; i < ROWS; i++) {
        const double e = exp(-x[1] * c->t[i]);
        jacobian[3 * (size_t)i + parameter] = parameter == 0   ? e
                                              : parameter == 1 ? -x[0] * c->t[i] * e
                                                               : 1;
    }
    return DL_OK;
}

static void record_robust(void) {
    struct curve c = {.refuse = once_in(6)};
    double weights[ROWS], jacobian[3 * ROWS], residuals[ROWS], x[3] = {1, 1, 0};
    const double most = once_in(4) ? 1.2 : 10, loose = once_in(2) ? INFINITY : 0.5,
                 tight = once_in(2) ? 0.05 : 10;
    const double low[] = {0, 0.1, -1}, high[] = {most, 5, 1}, prior[] = {1, 1, 0},
                 prior_sigma[] = {loose, 1, tight};
    struct dl_err err = {0};
    for (int i = 0; i < ROWS; i++) {
        c.t[i] = 0.2 * i, weights[i] = once_in(8) ? 0 : 0.5 + check_uniform(&seed);
        c.y[i] = 2 * exp(-0.7 * c.t[i]) + 0.1 + 0.05 * check_uniform(&seed);
        if (once_in(10)) c.y[i] += 3;
        if (once_in(20)) c.y[i] = (double)NAN;
    }
    struct dl_robust_problem problem = {.row_count = ROWS,
                                        .parameter_count = 3,
                                        .weights = weights,
                                        .low = low,
                                        .high = high,
                                        .prior = prior,
                                        .prior_sigma = prior_sigma,
                                        .residuals = curve_residuals,
                                        .derivatives = curve_derivatives,
                                        .context = &c};
    problem.loss_scale = once_in(2) ? 0.1 : 1;
    problem.most_steps = once_in(3) ? 1 + upto(5) : 0;
    problem.smallest = once_in(3) ? 1e-6 : 0;
    problem.refresh = once_in(3) ? 1e-3 : 0;
    struct dl_robust_fit fit = {.x = x, .residuals = residuals};
    curve_residuals(&c, x, residuals, NULL);
    for (size_t p = 0; p < 3; p++) curve_derivatives(&c, x, residuals, p, jacobian, NULL);
    if (dl_robust_fit(&problem, jacobian, &fit, &err) != DL_OK) {
        recorded_error("robust fit", &err);
        return;
    }
    for (int i = 0; i < 3; i++) recorded_number("x", floor(1e5 * x[i] + 0.5));
    recorded_number("objective", floor(1e5 * fit.objective + 0.5));
    recorded_number("steps", fit.steps);
    recorded_number("objective again",
                    floor(1e5 * dl_robust_objective(&problem, x, residuals) + 0.5));
}

static void record_mixed(void) {
    double y[ROWS], z[ROWS], w[ROWS], means[2][4], variances[2][4];
    int level[2][ROWS];
    struct recorded_sum sum = {0};
    struct dl_err err = {0};
    for (int i = 0; i < ROWS; i++) {
        level[0][i] = once_in(8) ? -1 : upto(4), level[1][i] = once_in(3) ? -1 : upto(3);
        z[i] = 0.5 + check_uniform(&seed), w[i] = once_in(4) ? 0 : check_uniform(&seed);
        y[i] = once_in(12)
                   ? (double)NAN
                   : 0.3 * level[0][i] - 0.2 * level[1][i] * z[i] + check_uniform(&seed) - 0.5;
    }
    struct dl_mixed_model model = {.row_count = ROWS,
                                   .y = y,
                                   .effects = {{4, level[0], NULL, 0.1, means[0], variances[0]},
                                               {3, level[1], z, 0.2, means[1], variances[1]}},
                                   .row_variance = 0.05,
                                   .parts = {{w, 0.1}}};
    if (once_in(2)) model.effects[1].covariate = NULL;
    if (once_in(4)) model.effects[1].mean = NULL;
    model.effect_count = 1 + upto(2), model.part_count = upto(2);
    memset(means, 0, sizeof means), memset(variances, 0, sizeof variances);
    const int steps = once_in(3) ? 0 : 1 + upto(6);
    if (dl_mixed_fit(&model, steps, &err) != DL_OK) {
        recorded_error("mixed model", &err);
        return;
    }
    for (int e = 0; e < 2; e++)
        for (int l = 0; l < 4; l++) {
            recorded_add(&sum, 10 + means[e][l]);
            recorded_add(&sum, 1 + variances[e][l]);
        }
    recorded_sum_of("levels", &sum);
    recorded_number("row variance", dl_mixed_row_variance(&model, (size_t)upto(ROWS)));
    recorded_number("variance of an effect", model.effects[0].variance);
}

static void record_ranks(void) {
    double predicted[8], measured[8], scratch[16];
    const size_t n = 1 + (size_t)upto(8);
    for (size_t i = 0; i < n; i++)
        predicted[i] = 1 + upto(6), measured[i] = once_in(9) ? (double)NAN : 1 + upto(6);
    recorded_number("regret", dl_regret_frac(predicted, measured, n));
    recorded_number("correlation", dl_rank_correlation(predicted, measured, n, scratch));
}

static void record_linear(void) {
    const size_t n = 1 + (size_t)upto(4);
    gsl_matrix *a = gsl_matrix_alloc(n, n), *b = gsl_matrix_alloc(n, n);
    gsl_vector *right = gsl_vector_alloc(n), *x = gsl_vector_alloc(n);
    struct recorded_sum sum = {0};
    const bool definite = !once_in(5);
    for (size_t i = 0; i < n; i++) {
        gsl_vector_set(right, i, 1 + upto(9)), gsl_vector_set(x, i, 0);
        for (size_t k = 0; k <= i; k++) {
            const double value = i == k ? (definite ? 10 + upto(5) : -1) : upto(3) - 1;
            gsl_matrix_set(a, i, k, value), gsl_matrix_set(a, k, i, value);
        }
    }
    gsl_matrix_memcpy(b, a);
    recorded_number("solved", 1 + dl_cholesky_solve(a, right, x));
    const bool inverted = dl_cholesky_invert(b);
    recorded_number("inverted", 1 + inverted);
    for (size_t i = 0; i < n && inverted; i++) {
        recorded_add(&sum, 10 + gsl_vector_get(x, i));
        for (size_t k = 0; k < n; k++) recorded_add(&sum, 10 + gsl_matrix_get(b, i, k));
    }
    recorded_sum_of("solution, inverse", &sum);
    gsl_matrix_free(a), gsl_matrix_free(b), gsl_vector_free(right), gsl_vector_free(x);
}

static void fits(void **state) {
    (void)state;
    recorded_open("fits");
    seed = 46;
    for (int i = 0; i < FITS; i++) {
        recorded_case("fits");
        record_robust(), record_mixed(), record_ranks(), record_linear();
        recorded_end_case();
    }
    recorded_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(documents), cmocka_unit_test(sets),
                                       cmocka_unit_test(csvs),      cmocka_unit_test(tables),
                                       cmocka_unit_test(words),     cmocka_unit_test(fits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
