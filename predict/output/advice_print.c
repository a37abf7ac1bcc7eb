/* advice_print.c - see the header. */
#include "predict/output/advice_print.h"

#include <math.h>

#include "model/core/figure.h"
#include "model/core/text.h"
#include "model/engine/correct.h"

static const double S_PER_HOUR = 3600, J_PER_KWH = 3.6e6, MILLION = 1e6;
/* Electricity of the world in 2022: Ember, Global Electricity Review 2023. */
static const double WORLD_CARBON_G_PER_KWH = 436;

static const char *currency_of(const struct dl_prediction_row *row) {
    const char *currency = dl_currency_of(row->system, row->rates);
    return currency != NULL ? currency : "in the currency of --price";
}

static const char *price_text(const struct dl_prediction_row *row, struct dl_arena *arena) {
    const bool own = row->rates == NULL || !(row->rates->price_per_node_hour > 0);
    const char *date = row->system->operation.price_date;
    return dl_arena_printf(arena, "%.2f per node-hour%s%s", dl_price_of(row->system, row->rates),
                           own && date != NULL ? ", " : "", own && date != NULL ? date : "");
}

const char *dl_spending_text(const struct dl_prediction_row *row, struct dl_arena *arena) {
    const double run_s = dl_rows_total(row).time_s;
    const struct dl_rates *rates = row->rates;
    const bool run = dl_known(run_s),
               asked = rates != NULL && (rates->node_w > 0 || rates->price_per_node_hour > 0 ||
                                         rates->carbon_g_per_kwh > 0);
    const struct dl_power power = dl_rows_power(row);
    const struct dl_spending s = dl_rows_spending(row, run ? run_s : S_PER_HOUR);
    const char *currency = dl_currency_of(row->system, row->rates);
    struct dl_text text = {.arena = arena};
    if (!run && !asked) return "";
    dl_text_printf(&text, "%s: ", run ? "Whole run" : "One hour");
    if (dl_known(s.cost))
        dl_text_printf(&text, "cost %s%s%s (%s)", dl_figure_text(arena, s.cost, 4),
                       currency != NULL ? " " : "", currency != NULL ? currency : "",
                       price_text(row, arena));
    else
        dl_text_add(&text, "cost unknown (no price; --price)");
    if (dl_known(power.job_w)) {
        const bool given = rates != NULL && rates->node_w > 0;
        dl_text_printf(&text, ", energy %s kWh (%s kW%s)",
                       dl_figure_text(arena, s.energy_j / J_PER_KWH, 4),
                       dl_figure_text(arena, power.job_w / 1e3, 4),
                       given                ? ", as given"
                       : power.host_assumed ? ", host power assumed"
                                            : "");
    } else {
        dl_text_add(&text, ", power unknown");
    }
    if (dl_known(s.carbon_g))
        dl_text_printf(&text, ", %s kg CO2", dl_figure_text(arena, s.carbon_g / 1e3, 4));
    else if (dl_known(s.energy_j))
        dl_text_printf(
            &text, ", about %s kg CO2 at the world average of %.0f g/kWh in 2022 (--carbon)",
            dl_figure_text(arena, s.energy_j / J_PER_KWH * WORLD_CARBON_G_PER_KWH / 1e3, 2),
            WORLD_CARBON_G_PER_KWH);
    dl_text_add(&text, ".\n");
    return dl_text_string(&text);
}

const char *dl_reservation_text(const struct dl_framework *framework) {
    if (framework->sync.asynchronous) return "its workers do not wait for each other";
    if (framework->status == DL_IN_HOUSE) return "it is not published";
    return framework->status == DL_LOSSY ? "it rounds gradients" : "it is retired";
}

static bool priced(const struct dl_prediction_row *row) {
    return row->prediction->group_count == 0 && dl_known(dl_price_of(row->system, row->rates));
}

void dl_advice_add(struct dl_advice_request *q, const struct dl_prediction_row *row) {
    const struct dl_prediction *p = row->prediction;
    const double rate = p->throughput_samples_per_s, hours = 1 / rate / S_PER_HOUR;
    const struct dl_run_total total = dl_rows_total(row);
    if (q->count == DL_ADVICE_ROWS) return;
    int at = q->count++;
    for (; at > 0 && q->points[at - 1].nodes > row->plan->nodes; at--) {
        q->points[at] = q->points[at - 1];
        q->rows[at] = q->rows[at - 1];
    }
    q->rows[at] = *row;
    q->points[at] = (struct dl_advice_point){
        .nodes = row->plan->nodes,
        .samples_per_s = rate,
        .half_log = dl_prediction_plan_half_log(p),
        .efficiency = p->scaling_efficiency,
        .cost_per_sample = priced(row)
                               ? dl_rows_spending(row, 1 / rate).cost
                               : (double)(row->plan->nodes * row->plan->devices_per_node) * hours,
        .run_s = total.time_s,
        .run_cost = dl_rows_spending(row, total.time_s).cost,
        .fits = p->fits};
}

static const char *unit_of(const struct dl_advice_request *q) {
    return priced(&q->rows[0]) ? currency_of(&q->rows[0]) : "device-hours";
}

static const char *nodes_text(const struct dl_advice_request *q, int at) {
    const long long nodes = (long long)q->points[at].nodes;
    return dl_arena_printf(q->arena, "%lld node%s", nodes, nodes == 1 ? "" : "s");
}

static const char *time_text(const struct dl_advice_request *q, double time_s) {
    return dl_duration_text(q->arena, time_s);
}

/* Each gets one sentence. */
enum { KNEE, FASTEST, CHEAPEST, INEFFICIENT, IN_TIME, IN_BUDGET, CHOICES };
static const char *const keys[] = {"knee", "fastest", "cheapest", "below_80", "deadline", "budget"};

static int index_of(const struct dl_advice *a, int choice) {
    const int at[] = {a->knee, a->fastest, a->cheapest, a->inefficient, a->in_time, a->in_budget};
    return at[choice];
}

static const char *fastest_why(const struct dl_advice_request *q, const struct dl_advice *a) {
    const double rate = q->points[a->fastest].samples_per_s;
    const char *fastest = dl_figure_text(q->arena, rate, 4);
    if (a->tied_fastest < 0) return dl_arena_printf(q->arena, "fastest: %s samples/s", fastest);
    return dl_arena_printf(
        q->arena, "fastest: %s samples/s; indistinguishable from %s (%s: the intervals overlap)",
        fastest, nodes_text(q, a->tied_fastest),
        dl_figure_text(q->arena, q->points[a->tied_fastest].samples_per_s, 4));
}

static const char *cost_text(const struct dl_advice_request *q, int at) {
    return dl_arena_printf(q->arena, "%s %s per million samples",
                           dl_figure_text(q->arena, MILLION * q->points[at].cost_per_sample, 4),
                           unit_of(q));
}

static const char *run_text(const struct dl_advice_request *q, int at) {
    const struct dl_advice_point *p = &q->points[at];
    return dl_known(p->run_cost)
               ? dl_arena_printf(q->arena, "%s, %s %s", time_text(q, p->run_s),
                                 dl_figure_text(q->arena, p->run_cost, 4), unit_of(q))
               : time_text(q, p->run_s);
}

/* The reason for a choice, or why no number of nodes meets it. */
static const char *why_of(const struct dl_advice_request *q, const struct dl_advice *a,
                          int choice) {
    const int at = index_of(a, choice);
    switch (choice) {
    case KNEE:
        return dl_arena_printf(q->arena,
                               "sweet spot: the largest node count whose cost per sample is within "
                               "10 %% of the minimum, %s",
                               cost_text(q, at));
    case FASTEST: return fastest_why(q, a);
    case CHEAPEST: return dl_arena_printf(q->arena, "cheapest: %s", cost_text(q, at));
    case INEFFICIENT:
        return at < 0 ? "scaling efficiency stays above 80 % up to the largest count tried"
                      : dl_arena_printf(q->arena,
                                        "scaling efficiency drops below 80 %% here (%.0f %%)",
                                        100 * q->points[at].efficiency);
    case IN_TIME:
        return at < 0 ? dl_arena_printf(
                            q->arena,
                            "no node count tried meets the deadline; the fastest, %s, takes %s",
                            nodes_text(q, a->fastest), time_text(q, q->points[a->fastest].run_s))
                      : dl_arena_printf(q->arena, "cheapest that meets the deadline: %s",
                                        run_text(q, at));
    default:
        return at < 0
                   ? dl_arena_printf(
                         q->arena, "no node count tried is within the budget; the cheapest, %s: %s",
                         nodes_text(q, a->cheapest), run_text(q, a->cheapest))
                   : dl_arena_printf(q->arena, "fastest within the budget: %s", run_text(q, at));
    }
}

static bool asked(const struct dl_advice_request *q, int choice) {
    if (choice == IN_TIME) return q->limits.deadline_s > 0;
    if (choice == IN_BUDGET) return q->limits.budget > 0;
    return true;
}

const char *dl_advice_text(const struct dl_advice_request *q) {
    const struct dl_advice a = dl_advice_of(q->points, q->count, &q->limits);
    struct dl_text text = {.arena = q->arena};
    if (a.fastest < 0 || (q->count < 2 && !asked(q, IN_TIME) && !asked(q, IN_BUDGET))) return "";
    dl_text_printf(&text, "How many nodes with %s:\n", q->rows[0].framework->name);
    for (int i = 0; i < CHOICES; i++) {
        const int at = index_of(&a, i);
        if (!asked(q, i) || (q->count < 2 && i != IN_TIME && i != IN_BUDGET)) continue;
        dl_text_printf(&text, "  %-9s %s.\n", at < 0 ? "-" : nodes_text(q, at), why_of(q, &a, i));
    }
    return dl_text_string(&text);
}

void dl_advice_json(struct dl_json_writer *w, const struct dl_advice_request *q) {
    const struct dl_advice a = dl_advice_of(q->points, q->count, &q->limits);
    if (q->count < 2 || a.fastest < 0) return;
    dl_jw_object(w, "advice");
    dl_jw_string(w, "framework", q->rows[0].framework->name);
    dl_jw_string(w, "cost_unit", unit_of(q));
    for (int i = 0; i < CHOICES; i++) {
        const int at = index_of(&a, i);
        if (!asked(q, i)) continue;
        dl_jw_object(w, keys[i]);
        if (at < 0)
            dl_jw_number(w, "nodes", NAN);
        else
            dl_jw_integer(w, "nodes", q->points[at].nodes);
        dl_jw_number(w, "cost_per_sample", at < 0 ? NAN : q->points[at].cost_per_sample);
        dl_jw_number(w, "scaling_efficiency", at < 0 ? NAN : q->points[at].efficiency);
        if (i == FASTEST && a.tied_fastest >= 0)
            dl_jw_integer(w, "tied_from_nodes", q->points[a.tied_fastest].nodes);
        dl_jw_string(w, "why", why_of(q, &a, i));
        dl_jw_end(w);
    }
    dl_jw_end(w);
}
