/* cmd_match.c - which architecture for which framework and network: samples per second and per
 * joule of every combination. */
#include <math.h>

#include "model/core/text.h"
#include "predict/inputs/match.h"
#include "predict/inputs/rates.h"
#include "model/core/columns.h"

static const struct dl_option *const tables[] = {dl_match_options, dl_rates_options,
                                                 dl_input_options, dl_output_options, NULL};
static const char *const examples[] = {
    "dlmodel match",
    "dlmodel match --systems iris-v100,das5-titanx --workloads resnet50 --framework "
    "pytorch-ddp,mxnet-device --json",
    "dlmodel plot match --framework pytorch-ddp,horovod-tensorflow -o match.svg",
    NULL,
};

#define SHOWN(member, key, heading, unit)                                                          \
    DL_SHOWN(struct dl_match_row, member, key, heading, unit, 0, 3, 0, NULL)
static const struct dl_list_column columns[] = {
    SHOWN(workload, "workload", "workload", ""),
    SHOWN(framework, "framework", "framework", ""),
    SHOWN(system, "system", "system", ""),
    SHOWN(device, "device", "device", ""),
    SHOWN(precision, "precision", "precision", ""),
    SHOWN(devices, "devices", "dev", ""),
    SHOWN(samples_per_s, "throughput_samples_per_s", "samples", "1/s"),
    SHOWN(low_samples_per_s, "throughput_low_samples_per_s", "low", "1/s"),
    SHOWN(high_samples_per_s, "throughput_high_samples_per_s", "high", "1/s"),
    SHOWN(samples_per_s_per_device, "samples_per_s_per_device", "samples", "1/s/dev"),
    SHOWN(samples_per_j, "samples_per_joule", "samples", "1/J"),
    SHOWN(low_samples_per_j, "samples_per_joule_low", "low", "1/J"),
    SHOWN(high_samples_per_j, "samples_per_joule_high", "high", "1/J"),
    SHOWN(cost_per_million_samples, "cost_per_million_samples", "cost", "1/Msample"),
    SHOWN(fits, "fits", "fits", ""),
    SHOWN(release, "release", "release", ""),
};

/* The best framework of each network on each system. */
struct best {
    const char *workload, *system, *fastest, *frugal;
    double samples_per_s, samples_per_j;
};
#define BEST(member, key, heading, unit)                                                           \
    DL_SHOWN(struct best, member, key, heading, unit, 1, 3, 0, NULL)
static const struct dl_list_column best_columns[] = {
    BEST(workload, "workload", "workload", ""), BEST(system, "system", "system", ""),
    BEST(fastest, "fastest", "fastest", ""),    BEST(samples_per_s, "rate", "samples", "1/s"),
    BEST(frugal, "frugal", "least energy", ""), BEST(samples_per_j, "per_joule", "samples", "1/J"),
};

static void fill(const struct dl_match *m, struct dl_arena *arena, struct dl_table *table) {
    dl_list_table(table, arena, DL_LIST(columns), 0);
    for (int i = 0; i < m->count; i++) dl_list_add(table, columns, &m->rows[i]);
}

static void fill_best(const struct dl_match *m, struct dl_table *table) {
    for (int w = 0; w < m->workload_count; w++) {
        for (int s = 0; s < m->system_count; s++) {
            const struct dl_match_row *fast =
                                          dl_match_best(m, m->workloads[w], m->systems[s], false),
                                      *frugal =
                                          dl_match_best(m, m->workloads[w], m->systems[s], true);
            if (fast == NULL) continue;
            const struct best best = {
                m->workloads[w],     m->systems[s],
                fast->framework,     frugal == NULL ? "" : frugal->framework,
                fast->samples_per_s, frugal == NULL ? NAN : frugal->samples_per_j};
            dl_list_add(table, best_columns, &best);
        }
    }
}

static enum dl_code print_text(const struct dl_match *m, struct dl_context *context,
                               const struct dl_options *options, const struct dl_table *table,
                               struct dl_err *err) {
    struct dl_table best;
    struct dl_text text = {.arena = context->arena};
    dl_list_table(&best, context->arena, DL_LIST(best_columns), 0);
    fill_best(m, &best);
    dl_text_printf(&text,
                   "%s\nThe best framework of each system (excluding the ideal bound and "
                   "asynchronous modes)\n\n%s\n",
                   dl_table_text(table), dl_table_text(&best));
    for (int i = 0; i < m->workload_count; i++) {
        const struct dl_match_row *fast = dl_match_best(m, m->workloads[i], NULL, false),
                                  *frugal = dl_match_best(m, m->workloads[i], NULL, true);
        if (fast == NULL) continue;
        dl_text_printf(&text, "%s: the fastest is %s on %s, %.0f samples/s", m->workloads[i],
                       fast->framework, fast->system, fast->samples_per_s);
        if (frugal != NULL)
            dl_text_printf(&text, "; the most energy-efficient is %s on %s, %.3g samples/J",
                           frugal->framework, frugal->system, frugal->samples_per_j);
        dl_text_add(&text, ".\n");
    }
    dl_text_printf(&text, "%d combination%s cannot run%s\n", m->impossible,
                   m->impossible == 1 ? "" : "s", m->impossible == 0 ? "." : ":");
    for (int i = 0; i < m->reason_count; i++)
        dl_text_printf(&text, "%7d  %s\n", m->reasons[i].count, m->reasons[i].why);
    return context->output(options, dl_text_string(&text), err);
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    enum dl_format format = DL_FORMAT_TEXT;
    struct dl_match *m = dl_arena_alloc(context->arena, 1, sizeof *m);
    struct dl_table table;
    struct dl_json_writer w;
    DL_TRY(dl_output_format(options, &format, err));
    DL_TRY(dl_match_run(context, options, m, err));
    fill(m, context->arena, &table);
    if (format == DL_FORMAT_CSV) return context->output(options, dl_table_csv(&table), err);
    if (format == DL_FORMAT_TEXT) return print_text(m, context, options, &table, err);
    dl_jw_init(&w, context->arena, false);
    dl_output_header(&w, "dlmodel-match");
    dl_jw_array(&w, "results");
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
    .summary = "which architecture for which framework and network: samples/s and samples/J",
    .usage = "[options]",
    .purpose =
        "Predicts every combination of the given systems, networks and frameworks on one "
        "node (--nodes, --devices-per-node: more or fewer) and prints samples per second and "
        "per joule of all nodes, hosts included, each with an 80 % interval. Energy follows "
        "from the model of power (help theory F-POWER, F-POWER-INTERVAL).",
    .examples = examples,
    .options = tables,
    .common = "systems workloads " DL_COMMON_INPUTS "price json help",
    .instead = "For one machine use predict.",
    .exit_notes = "1 when no combination can run",
    .few_notes = true,
    .run = run,
};
