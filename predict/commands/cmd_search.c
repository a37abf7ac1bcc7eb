/* cmd_search.c - which strategy, split, micro-batch and schedule is best on this many devices, and
 * which are impossible and why? */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "model/engine/strategies/strategy.h"
#include "model/engine/correct.h"
#include "model/framework/settings.h"
#include "predict/inputs/heterogeneous_inputs.h"
#include "predict/inputs/layer_inputs.h"
#include "predict/inputs/rates.h"
#include "predict/inputs/search_inputs.h"
#include "predict/output/what_if_note.h"
#include "predict/output/heterogeneous_search.h"
#include "predict/output/search_print.h"
#include "predict/output/search_rank.h"
#include "predict/output/best_of_each.h"
#include "predict/output/search_sweep.h"
#include "predict/output/search_threads.h"

/* The options of search alone. */
struct asked {
    enum dl_objective objective;
    int64_t max_devices, top, threads;
    double memory_bytes, deadline_s, max_iteration_s, device_w;
    bool pareto, every_row, text;
    unsigned vary;
    const char *shard, *sweep, *jobs;
    int place;
    bool place_given;
};
#define ASKED(member) struct asked, member

static const struct dl_option own_options[] = {
    {"objective", 0, "time|throughput|memory|devices|energy|cost", "Search",
     "quantity to optimize; default time",
     DL_CHOICE(ASKED(objective), .choices = dl_objective_names)},
    {"max-devices", 0, "N", "Search",
     "try every node count that is a power of two and has at most N devices; default: only --nodes",
     DL_INTEGER(ASKED(max_devices), .min = 1, .max = 100000000)},
    {"memory", 0, "BYTES", "Search", "memory limit per device; default: the device's memory",
     DL_NUMBER(ASKED(memory_bytes), .unit = DL_UNIT_BYTE, .min = 1e6, .max = 1e15)},
    {"deadline", 0, "TIME", "Search",
     "with --tokens or --epochs: only plans that end the run in TIME, e.g. 24h; default none",
     DL_NUMBER(ASKED(deadline_s), .unit = DL_UNIT_S, .min = 1e-6, .max = 1e11)},
    {"max-iteration", 0, "TIME", "Search", "time limit of an iteration, e.g. 2s; default none",
     DL_NUMBER(ASKED(max_iteration_s), .unit = DL_UNIT_S, .min = 1e-6, .max = 1e9)},
    {"top", 0, "N", "Search",
     "number of best plans, 1 to 64, of --long, --json and --csv; default 10",
     DL_INTEGER(ASKED(top), .min = 1, .max = DL_SEARCH_KEPT)},
    {"long", 0, NULL, "Search",
     "print the --top best plans with all columns, their commands, the terms and limits of the "
     "best",
     DL_FLAG(ASKED(every_row))},
    {"pareto", 0, NULL, "Search",
     "also print the Pareto front of iteration time, memory and devices", DL_FLAG(ASKED(pareto))},
    {"vary", 0, "LIST", "Search",
     "also search settings that the framework's release has and that are not given, by option: "
     "overlap-grad-reduce, overlap-param-gather, tp-comm-overlap, allreduce, moe-dispatch, "
     "cp-comm, cuda-graphs, moe-overlap, recompute-layers, recompute-every, recompute-modules, "
     "offload; or "
     "all but recompute-* (all); default none",
     DL_SET(ASKED(vary), .choices = dl_settings_varied)},
    {"threads", 0, "N", "Search", "threads that search; default: all cores",
     DL_INTEGER(ASKED(threads), .min = 1, .max = 256)},
    {"device-power", 0, "WATT", "Search",
     "power of a device under load, the same in all plans, for --objective energy; default: "
     "modelled for each plan (help theory F-POWER)",
     DL_NUMBER(ASKED(device_w), .min = 0.1, .max = 1e6)},
    {"shard", 0, "I/N", "Search",
     "search only part I (from 0) of N, to split a search into N jobs; write each part with --csv, "
     "then combine them with --merge",
     DL_TEXT(ASKED(shard))},
    {"sweep", 0, "FILE", "Search",
     "one search for each row of this CSV file, whose columns are options (system, workload, "
     "nodes, global_batch, ...); prints CSV: the best plan of each row, or its --top best; with "
     "--shard only every N-th row, for `merge`",
     DL_TEXT(ASKED(sweep))},
    {"merge", 0, "FILE", "Search",
     "do not search: combine the CSV files of all parts; give --merge once per part and all other "
     "options as in the parts",
     DL_REPEATED},
    {"jobs", 0, "NAME,...", "Search",
     "with --heterogeneous: place these networks, each trained for an epoch (--epochs N) on nodes "
     "of one kind, all at the same time",
     DL_TEXT(ASKED(jobs))},
    {"place", 0, "nodes|stages|parts", "Search",
     "with --heterogeneous: what goes to which kind of node: whole replicas, some nodes left out "
     "(nodes), stages of a pipeline (stages), or workers, parameter servers and the decoding of "
     "real input (parts); default nodes",
     DL_CHOICE(ASKED(place), .choices = dl_place_names, DL_GIVEN(ASKED(place_given)))},
    {.name = NULL},
};

static const struct dl_option *const tables[] = {own_options,       dl_heterogeneous_options,
                                                 dl_rates_options,  dl_input_options,
                                                 dl_output_options, NULL};
static const char *const examples[] = {
    "dlmodel search --system dgx-a100-80 --nodes 4 --workload gpt2_xl --global-batch 256 "
    "--precision mixed --optimizer adam",
    "dlmodel search --system dgx-a100-80 --nodes 512 --workload "
    "gpt:layers=128,hidden=25600,heads=160,seq=2048,vocab=51200 "
    "--global-batch 3072 --precision mixed --optimizer adam --threads 2 --json",
    "dlmodel search --system abci-v100 --nodes 16 --workload resnet50 --framework chainermn "
    "--global-batch 4096",
    NULL,
};

static enum dl_code read_sizes(const struct asked *asked, const struct dl_inputs *inputs,
                               struct dl_search_request *r, struct dl_err *err) {
    const int64_t each = r->fixed.devices_per_node, most = asked->max_devices;
    if (most > 0 && inputs->given.gpus)
        return dl_fail(err, DL_ERR_USAGE, "give --max-devices or --gpus, not both");
    if (most > 0 && !inputs->given.nodes) {
        if (most < each) r->fixed.devices_per_node = most;
        for (int64_t nodes = 1;
             nodes * r->fixed.devices_per_node <= most && r->node_count < DL_SEARCH_SIZES;
             nodes *= 2)
            r->nodes[r->node_count++] = nodes;
        return DL_OK;
    }
    for (size_t i = 0; i < inputs->node_count && r->node_count < DL_SEARCH_SIZES; i++) {
        if (most > 0 && inputs->nodes[i] * each > most) continue;
        r->nodes[r->node_count++] = inputs->nodes[i];
    }
    if (r->node_count > 0) return DL_OK;
    return dl_fail(err, DL_ERR_USAGE,
                   "--max-devices %lld: even the fewest --nodes have more devices; nearest is %lld",
                   (long long)most, (long long)(inputs->nodes[0] * each));
}

/* One global batch for all numbers of nodes: that of the largest. */
static enum dl_code fix_batch(const struct dl_inputs *inputs, struct dl_search_request *r,
                              struct dl_err *err) {
    struct dl_plan *fixed = &r->fixed;
    if (inputs->plan.global_batch_samples <= 0) {
        int64_t most = r->nodes[0];
        for (int i = 1; i < r->node_count; i++) most = r->nodes[i] > most ? r->nodes[i] : most;
        fixed->global_batch_samples =
            inputs->plan.batch_per_device_samples * (double)(most * fixed->devices_per_node);
    }
    return fixed->global_batch_samples == floor(fixed->global_batch_samples)
               ? DL_OK
               : dl_fail(err, DL_ERR_USAGE, "--global-batch: expected a whole number");
}

/* The longest iteration within --max-iteration and --deadline. */
static enum dl_code read_deadline(const struct asked *asked, const struct dl_inputs *inputs,
                                  struct dl_search_request *r, struct dl_err *err) {
    const struct dl_prediction one = {.iteration_s = 1,
                                      .throughput_samples_per_s = r->fixed.global_batch_samples};
    r->iteration_limit_s = asked->max_iteration_s;
    if (asked->deadline_s <= 0) return DL_OK;
    const double count =
        dl_run_total_of(inputs->workload, &r->fixed, &one, &inputs->length).iteration_count;
    if (!dl_known(count))
        return dl_fail(err, DL_ERR_USAGE, "--deadline: needs --tokens or --epochs");
    if (r->iteration_limit_s <= 0 || asked->deadline_s / count < r->iteration_limit_s)
        r->iteration_limit_s = asked->deadline_s / count;
    return DL_OK;
}

static double known(double value) { return dl_known(value) ? value : 0; }

/* Whether each plan's own power decides, not one power of a device for all. */
static bool models_power(const struct asked *asked) {
    return asked->objective == DL_BY_ENERGY && asked->device_w <= 0;
}

static enum dl_code read_request(const struct asked *asked, const struct dl_inputs *inputs,
                                 const struct dl_framework *framework, struct dl_search_request *r,
                                 struct dl_err *err) {
    const double rated_w = inputs->system->device->power.tdp_w;
    struct dl_plan_question question;
    dl_inputs_question(inputs, framework, inputs->nodes[0], &question);
    dl_plan_search_request(&question, r);
    const bool by_split = asked->text && !asked->every_row; /* of each split the best plan */
    r->keep = models_power(asked) || by_split ? DL_SEARCH_KEPT : (int)asked->top;
    r->objective = asked->objective;
    r->front = asked->pareto;
    r->vary = asked->vary;
    r->memory_bytes = asked->memory_bytes;
    r->device_w = asked->device_w > 0 || !dl_known(rated_w) ? asked->device_w : rated_w;
    r->node_price_per_hour = known(dl_price_of(inputs->system, &inputs->rates));
    DL_TRY(dl_part_read(asked->shard, &r->shard_index, &r->shard_count, err));
    if (r->vary != 0 && asked->shard != NULL)
        return dl_fail(err, DL_ERR_USAGE, "--vary: not together with --shard");
    r->node_count = 0;
    DL_TRY(read_sizes(asked, inputs, r, err));
    DL_TRY(fix_batch(inputs, r, err));
    DL_TRY(read_deadline(asked, inputs, r, err));
    if (r->objective == DL_BY_ENERGY && r->device_w <= 0)
        return dl_fail(err, DL_ERR_USAGE, "--objective energy: give --device-power");
    if (r->objective == DL_BY_COST && r->node_price_per_hour <= 0)
        return dl_fail(err, DL_ERR_USAGE, "--objective cost: give --price");
    return DL_OK;
}

/* After the choice, best first by the prediction that is printed; stable, so that equals keep the
 * search's order. */
static void sort_rows(const struct dl_search_request *r, struct dl_search_candidate *found,
                      struct dl_searched *rows, int count) {
    for (int i = 2; i < count; i++) { /* insertion sort: at most a few hundred, nearly in order */
        const struct dl_search_candidate one = found[i];
        const struct dl_searched row = rows[i];
        int at = i;
        for (; at > 1 && dl_search_score(r, &found[at - 1]) > dl_search_score(r, &one); at--) {
            found[at] = found[at - 1];
            rows[at] = rows[at - 1];
        }
        found[at] = one;
        rows[at] = row;
    }
}

struct searching {
    struct dl_context *context;
    const struct dl_options *options;
    struct dl_search_request request;
    struct dl_search *search;
};

/* Every plan found, predicted whole: terms of the best one alone. */
static enum dl_code predict_found(const struct searching *s, struct dl_search_candidate *found,
                                  int count, bool front, struct dl_searched **out,
                                  struct dl_err *err) {
    const struct dl_search_request *r = &s->request;
    struct dl_arena *arena = s->context->arena;
    struct dl_searched *rows = dl_arena_alloc(arena, (size_t)count + 1, sizeof *rows);
    for (int i = 0; i < count; i++) {
        struct dl_plan *plan = dl_arena_alloc(arena, 1, sizeof *plan);
        struct dl_prediction *prediction = dl_arena_alloc(arena, 1, sizeof *prediction);
        const struct dl_framework *framework = dl_search_framework(s->search, &found[i]);
        *plan = dl_search_plan(s->search, &found[i]);
        DL_TRY(dl_plan_complete(r->system, r->workload, framework, plan, err));
        DL_TRY(dl_predict_complete(&(struct dl_predict_request){.system = r->system,
                                                                .workload = r->workload,
                                                                .framework = framework,
                                                                .plan = plan,
                                                                .arena = arena},
                                   prediction, err));
        found[i].iteration_s = prediction->iteration_s;
        found[i].memory_bytes = prediction->memory.total_bytes;
        const char *command =
            dl_inputs_plan_command(s->context, s->options, "predict", framework, plan);
        rows[i] = (struct dl_searched){.plan = plan,
                                       .prediction = prediction,
                                       .framework = framework,
                                       .command = command,
                                       .front = front};
    }
    sort_rows(r, found, rows, front ? 0 : count);
    for (int i = 0; i < count; i++)
        rows[i].tied = dl_prediction_plans_tie(rows[0].prediction, rows[i].prediction);
    *out = rows;
    return DL_OK;
}

/* The best plan again, with its terms. */
static enum dl_code explain_best(struct dl_context *context, const struct dl_search_request *r,
                                 struct dl_searched *best, struct dl_err *err) {
    const struct dl_predict_options options = {.terms = true};
    struct dl_prediction *prediction = dl_arena_alloc(context->arena, 1, sizeof *prediction);
    best->prediction = prediction;
    return dl_predict_complete(&(struct dl_predict_request){.system = r->system,
                                                            .workload = r->workload,
                                                            .framework = best->framework,
                                                            .plan = best->plan,
                                                            .options = &options,
                                                            .arena = context->arena},
                               prediction, err);
}

static int by_time(struct dl_search_candidate *found,
                   int count) { /* insertion sort: at most a few hundred */
    for (int i = 1; i < count; i++) {
        const struct dl_search_candidate one = found[i];
        int at = i;
        for (; at > 0 && found[at - 1].iteration_s > one.iteration_s; at--)
            found[at] = found[at - 1];
        found[at] = one;
    }
    return count;
}

static enum dl_code search_all(const struct searching *s, int threads,
                               struct dl_search_worker *found, double *elapsed_s,
                               struct dl_err *err) {
    struct dl_context *context = s->context;
    const struct dl_options *options = s->options;
    bool merging = false;
    for (int i = 0; i < options->given_count; i++) {
        if (strcmp(options->given[i].option->name, "merge") != 0) continue;
        merging = true;
        if (s->request.vary != 0)
            return dl_fail(err, DL_ERR_USAGE, "--vary: not together with --merge");
        DL_TRY(dl_search_read(options->given[i].value, &s->request, context->arena, found, err));
    }
    *elapsed_s = 0;
    if (merging) return DL_OK;
    const struct dl_search_run run = {.search = s->search,
                                      .threads = threads,
                                      .context = context->watch_user,
                                      .progress = context->watch};
    return dl_search_run(&run, found, elapsed_s, err);
}

/* Warnings of the best plan, and of what-ifs that do not change it. */
static enum dl_code note_best(struct dl_context *context, const struct dl_options *options,
                              const struct dl_inputs *inputs, const struct dl_framework *framework,
                              const struct dl_searched *best, struct dl_err *err) {
    struct dl_inputs one = *inputs;
    for (int i = 0; i < best->prediction->warning_count; i++)
        context->note(context, "warning: %s", best->prediction->warnings[i]);
    one.plan = *best->plan;
    one.nodes[0] = best->plan->nodes;
    one.node_count = 1;
    one.frameworks[0] = framework;
    one.framework_count = 1;
    DL_TRY(dl_what_if_note(context, options, &one, framework, err));
    if (inputs->strict && best->prediction->extrapolated)
        return dl_fail(err, DL_ERR_RANGE, "the result is extrapolated (--strict)");
    return DL_OK;
}

static void find_neighbors(const struct searching *s, int threads, struct dl_search_report *out) {
    out->neighbor_count = dl_search_neighbors(&s->request, out->rows[0].plan, threads,
                                              s->context->arena, out->neighbors);
}

extern const struct dl_command dl_cmd_search;
/* Nodes of several kinds: data parallelism alone. */
static enum dl_code run_heterogeneous(struct dl_context *context, const struct dl_options *options,
                                      const struct asked *asked, const struct dl_inputs *inputs,
                                      enum dl_format format, struct dl_err *err) {
    static const enum dl_objective from[] = {DL_BY_TIME, DL_BY_ENERGY, DL_BY_COST};
    int objective = asked->objective == DL_BY_THROUGHPUT ? 0 : -1;
    for (int i = 0; i < 3; i++)
        if (asked->objective == from[i]) objective = i;
    if (objective < 0)
        return dl_fail(err, DL_ERR_USAGE, "--objective: with --heterogeneous time, energy or cost");
    const struct dl_framework *framework =
        inputs->framework_all ? dl_framework_default(inputs->frameworks, inputs->framework_count,
                                                     DL_DEFAULT_DATA_PARALLEL)
                              : inputs->frameworks[0];
    if (framework == NULL) return dl_fail(err, DL_ERR_USAGE, "--framework: name one");
    if (asked->jobs != NULL && asked->place_given)
        return dl_fail(err, DL_ERR_USAGE, "--jobs places whole jobs, --place one: give one");
    const struct dl_heterogeneous_request request = {.options = options,
                                                     .inputs = inputs,
                                                     .framework = framework,
                                                     .objective =
                                                         (enum dl_placement_objective)objective,
                                                     .place = (enum dl_place)asked->place,
                                                     .jobs = asked->jobs,
                                                     .top = asked->top,
                                                     .format = format};
    return dl_heterogeneous_search(context, &request, err);
}

/* The best plans for the inputs. */
static enum dl_code find(struct searching *s, const struct asked *asked, struct dl_inputs *inputs,
                         struct dl_search_report *report, struct dl_err *err) {
    struct dl_context *context = s->context;
    struct dl_search_request *request = &s->request;
    struct dl_search_worker *found = dl_arena_alloc(context->arena, 1, sizeof *found);
    struct dl_searched *rows, *front;
    *report = (struct dl_search_report){.inputs = inputs, .found = found};
    if (asked->jobs != NULL) return dl_fail(err, DL_ERR_USAGE, "--jobs needs --heterogeneous");
    DL_TRY(dl_search_choose_framework(context, inputs, &report->framework, err));
    DL_TRY(read_request(asked, inputs, report->framework, request, err));
    DL_TRY(dl_search_prepare(request, context->arena, &s->search, err));
    DL_TRY(search_all(s, (int)asked->threads, found, &report->elapsed_s, err));
    if (found->best_count == 0)
        return dl_search_nothing(context->arena, s->search, request, found, err);
    struct dl_search_candidate *ranking =
        dl_arena_alloc(context->arena, DL_SEARCH_KEPT + DL_SEARCH_SIMPLE, sizeof *ranking);
    report->row_count = dl_search_ranking(request, found, ranking);
    DL_TRY(predict_found(s, ranking, report->row_count, false, &rows, err));
    if (models_power(asked))
        report->row_count = dl_search_rank_by_energy(request, &inputs->rates, rows,
                                                     report->row_count, (int)asked->top);
    DL_TRY(explain_best(context, request, &rows[0], err));
    DL_TRY(predict_found(s, found->front, by_time(found->front, found->front_count), true, &front,
                         err));
    dl_search_mark_cost_front(request, &inputs->rates, front, found->front_count);
    report->rows = rows;
    report->front = front;
    report->front_count = found->front_count;
    report->objective = dl_objective_names[request->objective];
    report->threads = (int)asked->threads;
    return DL_OK;
}

static enum dl_code read_asked(const struct dl_options *options, struct asked *out,
                               struct dl_err *err) {
    *out = (struct asked){.top = 10, .threads = (int64_t)sysconf(_SC_NPROCESSORS_ONLN)};
    return dl_options_bind(options, own_options, out, err);
}

static enum dl_code load(struct dl_context *context, const struct dl_options *options,
                         struct dl_inputs *inputs, struct dl_err *err) {
    DL_TRY(dl_inputs_load(context, options, inputs, err));
    DL_TRY(dl_rates_read(options, context->arena, &inputs->rates, err));
    return dl_search_check(inputs, err);
}

/* On one system of a list. */
static enum dl_code find_best(struct dl_context *context, const struct dl_options *options,
                              struct dl_best *out, struct dl_err *err) {
    struct dl_inputs *inputs = dl_arena_alloc(context->arena, 1, sizeof *inputs);
    struct searching s = {.context = context, .options = options};
    struct dl_search_report report;
    struct asked asked;
    DL_TRY(read_asked(options, &asked, err));
    DL_TRY(load(context, options, inputs, err));
    if (inputs->heterogeneous != NULL)
        return dl_fail(err, DL_ERR_USAGE, "--heterogeneous: not with a list of systems");
    DL_TRY(find(&s, &asked, inputs, &report, err));
    const struct dl_searched *best = &report.rows[0];
    *out = (struct dl_best){.system = inputs->system->name,
                            .framework = best->framework->name,
                            .precision = dl_precision_names[best->plan->precision],
                            .plan = dl_search_plan_text(best->plan, context->arena),
                            .command = best->command,
                            .prediction = best->prediction,
                            .devices = best->plan->nodes * best->plan->devices_per_node};
    return DL_OK;
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    enum dl_format format = DL_FORMAT_TEXT;
    struct dl_inputs inputs;
    struct searching s = {.context = context, .options = options};
    struct dl_search_report report;
    struct asked asked;
    DL_TRY(dl_output_format(options, &format, err));
    DL_TRY(read_asked(options, &asked, err));
    asked.text = format == DL_FORMAT_TEXT || format == DL_FORMAT_LATEX;
    if (asked.sweep != NULL)
        return dl_search_sweep(context, options, &dl_cmd_search, asked.sweep, err);
    if (dl_best_is_list(options, "system") || dl_best_is_list(options, "framework"))
        return dl_best_of_each(context, options, find_best, true, err);
    DL_TRY(load(context, options, &inputs, err));
    if (inputs.heterogeneous != NULL)
        return run_heterogeneous(context, options, &asked, &inputs, format, err);
    DL_TRY(find(&s, &asked, &inputs, &report, err));
    const struct dl_searched *best = &report.rows[0];
    struct dl_limits *limits = dl_arena_alloc(context->arena, 1, sizeof *limits);
    if (format != DL_FORMAT_CSV) {
        DL_TRY(dl_limits_of(&(struct dl_predict_request){.system = s.request.system,
                                                         .workload = s.request.workload,
                                                         .framework = best->framework,
                                                         .plan = best->plan,
                                                         .arena = context->arena},
                            limits, err));
        report.limits = limits;
    }
    report.every_row = asked.every_row || !asked.text;
    if (asked.text) find_neighbors(&s, (int)asked.threads, &report);
    dl_inputs_note_files(context, &inputs);
    DL_TRY(dl_search_print(context, options, &report, format, err));
    return note_best(context, options, &inputs, best->framework, best, err);
}

const struct dl_command dl_cmd_search = {
    .name = "search",
    .summary = "find the best plan: strategy, ranks, micro-batch, schedule, sharding",
    .usage = "[options]",
    .purpose = "Evaluates every plan on the given devices. For a transformer: data-, tensor-, "
               "pipeline-, context- and expert-parallel ranks, micro-batch, schedule, "
               "recomputation, sharding of states, and mapping of ranks to nodes. For a "
               "convolutional network: data, spatial, filter, channel and pipeline parallelism, "
               "each over all devices or combined with data parallelism, micro-batch, schedule, "
               "and sharding. Infeasible and dominated plans are counted by reason. "
               "Prints the best plans, every term of the best one, its limits, its "
               "sensitivity to each resource, and the most effective change. Options that fix a "
               "value (--tp, --micro-batch, --recompute, ...) restrict the search. With a list of "
               "systems or frameworks (-s A,B -f C,D): the best plan of each.",
    .examples = examples,
    .options = tables,
    .common =
        DL_COMMON_INPUTS "objective max-devices memory deadline top epochs tokens price json help",
    .instead = "For a plan that you know use predict, for settings other than the plan advise.",
    .exit_notes = "1 when no plan fits in memory or meets the deadline",
    .latex = true,
    .few_notes = true,
    .run = run,
};
