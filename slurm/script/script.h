/* script.h - the job script of a run, from the site, the launch row of the framework, and the run.
 */
#ifndef DL_SLURM_SCRIPT_SCRIPT_H
#define DL_SLURM_SCRIPT_SCRIPT_H

#include "model/core/text.h"
#include "slurm/launch.h"
#include "slurm/run/run_record.h"
#include "slurm/cluster/site.h"

struct dl_script {
    const struct dl_site *site;
    const struct dl_launch *launch;
    const struct dl_run_record *run;
    const char *run_folder;     /* absolute; the job writes everything there */
    const char *program_folder; /* absolute */
    double time_limit_s;
    const struct dl_script_trials *trials; /* of a campaign; NULL: one training */
};

/* Trainings of a campaign, started by one script: an array of jobs, or one job with a step for
 * each, at most `slots` of them concurrently. */
struct dl_script_trials {
    int64_t count, slots;
    bool is_array;
    const char *program; /* file of slurm/frameworks/ */
};

/* Training tasks per node, and cores per task. */
int64_t dl_script_tasks(const struct dl_script *script);
int64_t dl_script_cores(const struct dl_script *script);

/* The text. DL_ERR_USAGE or DL_ERR_INPUT: a value that no #SBATCH line can hold. */
enum dl_code dl_script_text(const struct dl_script *script, struct dl_arena *arena,
                            const char **out, struct dl_err *err);

/* Parts of any script: its first line, name and the site's directives; the site's own options. */
enum dl_code dl_script_head(const struct dl_site *site, const char *job_name, struct dl_text *out,
                            struct dl_err *err);
enum dl_code dl_script_options(const struct dl_site *site, struct dl_text *out, struct dl_err *err);

/* A job array that searches the rows of sweep.csv in its folder, one part per task, and joins the
 * parts to result.csv. */
struct dl_sweep_script {
    const struct dl_site *site;
    const char *job_name, *folder, *program; /* absolute */
    const char *const *words;                /* further options of search */
    int word_count;
    int64_t parts;
    double time_limit_s;
};
/* The text. Errors as dl_script_text. */
enum dl_code dl_sweep_script_text(const struct dl_sweep_script *script, struct dl_arena *arena,
                                  const char **out, struct dl_err *err);

#endif
