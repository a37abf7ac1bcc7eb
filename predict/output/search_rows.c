/* search_rows.c - see search_rows.h. */
#include "predict/output/search_rows.h"

#include <math.h>
#include <string.h>

#include "model/core/csv.h"
#include "model/engine/strategies/strategy.h"
#include "predict/output/rows.h"

enum { GIB = 1 << 30 };

/* In the order of `columns`. */
enum {
    STRATEGY,
    NODES,
    DEVICES,
    DP,
    TP,
    PP,
    SP,
    EP,
    MICRO,
    SCHEDULE,
    VIRTUAL,
    RECOMPUTE,
    SEQUENCE,
    ZERO,
    MAPPING,
    ITERATION,
    LOW,
    HIGH,
    TIED,
    THROUGHPUT,
    TOKENS,
    MODEL_FLOP,
    MFU,
    HFU,
    RUN,
    COST,
    ENERGY,
    GPU_HOURS,
    ITERATION_COST,
    ITERATION_ENERGY,
    COST_FRONT,
    COMPUTE,
    EXPOSED,
    BUBBLE,
    MEMORY,
    BOTTLENECK,
    FRONT,
    COMMAND,
    EVALUATED,
    FEASIBLE,
    REJECTED,
    COLUMNS = REJECTED + DL_REJECTIONS
};

static const struct dl_column columns[] = {
    {"strategy", "strategy", "", DL_COLUMN_STRING, 0, 0},
    {"nodes", "nodes", "", DL_COLUMN_INTEGER, 0, 0},
    {"devices", "dev", "", DL_COLUMN_INTEGER, 0, 0},
    {"dp", "dp", "", DL_COLUMN_INTEGER, 0, 0},
    {"tp", "tp", "", DL_COLUMN_INTEGER, 0, 0},
    {"pp", "pp", "", DL_COLUMN_INTEGER, 0, 0},
    {"sp", "cp/sp", "", DL_COLUMN_INTEGER, 0, 0},
    {"ep", "ep", "", DL_COLUMN_INTEGER, 0, 0},
    {"micro_batch_samples", "micro", "", DL_COLUMN_NUMBER, 0, 0},
    {"schedule", "schedule", "", DL_COLUMN_STRING, 0, 0},
    {"virtual_stages", "v", "", DL_COLUMN_INTEGER, 0, 0},
    {"recompute", "recompute", "", DL_COLUMN_STRING, 0, 0},
    {"sequence_parallel", "seq", "", DL_COLUMN_INTEGER, 0, 0},
    {"zero", "zero", "", DL_COLUMN_INTEGER, 0, 0},
    {"mapping", NULL, NULL, DL_COLUMN_STRING, 0, 0},
    {"iteration_s", "iter", "s", DL_COLUMN_NUMBER, 0, 4},
    {"iteration_low_s", "low", "s", DL_COLUMN_NUMBER, 0, 3},
    {"iteration_high_s", "high", "s", DL_COLUMN_NUMBER, 0, 3},
    {"tied_with_best", "tied", "", DL_COLUMN_BOOL, 0, 0},
    {"throughput_samples_per_s", "samples", "1/s", DL_COLUMN_NUMBER, 0, 4},
    {"tokens_per_s_per_device", "tokens", "1/s/dev", DL_COLUMN_NUMBER, 0, 4},
    {"model_flop_per_s_per_device", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"mfu_frac", "MFU", "%", DL_COLUMN_NUMBER, 0.01, 3},
    {"hfu_frac", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"run_s", "run", "h", DL_COLUMN_NUMBER, 3600, 0},
    {"cost", "cost", "", DL_COLUMN_NUMBER, 0, 4},
    {"energy_j", "energy", "kWh", DL_COLUMN_NUMBER, 3.6e6, 4},
    {"gpu_hours", "device", "h", DL_COLUMN_NUMBER, 0, 4},
    {"iteration_cost", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"iteration_energy_j", NULL, NULL, DL_COLUMN_NUMBER, 0, 0},
    {"cost_front", "cheap", "", DL_COLUMN_BOOL, 0, 0},
    {"compute_s", "compute", "s", DL_COLUMN_NUMBER, 0, 3},
    {"exposed_comm_s", "exposed", "s", DL_COLUMN_NUMBER, 0, 3},
    {"bubble_s", "bubble", "s", DL_COLUMN_NUMBER, 0, 3},
    {"memory_bytes", "memory", "GiB", DL_COLUMN_NUMBER, GIB, 3},
    {"bottleneck", "bottleneck", "", DL_COLUMN_STRING, 0, 0},
    {"front", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"command", NULL, NULL, DL_COLUMN_STRING, 0, 0},
    {"evaluated_count", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"feasible_count", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"rejected_heads", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"rejected_layers", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"rejected_tokens", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"rejected_batch", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"rejected_memory", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"rejected_deadline", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"rejected_bound", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"rejected_parts", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
};
_Static_assert(sizeof columns / sizeof columns[0] == COLUMNS, "one name per column");

/* Shows a quantity of an iteration for so many samples: every plan has the same global batch. */
static void per_sample(struct dl_column *column, const char *heading, const char *unit,
                       const struct dl_search_report *report, double samples) {
    column->heading = heading;
    column->unit = unit;
    column->scale = report->rows[0].plan->global_batch_samples / samples;
    column->digits = 4;
}

static const char *currency_of(const struct dl_search_report *report) {
    const char *currency = dl_currency_of(report->inputs->system, &report->inputs->rates);
    return currency == NULL ? "" : currency;
}

void dl_search_rows_init(struct dl_table *table, struct dl_arena *arena, bool in_ms, bool csv,
                         unsigned show, const struct dl_search_report *report) {
    struct dl_column *shown = dl_arena_alloc(arena, COLUMNS, sizeof *shown);
    memcpy(shown, columns, sizeof columns);
    if (!csv) shown[MICRO].type = DL_COLUMN_STRING;
    if ((show & DL_SEARCH_TOKENS) == 0) shown[TOKENS].heading = shown[MFU].heading = NULL;
    if ((show & DL_SEARCH_FRONT_ROWS) == 0) shown[COST_FRONT].heading = NULL;
    if ((show & DL_SEARCH_ENERGY) != 0)
        per_sample(&shown[ITERATION_ENERGY], "energy", "J/sample", report, 1);
    if ((show & DL_SEARCH_COST) != 0)
        per_sample(&shown[ITERATION_COST], "cost",
                   dl_arena_printf(arena, "%s/Msample", currency_of(report)), report, 1e6);
    for (int i = RUN; i <= GPU_HOURS && (show & DL_SEARCH_RUN) == 0; i++) shown[i].heading = NULL;
    for (int i = 0; i < COLUMNS && in_ms; i++) {
        if (shown[i].unit == NULL || strcmp(shown[i].unit, "s") != 0) continue;
        shown[i].unit = "ms";
        shown[i].scale = 1e-3;
    }
    dl_table_init(table, arena, shown, COLUMNS);
}

int64_t dl_search_rows_zero(const struct dl_plan *plan) {
    return plan->strategy->shard > 0 ? plan->strategy->shard : plan->shard;
}

static void add_plan(union dl_cell *c, const struct dl_plan *plan) {
    c[STRATEGY].string = plan->strategy->name;
    c[NODES].integer = plan->nodes;
    c[DEVICES].integer = plan->nodes * plan->devices_per_node;
    c[DP].integer = plan->dp;
    c[TP].integer = plan->tp;
    c[PP].integer = plan->pp;
    c[SP].integer = plan->sp;
    c[EP].integer = dl_plan_expert_ranks(plan);
    c[MICRO].number = plan->micro_batch_samples;
    c[SCHEDULE].string = plan->pp > 1 ? dl_schedule_names[plan->schedule] : "-";
    c[VIRTUAL].integer = plan->virtual_stages > 0 ? plan->virtual_stages : 1;
    c[RECOMPUTE].string = dl_recompute_names[plan->recompute];
    c[SEQUENCE].integer = plan->sequence_parallel;
    c[ZERO].integer = dl_search_rows_zero(plan);
    c[MAPPING].string = dl_mapping_names[plan->mapping];
}

void dl_search_rows_add(struct dl_table *table, const struct dl_search_report *report,
                        const struct dl_searched *row) {
    union dl_cell *c = dl_table_row(table);
    const struct dl_prediction *p = row->prediction;
    const struct dl_search_worker *found = report->found;
    const struct dl_prediction_row r = dl_searched_row(report, row);
    const struct dl_throughput t = dl_rows_throughput(&r);
    add_plan(c, row->plan);
    c[ITERATION].number = p->iteration_s;
    c[LOW].number = p->iteration_low_s;
    c[HIGH].number = p->iteration_high_s;
    c[TIED].boolean = row->tied;
    c[THROUGHPUT].number = p->throughput_samples_per_s;
    c[TOKENS].number = t.device_tokens_per_s;
    c[MODEL_FLOP].number = t.device_model_flop_per_s;
    c[MFU].number = t.mfu_frac;
    c[HFU].number = t.hfu_frac;
    const struct dl_run_total total = dl_rows_total(&r);
    const struct dl_spending run = dl_rows_spending(&r, total.time_s);
    const struct dl_spending once = dl_rows_spending(&r, p->iteration_s);
    c[RUN].number = total.time_s;
    c[ITERATION_COST].number = once.cost;
    c[ITERATION_ENERGY].number = once.energy_j;
    c[COST_FRONT].boolean = row->cost_front;
    c[COST].number = run.cost;
    c[ENERGY].number = run.energy_j;
    c[GPU_HOURS].number = total.device_time_s / 3600;
    c[COMPUTE].number = p->compute_s;
    c[EXPOSED].number = p->exposed_comm_s;
    c[BUBBLE].number = p->bubble_s;
    c[MEMORY].number = p->memory.total_bytes;
    c[BOTTLENECK].string = dl_bottleneck_names[p->bottleneck];
    c[FRONT].integer = row->front;
    c[COMMAND].string = row->command;
    c[EVALUATED].integer = found->evaluated_count;
    c[FEASIBLE].integer = found->feasible_count;
    for (int i = 0; i < DL_REJECTIONS; i++) c[REJECTED + i].integer = found->rejected_count[i];
}

void dl_search_rows_name_micro_batches(struct dl_table *table) {
    for (int r = 0; r < table->row_count; r++) {
        union dl_cell *c = &table->cells[(size_t)r * COLUMNS + MICRO];
        const double number = c->number; /* replaced by the text */
        c->string = number > 0 ? dl_arena_printf(table->arena, "%.4g", number) : "-";
    }
}

static int choice_of(const char *word, const char *const *names) {
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], word) == 0) return i;
    }
    return 0;
}

/* A cell as a count; 0 for what is none. */
static int64_t whole(double value) { return value >= 0 && value <= 1e15 ? (int64_t)value : 0; }

/* The plan of one row. v: its numbers, cells: its text, both by column. */
static struct dl_found found_of(const double *v, const char *const *cells, int64_t order) {
    const int64_t devices = whole(v[DEVICES]), nodes = whole(v[NODES]) > 0 ? whole(v[NODES]) : 1;
    struct dl_found f = {.iteration_s = v[ITERATION],
                         .memory_bytes = v[MEMORY],
                         .micro_samples = v[MICRO],
                         .shard = (int)fmin(3, fmax(0, v[ZERO])),
                         .fits = true,
                         .order = order};
    f.split = (struct dl_transformer_split){
        .tp = whole(v[TP]),
        .sp = whole(v[SP]),
        .ep = whole(v[EP]),
        .pp = whole(v[PP]),
        .dp = whole(v[DP]),
        .nodes = nodes,
        .devices_per_node = devices / nodes,
        .sequence_parallel = v[SEQUENCE] > 0,
        .mapping = (enum dl_mapping)choice_of(cells[MAPPING], dl_mapping_names)};
    f.choice = (struct dl_transformer_choice){
        .schedule = (enum dl_schedule)choice_of(cells[SCHEDULE], dl_schedule_names),
        .recompute = (enum dl_recompute)choice_of(cells[RECOMPUTE], dl_recompute_names),
        .virtual_stages = whole(v[VIRTUAL])};
    const struct dl_strategy *strategy = dl_strategy_find(cells[STRATEGY]);
    if (dl_search_serves_network(strategy)) f.strategy = strategy;
    return f;
}

enum dl_code dl_search_read(const char *path, const struct dl_search_request *request,
                            struct dl_arena *arena, struct dl_search_worker *into,
                            struct dl_err *err) {
    struct dl_csv csv;
    int at[COLUMNS];
    double v[COLUMNS];
    const char *cells[COLUMNS];
    DL_TRY(dl_csv_read(path, arena, &csv, err));
    for (int c = 0; c < COLUMNS; c++) {
        at[c] = dl_csv_column(&csv, columns[c].key);
        if (at[c] < 0)
            return dl_fail_at(err, path, 1, 1, columns[c].key,
                              "a part of a search (search --shard I/N --csv) has this column");
    }
    for (int row = 0; row < csv.row_count; row++) {
        for (int c = 0; c < COLUMNS; c++) {
            const bool number =
                columns[c].type == DL_COLUMN_NUMBER || columns[c].type == DL_COLUMN_INTEGER;
            v[c] = 0;
            cells[c] = csv.rows[row][at[c]];
            if (number && cells[c][0] != 0) DL_TRY(dl_csv_number(&csv, row, at[c], &v[c], err));
        }
        struct dl_found f = found_of(v, cells, into->evaluated_count + row);
        f.score = dl_search_score(request, &f);
        if (v[FRONT] > 0)
            dl_search_keep_front(into, &f);
        else
            dl_search_keep(request, into, &f);
        if (row > 0) continue;
        into->evaluated_count += whole(v[EVALUATED]);
        into->feasible_count += whole(v[FEASIBLE]);
        for (int r = 0; r < DL_REJECTIONS; r++) into->rejected_count[r] += whole(v[REJECTED + r]);
    }
    return DL_OK;
}
