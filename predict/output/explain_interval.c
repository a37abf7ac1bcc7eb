/* explain_interval.c - see explain_interval.h. */
#include "predict/output/explain_interval.h"

#include <math.h>

#include "model/core/text.h"
#include "model/engine/correct.h"
#include "predict/output/explain_table.h"
#include "predict/manual/wrap.h"

#define LEAST_SHARE 0.1 /* of the interval's square: smaller parts are not named */

static const struct {
    const char *key, *text;
} names[DL_WIDTHS] = {
    [DL_WIDTH_ALL] = {"all", "any run"},
    [DL_WIDTH_FRAMEWORK] = {"framework", "a framework without measured runs"},
    [DL_WIDTH_RELEASE] = {"release", "a release without measured runs in this precision"},
    [DL_WIDTH_DEVICE] = {"device", "few measured runs of the device in this precision"},
    [DL_WIDTH_COMMUNICATION] = {"communication", "exposed communication"},
    [DL_WIDTH_OVERHEAD] = {"overhead", "the host's pace, waits and bubbles"},
    [DL_WIDTH_MIXED] = {"mixed", "automatic mixed precision"},
    [DL_WIDTH_KERNELS] = {"kernels", "spread of the kernels' and collectives' models"},
    [DL_WIDTH_NETWORK] = {"network", "a network without measured runs"},
    [DL_WIDTH_ASSUMED] = {"assumed_release", "the release is not given (--release)"},
    [DL_WIDTH_STRANGER] = {"stranger", "no measured runs of the framework on this system"},
    [DL_WIDTH_SETUP] = {"setup", "no measured set-up of several devices on this system"},
    [DL_WIDTH_STRANGER_COMMUNICATION] = {"stranger_communication",
                                         "exposed communication on a system without such runs"},
    [DL_WIDTH_STRANGER_OVERHEAD] =
        {"stranger_overhead", "the host's pace, waits and bubbles on a system without such runs"},
};

/* What the interval follows from. */
struct interval {
    const struct dl_interval_model *model;
    struct dl_interval_case what;
    double parts[DL_WIDTHS]; /* squares of the slow end */
    double slow_log, after_one_log;
};

/* Slow end after one run of one's own on one device, as predicted: of the same job, without
 * communication and waits for others. */
static double after_one(const struct interval *i, const char *workload, struct dl_arena *arena) {
    struct dl_measured_run run = {.what = i->what, .workload = workload};
    const struct dl_posterior *posterior;
    struct dl_err err;
    run.what.exposed_frac = run.what.overhead_frac = run.what.waits_frac = 0;
    run.what.devices = 1;
    if (dl_posterior_make(i->model, &run, 1, arena, &posterior, &err) != DL_OK) return NAN;
    const struct dl_posterior_shift shift = dl_posterior_shift(posterior, workload, &i->what);
    return dl_posterior_end_log(posterior, &shift, i->slow_log);
}

/* false: nothing is known of errors, or runs of one's own set the interval. */
static bool find(const struct dl_prediction_row *row, struct dl_arena *arena,
                 struct interval *out) {
    const struct dl_framework_errors *errors = &row->framework->errors;
    if (errors->intervals == NULL || errors->measured != NULL ||
        !(row->prediction->iteration_s > 0))
        return false;
    out->model = errors->intervals;
    out->what =
        dl_interval_case_of(row->system, row->workload, row->framework, row->plan, row->prediction);
    out->slow_log = dl_interval_end_log(out->model, &out->what, DL_SLOW_END, out->parts);
    out->after_one_log = after_one(out, row->workload->name, arena);
    return out->slow_log > 0;
}

static double percent(double log_end) { return 100 * expm1(log_end); }

/* The largest part below `most`; DL_WIDTHS: none that counts. */
static int largest_below(const struct interval *i, double most) {
    int largest = DL_WIDTHS;
    for (int k = 0; k < DL_WIDTHS; k++) {
        if (!(i->parts[k] < most) || i->parts[k] < LEAST_SHARE * i->slow_log * i->slow_log)
            continue;
        if (largest == DL_WIDTHS || i->parts[k] > i->parts[largest]) largest = k;
    }
    return largest;
}

const char *dl_explain_interval_text(const struct dl_prediction_row *row, struct dl_arena *arena) {
    struct interval i;
    struct dl_text t = {.arena = arena}, lines = {.arena = arena};
    if (!find(row, arena, &i)) return "";
    dl_text_printf(&t, "its slow end, +%.0f %%, comes from", percent(i.slow_log));
    const char *between = " ";
    for (int k = largest_below(&i, HUGE_VAL); k < DL_WIDTHS; k = largest_below(&i, i.parts[k])) {
        dl_text_printf(&t, "%s%s (%.0f %%)", between, names[k].text, percent(sqrt(i.parts[k])));
        between = ", ";
    }
    if (i.after_one_log < i.slow_log)
        dl_text_printf(&t, "; one measured run on one device (--measured): %.0f -> %.0f %%",
                       percent(i.slow_log), percent(i.after_one_log));
    dl_text_add(&lines, "             ");
    dl_text_wrap(&lines, dl_text_string(&t), 13, DL_EXPLAIN_WIDTH);
    return dl_text_string(&lines);
}

void dl_explain_interval_json(const struct dl_prediction_row *row, struct dl_json_writer *writer) {
    struct interval i;
    struct dl_arena arena = {0};
    dl_jw_object(writer, "interval_parts");
    if (find(row, &arena, &i)) {
        for (int k = 0; k < DL_WIDTHS; k++) dl_jw_number(writer, names[k].key, sqrt(i.parts[k]));
        dl_jw_number(writer, "slow_log", i.slow_log);
        dl_jw_number(writer, "slow_log_after_one_run", i.after_one_log);
    }
    dl_jw_end(writer);
    dl_arena_free(&arena);
}
