/* options.c - one prediction with options given one by one, and its results by name. */
#include "library/library.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/foreign_model.h"
#include "predict/inputs/inputs.h"
#include "predict/inputs/plan_file.h"
#include "predict/options/results.h"
#include "predict/output/rows.h"

enum { MAX_OPTIONS = 48, MAX_WARNINGS = 64 };
static const struct dl_option *const tables[] = {dl_input_options, NULL};
static const struct dl_command options_alone = {.name = "predict", .options = tables};

struct given {
    char *name, *value; /* value NULL: a flag */
};

struct dlmodel {
    struct dl_context context;
    struct dl_arena arena; /* of the last prediction */
    struct dlmodel_context *data;
    struct dl_lent_memo *lent; /* during a prediction */
    bool own_data;             /* opened with it */
    struct given given[MAX_OPTIONS];
    int given_count;
    struct dl_options options; /* of the last prediction; large, so here */
    struct dl_inputs inputs;
    struct dl_workload_files files;
    struct dl_table table; /* one row, or none */
    const char *warnings[MAX_WARNINGS];
    int warning_count;
    char error[2048];
};

static void add_warning(struct dlmodel *m, const char *text) {
    if (text == NULL || m->warning_count == MAX_WARNINGS) return;
    for (int i = 0; i < m->warning_count; i++) {
        if (strcmp(m->warnings[i], text) == 0) return;
    }
    m->warnings[m->warning_count++] = text;
}

/* Keeps a note that the program would print on standard error. */
static void take_note(const struct dl_context *context, const char *format, ...) {
    struct dlmodel *m = context->owner;
    static const char prefix[] = "warning: ";
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const size_t skip = strncmp(text, prefix, sizeof prefix - 1) == 0 ? sizeof prefix - 1 : 0;
    add_warning(m, dl_arena_strdup(&m->arena, text + skip));
}

static void forget_results(struct dlmodel *m) {
    dl_arena_clear(&m->arena);
    m->table = (struct dl_table){0};
    m->warning_count = 0;
    m->error[0] = 0;
}

static enum dlmodel_status failed(struct dlmodel *m, const struct dl_err *err) {
    dl_err_text(err, "dlmodel", m->error, sizeof m->error);
    return (enum dlmodel_status)err->code;
}

DL_PUBLIC struct dlmodel *dlmodel_open_in(struct dlmodel_context *context) {
    struct dlmodel *m = calloc(1, sizeof *m);
    if (m == NULL) return NULL;
    m->data = context;
    m->context = (struct dl_context){.program = "",
                                     .arena = &m->arena,
                                     .note = take_note,
                                     .owner = m,
                                     .data = dl_library_data(context)};
    return m;
}

DL_PUBLIC struct dlmodel *dlmodel_open(const char *data_directory) {
    const struct dlmodel_settings settings = {.data_directory = data_directory};
    struct dlmodel_context *context = dlmodel_context_open(&settings);
    struct dlmodel *m = context == NULL ? NULL : dlmodel_open_in(context);
    if (m == NULL)
        dlmodel_context_close(context);
    else
        m->own_data = true;
    return m;
}

DL_PUBLIC void dlmodel_reset(struct dlmodel *m) {
    for (int i = 0; i < m->given_count; i++) {
        free(m->given[i].name);
        free(m->given[i].value);
    }
    m->given_count = 0;
    forget_results(m);
}

DL_PUBLIC void dlmodel_close(struct dlmodel *m) {
    if (m == NULL) return;
    dlmodel_reset(m);
    dl_arena_free(&m->arena);
    if (m->own_data) dlmodel_context_close(m->data);
    free(m);
}

/* Checks one option with the program's own parser. */
static enum dl_code check_option(struct dlmodel *m, const char *name, const char *value,
                                 const struct dl_option **found, struct dl_err *err) {
    char *word = dl_arena_printf(&m->arena, value == NULL ? "--%s" : "--%s=%s", name, value);
    DL_TRY(dl_options_parse(tables, 1, &word, &m->options, err));
    if (m->options.given_count != 1)
        return dl_fail(err, DL_ERR_USAGE, "expected the name of an option, found \"%.100s\"", name);
    *found = m->options.given[0].option;
    return DL_OK;
}

struct checked {
    struct dlmodel *m;
    const char *name, *value;
    const struct dl_option *option;
};

static enum dl_code check_guarded(void *state, struct dl_err *err) {
    struct checked *c = state;
    return check_option(c->m, c->name, c->value, &c->option, err);
}

static enum dlmodel_status add_option(struct dlmodel *m, const char *name, const char *value) {
    struct dl_err err = {0};
    struct checked checked = {m, name != NULL ? name : "", value, NULL};
    forget_results(m);
    if (dl_guarded(check_guarded, &checked, &err) != DL_OK) return failed(m, &err);
    const struct dl_option *option = checked.option;
    int at = m->given_count;
    for (int i = 0; i < m->given_count && !dl_option_repeatable(option); i++) {
        if (strcmp(m->given[i].name, option->name) == 0) at = i;
    }
    char *own_name = strdup(option->name), *own_value = value == NULL ? NULL : strdup(value);
    if (own_name == NULL || (value != NULL && own_value == NULL) || at == MAX_OPTIONS) {
        free(own_name);
        free(own_value);
        dl_fail(&err, DL_ERR_SYSTEM, at == MAX_OPTIONS ? "more than %d options" : "out of memory",
                MAX_OPTIONS);
        return failed(m, &err);
    }
    if (at < m->given_count) {
        free(m->given[at].name);
        free(m->given[at].value);
    } else {
        m->given_count++;
    }
    m->given[at] = (struct given){own_name, own_value};
    return DLMODEL_OK;
}

DL_PUBLIC enum dlmodel_status dlmodel_option(struct dlmodel *m, const char *name,
                                             const char *value) {
    const locale_t callers = uselocale(m->data->plain);
    const enum dlmodel_status status = add_option(m, name, value);
    uselocale(callers);
    return status;
}

static enum dl_code read_options(struct dlmodel *m, struct dl_err *err) {
    char **words = dl_arena_alloc(&m->arena, (size_t)m->given_count + 2, sizeof *words);
    bool framework = false, system = false;
    int count = 0;
    for (int i = 0; i < m->given_count; i++) {
        const struct given *g = &m->given[i];
        framework = framework || strcmp(g->name, "framework") == 0;
        system = system || strcmp(g->name, "system") == 0;
        words[count++] =
            dl_arena_printf(&m->arena, g->value == NULL ? "--%s" : "--%s=%s", g->name, g->value);
    }
    if (!framework) words[count++] = dl_arena_strdup(&m->arena, "--framework=pytorch-ddp");
    if (!system) words[count++] = dl_arena_strdup(&m->arena, "--system=iris-v100");
    return dl_options_parse(tables, count, words, &m->options, err);
}

static enum dl_code predict(void *state, struct dl_err *err) {
    struct dlmodel *m = state;
    struct dl_plan *plan = dl_arena_alloc(&m->arena, 1, sizeof *plan);
    struct dl_prediction *p = dl_arena_alloc(&m->arena, 1, sizeof *p);
    DL_TRY(dl_library_check(m->data, err));
    DL_TRY(read_options(m, err));
    dl_workload_files_allow(&m->files, &m->context);
    DL_TRY(dl_plan_file_apply(&m->context, &options_alone, &m->options, err));
    DL_TRY(dl_inputs_load(&m->context, &m->options, &m->inputs, err));
    m->inputs.memo = m->lent != NULL ? &m->lent->memo : NULL;
    if (m->inputs.framework_count != 1 || m->inputs.node_count != 1)
        return dl_fail(err, DL_ERR_USAGE,
                       "one framework and one number of nodes at a time; found %d and %zu",
                       m->inputs.framework_count, m->inputs.node_count);
    DL_TRY(dl_inputs_predict(
        &(struct dl_inputs_case){&m->inputs, m->inputs.frameworks[0], m->inputs.nodes[0], false},
        &m->arena, plan, p, err));
    if (m->inputs.strict && p->extrapolated)
        return dl_fail(err, DL_ERR_RANGE, "the result is extrapolated (strict)");
    for (int i = 0; i < p->warning_count; i++) add_warning(m, p->warnings[i]);
    const struct dl_prediction_row row = {m->inputs.system,
                                          m->inputs.workload,
                                          m->inputs.frameworks[0],
                                          plan,
                                          p,
                                          &m->inputs.length,
                                          NULL};
    const struct dl_rows_style style = {.no_texts = true};
    dl_rows_init(&m->table, &m->arena, &style);
    dl_rows_add(&m->table, &row, &style);
    return DL_OK;
}

DL_PUBLIC enum dlmodel_status dlmodel_predict(struct dlmodel *m) {
    struct dl_err err = {0};
    forget_results(m);
    const locale_t callers = uselocale(m->data->plain);
    m->lent = dl_library_lend(m->data);
    const enum dl_code code = dl_guarded(predict, m, &err);
    dl_library_take_back(m->data, m->lent, code);
    m->lent = NULL;
    uselocale(callers);
    if (code == DL_OK) return DLMODEL_OK;
    forget_results(m);
    return failed(m, &err);
}

static const union dl_cell *cell_of(const struct dlmodel *m, const char *name,
                                    enum dl_column_type *type) {
    for (int i = 0; m->table.row_count > 0 && name != NULL && i < m->table.column_count; i++) {
        const char *key = m->table.columns[i].key;
        if (key == NULL || strcmp(key, name) != 0) continue;
        *type = m->table.columns[i].type;
        return &m->table.cells[i];
    }
    return NULL;
}

static double number_of(const union dl_cell *cell, enum dl_column_type type) {
    switch (type) {
    case DL_COLUMN_BOOL: return cell->boolean ? 1 : 0;
    case DL_COLUMN_INTEGER: return cell->integer == DL_ABSENT ? NAN : (double)cell->integer;
    case DL_COLUMN_NUMBER: return cell->number;
    default: return NAN;
    }
}

DL_PUBLIC double dlmodel_value(const struct dlmodel *m, const char *name) {
    enum dl_column_type type = DL_COLUMN_STRING;
    const union dl_cell *cell = cell_of(m, name, &type);
    return cell == NULL ? NAN : number_of(cell, type);
}

DL_PUBLIC const char *dlmodel_text(const struct dlmodel *m, const char *name) {
    enum dl_column_type type = DL_COLUMN_NUMBER;
    const union dl_cell *cell = cell_of(m, name, &type);
    return cell == NULL || type != DL_COLUMN_STRING ? NULL : cell->string;
}

DL_PUBLIC const char *dlmodel_column(int index, const char **type) {
    struct dl_row_field field;
    if (index < 0 || !dl_result_field(&dl_prediction_result, index, &field)) return NULL;
    if (type != NULL) *type = field.type;
    return field.key;
}

DL_PUBLIC int dlmodel_row(const struct dlmodel *m, double *values, const char **texts, int count) {
    int at = 0;
    for (int i = 0; m->table.row_count > 0 && i < m->table.column_count; i++) {
        const struct dl_column *column = &m->table.columns[i];
        if (column->key == NULL) continue;
        if (at < count) {
            const union dl_cell *cell = &m->table.cells[i];
            values[at] = number_of(cell, column->type);
            texts[at] = column->type == DL_COLUMN_STRING ? cell->string : NULL;
        }
        at++;
    }
    return at;
}

DL_PUBLIC const char *dlmodel_warning(const struct dlmodel *m, int index) {
    return index >= 0 && index < m->warning_count ? m->warnings[index] : NULL;
}

DL_PUBLIC const char *dlmodel_error(const struct dlmodel *m) { return m->error; }
