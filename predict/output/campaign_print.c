/* campaign_print.c - see the header. */
#include "predict/output/campaign_print.h"

#include <math.h>

#include "model/core/text.h"

const char *const dl_campaign_search_names[] = {
    "grid", "random", "successive-halving", "hyperband", "asha", "median-stop", NULL};

static const struct dl_column width_columns[] = {
    {"devices_per_trial", "devices", NULL, DL_COLUMN_INTEGER, 0, 0},
    {"slots", "slots", NULL, DL_COLUMN_INTEGER, 0, 0},
    {"trial_s", "trial", "h", DL_COLUMN_NUMBER, 3600, 3},
    {"makespan_s", "makespan", "h", DL_COLUMN_NUMBER, 3600, 3},
    {"makespan_low_s", "low", "h", DL_COLUMN_NUMBER, 3600, 3},
    {"makespan_high_s", "high", "h", DL_COLUMN_NUMBER, 3600, 3},
    {"lower_bound_s", "bound", "h", DL_COLUMN_NUMBER, 3600, 3},
    {"list_bound_s", "list", "h", DL_COLUMN_NUMBER, 3600, 3},
    {"longest_first_bound_s", NULL, "h", DL_COLUMN_NUMBER, 3600, 3},
    {"utilization_frac", "used", "%", DL_COLUMN_NUMBER, 0.01, 3},
    {"node_hours", "node", "h", DL_COLUMN_NUMBER, 0, 4},
    {"device_hours", "device", "h", DL_COLUMN_NUMBER, 0, 4},
    {"cost", "cost", "", DL_COLUMN_NUMBER, 0, 4},
    {"energy_j", "energy", "kWh", DL_COLUMN_NUMBER, 3.6e6, 4},
    {"tasks", "tasks", NULL, DL_COLUMN_INTEGER, 0, 0},
    {"failures", NULL, NULL, DL_COLUMN_INTEGER, 0, 0},
    {"trials_in_full", "full", NULL, DL_COLUMN_INTEGER, 0, 0},
    {"choice", "", NULL, DL_COLUMN_STRING, 0, 0},
    {"why", NULL, NULL, DL_COLUMN_STRING, 0, 0},
};
enum { WIDTH_COLUMNS = sizeof width_columns / sizeof *width_columns };

static void add_width(const struct dl_campaign_job *job, const struct dl_campaign_width *w,
                      struct dl_table *table) {
    union dl_cell *c = dl_table_row(table);
    const struct dl_campaign_result *r = &w->result;
    const bool can = w->why == NULL;
    const double hours = r->makespan_s / 3600, nodes = (double)job->campaign.nodes;
    const double numbers[] = {w->trial_s,
                              r->makespan_s,
                              w->low.makespan_s,
                              w->high.makespan_s,
                              r->lower_bound_s,
                              r->list_bound_s,
                              r->longest_first_bound_s,
                              r->utilization_frac,
                              hours * nodes,
                              hours * nodes * (double)job->campaign.devices_per_node,
                              w->cost,
                              w->energy_j};
    c[0].integer = w->devices;
    c[1].integer = can ? r->slots : DL_ABSENT;
    for (int i = 0; i < 12; i++) c[2 + i].number = can ? numbers[i] : (double)NAN;
    c[14].integer = can ? r->task_count : DL_ABSENT;
    c[15].integer = can ? r->failure_count : DL_ABSENT;
    c[16].integer = can ? r->full_count : DL_ABSENT;
    c[17].string = w->best ? "best" : w->tie ? "tie" : can ? "" : "not possible";
    c[18].string = w->why;
}

static const struct dl_column task_columns[] = {
    {"trial", "trial", NULL, DL_COLUMN_INTEGER, 0, 0},
    {"rung", "rung", NULL, DL_COLUMN_INTEGER, 0, 0},
    {"slot", "slot", NULL, DL_COLUMN_INTEGER, 0, 0},
    {"start_s", "start", "s", DL_COLUMN_NUMBER, 0, 6},
    {"train_s", "trains from", "s", DL_COLUMN_NUMBER, 0, 6},
    {"end_s", "end", "s", DL_COLUMN_NUMBER, 0, 6},
    {"failed", "failed", NULL, DL_COLUMN_BOOL, 0, 0},
};

static void list_tasks(const struct dl_campaign_result *r, struct dl_table *table) {
    for (int i = 0; i < r->task_count; i++) {
        union dl_cell *c = dl_table_row(table);
        const struct dl_campaign_task *t = &r->tasks[i];
        c[0].integer = t->trial;
        c[1].integer = t->rung;
        c[2].integer = t->slot;
        c[3].number = t->start_s;
        c[4].number = t->train_s;
        c[5].number = t->end_s;
        c[6].boolean = t->failed;
    }
}

/* What shortens the campaign most, each change alone. */
static const char *limits_text(const struct dl_campaign_job *job,
                               const struct dl_campaign_width *best) {
    const struct dl_campaign_limits *l = &best->limits;
    const struct {
        const char *what;
        double frac;
    } changes[] = {{"twice the nodes", l->slots_frac},
                   {"trials of equal length", l->longest_frac},
                   {"no start-up of tasks", l->startup_frac},
                   {"data on the nodes already", l->staging_frac},
                   {"a scheduler without delay", l->dispatch_frac},
                   {"no failures", l->failures_frac}};
    struct dl_text t = {.arena = job->context->arena};
    const char *comma = "";
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        if (!(changes[i].frac < -0.005)) continue;
        dl_text_printf(&t, "%s%s %.3g %%", comma, changes[i].what, 100 * changes[i].frac);
        comma = ", ";
    }
    return t.length == 0 ? "none of the changes tried shortens it by 0.5 %" : dl_text_string(&t);
}

static enum dl_code print_text(struct dl_campaign_job *job, const struct dl_options *options,
                               const struct dl_campaign_width *best, const struct dl_table *table,
                               struct dl_err *err) {
    struct dl_text t = {.arena = job->context->arena};
    char low[32], high[32], makespan[32];
    dl_text_printf(&t, "%d trials of %s with %s on %lld nodes of %s, %s, %s\n\n",
                   job->campaign.trial_count, job->inputs.workload->name, job->framework->name,
                   (long long)job->campaign.nodes, job->inputs.system->name,
                   dl_campaign_search_names[job->asked.search],
                   dl_campaign_order_names[job->asked.order]);
    dl_text_add(&t, dl_table_text(table));
    if (job->asked.shown == 1) return job->context->output(options, dl_text_string(&t), err);
    dl_units_format(best->result.makespan_s, DL_UNIT_S, makespan, sizeof makespan);
    dl_units_format(best->low.makespan_s, DL_UNIT_S, low, sizeof low);
    dl_units_format(best->high.makespan_s, DL_UNIT_S, high, sizeof high);
    dl_text_printf(&t,
                   "\nShortest with %lld device%s per trial: %s, with 80 %% probability %s to %s; "
                   "no schedule takes less than %.3g h.\nWhat would shorten it: %s.\n",
                   (long long)best->devices, best->devices == 1 ? "" : "s", makespan, low, high,
                   best->result.lower_bound_s / 3600, limits_text(job, best));
    const char *currency = dl_currency_of(job->inputs.system, &job->inputs.rates);
    if (dl_known(best->cost))
        dl_text_printf(&t, "It costs %.4g %s", best->cost, currency == NULL ? "" : currency);
    if (dl_known(best->energy_j))
        dl_text_printf(&t, "%s %.4g kWh of energy", dl_known(best->cost) ? " and" : "It takes",
                       best->energy_j / 3.6e6);
    if (dl_known(best->cost) || dl_known(best->energy_j)) dl_text_add(&t, ".\n");
    for (int i = 0; i < job->width_count; i++) {
        if (job->widths[i].why != NULL)
            dl_text_printf(&t, "Not with %lld devices: %s.\n", (long long)job->widths[i].devices,
                           job->widths[i].why);
    }
    return job->context->output(options, dl_text_string(&t), err);
}

static enum dl_code print_json(struct dl_campaign_job *job, const struct dl_options *options,
                               const struct dl_campaign_width *best, const struct dl_table *table,
                               struct dl_err *err) {
    struct dl_json_writer w;
    const struct dl_campaign_limits *l = &best->limits;
    dl_jw_init(&w, job->context->arena, false);
    dl_output_header(&w, "dlmodel-campaign");
    dl_inputs_json(job->context, &job->inputs, options, &w);
    dl_jw_integer(&w, "trials", job->campaign.trial_count);
    dl_jw_string(&w, "search", dl_campaign_search_names[job->asked.search]);
    dl_jw_string(&w, "order", dl_campaign_order_names[job->asked.order]);
    dl_jw_integer(&w, "best_devices_per_trial", best->devices);
    dl_jw_number(&w, "cost", best->cost);
    dl_jw_string(&w, "currency", dl_currency_of(job->inputs.system, &job->inputs.rates));
    dl_jw_number(&w, "energy_j", best->energy_j);
    dl_jw_object(&w, "change_of_makespan_frac");
    dl_jw_number(&w, "twice_the_nodes", l->slots_frac);
    dl_jw_number(&w, "equal_trials", l->longest_frac);
    dl_jw_number(&w, "no_startup", l->startup_frac);
    dl_jw_number(&w, "no_staging", l->staging_frac);
    dl_jw_number(&w, "no_dispatch", l->dispatch_frac);
    dl_jw_number(&w, "no_failures", l->failures_frac);
    dl_jw_end(&w);
    dl_jw_array(&w, job->asked.shown == 1 ? "tasks" : "results");
    dl_table_json(table, &w);
    dl_jw_end(&w);
    dl_jw_end(&w);
    return job->context->output(
        options, w.failed ? NULL : dl_arena_printf(job->context->arena, "%s\n", w.text), err);
}

enum dl_code dl_campaign_print(struct dl_campaign_job *job, const struct dl_options *options,
                               const struct dl_campaign_width *best,
                               const struct dl_campaign_result *tasks, struct dl_err *err) {
    enum dl_format format = DL_FORMAT_TEXT;
    struct dl_table table;
    DL_TRY(dl_output_format(options, &format, err));
    if (job->asked.shown == 1) {
        dl_table_init(&table, job->context->arena, task_columns,
                      sizeof task_columns / sizeof *task_columns);
        list_tasks(tasks, &table);
    } else {
        dl_table_init(&table, job->context->arena, width_columns, WIDTH_COLUMNS);
        for (int i = 0; i < job->width_count; i++) add_width(job, &job->widths[i], &table);
    }
    if (format == DL_FORMAT_CSV) return job->context->output(options, dl_table_csv(&table), err);
    return format == DL_FORMAT_JSON ? print_json(job, options, best, &table, err)
                                    : print_text(job, options, best, &table, err);
}
