/* report_plan.c - the page about a system and a workload: how does it scale, what limits it,
 * does it fit, and how large are the model's errors for published runs? */
#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/engine/strategies/strategy.h"
#include "predict/inputs/rates.h"
#include "predict/output/rows.h"
#include "plots/reports/report.h"

enum { MAX_FILES = 64 };

struct answer {                                     /* the prediction that the page is about */
    const struct dl_predicted_row *best, *smallest; /* same framework: on most nodes, on fewest */
    const struct dl_plot_predictions *all;
};

/* Fastest on the largest number of nodes among those that fit; `ideal` and workers that do not
 * wait for each other are excluded unless there is nothing else. */
static struct answer find_answer(const struct dl_plot_predictions *p) {
    struct answer a = {.all = p};
    int64_t most = 0;
    for (int i = 0; i < p->count; i++)
        most = p->rows[i].plan.nodes > most ? p->rows[i].plan.nodes : most;
    for (int pass = 0; pass < 2 && a.best == NULL; pass++) { /* second: nothing fits */
        for (int i = 0; i < p->count; i++) {
            const struct dl_predicted_row *r = &p->rows[i];
            const bool ideal = p->inputs.framework_count > 1 && dl_framework_is_bound(r->framework);
            const bool loose =
                p->inputs.framework_count > 1 && r->framework->sync.asynchronous && most > 1;
            if (r->plan.nodes != most || ideal || loose || (pass == 0 && !r->prediction.fits))
                continue;
            if (a.best == NULL || r->prediction.throughput_samples_per_s >
                                      a.best->prediction.throughput_samples_per_s)
                a.best = r;
        }
    }
    if (a.best == NULL) a.best = &p->rows[p->count - 1];
    a.smallest = a.best;
    for (int i = 0; i < p->count; i++) {
        const struct dl_predicted_row *r = &p->rows[i];
        if (r->framework == a.best->framework && r->plan.nodes < a.smallest->plan.nodes)
            a.smallest = r;
    }
    return a;
}

static const char *question(struct dl_arena *arena, const struct answer *a) {
    const struct dl_inputs *in = &a->all->inputs;
    const long long least = (long long)a->smallest->plan.nodes,
                    most = (long long)a->best->plan.nodes;
    const char *nodes = least == most ? dl_report_count(arena, most, "node")
                                      : dl_arena_printf(arena, "%lld to %lld nodes", least, most);
    const char *with =
        in->framework_count == 1 ? dl_arena_printf(arena, " with %s", in->frameworks[0]->name) : "";
    return dl_arena_printf(
        arena,
        "How does training of %s%s scale on %s of %s, does it fit in memory, and what limits it?",
        in->workload->name, with, nodes, in->system->name);
}

static const char *answer_text(struct dl_arena *arena, const struct answer *a) {
    const struct dl_predicted_row *b = a->best;
    const struct dl_prediction *p = &b->prediction;
    const long long devices = (long long)(b->plan.nodes * b->plan.devices_per_node);
    const char *epoch = dl_known(p->epoch_s)
                            ? dl_arena_printf(arena, "; an epoch takes %s",
                                              dl_report_quantity(arena, p->epoch_s, DL_UNIT_S))
                            : "";
    const char *memory =
        !dl_known(p->memory.capacity_bytes)
            ? ""
            : dl_arena_printf(arena, " %s of the %s of a device are used%s.",
                              dl_report_quantity(arena, p->memory.total_bytes, DL_UNIT_BYTE),
                              dl_report_quantity(arena, p->memory.capacity_bytes, DL_UNIT_BYTE),
                              p->fits ? "" : ": it does not fit");
    return dl_arena_printf(
        arena,
        "%s%s on %s (%s): %.*f samples/s, %.0f %% of linear scaling%s. 80 %% prediction interval: "
        "%s to %s per iteration. Bottleneck: %.0f %% of the iteration is %s.%s",
        a->all->inputs.framework_count > 1 ? "Fastest: " : "", b->framework->name,
        dl_report_count(arena, (long long)b->plan.nodes, "node"),
        dl_report_count(arena, devices, "device"), p->throughput_samples_per_s < 100 ? 1 : 0,
        p->throughput_samples_per_s, 100 * p->scaling_efficiency, epoch,
        dl_report_quantity(arena, p->iteration_low_s, DL_UNIT_S),
        dl_report_quantity(arena, p->iteration_high_s, DL_UNIT_S), 100 * p->bottleneck_share,
        dl_bottleneck_names[p->bottleneck], memory);
}

/* What a phone shows without scrolling comes first. */
static const struct dl_column scaling_columns[] = {
    {"framework", NULL, "", DL_COLUMN_STRING, 0, 0},
    {"nodes", "nodes", "", DL_COLUMN_INTEGER, 0, 0},
    {"throughput", "throughput", "samples/s", DL_COLUMN_NUMBER, 0, 4},
    {"memory", "memory", "GiB", DL_COLUMN_NUMBER, 1073741824, 0},
    {"bottleneck", "bottleneck", "", DL_COLUMN_STRING, 0, 0},
    {"efficiency", "efficiency", "%", DL_COLUMN_NUMBER, 0.01, 0},
    {"iteration", "iteration", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"low", "low", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"high", "high", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"compute", "compute", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"comm", "communication", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"exposed", "exposed", "ms", DL_COLUMN_NUMBER, 1e-3, 0},
    {"devices", "devices", "", DL_COLUMN_INTEGER, 0, 0},
    {"tokens_per_device", "tokens", "1/s/device", DL_COLUMN_NUMBER, 0, 4},
    {"model_rate", "model", "TFLOP/s/device", DL_COLUMN_NUMBER, 1e12, 0},
    {"mfu", "MFU", "%", DL_COLUMN_NUMBER, 0.01, 0},
    {"hfu", "HFU", "%", DL_COLUMN_NUMBER, 0.01, 0},
};
enum { SEQUENCE_COLUMNS = 4 }; /* the last ones, of sequences alone */

static void add_row(struct dl_table *table, const struct dl_inputs *inputs,
                    const struct dl_predicted_row *r) {
    const struct dl_prediction *p = &r->prediction;
    const struct dl_prediction_row row = dl_predicted_row_of(inputs, r);
    const struct dl_throughput t = dl_rows_throughput(&row);
    dl_table_add(
        table, {.string = r->framework->name}, {.integer = r->plan.nodes},
        {.number = p->throughput_samples_per_s}, {.number = p->memory.total_bytes},
        {.string = dl_bottleneck_names[p->bottleneck]}, {.number = p->scaling_efficiency},
        {.number = p->iteration_s}, {.number = p->iteration_low_s}, {.number = p->iteration_high_s},
        {.number = p->compute_s}, {.number = p->comm_s}, {.number = p->exposed_comm_s},
        {.integer = r->plan.nodes * r->plan.devices_per_node}, {.number = t.device_tokens_per_s},
        {.number = t.device_model_flop_per_s}, {.number = t.mfu_frac}, {.number = t.hfu_frac});
}

/* The answer's framework on every number of nodes, and every framework on the most. */
static void tables(struct dl_report *r, const struct answer *a) {
    struct dl_table own, others;
    const bool sequences = dl_known(dl_tokens_per_sample(a->all->inputs.workload));
    const int columns = (int)(sizeof scaling_columns / sizeof scaling_columns[0]) -
                        (sequences ? 0 : SEQUENCE_COLUMNS);
    struct dl_column *named = dl_arena_alloc(r->context->arena, (size_t)columns, sizeof *named);
    memcpy(named, scaling_columns, (size_t)columns * sizeof *named);
    named[0].heading = "framework";
    dl_table_init(&own, r->context->arena, scaling_columns, columns);
    dl_table_init(&others, r->context->arena, named, columns);
    for (int i = 0; i < a->all->count; i++) {
        const struct dl_predicted_row *row = &a->all->rows[i];
        if (row->framework == a->best->framework) add_row(&own, &a->all->inputs, row);
        if (row->plan.nodes == a->best->plan.nodes) add_row(&others, &a->all->inputs, row);
    }
    dl_document_table(
        &r->page, &own,
        dl_arena_printf(r->context->arena, "%s by number of nodes.", a->best->framework->name));
    if (others.row_count > 1) {
        dl_document_table(&r->page, &others,
                          dl_arena_printf(r->context->arena, "Every framework on %s.",
                                          dl_report_count(r->context->arena,
                                                          (long long)a->best->plan.nodes, "node")));
    }
}

static enum dl_code pictures(struct dl_report *r, const struct answer *a,
                             const struct dl_options *options, struct dl_err *err) {
    struct dl_arena *arena = r->context->arena;
    const char *name = a->best->framework->name;
    const struct dl_plan *plan = &a->best->plan;
    /* a device has parts of layers */
    const bool split = plan->tp > 1 || plan->pp > 1 || plan->sp > 1 || plan->ep > 1;
    const struct dl_options best =
        dl_report_with(options, "framework", dl_inputs_framework_word(options, a->best->framework));
    const struct dl_options last =
        dl_report_with(&best, "nodes", dl_arena_printf(arena, "%" PRId64, a->best->plan.nodes));
    const struct dl_options every =
        dl_report_with(options, "nodes", dl_arena_printf(arena, "%" PRId64, a->best->plan.nodes));
    dl_document_section(&r->page, "Where the time goes");
    DL_TRY(dl_report_figure(
        r, &best, dl_plot_breakdown, "breakdown",
        dl_arena_printf(arena,
                        "Parts of an iteration of %s by number of nodes. "
                        "Communication that hides behind computation is not in the bars.",
                        name),
        err));
    if (!split)
        DL_TRY(dl_report_figure(
            r, &last, dl_plot_roofline, "roofline",
            dl_arena_printf(arena,
                            "Layers on the roofline of %s: layers far below the roof take time "
                            "that better kernels or larger batches could save.",
                            a->all->inputs.system->device->name),
            err));
    if (a->best->prediction.stage_count > 1)
        DL_TRY(dl_report_figure(r, &last, dl_plot_pipeline, "pipeline",
                                "Schedule of the pipeline: which micro-batch runs when on each "
                                "stage.",
                                err));
    if (dl_known(dl_tokens_per_sample(a->all->inputs.workload)) &&
        dl_known(dl_device_peak(a->all->inputs.system->device, plan->precision)))
        DL_TRY(dl_report_figure(r, a->all->inputs.framework_count > 1 ? &every : &best, dl_plot_mfu,
                                "mfu",
                                "Share of the devices' datasheet rate that the model uses (MFU), "
                                "and with recomputation (HFU).",
                                err));
    dl_document_section(&r->page, "Memory");
    DL_TRY(dl_report_figure(r, a->all->inputs.framework_count > 1 ? &every : &best, dl_plot_memory,
                            "memory", "Memory of one device by part, and its capacity.", err));
    const double batch = a->best->prediction.max_batch_samples;
    if (dl_known(batch) && !split)
        dl_document_paragraph(
            &r->page, dl_arena_printf(
                          arena, "The largest batch that fits is %.0f samples per device.", batch));
    return DL_OK;
}

/* Tables of runs in the data directories, at most MAX_FILES. */
static int run_files(struct dl_context *context, const char **out) {
    int count = 0;
    for (int d = 0; d < context->data.directory_count; d++) {
        const char *path = dl_arena_printf(context->arena, "%s/runs", context->data.directories[d]);
        struct dirent **names = NULL;
        const int found = path == NULL ? -1 : scandir(path, &names, NULL, alphasort);
        for (int i = 0; i < found; i++) {
            const size_t length = strlen(names[i]->d_name);
            if (count < MAX_FILES && length > 4 &&
                strcmp(names[i]->d_name + length - 4, ".csv") == 0) {
                out[count++] = dl_arena_printf(context->arena, "%s/%s", path, names[i]->d_name);
            }
            free(names[i]);
        }
        free(names);
        if (count > 0) return count; /* the first directory with runs: others are copies */
    }
    return count;
}

struct alike {
    const char *name;
    bool system, workload, framework;
};

/* Rows of `from` that match the answer in the keys of `how`, under one name. */
static void add_alike(const struct dl_comparison *from, const struct answer *a,
                      const struct alike *how, struct dl_comparison *out) {
    const struct dl_inputs *in = &a->all->inputs;
    for (int i = 0; i < from->count; i++) {
        const struct dl_compared *c = &from->rows[i];
        if (how->system && strcmp(c->system, in->system->name) != 0) continue;
        if (how->workload && (c->workload == NULL || strcmp(c->workload, in->workload->name) != 0))
            continue;
        if (how->framework &&
            (c->framework == NULL || strcmp(c->framework, a->best->framework->name) != 0))
            continue;
        struct dl_compared *row = dl_comparison_add(out);
        *row = *c;
        row->source = how->name;
    }
}

static const struct dl_column alike_columns[] = {
    {"group", "published runs", "", DL_COLUMN_STRING, 0, 0},
    {"rows", "rows", "", DL_COLUMN_INTEGER, 0, 0},
    {"mape", "mean", "%", DL_COLUMN_NUMBER, 0, 3},
    {"median", "median", "%", DL_COLUMN_NUMBER, 0, 3},
    {"worst", "worst", "%", DL_COLUMN_NUMBER, 0, 3},
    {"bias", "bias", "%", DL_COLUMN_NUMBER, 0, 3},
    {"inside", "interval coverage", "%", DL_COLUMN_NUMBER, 0, 3},
};

static enum dl_code accuracy(struct dl_report *r, const struct answer *a, struct dl_err *err) {
    const struct dl_inputs *in = &a->all->inputs;
    struct dl_arena *arena = r->context->arena;
    const struct alike kinds[] = {
        {dl_arena_printf(arena, "on %s", in->system->name), true, false, false},
        {dl_arena_printf(arena, "of %s", in->workload->name), false, true, false},
        {dl_arena_printf(arena, "with %s", a->best->framework->name), false, false, true},
        {"all", false, false, false},
    };
    const char *files[MAX_FILES];
    const int count = run_files(r->context, files);
    struct dl_comparison all = {.arena = arena};
    struct dl_table table;
    dl_document_section(&r->page, "Accuracy");
    DL_TRY(dl_report_headline(r, err));
    for (int i = 0; i < count; i++) {
        struct dl_csv csv;
        DL_TRY(dl_csv_read(files[i], arena, &csv, err));
        DL_TRY(dl_compare_runs(&r->context->data, &csv, false, &all, err));
    }
    dl_table_init(&table, arena, alike_columns, sizeof alike_columns / sizeof alike_columns[0]);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        struct dl_comparison one = {.arena = arena};
        struct dl_error_summary *list = NULL;
        int groups = 0;
        add_alike(&all, a, &kinds[k], &one);
        dl_compare_summarize(&one, &list, &groups);
        if (one.count == 0 || groups < 2) {
            dl_table_add(&table, {.string = kinds[k].name}, {.integer = 0});
            continue;
        }
        const struct dl_error_summary *s = &list[groups - 2]; /* "all" */
        dl_table_add(&table, {.string = kinds[k].name}, {.integer = s->rows},
                     {.number = s->time_mape_pct}, {.number = s->time_median_ape_pct},
                     {.number = s->time_max_ape_pct}, {.number = s->time_bias_pct},
                     {.number = s->inside_pct});
    }
    if (count == 0)
        dl_document_paragraph(&r->page,
                              "No published runs are installed with this program to compare with.");
    else
        dl_document_table(
            &r->page, &table,
            "Absolute error of the predicted time for published runs that share the system, "
            "workload or framework, "
            "without --set; some constants were fitted to some of them (README).");
    return DL_OK;
}

static enum dl_code warnings(struct dl_report *r, const struct answer *a) {
    const struct dl_prediction *p = &a->best->prediction;
    if (p->warning_count == 0) return DL_OK;
    dl_document_paragraph(&r->page, "Warnings:");
    for (int i = 0; i < p->warning_count; i++) dl_document_item(&r->page, p->warnings[i]);
    dl_document_items_end(&r->page);
    return DL_OK;
}

static enum dl_code method(struct dl_report *r, const struct answer *a,
                           const struct dl_options *options, struct dl_err *err) {
    struct dl_input_file files[DL_MAX_INPUT_FILES];
    const char *lines[DL_MAX_INPUT_FILES];
    struct dl_inputs in = a->all->inputs;
    struct dl_plan plan;
    struct dl_prediction terms;
    struct dl_arena *arena = r->context->arena;
    DL_TRY(dl_inputs_predict(
        &(struct dl_inputs_case){&in, a->best->framework, a->best->plan.nodes, true}, arena, &plan,
        &terms, err));
    in.frameworks[0] = a->best->framework;
    in.framework_count = 1;
    const int count = dl_inputs_files(r->context, &in, files);
    if (count < 0) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    for (int i = 0; i < count; i++)
        lines[i] =
            dl_arena_printf(arena, "%s %016" PRIx64,
                            dl_data_shown_path(&r->context->data, files[i].path), files[i].hash);
    dl_report_method(r, &terms, lines, count);
    dl_document_paragraph(&r->page, "Every term of the answer:");
    dl_document_code(&r->page, dl_inputs_command(r->context, options, "explain", a->best->framework,
                                                 a->best->plan.nodes));
    return DL_OK;
}

/* --nodes when none are given: those that --gpus fills, or 1, 2, 4, ... up to 16 or all that the
 * system has. */
static enum dl_code default_nodes(struct dl_report *r, struct dl_options *options,
                                  struct dl_err *err) {
    struct dl_options own = *options;
    struct dl_inputs inputs;
    if (dl_option_given(options, "nodes")) return DL_OK;
    own.positional_count = 0;
    const char *names = dl_option_text(options, "framework");
    if (names != NULL && strchr(names, ',') != NULL) own = dl_report_with(&own, "framework", "all");
    struct dl_context quiet = *r->context;
    quiet.verbosity = -1;
    DL_TRY(dl_inputs_load(&quiet, &own, &inputs, err));
    if (dl_option_given(options, "gpus")) {
        struct dl_arena *arena = r->context->arena;
        *options = dl_options_without(options, "gpus");
        *options =
            dl_report_with(options, "nodes", dl_arena_printf(arena, "%" PRId64, inputs.nodes[0]));
        if (inputs.plan.devices_per_node > 0)
            *options =
                dl_report_with(options, "devices-per-node",
                               dl_arena_printf(arena, "%" PRId64, inputs.plan.devices_per_node));
        return DL_OK;
    }
    const int64_t most = inputs.system->nodes < 16 ? inputs.system->nodes : 16;
    const char *list = most > 1 ? dl_arena_printf(r->context->arena, "1-%" PRId64 "*2", most) : "1";
    *options = dl_report_with(options, "nodes", list);
    return DL_OK;
}

enum dl_code dl_report_of_plan(struct dl_report *r, const char *title, struct dl_err *err) {
    struct dl_arena *arena = r->context->arena;
    struct dl_options options = r->options;
    struct dl_plot_predictions p = {.count = 0};
    DL_TRY(default_nodes(r, &options, err));
    DL_TRY(dl_plot_predict(r->context, &options, "report", &p, err));
    DL_TRY(dl_rates_read(&options, arena, &p.inputs.rates, err));
    const struct answer a = find_answer(&p);
    const struct dl_plan *plan = &a.best->plan;
    const struct dl_modelled modelled = {p.inputs.system,
                                         dl_inputs_workload(&p.inputs, a.best->framework),
                                         a.best->framework, plan, &a.best->prediction};
    dl_document_begin(&r->page, arena, r->page.markdown,
                      title != NULL ? title
                                    : dl_arena_printf(arena, "%s on %s", p.inputs.workload->name,
                                                      p.inputs.system->name),
                      dl_arena_printf(arena, "%s, %s, %s, %s optimizer, %s parallel",
                                      p.inputs.workload->name, dl_precision_names[plan->precision],
                                      dl_inputs_batch(&p.inputs, plan, arena),
                                      dl_optimizer_names[plan->optimizer], plan->strategy->name));
    dl_document_section(&r->page, "Question and answer");
    dl_document_paragraph(&r->page, question(arena, &a));
    dl_document_answer(&r->page, answer_text(arena, &a));
    DL_TRY(warnings(r, &a));
    dl_document_section(&r->page, "The machine");
    dl_report_system(r, p.inputs.system, plan->precision);
    dl_document_section(&r->page, "Scaling");
    DL_TRY(dl_report_figure(r, &options, dl_plot_scaling, "scaling",
                            "Throughput per device against devices.", err));
    tables(r, &a);
    dl_report_cost(r, &p.inputs, p.rows, p.count, a.best->framework);
    DL_TRY(pictures(r, &a, &options, err));
    dl_document_section(&r->page, "Limits, and what to change");
    DL_TRY(dl_report_limits(r, &modelled, err));
    const struct dl_options one = dl_report_with(
        &options, "framework", dl_inputs_framework_word(&options, a.best->framework));
    const struct dl_options last =
        dl_report_with(&one, "nodes", dl_arena_printf(arena, "%" PRId64, a.best->plan.nodes));
    DL_TRY(dl_report_advice(r, &last, err));
    struct dl_prediction_row row = dl_predicted_row_of(&p.inputs, a.best);
    row.length = NULL;
    DL_TRY(dl_report_checkpoint(r, &last, &row, err));
    DL_TRY(accuracy(r, &a, err));
    DL_TRY(dl_report_unseen(r, &modelled, err));
    dl_document_section(&r->page, "Calibration of the machine");
    dl_report_calibration(r, p.inputs.system);
    return method(r, &a, &options, err);
}
