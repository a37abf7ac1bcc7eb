/* checkpoint_inputs.c - see the header. */
#include "predict/output/checkpoint_inputs.h"

#include <string.h>
#include <unistd.h>

#include "model/core/text.h"

#define DEFAULT_PROBE "checkpoints/xeon_2_cores.csv"

struct request {
    const char *interval; /* NULL: not given */
    const char *formats, *probe;
    double interval_s;
};
#define REQUEST(member) struct request, member
const struct dl_option dl_checkpoint_options[] = {
    {"checkpoint", 0, "best|TIME", "Plan",
     "print the cost of checkpoints and failures for the best interval (Daly) or a given one, e.g. "
     "30min; the system must have node_mtbf_s and storage.write_bytes_per_s, e.g. by --set "
     "node_mtbf=20000h",
     DL_TEXT(REQUEST(interval))},
    {"checkpoint-format", 0, "NAME,...|all", "Plan",
     "format of the checkpoints ('dlmodel list checkpoints'), or several to compare; default: what "
     "the framework writes",
     DL_TEXT(REQUEST(formats))},
    {"checkpoint-probe", 0, "FILE", "Plan",
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

/* Nothing to print; DL_ERR_USAGE: other options of checkpoints were given. */
static enum dl_code without_interval(const struct request *request, struct dl_err *err) {
    if (request->formats == NULL && request->probe == NULL) return DL_OK;
    return dl_fail(err, DL_ERR_USAGE, "--checkpoint-%s: give --checkpoint best too",
                   request->formats != NULL ? "format" : "probe");
}

/* The probe that the user names, else that of the data directories; NULL: none. */
static void probe_path(struct dl_context *context, const char *given, const char **out) {
    *out = given;
    for (int d = 0; d < context->data.directory_count && *out == NULL; d++) {
        const char *path =
            dl_arena_printf(context->arena, "%s/" DEFAULT_PROBE, context->data.directories[d]);
        if (access(path, F_OK) == 0) *out = path;
    }
}

static enum dl_code read_costs(struct dl_context *context, const char *given,
                               struct dl_checkpoint_way *way, struct dl_err *err) {
    struct dl_checkpoint_cost *costs = dl_arena_alloc(context->arena, 2, sizeof *costs);
    const char *path;
    struct dl_csv csv;
    bool known;
    probe_path(context, given, &path);
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
    for (const char *at = text; at != NULL;) {
        const size_t length = strcspn(at, ",");
        if (length == 0 || *count == MAX_FORMATS)
            return dl_fail(err, DL_ERR_USAGE,
                           "--checkpoint-format: expected all or 1 to %d names between commas",
                           MAX_FORMATS);
        names[(*count)++] = dl_arena_strndup(context->arena, at, length);
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
    return DL_OK;
}

static const struct dl_column columns[] = {
    {"format", "format", "", DL_COLUMN_STRING, 0, 0},
    {"writers", "written by", "", DL_COLUMN_STRING, 0, 0},
    {"bytes", "size", "GB", DL_COLUMN_NUMBER, 1e9, 4},
    {"serialize_s", "cores", "s", DL_COLUMN_NUMBER, 0, 3},
    {"write_s", "write", "s", DL_COLUMN_NUMBER, 0, 3},
    {"blocked_s", "blocks", "s", DL_COLUMN_NUMBER, 0, 3},
    {"interval_s", "every", "min", DL_COLUMN_NUMBER, 60, 3},
    {"goodput_frac", "goodput", "%", DL_COLUMN_NUMBER, 0.01, 5},
    {"two_level_goodput_frac", "two levels", "%", DL_COLUMN_NUMBER, 0.01, 5},
    {"saves", "saves", "", DL_COLUMN_STRING, 0, 0},
    {"also", NULL, NULL, DL_COLUMN_STRING, 0, 0},
};

static void add_row(struct dl_table *table, const struct dl_checkpoint_way *way,
                    const struct dl_checkpoint *c) {
    static const char *const writers[] = {"rank 0", "all, shards", "all, copies"};
    union dl_cell *cells = dl_table_row(table);
    cells[0].string = way->format == NULL ? "" : way->format->name;
    cells[1].string = way->format == NULL ? "" : writers[way->format->writers];
    cells[2].number = c->bytes;
    cells[3].number = c->serialize_s;
    cells[4].number = c->write_s;
    cells[5].number = c->blocked_s;
    cells[6].number = c->interval_s;
    cells[7].number = c->goodput_frac;
    cells[8].number = c->two_level_goodput_frac;
    cells[9].string =
        way->format == NULL ? "" : dl_checkpoint_saves_text(way->format, table->arena);
    cells[10].string = way->format == NULL ? NULL : way->format->also;
}

/* The table of the formats asked for. */
static enum dl_code table_of(struct dl_context *context, const struct dl_options *options,
                             const struct dl_prediction_row *row, const char *const *names,
                             int count, struct dl_table *table, struct dl_err *err) {
    struct dl_checkpoint c;
    struct dl_checkpoint_way way;
    dl_table_init(table, context->arena, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < count; i++) {
        DL_TRY(plan_of(context, options, row, names[i], &way, &c, err));
        add_row(table, &way, &c);
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
    dl_text_printf(&t, " A failure every %s loses %s; in total %.2f %% more time: goodput %.2f %%.",
                   mtbf, loss, 100 * (c->stretch_ratio - 1), 100 * c->goodput_frac);
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

enum dl_code dl_checkpoint_table(struct dl_context *context, const struct dl_options *options,
                                 const struct dl_prediction_row *row, struct dl_table *table,
                                 const char **sentences, struct dl_err *err) {
    struct request request;
    struct dl_checkpoint c;
    struct dl_checkpoint_way way;
    const char *names[MAX_FORMATS];
    int count;
    *sentences = "";
    dl_table_init(table, context->arena, columns, sizeof columns / sizeof *columns);
    DL_TRY(read_request(options, &request, err));
    if (request.interval == NULL) return without_interval(&request, err);
    DL_TRY(dl_checkpoint_formats_asked(context, options, names, &count, err));
    DL_TRY(plan_of(context, options, row, names[0], &way, &c, err));
    DL_TRY(table_of(context, options, row, names, count, table, err));
    *sentences = sentence(context, row, &way, &c);
    return DL_OK;
}

enum dl_code dl_checkpoint_text(struct dl_context *context, const struct dl_options *options,
                                const struct dl_prediction_row *row, const char **out,
                                struct dl_err *err) {
    struct request request;
    struct dl_checkpoint c;
    struct dl_checkpoint_way way;
    const char *names[MAX_FORMATS];
    int count;
    *out = "";
    DL_TRY(read_request(options, &request, err));
    if (request.interval == NULL) return without_interval(&request, err);
    DL_TRY(dl_checkpoint_formats_asked(context, options, names, &count, err));
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

static void write_json(struct dl_json_writer *writer, const struct dl_checkpoint_way *way,
                       const struct dl_checkpoint *c, struct dl_arena *arena) {
    dl_jw_object(writer, "checkpoint");
    if (way->format != NULL) {
        dl_jw_string(writer, "format", way->format->name);
        dl_jw_string(writer, "writers", dl_checkpoint_writer_names[way->format->writers]);
        dl_jw_string(writer, "saves", dl_checkpoint_saves_text(way->format, arena));
        dl_jw_string(writer, "restart_also_needs", way->format->also);
    }
    dl_jw_number(writer, "bytes", c->bytes);
    dl_jw_integer(writer, "writer_nodes", c->writer_nodes);
    dl_jw_number(writer, "serialize_s", c->serialize_s);
    dl_jw_number(writer, "write_s", c->write_s);
    dl_jw_number(writer, "blocked_s", c->blocked_s);
    dl_jw_number(writer, "job_mtbf_s", c->job_mtbf_s);
    dl_jw_number(writer, "restart_s", c->restart_s);
    dl_jw_number(writer, "young_interval_s", c->young_s);
    dl_jw_number(writer, "best_interval_s", c->daly_s);
    dl_jw_number(writer, "interval_s", c->interval_s);
    dl_jw_number(writer, "interval_iterations", c->steps);
    dl_jw_number(writer, "stretch_ratio", c->stretch_ratio);
    dl_jw_number(writer, "goodput_frac", c->goodput_frac);
    dl_jw_number(writer, "loss_s", c->loss_s);
    dl_jw_number(writer, "epoch_s", c->epoch_s);
    dl_jw_number(writer, "local_write_s", c->local_write_s);
    dl_jw_number(writer, "local_interval_s", c->local_interval_s);
    dl_jw_number(writer, "global_interval_s", c->global_interval_s);
    dl_jw_number(writer, "two_level_goodput_frac", c->two_level_goodput_frac);
    dl_jw_end(writer);
}

enum dl_code dl_checkpoint_json(struct dl_context *context, const struct dl_options *options,
                                const struct dl_prediction_row *row, struct dl_json_writer *writer,
                                struct dl_err *err) {
    struct request request;
    struct dl_checkpoint c;
    struct dl_checkpoint_way way;
    const char *names[MAX_FORMATS];
    int count;
    DL_TRY(read_request(options, &request, err));
    if (request.interval == NULL) return without_interval(&request, err);
    DL_TRY(dl_checkpoint_formats_asked(context, options, names, &count, err));
    DL_TRY(plan_of(context, options, row, count > 1 ? NULL : names[0], &way, &c, err));
    write_json(writer, &way, &c, context->arena);
    if (count < 2) return DL_OK;
    struct dl_table table;
    DL_TRY(table_of(context, options, row, names, count, &table, err));
    dl_jw_array(writer, "checkpoint_formats");
    dl_table_json(&table, writer);
    dl_jw_end(writer);
    return DL_OK;
}
