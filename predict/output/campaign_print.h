/* campaign_print.h - a campaign as the command holds it, and its output. */
#ifndef DL_PREDICT_OUTPUT_CAMPAIGN_PRINT_H
#define DL_PREDICT_OUTPUT_CAMPAIGN_PRINT_H

#include "model/search/campaign/campaign.h"
#include "predict/inputs/campaign_space.h"
#include "predict/inputs/inputs.h"

enum { DL_CAMPAIGN_WIDTHS = 64 };

enum dl_campaign_search {
    DL_SEARCH_GRID,
    DL_SEARCH_RANDOM,
    DL_SEARCH_HALVING,
    DL_SEARCH_HYPERBAND,
    DL_SEARCH_ASHA,
    DL_SEARCH_MEDIAN_STOP
};

struct dl_campaign_asked {
    enum dl_campaign_search search;
    enum dl_campaign_order order;
    int64_t trials, devices_per_trial, rungs, seed;
    bool best;
    double until_step, reduction, dispatch_s, startup_s, resume_s, stage_bytes, checkpoint_s,
        repair_s;
    const char *survive, *exported;
    int shown;
};
/* "grid","random","successive-halving","hyperband","asha","median-stop", NULL */
extern const char *const dl_campaign_search_names[];

/* One number of devices per trial. */
struct dl_campaign_width {
    int64_t devices;
    double trial_s, low_s, high_s; /* mean over trials: from the prediction and its interval */
    struct dl_campaign_result result, low, high;
    struct dl_campaign_limits limits;
    const char *why; /* why it is not possible, or NULL */
    bool best, tie;
    /* nodes that compute the whole makespan; NAN: no price, no power is known */
    double cost, energy_j;
    double device_w, host_w; /* mean of a device that trains; of a node without devices */
};

struct dl_campaign_job {
    struct dl_context *context;
    struct dl_inputs inputs;
    const struct dl_framework *framework;
    struct dl_campaign_asked asked;
    struct dl_space space;
    struct dl_campaign campaign;
    int *batch;
    double *trial_s, *low_s, *high_s;
    struct dl_campaign_width widths[DL_CAMPAIGN_WIDTHS];
    int width_count;
};

/* The widths, or with `shown` 1 the tasks of the best one, in the format that the options ask for.
 */
enum dl_code dl_campaign_print(struct dl_campaign_job *job, const struct dl_options *options,
                               const struct dl_campaign_width *best,
                               const struct dl_campaign_result *tasks, struct dl_err *err);

#endif
