/* trial_log.h - logs of a campaign's trials: JSON lines in RUN/trials/trial-N.jsonl; the last line
 * of each trial counts. slurm/frameworks/README.md describes the events. */
#ifndef DL_SLURM_RUN_TRIAL_LOG_H
#define DL_SLURM_RUN_TRIAL_LOG_H

#include "model/core/json.h"

struct dl_trial_line {
    const char *event; /* trial, fail */
    int64_t trial, batch;
    double asked_s;                   /* time of its submission: seconds since 1970 */
    double train_s, trained_s, end_s; /* first iteration, last one, end of the program */
    double test_loss, accuracy_frac;  /* of the test samples; NAN: diverged, failed */
    const char *node, *text;
    struct dl_map_entry *parameters, *versions;
    int parameter_count, version_count;
    bool failed; /* derived */
};
extern const struct dl_schema dl_trial_schema;

/* The trials of `folder` that ended, of `count` in all, by number. Damaged lines are skipped: a
 * killed trial leaves one. DL_ERR_SYSTEM only. */
void dl_trials_read(const char *folder, int count, struct dl_arena *arena,
                    struct dl_trial_line **out, int *out_count);

#endif
