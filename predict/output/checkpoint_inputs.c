/* checkpoint_inputs.c - see the header. */
#include "predict/output/checkpoint_inputs.h"

#include <string.h>

#include "model/core/columns.h"
#include "model/core/text.h"

#define DEFAULT_PROBE "checkpoints/xeon_2_cores.csv"

struct request {
    const char *interval; /* NULL: not given */
    const char *formats, *probe;
    double interval_s;
};
#define REQUEST(member) struct request, member
const struct dl_option dl_checkpoint_options[] = {
    {"checkpoint", 0, "best|TIME", "Plan: checkpoints",
     "print the cost of checkpoints and failures for the best interval (Daly) or a given one, e.g. "
     "30min; the system must have storage.write_bytes_per_s; without node_mtbf_s a failure in "
     "50,700 device-hours is assumed, as in the training of Llama 3",
     DL_TEXT(REQUEST(interval))},
    {"checkpoint-format", 0, "NAME,...|all", "Plan: checkpoints",
     "format of the checkpoints ('dlmodel list checkpoints'), or several to compare; default: what "
     "the framework writes",
     DL_TEXT(REQUEST(formats))},
    {"checkpoint-probe", 0, "FILE", "Plan: checkpoints",
     "table of checkpoints that tests/checkpoint/run.sh measured on the machine: what formats cost "
     "its cores; default: a measured 2-core Xeon",
     DL_TEXT(REQUEST(probe))},
    {.name = NULL},
};

static enum dl_code read_request(const struct dl_options *options, struct request *out,
                                 struct dl_err *err) {
    *out = (struct request){.interval = NULL};
    DL_TRY(dl_options_bind(options, dl_checkpoint_options, out, err));
    const char *text = out->interval;
    if (text == NULL || strcmp(text, "best") == 0) return DL_OK;
    if (dl_units_parse(text, DL_UNIT_S, &out->interval_s, err) != DL_OK || !(out->interval_s > 0)) {
        return dl_fail(err, DL_ERR_USAGE,
                       "--checkpoint: expected best or a time above 0 such as 30min, got \"%.60s\"",
                       text);
    }
    return DL_OK;
}

static enum dl_code read_costs(struct dl_context *context, const char *given,
                               struct dl_checkpoint_way *way, struct dl_err *err) {
    struct dl_checkpoint_cost *costs = dl_arena_alloc(context->arena, 2, sizeof *costs);
    /* the probe that the user names, else that of the data directories */
    const char *path =
        given != NULL ? given : dl_data_file(&context->data, DEFAULT_PROBE, context->arena);
    struct dl_csv csv;
    bool known;
    if (path == NULL) return DL_OK;
    DL_TRY(dl_csv_read(path, context->arena, &csv, err));
    DL_TRY(dl_checkpoint_cost_read(&csv, way->format, false, &costs[0], &known, err));
    if (known) way->cost = &costs[0];
    if (!way->format->is_async) return DL_OK;
    DL_TRY(dl_checkpoint_cost_read(&csv, way->format, true, &costs[1], &known, err));
    if (known) way->blocking = &costs[1];
    return DL_OK;
}

enum dl_code dl_checkpoint_way_read(struct dl_context *context, const struct dl_options *options,
                                    const struct dl_framework *framework, const char *name,
                                    struct dl_checkpoint_way *way, struct dl_err *err) {
    struct request request;
    DL_TRY(read_request(options, &request, err));
    *way = (struct dl_checkpoint_way){.interval_s = request.interval_s};
    if (name == NULL) name = framework->checkpoint;
    if (name == NULL) return DL_OK;
    way->format = dl_checkpoint_format_find(name);
    if (way->format == NULL) {
        return dl_fail(err, DL_ERR_USAGE,
                       "checkpoint format \"%.60s\" is unknown: see dlmodel list checkpoints",
                       name);
    }
    return read_costs(context, request.probe, way, err);
}

static enum dl_code plan_of(struct dl_context *context, const struct dl_options *options,
                            const struct dl_prediction_row *row, const char *name,
                            struct dl_checkpoint_way *way, struct dl_checkpoint *out,
                            struct dl_err *err) {
    if (row->prediction->group_count > 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "--checkpoint: a --heterogeneous job has no single system to write from");
    DL_TRY(dl_checkpoint_way_read(context, options, row->framework, name, way, err));
    return dl_checkpoint_plan(row->system, row->workload, row->plan, row->prediction, way, out,
                              err);
}

enum { MAX_FORMATS = DL_CHECKPOINT_FORMATS };
enum dl_code dl_checkpoint_formats_asked(struct dl_context *context,
                                         const struct dl_options *options, const char **names,
                                         int *count, struct dl_err *err) {
    struct request request;
    DL_TRY(read_request(options, &request, err));
    const char *text = request.formats;
    *count = 0;
    names[0] = NULL;
    if (text != NULL && strcmp(text, "all") == 0) {
        while (dl_checkpoint_formats[*count] != NULL && *count < MAX_FORMATS) {
            names[*count] = dl_checkpoint_formats[*count]->name;
            *count += 1;
        }
        return DL_OK;
    }
    if (text == NULL) *count = 1;
    for (const char *name; (name = dl_list_next(&text, context->arena)) != NULL;) {
        if (name[0] == 0 || *count == MAX_FORMATS)
            return dl_fail(err, DL_ERR_USAGE,
                           "--checkpoint-format: expected all or 1 to %d names between commas",
                           MAX_FORMATS);
        names[(*count)++] = name;
    }
    return DL_OK;
}

/* What the columns show of one format's checkpoints. */
struct facts {
    struct dl_checkpoint c;
    const char *format, *writers, *saves, *also;
};
#define SHOWN(member, key, heading, unit, scale, digits)                                           \
    DL_SHOWN(struct facts, member, key, heading, unit, scale, digits, 0, NULL)
#define HIDDEN(member, key) DL_HIDDEN(struct facts, member, key, NULL)
static const struct dl_list_column columns[] = {
    SHOWN(format, "format", "format", "", 0, 0),
    SHOWN(writers, "writers", "written by", "", 0, 0),
    SHOWN(c.bytes, "bytes", "size", "GB", 1e9, 4),
    HIDDEN(c.writer_nodes, "writer_nodes"),
    SHOWN(c.serialize_s, "serialize_s", "cores", "s", 0, 3),
    SHOWN(c.write_s, "write_s", "write", "s", 0, 3),
    SHOWN(c.blocked_s, "blocked_s", "blocks", "s", 0, 3),
    HIDDEN(c.job_mtbf_s, "job_mtbf_s"),
    HIDDEN(c.restart_s, "restart_s"),
    HIDDEN(c.young_s, "young_interval_s"),
    HIDDEN(c.daly_s, "best_interval_s"),
    SHOWN(c.interval_s, "interval_s", "every", "min", 60, 3),
    HIDDEN(c.steps, "interval_iterations"),
    HIDDEN(c.stretch_ratio, "stretch_ratio"),
    SHOWN(c.goodput_frac, "goodput_frac", "goodput", "%", 0.01, 5),
    HIDDEN(c.loss_s, "loss_s"),
    HIDDEN(c.epoch_s, "epoch_s"),
    HIDDEN(c.local_write_s, "local_write_s"),
    HIDDEN(c.local_interval_s, "local_interval_s"),
    HIDDEN(c.global_interval_s, "global_interval_s"),
    SHOWN(c.two_level_goodput_frac, "two_level_goodput_frac", "two levels", "%", 0.01, 5),
    SHOWN(saves, "saves", "saves", "", 0, 0),
    HIDDEN(also, "restart_also_needs"),
};

static struct facts facts_of(const struct dl_checkpoint_way *way, const struct dl_checkpoint *c,
                             struct dl_arena *arena) {
    const struct dl_checkpoint_format *f = way->format;
    if (f == NULL) return (struct facts){.c = *c, .format = "", .writers = "", .saves = ""};
    return (struct facts){*c, f->name, dl_checkpoint_writer_names[f->writers],
                          dl_checkpoint_saves_text(f, arena), f->also};
}

/* The table of the formats asked for. */
static enum dl_code table_of(struct dl_context *context, const struct dl_options *options,
                             const struct dl_prediction_row *row, const char *const *names,
                             int count, struct dl_table *table, struct dl_err *err) {
    struct dl_checkpoint c;
    struct dl_checkpoint_way way;
    dl_list_table(table, context->arena, DL_LIST(columns), 0);
    for (int i = 0; i < count; i++) {
        DL_TRY(plan_of(context, options, row, names[i], &way, &c, err));
        const struct facts facts = facts_of(&way, &c, context->arena);
        dl_list_add(table, columns, &facts);
    }
    return DL_OK;
}

static const char *sentence(struct dl_context *context, const struct dl_prediction_row *row,
                            const struct dl_checkpoint_way *way, const struct dl_checkpoint *c) {
    char bytes[32], write[32], mtbf[32], interval[32], daly[32], loss[32], blocks[32];
    const struct {
        double value;
        enum dl_unit unit;
        char *text;
    } shown[] = {{c->bytes, DL_UNIT_BYTE, bytes},  {c->write_s, DL_UNIT_S, write},
                 {c->job_mtbf_s, DL_UNIT_S, mtbf}, {c->interval_s, DL_UNIT_S, interval},
                 {c->daly_s, DL_UNIT_S, daly},     {c->loss_s, DL_UNIT_S, loss},
                 {c->blocked_s, DL_UNIT_S, blocks}};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        dl_units_format(shown[i].value, shown[i].unit, shown[i].text, 32);
    struct dl_text t = {.arena = context->arena};
    dl_text_printf(&t,
                   "Checkpoints of %s (%s, %s%s%s on %lld node%s): %s each from %lld node%s, one "
                   "every %s (%.0f iterations; F-CKPT-DALY: best %s).",
                   row->framework->name, dl_optimizer_names[row->plan->optimizer], bytes,
                   way->format == NULL ? "" : " as ", way->format == NULL ? "" : way->format->name,
                   (long long)row->plan->nodes, row->plan->nodes == 1 ? "" : "s", write,
                   (long long)c->writer_nodes, c->writer_nodes == 1 ? "" : "s", interval, c->steps,
                   daly);
    if (c->blocked_s < c->write_s) dl_text_printf(&t, " Training waits %s for each.", blocks);
    dl_text_printf(
        &t, " A failure every %s%s loses %s; in total %.2f %% more time: goodput %.2f %%.", mtbf,
        c->mtbf_assumed ? " (assumed, as in the training of Llama 3: a failure in 50,700 "
                          "device-hours; --set node_mtbf=20000h)"
                        : "",
        loss, 100 * (c->stretch_ratio - 1), 100 * c->goodput_frac);
    if (dl_known(c->two_level_goodput_frac))
        dl_text_printf(&t,
                       " With node-local ones every %.0f s and one on the file system every %.0f s "
                       "(F-CKPT-TWO-LEVEL): goodput %.2f %%.",
                       c->local_interval_s, c->global_interval_s, 100 * c->two_level_goodput_frac);
    if (way->format != NULL)
        dl_text_printf(&t, " Saved: %s.%s%s%s", dl_checkpoint_saves_text(way->format, t.arena),
                       way->format->also == NULL ? "" : " A bit-exact restart also needs: ",
                       way->format->also == NULL ? "" : way->format->also,
                       way->format->also == NULL ? "" : ".");
    dl_text_add(&t, "\n");
    return dl_text_string(&t);
}

/* The formats to print; count 0: no --checkpoint. */
static enum dl_code formats_of(struct dl_context *context, const struct dl_options *options,
                               const char *names[MAX_FORMATS], int *count, struct dl_err *err) {
    struct request request;
    *count = 0;
    DL_TRY(read_request(options, &request, err));
    if (request.interval != NULL)
        return dl_checkpoint_formats_asked(context, options, names, count, err);
    if (request.formats == NULL && request.probe == NULL) return DL_OK;
    return dl_fail(err, DL_ERR_USAGE, "--checkpoint-%s: give --checkpoint best too",
                   request.formats != NULL ? "format" : "probe");
}

enum dl_code dl_checkpoint_table(struct dl_context *context, const struct dl_options *options,
                                 const struct dl_prediction_row *row, struct dl_table *table,
                                 const char **sentences, struct dl_err *err) {
    struct dl_checkpoint c;
    struct dl_checkpoint_way way;
    const char *names[MAX_FORMATS];
    int count;
    *sentences = "";
    dl_list_table(table, context->arena, DL_LIST(columns), 0);
    DL_TRY(formats_of(context, options, names, &count, err));
    if (count == 0) return DL_OK;
    DL_TRY(plan_of(context, options, row, names[0], &way, &c, err));
    DL_TRY(table_of(context, options, row, names, count, table, err));
    *sentences = sentence(context, row, &way, &c);
    return DL_OK;
}

enum dl_code dl_checkpoint_text(struct dl_context *context, const struct dl_options *options,
                                const struct dl_prediction_row *row, const char **out,
                                struct dl_err *err) {
    struct dl_checkpoint c;
    struct dl_checkpoint_way way;
    const char *names[MAX_FORMATS];
    int count;
    *out = "";
    DL_TRY(formats_of(context, options, names, &count, err));
    if (count == 0) return DL_OK;
    if (count > 1) {
        struct dl_table table;
        DL_TRY(table_of(context, options, row, names, count, &table, err));
        *out = dl_arena_printf(context->arena, "\nCheckpoints of %s on %lld nodes\n\n%s",
                               row->framework->name, (long long)row->plan->nodes,
                               dl_table_text(&table));
    } else {
        DL_TRY(plan_of(context, options, row, names[0], &way, &c, err));
        *out = sentence(context, row, &way, &c);
    }
    return DL_OK;
}

enum dl_code dl_checkpoint_json(struct dl_context *context, const struct dl_options *options,
                                const struct dl_prediction_row *row, struct dl_json_writer *writer,
                                struct dl_err *err) {
    struct dl_checkpoint c;
    struct dl_checkpoint_way way;
    const char *names[MAX_FORMATS];
    int count;
    DL_TRY(formats_of(context, options, names, &count, err));
    if (count == 0) return DL_OK;
    DL_TRY(plan_of(context, options, row, count > 1 ? NULL : names[0], &way, &c, err));
    const struct facts facts = facts_of(&way, &c, context->arena);
    dl_jw_object(writer, "checkpoint");
    dl_list_json(writer, DL_LIST(columns), &facts);
    dl_jw_end(writer);
    if (count < 2) return DL_OK;
    struct dl_table table;
    DL_TRY(table_of(context, options, row, names, count, &table, err));
    dl_jw_array(writer, "checkpoint_formats");
    dl_table_json(&table, writer);
    dl_jw_end(writer);
    return DL_OK;
}
