/* log.h - logs of trainings as rows of a table of runs: a format is a row of dl_log_formats, its
 * line patterns are rows of another table. Reads text only. */
#ifndef DL_IMPORT_LOG_H
#define DL_IMPORT_LOG_H

#include "model/catalog/command.h"
#include "model/core/csv.h"

/* The quantity that a number or word of a line gives. */
enum dl_log_slot {
    /* measured at each step or report; the first slot of a format's patterns that has any counts */
    DL_LOG_STEP_S,
    DL_LOG_STEPS_PER_S,
    DL_LOG_SAMPLES_PER_S,
    DL_LOG_DEVICE_SAMPLES_PER_S, /* of one device */
    DL_LOG_TOKENS_PER_S,
    DL_LOG_DEVICE_TOKENS_PER_S,
    DL_LOG_POWER_W,
    DL_LOG_MEASURED,
    /* the last one counts */
    DL_LOG_STEP = DL_LOG_MEASURED, /* number of the step: several ranks may report it */
    DL_LOG_TOTAL,                  /* samples/s of the whole run, which replaces those of steps */
    DL_LOG_BATCH,
    DL_LOG_DEVICE_BATCH,
    DL_LOG_DEVICES,
    DL_LOG_SEQ,
    DL_LOG_CONSUMED_TOKENS, /* after the step */
    DL_LOG_NUMBERS,
    DL_LOG_MODEL = DL_LOG_NUMBERS, /* words: the rest of the line */
    DL_LOG_VARIABLES,
    DL_LOG_OPTIMIZER,
    DL_LOG_LAYOUT,
    DL_LOG_VERSION,
    DL_LOG_SLOTS
};

enum { DL_LOG_SAID = 24 };

struct dl_log_pattern {
    enum dl_log_slot slot;
    const char *only;   /* a word of the line; NULL: any line */
    const char *before; /* stands before the value; NULL: `after` stands behind the number */
    const char *after;
    double scale; /* of the number; 0: 1 */
};

struct dl_log_values {
    double *list;
    int count;
    double index; /* DL_LOG_STEP of the last one */
};

struct dl_log {
    struct dl_arena *arena;
    const struct dl_log_format *format;
    struct dl_log_values measured[DL_LOG_MEASURED];
    double numbers[DL_LOG_NUMBERS]; /* NAN: unknown */
    const char *words[DL_LOG_SLOTS];
    /* columns of a run that lines of the format say */
    struct {
        const char *column, *value;
    } said[DL_LOG_SAID];
    int said_count;
    /* of formats that read lines themselves */
    double since_s, since_samples; /* MLPerf: start of the block */
    double epoch_samples;          /* MLPerf: train_samples */
    double eval_s, eval_samples;   /* MLPerf: of the evaluation before */
    enum { DL_EPOCH_UNSAID, DL_EPOCH_RUNS, DL_EPOCH_ENDED } epoch; /* Keras: its last "Epoch" */
    int column;                                                    /* of the power; -1: none */
    bool commas;                                                   /* between columns */
};

struct dl_log_format {
    const char *name, *framework;          /* framework NULL: not implied by the format */
    const char *marks[3];                  /* texts that all stand in such a log */
    const struct dl_log_pattern *patterns; /* ended by `before` and `after` NULL */
    void (*line)(struct dl_log *log, const char *line); /* NULL: patterns alone */
};
extern const struct dl_log_format dl_log_formats[]; /* ended by name NULL */

/* Reads the text as the first format in which it has measurements; format NULL in *out: none. */
void dl_log_read(const char *text, size_t length, struct dl_arena *arena, struct dl_log *out);
void dl_log_add(struct dl_log *log, enum dl_log_slot slot, double value);
/* A number of the last line; all but DL_LOG_STEP are above 0. */
void dl_log_fact(struct dl_log *log, enum dl_log_slot slot, double value);
/* The number at the start of a text, as "7,000", "1.23K" or "5e3"; NAN: none. */
double dl_log_number(const char *text);
/* value stays valid as long as the log. */
void dl_log_say(struct dl_log *log, const char *column, const char *value);
/* Lines of torchtitan's start, of DeepSpeed's settings and timer, of MLPerf's logger, of Keras at
 * the end of an epoch, and of nvidia-smi and dcgmi. */
void dl_log_titan_line(struct dl_log *log, const char *line);
void dl_log_deepspeed_line(struct dl_log *log, const char *line);
void dl_log_megatron_line(struct dl_log *log, const char *line);
void dl_log_keras_line(struct dl_log *log, const char *line);
void dl_log_mlperf_line(struct dl_log *log, const char *line);
void dl_log_power_line(struct dl_log *log, const char *line);

struct dl_log_summary {
    enum dl_log_slot slot;
    double value, low, high; /* median, 10th and 90th percentiles after warm-up */
    int steps, warmup;       /* that count; before them */
};
/* Warm-up: steps at the start, at most half of all, that take more than 1.2 times the median of the
 * second half; of three steps and more at least the first. false: no measurement. */
bool dl_log_summarize(const struct dl_log *log, struct dl_log_summary *out);

/* A column of a run that the log lacks, or (wins) that replaces the value of the log; "gpus": all
 * devices. */
struct dl_log_fill {
    const char *column, *value;
    bool wins;
};
/* Whether a text is a log of a known format. */
bool dl_log_known(const char *text, size_t length, struct dl_arena *arena);
/* The log as a table of one run; plan: a file with the plan of the run, NULL: what the log holds.
 * *csv NULL: the file is no log of a known format. DL_ERR_INPUT: a log without what a run needs. */
enum dl_code dl_log_table(struct dl_context *context, const char *path, const char *plan,
                          const struct dl_log_fill *fills, int count, const char **csv,
                          struct dl_err *err);
struct dl_text;
/* Adds a cell of CSV, quoted where necessary. */
void dl_log_cell(struct dl_text *out, const char *text);
/* Whether the start of a file is that of a log with measurements. */
bool dl_log_is(struct dl_context *context, const struct dl_data *data, const char *path);
/* dl_data_csv, but of a log its table. */
enum dl_code dl_log_csv(struct dl_context *context, const struct dl_data *data, const char *path,
                        const struct dl_log_fill *fills, int count, struct dl_csv *out,
                        struct dl_err *err);

#endif
