/* campaign_print.c - see the header. */
#include "predict/output/campaign_print.h"

#include <math.h>
#include <string.h>

#include "model/core/columns.h"
#include "predict/options/results.h"
#include "model/core/figure.h"
#include "model/core/text.h"

const char *const dl_campaign_search_names[] = {
    "grid", "random", "successive-halving", "hyperband", "asha", "median-stop", NULL};

/* What the columns show of one width; of one that is not possible, only its devices and why. */
struct facts {
    struct dl_campaign_width w;
    int64_t slots, tasks, failures, full;
    double node_hours, device_hours;
    const char *choice;
    const char *makespan_text; /* in text alone */
};
#define SHOWN(member, key, heading, unit, scale, digits, help)                                     \
    DL_SHOWN(struct facts, member, key, heading, unit, scale, digits, 0, help)
#define HIDDEN(member, key, help) DL_HIDDEN(struct facts, member, key, help)
static const struct dl_list_column width_columns[] = {
    SHOWN(w.devices, "devices_per_trial", "devices", NULL, 0, 0, "devices of one training"),
    HIDDEN(slots, "slots", "trainings that run at the same time"),
    SHOWN(w.trial_s, "trial_s", "trial", "h", 3600, 3, "time of one training in full"),
    SHOWN(makespan_text, NULL, "makespan", "h (80 %)", 0, 0, NULL),
    HIDDEN(w.result.makespan_s, "makespan_s", "time until the last training ends"),
    HIDDEN(w.low.makespan_s, "makespan_low_s", "low end of the 80 % interval"),
    HIDDEN(w.high.makespan_s, "makespan_high_s", "high end of the 80 % interval"),
    SHOWN(w.result.lower_bound_s, "lower_bound_s", "at least", "h", 3600, 3,
          "lower bound of the makespan of any schedule"),
    HIDDEN(w.result.list_bound_s, "list_bound_s", "bound of any list schedule"),
    HIDDEN(w.result.longest_first_bound_s, "longest_first_bound_s",
           "bound of longest-first schedules"),
    SHOWN(w.result.utilization_frac, "utilization_frac", "used", "%", 0.01, 3,
          "share of device time in use"),
    HIDDEN(node_hours, "node_hours", "node-hours of the campaign"),
    SHOWN(device_hours, "device_hours", "device", "h", 0, 4, "device-hours of the campaign"),
    SHOWN(w.cost, "cost", "cost", "", 0, 4, "cost, in the currency of the price"),
    SHOWN(w.energy_j, "energy_j", "energy", "kWh", 3.6e6, 4, "energy, hosts included"),
    SHOWN(tasks, "tasks", "tasks", NULL, 0, 0, "tasks that are started"),
    HIDDEN(failures, "failures", "tasks that fail and run again"),
    SHOWN(full, "trials_in_full", "in full", NULL, 0, 0, "trainings that are not stopped early"),
    SHOWN(choice, "choice", "", NULL, 0, 0, "best, tie, or not possible"),
    HIDDEN(w.why, "why", "why it is not possible"),
};
const struct dl_result dl_campaign_result = {"campaign", "results", DL_LIST(width_columns)};

static void add_width(const struct dl_campaign_job *job, const struct dl_campaign_width *w,
                      struct dl_table *table) {
    const struct dl_campaign_result *r = &w->result;
    const double hours = r->makespan_s / 3600 * (double)job->campaign.nodes;
    struct facts f = {.w = *w,
                      .slots = r->slots,
                      .tasks = r->task_count,
                      .failures = r->failure_count,
                      .full = r->full_count,
                      .node_hours = hours,
                      .device_hours = hours * (double)job->campaign.devices_per_node,
                      .choice = w->best  ? "best"
                                : w->tie ? "tie"
                                         : ""};
    if (w->why == NULL)
        f.makespan_text = dl_arena_printf(
            table->arena, "%s (%s to %s)", dl_figure_text(table->arena, r->makespan_s / 3600, 3),
            dl_figure_text(table->arena, w->low.makespan_s / 3600, 3),
            dl_figure_text(table->arena, w->high.makespan_s / 3600, 3));
    if (w->why != NULL) {
        f.choice = "not possible";
        f.slots = f.tasks = f.failures = f.full = DL_ABSENT;
        f.node_hours = f.device_hours = f.w.cost = f.w.energy_j = f.w.trial_s = NAN;
        f.w.low.makespan_s = f.w.high.makespan_s = NAN;
        f.w.result = (struct dl_campaign_result){.makespan_s = NAN,
                                                 .lower_bound_s = NAN,
                                                 .list_bound_s = NAN,
                                                 .longest_first_bound_s = NAN,
                                                 .utilization_frac = NAN};
    }
    dl_list_add(table, width_columns, &f);
}

#define TASK(member, key, heading, unit, digits)                                                   \
    DL_SHOWN(struct dl_campaign_task, member, key, heading, unit, 0, digits, 0, NULL)
static const struct dl_list_column task_columns[] = {
    TASK(trial, "trial", "trial", NULL, 0),
    TASK(rung, "rung", "rung", NULL, 0),
    TASK(slot, "slot", "slot", NULL, 0),
    TASK(start_s, "start_s", "start", "s", 6),
    TASK(train_s, "train_s", "trains from", "s", 6),
    TASK(end_s, "end_s", "end", "s", 6),
    TASK(failed, "failed", "failed", NULL, 0),
};

struct change {
    const char *key, *what;
    double frac;
};
enum { CHANGES = 6 };
static void changes_of(const struct dl_campaign_limits *l, struct change out[CHANGES]) {
    const struct change changes[CHANGES] = {
        {"twice_the_nodes", "twice the nodes", l->slots_frac},
        {"equal_trials", "trials of equal length", l->longest_frac},
        {"no_startup", "no start-up of tasks", l->startup_frac},
        {"no_staging", "data already on the nodes", l->staging_frac},
        {"no_dispatch", "a scheduler without delay", l->dispatch_frac},
        {"no_failures", "no failures", l->failures_frac}};
    memcpy(out, changes, sizeof changes);
}

/* What shortens the campaign most, each change alone. */
static const char *limits_text(const struct dl_campaign_job *job,
                               const struct dl_campaign_width *best) {
    struct change changes[CHANGES];
    struct dl_text t = {.arena = job->context->arena};
    changes_of(&best->limits, changes);
    for (int i = 0; i < CHANGES; i++)
        if (changes[i].frac < -0.005)
            dl_text_printf(&t, "%s%s %.3g %%", t.length > 0 ? ", " : "", changes[i].what,
                           100 * changes[i].frac);
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
    dl_text_printf(
        &t,
        "\nShortest with %lld device%s per trial: %s (80 %% prediction interval %s to %s); "
        "lower bound: %.3g h.\nWhat would shorten it: %s.\n",
        (long long)best->devices, best->devices == 1 ? "" : "s", makespan, low, high,
        best->result.lower_bound_s / 3600, limits_text(job, best));
    const char *currency = dl_currency_of(job->inputs.system, &job->inputs.rates);
    if (dl_known(best->cost))
        dl_text_printf(&t, "Cost: %.4g %s", best->cost, currency == NULL ? "" : currency);
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
    struct change changes[CHANGES];
    changes_of(&best->limits, changes);
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
    for (int i = 0; i < CHANGES; i++) dl_jw_number(&w, changes[i].key, changes[i].frac);
    dl_jw_end(&w);
    dl_jw_array(&w, job->asked.shown == 1 ? "tasks" : "results");
    dl_table_json(table, &w);
    return job->context->output(options, dl_jw_text(&w), err);
}

enum dl_code dl_campaign_print(struct dl_campaign_job *job, const struct dl_options *options,
                               const struct dl_campaign_width *best,
                               const struct dl_campaign_result *tasks, struct dl_err *err) {
    enum dl_format format = DL_FORMAT_TEXT;
    struct dl_table table;
    DL_TRY(dl_output_format(options, &format, err));
    if (job->asked.shown == 1) {
        dl_list_table(&table, job->context->arena, DL_LIST(task_columns), 0);
        for (int i = 0; i < tasks->task_count; i++)
            dl_list_add(&table, task_columns, &tasks->tasks[i]);
    } else {
        dl_list_table(&table, job->context->arena, DL_LIST(width_columns), 0);
        for (int i = 0; i < job->width_count; i++) add_width(job, &job->widths[i], &table);
    }
    if (format == DL_FORMAT_CSV) return job->context->output(options, dl_table_csv(&table), err);
    return format == DL_FORMAT_JSON ? print_json(job, options, best, &table, err)
                                    : print_text(job, options, best, &table, err);
}
