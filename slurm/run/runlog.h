/* runlog.h - the logs of a job: lines of JSON ("dlmodel-runlog"), one file per writer, in the
 * folder of the run. slurm/frameworks/README.md lists the events and their writers. */
#ifndef DL_SLURM_RUN_RUNLOG_H
#define DL_SLURM_RUN_RUNLOG_H

#include "model/core/json.h"

struct dl_runlog_line {
    const char *event; /* job start warmup step end look watch note exit fail */
    double time_s;     /* seconds since 1970 */
    int64_t step, ranks, status, rank;
    double step_s, samples_per_s, cpu_s, core_s, load_s;
    double peak_memory_bytes;
    const char *job_id, *nodes, *node, *text;
    const char *framework, *framework_version, *network, *backend, *precision;
    int64_t global_batch, threads, parameters;
    struct dl_map_entry *versions;
    int version_count;
    /* look and watch */
    double load_average; /* over the last minute */
    /* fraction of the node's cores used by processes outside this job; watch: since the last
     * line */
    double others_frac;
    int64_t gpu_processes; /* processes outside this job */
    double clock_frac;     /* lowest device clock / its maximum */
    double free_memory_bytes;
    double network_s;         /* round trip of a small message to the first node */
    double write_bytes_per_s; /* to the folder of the run */
    int64_t cores;
};
extern const struct dl_schema dl_runlog_schema;

struct dl_runlog {
    double *steps;
    int step_count; /* s, in order, without warm-up */
    int warmup_count, damaged_lines;
    bool started, ended, exited;
    int64_t exit_status, ranks, global_batch;
    const char *job_id, *nodes, *failure; /* last fail or note */
    double peak_memory_bytes;
    double *core_readings_s;
    int core_reading_count; /* core time readings of the steps */
    /* core time of a fixed GEMM between the steps, median; NAN: not measured */
    double core_s;
    const char *versions; /* "torch 1.13.1, python 3.11.2" */
    /* of the framework that synchronizes gradients; NULL: not logged */
    const char *framework_version;
    /* interference */
    double load_before, others_before_frac, others_during_frac, clock_frac, network_s,
        write_bytes_per_s;
    int64_t gpu_processes;
    int looks, watches;
    int files;
};

/* Reads all *.jsonl in the folder and counts damaged lines (such as the last one of a killed job).
 * No file: DL_OK with files = 0. */
enum dl_code dl_runlog_read(const char *folder, struct dl_arena *arena, struct dl_runlog *out,
                            struct dl_err *err);

/* Statistics of the steps without outliers: those farther than 3.5 robust standard deviations
 * (1.4826 * median absolute deviation) from the median. */
struct dl_run_summary {
    double median_s, quartile_s, mean_s, low_s, high_s, mad_s;
    int kept, outliers;
};
void dl_run_summarize(const double *steps, int count, struct dl_arena *arena,
                      struct dl_run_summary *out);

/* The same of a log's steps without the *cold warm-up steps at its start (F-WARMUP). */
void dl_runlog_summarize(const struct dl_runlog *log, struct dl_arena *arena,
                         struct dl_run_summary *out, int *cold);

/* What disturbed the run; NULL: nothing was detected. */
const char *dl_runlog_disturbance(const struct dl_runlog *log, struct dl_arena *arena);

#endif
