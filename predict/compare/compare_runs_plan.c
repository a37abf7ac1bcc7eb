/* compare_runs_plan.c - columns of a table of runs that are plan options of `predict`: every row of
 * the option table that fills a field of the plan is a column of its name with underscores, so a
 * new option needs no code here. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/core/text.h"
#include "predict/compare/compare_runs.h"
#include "predict/options/dataset.h"
#include "predict/options/input_options.h"

/* Columns that compare_runs_read.c reads itself: a row without them is not a run. */
static bool is_own_column(const char *name) {
    for (const struct dl_field *f = dl_run_row_schema.fields; f->key != NULL; f++) {
        if (strcmp(f->key, name) == 0) return true;
    }
    return false;
}

/* Whether the option fills a field of the plan, or selects the dataset that does. */
static bool is_plan_option(const struct dl_option *o) {
    if (o->value == NULL || o->value->kind == DL_VALUE_UNBOUND) return false;
    const size_t first = offsetof(struct dl_inputs, plan), size = sizeof(struct dl_plan);
    return (o->value->at >= first && o->value->at < first + size) ||
           strcmp(o->name, "dataset") == 0;
}

/* The option's name with underscores. */
static void column_name(const struct dl_option *o, char name[DL_RUN_PLAN_NAME]) {
    snprintf(name, DL_RUN_PLAN_NAME, "%s", o->name);
    for (char *c = name; *c != 0; c++) {
        if (*c == '-') *c = '_';
    }
}

bool dl_run_plan_column(int index, struct dl_run_plan_column *out) {
    static const char *const types[] = {
        [DL_VALUE_UNBOUND] = "",      [DL_VALUE_TEXT] = "string",    [DL_VALUE_WORD] = "choice",
        [DL_VALUE_CHOICE] = "choice", [DL_VALUE_SET] = "choices",    [DL_VALUE_FLAG] = "1 or 0",
        [DL_VALUE_NUMBER] = "number", [DL_VALUE_INTEGER] = "integer"};
    for (const struct dl_option *o = dl_input_options; o->name != NULL; o++) {
        if (!is_plan_option(o)) continue;
        column_name(o, out->name);
        if (is_own_column(out->name) || index-- > 0) continue;
        const struct dl_value *v = o->value;
        const bool ranged = v->kind == DL_VALUE_NUMBER || v->kind == DL_VALUE_INTEGER;
        out->option = o;
        out->type = types[v->kind];
        out->unit = ranged ? dl_unit_name(v->unit) : "";
        out->min = ranged ? v->min : NAN;
        out->max = ranged ? v->max : NAN;
        return true;
    }
    return false;
}

/* One cell. Errors of options begin with "--NAME: "; those of cells with file, line and column. */
static enum dl_code store_cell(const struct dl_run_rows *runs, int row, int column,
                               const struct dl_run_plan_column *plan_column,
                               struct dl_inputs *inputs, struct dl_err *err) {
    const char *text = runs->csv->rows[row][column];
    struct dl_err inner = {0};
    if (text[0] == 0) return DL_OK;
    const enum dl_code code = dl_option_store_cell(plan_column->option, text, inputs, &inner);
    if (code != DL_ERR_USAGE) return code;
    const char *message = strstr(inner.message, ": ");
    return dl_csv_fault(runs->csv, row, column, err, "%s",
                        message != NULL ? message + 2 : inner.message);
}

/* One letter too many, too few or wrong, two exchanged, or other letters for '_'. */
static bool is_slip(const char *name, const char *known) {
    const size_t length = strlen(name), wanted = strlen(known);
    size_t same = 0;
    while (name[same] != 0 && name[same] == known[same]) same++;
    const char *rest = name + same, *right = known + same;
    if (length == wanted + 1) return strcmp(rest + 1, right) == 0;
    if (length + 1 == wanted) return strcmp(rest, right + 1) == 0;
    if (length != wanted || rest[0] == 0) return false;
    if (strcmp(rest + 1, right + 1) == 0) return true;
    return rest[0] == right[1] && rest[1] == right[0] && strcmp(rest + 2, right + 2) == 0;
}

/* Whether a run has such a column; `near`: one that differs by a slip, or "". */
static bool is_known(const char *name, char near[DL_RUN_PLAN_NAME]) {
    struct dl_run_plan_column column;
    bool known = false;
    near[0] = 0;
    for (const struct dl_field *f = dl_run_row_schema.fields; f->key != NULL; f++) {
        known = known || strcmp(f->key, name) == 0;
        if (is_slip(name, f->key)) snprintf(near, DL_RUN_PLAN_NAME, "%s", f->key);
    }
    for (int i = 0; !known && dl_run_plan_column(i, &column); i++) {
        known = strcmp(column.name, name) == 0;
        if (is_slip(name, column.name)) snprintf(near, DL_RUN_PLAN_NAME, "%s", column.name);
    }
    return known;
}

/* A column whose name is nearly that of a known one is a slip; others are the user's own. Short
 * names are near to many. */
static enum dl_code check_names(const struct dl_csv *csv, struct dl_err *err) {
    for (int c = 0; c < csv->column_count; c++) {
        const char *name = csv->header[c];
        char near[DL_RUN_PLAN_NAME];
        if (strlen(name) >= 4 && !is_known(name, near) && near[0] != 0)
            return dl_fail_at(err, csv->name, 1, 1, name,
                              "expected a column of a table of runs; did you mean '%s'?", near);
    }
    return DL_OK;
}

const char *dl_run_columns_left_out(const struct dl_csv *csv, struct dl_arena *arena) {
    struct dl_text out = {.arena = arena};
    char near[DL_RUN_PLAN_NAME];
    for (int c = 0; c < csv->column_count; c++)
        if (!is_known(csv->header[c], near))
            dl_text_printf(&out, "%s%s", out.length > 0 ? ", " : "", csv->header[c]);
    return out.length > 0 ? dl_text_string(&out) : NULL;
}

enum dl_code dl_run_plan_find(struct dl_run_rows *runs, struct dl_err *err) {
    struct dl_run_plan_column column;
    int count = 0;
    while (dl_run_plan_column(count, &column)) count++;
    DL_TRY(check_names(runs->csv, err));
    runs->plan_columns = dl_arena_alloc(runs->arena, (size_t)count, sizeof *runs->plan_columns);
    for (int i = 0; i < count && dl_run_plan_column(i, &column); i++) {
        column.index = dl_csv_column(runs->csv, column.name);
        if (column.index >= 0) runs->plan_columns[runs->plan_column_count++] = column;
    }
    return DL_OK;
}

enum dl_code dl_run_plan_read(const struct dl_run_rows *runs, int row, struct dl_plan *plan,
                              struct dl_err *err) {
    struct dl_inputs inputs = {.plan = *plan};
    for (int i = 0; i < runs->plan_column_count; i++) {
        const struct dl_run_plan_column *column = &runs->plan_columns[i];
        DL_TRY(store_cell(runs, row, column->index, column, &inputs, err));
    }
    dl_inputs_open_recompute(&inputs);
    if (inputs.words.dataset != NULL)
        DL_TRY(dl_dataset_apply(runs->data, inputs.words.dataset, runs->arena, &inputs.plan, err));
    *plan = inputs.plan;
    return DL_OK;
}

enum dl_code dl_run_plan_dataset(const struct dl_run_rows *r, const struct dl_workload *workload,
                                 struct dl_plan *plan, struct dl_err *err) {
    bool found;
    if (plan->input.synthetic || plan->input.decode_s_per_sample > 0) return DL_OK;
    return dl_dataset_usual(r->data, workload, r->arena, plan, &found, err);
}

bool dl_run_plan_same(const struct dl_run_rows *runs, int row, int other) {
    for (int i = 0; i < runs->plan_column_count; i++) {
        const struct dl_run_plan_column *column = &runs->plan_columns[i];
        if (strcmp(column->name, "dp") == 0) continue;
        if (strcmp(runs->csv->rows[row][column->index], runs->csv->rows[other][column->index]) != 0)
            return false;
    }
    return true;
}

/* The example's cell of a column; "": empty. */
static const char *example_of(const char *column) {
    static const char *const cells[][2] = {
        {"id", "run-1"},
        {"source", "my cluster"},
        {"system", "iris-v100"},
        {"framework", "pytorch-ddp"},
        {"framework_version", "2.2.1"},
        {"strategy", "data"},
        {"workload", "resnet50"},
        {"precision", "mixed"},
        {"optimizer", "momentum"},
        {"nodes", "2"},
        {"devices_per_node", "4"},
        {"batch_per_device", "128"},
        {"data", "synthetic"},
        {"library", "nccl"},
        {"metric", "throughput"},
        {"value", "5250"},
        {"unit", "samples/s"},
    };
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        if (strcmp(cells[i][0], column) == 0) return cells[i][1];
    }
    return "";
}

const char *dl_run_template(struct dl_arena *arena) {
    struct dl_text header = {.arena = arena}, example = {.arena = arena};
    struct dl_run_plan_column column;
    for (const struct dl_field *f = dl_run_row_schema.fields; f->key != NULL; f++) {
        dl_text_printf(&header, "%s%s", f == dl_run_row_schema.fields ? "" : ",", f->key);
        dl_text_printf(&example, "%s%s", f == dl_run_row_schema.fields ? "" : ",",
                       example_of(f->key));
    }
    for (int i = 0; dl_run_plan_column(i, &column); i++) {
        dl_text_printf(&header, ",%s", column.name);
        dl_text_printf(&example, ",%s", example_of(column.name));
    }
    const char *first = dl_text_string(&header), *second = dl_text_string(&example);
    return first == NULL || second == NULL ? NULL
                                           : dl_arena_printf(arena, "%s\n%s\n", first, second);
}
