/* cmd_match.c - which architecture for which framework and network: samples per second and per
 * joule of every combination. */
#include <math.h>
#include <string.h>

#include "model/base/text.h"
#include "model/hardware/kernel.h"
#include "predict/inputs/advise_judge.h"

enum { MOST_NAMES = 64, MOST_ROWS = 4096 };
static const double Z80 = 1.2815515655446004;

struct asked {
    const char *systems, *workloads;
};
#define ASKED(member) struct asked, member

static const struct dl_option own_options[] = {
    {"systems", 0, "NAME,...", "Match",
     "systems to compare; default: cartesius-knl,das5-titanx,iris-v100", DL_TEXT(ASKED(systems))},
    {"workloads", 0, "NAME,...", "Match", "networks to compare; default: resnet50,vgg16,bert_base",
     DL_TEXT(ASKED(workloads))},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {own_options, dl_input_options, dl_output_options,
                                                 NULL};
static const char *const examples[] = {
    "dlmodel match",
    "dlmodel match --systems iris-v100,das5-titanx --workloads resnet50 --framework "
    "pytorch-ddp,mxnet-device --json",
    NULL,
};

static const struct dl_column columns[] = {
    {"workload", "workload", "", DL_COLUMN_STRING, 0, 0},
    {"framework", "framework", "", DL_COLUMN_STRING, 0, 0},
    {"system", "system", "", DL_COLUMN_STRING, 0, 0},
    {"device", "device", "", DL_COLUMN_STRING, 0, 0},
    {"throughput_samples_per_s", "samples", "1/s", DL_COLUMN_NUMBER, 1, 3},
    {"throughput_low_samples_per_s", "low", "1/s", DL_COLUMN_NUMBER, 1, 3},
    {"throughput_high_samples_per_s", "high", "1/s", DL_COLUMN_NUMBER, 1, 3},
    {"samples_per_joule", "samples", "1/J", DL_COLUMN_NUMBER, 1, 3},
    {"samples_per_joule_low", "low", "1/J", DL_COLUMN_NUMBER, 1, 3},
    {"samples_per_joule_high", "high", "1/J", DL_COLUMN_NUMBER, 1, 3},
    {"fits", "fits", "", DL_COLUMN_BOOL, 0, 0},
};

struct row {
    const char *workload, *framework, *system, *device;
    double rate, rate_low, rate_high, per_j, per_j_low, per_j_high;
    bool fits;
};

struct match {
    struct dl_context *context;
    const struct dl_options *options;
    struct row *rows;
    int count, impossible;
};

/* "a,b,c" into names; returns how many, -1: too many or out of memory. A workload with parameters
 * holds commas: "gpt:layers=24,hidden=1024" counts as one when it is alone. */
static int split(struct dl_arena *arena, const char *list, const char **names) {
    int count = 0;
    if (strchr(list, ':') != NULL) {
        names[0] = list;
        return 1;
    }
    for (const char *s = list;; s++) {
        const size_t length = strcspn(s, ",");
        if (count == MOST_NAMES) return -1;
        names[count] = dl_arena_strndup(arena, s, length);
        if (names[count++] == NULL) return -1;
        s += length;
        if (*s == 0) return count;
    }
}

static enum dl_code add(struct match *m, const char *system, const char *workload,
                        const char *framework, struct dl_err *err) {
    const struct dl_advise_change change = {
        .options = {{"system", system}, {"workload", workload}, {"framework", framework}},
        .option_count = 3};
    struct dl_options merged;
    struct dl_verdict v;
    DL_TRY(dl_advise_options(m->context->arena, m->options, &change, &merged, err));
    DL_TRY(dl_advise_judge(m->context, &merged, NULL, &v, err));
    if (!v.possible) {
        m->impossible++;
        return DL_OK;
    }
    if (m->count == MOST_ROWS)
        return dl_fail(err, DL_ERR_USAGE, "more than %d combinations", MOST_ROWS);
    const struct dl_prediction *p = &v.prediction;
    const double rate = p->throughput_samples_per_s, per_j = rate / v.job_w,
                 half = log(p->iteration_high_s / p->iteration_s), power = Z80 * v.power_sigma_log;
    m->rows[m->count++] = (struct row){.workload = workload,
                                       .framework = framework,
                                       .system = system,
                                       .device = v.device,
                                       .rate = rate,
                                       .rate_low = rate * p->iteration_s / p->iteration_high_s,
                                       .rate_high = rate * p->iteration_s / p->iteration_low_s,
                                       .per_j = per_j,
                                       .per_j_low = per_j * exp(-hypot(half, power)),
                                       .per_j_high = per_j * exp(hypot(half, power)),
                                       .fits = p->fits};
    return DL_OK;
}

static const struct row *best(const struct match *m, const char *workload, bool by_energy) {
    const struct row *found = NULL;
    for (int i = 0; i < m->count; i++) {
        const struct row *r = &m->rows[i];
        const double value = by_energy ? r->per_j : r->rate;
        if (strcmp(r->workload, workload) != 0 || !r->fits || !dl_known(value)) continue;
        if (found == NULL || value > (by_energy ? found->per_j : found->rate)) found = r;
    }
    return found;
}

static enum dl_code fill(struct match *m, struct dl_table *table, struct dl_err *err) {
    dl_table_init(table, m->context->arena, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < m->count; i++) {
        const struct row *r = &m->rows[i];
        union dl_cell *c = dl_table_row(table);
        if (c == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
        c[0].string = r->workload;
        c[1].string = r->framework;
        c[2].string = r->system;
        c[3].string = r->device;
        const double values[] = {r->rate,  r->rate_low,  r->rate_high,
                                 r->per_j, r->per_j_low, r->per_j_high};
        for (int k = 0; k < 6; k++) c[4 + k].number = values[k];
        c[10].boolean = r->fits;
    }
    return DL_OK;
}

static enum dl_code print(struct match *m, const char *const *workloads, int workload_count,
                          enum dl_format format, struct dl_err *err) {
    struct dl_table table;
    struct dl_text text = {.arena = m->context->arena};
    struct dl_json_writer w;
    DL_TRY(fill(m, &table, err));
    if (format == DL_FORMAT_CSV) return m->context->output(m->options, dl_table_csv(&table), err);
    if (format == DL_FORMAT_JSON) {
        dl_jw_init(&w, m->context->arena, false);
        dl_output_header(&w, "dlmodel-match");
        dl_jw_array(&w, "results");
        dl_table_json(&table, &w);
        dl_jw_end(&w);
        dl_jw_integer(&w, "impossible", m->impossible);
        dl_jw_end(&w);
        return m->context->output(
            m->options, w.failed ? NULL : dl_arena_printf(m->context->arena, "%s\n", w.text), err);
    }
    dl_text_printf(&text, "%s\n", dl_table_text(&table));
    for (int i = 0; i < workload_count; i++) {
        const struct row *fast = best(m, workloads[i], false),
                         *frugal = best(m, workloads[i], true);
        if (fast == NULL) continue;
        dl_text_printf(&text, "%s: the fastest is %s on %s, %.4g samples/s", workloads[i],
                       fast->framework, fast->system, fast->rate);
        if (frugal != NULL)
            dl_text_printf(&text, "; the least energy takes %s on %s, %.3g samples/J",
                           frugal->framework, frugal->system, frugal->per_j);
        dl_text_add(&text, ".\n");
    }
    dl_text_printf(&text, "%d combinations cannot run.\n", m->impossible);
    return m->context->output(m->options, m->context->arena->failed ? NULL : dl_text_string(&text),
                              err);
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    enum dl_format format = DL_FORMAT_TEXT;
    struct asked asked = {"cartesius-knl,das5-titanx,iris-v100", "resnet50,vgg16,bert_base"};
    const char *systems[MOST_NAMES], *workloads[MOST_NAMES];
    struct dl_inputs *inputs = dl_arena_alloc(context->arena, 1, sizeof *inputs);
    struct match m = {.context = context, .options = options};
    m.rows = dl_arena_alloc(context->arena, MOST_ROWS, sizeof *m.rows);
    if (inputs == NULL || m.rows == NULL) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    DL_TRY(dl_output_format(options, &format, err));
    DL_TRY(dl_options_bind(options, own_options, &asked, err));
    if (dl_option_given(options, "system") || dl_option_given(options, "workload"))
        return dl_fail(err, DL_ERR_USAGE, "match compares several: give --systems and --workloads");
    DL_TRY(dl_inputs_load(context, options, inputs, err)); /* checks, and names frameworks */
    const int system_count = split(context->arena, asked.systems, systems),
              workload_count = split(context->arena, asked.workloads, workloads);
    if (system_count < 1 || workload_count < 1)
        return dl_fail(err, DL_ERR_USAGE, "--systems, --workloads: at most %d names", MOST_NAMES);
    for (int s = 0; s < system_count; s++) { /* unknown names are errors, not impossible plans */
        const struct dl_system *known;
        DL_TRY(dl_data_system(&context->data, systems[s], context->arena, &known, err));
    }
    for (int w = 0; w < workload_count; w++) {
        const struct dl_workload *known;
        DL_TRY(dl_data_workload(&context->data, workloads[w], context->arena, &known, err));
        for (int f = 0; f < inputs->framework_count; f++)
            for (int s = 0; s < system_count; s++)
                DL_TRY(add(&m, systems[s], workloads[w], inputs->frameworks[f]->name, err));
    }
    if (m.count == 0)
        return dl_fail(err, DL_ERR_NO, "none of %d combinations can run", m.impossible);
    return print(&m, workloads, workload_count, format, err);
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
    .exit_notes = "1 when no combination can run",
    .run = run,
};
