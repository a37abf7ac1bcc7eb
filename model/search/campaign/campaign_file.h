/* campaign_file.h - the trials of a campaign as a file ("dlmodel-campaign"): `dlmodel campaign
 * --export` writes it, `dlmodel slurm submit --campaign` runs it.
 */
#ifndef DL_MODEL_SEARCH_CAMPAIGN_CAMPAIGN_FILE_H
#define DL_MODEL_SEARCH_CAMPAIGN_CAMPAIGN_FILE_H

#include "model/core/json.h"

struct dl_campaign_trial {
    int64_t batch_per_device;        /* samples */
    struct dl_map_entry *parameters; /* hyper-parameters: name -> value */
    int parameter_count;
};
struct dl_campaign_file {
    const char *workload, *framework, *precision, *optimizer;
    const char *input; /* "64x64"; NULL: the workload's own */
    int64_t steps;     /* iterations of a trial */
    int64_t devices_per_trial;
    struct dl_campaign_trial *trials;
    int trial_count;
};
extern const struct dl_schema dl_campaign_schema;

/* DL_ERR_INPUT names the place of a missing or wrong member; trials: at least one. */
enum dl_code dl_campaign_read(const char *path, struct dl_arena *arena,
                              struct dl_campaign_file *out, struct dl_err *err);

#endif
