/* slurm_internal.h - the subcommands of `dlmodel slurm`, one file each; their common options. */
#ifndef DL_SLURM_COMMANDS_SLURM_INTERNAL_H
#define DL_SLURM_COMMANDS_SLURM_INTERNAL_H

#include "model/catalog/command.h"
#include "slurm/run/run_record.h"
#include "slurm/run/runlog.h"
#include "slurm/script/script.h"

/* A subcommand. Positional 0 is its name. */
typedef enum dl_code dl_slurm_action(struct dl_context *context, const struct dl_options *options,
                                     struct dl_err *err);
dl_slurm_action dl_slurm_script, dl_slurm_submit, dl_slurm_status, dl_slurm_collect,
    dl_slurm_cancel;

/* Options of script and submit; lists are not parsed yet. */
struct dl_slurm_choice {
    const char *frameworks, *workloads, *nodes; /* NULL: not given */
    const char *name;
    struct dl_run_record run; /* members common to all runs */
    const char *campaign;     /* NULL: single runs */
    int campaign_form;        /* 0 steps of one job, 1 array of jobs */
    int method;
    bool has_method;
    double interval_width_frac; /* of --method, a fraction */
    int64_t most_repeats;
    const char *sweep; /* of submit: a table of searches instead of runs */
    int64_t repeats, batch_per_device, global_batch, parts, gpus;
    struct dl_site site; /* overrides: partition, account, ... of the jobs */
    double time_limit_s;
};
/* Stores the given options; the others keep their values in *out. */
enum dl_code dl_slurm_bind(const struct dl_options *options, struct dl_slurm_choice *out,
                           struct dl_err *err);

/* The same options with one more. */
struct dl_options dl_slurm_with(const struct dl_options *options, const char *name,
                                const char *value);

/* The runs requested by the options of script and submit: frameworks x workloads x node counts x
 * repeats. Their ids are not unique yet. */
struct dl_slurm_plan {
    const struct dl_site *site;
    struct dl_run_record *runs;
    const struct dl_launch **launches; /* per run */
    const char **networks;             /* text of network.json per run; NULL for "custom" */
    int count;
    double time_limit_s;
    const char *folder, *programs; /* absolute */
    /* trials of a campaign, which is then the only run; NULL: none */
    const struct dl_script_trials *trials;
    const char *campaign; /* its file's text */
    const char *refused;  /* why runs were left out; NULL: none were */
    const struct dl_slurm_choice *choice;
};
enum dl_code dl_slurm_plan_make(struct dl_context *context, const struct dl_options *options,
                                struct dl_slurm_plan *out, struct dl_err *err);
/* The job script of run i, whose folder is `folder`/id. */
enum dl_code dl_slurm_plan_script(const struct dl_slurm_plan *plan, int i, struct dl_arena *arena,
                                  const char **out, struct dl_err *err);

/* submit --campaign: a campaign as one run. */
enum dl_code dl_slurm_plan_campaign(struct dl_context *context, const struct dl_options *options,
                                    const char *path, struct dl_slurm_plan *out,
                                    struct dl_err *err);
/* collect --campaign FOLDER: the executed schedule, with the results of trials. */
enum dl_code dl_slurm_collect_campaign(struct dl_context *context, const struct dl_options *options,
                                       const char *folder, struct dl_err *err);
/* submit --method: keeps in the plan the repeats that are missing until the interval of each
 * configuration's median is narrow enough (F-REPEATS), and prints the progress of each. */
enum dl_code dl_slurm_plan_repeats(struct dl_context *context, const struct dl_options *options,
                                   struct dl_slurm_plan *plan, struct dl_err *err);

/* Submits a job array that searches the rows of --sweep. */
dl_slurm_action dl_slurm_submit_sweep;
/* Absolute path, as nodes need it. */
enum dl_code dl_slurm_absolute(struct dl_arena *arena, const char *path, const char **out,
                               struct dl_err *err);
/* Folder of runs: --dir, else the scratch of the site, else "dlmodel-runs". */
const char *dl_slurm_folder(const struct dl_options *options, const struct dl_site *site);

/* Prints a table of runs; `kind` is the format of the JSON document. */
enum dl_code dl_slurm_print(struct dl_context *context, const struct dl_options *options,
                            enum dl_format format, const char *kind, const struct dl_table *table,
                            struct dl_err *err);

/* Reads the runs in the folder of the options, with a warning about unreadable ones. The job id of
 * a run whose submit died before it recorded it comes from the log. *accounting: whether the site
 * has sacct. */
enum dl_code dl_slurm_read_runs(struct dl_context *context, const struct dl_options *options,
                                struct dl_run_list *runs, bool *accounting, struct dl_err *err);

/* States of jobs as Slurm reports them. */
struct dl_job_state {
    const char *job_id, *state; /* "COMPLETED", "CANCELLED", "RUNNING", ... */
    double elapsed_s, energy_j; /* NAN: unknown */
    const char *nodes, *exit_code;
    const char *folder; /* where it was submitted; only from squeue */
};
struct dl_job_states {
    struct dl_job_state *jobs;
    int count;
    struct dl_err queue; /* error of squeue; code DL_OK: none, or not called */
};
/* State of a job that is missing from the queue and unfinished or missing in the accounting:
 * slurmctld died before it saved the job, or its end never reached slurmdbd. */
#define DL_SLURM_LOST "LOST"
/* Queries sacct for all submitted runs, and squeue for those that have not ended or that sacct does
 * not list yet. A run without a job id gets that of the job that was submitted in its folder.
 * DL_ERR_BACKEND: sacct failed. Where squeue fails, out->queue has the error and jobs have the
 * state of the accounting, or none. */
enum dl_code dl_slurm_states(struct dl_run_list *runs, bool accounting, struct dl_arena *arena,
                             struct dl_job_states *out, struct dl_err *err);
/* Parses lines "ID|STATE|FOLDER" (squeue) or "ID|STATE|ELAPSED|NODES|EXIT|ENERGY|END" (accounting)
 * into out->jobs, which has room for `capacity`; skips lines without a state. Modifies `text` and
 * keeps pointers into it. */
void dl_slurm_take_lines(struct dl_job_states *out, int capacity, char *text, bool accounting);
/* NULL: unknown */
const struct dl_job_state *dl_slurm_state_of(const struct dl_job_states *states,
                                             const char *job_id);
bool dl_slurm_state_final(const char *state);
/* Whether the job of a run has ended, according to Slurm or, where Slurm does not know the job, to
 * the log. */
bool dl_slurm_job_ended(const struct dl_job_state *job, const struct dl_runlog *log);

/* Creates the folder BASE/NAME; appends "-2", "-3", ... to the name if it is taken. */
enum dl_code dl_slurm_make_folder(const char *base, const char **name, struct dl_arena *arena,
                                  const char **out, struct dl_err *err);
/* Submits job.sh of a folder. */
enum dl_code dl_slurm_sbatch(const char *folder, struct dl_arena *arena, const char **job_id,
                             struct dl_err *err);

#endif
