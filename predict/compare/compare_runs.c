/* compare_runs.c - measured training runs next to their predictions. */
#include "predict/compare/compare_runs.h"

#include <math.h>
#include <string.h>

#include "model/framework/shared_host.h"
#include "predict/compare/decisions.h"

static double predicted_value(const struct dl_run_row *run, const struct dl_prediction *p) {
    return run->throughput ? p->throughput_samples_per_s : p->iteration_s;
}

static enum dl_code predict_run(const struct dl_run_row *run, double compute_scale,
                                struct dl_arena *arena, struct dl_prediction *p,
                                struct dl_err *err) {
    struct dl_plan plan = run->plan;
    plan.measured.compute_scale = compute_scale;
    return dl_predict(&(struct dl_predict_request){.system = run->system,
                                                   .workload = run->workload,
                                                   .framework = run->framework,
                                                   .plan = &plan,
                                                   .arena = arena},
                      p, err);
}

/* One prediction with kernel times times `scale`: what it lacks of the measured iteration, relative
 * to it, and the scale that would make it up if all but compute stayed. */
static enum dl_code try_scale(const struct dl_run_row *run, double measured, double scale,
                              double *lack_out, double *next_out, struct dl_err *err) {
    struct dl_arena arena = {0};
    struct dl_prediction p;
    const enum dl_code code = predict_run(run, scale, &arena, &p, err);
    dl_arena_free(&arena);
    DL_TRY(code);
    const double samples = p.iteration_s * p.throughput_samples_per_s;
    const double wanted_s = run->throughput ? samples / measured : measured;
    *lack_out = (wanted_s - p.iteration_s) / wanted_s;
    *next_out = scale * (1 + (wanted_s - p.iteration_s) / p.compute_s);
    return DL_OK;
}

/* The factor on all kernel times for which the prediction equals the measured value, or, where the
 * prediction jumps over it, the nearer side of the jump; NAN when even next to no compute takes
 * longer. Newton's steps within a bracket, and bisection where they leave it or stop short. */
static enum dl_code anchor_scale(const struct dl_run_row *run, double measured, double *scale_out,
                                 struct dl_err *err) {
    enum { STEPS = 60, NEWTON = 12 };
    const double least = 0.02, most = 1e6;
    double low = 0, high = most, scale = 1, best = INFINITY, lack, next;
    *scale_out = NAN;
    for (int i = 0; i < STEPS && high > low * (1 + 1e-6); i++) {
        DL_TRY(try_scale(run, measured, scale, &lack, &next, err));
        if (fabs(lack) < best) best = fabs(lack), *scale_out = scale;
        if (best < 1e-6) return DL_OK;
        if (lack > 0)
            low = scale;
        else
            high = scale;
        if (high <= least) break;
        const bool inside = next > fmax(low, least) && next < high && i < NEWTON;
        scale = inside ? next : low > 0 ? sqrt(low * high) : least;
    }
    if (!(low > 0)) *scale_out = NAN; /* it was never too fast */
    return DL_OK;
}

/* How its host or core differed from the model's assumptions; NULL: not noticeably. */
static const char *host_remark(const struct dl_run_rows *r, const struct dl_run_row *run) {
    static const double NOTICEABLE = 1.2;
    const struct dl_shared_host shared = dl_shared_host(run->system, &run->plan);
    if (shared.core_oversubscription_ratio > 1) {
        return dl_arena_printf(r->arena,
                               "oversubscribed %.3g times: %.0f devices time-slice a host for %.3g",
                               shared.core_oversubscription_ratio, shared.device_count,
                               shared.device_count / shared.core_oversubscription_ratio);
    }
    const double ratio = run->core_ratio;
    if (!dl_known(ratio) || (ratio < NOTICEABLE && ratio > 1 / NOTICEABLE)) return NULL;
    return dl_arena_printf(r->arena,
                           "its core was %.3g times %s than during the profile of its layers (a "
                           "fixed matrix multiplication)",
                           ratio > 1 ? ratio : 1 / ratio, ratio > 1 ? "slower" : "faster");
}

/* Both remarks of a run. */
static const char *remarks(const struct dl_run_rows *r, const struct dl_run_row *run) {
    if (run->release_remark == NULL || run->host_remark == NULL)
        return run->release_remark != NULL ? run->release_remark : run->host_remark;
    return dl_arena_printf(r->arena, "%s; %s", run->host_remark, run->release_remark);
}

/* The factor on the kernel times of a run from its group's anchor. DL_OK with the reason in
 * *why_out where there is none. */
static enum dl_code group_scale(const struct dl_run_rows *r, double *scales, int row,
                                double *scale_out, const char **why_out, struct dl_err *err) {
    const struct dl_run_group group = dl_run_group_of(r, row);
    const int base = group.anchor;
    *why_out = "used as its group's reference, or the only run in the group";
    if (base < 0 || dl_run_devices(&r->rows[row]) == dl_run_devices(&r->rows[base])) return DL_OK;
    if (scales[base] == 0) DL_TRY(anchor_scale(&r->rows[base], group.measured, &scales[base], err));
    *scale_out = scales[base];
    *why_out = dl_known(scales[base])
                   ? NULL
                   : "the smallest run of its group was faster than its predicted communication "
                     "and overhead alone: no factor on compute explains it";
    return DL_OK;
}

static void fill(const struct dl_run_rows *r, struct dl_run_row *run, const struct dl_prediction *p,
                 struct dl_compared *out, struct dl_prediction *kept) {
    const double samples = p->iteration_s * p->throughput_samples_per_s;
    out->samples_per_iteration = samples;
    out->iteration_s = p->iteration_s;
    out->predicted = predicted_value(run, p);
    out->error_pct = 100 * (out->predicted - out->measured) / out->measured;
    out->low = run->throughput ? samples / p->iteration_high_s : p->iteration_low_s;
    out->high = run->throughput ? samples / p->iteration_low_s : p->iteration_high_s;
    out->bottleneck = dl_bottleneck_names[p->bottleneck];
    run->host_remark = host_remark(r, run);
    out->remark = remarks(r, run);
    *kept = *p; /* its numbers; its pointers are freed */
    kept->warnings = NULL, kept->terms = NULL, kept->warning_count = kept->term_count = 0;
    kept->messages.algorithm = kept->messages.protocol = NULL;
    out->modelled =
        (struct dl_modelled){run->system, run->workload, run->framework, &run->plan, kept};
}

static uint64_t plan_hash(const void *context, int row) {
    const struct dl_run_row *run = &((const struct dl_run_rows *)context)->rows[row];
    return dl_hash_bytes(dl_hash_bytes(DL_HASH_START, &run->workload, sizeof run->workload),
                         &run->plan, sizeof run->plan);
}

/* Rows with the same plan have the same prediction. (Padding may make equal plans differ: they are
 * then predicted twice.) */
static bool plan_equal(const void *context, int a, int b) {
    const struct dl_run_row *all = ((const struct dl_run_rows *)context)->rows;
    return all[a].why == NULL && all[b].why == NULL && all[a].system == all[b].system &&
           all[a].workload == all[b].workload && all[a].framework == all[b].framework &&
           memcmp(&all[a].plan, &all[b].plan, sizeof all[a].plan) == 0;
}

/* What row `first`, with the same plan, gave. */
static void compare_again(const struct dl_run_rows *r, int row, const struct dl_compared *first,
                          const struct dl_prediction *p, struct dl_compared *out,
                          struct dl_prediction *kept) {
    out->skipped = first->skipped;
    out->why = first->why;
    if (!out->skipped) fill(r, &r->rows[row], p, out, kept);
}

/* scales: of the groups that one of their runs anchors; NULL: none does. */
static enum dl_code compare_row(struct dl_run_rows *r, double *scales, int row,
                                struct dl_compared *out, struct dl_prediction *kept,
                                struct dl_err *err) {
    struct dl_run_row *run = &r->rows[row];
    double scale = 0;
    out->why = run->why;
    if (scales != NULL && run->why == NULL)
        DL_TRY(group_scale(r, scales, row, &scale, &out->why, err));
    out->skipped = out->why != NULL;
    if (out->skipped) return DL_OK;
    struct dl_arena arena = {0};
    struct dl_prediction p;
    struct dl_err inner = {0};
    const enum dl_code code = predict_run(run, scale, &arena, &p, &inner);
    if (code == DL_OK) fill(r, run, &p, out, kept);
    dl_arena_free(&arena);
    out->skipped = code == DL_ERR_USAGE || code == DL_ERR_INPUT;
    if (out->skipped) out->why = dl_arena_strdup(r->arena, inner.message);
    if (code == DL_OK || out->skipped) return DL_OK;
    *err = inner;
    return code;
}

/* A row before its prediction. */
static struct dl_compared begin(const struct dl_run_rows *r, int row) {
    return (struct dl_compared){
        .id = dl_run_cell(r, row, DL_RUN_ID),
        .source = dl_run_cell(r, row, DL_RUN_SOURCE),
        .system = dl_run_cell(r, row, DL_RUN_SYSTEM),
        .framework = dl_run_cell(r, row, DL_RUN_FRAMEWORK),
        .workload = dl_run_cell(r, row, DL_RUN_WORKLOAD),
        .unit = r->rows[row].throughput ? "samples/s" : "s",
        .measured = r->rows[row].measured,
        .predicted = NAN,
        .error_pct = NAN,
        .low = NAN,
        .high = NAN,
        .samples_per_iteration = NAN,
        .iteration_s = NAN,
        .decision = dl_decision_keys(r, row),
        .devices = dl_run_devices(&r->rows[row]),
    };
}

static void find_causes(const struct dl_run_evidence *e, struct dl_compared *rows) {
    for (int i = 0; i < e->runs.csv->row_count; i++) {
        rows[i].evidence = e;
        rows[i].run = i;
        dl_compared_explain(&rows[i],
                            dl_run_is_slow(e, i, rows[i].measured)
                                ? dl_run_causes(e, i, rows[i].measured, e->runs.arena)
                                : NULL,
                            e->runs.arena);
    }
}

/* All rows of the table next to their predictions. */
static enum dl_code compare_rows(struct dl_run_evidence *e, bool anchor, struct dl_comparison *out,
                                 struct dl_err *err) {
    struct dl_run_rows *r = &e->runs;
    const struct dl_class_keys keys = {plan_hash, plan_equal, r};
    const int count = r->csv->row_count, first = out->count;
    const struct dl_classes plans = dl_classes_make(&keys, count, out->arena);
    double *scales = dl_arena_alloc(out->arena, (size_t)count, sizeof *scales);
    e->kept = dl_arena_alloc(out->arena, (size_t)count, sizeof *e->kept);
    for (int row = 0; row < count; row++) {
        struct dl_compared *compared = dl_comparison_add(out);
        *compared = begin(r, row);
        compared->elsewhere = !dl_comparison_mine(out, r->alike.first[row]);
        if (compared->elsewhere) {
            compared->skipped = true;
            continue;
        }
        const int same = plans.first[row]; /* an anchor scales runs of one plan differently */
        if (same < row && !anchor && !out->rows[first + same].elsewhere)
            compare_again(r, row, &out->rows[first + same], &e->kept[same], compared,
                          &e->kept[row]);
        else
            DL_TRY(compare_row(r, anchor ? scales : NULL, row, compared, &e->kept[row], err));
    }
    return DL_OK;
}

enum dl_code dl_compare_runs(const struct dl_data *data, const struct dl_csv *csv, bool anchor,
                             struct dl_comparison *out, struct dl_err *err) {
    struct dl_run_evidence *e = dl_arena_alloc(out->arena, 1, sizeof *e);
    const int first = out->count;
    DL_TRY(dl_run_rows_read(data, csv, out->arena, &e->runs, err));
    e->anchored = anchor;
    DL_TRY(compare_rows(e, anchor, out, err));
    /* rows of later tables may move those of this one */
    struct dl_compared *rows = dl_arena_alloc(out->arena, (size_t)csv->row_count, sizeof *rows);
    if (csv->row_count > 0) memcpy(rows, &out->rows[first], (size_t)csv->row_count * sizeof *rows);
    e->rows = rows;
    dl_run_evidence_make(e);
    find_causes(e, &out->rows[first]);
    return DL_OK;
}
