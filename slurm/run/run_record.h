/* run_record.h - a requested run: RUN/run.json ("dlmodel-run"), next to the script and logs of its
 * job. It is written before the submission, and again with the job id. */
#ifndef DL_SLURM_RUN_RUN_RECORD_H
#define DL_SLURM_RUN_RUN_RECORD_H

#include "model/core/json.h"

struct dl_run_record {
    const char *id; /* name of its folder */
    const char *framework, *strategy, *backend, *workload;
    const char *input; /* "64x64", "seq128"; NULL: the workload's own */
    const char *precision, *optimizer;
    int64_t nodes, devices_per_node, batch_per_device, dp, tp, pp;
    int64_t steps, warmup_steps, repeat;
    bool profile;
    const char *dataset; /* folder of images; NULL: synthetic input */
    const char **command;
    int command_count; /* of the framework "custom" */
    const char *site, *system, *job_name;
    const char *job_id;       /* NULL: not submitted */
    const char *submitted_at; /* UTC */
    const char *dlmodel;      /* version that submitted it */
    /* not in the file */
    const char *folder; /* as the user named it */
};

extern const struct dl_schema dl_run_schema;

/* The runs in `folder` that have a run.json, sorted by id. Unreadable ones are counted; `fault` is
 * the first error. */
struct dl_run_list {
    struct dl_run_record *runs;
    int count, unreadable;
    struct dl_err fault;
};
enum dl_code dl_runs_read(const char *folder, struct dl_arena *arena, struct dl_run_list *out,
                          struct dl_err *err);
enum dl_code dl_run_write(const struct dl_run_record *run, struct dl_arena *arena,
                          struct dl_err *err);

#endif
