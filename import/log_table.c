/* log_table.c - a log as a table of one run: what it measured, the plan that it or another file
 * holds, and what the caller adds. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "import/file_kind.h"
#include "import/log.h"
#include "import/run/imported_run.h"
#include "model/catalog/node_class.h"
#include "model/core/text.h"
#include "model/engine/throughput.h"

enum { CELLS = 96, LOG_BYTES = 512 << 20, HEAD_BYTES = 4 << 20 };

struct row {
    struct dl_context *context;
    const char *path;
    const struct dl_log *log;
    struct {
        const char *column, *value;
        bool fixed; /* by the caller */
    } cells[CELLS];
    int count;
    double devices; /* NAN: not known */
    struct dl_err *err;
};

static const char *cell(const struct row *r, const char *column) {
    for (int i = 0; i < r->count; i++)
        if (strcmp(r->cells[i].column, column) == 0) return r->cells[i].value;
    return "";
}

static void put(struct row *r, const char *column, const char *value) {
    for (int i = 0; i < r->count; i++) {
        if (strcmp(r->cells[i].column, column) != 0) continue;
        if (r->cells[i].fixed && strcmp(r->cells[i].value, value) != 0)
            r->context->note(r->context, "%s: %s %s, as given; the log says %s", r->path, column,
                             r->cells[i].value, value);
        if (!r->cells[i].fixed) r->cells[i].value = value;
        return;
    }
    if (r->count == CELLS) return;
    r->cells[r->count].column = column;
    r->cells[r->count++].value = value;
}

static void put_number(struct row *r, const char *column, double value) {
    if (dl_known(value)) put(r, column, dl_arena_printf(r->context->arena, "%.10g", value));
}

static double number(const struct row *r, const char *column) {
    return dl_log_number(cell(r, column));
}

/* ---- values of the log ---- */

/* Columns in the order of a table of runs; others follow. */
static void start(struct row *r, const struct dl_log_fill *fills, int count) {
    const char *rest = "id,source,system,framework,framework_version,workload,layout,precision,"
                       "optimizer,nodes,devices_per_node,batch_per_device,global_batch,metric,"
                       "value,unit";
    for (const char *column; (column = dl_list_next(&rest, r->context->arena)) != NULL;)
        put(r, column, "");
    for (int i = 0; i < count; i++) {
        if (!fills[i].wins || strcmp(fills[i].column, "gpus") == 0) continue;
        put(r, fills[i].column, fills[i].value);
        for (int k = 0; k < r->count; k++)
            if (strcmp(r->cells[k].column, fills[i].column) == 0) r->cells[k].fixed = true;
    }
    put(r, "id", dl_base_name(r->path));
    put(r, "source", "log");
}

/* Options of predict as columns. */
static void put_plan(struct row *r, const struct dl_plan_words *w) {
    for (int i = 0; i < w->option_count; i++) {
        const char *option = w->options[i].option, *value = w->options[i].value;
        char *column = dl_arena_strdup(r->context->arena, option);
        for (char *c = column; *c != '\0'; c++) *c = *c == '-' ? '_' : *c;
        if (strcmp(option, "gpus") == 0)
            r->devices = dl_log_number(value);
        else if (strcmp(option, "tokens") != 0 && strcmp(option, "set") != 0)
            put(r, column, value != NULL ? value : "1");
    }
    put(r, "workload", dl_text_string(w->workload));
    put(r, "framework", w->framework);
}

static enum dl_code take_plan(struct row *r, const char *plan) {
    struct dl_arena *arena = r->context->arena;
    const char *kind = plan != NULL ? dl_file_kind(&r->context->data, plan, arena) : NULL;
    const char *workload = cell(r, "workload"), *framework = cell(r, "framework"),
               *system = cell(r, "system");
    const struct dl_import_asked asked = {.workload = workload[0] != '\0' ? workload : NULL,
                                          .framework = framework[0] != '\0' ? framework : NULL,
                                          .system = system[0] != '\0' ? system : NULL,
                                          .ranks = r->devices <= 1e9 ? (int64_t)r->devices : 0,
                                          .skip_unknown = true};
    const struct dl_run_source file = {.path = plan, .alone = r->context->data.names_only};
    struct dl_imported_run *run = dl_arena_alloc(arena, 1, sizeof *run);
    const struct dl_run_format *format = dl_run_formats;
    while (format->name != NULL && (kind == NULL || strcmp(format->name, kind) != 0)) format++;
    if (format->name == NULL)
        return dl_fail_at(r->err, plan, 0, 0, NULL,
                          "no script or configuration of a training that is known");
    DL_TRY(dl_run_import(r->context, &file, kind, &asked, run, r->err));
    put_plan(r, run->run.out);
    return DL_OK;
}

/* The plan in the log itself: other programs print tables of arguments too. */
static enum dl_code take_own_plan(struct row *r) {
    const enum dl_code code = take_plan(r, r->path);
    if (code != DL_ERR_INPUT) return code;
    r->context->note(r->context, "%s: the arguments in the log are not taken: %s", r->path,
                     r->err->message);
    *r->err = (struct dl_err){.code = DL_OK};
    return DL_OK;
}

/* Variables of tf_cnn_benchmarks: the mode of distribution. */
static const char *tf_framework(const char *variables) {
    return strcmp(variables, "parameter_server") == 0                     ? "tensorflow-ps"
           : strcmp(variables, "horovod") == 0                            ? "horovod-tensorflow"
           : strncmp(variables, "distributed", 11) == 0                   ? "tensorflow-multiworker"
           : strcmp(variables, "replicated") == 0 || variables[0] == '\0' ? "tensorflow-mirrored"
                                                                          : "";
}

/* A model by its name in the log, where the catalog has it in small letters. */
static const char *workload_of(const struct row *r, const char *name) {
    static const struct dl_word_pair pairs[] = {{"inception3|inceptionv3", "inception_v3"},
                                                {"resnet50_v1.5|resnet", "resnet50"},
                                                {"mobilenet", "mobilenet_v1"},
                                                {"bert", "bert_large"},
                                                {"llama2_70b_lora", "llama2_70b"},
                                                {NULL, NULL}};
    struct dl_arena *arena = r->context->arena;
    const char *path, *known = dl_paired(pairs, name);
    struct dl_err ignored;
    char *plain = dl_arena_strdup(arena, known != NULL ? known : name);
    for (char *c = plain; *c != '\0'; c++) *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
    if (dl_data_is_path(plain) ||
        dl_data_path(&r->context->data, DL_DATA_WORKLOAD, plain, arena, &path, &ignored) != DL_OK)
        return "";
    return plain;
}

static void put_facts(struct row *r) {
    const struct dl_log *log = r->log;
    const char *const *words = log->words;
    const bool tf = strcmp(log->format->name, "tf_cnn_benchmarks") == 0;
    if (log->format->framework != NULL && cell(r, "framework")[0] == '\0')
        put(r, "framework", log->format->framework);
    if (tf && words[DL_LOG_VARIABLES] != NULL)
        put(r, "framework", tf_framework(words[DL_LOG_VARIABLES]));
    if (strcmp(log->format->name, "horovod") == 0 && cell(r, "framework")[0] == '\0')
        put(r, "framework", "horovod-pytorch");
    for (int i = 0; i < log->said_count; i++) put(r, log->said[i].column, log->said[i].value);
    if (words[DL_LOG_MODEL] != NULL && workload_of(r, words[DL_LOG_MODEL])[0] != '\0')
        put(r, "workload", workload_of(r, words[DL_LOG_MODEL]));
    if (words[DL_LOG_LAYOUT] != NULL)
        put(r, "layout", strcmp(words[DL_LOG_LAYOUT], "NCHW") == 0 ? "nchw" : "nhwc");
    if (words[DL_LOG_OPTIMIZER] != NULL && strcmp(words[DL_LOG_OPTIMIZER], "sgd") == 0)
        put(r, "optimizer", "sgd");
    if (words[DL_LOG_OPTIMIZER] != NULL && strcmp(words[DL_LOG_OPTIMIZER], "momentum") == 0)
        put(r, "optimizer", "momentum");
    if (words[DL_LOG_VERSION] != NULL) put(r, "framework_version", words[DL_LOG_VERSION]);
    put_number(r, "global_batch", log->numbers[DL_LOG_BATCH]);
    if (cell(r, "global_batch")[0] == '\0')
        put_number(r, "batch_per_device", log->numbers[DL_LOG_DEVICE_BATCH]);
}

/* ---- devices and the measured value ---- */

static double latest(const struct dl_log *log, enum dl_log_slot slot) {
    const struct dl_log_values *v = &log->measured[slot];
    return v->count > 0 ? v->list[v->count - 1] : NAN;
}

/* Devices that the log counts, or that the job's rates and those of a device give. */
static double devices_of(const struct dl_log *log) {
    const double *n = log->numbers;
    const double samples =
                     latest(log, DL_LOG_SAMPLES_PER_S) / latest(log, DL_LOG_DEVICE_SAMPLES_PER_S),
                 tokens =
                     latest(log, DL_LOG_TOKENS_PER_S) / latest(log, DL_LOG_DEVICE_TOKENS_PER_S);
    if (dl_known(n[DL_LOG_DEVICES])) return n[DL_LOG_DEVICES];
    if (dl_known(n[DL_LOG_BATCH]) && dl_known(n[DL_LOG_DEVICE_BATCH]))
        return round(n[DL_LOG_BATCH] / n[DL_LOG_DEVICE_BATCH]);
    return dl_known(tokens) ? round(tokens) : round(samples);
}

static enum dl_code put_devices(struct row *r) {
    const double devices = r->devices;
    double nodes = number(r, "nodes"), each = number(r, "devices_per_node");
    const char *system = cell(r, "system");
    const struct dl_system *loaded;
    struct dl_node_class of;
    if (!dl_known(each) && system[0] != '\0' && dl_node_class_is(system)) {
        DL_TRY(dl_node_class_find(&r->context->data, system, r->context->arena, &of, r->err));
        each = (double)of.devices_per_node;
        if (!dl_known(nodes) && !dl_known(devices)) nodes = (double)of.nodes;
    } else if (!dl_known(each) && system[0] != '\0' && !dl_known(nodes)) {
        DL_TRY(dl_data_system_alone(&r->context->data, system, r->context->arena, &loaded, r->err));
        each = (double)loaded->devices_per_node;
    }
    if (dl_known(devices) && dl_known(nodes)) each = devices / nodes;
    if (dl_known(devices) && !dl_known(nodes) && dl_known(each)) {
        each = fmin(each, devices);
        nodes = devices / each;
    }
    if (devices == 1) nodes = each = 1;
    put_number(r, "nodes", nodes);
    put_number(r, "devices_per_node", each);
    if (!dl_known(devices)) r->devices = nodes * each;
    return DL_OK;
}

/* Tokens of a sample: those of the log, else of the workload; NAN: not known. */
static enum dl_code tokens_of(const struct row *r, double *out) {
    const double *n = r->log->numbers;
    const char *workload = cell(r, "workload");
    const struct dl_workload *loaded;
    *out = n[DL_LOG_SEQ];
    if (!dl_known(*out))
        *out = round(n[DL_LOG_CONSUMED_TOKENS] / (n[DL_LOG_STEP] * n[DL_LOG_BATCH]));
    if (dl_known(*out) || workload[0] == '\0') return DL_OK;
    DL_TRY(dl_data_workload(&r->context->data, workload, r->context->arena, &loaded, r->err));
    *out = dl_tokens_per_sample(loaded);
    return DL_OK;
}

/* The log's sequence length, where it is not the workload's own. */
static enum dl_code put_sequence(struct row *r) {
    const char *workload = cell(r, "workload");
    const struct dl_workload *loaded;
    const double tokens = r->log->numbers[DL_LOG_SEQ];
    if (!dl_known(tokens) || workload[0] == '\0' || cell(r, "input")[0] != '\0') return DL_OK;
    DL_TRY(dl_data_workload(&r->context->data, workload, r->context->arena, &loaded, r->err));
    if (dl_tokens_per_sample(loaded) != tokens)
        put(r, "input", dl_arena_printf(r->context->arena, "seq%.0f", tokens));
    return DL_OK;
}

static enum dl_code needs(const struct row *r, const char *column, const char *why) {
    return dl_fail_at(r->err, r->path, 0, 0, column, "a log of %s: expected %s, as it gives %s",
                      r->log->format->name, column, why);
}

/* The factor by which a measured value becomes samples/s or s of the job. */
static enum dl_code scale_of(const struct row *r, enum dl_log_slot slot, double *out) {
    double tokens = 1;
    const bool of_device =
        slot == DL_LOG_DEVICE_TOKENS_PER_S || slot == DL_LOG_DEVICE_SAMPLES_PER_S;
    if (slot == DL_LOG_TOKENS_PER_S || slot == DL_LOG_DEVICE_TOKENS_PER_S)
        DL_TRY(tokens_of(r, &tokens));
    if (!dl_known(tokens)) return needs(r, "workload", "tokens/s");
    if (of_device && !dl_known(r->devices))
        return needs(r, "devices (--ranks, --gpus)", "the rate of one device");
    *out = (of_device ? r->devices : 1) / tokens;
    return DL_OK;
}

static enum dl_code put_measurement(struct row *r, const struct dl_log_summary *s) {
    const bool rate = s->slot != DL_LOG_STEP_S && s->slot != DL_LOG_STEPS_PER_S;
    double scale = 1;
    if (s->slot == DL_LOG_POWER_W) {
        put(r, "metric", "power");
        put(r, "unit", "W");
        put(r, "scope", "device");
    } else {
        put(r, "metric", rate ? "throughput" : "iteration");
        put(r, "unit", rate ? "samples/s" : "s");
        DL_TRY(scale_of(r, s->slot, &scale));
    }
    const bool turned = s->slot == DL_LOG_STEPS_PER_S;
    if (!(scale > 0 && scale < 1e15)) return needs(r, "devices and workload", "a rate");
    put_number(r, "value", turned ? 1 / s->value : s->value * scale);
    put_number(r, "p10", turned ? 1 / s->high : s->low * scale);
    put_number(r, "p90", turned ? 1 / s->low : s->high * scale);
    if (s->steps > 0) put_number(r, "steps", s->steps);
    if (s->steps > 0) put_number(r, "warmup_steps", s->warmup);
    put(r, "notes",
        dl_arena_printf(r->context->arena, "%s log%s", r->log->format->name,
                        s->warmup > 0 ? ", median after warm-up" : ""));
    return DL_OK;
}

/* ---- the table ---- */

void dl_log_cell(struct dl_text *out, const char *text) {
    if (strpbrk(text, ",\"\r\n") == NULL) {
        dl_text_add(out, text);
        return;
    }
    dl_text_add(out, "\"");
    for (; *text != '\0'; text++)
        dl_text_add_bytes(out, text, 1), dl_text_add(out, *text == '"' ? "\"" : NULL);
    dl_text_add(out, "\"");
}

static const char *csv_of(const struct row *r) {
    struct dl_text out = {.arena = r->context->arena};
    for (int line = 0; line < 2; line++) {
        for (int i = 0; i < r->count; i++) {
            dl_text_add(&out, i > 0 ? "," : NULL);
            dl_log_cell(&out, line == 0 ? r->cells[i].column : r->cells[i].value);
        }
        dl_text_add(&out, "\n");
    }
    return dl_text_string(&out);
}

/* What a caller adds to a run whose split is known: all but the split. */
static bool is_no_split(const char *column) {
    return dl_has_word("system workload framework nodes precision devices_per_node optimizer",
                       column);
}

static void take_devices(struct row *r, double given) {
    if (dl_known(r->devices) && r->devices != given)
        r->context->note(r->context, "%s: %.0f devices, as given; the log says %.0f", r->path,
                         given, r->devices);
    r->devices = given;
}

static enum dl_code make(struct row *r, const char *plan, const struct dl_log_fill *fills,
                         int count) {
    struct dl_log_summary summary;
    const char *kind =
        plan == NULL ? dl_file_kind(&r->context->data, r->path, r->context->arena) : NULL;
    r->devices = devices_of(r->log);
    start(r, fills, count);
    const bool own = plan == NULL && kind != NULL && strcmp(kind, "megatron") == 0;
    for (int i = 0; i < count; i++)
        if (strcmp(fills[i].column, "gpus") == 0) take_devices(r, dl_log_number(fills[i].value));
    if (own)
        DL_TRY(take_own_plan(r));
    else if (plan != NULL)
        DL_TRY(take_plan(r, plan));
    put_facts(r);
    for (int i = 0; i < count; i++)
        if (!fills[i].wins && fills[i].value != NULL && cell(r, fills[i].column)[0] == '\0' &&
            (cell(r, "tp")[0] == '\0' || is_no_split(fills[i].column)))
            put(r, fills[i].column, fills[i].value);
    DL_TRY(put_devices(r));
    DL_TRY(put_sequence(r));
    dl_log_summarize(r->log, &summary);
    return put_measurement(r, &summary);
}

enum dl_code dl_log_table(struct dl_context *context, const char *path, const char *plan,
                          const struct dl_log_fill *fills, int count, const char **csv,
                          struct dl_err *err) {
    struct dl_log *log = dl_arena_alloc(context->arena, 1, sizeof *log);
    struct row *r = dl_arena_alloc(context->arena, 1, sizeof *r);
    char *text;
    size_t length;
    *csv = NULL;
    DL_TRY(dl_data_read(&context->data, path, LOG_BYTES, context->arena, &text, &length, err));
    dl_log_read(text, length, context->arena, log);
    if (log->format == NULL) return DL_OK;
    *r = (struct row){.context = context, .path = path, .log = log, .err = err};
    DL_TRY(make(r, plan, fills, count));
    *csv = csv_of(r);
    return DL_OK;
}

/* The header of a table has no blanks around its commas; one column identifies nvidia-smi. */
static bool may_be_log(const char *head, size_t length) {
    int commas = 0;
    bool prose = false;
    for (size_t i = 0; i < length && head[i] != '\n'; i++) {
        commas += head[i] == ',';
        prose = prose || (head[i] == ' ' && i > 0 && (head[i - 1] == ',' || head[i - 1] == ':'));
    }
    return commas < 4 || prose;
}

bool dl_log_is(struct dl_context *context, const struct dl_data *data, const char *path) {
    size_t length;
    const char *head = dl_data_head(data, path, HEAD_BYTES, context->arena, &length);
    return head != NULL && may_be_log(head, length) && dl_log_known(head, length, context->arena);
}

enum dl_code dl_log_csv(struct dl_context *context, const struct dl_data *data, const char *path,
                        const struct dl_log_fill *fills, int count, struct dl_csv *out,
                        struct dl_err *err) {
    const char *csv;
    if (!dl_log_is(context, data, path)) return dl_data_csv(data, path, context->arena, out, err);
    DL_TRY(dl_log_table(context, path, NULL, fills, count, &csv, err));
    DL_TRY(dl_csv_parse(path, csv, strlen(csv), context->arena, out, err));
    context->note(context, "%s: read as a log", path);
    return DL_OK;
}
