/* cmd_list.c - the known systems, devices, workloads, frameworks, strategies, libraries,
 * collectives, behaviours, layers, checkpoint formats. */
#include <stdio.h>
#include <string.h>

#include "model/framework/checkpoint/checkpoint_format.h"
#include "model/network/collective.h"
#include "model/catalog/command.h"
#include "model/core/columns.h"
#include "model/framework/gradient_sync.h"
#include "model/engine/strategies/strategy.h"
#include "model/workload/workload.h"

static const struct dl_option *const tables[] = {dl_output_options, NULL};
static const char *const examples[] = {"dlmodel list systems", "dlmodel list workloads --json",
                                       "dlmodel list libraries", NULL};

/* What the columns show of one entry; each kind has some of the members. */
struct entry {
    const char *name, *summary, *source, *status, *runs_on, *takes_gpu_memory, *formula,
        *operations, *libraries, *writers, *blocking, *saves, *also, *kernel_times, *input;
    double parameters, active, forward_macs, activations, model_macs;
    int layers;
    bool extrapolated;
};
#define SHOWN(member, key, heading, unit, scale, digits)                                           \
    DL_SHOWN(struct entry, member, key, heading, unit, scale, digits, 0, NULL)
#define WORD(member, key, heading) SHOWN(member, key, heading, "", 0, 0)
#define HIDDEN(member, key) DL_HIDDEN(struct entry, member, key, NULL)
#define NAMED WORD(name, "name", "name"), WORD(summary, "summary", "summary")
#define SOURCED NAMED, WORD(source, "source", "source")

static const struct dl_list_column plain_columns[] = {SOURCED};
static const struct dl_list_column framework_columns[] = {SOURCED,
                                                          WORD(status, "status", "status")};
static const struct dl_list_column collective_columns[] = {
    SOURCED, WORD(libraries, "libraries", "libraries")};
static const struct dl_list_column workload_columns[] = {
    WORD(name, "name", "name"),
    SHOWN(parameters, "parameters", "parameters", "M", 1e6, 5),
    SHOWN(active, "active_parameters", "active", "M", 1e6, 5),
    SHOWN(forward_macs, "forward_macs_per_sample", "forward", "GMAC", 1e9, 5),
    SHOWN(activations, "activation_elements_per_sample", "activations", "M", 1e6, 4),
    SHOWN(layers, "layers", "layers", "", 0, 0),
    WORD(input, "input", "input"),
    WORD(summary, "summary", "summary"),
    HIDDEN(source, "source"),
    HIDDEN(model_macs, "model_macs_per_sample"), /* masked attention counts less */
};
static const struct dl_list_column library_columns[] = {
    NAMED,
    HIDDEN(source, "source"),
    WORD(runs_on, "runs_on", "runs on"),
    WORD(takes_gpu_memory, "takes_gpu_memory", "takes GPU memory"),
    WORD(formula, "formula", "formula"),
    WORD(operations, "operations", "operations"),
};
static const struct dl_list_column checkpoint_columns[] = {
    NAMED,
    HIDDEN(source, "source"),
    WORD(writers, "writers", "written by"),
    WORD(blocking, "blocking", "blocking"),
    WORD(saves, "saves", "saves"),
    HIDDEN(also, "restart_also_needs"),
};
/* The origin of a device's kernel times: its own samples, those of a related device scaled by
 * peaks and bandwidths (predictions say `extrapolated`), or none. */
static const struct dl_list_column device_columns[] = {
    SOURCED,
    WORD(kernel_times, "kernel_times", "kernel times"),
    HIDDEN(extrapolated, "extrapolated"),
};

struct list {
    struct dl_context *context;
    struct dl_table table;
    const struct dl_list_column *columns;
};

static void add(struct list *list, struct entry entry) {
    dl_list_add(&list->table, list->columns, &entry);
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

/* Copies the strings: the workload is freed. */
static void add_workload(struct list *list, const struct dl_workload *w) {
    struct dl_arena *arena = list->context->arena;
    add(list, (struct entry){.name = dl_arena_strdup(arena, w->name),
                             .summary = dl_arena_strdup(arena, w->summary),
                             .source = dl_arena_strdup(arena, w->source),
                             .input = input_text(list->context, w),
                             .parameters = w->parameters,
                             .active = w->active_parameters,
                             .forward_macs = w->forward_macs_per_sample,
                             .activations = w->activation_elements_per_sample,
                             .model_macs = w->model_macs_per_sample,
                             .layers = w->layer_count});
}

static enum dl_code list_workloads(struct list *list, const char *name, struct dl_err *err) {
    struct dl_arena one = {0}; /* hundreds of layers, freed when their sums are known */
    const struct dl_workload *w;
    const enum dl_code code = dl_data_workload(&list->context->data, name, &one, &w, err);
    if (code == DL_OK) add_workload(list, w);
    dl_arena_free(&one);
    return code;
}

static enum dl_code list_systems(struct list *list, const char *name, struct dl_err *err) {
    const struct dl_system *s;
    struct dl_context *context = list->context;
    DL_TRY(dl_data_system_alone(&context->data, name, context->arena, &s, err));
    add(list, (struct entry){.name = name, .summary = s->summary, .source = s->source});
    return DL_OK;
}

static enum dl_code list_devices(struct list *list, const char *name, struct dl_err *err) {
    const struct dl_device *d;
    struct dl_context *context = list->context;
    DL_TRY(dl_data_device(&context->data, name, context->arena, &d, err));
    add(list,
        (struct entry){.name = d->name,
                       .summary = d->summary,
                       .source = d->source,
                       .kernel_times = d->kernel_model_count > 0 ? "own samples"
                                       : d->borrowed != NULL
                                           ? dl_arena_printf(context->arena, "borrowed from %s",
                                                             d->borrowed->name)
                                           : "datasheet",
                       .extrapolated = d->kernel_model_count == 0});
    return DL_OK;
}

static enum dl_code list_frameworks(struct list *list, const char *name, struct dl_err *err) {
    const struct dl_framework *f;
    DL_TRY(dl_data_framework(&list->context->data, name, list->context->arena, &f, err));
    add(list, (struct entry){.name = f->name,
                             .summary = f->summary,
                             .source = f->source,
                             .status = dl_framework_status_names[f->status]});
    return DL_OK;
}

static void list_strategies(struct list *list) {
    for (int i = 0; dl_strategies[i] != NULL; i++) {
        const struct dl_strategy *s = dl_strategies[i];
        add(list,
            (struct entry){.name = s->name,
                           .summary = s->predict != NULL
                                          ? s->summary
                                          : dl_arena_printf(list->context->arena,
                                                            "%s (not in this version)", s->summary),
                           .source = "formulas"});
    }
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

/* Operations for which its rules have an algorithm. */
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

static void list_libraries(struct list *list) {
    for (int i = 0; i < DL_LIBRARIES; i++) {
        const struct dl_collective_library *l = dl_libraries[i];
        add(list, (struct entry){.name = dl_library_names[i],
                                 .summary = l->summary,
                                 .source = l->source,
                                 .runs_on = !l->on_gpus  ? "CPUs"
                                            : l->on_cpus ? "GPUs, CPUs"
                                                         : "GPUs",
                                 .takes_gpu_memory = !l->on_gpus            ? ""
                                                     : l->takes_gpu_memory  ? "yes"
                                                     : l->stages_gpu_memory ? "copies it"
                                                                            : "no",
                                 .formula = l->formula,
                                 .operations = operations_of(l, list->context->arena)});
    }
}

/* operation.algorithm, once for all libraries */
static void list_collectives(struct list *list) {
    struct dl_arena *arena = list->context->arena;
    for (int op = 0; op < DL_COLL_OPS; op++) {
        for (int i = 0; i < DL_LIBRARIES; i++) {
            const struct dl_collective_algorithm *a = dl_libraries[i]->algorithms;
            for (; a->name != NULL; a++) {
                if ((a->operations >> op & 1u) == 0) continue;
                const char *libraries =
                    libraries_with((enum dl_collective_op)op, a->name, i, arena);
                if (libraries == NULL) continue;
                add(list, (struct entry){.name = dl_arena_printf(
                                             arena, "%s.%s", dl_collective_op_names[op], a->name),
                                         .summary = a->summary,
                                         .source = a->source,
                                         .libraries = libraries});
            }
        }
    }
}

static void list_behaviours(struct list *list) {
    for (int i = 0; dl_framework_behaviours[i] != NULL; i++) {
        const struct dl_framework_behaviour *b = dl_framework_behaviours[i];
        add(list, (struct entry){.name = b->name, .summary = b->summary, .source = b->source});
    }
}

static void list_layers(struct list *list) {
    for (int i = 0; dl_layer_kinds[i] != NULL; i++) {
        const struct dl_layer_kind *k = dl_layer_kinds[i];
        add(list, (struct entry){.name = k->name, .summary = k->summary, .source = k->source});
    }
}

static void list_checkpoints(struct list *list) {
    for (int i = 0; dl_checkpoint_formats[i] != NULL; i++) {
        const struct dl_checkpoint_format *f = dl_checkpoint_formats[i];
        add(list, (struct entry){.name = f->name,
                                 .summary = f->summary,
                                 .source = f->source,
                                 .writers = dl_checkpoint_writer_names[f->writers],
                                 .blocking = f->is_async ? "no" : "yes",
                                 .saves = dl_checkpoint_saves_text(f, list->context->arena),
                                 .also = f->also});
    }
}

/* Entries are files of data/ or rows of tables. */
static const struct kind {
    const char *name;
    const struct dl_list_column *columns;
    int column_count;
    void (*rows)(struct list *list);
    enum dl_code (*file)(struct list *list, const char *name, struct dl_err *err);
    enum dl_data_kind files;
} kinds[] = {
    {"systems", DL_LIST(plain_columns), NULL, list_systems, DL_DATA_SYSTEM},
    {"devices", DL_LIST(device_columns), NULL, list_devices, DL_DATA_DEVICE},
    {"workloads", DL_LIST(workload_columns), NULL, list_workloads, DL_DATA_WORKLOAD},
    {"frameworks", DL_LIST(framework_columns), NULL, list_frameworks, DL_DATA_FRAMEWORK},
    {"strategies", DL_LIST(plain_columns), list_strategies, NULL, 0},
    {"libraries", DL_LIST(library_columns), list_libraries, NULL, 0},
    {"collectives", DL_LIST(collective_columns), list_collectives, NULL, 0},
    {"behaviours", DL_LIST(plain_columns), list_behaviours, NULL, 0},
    {"layers", DL_LIST(plain_columns), list_layers, NULL, 0},
    {"checkpoints", DL_LIST(checkpoint_columns), list_checkpoints, NULL, 0},
    {.name = NULL},
};

static enum dl_code fill(const struct kind *kind, struct list *list, struct dl_err *err) {
    const char **names;
    if (kind->rows != NULL) {
        kind->rows(list);
        return DL_OK;
    }
    dl_data_names(&list->context->data, kind->files, list->context->arena, &names);
    for (int i = 0; names[i] != NULL; i++) DL_TRY(kind->file(list, names[i], err));
    return DL_OK;
}

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
    struct list list = {.context = context, .columns = kind->columns};
    dl_list_table(&list.table, context->arena, kind->columns, kind->column_count, 0);
    DL_TRY(fill(kind, &list, err));
    return context->output(options, dl_table_render(&list.table, format), err);
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
