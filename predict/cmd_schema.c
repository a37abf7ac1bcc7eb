/* cmd_schema.c - the fields of each file, from the same tables that load it. */
#include <string.h>

#include "model/command.h"
#include "model/surface.h"

static const struct dl_option *const tables[] = {dl_output_options, NULL};
static const char *const examples[] = {"dlmodel schema system", "dlmodel schema framework --json", NULL};

static const struct kind { const char *name; const struct dl_schema *schema; } kinds[] = {
    {"system", &dl_system_schema},       {"device", &dl_device_schema},        {"workload", &dl_workload_schema},
    {"framework", &dl_framework_schema}, {"surfaces", &dl_surface_set_schema}, {NULL, NULL},
};

static const struct dl_column columns[] = {
    {"key", "key", "", DL_COLUMN_STRING, 0, 0},         {"type", "type", "", DL_COLUMN_STRING, 0, 0},
    {"unit", "unit", "", DL_COLUMN_STRING, 0, 0},       {"minimum", "min", "", DL_COLUMN_NUMBER, 0, 4},
    {"maximum", "max", "", DL_COLUMN_NUMBER, 0, 4},     {"required", "need", "", DL_COLUMN_STRING, 0, 0},
    {"fallback", "default", "", DL_COLUMN_NUMBER, 0, 4},{"help", "meaning", "", DL_COLUMN_STRING, 0, 0},
};

static const char *type_name(enum dl_field_type type) {
    switch (type) {
    case DL_FIELD_NUMBER: return "number";
    case DL_FIELD_INTEGER: return "integer";
    case DL_FIELD_BOOL: return "boolean";
    case DL_FIELD_STRING: return "string";
    case DL_FIELD_CHOICE: return "choice";
    case DL_FIELD_EXPR: return "expression";
    case DL_FIELD_OBJECT: return "object";
    case DL_FIELD_LIST: return "list";
    case DL_FIELD_NUMBERS: return "numbers";
    case DL_FIELD_EXPRS: return "expressions";
    case DL_FIELD_STRINGS: return "strings";
    case DL_FIELD_MAP: return "map";
    case DL_FIELD_END: break;
    }
    return "";
}

static void visit(void *context, const char *path, const struct dl_field *field, int depth) {
    struct dl_table *table = context;
    (void)depth;
    union dl_cell *cells = dl_table_row(table);
    if (cells == NULL) return;
    const bool ranged = field->min != 0 || field->max != 0;
    cells[0].string = dl_arena_strdup(table->arena, path);
    cells[1].string = type_name(field->type);
    cells[2].string = dl_unit_name(field->unit);
    if (ranged) {
        cells[3].number = field->min;
        cells[4].number = field->max;
    }
    cells[5].string = field->required ? "yes" : "";
    if (field->has_fallback) cells[6].number = field->fallback;
    cells[7].string = field->help;
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options, struct dl_err *err) {
    enum dl_format format;
    DL_TRY(dl_output_format(options, &format, err));
    const struct kind *kind = kinds;
    if (options->positional_count == 1) {
        while (kind->name != NULL && strcmp(kind->name, options->positional[0]) != 0) kind++;
    }
    if (options->positional_count != 1 || kind->name == NULL) {
        return dl_fail(err, DL_ERR_USAGE, "expected one of system, device, workload, framework or surfaces");
    }
    struct dl_table table;
    dl_table_init(&table, context->arena, columns, sizeof columns / sizeof columns[0]);
    dl_schema_visit(kind->schema, visit, &table);
    if (format == DL_FORMAT_CSV) return context->output(options, dl_table_csv(&table), err);
    if (format == DL_FORMAT_TEXT) return context->output(options, dl_table_text(&table), err);
    struct dl_json_writer w;
    dl_jw_init(&w, context->arena, false);
    dl_jw_object(&w, NULL);
    dl_jw_string(&w, "format", kind->schema->name);
    dl_jw_string(&w, "summary", kind->schema->summary);
    dl_jw_array(&w, "fields");
    dl_table_json(&table, &w);
    dl_jw_end(&w);
    dl_jw_end(&w);
    return context->output(options, w.failed ? NULL : dl_arena_printf(context->arena, "%s\n", w.text), err);
}

const struct dl_command dl_cmd_schema = {
    .name = "schema",
    .summary = "the fields of each file",
    .usage = "system|device|workload|framework|surfaces [options]",
    .purpose = "Prints the keys of a file format with type, unit, range, default and meaning, from the tables that load it.",
    .examples = examples,
    .options = tables,
    .run = run,
};
