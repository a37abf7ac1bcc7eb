/* search_rows.c - see search_rows.h. */
#include "predict/output/search_rows.h"

#include <math.h>
#include <string.h>

#include "model/core/columns.h"
#include "model/core/csv.h"
#include "model/core/figure.h"
#include "model/core/text.h"
#include "model/engine/strategies/strategy.h"
#include "model/framework/settings.h"
#include "predict/output/rows.h"

/* What the columns show of one plan that was found. */
struct facts {
    struct dl_prediction p;
    struct dl_plan plan;
    struct dl_throughput throughput;
    const char *strategy, *schedule, *recompute, *mapping, *bottleneck, *command;
    int64_t devices, expert_ranks, virtual_stages, sequence_parallel, zero_stage, front;
    double micro_batch_samples, run_s, cost, energy_j, gpu_hours, iteration_cost,
        iteration_energy_j;
    bool tied, cost_front;
    const char *plan_text;
    const char *iteration_text, *run_text, *memory_text; /* in text alone */
    double rate;
    int64_t evaluated_count, feasible_count, rejected_count[DL_REJECTIONS];
};

#define SHOWN(member, key, heading, unit, scale, digits, show)                                     \
    DL_SHOWN(struct facts, member, key, heading, unit, scale, digits, show, NULL)
#define TEXT(member, heading, unit, show) SHOWN(member, NULL, heading, unit, 0, 4, show)
#define HIDDEN(member, key) DL_HIDDEN(struct facts, member, key, NULL)
static const struct dl_list_column columns[] = {
    SHOWN(strategy, "strategy", "strategy", "", 0, 0, DL_SEARCH_STRATEGY),
    SHOWN(plan_text, "plan", "plan", "", 0, 0, 0),
    SHOWN(plan.nodes, "nodes", "nodes", "", 0, 0, DL_SEARCH_NODES),
    HIDDEN(devices, "devices"),
    HIDDEN(plan.dp, "dp"),
    HIDDEN(plan.tp, "tp"),
    HIDDEN(plan.pp, "pp"),
    HIDDEN(plan.sp, "sp"),
    HIDDEN(expert_ranks, "ep"),
    HIDDEN(micro_batch_samples, "micro_batch_samples"),
    HIDDEN(schedule, "schedule"),
    HIDDEN(virtual_stages, "virtual_stages"),
    HIDDEN(recompute, "recompute"),
    HIDDEN(sequence_parallel, "sequence_parallel"),
    HIDDEN(zero_stage, "zero"),
    HIDDEN(mapping, "mapping"),
    TEXT(iteration_text, "iteration", "ms (80 %)", 0),
    HIDDEN(p.iteration_s, "iteration_s"),
    HIDDEN(p.iteration_low_s, "iteration_low_s"),
    HIDDEN(p.iteration_high_s, "iteration_high_s"),
    SHOWN(tied, "tied_with_best", "tied", "", 0, 0, DL_SEARCH_LONG),
    TEXT(rate, "samples/s", "", 0),
    HIDDEN(p.throughput_samples_per_s, "throughput_samples_per_s"),
    HIDDEN(throughput.device_tokens_per_s, "tokens_per_s_per_device"),
    HIDDEN(throughput.device_model_flop_per_s, "model_flop_per_s_per_device"),
    SHOWN(throughput.mfu_frac, "mfu_frac", "MFU", "%", 0.01, 3, DL_SEARCH_TOKENS),
    HIDDEN(throughput.hfu_frac, "hfu_frac"),
    TEXT(run_text, "run", "", DL_SEARCH_RUN),
    HIDDEN(run_s, "run_s"),
    SHOWN(cost, "cost", "cost", "", 0, 4, DL_SEARCH_RUN_COST),
    SHOWN(energy_j, "energy_j", "energy", "kWh", 3.6e6, 4, DL_SEARCH_LONG_RUN),
    SHOWN(gpu_hours, "gpu_hours", "device", "h", 0, 4, DL_SEARCH_LONG_RUN),
    SHOWN(iteration_cost, "iteration_cost", "cost", "", 0, 4, DL_SEARCH_COST),
    SHOWN(iteration_energy_j, "iteration_energy_j", "energy", "J/sample", 0, 4, DL_SEARCH_ENERGY),
    SHOWN(cost_front, "cost_front", "cheap", "", 0, 0, DL_SEARCH_FRONT_ROWS),
    SHOWN(p.compute_s, "compute_s", "compute", "s", 0, 3, DL_SEARCH_LONG),
    SHOWN(p.exposed_comm_s, "exposed_comm_s", "exposed", "s", 0, 3, DL_SEARCH_LONG),
    SHOWN(p.bubble_s, "bubble_s", "bubble", "s", 0, 3, DL_SEARCH_LONG),
    TEXT(memory_text, "memory", "GiB", 0),
    HIDDEN(p.memory.total_bytes, "memory_bytes"),
    SHOWN(bottleneck, "bottleneck", "bottleneck", "", 0, 0, 0),
    HIDDEN(front, "front"),
    HIDDEN(command, "command"),
    HIDDEN(evaluated_count, "evaluated_count"),
    HIDDEN(feasible_count, "feasible_count"),
    HIDDEN(rejected_count[DL_NOT_HEADS], "rejected_heads"),
    HIDDEN(rejected_count[DL_NOT_LAYERS], "rejected_layers"),
    HIDDEN(rejected_count[DL_NOT_TOKENS], "rejected_tokens"),
    HIDDEN(rejected_count[DL_NOT_BATCH], "rejected_batch"),
    HIDDEN(rejected_count[DL_NOT_MEMORY], "rejected_memory"),
    HIDDEN(rejected_count[DL_NOT_DEADLINE], "rejected_deadline"),
    HIDDEN(rejected_count[DL_NOT_FASTER], "rejected_bound"),
    HIDDEN(rejected_count[DL_NOT_PARTS], "rejected_parts"),
    HIDDEN(rejected_count[DL_NOT_HOST], "rejected_host_memory"),
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static const char *currency_of(const struct dl_search_report *report) {
    const char *currency = dl_currency_of(report->inputs->system, &report->inputs->rates);
    return currency == NULL ? "" : currency;
}

const char *dl_search_plan_text(const struct dl_plan *plan, struct dl_arena *arena) {
    const char *words = dl_rows_plan_words(plan, arena);
    struct dl_text text = {.arena = arena};
    dl_text_printf(&text, "dp%lld%s%s%s", (long long)plan->dp, words != NULL ? " " : "",
                   words != NULL ? words : "", plan->sequence_parallel ? " sp" : "");
    for (int n = 1; dl_settings_varied[n] != NULL; n++) {
        const char *value = dl_settings_text(plan, n, arena);
        if (value == NULL) continue;
        dl_text_printf(&text, " %s%s%s", dl_settings_varied[n], value[0] != 0 ? "=" : "", value);
    }
    return dl_text_string(&text);
}

/* Of a stack of layers the ranks, of other networks also the strategy. */
static bool same_split(const struct dl_plan *a, const struct dl_plan *b, bool stack) {
    return (stack || a->strategy == b->strategy) && a->nodes == b->nodes && a->tp == b->tp &&
           a->pp == b->pp && a->sp == b->sp && a->ep == b->ep;
}

/* Row i is the first of its split. */
static bool is_first(const struct dl_search_report *report, int i) {
    const bool stack = dl_known(report->inputs->workload->transformer_layers);
    for (int k = 0; k < i; k++) {
        if (same_split(report->rows[k].plan, report->rows[i].plan, stack)) return false;
    }
    return true;
}

bool dl_search_is_short(const struct dl_search_report *report) {
    return report->row_count > 0 && report->rows[0].prediction->iteration_s < 1;
}

/* Times of short iterations in ms; energy and cost of an iteration per sample, which all plans have
 * equally many of. */
static void adapt(struct dl_column *column, size_t member, struct dl_arena *arena,
                  const struct dl_search_report *report) {
    const double samples = report->rows[0].plan->global_batch_samples;
    const bool in_ms = dl_search_is_short(report);
    if (in_ms && column->unit != NULL && strcmp(column->unit, "s") == 0) {
        column->unit = "ms";
        column->scale = 1e-3;
    }
    if (member == offsetof(struct facts, iteration_text) && !in_ms) column->unit = "s (80 %)";
    if (member == offsetof(struct facts, rate) &&
        dl_known(dl_tokens_per_sample(report->inputs->workload)))
        column->heading = "tokens/s";
    if (member == offsetof(struct facts, iteration_cost)) {
        column->unit = dl_arena_printf(arena, "%s/Msample", currency_of(report));
        column->scale = samples / 1e6;
    }
    if (member == offsetof(struct facts, iteration_energy_j)) column->scale = samples;
}

/* The columns that the rows need. */
static unsigned show_of(const struct dl_search_report *report) {
    const struct dl_inputs *in = report->inputs;
    const bool run = in->length.tokens > 0 || in->length.epoch_count > 0,
               price = dl_known(dl_price_of(in->system, &in->rates)),
               by_cost = strcmp(report->objective, "cost") == 0;
    unsigned show = 0;
    for (int i = 1; i < report->row_count; i++) {
        if (report->rows[i].plan->nodes != report->rows[0].plan->nodes) show |= DL_SEARCH_NODES;
    }
    if (!dl_known(in->workload->transformer_layers)) show |= DL_SEARCH_STRATEGY;
    if (run) show |= price ? DL_SEARCH_RUN | DL_SEARCH_RUN_COST : DL_SEARCH_RUN;
    if (by_cost || (report->every_row && price)) show |= DL_SEARCH_COST;
    if (strcmp(report->objective, "energy") == 0) show |= DL_SEARCH_ENERGY;
    if (!report->every_row) return show;
    if (dl_known(dl_tokens_per_sample(in->workload))) show |= DL_SEARCH_TOKENS;
    return show | (run ? DL_SEARCH_LONG | DL_SEARCH_LONG_RUN : DL_SEARCH_LONG);
}

void dl_search_rows_init(struct dl_table *table, struct dl_arena *arena, unsigned show,
                         const struct dl_search_report *report) {
    if (report != NULL) show |= show_of(report);
    struct dl_column *shown = dl_list_table(table, arena, columns, COLUMNS, show);
    for (int i = 0; report != NULL && i < table->column_count; i++)
        adapt(&shown[i], columns[i].at, arena, report);
}

void dl_search_rows_table(struct dl_table *table, struct dl_arena *arena,
                          const struct dl_search_report *report) {
    enum { MOST = 10 };
    dl_search_rows_init(table, arena, 0, report);
    for (int i = 0; i < report->row_count && (report->every_row || table->row_count < MOST); i++) {
        if (report->every_row || is_first(report, i))
            dl_search_rows_add(table, report, &report->rows[i]);
    }
}

void dl_search_rows_add(struct dl_table *table, const struct dl_search_report *report,
                        const struct dl_searched *row) {
    const struct dl_prediction_row r = dl_searched_row(report, row);
    const struct dl_plan *plan = row->plan;
    const double tokens = dl_tokens_per_sample(r.workload);
    const struct dl_run_total total = dl_rows_total(&r);
    const struct dl_spending run = dl_rows_spending(&r, total.time_s),
                             once = dl_rows_spending(&r, row->prediction->iteration_s);
    struct facts facts = {
        .p = *row->prediction,
        .plan = *plan,
        .throughput = dl_rows_throughput(&r),
        .strategy = plan->strategy->name,
        .schedule = plan->pp > 1 ? dl_schedule_names[plan->schedule] : "-",
        .recompute = dl_plan_recompute_text(plan, table->arena),
        .mapping = dl_mapping_names[plan->mapping],
        .bottleneck = dl_bottleneck_names[row->prediction->bottleneck],
        .command = row->command,
        .devices = plan->nodes * plan->devices_per_node,
        .expert_ranks = dl_plan_expert_ranks(plan),
        .virtual_stages = plan->virtual_stages > 0 ? plan->virtual_stages : 1,
        .sequence_parallel = plan->sequence_parallel,
        .zero_stage = dl_rows_zero(plan),
        .front = row->front,
        .micro_batch_samples = plan->micro_batch_samples > 0 ? plan->micro_batch_samples : NAN,
        .run_s = total.time_s,
        .cost = run.cost,
        .energy_j = run.energy_j,
        .gpu_hours = total.device_time_s / 3600,
        .iteration_cost = once.cost,
        .iteration_energy_j = once.energy_j,
        .plan_text = dl_search_plan_text(plan, table->arena),
        .iteration_text =
            dl_rows_iteration_text(row->prediction, !dl_search_is_short(report), table->arena),
        .run_text = dl_known(total.time_s) ? dl_duration_text(table->arena, total.time_s) : NULL,
        .memory_text = dl_rows_memory_text(&row->prediction->memory, table->arena),
        .rate = row->prediction->throughput_samples_per_s * (dl_known(tokens) ? tokens : 1),
        .tied = row->tied,
        .cost_front = row->cost_front,
        .evaluated_count = report->found->evaluated_count,
        .feasible_count = report->found->feasible_count,
    };
    memcpy(facts.rejected_count, report->found->rejected_count, sizeof facts.rejected_count);
    dl_list_add(table, columns, &facts);
}

static int choice_of(const char *word, const char *const *names) {
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], word) == 0) return i;
    }
    return 0;
}

/* Modules are those of the request. */
static enum dl_recompute recompute_of(const char *word) {
    const int choice = choice_of(word, dl_recompute_names);
    return choice > 0 || strcmp(word, dl_recompute_names[0]) == 0 ? (enum dl_recompute)choice
                                                                  : DL_RECOMPUTE_SELECTIVE;
}

/* A cell as a count; 0 where it is not one. */
static int64_t whole(double value) { return value >= 0 && value <= 1e15 ? (int64_t)value : 0; }

/* The members of `out` that have columns, from one row; an empty number is 0. */
static enum dl_code read_facts(const struct dl_csv *csv, int row, const int *at, struct facts *out,
                               struct dl_err *err) {
    *out = (struct facts){.strategy = ""};
    for (int c = 0; c < COLUMNS; c++) {
        if (columns[c].column.key == NULL) continue;
        char *member = (char *)out + columns[c].at;
        const char *text = csv->rows[row][at[c]];
        double value = 0;
        const bool number = columns[c].column.type == DL_COLUMN_NUMBER ||
                            columns[c].column.type == DL_COLUMN_INTEGER;
        if (number && text[0] != 0) DL_TRY(dl_csv_number(csv, row, at[c], &value, err));
        switch (columns[c].column.type) {
        case DL_COLUMN_STRING: *(const char **)(void *)member = text; break;
        case DL_COLUMN_NUMBER: *(double *)(void *)member = value; break;
        case DL_COLUMN_INTEGER: *(int64_t *)(void *)member = whole(value); break;
        case DL_COLUMN_BOOL: break; /* follows from the plan */
        }
    }
    return DL_OK;
}

/* The plan of one row. */
static struct dl_search_candidate found_of(const struct facts *r, int64_t order) {
    const int64_t nodes = r->plan.nodes > 0 ? r->plan.nodes : 1;
    struct dl_search_candidate f = {.iteration_s = r->p.iteration_s,
                                    .memory_bytes = r->p.memory.total_bytes,
                                    .micro_samples = r->micro_batch_samples,
                                    .shard = r->zero_stage < 3 ? (int)r->zero_stage : 3,
                                    .fits = true,
                                    .order = order};
    f.split = (struct dl_transformer_split){
        .tp = r->plan.tp,
        .sp = r->plan.sp,
        .ep = r->expert_ranks,
        .pp = r->plan.pp,
        .dp = r->plan.dp,
        .nodes = nodes,
        .devices_per_node = r->devices / nodes,
        .sequence_parallel = r->sequence_parallel > 0,
        .mapping = (enum dl_mapping)choice_of(r->mapping, dl_mapping_names)};
    f.choice = (struct dl_transformer_choice){
        .schedule = (enum dl_schedule)choice_of(r->schedule, dl_schedule_names),
        .recompute = recompute_of(r->recompute),
        .virtual_stages = r->virtual_stages};
    const struct dl_strategy *strategy = dl_strategy_find(r->strategy);
    if (dl_search_serves_network(strategy)) f.strategy = strategy;
    return f;
}

enum dl_code dl_search_read(const char *path, const struct dl_search_request *request,
                            struct dl_arena *arena, struct dl_search_worker *into,
                            struct dl_err *err) {
    struct dl_csv csv;
    int at[COLUMNS];
    struct facts facts;
    DL_TRY(dl_csv_read(path, arena, &csv, err));
    for (int c = 0; c < COLUMNS; c++) {
        const char *key = columns[c].column.key;
        if (key == NULL) continue;
        at[c] = dl_csv_column(&csv, key);
        if (at[c] < 0)
            return dl_fail_at(err, path, 1, 1, key,
                              "a part of a search (search --shard I/N --csv) has this column");
    }
    for (int row = 0; row < csv.row_count; row++) {
        DL_TRY(read_facts(&csv, row, at, &facts, err));
        struct dl_search_candidate f = found_of(&facts, into->evaluated_count + row);
        f.score = dl_search_score(request, &f);
        if (facts.front > 0)
            dl_search_keep_front(into, &f);
        else
            dl_search_keep(request, into, &f);
        if (row > 0) continue;
        into->evaluated_count += facts.evaluated_count;
        into->feasible_count += facts.feasible_count;
        for (int r = 0; r < DL_REJECTIONS; r++) into->rejected_count[r] += facts.rejected_count[r];
    }
    return DL_OK;
}
