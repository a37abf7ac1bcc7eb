/* slurm_parts.h - the subcommands of `dlmodel slurm`, one file each, and the options that they
 * share. */
#ifndef DL_SLURM_COMMANDS_SLURM_PARTS_H
#define DL_SLURM_COMMANDS_SLURM_PARTS_H

#include "model/cli/command.h"
#include "slurm/run/run_record.h"
#include "slurm/script/script.h"

/* One subcommand. Positional 0 is its name. */
typedef enum dl_code dl_slurm_action(struct dl_context *context, const struct dl_options *options,
                                     struct dl_err *err);
dl_slurm_action dl_slurm_script, dl_slurm_submit, dl_slurm_status, dl_slurm_collect,
    dl_slurm_cancel;

/* The runs that the options of script and submit ask for: frameworks x workloads x nodes x repeats,
 * ids not yet made unique. */
struct dl_slurm_plan {
    const struct dl_site *site;
    struct dl_run_record *runs;
    const struct dl_launch **launches; /* of each run */
    const char **networks;             /* text of network.json of each run; NULL for "custom" */
    int count;
    double time_limit_s;
    const char *folder, *programs; /* absolute */
};
enum dl_code dl_slurm_plan_make(struct dl_context *context, const struct dl_options *options,
                                struct dl_slurm_plan *out, struct dl_err *err);
/* Script of run i in `folder`/id. */
enum dl_code dl_slurm_plan_script(const struct dl_slurm_plan *plan, int i, struct dl_arena *arena,
                                  const char **out, struct dl_err *err);

/* Folder of runs: positional 1, --dir, the site's scratch, "dlmodel-runs". */
const char *dl_slurm_folder(const struct dl_options *options, const struct dl_site *site);

/* Prints a table of runs; `kind` is the format of the JSON document. */
enum dl_code dl_slurm_print(struct dl_context *context, const struct dl_options *options,
                            enum dl_format format, const char *kind, const struct dl_table *table,
                            struct dl_err *err);

/* What Slurm says of the jobs. */
struct dl_job_state {
    const char *job_id, *state; /* "COMPLETED", "CANCELLED", "RUNNING", ... */
    double elapsed_s, energy_j; /* NAN: unknown */
    const char *nodes, *exit_code;
};
struct dl_job_states {
    struct dl_job_state *jobs;
    int count;
};
/* sacct of all runs that have a job; squeue where sacct does not know them yet. DL_ERR_BACKEND:
 * sacct failed. */
enum dl_code dl_slurm_states(const struct dl_run_list *runs, bool accounting,
                             struct dl_arena *arena, struct dl_job_states *out, struct dl_err *err);
/* Reads lines of "ID|STATE" (squeue) or "ID|STATE|ELAPSED|NODES|EXIT|ENERGY" (accounting) into
 * out->jobs, which has room for `capacity`; lines without a state are left out. `text` is cut up
 * and kept. */
void dl_slurm_take_lines(struct dl_job_states *out, int capacity, char *text, bool accounting);
/* NULL: unknown */
const struct dl_job_state *dl_slurm_state_of(const struct dl_job_states *states,
                                             const char *job_id);
bool dl_slurm_state_final(const char *state);

#endif
