/* cmd_explain.c - every term of one prediction: formula, inputs, where each number came from. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/core/figure.h"
#include "model/engine/diagnose.h"
#include "model/framework/input.h"
#include "predict/output/checkpoint_inputs.h"
#include "predict/output/explain_interval.h"
#include "predict/output/explain_limits.h"
#include "predict/output/gains.h"
#include "predict/output/explain_table.h"
#include "predict/inputs/inputs.h"
#include "predict/output/what_if_note.h"
#include "predict/inputs/heterogeneous_inputs.h"
#include "predict/output/predicted.h"
#include "predict/output/rows.h"
#include "predict/manual/wrap.h"

struct asked {
    int64_t top; /* 0: all terms */
    bool all;
};
#define ASKED(member) struct asked, member

static const struct dl_option own_options[] = {
    {"top", 0, "N", "Output",
     "print the N longest terms with their inputs and sum the others by group (memory in full)",
     DL_INTEGER(ASKED(top), .min = 1, .max = 1000000)},
    {"all", 0, NULL, "Output", "print every term with its inputs; default: a tree of the longest",
     DL_FLAG(ASKED(all))},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {
    own_options,           dl_input_options,  dl_heterogeneous_options,
    dl_checkpoint_options, dl_output_options, NULL};
static const char *const examples[] = {
    "dlmodel explain --framework pytorch-ddp --nodes 4",
    "dlmodel explain --workload vgg16 --framework horovod-pytorch --nodes 16 --top 12",
    "dlmodel explain --system dgx1-v100 --workload vgg16 --framework horovod-tensorflow --nodes 2 "
    "--csv",
    NULL,
};

static void add_term(struct dl_table *table, const struct dl_term *term) {
    const bool memory = strcmp(term->group, "memory") == 0;
    const struct dl_explained facts = {*term, memory ? NAN : term->value,
                                       memory ? term->value : NAN};
    dl_list_add(table, dl_explain_columns, &facts);
}

/* Groups in the order in which the terms come; each gets a line with its sum. */
static const char *const groups[] = {"forward", "backward", "update", "communication",
                                     "input",   "overhead", "memory", NULL};

static double sum_of(const struct dl_prediction *p, const char *group, int *count_out) {
    double sum = 0;
    *count_out = 0;
    for (int i = 0; i < p->term_count; i++) {
        if (strcmp(p->terms[i].group, group) != 0) continue;
        sum += p->terms[i].value;
        ++*count_out;
    }
    return sum;
}

/* A line for the sum of `count` terms of a group; it has no start. */
static void add_sum(struct dl_table *table, const char *name, const char *group, double sum,
                    int count) {
    const struct dl_term line = {
        .name = name,
        .group = group,
        .formula = "sum",
        .inputs = dl_arena_printf(table->arena, "%d terms", count),
        .start_s = NAN,
        .value = sum,
        .sigma_log = NAN,
    };
    add_term(table, &line);
}

static bool is_left_out(const struct dl_term *term, double least_s) {
    return strcmp(term->group, "memory") != 0 && term->value < least_s;
}

/* Omits times below least_s; text (`sums`) has a line with their sum and one for the whole
 * group. A single such term stays. */
static void add_terms(struct dl_table *table, const struct dl_prediction *p, double least_s,
                      bool sums) {
    for (int g = 0; groups[g] != NULL; g++) {
        int count, left = 0;
        double left_s = 0;
        const double sum = sum_of(p, groups[g], &count);
        for (int i = 0; i < p->term_count; i++) {
            if (strcmp(p->terms[i].group, groups[g]) == 0 && is_left_out(&p->terms[i], least_s))
                left_s += p->terms[i].value, left++;
        }
        for (int i = 0; i < p->term_count; i++) {
            if (strcmp(p->terms[i].group, groups[g]) != 0 ||
                (left > 1 && is_left_out(&p->terms[i], least_s)))
                continue;
            add_term(table, &p->terms[i]);
        }
        if (sums && left > 1)
            add_sum(table, dl_arena_printf(table->arena, "%d shorter", left), groups[g], left_s,
                    left);
        if (sums && count > 1)
            add_sum(table, dl_arena_printf(table->arena, "= %s", groups[g]), groups[g], sum, count);
    }
}

static void sums_json(struct dl_json_writer *w, const struct dl_prediction *p) {
    dl_jw_array(w, "sums");
    for (int g = 0; groups[g] != NULL; g++) {
        int count;
        const double sum = sum_of(p, groups[g], &count);
        if (count == 0) continue;
        dl_jw_object(w, NULL);
        dl_jw_string(w, "group", groups[g]);
        dl_jw_integer(w, "terms", count);
        dl_jw_number(w, strcmp(groups[g], "memory") == 0 ? "value_bytes" : "value_s", sum);
        dl_jw_end(w);
    }
    dl_jw_end(w);
}

/* " (decoding)": what of the input takes longest; "" for other bottlenecks. */
static const char *input_part(struct dl_arena *arena, const struct dl_prediction_row *row) {
    if (row->prediction->bottleneck != DL_BOUND_INPUT) return "";
    const struct dl_input_time t =
        dl_input_compute(row->system, row->workload, row->framework, row->plan);
    const char *text = t.slowest == NULL ? NULL : dl_arena_printf(arena, " (%s)", t.slowest);
    return text == NULL ? "" : text;
}

/* What the iteration depends on, the most first. */
static void add_path(struct dl_text *t, const struct dl_prediction *p) {
    struct dl_resource_use left = p->course.path;
    struct dl_text path = {.arena = t->arena};
    if (!(dl_resource_sum_s(&left) > 0)) return; /* ParaDL's model has no lanes */
    for (int shown = 0; shown < DL_RESOURCES; shown++) {
        int most = 0;
        for (int i = 1; i < DL_RESOURCES; i++)
            if (left.s[i] > left.s[most]) most = i;
        if (!(left.s[most] > 5e-4 * p->iteration_s)) break;
        dl_text_printf(&path, "%s%s %.4g", shown == 0 ? "" : " + ",
                       dl_bottleneck_names[dl_resource_bottleneck((enum dl_resource)most)],
                       1e3 * left.s[most]);
        left.s[most] = 0;
    }
    dl_text_add(&path, " ms");
    dl_text_add(t, "F-CRITICAL-PATH  ");
    dl_text_wrap(t, dl_text_string(&path), 17, DL_EXPLAIN_WIDTH);
}

/* The least and the most that a device of the fullest stage holds, and when. */
static void add_memory(struct dl_text *t, const struct dl_course *course) {
    const struct dl_memory_point *most = NULL, *least = NULL;
    int fullest = 0;
    for (int s = 0; s < course->memory_count; s++) {
        const struct dl_memory_curve *curve = &course->memory[s];
        const struct dl_memory_point *own_most = curve->points, *own_least = curve->points;
        for (int i = 1; i < curve->count; i++) {
            const struct dl_memory_point *point = &curve->points[i];
            if (point->bytes > own_most->bytes) own_most = point;
            if (point->bytes < own_least->bytes) own_least = point;
        }
        if (most != NULL && own_most->bytes <= most->bytes) continue;
        most = own_most, least = own_least, fullest = s;
    }
    if (most == NULL) return;
    const char *stage =
        course->memory_count > 1 ? dl_arena_printf(t->arena, " of stage %d", fullest + 1) : "";
    dl_text_printf(t, "F-MEM-COURSE     memory%s between %.4g and %.4g MiB, the most at %.4g ms\n",
                   stage, least->bytes / 1048576, most->bytes / 1048576, 1e3 * most->s);
}

static void add_summary(struct dl_text *t, const struct dl_prediction_row *row) {
    const struct dl_prediction *p = row->prediction;
    dl_text_printf(t,
                   "F-ITERATION  iteration %.4g ms = compute %.4g + exposed communication %.4g + "
                   "exposed input %.4g\n"
                   "             + bubble %.4g + overhead %.4g (straggler wait %.4g)\n",
                   1e3 * p->iteration_s, 1e3 * p->compute_s, 1e3 * p->exposed_comm_s,
                   1e3 * p->exposed_input_s, 1e3 * p->bubble_s, 1e3 * p->overhead_s,
                   1e3 * p->straggler_s);
    dl_text_printf(t,
                   "             compute %.4g = forward %.4g + backward %.4g + update %.4g\n"
                   "             communication %.4g and input %.4g in total; all but the exposed "
                   "part is hidden\n",
                   1e3 * p->compute_s, 1e3 * p->forward_s, 1e3 * p->backward_s, 1e3 * p->update_s,
                   1e3 * p->comm_s, 1e3 * p->input_s);
    dl_text_printf(t,
                   "F-INTERVAL   80 %% interval %.4g to %.4g ms\n%s"
                   "F-BOUND      bottleneck %s%s: %.0f %% of the iteration\n",
                   1e3 * p->iteration_low_s, 1e3 * p->iteration_high_s,
                   dl_explain_interval_text(row, t->arena), dl_bottleneck_names[p->bottleneck],
                   input_part(t->arena, row), 100 * p->bottleneck_share);
    add_path(t, p);
    add_memory(t, &p->course);
}

static const struct dl_term *longest_below(const struct dl_prediction *p, const char *group,
                                           const struct dl_term *than) {
    const struct dl_term *found = NULL;
    for (int i = 0; i < p->term_count; i++) {
        const struct dl_term *t = &p->terms[i];
        const bool after =
            than == NULL || t->value < than->value || (t->value == than->value && t > than);
        if (strcmp(t->group, group) == 0 && after && (found == NULL || t->value > found->value))
            found = t;
    }
    return found;
}

static void add_node(struct dl_text *t, const char *name, double value, bool memory,
                     const char *remark) {
    dl_text_printf(t, "%-38s %10s %s%s%s\n", name,
                   dl_figure_text(t->arena, memory ? value / 1048576 : 1e3 * value, 4),
                   memory ? "MiB" : "ms", remark[0] != 0 ? "  " : "", remark);
}

/* Each group with its longest terms. */
static void add_tree(struct dl_text *t, const struct dl_prediction *p) {
    enum { SHOWN = 3 };
    dl_text_add(t, "\n");
    for (int g = 0; groups[g] != NULL; g++) {
        const bool memory = strcmp(groups[g], "memory") == 0;
        const struct dl_term *term = NULL;
        int count;
        double left = sum_of(p, groups[g], &count);
        if (count == 0) continue;
        add_node(t, groups[g], left, memory,
                 dl_arena_printf(t->arena, "%d term%s", count, count == 1 ? "" : "s"));
        for (int i = 0; i < SHOWN && i < count; i++) {
            term = longest_below(p, groups[g], term);
            if (term == NULL) break;
            left -= term->value;
            add_node(t,
                     dl_arena_printf(t->arena, "  %s", dl_explain_short_name(t->arena, term->name)),
                     term->value, memory, term->formula);
        }
        if (count > SHOWN)
            add_node(t, dl_arena_printf(t->arena, "  %d others", count - SHOWN), fmax(left, 0),
                     memory, "");
    }
    dl_text_add(t, "Every term with its inputs and their origin: --all; the longest N: --top N\n");
}

struct explained {
    const struct dl_inputs *inputs;
    const struct dl_prediction_row *row;
    const struct dl_table *table; /* of terms */
    const struct dl_explain_limits *limits;
    bool tree;
};

static enum dl_code print_text(struct dl_context *context, const struct dl_options *options,
                               const struct explained *x, struct dl_err *err) {
    const struct dl_prediction_row *row = x->row;
    struct dl_arena *arena = context->arena;
    struct dl_text t = {.arena = arena};
    const char *checkpoint;
    struct dl_gains gains;
    DL_TRY(dl_checkpoint_text(context, options, row, &checkpoint, err));
    dl_text_wrap(&t,
                 dl_arena_printf(arena, "%s %s on %s (%s), %s %s, %lld nodes x %lld devices, %s",
                                 row->workload->name, dl_precision_names[row->plan->precision],
                                 row->system->name, row->system->device->name, row->framework->name,
                                 row->framework->release, (long long)row->plan->nodes,
                                 (long long)row->plan->devices_per_node,
                                 dl_inputs_batch(x->inputs, row->plan, arena)),
                 0, DL_EXPLAIN_WIDTH);
    DL_TRY(dl_gains_find(row, x->inputs->memo, arena, &gains, err));
    if (gains.count > 0) dl_text_wrap(&t, dl_gains_text(row, &gains, arena), 0, DL_EXPLAIN_WIDTH);
    if (x->tree) {
        if (gains.count == 0) dl_text_add(&t, "\n");
        add_summary(&t, row);
        add_tree(&t, row->prediction);
    } else {
        dl_text_add(&t, "\n");
        dl_text_add(&t, dl_explain_table_text(x->table));
        dl_text_add(&t, "\n");
        add_summary(&t, row);
    }
    dl_text_add(&t, dl_explain_limits_text(arena, x->limits));
    dl_text_add(&t, dl_heterogeneous_text(arena, row->prediction));
    if (checkpoint[0] != 0) dl_text_wrap(&t, checkpoint, 0, DL_EXPLAIN_WIDTH);
    return context->output(options, dl_text_string(&t), err);
}

static enum dl_code print_json(struct dl_context *context, const struct dl_options *options,
                               const struct explained *x, struct dl_err *err) {
    const struct dl_prediction_row *row = x->row;
    struct dl_json_writer w;
    dl_jw_init(&w, context->arena, false);
    dl_output_header(&w, "dlmodel-explanation");
    dl_inputs_json(context, x->inputs, options, &w);
    dl_jw_array(&w, "results");
    dl_rows_json_open(&w, row);
    dl_heterogeneous_json(&w, row->prediction);
    DL_TRY(dl_checkpoint_json(context, options, row, &w, err));
    dl_jw_end(&w);
    dl_jw_end(&w);
    dl_jw_array(&w, "terms");
    dl_table_json(x->table, &w);
    dl_jw_end(&w);
    sums_json(&w, row->prediction);
    dl_explain_limits_json(&w, x->limits);
    dl_explain_interval_json(row, &w);
    return context->output(options, dl_jw_text(&w), err);
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    enum dl_format format = DL_FORMAT_TEXT;
    struct dl_inputs inputs;
    struct dl_plan plan;
    struct dl_prediction prediction;
    struct asked asked = {.top = 0};
    DL_TRY(dl_output_format(options, &format, err));
    DL_TRY(dl_options_bind(options, own_options, &asked, err));
    DL_TRY(dl_inputs_load(context, options, &inputs, err));
    if (inputs.node_count != 1)
        return dl_fail(err, DL_ERR_USAGE, "--nodes: explain takes one number of nodes");
    DL_TRY(dl_inputs_one_framework(&inputs, "explain", err));
    const struct dl_framework *framework = inputs.frameworks[0];
    /* not named: the simplest multi-node mode */
    const struct dl_framework *usual =
        dl_framework_default(inputs.frameworks, inputs.framework_count, DL_DEFAULT_DATA_PARALLEL);
    if (inputs.framework_all && usual != NULL) framework = usual;
    struct dl_cost_memo memo = {.arena = context->arena};
    inputs.memo = context->memo != NULL ? context->memo : &memo;
    DL_TRY(dl_inputs_predict(&(struct dl_inputs_case){&inputs, framework, inputs.nodes[0], true},
                             context->arena, &plan, &prediction, err));
    dl_inputs_note_files(context, &inputs);
    const struct dl_prediction_row row = dl_row_of(&inputs, framework, &plan, &prediction);
    struct dl_explain_limits limits;
    dl_explain_limits(&inputs, &row, context->arena, &limits);
    struct dl_table table;
    dl_list_table(&table, context->arena, dl_explain_columns, DL_EXPLAIN_COLUMNS, 0);
    const double least_s =
        asked.top > 0 ? dl_terms_least_shown_s(&prediction, (size_t)asked.top, context->arena)
                      : -INFINITY;
    add_terms(&table, &prediction, least_s, format == DL_FORMAT_TEXT);
    const struct explained explained = {&inputs, &row, &table, &limits,
                                        !asked.all && asked.top == 0};
    if (format == DL_FORMAT_TEXT) DL_TRY(print_text(context, options, &explained, err));
    if (format == DL_FORMAT_CSV) DL_TRY(context->output(options, dl_table_csv(&table), err));
    if (format == DL_FORMAT_JSON) DL_TRY(print_json(context, options, &explained, err));
    for (int i = 0; i < prediction.warning_count; i++)
        context->note(context, "warning: %s", prediction.warnings[i]);
    DL_TRY(dl_what_if_note(context, options, &inputs, framework, err));
    if (inputs.strict && prediction.extrapolated)
        return dl_fail(err, DL_ERR_RANGE, "the result is extrapolated (--strict)");
    return DL_OK;
}

const struct dl_command dl_cmd_explain = {
    .name = "explain",
    .summary = "print every term of one prediction: formula, inputs, origin",
    .usage = "[options]",
    .purpose = "Prints every term of a prediction: each layer's forward and backward time, each "
               "transfer, the update, each part of the overhead, and memory by part. A term shows "
               "its formula ('dlmodel help theory F-NCCL' explains one), its start on the "
               "timeline, its value, the standard deviation of its logarithm, the value of every "
               "input, and the origin of its numbers. A summary follows: the composition of the "
               "iteration, how many layers are limited by arithmetic, memory bandwidth and kernel "
               "latency, and, in precisions other than fp32, the speedup over fp32.",
    .examples = examples,
    .options = tables,
    .few_notes = true,
    .common = DL_COMMON_INPUTS "all top json help",
    .instead = "For one line instead of every term use predict.",
    .run = run,
};
