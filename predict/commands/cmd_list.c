/* cmd_list.c - the known systems, devices, workloads, frameworks, strategies, libraries,
 * collectives, behaviours, layers, checkpoint formats. */
#include <stdio.h>
#include <string.h>

#include "model/framework/checkpoint/checkpoint_format.h"
#include "model/network/collective.h"
#include "model/catalog/command.h"
#include "model/framework/gradient_sync.h"
#include "model/engine/strategies/strategy.h"
#include "model/workload/workload.h"

static const struct dl_option *const tables[] = {dl_output_options, NULL};
static const char *const examples[] = {"dlmodel list systems", "dlmodel list workloads --json",
                                       "dlmodel list libraries", NULL};

static const struct dl_column plain_columns[] = {
    {"name", "name", "", DL_COLUMN_STRING, 0, 0},
    {"summary", "summary", "", DL_COLUMN_STRING, 0, 0},
    {"source", "source", "", DL_COLUMN_STRING, 0, 0},
};
static const struct dl_column workload_columns[] = {
    {"name", "name", "", DL_COLUMN_STRING, 0, 0},
    {"parameters", "parameters", "M", DL_COLUMN_NUMBER, 1e6, 5},
    {"active_parameters", "active", "M", DL_COLUMN_NUMBER, 1e6, 5},
    {"forward_macs_per_sample", "forward", "GMAC", DL_COLUMN_NUMBER, 1e9, 5},
    {"activation_elements_per_sample", "activations", "M", DL_COLUMN_NUMBER, 1e6, 4},
    {"layers", "layers", "", DL_COLUMN_INTEGER, 0, 0},
    {"input", "input", "", DL_COLUMN_STRING, 0, 0},
    {"summary", "summary", "", DL_COLUMN_STRING, 0, 0},
    {"source", NULL, NULL, DL_COLUMN_STRING, 0, 0},
    {"model_macs_per_sample", NULL, NULL, DL_COLUMN_NUMBER, 1,
     0}, /* masked attention counts less */
};

static const struct dl_column framework_columns[] = {
    {"name", "name", "", DL_COLUMN_STRING, 0, 0},
    {"summary", "summary", "", DL_COLUMN_STRING, 0, 0},
    {"source", "source", "", DL_COLUMN_STRING, 0, 0},
    {"status", "status", "", DL_COLUMN_STRING, 0, 0},
};

static const struct dl_column library_columns[] = {
    {"name", "name", "", DL_COLUMN_STRING, 0, 0},
    {"summary", "summary", "", DL_COLUMN_STRING, 0, 0},
    {"source", NULL, NULL, DL_COLUMN_STRING, 0, 0},
    {"runs_on", "runs on", "", DL_COLUMN_STRING, 0, 0},
    {"takes_gpu_memory", "takes GPU memory", "", DL_COLUMN_STRING, 0, 0},
    {"formula", "formula", "", DL_COLUMN_STRING, 0, 0},
    {"operations", "operations", "", DL_COLUMN_STRING, 0, 0},
};

static const struct dl_column collective_columns[] = {
    {"name", "name", "", DL_COLUMN_STRING, 0, 0},
    {"summary", "summary", "", DL_COLUMN_STRING, 0, 0},
    {"source", "source", "", DL_COLUMN_STRING, 0, 0},
    {"libraries", "libraries", "", DL_COLUMN_STRING, 0, 0},
};

static const struct dl_column checkpoint_columns[] = {
    {"name", "name", "", DL_COLUMN_STRING, 0, 0},
    {"summary", "summary", "", DL_COLUMN_STRING, 0, 0},
    {"source", NULL, NULL, DL_COLUMN_STRING, 0, 0},
    {"writers", "written by", "", DL_COLUMN_STRING, 0, 0},
    {"blocking", "blocking", "", DL_COLUMN_STRING, 0, 0},
    {"saves", "saves", "", DL_COLUMN_STRING, 0, 0},
    {"restart_also_needs", NULL, NULL, DL_COLUMN_STRING, 0, 0},
};

/* The origin of a device's kernel times: its own samples, those of a related device scaled by
 * peaks and bandwidths (predictions say `extrapolated`), or none. */
static const struct dl_column device_columns[] = {
    {"name", "name", "", DL_COLUMN_STRING, 0, 0},
    {"summary", "summary", "", DL_COLUMN_STRING, 0, 0},
    {"source", "source", "", DL_COLUMN_STRING, 0, 0},
    {"kernel_times", "kernel times", "", DL_COLUMN_STRING, 0, 0},
    {"extrapolated", NULL, NULL, DL_COLUMN_BOOL, 0, 0},
};

static void add(struct dl_table *table, const char *name, const char *summary, const char *source) {
    union dl_cell *cells = dl_table_row(table);
    cells[0].string = name;
    cells[1].string = summary;
    cells[2].string = source;
}

static union dl_cell *last_row(const struct dl_table *table) {
    return table->cells + (size_t)(table->row_count - 1) * (size_t)table->column_count;
}

static const char *input_text(struct dl_context *context, const struct dl_workload *w) {
    const struct dl_shape *in = &w->input;
    if (in->dims == 0) return dl_arena_printf(context->arena, "%.0f", in->channels);
    if (in->dims == 1) return dl_arena_printf(context->arena, "%.0f tokens", in->size[DL_DIMS - 1]);
    if (in->dims == 2)
        return dl_arena_printf(context->arena, "%.0fx%.0fx%.0f", in->channels, in->size[1],
                               in->size[2]);
    return dl_arena_printf(context->arena, "%.0fx%.0fx%.0fx%.0f", in->channels, in->size[0],
                           in->size[1], in->size[2]);
}

/* Copies what is shown: the workload does not stay. */
static void add_workload(struct dl_context *context, struct dl_table *table,
                         const struct dl_workload *w) {
    union dl_cell *cells = dl_table_row(table);
    cells[0].string = dl_arena_strdup(context->arena, w->name);
    cells[1].number = w->parameters;
    cells[2].number = w->active_parameters;
    cells[3].number = w->forward_macs_per_sample;
    cells[4].number = w->activation_elements_per_sample;
    cells[5].integer = w->layer_count;
    cells[6].string = input_text(context, w);
    cells[7].string = dl_arena_strdup(context->arena, w->summary);
    cells[8].string = dl_arena_strdup(context->arena, w->source);
    cells[9].number = w->model_macs_per_sample;
}

static enum dl_code list_workloads(struct dl_context *context, struct dl_table *table,
                                   struct dl_err *err) {
    const char **names;
    dl_data_names(&context->data, DL_DATA_WORKLOAD, context->arena, &names);
    for (int i = 0; names[i] != NULL; i++) {
        struct dl_arena one = {0}; /* hundreds of layers go when their sums are there */
        const struct dl_workload *w;
        enum dl_code code = dl_data_workload(&context->data, names[i], &one, &w, err);
        if (code == DL_OK) add_workload(context, table, w);
        dl_arena_free(&one);
        DL_TRY(code);
    }
    return DL_OK;
}

static enum dl_code list_systems(struct dl_context *context, struct dl_table *table,
                                 struct dl_err *err) {
    const char **names;
    dl_data_names(&context->data, DL_DATA_SYSTEM, context->arena, &names);
    for (int i = 0; names[i] != NULL; i++) {
        const struct dl_system *s;
        DL_TRY(dl_data_system_alone(&context->data, names[i], context->arena, &s, err));
        add(table, names[i], s->summary, s->source);
    }
    return DL_OK;
}

static enum dl_code list_devices(struct dl_context *context, struct dl_table *table,
                                 struct dl_err *err) {
    const char **names;
    dl_data_names(&context->data, DL_DATA_DEVICE, context->arena, &names);
    for (int i = 0; names[i] != NULL; i++) {
        const struct dl_device *d;
        DL_TRY(dl_data_device(&context->data, names[i], context->arena, &d, err));
        add(table, d->name, d->summary, d->source);
        union dl_cell *cells = last_row(table);
        cells[3].string =
            d->kernel_model_count > 0 ? "own samples"
            : d->borrowed != NULL
                ? dl_arena_printf(context->arena, "borrowed from %s", d->borrowed->name)
                : "datasheet";
        cells[4].boolean = d->kernel_model_count == 0;
    }
    return DL_OK;
}

static enum dl_code list_frameworks(struct dl_context *context, struct dl_table *table,
                                    struct dl_err *err) {
    const char **names;
    dl_data_names(&context->data, DL_DATA_FRAMEWORK, context->arena, &names);
    for (int i = 0; names[i] != NULL; i++) {
        const struct dl_framework *f;
        DL_TRY(dl_data_framework(&context->data, names[i], context->arena, &f, err));
        add(table, f->name, f->summary, f->source);
        last_row(table)[3].string = dl_framework_status_names[f->status];
    }
    return DL_OK;
}

static enum dl_code list_strategies(struct dl_context *context, struct dl_table *table,
                                    struct dl_err *err) {
    (void)err;
    for (int i = 0; dl_strategies[i] != NULL; i++) {
        const struct dl_strategy *s = dl_strategies[i];
        const char *summary =
            s->predict != NULL
                ? s->summary
                : dl_arena_printf(context->arena, "%s (not in this version)", s->summary);
        add(table, s->name, summary, "formulas");
    }
    return DL_OK;
}

/* The libraries whose rules have an algorithm of this name for the operation: "nccl, mpi". NULL:
 * an earlier library than `first` has it. */
static const char *libraries_with(enum dl_collective_op op, const char *name, int first,
                                  struct dl_arena *arena) {
    const char *text = NULL;
    for (int i = 0; i < DL_LIBRARIES; i++) {
        if (dl_library_algorithm_find((enum dl_library)i, op, name) < 0) continue;
        if (i < first) return NULL;
        text = text == NULL ? dl_library_names[i]
                            : dl_arena_printf(arena, "%s, %s", text, dl_library_names[i]);
    }
    return text;
}

/* Operations for which its rules have an algorithm of their own. */
static const char *operations_of(const struct dl_collective_library *library,
                                 struct dl_arena *arena) {
    const char *text = "";
    for (int op = 0; op < DL_COLL_OPS; op++) {
        bool serves = false;
        for (const struct dl_collective_algorithm *a = library->algorithms; a->name != NULL; a++)
            serves = serves || (a->operations >> op & 1u) != 0;
        if (serves)
            text = dl_arena_printf(arena, "%s%s%s", text, text[0] != 0 ? " " : "",
                                   dl_collective_op_names[op]);
    }
    return text;
}

static enum dl_code list_libraries(struct dl_context *context, struct dl_table *table,
                                   struct dl_err *err) {
    (void)err;
    for (int i = 0; i < DL_LIBRARIES; i++) {
        const struct dl_collective_library *library = dl_libraries[i];
        add(table, dl_library_names[i], library->summary, library->source);
        union dl_cell *cells = last_row(table);
        cells[3].string = !library->on_gpus ? "CPUs" : library->on_cpus ? "GPUs, CPUs" : "GPUs";
        cells[4].string = !library->on_gpus            ? ""
                          : library->takes_gpu_memory  ? "yes"
                          : library->stages_gpu_memory ? "copies it"
                                                       : "no";
        cells[5].string = library->formula;
        cells[6].string = operations_of(library, context->arena);
    }
    return DL_OK;
}

/* operation.algorithm, once for all libraries */
static enum dl_code list_collectives(struct dl_context *context, struct dl_table *table,
                                     struct dl_err *err) {
    (void)err;
    for (int op = 0; op < DL_COLL_OPS; op++) {
        for (int i = 0; i < DL_LIBRARIES; i++) {
            const struct dl_collective_algorithm *a = dl_libraries[i]->algorithms;
            for (; a->name != NULL; a++) {
                if ((a->operations >> op & 1u) == 0) continue;
                const char *text =
                    libraries_with((enum dl_collective_op)op, a->name, i, context->arena);
                if (text == NULL) continue;
                add(table,
                    dl_arena_printf(context->arena, "%s.%s", dl_collective_op_names[op], a->name),
                    a->summary, a->source);
                last_row(table)[3].string = text;
            }
        }
    }
    return DL_OK;
}

static enum dl_code list_behaviours(struct dl_context *context, struct dl_table *table,
                                    struct dl_err *err) {
    (void)err;
    (void)context;
    for (int i = 0; dl_framework_behaviours[i] != NULL; i++) {
        const struct dl_framework_behaviour *b = dl_framework_behaviours[i];
        add(table, b->name, b->summary, b->source);
    }
    return DL_OK;
}

static enum dl_code list_layers(struct dl_context *context, struct dl_table *table,
                                struct dl_err *err) {
    (void)err;
    (void)context;
    for (int i = 0; dl_layer_kinds[i] != NULL; i++) {
        add(table, dl_layer_kinds[i]->name, dl_layer_kinds[i]->summary, dl_layer_kinds[i]->source);
    }
    return DL_OK;
}

static enum dl_code list_checkpoints(struct dl_context *context, struct dl_table *table,
                                     struct dl_err *err) {
    (void)err;
    static const char *const writers[] = {"rank 0", "all, shards", "all, copies"};
    for (int i = 0; dl_checkpoint_formats[i] != NULL; i++) {
        const struct dl_checkpoint_format *f = dl_checkpoint_formats[i];
        add(table, f->name, f->summary, f->source);
        union dl_cell *cells = last_row(table);
        cells[3].string = writers[f->writers];
        cells[4].string = f->is_async ? "no" : "yes";
        cells[5].string = dl_checkpoint_saves_text(f, context->arena);
        cells[6].string = f->also;
    }
    return DL_OK;
}

#define COLUMNS(list) list, (int)(sizeof list / sizeof list[0])
static const struct kind {
    const char *name;
    enum dl_code (*fill)(struct dl_context *context, struct dl_table *table, struct dl_err *err);
    const struct dl_column *columns;
    int column_count;
} kinds[] = {
    {"systems", list_systems, COLUMNS(plain_columns)},
    {"devices", list_devices, COLUMNS(device_columns)},
    {"workloads", list_workloads, COLUMNS(workload_columns)},
    {"frameworks", list_frameworks, COLUMNS(framework_columns)},
    {"strategies", list_strategies, COLUMNS(plain_columns)},
    {"libraries", list_libraries, COLUMNS(library_columns)},
    {"collectives", list_collectives, COLUMNS(collective_columns)},
    {"behaviours", list_behaviours, COLUMNS(plain_columns)},
    {"layers", list_layers, COLUMNS(plain_columns)},
    {"checkpoints", list_checkpoints, COLUMNS(checkpoint_columns)},
    {NULL, NULL, NULL, 0},
};

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    enum dl_format format = DL_FORMAT_TEXT;
    DL_TRY(dl_output_format(options, &format, err));
    const char *all =
        "systems, devices, workloads, frameworks, strategies, libraries, collectives, behaviours, "
        "layers or checkpoints";
    if (options->positional_count > 1)
        return dl_fail(err, DL_ERR_USAGE, "unexpected argument \"%s\"", options->positional[1]);
    if (options->positional_count == 0)
        return dl_fail(err, DL_ERR_USAGE, "expected one of %s", all);
    const struct kind *kind = kinds;
    const char *names[16];
    int count = 0;
    for (; kind->name != NULL && strcmp(kind->name, options->positional[0]) != 0; kind++)
        names[count++] = kind->name;
    names[count] = NULL;
    if (kind->name == NULL) {
        const char *near = dl_suggest(options->positional[0], names);
        return dl_fail(err, DL_ERR_USAGE, "no kind '%s'; %s%s%sexpected %s", options->positional[0],
                       near != NULL ? "did you mean " : "", near != NULL ? near : "",
                       near != NULL ? "? " : "", all);
    }
    struct dl_table table;
    dl_table_init(&table, context->arena, kind->columns, kind->column_count);
    DL_TRY(kind->fill(context, &table, err));
    if (format == DL_FORMAT_CSV) return context->output(options, dl_table_csv(&table), err);
    if (format == DL_FORMAT_TEXT) return context->output(options, dl_table_text(&table), err);
    struct dl_json_writer w;
    dl_jw_init(&w, context->arena, false);
    dl_jw_array(&w, NULL);
    dl_table_json(&table, &w);
    dl_jw_end(&w);
    return context->output(options,
                           w.failed ? NULL : dl_arena_printf(context->arena, "%s\n", w.text), err);
}

const struct dl_command dl_cmd_list = {
    .name = "list",
    .summary = "list systems, workloads, frameworks, strategies, ...",
    .usage = "KIND [options]",
    .purpose =
        "Lists systems, devices, workloads, frameworks, strategies, communication libraries, "
        "algorithms of collectives, behaviours, layers or formats of checkpoints, each with a "
        "one-line summary and the source of its numbers. Workloads also show parameters, "
        "multiply-adds and activations; devices show the origin of their kernel times; libraries "
        "show the devices that they run on and the operations that they have rules for.",
    .examples = examples,
    .words = "systems devices workloads frameworks strategies libraries collectives behaviours "
             "layers checkpoints",
    .options = tables,
    .run = run,
};
