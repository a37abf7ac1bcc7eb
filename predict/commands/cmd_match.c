/* cmd_match.c - compares machines for workloads: samples per second and per
 * joule of every combination. */

#include "model/core/figure.h"
#include "model/core/text.h"
#include "predict/inputs/match.h"
#include "predict/inputs/rates.h"
#include "model/core/columns.h"
#include "predict/options/results.h"

struct asked {
    bool all;
};
#define ASKED(member) struct asked, member
static const struct dl_option own_options[] = {
    {"long", 0, NULL, "Output", "print every combination, and why others cannot run",
     DL_FLAG(ASKED(all))},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {
    dl_match_options, own_options, dl_rates_options, dl_input_options, dl_output_options, NULL};
static const char *const examples[] = {
    "dlmodel match",
    "dlmodel match --systems iris-v100,das5-titanx --workloads resnet50 --framework "
    "pytorch-ddp,mxnet-device --json",
    "dlmodel match -s iris-v100,dgx-h100 -w resnet50,bert_large --weights 60,40 --prices 12,98",
    "dlmodel plot match --framework pytorch-ddp,horovod-tensorflow -o match.svg",
    NULL,
};

/* What the columns show of one combination. */
struct facts {
    struct dl_match_row r;
    const char *framework_text, *rate_text; /* in text alone */
};
enum show { LONG = 1 };
#define SHOWN(member, key, heading, unit, show, help)                                              \
    DL_SHOWN(struct facts, member, key, heading, unit, 0, 3, show, help)
#define HIDDEN(member, key, help) DL_HIDDEN(struct facts, member, key, help)
static const struct dl_list_column columns[] = {
    SHOWN(r.workload, "workload", "workload", "", 0, "network"),
    HIDDEN(r.framework, "framework", "framework"),
    SHOWN(r.system, "system", "system", "", 0, "system"),
    SHOWN(r.device, "device", "device", "", LONG, "device of the system"),
    HIDDEN(r.precision, "precision", "numeric precision"),
    SHOWN(r.devices, "devices", "devices", "", 0, "devices in use"),
    SHOWN(framework_text, NULL, "framework (release)", "", 0, NULL),
    SHOWN(rate_text, NULL, "samples/s", "80 %", 0, NULL),
    HIDDEN(r.samples_per_s, "throughput_samples_per_s", "samples of all devices per second"),
    HIDDEN(r.low_samples_per_s, "throughput_low_samples_per_s", "low end of the 80 % interval"),
    HIDDEN(r.high_samples_per_s, "throughput_high_samples_per_s", "high end of the 80 % interval"),
    SHOWN(r.samples_per_s_per_device, "samples_per_s_per_device", "per device", "", 0,
          "samples of one device per second"),
    SHOWN(r.samples_per_j, "samples_per_joule", "samples/J", "", 0,
          "samples per joule, hosts included"),
    SHOWN(r.low_samples_per_j, "samples_per_joule_low", "low", "", LONG,
          "low end of the 80 % interval"),
    SHOWN(r.high_samples_per_j, "samples_per_joule_high", "high", "", LONG,
          "high end of the 80 % interval"),
    SHOWN(r.cost_per_million_samples, "cost_per_million_samples", "cost/Msample", "", 0,
          "cost, in the currency of the price"),
    SHOWN(r.carbon_kg_per_million_samples, "carbon_kg_per_million_samples", "CO2", "kg/Msample",
          LONG, "CO2"),
    SHOWN(r.fits, "fits", "fits", "", LONG, "the plan fits in memory"),
    HIDDEN(r.release, "release", "release of the framework"),
};

const struct dl_result dl_match_result = {"match", "results", DL_LIST(columns)};

#define MIX(member, heading, unit)                                                                 \
    DL_SHOWN(struct dl_match_mix, member, #member, heading, unit, 1, 3, 0, NULL)
static const struct dl_list_column mix_columns[] = {
    MIX(system, "system", ""),        MIX(devices, "devices", ""),
    MIX(speed_ratio, "speed", "x"),   MIX(cost_ratio, "cost", "x"),
    MIX(energy_ratio, "energy", "x"), MIX(missing, "does not run", ""),
};

static void fill_mix(const struct dl_match *m, struct dl_arena *arena, struct dl_table *table) {
    struct dl_match_mix mixes[DL_MATCH_NAMES];
    const int count = dl_match_mixes(m, mixes);
    dl_list_table(table, arena, DL_LIST(mix_columns), 0);
    for (int i = 0; i < count; i++) dl_list_add(table, mix_columns, &mixes[i]);
}

/* The weighted workloads on each machine, the first one's speed, cost and energy as 1. */
static void add_mix(const struct dl_match *m, struct dl_text *text) {
    struct dl_table table;
    if (m->weights[0] == 0) return;
    fill_mix(m, text->arena, &table);
    dl_text_printf(text, "The mix, relative to %s (", m->systems[0]);
    for (int i = 0; i < m->workload_count; i++)
        dl_text_printf(text, "%s%s %.3g %%", i > 0 ? ", " : "", m->workloads[i],
                       100 * m->weights[i]);
    dl_text_printf(text, " of its time); cost and energy of the same work:\n\n%s",
                   dl_table_text(&table));
}

static void add(struct dl_table *table, const struct dl_match_row *r) {
    struct dl_arena *arena = table->arena;
    const struct facts facts = {
        .r = *r,
        .framework_text = dl_arena_printf(arena, "%s (%s)", r->framework, r->release),
        .rate_text =
            dl_arena_printf(arena, "%s (%s-%s)", dl_figure_text(arena, r->samples_per_s, 3),
                            dl_figure_text(arena, r->low_samples_per_s, 3),
                            dl_figure_text(arena, r->high_samples_per_s, 3))};
    dl_list_add(table, columns, &facts);
}

/* The lines of a network, the fastest system first. */
static int lines_of(const struct dl_match *m, const char *workload,
                    const struct dl_match_row *out[DL_MATCH_NAMES]) {
    int count = 0;
    for (int s = 0; s < m->system_count; s++) {
        const struct dl_match_row *r = dl_match_best(m, workload, m->systems[s], false);
        int at = count;
        if (r == NULL) continue;
        for (; at > 0 && out[at - 1]->samples_per_s < r->samples_per_s; at--) out[at] = out[at - 1];
        out[at] = r;
        count++;
    }
    return count;
}

/* Every combination, or for each network the best one on each system. */
static void fill(const struct dl_match *m, bool all, struct dl_arena *arena,
                 struct dl_table *table) {
    const struct dl_match_row *lines[DL_MATCH_NAMES];
    dl_list_table(table, arena, DL_LIST(columns), all ? LONG : 0);
    for (int i = 0; all && i < m->count; i++) add(table, &m->rows[i]);
    for (int w = 0; !all && w < m->workload_count; w++) {
        const int count = lines_of(m, m->workloads[w], lines);
        for (int i = 0; i < count; i++) add(table, lines[i]);
    }
}

static void add_answers(const struct dl_match *m, struct dl_text *text) {
    for (int i = 0; i < m->workload_count; i++) {
        const struct dl_match_row *fast = dl_match_best(m, m->workloads[i], NULL, false),
                                  *frugal = dl_match_best(m, m->workloads[i], NULL, true);
        if (fast == NULL) {
            if (m->why_not[i] != NULL)
                dl_text_printf(text, "%s: runs on none of these systems: %s.\n", m->workloads[i],
                               m->why_not[i]);
            else
                dl_text_printf(text, "%s: fits on none of these systems.\n", m->workloads[i]);
            continue;
        }
        dl_text_printf(text, "%s: fastest: %s with %s, %s samples/s on %lld devices",
                       m->workloads[i], fast->system, fast->framework,
                       dl_figure_text(text->arena, fast->samples_per_s, 4),
                       (long long)fast->devices);
        if (frugal != NULL)
            dl_text_printf(text, "; most energy-efficient: %s with %s, %s samples/J",
                           frugal->system, frugal->framework,
                           dl_figure_text(text->arena, frugal->samples_per_j, 3));
        dl_text_add(text, ".\n");
    }
}

static void add_impossible(const struct dl_match *m, struct dl_text *text) {
    dl_text_printf(text, "%d combination%s cannot run%s\n", m->impossible,
                   m->impossible == 1 ? "" : "s", m->impossible == 0 ? "." : ":");
    for (int i = 0; i < m->reason_count; i++)
        dl_text_printf(text, "%7d  %s\n", m->reasons[i].count, m->reasons[i].why);
}

static enum dl_code print_text(const struct dl_match *m, struct dl_context *context,
                               const struct dl_options *options, bool all,
                               const struct dl_table *table, struct dl_err *err) {
    struct dl_text text = {.arena = context->arena};
    add_answers(m, &text);
    if (m->weights[0] > 0) dl_text_add(&text, "\n");
    add_mix(m, &text);
    dl_text_printf(&text, "\n%s on all of them%s, %lld node%s each%s\n\n%s\n",
                   dl_precision_names[m->precision],
                   m->precision_chosen ? " (their defaults differ; -p chooses)" : "",
                   (long long)m->nodes, m->nodes == 1 ? "" : "s",
                   all ? "" : "; the framework to take on each system", dl_table_text(table));
    if (all)
        add_impossible(m, &text);
    else
        dl_text_printf(&text,
                       "Best of %d combinations, without the upper bound `ideal` and asynchronous "
                       "modes; %d cannot run. All: --long\n",
                       m->count, m->impossible);
    return context->output(options, dl_text_string(&text), err);
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    enum dl_format format = DL_FORMAT_TEXT;
    struct dl_match *m = dl_arena_alloc(context->arena, 1, sizeof *m);
    struct dl_table table;
    struct dl_json_writer w;
    struct asked asked = {false};
    DL_TRY(dl_options_bind(options, own_options, &asked, err));
    DL_TRY(dl_output_format(options, &format, err));
    DL_TRY(dl_match_run(context, options, m, err));
    const bool all = asked.all || format == DL_FORMAT_CSV || format == DL_FORMAT_JSON;
    fill(m, all, context->arena, &table);
    if (format == DL_FORMAT_TEXT) return print_text(m, context, options, all, &table, err);
    if (format != DL_FORMAT_JSON)
        return context->output(options, dl_table_render(&table, format), err);
    dl_jw_init(&w, context->arena, false);
    dl_output_header(&w, "dlmodel-match");
    dl_jw_array(&w, "results");
    dl_table_json(&table, &w);
    dl_jw_end(&w);
    fill_mix(m, context->arena, &table);
    dl_jw_array(&w, "mix");
    dl_table_json(&table, &w);
    dl_jw_end(&w);
    dl_jw_integer(&w, "impossible", m->impossible);
    dl_jw_object(&w, "reasons");
    for (int i = 0; i < m->reason_count; i++)
        dl_jw_integer(&w, m->reasons[i].why, m->reasons[i].count);
    return context->output(options, dl_jw_text(&w), err);
}

const struct dl_command dl_cmd_match = {
    .name = "match",
    .summary = "compare machines for your workloads: samples/s, samples/J, cost",
    .usage = "[options]",
    .purpose =
        "Predicts every combination of the given systems, networks and frameworks in one precision "
        "on one node (--nodes, --devices-per-node: more or fewer) and prints for each system the "
        "framework to take: samples per second of the node and of a device with an 80 % interval, "
        "samples per joule, hosts included, and cost. Energy follows "
        "from the model of power (help theory F-POWER, F-POWER-INTERVAL).",
    .examples = examples,
    .options = tables,
    .common = "systems workloads weights prices " DL_COMMON_INPUTS "price long json help",
    .instead = "For one machine use predict.",
    .exit_notes = "1 when no combination can run",
    .latex = true,
    .few_notes = true,
    .run = run,
};
