/* cmd_schema.c - the fields of each file, from the same tables that load it. */
#include <math.h>
#include <string.h>

#include "model/core/columns.h"
#include "model/catalog/command.h"
#include "model/network/coll_match.h"
#include "model/framework/layer_times.h"
#include "model/machine/kernel_columns.h"
#include "model/machine/kernel_model.h"
#include "predict/compare/compare_runs.h"
#include "predict/manual/template.h"
#include "predict/options/results.h"

static const struct dl_option schema_options[] = {
    {"template", 0, NULL, "What",
     "system, site: print a file to fill in; runs: print the header line of a table with every "
     "column, and an example row",
     NULL},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {schema_options, dl_output_options, NULL};
static const char *const examples[] = {"dlmodel schema system", "dlmodel schema system --template",
                                       "dlmodel schema options predict --json", NULL};

static const struct kind {
    const char *name;
    const struct dl_schema *schema; /* of a file, or the columns of a result */
    const struct dl_result *result;
} kinds[] = {
    {"system", &dl_system_schema, NULL},
    {"device", &dl_device_schema, NULL},
    {"workload", &dl_workload_schema, NULL},
    {"framework", &dl_framework_schema, NULL},
    {"kernel-models", &dl_kernel_model_set_schema, NULL},
    {"surfaces", &dl_kernel_model_set_schema, NULL}, /* its name in release 0.1 */
    {"layers", &dl_layer_times_schema, NULL},
    {"runs", &dl_run_row_schema, NULL},
    {"collectives", &dl_coll_row_schema, NULL},
    {"kernels", &dl_kernel_row_schema, NULL},
    {"prediction", NULL, &dl_prediction_result},
    {"match", NULL, &dl_match_result},
    {"advice", NULL, &dl_advice_result},
    {"campaign", NULL, &dl_campaign_result},
    {"comparison", NULL, &dl_comparison_result},
    {NULL, NULL, NULL},
};
static const char *const kind_names[] = {
    "system",     "device", "workload", "framework",   "kernel-models", "layers",
    "prediction", "match",  "advice",   "campaign",    "comparison",    "site",
    "run",        "runlog", "runs",     "collectives", "kernels",       NULL};

/* What the columns show of one key; numbers NAN: none. */
struct facts {
    const char *key, *type, *unit, *required, *help;
    double min, max, fallback;
};
#define SHOWN(member, key, heading, digits)                                                        \
    DL_SHOWN(struct facts, member, key, heading, "", 0, digits, 0, NULL)
static const struct dl_list_column columns[] = {
    SHOWN(key, "key", "key", 0),
    SHOWN(type, "type", "type", 0),
    SHOWN(unit, "unit", "unit", 0),
    SHOWN(min, "minimum", "min", 4),
    SHOWN(max, "maximum", "max", 4),
    SHOWN(required, "required", "need", 0),
    SHOWN(fallback, "fallback", "default", 4),
    SHOWN(help, "help", "meaning", 0),
};

/* The meaning of a choice lists its values. */
static const char *meaning(struct dl_arena *arena, const struct dl_field *field) {
    const char *words = "";
    if (field->type != DL_FIELD_CHOICE) return field->help;
    for (int i = 0; field->choices[i] != NULL; i++) {
        const bool usual = field->has_fallback && i == (int)field->fallback;
        words = dl_arena_printf(arena, "%s%s%s%s", words, i > 0 ? ", " : "", field->choices[i],
                                usual ? " (default)" : "");
    }
    return dl_arena_printf(arena, "%s%s%s", field->help != NULL ? field->help : "",
                           field->help != NULL ? ": " : "", words);
}

static void visit(void *context, const char *path, const struct dl_field *field, int depth) {
    struct dl_table *table = context;
    (void)depth;
    const bool ranged = field->min != 0 || field->max != 0,
               fallback = field->has_fallback && field->type != DL_FIELD_CHOICE;
    const struct facts facts = {.key = dl_arena_strdup(table->arena, path),
                                .type = dl_field_type_name(field->type),
                                .unit = dl_unit_name(field->unit),
                                .required = field->required ? "yes" : "",
                                .help = meaning(table->arena, field),
                                .min = ranged ? field->min : NAN,
                                .max = ranged ? field->max : NAN,
                                .fallback = fallback ? field->fallback : NAN};
    dl_list_add(table, columns, &facts);
}

/* A result has no file to load, so it has no field table: its columns are its fields. */
static void add_result(struct dl_table *table, const struct dl_result *result) {
    struct dl_row_field field;
    for (int i = 0; dl_result_field(result, i, &field); i++) {
        const struct facts facts = {
            dl_arena_printf(table->arena, "%s[].%s", result->array, field.key),
            field.type,
            field.unit,
            "yes",
            field.help,
            NAN,
            NAN,
            NAN};
        dl_list_add(table, columns, &facts);
    }
}

/* Columns of runs that are plan options of predict. */
static void add_plan_columns(struct dl_table *table) {
    struct dl_run_plan_column column;
    for (int i = 0; dl_run_plan_column(i, &column); i++) {
        const struct facts facts = {.key = dl_arena_strdup(table->arena, column.name),
                                    .type = column.type,
                                    .unit = column.unit,
                                    .required = "",
                                    .help =
                                        dl_arena_printf(table->arena, "as --%s: %s",
                                                        column.option->name, column.option->help),
                                    .min = column.min,
                                    .max = column.max,
                                    .fallback = NAN};
        dl_list_add(table, columns, &facts);
    }
}

/* Schemas of other folders, by their names without "dlmodel-". */
static bool find_more(const struct dl_context *context, const char *name, struct kind *out) {
    for (const struct dl_schema *const *s = context->schemas; s != NULL && *s != NULL; s++) {
        if (strncmp((*s)->name, "dlmodel-", 8) != 0 || strcmp((*s)->name + 8, name) != 0) continue;
        *out = (struct kind){name, *s, NULL};
        return true;
    }
    return false;
}

static enum dl_code find_kind(const struct dl_context *context, const struct dl_options *options,
                              const struct kind **out, struct dl_err *err) {
    struct kind *more = dl_arena_alloc(context->arena, 1, sizeof *more);
    const char *all =
        "expected one of system, device, workload, framework, kernel-models, layers, "
        "runs, collectives, kernels, prediction, match, advice, campaign, comparison, "
        "site, run, runlog or options COMMAND";
    if (options->positional_count == 0) return dl_fail(err, DL_ERR_USAGE, "%s", all);
    if (options->positional_count > 1)
        return dl_fail(err, DL_ERR_USAGE, "unexpected argument \"%s\"", options->positional[1]);
    const char *given = options->positional[0];
    if (strcmp(given, "surfaces") == 0) given = "kernels"; /* its former name, for one release */
    for (*out = kinds; (*out)->name != NULL; ++*out) {
        if (strcmp((*out)->name, given) == 0) return DL_OK;
    }
    *out = more;
    if (find_more(context, options->positional[0], more)) return DL_OK;
    const char *near = dl_suggest(options->positional[0], kind_names);
    if (near != NULL) {
        return dl_fail(err, DL_ERR_USAGE, "no schema of '%.60s'; did you mean '%s'?",
                       options->positional[0], near);
    }
    return dl_fail(err, DL_ERR_USAGE, "no schema of '%.60s'; %s", options->positional[0], all);
}

/* An option of a command; choices: a blank between two. */
struct option_facts {
    const char *key, *argument, *type, *choices, *help;
    bool repeatable;
};
#define OF_OPTION(member, key, heading)                                                            \
    DL_SHOWN(struct option_facts, member, key, heading, "", 0, 0, 0, NULL)
static const struct dl_list_column option_columns[] = {
    OF_OPTION(key, "key", "option"),           OF_OPTION(argument, "argument", "argument"),
    OF_OPTION(type, "type", "type"),           OF_OPTION(choices, "choices", "choices"),
    OF_OPTION(repeatable, "repeatable", NULL), OF_OPTION(help, "help", "meaning"),
};

static const char *option_type(const struct dl_option *o) {
    if (o->argument == NULL) return "boolean";
    if (o->value == NULL) return "string";
    switch (o->value->kind) {
    case DL_VALUE_CHOICE: return o->value->members != NULL ? "list" : "choice";
    case DL_VALUE_WORD: return "choice";
    case DL_VALUE_SET: return "list";
    case DL_VALUE_NUMBER: return "number";
    case DL_VALUE_INTEGER: return "integer";
    default: return "string";
    }
}

static const char *joined(const char *const *words, struct dl_arena *arena) {
    const char *text = NULL;
    for (int i = 0; words != NULL && words[i] != NULL; i++)
        text = text == NULL ? words[i] : dl_arena_printf(arena, "%s %s", text, words[i]);
    return text;
}

/* The options of a command, each once: "schema options predict". */
static enum dl_code run_options(struct dl_context *context, const struct dl_options *options,
                                enum dl_format format, struct dl_err *err) {
    const struct dl_command *command = NULL;
    struct dl_table table;
    if (options->positional_count != 2)
        return dl_fail(err, DL_ERR_USAGE, "expected a command: schema options predict");
    DL_TRY(dl_command_find(context->commands, options->positional[1], &command, err));
    dl_list_table(&table, context->arena, DL_LIST(option_columns), 0);
    for (int t = 0; command->options[t] != NULL; t++) {
        for (const struct dl_option *o = command->options[t]; o->name != NULL; o++) {
            const struct option_facts facts = {
                .key = o->name,
                .argument = o->argument,
                .type = option_type(o),
                .choices = o->value != NULL ? joined(o->value->choices, context->arena) : NULL,
                .help = o->help,
                .repeatable = o->argument != NULL && dl_option_repeatable(o)};
            dl_list_add(&table, option_columns, &facts);
        }
    }
    return context->output(options, dl_table_render(&table, format), err);
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    enum dl_format format = DL_FORMAT_TEXT;
    const struct kind *kind = NULL;
    DL_TRY(dl_output_format(options, &format, err));
    if (options->positional_count > 0 && strcmp(options->positional[0], "options") == 0)
        return run_options(context, options, format, err);
    DL_TRY(find_kind(context, options, &kind, err));
    const bool runs = kind->schema == &dl_run_row_schema;
    if (dl_option_given(options, "template")) {
        const char *text = runs                   ? dl_run_template(context->arena)
                           : kind->schema != NULL ? dl_template_text(kind->schema, context->arena)
                                                  : NULL;
        if (text == NULL)
            return dl_fail(err, DL_ERR_USAGE,
                           "--template: expected 'schema system', 'schema site' or 'schema runs'");
        return context->output(options, text, err);
    }
    struct dl_table table;
    dl_list_table(&table, context->arena, DL_LIST(columns), 0);
    const struct dl_schema *schema = kind->schema == &dl_framework_schema
                                         ? dl_framework_schema_of(NULL, context->arena)
                                         : kind->schema;
    if (schema != NULL)
        dl_schema_visit(schema, visit, &table);
    else
        add_result(&table, kind->result);
    if (runs) add_plan_columns(&table);
    if (format == DL_FORMAT_CSV) return context->output(options, dl_table_csv(&table), err);
    if (format == DL_FORMAT_TEXT) return context->output(options, dl_table_text(&table), err);
    struct dl_json_writer w;
    dl_jw_init(&w, context->arena, false);
    dl_jw_object(&w, NULL);
    dl_jw_string(&w, "format",
                 kind->schema != NULL ? kind->schema->name
                                      : dl_arena_printf(context->arena, "dlmodel-%s", kind->name));
    dl_jw_string(&w, "summary",
                 kind->schema != NULL ? kind->schema->summary : "what --json prints for each row");
    dl_jw_array(&w, "fields");
    dl_table_json(&table, &w);
    return context->output(options, dl_jw_text(&w), err);
}

const struct dl_command dl_cmd_schema = {
    .name = "schema",
    .summary = "print the fields of each file format",
    .usage = "KIND [options]",
    .purpose =
        "Prints the keys of a file format, or the columns of a table of measurements, with "
        "type, unit, range, default and meaning. The program loads files with the same "
        "tables. Files: system, device, workload, framework, kernel-models, layers, site, "
        "run, runlog; prediction, match, advice, campaign and comparison: what --json "
        "prints; tables: runs, collectives, kernels. 'options COMMAND': the options of a command.",
    .examples = examples,
    .words =
        "system device workload framework kernel-models layers runs collectives kernels prediction "
        "match advice campaign comparison site run runlog options",
    .options = tables,
    .run = run,
};
