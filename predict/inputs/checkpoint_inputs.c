/* checkpoint_inputs.c - see the header. */
#include "predict/inputs/checkpoint_inputs.h"

#include <string.h>

struct request {
    const char *interval; /* NULL: not given */
};
#define REQUEST(member) struct request, member
const struct dl_option dl_checkpoint_options[] = {
    {"checkpoint", 0, "best|TIME", "Plan",
     "print the cost of checkpoints and failures for the best interval (Daly) or a given one, e.g. "
     "30min; the system must have node_mtbf_s and storage.write_bytes_per_s, e.g. by --set "
     "node_mtbf=20000h",
     DL_TEXT(REQUEST(interval))},
    {.name = NULL},
};

/* *given: whether it was requested; the interval, 0: the best. */
static enum dl_code interval_of(const struct dl_options *options, bool *given, double *interval_s,
                                struct dl_err *err) {
    struct request request = {.interval = NULL};
    DL_TRY(dl_options_bind(options, dl_checkpoint_options, &request, err));
    const char *text = request.interval;
    *given = text != NULL, *interval_s = 0;
    if (text == NULL || strcmp(text, "best") == 0) return DL_OK;
    if (dl_units_parse(text, DL_UNIT_S, interval_s, err) != DL_OK || !(*interval_s > 0)) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--checkpoint: expected best or a time above 0 such as 30min, got \"%.60s\"",
                       text);
    }
    return DL_OK;
}

static enum dl_code plan_of(const struct dl_prediction_row *row, double interval_s,
                            struct dl_checkpoint *out, struct dl_err *err) {
    if (row->prediction->group_count > 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--checkpoint: a --heterogeneous job has no single system to write from");
    return dl_checkpoint_plan(row->system, row->workload, row->plan, row->prediction, interval_s,
                              out, err);
}

enum dl_code dl_checkpoint_text(struct dl_context *context, const struct dl_options *options,
                                const struct dl_prediction_row *row, const char **out,
                                struct dl_err *err) {
    bool given;
    double interval_s;
    struct dl_checkpoint c;
    char bytes[32], write[32], mtbf[32], interval[32], daly[32], loss[32];
    *out = "";
    DL_TRY(interval_of(options, &given, &interval_s, err));
    if (!given) return DL_OK;
    DL_TRY(plan_of(row, interval_s, &c, err));
    dl_units_format(c.bytes, DL_UNIT_BYTE, bytes, sizeof bytes);
    dl_units_format(c.write_s, DL_UNIT_S, write, sizeof write);
    dl_units_format(c.job_mtbf_s, DL_UNIT_S, mtbf, sizeof mtbf);
    dl_units_format(c.interval_s, DL_UNIT_S, interval, sizeof interval);
    dl_units_format(c.daly_s, DL_UNIT_S, daly, sizeof daly);
    dl_units_format(c.loss_s, DL_UNIT_S, loss, sizeof loss);
    *out = dl_arena_printf(context->arena,
                           "Checkpoints of %s (%s, %s on %lld node%s): %s each from %lld node%s, "
                           "one every %s (%.0f iterations; F-CKPT-DALY: best %s). A failure every "
                           "%s loses %s; in total %.2f %% more time.\n",
                           row->framework->name, dl_optimizer_names[row->plan->optimizer], bytes,
                           (long long)row->plan->nodes, row->plan->nodes == 1 ? "" : "s", write,
                           (long long)c.writer_nodes, c.writer_nodes == 1 ? "" : "s", interval,
                           c.steps, daly, mtbf, loss, 100 * (c.stretch_ratio - 1));
    return *out == NULL ? dl_fail(err, DL_ERR_SYSTEM, "out of memory") : DL_OK;
}

enum dl_code dl_checkpoint_json(const struct dl_options *options,
                                const struct dl_prediction_row *row, struct dl_json_writer *writer,
                                struct dl_err *err) {
    bool given;
    double interval_s;
    struct dl_checkpoint c;
    DL_TRY(interval_of(options, &given, &interval_s, err));
    if (!given) return DL_OK;
    DL_TRY(plan_of(row, interval_s, &c, err));
    dl_jw_object(writer, "checkpoint");
    dl_jw_number(writer, "bytes", c.bytes);
    dl_jw_integer(writer, "writer_nodes", c.writer_nodes);
    dl_jw_number(writer, "write_s", c.write_s);
    dl_jw_number(writer, "job_mtbf_s", c.job_mtbf_s);
    dl_jw_number(writer, "restart_s", c.restart_s);
    dl_jw_number(writer, "young_interval_s", c.young_s);
    dl_jw_number(writer, "best_interval_s", c.daly_s);
    dl_jw_number(writer, "interval_s", c.interval_s);
    dl_jw_number(writer, "interval_iterations", c.steps);
    dl_jw_number(writer, "stretch_ratio", c.stretch_ratio);
    dl_jw_number(writer, "loss_s", c.loss_s);
    dl_jw_number(writer, "epoch_s", c.epoch_s);
    dl_jw_end(writer);
    return DL_OK;
}
