/* log_lines.c - lines that texts around a number do not describe: settings that torchtitan and
 * DeepSpeed print, MLPerf's events in JSON, Keras' epochs, the columns of nvidia-smi and dcgmi. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "import/log.h"

void dl_log_say(struct dl_log *log, const char *column, const char *value) {
    for (int i = 0; i < log->said_count; i++)
        if (strcmp(log->said[i].column, column) == 0) {
            log->said[i].value = value;
            return;
        }
    if (log->said_count == DL_LOG_SAID) return;
    log->said[log->said_count].column = column;
    log->said[log->said_count++].value = value;
}

/* ---- torchtitan ---- */

static void say_number(struct dl_log *log, const char *column, double value) {
    dl_log_say(log, column, dl_arena_printf(log->arena, "%.0f", value));
}

static double degree(const char *line, const char *name) {
    const char *at = strstr(line, name);
    const double value = at != NULL ? dl_log_number(at + strlen(name)) : NAN;
    return value >= 1 ? value : 1;
}

/* "Model llama3 8B size: 8,030,261,248 total parameters": llama3_8B. */
static void take_model(struct dl_log *log, const char *line) {
    const char *from = strstr(line, "Model "), *to = strstr(line, " size: ");
    if (from == NULL || to == NULL || to - from < 8 || to - from > 60) return;
    char *name = dl_arena_strndup(log->arena, from + 6, (size_t)(to - from - 6));
    for (char *c = name; *c != '\0'; c++) *c = *c == ' ' ? '_' : *c;
    log->words[DL_LOG_MODEL] = name;
}

/* The degrees that the device mesh is built of, and what was applied to the model. */
void dl_log_titan_line(struct dl_log *log, const char *line) {
    if (strstr(line, "device mesh with parallelism:") != NULL) {
        const double pp = degree(line, " pp="), cp = degree(line, " cp="),
                     tp = degree(line, " tp="), copies = degree(line, "dp_replicate="),
                     shard = degree(line, "dp_shard=");
        say_number(log, "tp", tp);
        say_number(log, "pp", pp);
        say_number(log, "cp", cp);
        if (degree(line, " ep=") > 1) say_number(log, "ep", degree(line, " ep="));
        dl_log_say(log, "zero", shard > 1 ? "3" : "0");
        if (copies > 1 && shard > 1) say_number(log, "zero_group", shard);
        dl_log_fact(log, DL_LOG_DEVICES, pp * cp * tp * copies * shard);
    }
    if (strstr(line, "total parameters") != NULL) take_model(log, line);
    if (strstr(line, "with torch.compile") != NULL) dl_log_say(log, "compiler", "inductor");
    if (strstr(line, "Applied selective activation checkpointing") != NULL)
        dl_log_say(log, "recompute", "selective");
    if (strstr(line, "Applied full activation checkpointing") != NULL ||
        strstr(line, "Applied FullAC") != NULL)
        dl_log_say(log, "recompute", "full");
}

/* ---- DeepSpeed ---- */

/* "zero_optimization_stage ...... 2": the number behind the dots of a row of its settings. */
static double setting(const char *line, const char *name) {
    const char *at = strstr(line, name);
    if (at == NULL || strncmp(at + strlen(name), " ..", 3) != 0) return NAN;
    at += strlen(name);
    return dl_log_number(at + strspn(at, " ."));
}

void dl_log_deepspeed_line(struct dl_log *log, const char *line) {
    const double stage = setting(line, "zero_optimization_stage"),
                 batch = setting(line, "train_batch_size"), size = setting(line, "world_size");
    if (dl_known(stage))
        dl_log_say(log, "framework",
                   stage == 1   ? "deepspeed-zero1"
                   : stage == 2 ? "deepspeed-zero2"
                   : stage == 3 ? "deepspeed-zero3"
                                : "pytorch-ddp");
    if (dl_known(batch)) dl_log_fact(log, DL_LOG_BATCH, batch);
    if (dl_known(size)) dl_log_fact(log, DL_LOG_DEVICES, size);
}

void dl_log_megatron_line(struct dl_log *log, const char *line) {
    if (strstr(line, "CurrSamplesPerSec=") != NULL) /* DeepSpeed's timer */
        dl_log_say(log, "framework", "megatron-deepspeed");
}

/* ---- MLPerf ---- */

/* The number behind "name":; NAN: none. */
static double member(const char *line, const char *name) {
    const char *at = strstr(line, name);
    if (at == NULL) return NAN;
    at += strlen(name);
    while (*at == '"' || *at == ':' || *at == ' ') at++;
    return dl_log_number(at);
}

static bool event(const char *line, const char *key) {
    const char *at = strstr(line, "\"key\":");
    if (at == NULL) return false;
    at += 6;
    at += strspn(at, " \"");
    return strncmp(at, key, strlen(key)) == 0 && at[strlen(key)] == '"';
}

static void add_steps(struct dl_log *log, double time_s, double samples) {
    const double batch = log->numbers[DL_LOG_BATCH];
    if (samples >= batch && time_s > 0 && batch > 0)
        dl_log_add(log, DL_LOG_STEP_S, time_s / (samples / batch));
}

/* BERT's runs have one epoch and count samples in "epoch_num" of their evaluations: the time from
 * one to the next, evaluation included. Other benchmarks count epochs there. */
static void note_evaluation(struct dl_log *log, double at_s, const char *line) {
    const double samples = member(line, "\"epoch_num\"");
    if (log->words[DL_LOG_MODEL] == NULL || strcmp(log->words[DL_LOG_MODEL], "bert") != 0) return;
    if (dl_known(log->eval_s)) add_steps(log, at_s - log->eval_s, samples - log->eval_samples);
    log->eval_s = at_s;
    log->eval_samples = samples;
}

/* Throughput where the run prints it, else samples between the events of a block of training. */
void dl_log_mlperf_line(struct dl_log *log, const char *line) {
    if (strstr(line, ":::MLLOG") == NULL) return;
    const double at_ms = member(line, "\"time_ms\""), value = member(line, "\"value\""),
                 samples = member(line, "\"samples_count\"");
    if (event(line, "global_batch_size")) dl_log_fact(log, DL_LOG_BATCH, value);
    if (event(line, "submission_benchmark")) {
        const char *name = strstr(line, "\"value\":");
        name = name != NULL ? strchr(name + 8, '"') : NULL;
        const size_t length = name != NULL ? strcspn(name + 1, "\"") : 0;
        if (length > 0) log->words[DL_LOG_MODEL] = dl_arena_strndup(log->arena, name + 1, length);
    }
    if (event(line, "tracked_stats") || event(line, "throughput")) {
        const double rate = event(line, "throughput") ? value : member(line, "\"throughput\"");
        dl_log_add(log, DL_LOG_SAMPLES_PER_S, rate);
    }
    if (event(line, "block_start") || event(line, "epoch_start")) {
        log->since_s = at_ms / 1e3;
        log->since_samples = samples;
    }
    if ((event(line, "block_stop") || event(line, "epoch_stop")) && dl_known(log->since_s)) {
        const double epochs = event(line, "epoch_stop") ? 1 : member(line, "\"epoch_count\"");
        const double done = dl_known(samples)
                                ? samples - (dl_known(log->since_samples) ? log->since_samples : 0)
                                : epochs * log->epoch_samples;
        add_steps(log, at_ms / 1e3 - log->since_s, done);
        log->since_s = NAN;
    }
    if (event(line, "train_samples")) log->epoch_samples = value;
    if (event(line, "eval_accuracy")) note_evaluation(log, at_ms / 1e3, line);
}

/* ---- Keras ---- */

/* "100/100": all steps of an epoch, whose time per step is the epoch's. */
static bool ends_epoch(const char *line) {
    for (const char *slash = line; (slash = strchr(slash, '/')) != NULL; slash++) {
        const char *from = slash;
        while (from > line && isdigit((unsigned char)from[-1])) from--;
        if (from == slash || !isdigit((unsigned char)slash[1])) continue;
        return strtoll(from, NULL, 10) == strtoll(slash + 1, NULL, 10);
    }
    return false;
}

void dl_log_keras_line(struct dl_log *log, const char *line) {
    static const struct {
        const char *unit;
        double scale;
    } units[] = {{"ms/", 1e-3}, {"us/", 1e-6}, {"s/", 1}};
    /* fit() announces each epoch; predict() and evaluate() end on such a line without it */
    if (strstr(line, "Epoch ") != NULL) log->epoch = DL_EPOCH_RUNS;
    if (!ends_epoch(line) || strstr(line, "Epoch ") != NULL) return;
    if (log->epoch == DL_EPOCH_ENDED) return;
    if (log->epoch == DL_EPOCH_RUNS) log->epoch = DL_EPOCH_ENDED;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        for (const char *at = line; (at = strstr(at, units[i].unit)) != NULL; at++) {
            const char *from = at, *what = at + strlen(units[i].unit);
            while (from > line && (isdigit((unsigned char)from[-1]) || from[-1] == '.')) from--;
            const double time_s = dl_log_number(from) * units[i].scale;
            if (from == at || !(time_s > 0)) continue;
            if (strncmp(what, "step", 4) == 0)
                dl_log_add(log, DL_LOG_STEP_S, time_s);
            else if (strncmp(what, "sample", 6) == 0)
                dl_log_add(log, DL_LOG_SAMPLES_PER_S, 1 / time_s);
            else
                continue;
            return;
        }
    }
}

/* ---- power ---- */

/* Number of the column whose title holds the word; -1: none. */
static int column_of(const char *line, const char *word, bool commas) {
    const char *at = strstr(line, word);
    int column = 0;
    if (at == NULL) return -1;
    for (const char *c = line; c < at; c++) {
        if (commas)
            column += *c == ',';
        else
            column += *c == ' ' && c[1] != ' ';
    }
    return column - (!commas && line[0] == ' ');
}

static const char *column_text(const char *line, int column, bool commas) {
    while (*line == ' ') line++;
    for (; column > 0 && *line != '\0'; column--) {
        line += commas ? strcspn(line, ",") : strcspn(line, " ");
        line += commas ? *line == ',' : strspn(line, " ");
    }
    return line;
}

void dl_log_power_line(struct dl_log *log, const char *line) {
    if (strstr(line, "power.draw") != NULL) {
        log->commas = strchr(line, ',') != NULL;
        log->column = column_of(line, "power.draw", log->commas);
    } else if (strncmp(line, "# gpu", 5) == 0) {
        log->column = column_of(line, "pwr", false) - 1; /* # is no column */
    } else if (strncmp(line, "#Entity", 7) == 0) {
        const int power = column_of(line, "POWER", false);
        log->column = (power >= 0 ? power : column_of(line, "PWR", false)) + 1; /* GPU 0 */
    } else if (log->column >= 0 && line[0] != '#') {
        dl_log_add(log, DL_LOG_POWER_W, dl_log_number(column_text(line, log->column, log->commas)));
    }
}
